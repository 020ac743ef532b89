//! Nyström online gradient descent.
//!
//! J. Lu, S. C. H. Hoi, J. Wang, P. Zhao, Z.-Y. Liu, "Large scale online kernel learning", Journal of Machine Learning
//! Research 17(47), 2016: algorithm NOGD.
//!
//! Until there are B rows, kernel gradient descent. Then K of those rows is decomposed, z(x) = D_k^(−1/2) V_kᵀ k(x) becomes
//! the feature map, and gradient descent goes on in k dimensions. A round costs its kernels, O(B d); an update O(B k) more.
//!
//! What is kept is not w but M ᵀw, M = D_k^(−1/2) V_kᵀ, the coefficients of the same function at the rows: wᵀz(x) = (Mᵀw)ᵀ k(x). So a
//! prediction costs no product with M. The start w = M⁺ᵀα of the paper becomes V_k V_kᵀ α. After eight updates in a row steps
//! stay in k dimensions, p, until a round without an update brings them into the coefficients, f(x) = cᵀk(x) + pᵀz(x): where
//! every round has an update, each costs one product with M, for the output and the update alike.
//!
//! Departures from the paper:
//! - Eigenvalues below 1e-10 of the largest are left out, if k asks for them.
//! - The squared norm may be penalised (`regularization`); by default it is not, as in the authors' toolbox.

use faer::Mat;

use super::entry::{LearnerEntry, Make, OnlineLearner, Order};
use super::expansion::Expansion;
use super::loss::{LOSS, Loss};
use super::options::{Chosen, Default, OptionKind, OptionSpec, Trial};
use super::settings::{LearnerSettings, Targets};
use super::square::Square;
use super::state::State;
use super::steps::{REGULARIZATION, STEP_SIZE, shrinking};
use crate::error::Result;
use crate::linalg::{SymmetricEigen, TiledRows, add_scaled, dot};
use crate::persist::Container;
use crate::rows::Row;

pub(super) static ENTRY: LearnerEntry = LearnerEntry {
    name: "nogd",
    title: "Nyström online gradient descent",
    citation: "Lu, Hoi, Wang, Zhao, Liu, \"Large scale online kernel learning\", JMLR 17(47), 2016, algorithm NOGD",
    targets: &[Targets::Classes, Targets::Numbers],
    order: Order::First,
    cost: "O(B d), and O(B k) at an update",
    options: &[
        LOSS,
        STEP_SIZE,
        OptionSpec { default: Default::Number(0.0), ..REGULARIZATION },
        OptionSpec {
            name: "rank",
            symbol: "k",
            meaning: "dimensions of the feature map, at most the budget",
            kind: OptionKind::Count(1),
            default: Default::Derived("a tenth of the budget"),
            trial: Trial::of("4"),
        },
    ],
    make: Make::Rows { build, load },
};

/// Updates in a row, after which the next round is likely to have one too.
const IN_A_ROW: u64 = 8;

/// Eigenvalues below this share of the largest are rounding.
const SMALLEST: f64 = 1e-10;

#[derive(Debug)]
struct Nogd {
    loss: Loss,
    step: f64,
    /// 1 − ηλ
    shrink: f64,
    rank: usize,
    budget: usize,
    function: Expansion,
    /// K of the rows, its lower triangle, while there are fewer than the budget.
    matrix: Square,
    /// M, once there are as many as the budget.
    map: TiledRows,
    /// p, and whether there is one.
    pending: Vec<f64>,
    waiting: bool,
    /// Updates since the last round without one, up to [`IN_A_ROW`].
    in_a_row: u64,
    /// z(x), of the row looked at last if there is a p.
    features: Vec<f64>,
}

fn new(settings: &LearnerSettings, chosen: &Chosen, function: Expansion) -> Result<Nogd> {
    let (step, shrink) = shrinking(chosen)?;
    let rank = chosen.count("rank")?.unwrap_or((settings.budget / 10).max(1));
    if rank > settings.budget {
        return Err(chosen.refused("rank", rank.to_string(), format!("at most the budget, {}", settings.budget)));
    }
    Ok(Nogd {
        loss: Loss::chosen(chosen, settings.targets)?,
        step,
        shrink,
        rank,
        budget: settings.budget,
        function,
        matrix: Square::default(),
        map: TiledRows::default(),
        pending: Vec::new(),
        waiting: false,
        in_a_row: 0,
        features: Vec::new(),
    })
}

fn build(settings: &LearnerSettings, chosen: &Chosen) -> Result<Box<dyn OnlineLearner>> {
    Ok(Box::new(new(settings, chosen, Expansion::new(settings))?))
}

