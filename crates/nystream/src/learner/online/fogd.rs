//! Fourier online gradient descent.
//!
//! J. Lu, S. C. H. Hoi, J. Wang, P. Zhao, Z.-Y. Liu, "Large scale online kernel learning", Journal of Machine Learning
//! Research 17(47), 2016: algorithm FOGD; the features of A. Rahimi, B. Recht, "Random features for large-scale kernel
//! machines", NIPS 2007.
//!
//! Gradient descent on z(x) = (sin uᵢᵀx, cos uᵢᵀx), i = 1..D/2, with frequencies u drawn from the kernel's spectrum. No rows are kept.
//! A round costs O(D d).
//!
//! Departures from the paper:
//! - z is divided by √(D/2), so that zᵀz′ estimates the kernel itself and step sizes mean what they mean elsewhere.
//! - `dimension` is the length D of z, with half as many frequencies; the authors' toolbox counts frequencies.
//! - Any kernel of a distance, not the Gaussian alone: Laplacian and Matérn spectra are multivariate t.
//! - The squared norm may be penalised (`regularization`); by default it is not.

use super::entry::{LearnerEntry, Make, OnlineLearner, Order};
use super::loss::{LOSS, Loss};
use super::options::{Chosen, Default, OptionKind, OptionSpec, Trial};
use super::settings::{LearnerSettings, Targets};
use super::state::State;
use super::steps::{REGULARIZATION, STEP_SIZE, shrinking};
use crate::error::Result;
use crate::kernel::RandomFeatures;
use crate::linalg::add_scaled;
use crate::persist::Container;
use crate::random::Generator;
use crate::rows::Row;

pub(super) static ENTRY: LearnerEntry = LearnerEntry {
    name: "fogd",
    title: "Fourier online gradient descent",
    citation: "Lu, Hoi, Wang, Zhao, Liu, \"Large scale online kernel learning\", JMLR 17(47), 2016, algorithm FOGD",
    targets: &[Targets::Classes, Targets::Numbers],
    order: Order::First,
    cost: "O(D d)",
    options: &[
        LOSS,
        STEP_SIZE,
        OptionSpec { default: Default::Number(0.0), ..REGULARIZATION },
        OptionSpec {
            name: "dimension",
            symbol: "D",
            meaning: "random features, an even number: a sine and a cosine for each of half as many frequencies",
            kind: OptionKind::Count(2),
            default: Default::Derived("four times the budget"),
            trial: Trial::of("40"),
        },
    ],
    make: Make::Rows { build, load },
};

#[derive(Debug)]
struct Fogd {
    loss: Loss,
    step: f64,
    /// 1 − ηλ
    shrink: f64,
    features: RandomFeatures,
    weights: Vec<f64>,
    /// z(x)
    mapped: Vec<f64>,
}

fn new(settings: &LearnerSettings, chosen: &Chosen) -> Result<Fogd> {
    let (step, shrink) = shrinking(chosen)?;
    let dimension = chosen.count("dimension")?.unwrap_or(settings.budget.saturating_mul(4));
    if !dimension.is_multiple_of(2) {
        return Err(chosen.refused("dimension", dimension.to_string(), "an even number"));
    }
    let mut rng = Generator::new(settings.seed);
    let features = RandomFeatures::new(&settings.kernel, settings.features, dimension / 2, &mut rng)?;
    Ok(Fogd {
        loss: Loss::chosen(chosen, settings.targets)?,
        step,
        shrink,
        weights: vec![0.0; features.len()],
        mapped: vec![0.0; features.len()],
        features,
    })
}

fn build(settings: &LearnerSettings, chosen: &Chosen) -> Result<Box<dyn OnlineLearner>> {
    Ok(Box::new(new(settings, chosen)?))
}

fn load(settings: &LearnerSettings, chosen: &Chosen, file: &mut Container) -> Result<Box<dyn OnlineLearner>> {
    // The frequencies come from the seed again.
    let mut learner = new(settings, chosen)?;
    learner.weights = file.take_numbers("weights", learner.features.len())?;
    Ok(Box::new(learner))
}

impl OnlineLearner for Fogd {
    fn predict(&mut self, row: Row) -> f64 {
        self.features.weighted(row, &self.weights, &mut self.mapped)
    }

    fn learn(&mut self, row: Row, target: f64) -> Result<f64> {
        let output = self.predict(row);
        if self.shrink < 1.0 {
            self.weights.iter_mut().for_each(|weight| *weight *= self.shrink);
        }
        let derivative = self.loss.derivative(output, target);
        if derivative != 0.0 {
            add_scaled(&mut self.weights, -self.step * derivative, &self.mapped);
        }
        Ok(output)
    }

    fn atoms(&self) -> usize {
        self.features.dimension()
    }

    fn size_bytes(&self) -> usize {
        self.features.size_bytes() + (self.weights.capacity() + self.mapped.capacity()) * 8
    }

    fn save(&self, file: &mut Container) -> Result<()> {
        file.put_numbers("weights", &self.weights)
    }
}
