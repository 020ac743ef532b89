//! A contest of dictionaries at equal size: the sets, how atoms are chosen, and how a choice is judged.
//!
//! Whatever chose the atoms, they are judged as plain Nyström (γ = 0, no weights): by ‖K − K̃‖₂ and tr(K − K̃) on the
//! training rows, and by the error of Nyström ridge regression on test rows, its ridge by generalised cross-validation.

use std::time::Instant;

use faer::{Mat, MatRef};
use nystream::fit::Summing;
use nystream::kernel::Kernel;
use nystream::model::PredictWorkspace;
use nystream::random::Generator;
use nystream::rows::{RowBlock, Rows};
use nystream::sketch::{
    Dictionary, EstimateOracle, InkOptions, InkOracle, Leverage, Schedule, SequentialDictionary, Squeak, SqueakOptions,
    rpcholesky, uniform,
};
use nystream::solver::SolverOptions;
use nystream::{Error, Result};

use crate::approximation::{difference, mirror, spectral_norm, trace};
use crate::data::{self, Labelled};

/// Rows of a block of SQUEAK here.
const BLOCK: usize = 64;
/// Halvings of the interval in which γ is looked for.
const HALVINGS: usize = 12;

/// Rows with targets, a kernel, and the kernel matrix of the training rows.
pub struct Set {
    /// What it is called.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Whether leverage scores are nearly the same everywhere, so that uniform sampling is as good as any.
    pub low_coherence: bool,
    /// The kernel.
    pub kernel: Kernel,
    train: usize,
    all: Labelled,
    kernels: Mat<f64>,
}

/// How good a choice of atoms is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scores {
    /// ‖K − K̃‖₂.
    pub spectral: f64,
    /// tr(K − K̃)/tr K.
    pub trace: f64,
    /// On the test rows.
    pub rmse: f64,
}

/// What chooses atoms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contestant {
    /// SQUEAK in blocks; its size follows from γ.
    Squeak,
    /// INK-ESTIMATE with a budget.
    InkEstimate,
    /// Rows at random.
    Uniform,
    /// Randomly pivoted Cholesky.
    RpCholesky,
    /// Draws by exact leverage scores until there are enough different rows.
    BatchExact,
}

impl Contestant {
    /// All of them, SQUEAK first.
    pub const ALL: [Self; 5] = [Self::Squeak, Self::InkEstimate, Self::Uniform, Self::RpCholesky, Self::BatchExact];

    /// As tables have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Squeak => "squeak",
            Self::InkEstimate => "ink-estimate",
            Self::Uniform => "uniform",
            Self::RpCholesky => "rpcholesky",
            Self::BatchExact => "batch-exact",
        }
    }
}

/// Atoms by row number, and the seconds it took to choose them.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Numbers of training rows, from 0, all different.
    pub atoms: Vec<usize>,
    /// Seconds.
    pub seconds: f64,
}

/// Two clustered sets, a heavy-tailed one and one of low coherence, with this many training rows and `test` more.
pub fn sets(train: usize, test: usize) -> Result<Vec<Set>> {
    let n = train + test;
    let one = |name, about, low_coherence, kernel: Kernel, all: Labelled| {
        let kernels = kernel.matrix(all.rows.rows().slice(0, train));
        Set { name, about, low_coherence, kernel, train, all, kernels }
    };
    let mut friedman = Labelled::read(&format!("synth:friedman?n={n}&d=5&seed=1"))?;
    if let RowBlock::Dense { data, .. } = &mut friedman.rows {
        // Uniform on [0, 1], standardised.
        data.iter_mut().for_each(|x| *x = (*x - 0.5) * 12f64.sqrt());
    }
    Ok(vec![
        one(
            "waves",
            "`synth:waves`, d = 3: 4 large and 40 rare clusters, σ = 0.5",
            false,
            Kernel::gaussian(0.5)?,
            Labelled::read(&format!("synth:waves?n={n}&d=3&seed=1"))?,
        ),
        one(
            "unbalanced clusters",
            "d = 3: one cluster with 90 % of the rows and 30 rare ones, σ = 1",
            false,
            Kernel::gaussian(1.0)?,
            Labelled::waves_on(data::unbalanced_clusters(n, 3, 30, 10.0, 2), 2),
        ),
        one(
            "heavy-tailed",
            "Student's t with 2 degrees of freedom, d = 2, σ = 1",
            false,
            Kernel::gaussian(1.0)?,
            Labelled::waves_on(data::student(n, 2, 3), 3),
        ),
        one("low coherence", "`synth:friedman`, d = 5, standardised, σ = 2", true, Kernel::gaussian(2.0)?, friedman),
    ])
}

