//! PROS-N-KONS: online Newton steps in a Nyström embedding that starts again whenever its dictionary changes.
//!
//! D. Calandriello, A. Lazaric, M. Valko, "Efficient second-order online kernel learning with adaptive embedding",
//! NIPS 2017, Alg. 1 (the learner) and Alg. 2 (KORS, in [`row_sampling`](super::row_sampling)).
//!
//! A round costs its kernels and O(B²): O(B d + B²).
//!
//! Departures from the paper:
//! - The dictionary has a hard limit. Once the budget is full KORS is not asked any more: no atom enters, no restart
//!   happens, and the learner goes on as online Newton in a fixed embedding.
//! - φ̃ is written in the basis of a Cholesky factor instead of eigenvectors ([`newton`](super::newton)): the same
//!   outputs, without a decomposition at every change. Atoms that the others span up to rounding count in KORS but add no
//!   dimension, as eigenvalues of 0 would not.
//! - Line 13 and the reset of lines 6–10 are done at the end of the round before instead of at the beginning of the
//!   next: the same outputs, and predicting changes nothing.
//! - σ follows from loss and C unless it is given: 1/(8C²) for the squared losses (with C at least 1, so that targets of
//!   ±1 are within it), e^(−C) for the logistic one.
//!
//! Not confirmed: the text of the paper was not at hand. The lines follow our knowledge of it and agree with the
//! implementation of this algorithm among the baselines of Li and Liao (ICML 2023), but for two things there: the step
//! of line 13 is taken with A before its update by the same gradient, and the first row is always admitted. The defaults
//! ε = 0.5, β = 1 and C = 1 are those of that implementation; its γ = 10 and α = 15 were set for regression, and ours are 1.
//! Which loss the paper's experiments in classification used we do not know.

use super::curved_loss::{CURVED_LOSS, CurvedLoss};
use super::embedding::Embedding;
use super::newton::{NewtonSettings, NewtonStep};
use super::row_sampling::{RowSampler, SamplingSettings};
use crate::error::Result;
use crate::learner::online::entry::{LearnerEntry, Make, OnlineLearner, Order};
use crate::learner::online::options::{Chosen, Default, OptionKind, OptionSpec, Trial};
use crate::learner::online::settings::{LearnerSettings, Targets};
use crate::persist::Container;
use crate::random::Generator;
use crate::rows::Row;

pub(in crate::learner::online) static ENTRY: LearnerEntry = LearnerEntry {
    name: "pros-n-kons",
    title: "online Newton in a Nyström embedding, restarted when it changes (PROS-N-KONS)",
    citation: "Calandriello, Lazaric, Valko, \"Efficient second-order online kernel learning with adaptive embedding\", \
               NIPS 2017, Alg. 1 and 2",
    targets: &[Targets::Classes, Targets::Numbers],
    order: Order::Second,
    cost: "O(B d + B²)",
    options: OPTIONS,
    make: Make::Rows { build, load },
};

/// C, which all learners by online Newton steps have.
pub(super) const BOUND: OptionSpec = OptionSpec {
    name: "bound",
    symbol: "C",
    meaning: "outputs are kept within ±C; targets should be too",
    kind: OptionKind::Positive,
    default: Default::Number(1.0),
    trial: Trial::of("0.2"),
};

/// The options of this learner and of CON-KONS.
pub(super) const OPTIONS: &[OptionSpec] = &[
    CURVED_LOSS,
    BOUND,
    OptionSpec {
        name: "ridge",
        symbol: "α",
        meaning: "what the matrix of second moments begins with",
        kind: OptionKind::Positive,
        default: Default::Number(1.0),
        trial: Trial::of("10"),
    },
    OptionSpec {
        name: "curvature",
        symbol: "σ",
        meaning: "of the loss; a gradient g adds (σ/2) g gᵀ to the matrix of second moments",
        kind: OptionKind::Positive,
        default: Default::Derived("1/(8C²), C at least 1, for squared losses; exp(−C) for the logistic one"),
        trial: Trial::of("0.9"),
    },
    OptionSpec {
        name: "leverage-ridge",
        symbol: "γ",
        meaning: "ridge of the leverage scores; a larger one admits fewer rows",
        kind: OptionKind::Positive,
        default: Default::Number(1.0),
        trial: Trial::of("10"),
    },
    OptionSpec {
        name: "accuracy",
        symbol: "ε",
        meaning: "leverage scores are multiplied by 1 + ε",
        kind: OptionKind::Fraction,
        default: Default::Number(0.5),
        trial: Trial::of("0.05"),
    },
    OptionSpec {
        name: "oversampling",
        symbol: "β",
        meaning: "a row is admitted with probability β times its leverage score",
        kind: OptionKind::Positive,
        default: Default::Number(1.0),
        trial: Trial::of("0.3"),
    },
];