fn load(settings: &LearnerSettings, chosen: &Chosen, file: &mut Container) -> Result<Box<dyn OnlineLearner>> {
    let mut learner = new(settings, chosen, Expansion::take(file, settings)?)?;
    if learner.function.len() < settings.budget {
        learner.matrix = Square::take(file, "matrix", learner.function.len())?;
    } else {
        let map = file.take_some_numbers("map")?;
        if map.len() / settings.budget > learner.rank || !map.len().is_multiple_of(settings.budget) {
            return Err(file.malformed("a feature map of another rank"));
        }
        learner.set_map(&map);
        let pending = file.take_some_numbers("pending")?;
        learner.waiting = !pending.is_empty();
        if learner.waiting {
            if pending.len() != learner.map.len() {
                return Err(file.malformed("a step in a feature map of another rank"));
            }
            learner.pending = pending;
        }
        [learner.in_a_row] = file.take_counts("in_a_row")?;
        if learner.in_a_row > IN_A_ROW || learner.waiting && learner.in_a_row < IN_A_ROW {
            return Err(file.malformed("a state that no run leads to"));
        }
    }
    Ok(Box::new(learner))
}

impl Nogd {
    fn set_map(&mut self, numbers: &[f64]) {
        self.map = TiledRows::new(self.budget, numbers);
        self.features = vec![0.0; self.map.len()];
        self.pending = vec![0.0; self.map.len()];
    }

    /// f(x)
    fn output(&mut self, row: Row) -> f64 {
        let known = self.function.output(row);
        if !self.waiting {
            return known;
        }
        self.map.times(&self.function.kernels, &mut self.features);
        known + dot(&self.pending, &self.features)
    }

    /// w ← w − η ℓ′ z(x), of the row looked at last.
    fn step(&mut self, coefficient: f64) {
        let Expansion { kernels, coefficients, .. } = &mut self.function;
        if self.in_a_row < IN_A_ROW {
            self.in_a_row += 1;
            return self.map.add_gram_times(kernels, coefficient, coefficients);
        }
        if !self.waiting {
            self.map.times(kernels, &mut self.features);
            self.waiting = true;
        }
        add_scaled(&mut self.pending, coefficient, &self.features);
    }

    fn push(&mut self, row: Row, coefficient: f64) -> Result<()> {
        let place = self.function.len();
        self.function.push(row, coefficient);
        self.function.kernels[place] = self.function.support.kernel().diagonal(row);
        self.matrix.grow();
        self.matrix.row_mut(place).copy_from_slice(&self.function.kernels);
        if self.function.len() == self.budget { self.decompose() } else { Ok(()) }
    }

    /// M from the rows, and the coefficients projected.
    fn decompose(&mut self) -> Result<()> {
        let n = self.budget;
        let matrix = Mat::from_fn(n, n, |i, j| self.matrix.row(i.max(j))[i.min(j)]);
        let eigen = SymmetricEigen::new(matrix.as_ref())?;
        let largest = eigen.values.last().copied().unwrap_or(0.0);
        let (mut coefficients, mut map) = (vec![0.0; n], Vec::new());
        for j in (n - self.rank..n).rev() {
            let value = eigen.values[j];
            if value <= SMALLEST * largest || value <= 0.0 {
                break;
            }
            let vector = eigen.vectors.col(j);
            let along: f64 = vector.iter().zip(&self.function.coefficients).map(|(v, c)| v * c).sum();
            coefficients.iter_mut().zip(vector.iter()).for_each(|(c, v)| *c += along * v);
            map.extend(vector.iter().map(|v| v / value.sqrt()));
        }
        self.function.coefficients = coefficients;
        self.set_map(&map);
        self.matrix = Square::default();
        Ok(())
    }
}

impl OnlineLearner for Nogd {
    fn predict(&mut self, row: Row) -> f64 {
        self.output(row)
    }

    fn learn(&mut self, row: Row, target: f64) -> Result<f64> {
        let output = self.output(row);
        if self.shrink < 1.0 {
            self.function.scale(self.shrink);
            self.pending.iter_mut().for_each(|p| *p *= self.shrink);
        }
        let derivative = self.loss.derivative(output, target);
        if derivative != 0.0 {
            let coefficient = -self.step * derivative;
            if self.function.len() < self.budget {
                self.push(row, coefficient)?;
            } else {
                self.step(coefficient);
            }
        } else {
            self.in_a_row = 0;
            if self.waiting {
                self.map.add_transposed_times(&self.pending, &mut self.function.coefficients);
                self.pending.fill(0.0);
                self.waiting = false;
            }
        }
        Ok(output)
    }

    fn atoms(&self) -> usize {
        self.function.len()
    }

    fn size_bytes(&self) -> usize {
        self.function.size_bytes() + self.matrix.size_bytes() + self.map.size_bytes() + 2 * self.features.capacity() * 8
    }

    fn save(&self, file: &mut Container) -> Result<()> {
        self.function.put(file)?;
        if self.function.len() < self.budget {
            self.matrix.put(file, "matrix")
        } else {
            file.put_numbers("map", &self.map.numbers())?;
            file.put_numbers("pending", if self.waiting { &self.pending } else { &[] })?;
            file.put_counts("in_a_row", &[self.in_a_row])
        }
    }
}