impl Set {
    /// The training rows.
    pub fn rows(&self) -> Rows<'_> {
        self.all.part(0, self.train).0
    }

    /// Judges atoms, given by the numbers of training rows.
    pub fn judge(&self, atoms: &[usize]) -> Result<Scores> {
        let (rows, targets) = self.all.part(0, self.train);
        let weights = vec![1.0; atoms.len()];
        let numbers = atoms.iter().map(|&i| i as u64).collect();
        let dictionary = Dictionary::new(RowBlock::gather(rows, atoms), weights, numbers, 0.0)?;
        let mut difference = difference(self.kernels.as_ref(), self.train, &dictionary)?;
        mirror(&mut difference);
        let mut summing = Summing::new(self.kernel, &dictionary, 1, true)?;
        summing.add(rows, MatRef::from_column_major_slice(targets, targets.len(), 1));
        let model = summing.sums().solve(&self.kernel, &dictionary, &SolverOptions::default())?.model;
        let (test, truth) = self.all.part(self.train, self.all.targets.len());
        let mut predicted = Vec::new();
        model.predict(test, &mut PredictWorkspace::default(), &mut predicted)?;
        let squared: f64 = predicted.iter().zip(truth).map(|(a, b)| (a - b).powi(2)).sum();
        Ok(Scores {
            spectral: spectral_norm(difference.as_ref())?,
            trace: trace(difference.as_ref()) / trace(self.kernels.as_ref()),
            rmse: (squared / truth.len() as f64).sqrt(),
        })
    }

    /// The γ with which SQUEAK ends with about `atoms` atoms, by halving an interval of its logarithm.
    pub fn leverage_ridge_for(&self, atoms: usize, seed: u64) -> Result<f64> {
        let (mut low, mut high) = (1e-4f64.ln(), (self.train as f64).ln());
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            let found = self.choose(Contestant::Squeak, atoms, middle.exp(), seed)?.atoms.len();
            // A larger γ makes a smaller dictionary.
            if found > atoms { low = middle } else { high = middle }
        }
        Ok(((low + high) / 2.0).exp())
    }

    /// Chooses atoms: `count` of them, but for SQUEAK, which has its size from γ, and INK-ESTIMATE, for which it is a
    /// budget.
    pub fn choose(&self, contestant: Contestant, count: usize, leverage_ridge: f64, seed: u64) -> Result<Choice> {
        let start = Instant::now();
        let rows = self.rows();
        let numbers = |dictionary: Dictionary| dictionary.indices().iter().map(|&i| i as usize).collect();
        let atoms: Vec<usize> = match contestant {
            Contestant::Squeak => {
                let schedule = Schedule::Blocks { rows: BLOCK };
                let options = SqueakOptions { schedule, seed, ..SqueakOptions::new(self.kernel, leverage_ridge) };
                let mut squeak = Squeak::new(options)?;
                squeak.insert(rows)?;
                numbers(squeak.dictionary()?)
            }
            Contestant::InkEstimate => {
                let options = InkOptions { seed, ..InkOptions::with_budget(self.kernel, leverage_ridge, count) };
                let mut ink = InkOracle::<EstimateOracle>::new(options)?;
                ink.insert(rows)?;
                numbers(ink.dictionary()?)
            }
            Contestant::Uniform => numbers(uniform(rows, count, 0.0, &mut Generator::new(seed))?),
            Contestant::RpCholesky => rpcholesky(&self.kernel, rows, count, &mut Generator::new(seed))?.pivots,
            Contestant::BatchExact => {
                let scores = Leverage::exact(&self.kernel, rows, leverage_ridge)?.scores;
                draw_different(&scores, count, &mut Generator::new(seed))?
            }
        };
        Ok(Choice { atoms, seconds: start.elapsed().as_secs_f64() })
    }
}

/// Draws with probability proportional to `scores` until `count` different rows have come up.
fn draw_different(scores: &[f64], count: usize, rng: &mut Generator) -> Result<Vec<usize>> {
    let possible = scores.iter().filter(|score| **score > 0.0).count();
    let mut left = scores.to_vec();
    let mut chosen = Vec::new();
    // To draw again whenever a row has come up before is to draw among the others.
    for _ in 0..count.min(possible) {
        let total: f64 = left.iter().sum();
        let mut place = rng.uniform() * total;
        let last = left.iter().rposition(|score| *score > 0.0).ok_or(Error::Internal("no score is left"))?;
        let at = left.iter().position(|score| {
            place -= score;
            place < 0.0
        });
        let at = at.unwrap_or(last);
        left[at] = 0.0;
        chosen.push(at);
    }
    chosen.sort_unstable();
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_the_scores_and_never_repeat() {
        let mut rng = Generator::new(1);
        let first = (0..2000).filter(|_| draw_different(&[3.0, 0.0, 1.0], 1, &mut rng).unwrap() == [0]).count();
        // 1500 expected, standard deviation 19.4; five of them.
        assert!((1403..1597).contains(&first), "{first}");
        assert_eq!(draw_different(&[3.0, 0.0, 1.0], 3, &mut rng).unwrap(), [0, 2]);
    }

    #[test]
    fn every_contestant_keeps_to_the_size_and_all_rows_are_perfect() {
        for set in sets(150, 50).unwrap() {
            let gamma = set.leverage_ridge_for(20, 1).unwrap();
            for contestant in Contestant::ALL {
                let choice = set.choose(contestant, 20, gamma, 2).unwrap();
                let slack = if contestant == Contestant::Squeak { 20 } else { 0 };
                assert!((1..=20 + slack).contains(&choice.atoms.len()), "{} {}", set.name, contestant.name());
                let mut different = choice.atoms.clone();
                different.dedup();
                assert_eq!(different.len(), choice.atoms.len());
                let scores = set.judge(&choice.atoms).unwrap();
                assert!(scores.trace > 0.0 && scores.trace < 1.0 && scores.spectral > 0.0 && scores.rmse > 0.0);
            }
            let all = set.judge(&(0..150).collect::<Vec<_>>()).unwrap();
            assert!(all.trace < 1e-9 && all.spectral < 1e-7, "{all:?}");
        }
    }
}