/// What becomes of weights and second moments when an atom enters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnChange {
    /// They are forgotten.
    Restart,
    /// They are carried over.
    CarryOver,
}

/// PROS-N-KONS, or CON-KONS.
#[derive(Debug)]
pub(super) struct Kons {
    on_change: OnChange,
    loss: CurvedLoss,
    budget: usize,
    embedding: Embedding,
    newton: NewtonStep,
    sampler: RowSampler,
}

fn build(settings: &LearnerSettings, chosen: &Chosen) -> Result<Box<dyn OnlineLearner>> {
    Ok(Box::new(Kons::new(settings, chosen, OnChange::Restart)?))
}

fn load(settings: &LearnerSettings, chosen: &Chosen, file: &mut Container) -> Result<Box<dyn OnlineLearner>> {
    Ok(Box::new(Kons::load(settings, chosen, OnChange::Restart, file)?))
}

impl Kons {
    pub(super) fn new(settings: &LearnerSettings, chosen: &Chosen, on_change: OnChange) -> Result<Self> {
        let (newton, sampling) = parts(settings, chosen)?;
        Ok(Self {
            on_change,
            loss: CurvedLoss::chosen(chosen, settings.targets)?,
            budget: settings.budget,
            embedding: Embedding::new(settings),
            newton: NewtonStep::new(newton),
            sampler: RowSampler::new(sampling, Generator::new(settings.seed)),
        })
    }

    pub(super) fn load(
        settings: &LearnerSettings,
        chosen: &Chosen,
        on_change: OnChange,
        file: &mut Container,
    ) -> Result<Self> {
        let (newton, sampling) = parts(settings, chosen)?;
        let embedding = Embedding::take(file, settings)?;
        let atoms = embedding.atoms();
        let newton = NewtonStep::take(file, newton, atoms)?;
        let sampler = RowSampler::take(file, sampling, atoms)?;
        Ok(Self { embedding, newton, sampler, ..Self::new(settings, chosen, on_change)? })
    }
}

/// The settings of the Newton step, and of the sampling.
fn parts(settings: &LearnerSettings, chosen: &Chosen) -> Result<(NewtonSettings, SamplingSettings)> {
    let bound = chosen.number("bound")?;
    let loss = CurvedLoss::chosen(chosen, settings.targets)?;
    let sigma = chosen.given_number("curvature")?.unwrap_or_else(|| loss.curvature(bound));
    let newton = NewtonSettings { ridge: chosen.number("ridge")?, curvature: 0.5 * sigma, bound };
    let sampling = SamplingSettings {
        leverage_ridge: chosen.number("leverage-ridge")?,
        accuracy: chosen.number("accuracy")?,
        oversampling: chosen.number("oversampling")?,
    };
    Ok((newton, sampling))
}

impl OnlineLearner for Kons {
    fn predict(&mut self, row: Row) -> f64 {
        self.embedding.map(row);
        self.newton.output(self.embedding.features())
    }

    fn learn(&mut self, row: Row, target: f64) -> Result<f64> {
        // Alg. 1, lines 12, 14 and 16: map, project, predict.
        self.embedding.map(row);
        let output = self.newton.project(self.embedding.features());
        // Lines 17, 18 and 13: gradient, second moments, step.
        self.newton.descend(self.loss.derivative(output, target));
        // Lines 4 and 5: KORS decides about the row.
        if self.embedding.atoms() < self.budget && self.sampler.admits(self.embedding.kernels(), self.embedding.own()) {
            // Lines 6 to 10: another dictionary, another embedding.
            self.embedding.admit(row);
            match self.on_change {
                OnChange::Restart => self.newton.restart(self.embedding.atoms()),
                OnChange::CarryOver => self.newton.extend(0.0),
            }
        }
        Ok(output)
    }

    fn atoms(&self) -> usize {
        self.embedding.atoms()
    }

    fn size_bytes(&self) -> usize {
        self.embedding.size_bytes() + self.newton.size_bytes() + self.sampler.size_bytes()
    }

    fn save(&self, file: &mut Container) -> Result<()> {
        self.embedding.put(file)?;
        self.newton.put(file)?;
        self.sampler.put(file)
    }
}
