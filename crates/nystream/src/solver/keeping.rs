//! How a stream's sums are kept: of kernels, of levelled kernels or of features, whichever the ridge allows.
//!
//! Sums of kernels cost a row m²/2 multiply-adds less, but their rounding errors E are divided by γ when they turn into
//! features, so that ridges below about ‖E‖/γ mean nothing; sums of features do not have that limit (see
//! [`NystromSums::whitened`]). Both limits move as rows come in, so the choice is made anew whenever the ridge is: kernels
//! if the best ridge is far above their floor, as it will be when the rows have doubled: where targets have little noise the
//! best ridge falls as rows come in, and what sums of kernels have lost does not come back (seen on cpuact: a seventh more
//! error, with a ridge that had been above the floor on the first thousand rows). At the floor, features are summed again if
//! a smaller ridge would bring more than next to nothing (a thousandth of the squared error, by generalised
//! cross-validation). Between the two stand sums of levelled kernels ([`Levelling`]): nearly as cheap as those of kernels, with
//! far smaller errors where a few directions hold most of the kernels. γ is then the nugget of that many rows; sums of kernels
//! do not depend on it, and sums of features keep the one they began with. So do levelled kernels that were features made
//! from kernels: the errors that came with them are those of kernels, and small beside that γ only.

use std::sync::Arc;

use super::gcv::RidgePath;
use super::levelling::Levelling;
use super::nystrom::NystromSums;
use super::recursive::RecursiveRidge;
use super::settings::Ridge;
use super::whitening::Whitening;
use crate::error::{Error, Result};
use crate::sketch::Dictionary;

/// How far ahead a choice must hold, in rows so far.
const AHEAD: f64 = 2.0;
/// How many floors a ridge must have below it before kernels are summed.
const CLEAR: f64 = 10.0;
/// Share of the expected squared error that sums of kernels may cost.
const ACCEPTED: f64 = 1e-3;
/// How often a ridge is raised tenfold where rounding errors are larger than expected.
const MOST_RAISES: usize = 6;
/// Errors that were inherited at less than this share of the γ of kernels did not come from kernels.
const OF_KERNELS: f64 = 0.1;
/// A ridge below this many floors is at the floor.
const AT_FLOOR: f64 = 1.1;

/// What rounding errors of sums of kernels ask for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rounding {
    /// The γ at which its own effect equals that of the errors.
    pub nugget: f64,
    /// The smallest ridge that means something.
    pub ridge_floor: f64,
}

impl Rounding {
    /// From the Frobenius norm of S Σkkᵀ S, the number of atoms and Σw, once there are `growth` times as many rows;
    /// with another γ than the nugget, if there is one.
    pub(super) fn new(norm: f64, atoms: usize, weight: f64, growth: f64, own: Option<f64>) -> Self {
        let m = atoms as f64;
        let noise = growth * 2.0 * f64::EPSILON * norm / m.sqrt();
        let nugget = own.unwrap_or_else(|| (noise * m / (growth * weight)).sqrt());
        Self { nugget, ridge_floor: 10.0 * noise / nugget.max(f64::MIN_POSITIVE) }
    }
}

impl RecursiveRidge {
    /// Chooses the ridge from the sums (or takes the one given), and how they are kept from here on. Gives the mean logarithm
    /// of the squared errors that generalised cross-validation expects, if the ridge was chosen by it.
    pub fn choose(&mut self, ridge: Ridge) -> Result<Option<f64>> {
        if self.sums().is_whitened() { self.choose_from_features(ridge) } else { self.choose_from_kernels(ridge) }
    }

    fn choose_from_features(&mut self, ridge: Ridge) -> Result<Option<f64>> {
        let scored = self.scored(self.dictionary(), ridge)?;
        let precise = scored.above(0.0)?;
        let kernels = self.sums().to_kernels();
        let rounding = kernels.rounding(self.dictionary(), AHEAD);
        let kept = self.keep_as(kernels, rounding, precise.ridge)? || self.keep_levelled(precise.ridge, rounding)?;
        if !kept {
            self.set_ridge(precise.ridge)?;
        }
        Ok(precise.score)
    }

    /// Keeps sums of kernels, levelled or not, in place of features, if the ridge is clear of their floor.
    fn keep_as(&mut self, kernels: NystromSums, rounding: Rounding, ridge: f64) -> Result<bool> {
        // Where errors of kernels that were summed once are as large, those of levelled ones hardly matter.
        let inherited = if kernels.levelling.is_some() { kernels.inherited_floor } else { 0.0 };
        if rounding.nugget <= 0.0 || rounding.ridge_floor > (ridge / CLEAR).max(inherited / 2.0) {
            return Ok(false);
        }
        let dictionary = self.dictionary().with_leverage_ridge(rounding.nugget)?;
        let features = (self.dictionary().clone(), self.sums().clone());
        match self.replace_sums(dictionary, kernels, ridge) {
            // Rounding errors that are larger than expected.
            Err(Error::NotPositiveDefinite { .. }) => {
                self.replace_sums(features.0, features.1, ridge)?;
                Ok(false)
            }
            done => done.map(|()| true),
        }
    }

    /// Keeps sums of levelled kernels in place of features, if the ridge is clear of their floor; `rounding` is that of plain
    /// kernels.
    fn keep_levelled(&mut self, ridge: f64, rounding: Rounding) -> Result<bool> {
        // A γ far below theirs is that of levelled kernels: these were summed before, and did not do.
        if self.sums().inherited_floor > 0.0 && self.dictionary().leverage_ridge() < OF_KERNELS * rounding.nugget {
            return Ok(false);
        }
        match Levelling::of(self.kernel().matrix(self.dictionary().atoms().rows()).as_ref())? {
            Some(levelling) => {
                let levelled = self.sums().to_levelled(Arc::new(levelling));
                let rounding = levelled.rounding(self.dictionary(), AHEAD);
                self.keep_as(levelled, rounding, ridge)
            }
            None => Ok(false),
        }
    }

    fn choose_from_kernels(&mut self, ridge: Ridge) -> Result<Option<f64>> {
        let rounding = self.sums().rounding(self.dictionary(), AHEAD);
        let dictionary = self.dictionary().with_leverage_ridge(rounding.nugget.max(f64::MIN_POSITIVE))?;
        let floor = rounding.ridge_floor;
        let scored = match self.scored(&dictionary, ridge) {
            Err(Error::NotPositiveDefinite { .. }) => return self.rescue(&dictionary, floor).map(|()| None),
            scored => scored?,
        };
        let chosen = scored.above(floor)?;
        // At the floor, what a smaller ridge would bring is judged by what the last halving brought.
        let precise = chosen.ridge < AT_FLOOR * floor && !scored.above(2.0 * floor)?.no_worse_than(&chosen, floor);
        let sums = if precise {
            self.sums().to_features_of(Whitening::new(self.kernel(), &dictionary, None)?)?
        } else {
            self.sums().clone()
        };
        match self.replace_sums(dictionary.clone(), sums, chosen.ridge) {
            Err(Error::NotPositiveDefinite { .. }) if !precise => self.rescue(&dictionary, floor)?,
            done => done?,
        }
        Ok(chosen.score)
    }

    /// Features instead of kernels whose rounding errors are larger than expected, with the smallest ridge above them.
    pub(super) fn rescue(&mut self, dictionary: &Dictionary, floor: f64) -> Result<()> {
        let sums = self.sums().to_features_of(Whitening::new(self.kernel(), dictionary, None)?)?;
        let mut ridge = self.ridge().max(floor);
        for _ in 0..MOST_RAISES {
            match self.replace_sums(dictionary.clone(), sums.clone(), ridge) {
                Err(Error::NotPositiveDefinite { .. }) => ridge *= 10.0,
                done => return done,
            }
        }
        self.replace_sums(dictionary.clone(), sums, ridge)
    }

    fn scored(&self, dictionary: &Dictionary, ridge: Ridge) -> Result<Scored> {
        match ridge {
            Ridge::Fixed(ridge) => Ok(Scored::Fixed(ridge)),
            Ridge::Auto => Ok(Scored::Path(Box::new(self.sums().ridge_path(self.kernel(), dictionary, true)?))),
        }
    }
}

/// The ridges there are to choose from.
enum Scored {
    Fixed(f64),
    Path(Box<RidgePath>),
}

impl Scored {
    /// The best one not below a floor, or the only one.
    fn above(&self, least: f64) -> Result<Chosen> {
        let path = match self {
            Self::Fixed(ridge) => return Ok(Chosen { ridge: *ridge, score: None }),
            Self::Path(path) => path,
        };
        let choice = path.choose_above(least)?;
        if !choice.ridge.is_finite() {
            return Err(Error::Internal("a ridge is not finite"));
        }
        Ok(Chosen { ridge: choice.ridge, score: Some(choice.mean_log_score()) })
    }
}

/// A ridge, and the mean logarithm of the errors expected with it; none if it was given.
struct Chosen {
    ridge: f64,
    score: Option<f64>,
}

impl Chosen {
    /// Whether this ridge is as good as another, or one that was given is above the floor.
    fn no_worse_than(&self, other: &Self, floor: f64) -> bool {
        match (self.score, other.score) {
            (Some(mine), Some(theirs)) => mine <= theirs + ACCEPTED,
            _ => self.ridge >= floor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Centres, Kernel, KernelWorkspace};
    use crate::random::Generator;
    use crate::rows::{RowBlock, Rows};
    use crate::solver::Innovations;
    use faer::Mat;

    struct Problem {
        data: Vec<f64>,
        targets: Mat<f64>,
        kernel: Kernel,
        dictionary: Dictionary,
    }

    impl Problem {
        /// 300 rows in the plane, 10 atoms of different weights.
        fn new(noise: f64) -> Self {
            let mut rng = Generator::new(9);
            let data: Vec<f64> = (0..600).map(|_| rng.normal()).collect();
            let targets = Mat::from_fn(300, 2, |i, t| (data[2 * i + t]).sin() + noise * rng.normal());
            let chosen: Vec<usize> = (0..10).map(|i| 29 * i).collect();
            let atoms = RowBlock::gather(Rows::dense(&data, 300, 2).unwrap(), &chosen);
            let weights = (0..10).map(|i| 0.5 + 0.3 * f64::from(i)).collect();
            let indices = chosen.iter().map(|&i| i as u64).collect();
            let dictionary = Dictionary::new(atoms, weights, indices, 1e-9).unwrap();
            Self { data, targets, kernel: Kernel::gaussian(1.0).unwrap(), dictionary }
        }

        fn rows(&self) -> Rows<'_> {
            Rows::dense(&self.data, 300, 2).unwrap()
        }

        fn whitening(&self) -> Whitening {
            Whitening::new(&self.kernel, &self.dictionary, None).unwrap()
        }

        fn sums(&self, precise: bool) -> NystromSums {
            let mut sums = if precise { NystromSums::whitened(self.whitening(), 2) } else { NystromSums::new(10, 2) };
            let mut block = Mat::zeros(300, 10);
            let centres = Centres::new(self.dictionary.atoms().rows());
            self.kernel.block(self.rows(), &centres, &mut KernelWorkspace::default(), block.as_mut());
            sums.add(block.as_mut(), self.targets.as_ref(), 300.0);
            sums
        }
    }

    fn close(a: &NystromSums, b: &NystromSums, tolerance: f64) {
        assert_eq!(a.is_whitened(), b.is_whitened());
        let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < tolerance);
        let apart = (a.gram.to_matrix() - b.gram.to_matrix()).norm_max();
        assert!(apart < tolerance, "{apart}");
        assert!(near(&a.cross, &b.cross) && near(&a.feature_sum, &b.feature_sum));
        assert_eq!((a.weight, a.rows, a.energy), (b.weight, b.rows, b.energy));
    }

    #[test]
    fn sums_of_features_and_of_kernels_turn_into_each_other() {
        let problem = Problem::new(0.1);
        let (features, kernels) = (problem.sums(true), problem.sums(false));
        close(&features.to_kernels(), &kernels, 1e-10);
        // Rounding errors of up to 300 · 1e-16 are divided by the smallest eigenvalue, here above 1e-5.
        close(&kernels.to_features_of(problem.whitening()).unwrap(), &features, 1e-8);
        close(&features.to_features_of(problem.whitening()).unwrap(), &features, 1e-8);
    }

    #[test]
    fn noisy_targets_are_kept_as_kernels_and_exact_ones_as_features() {
        for (noise, kernels) in [(0.5, true), (0.0, false)] {
            let problem = Problem::new(noise);
            for precise in [true, false] {
                let (kernel, dictionary) = (problem.kernel, problem.dictionary.clone());
                let mut learner = RecursiveRidge::from_sums(kernel, dictionary, problem.sums(precise), 1.0).unwrap();
                // A ridge that only sums of features resolve, if there is no noise.
                let ridge = if kernels { Ridge::Auto } else { Ridge::Fixed(1e-9) };
                learner.choose(ridge).unwrap();
                assert_eq!(learner.sums().is_whitened(), !kernels, "from precise {precise}, noise {noise}");
            }
        }
    }

    #[test]
    fn predictions_do_not_depend_on_how_sums_are_kept() {
        let problem = Problem::new(0.3);
        let run = |ridges: [f64; 2]| {
            let (kernel, dictionary) = (problem.kernel, problem.dictionary.clone());
            let mut learner = RecursiveRidge::new(kernel, dictionary, 2, 0.5, true).unwrap();
            let (mut found, mut all) = (Innovations::default(), Vec::new());
            for (start, ridge) in [0, 150].into_iter().zip(ridges) {
                let targets = problem.targets.as_ref().subrows(start, 150);
                learner.advance(problem.rows().slice(start, start + 150), targets, None, &mut found).unwrap();
                all.extend_from_slice(&found.predictions);
                // A fixed ridge far above the floor turns to kernels, one far below it to features.
                learner.choose(Ridge::Fixed(ridge)).unwrap();
                assert_eq!(learner.sums().is_whitened(), ridge < 1e-6);
                learner.set_ridge(0.5).unwrap();
            }
            all
        };
        let (kernels, features) = (run([0.5, 1e-12]), run([1e-12, 0.5]));
        // The nugget blurs by γn/m, 1e-7 here, against a ridge of 0.5.
        assert!(kernels.iter().zip(&features).all(|(a, b)| (a - b).abs() < 1e-5));
    }
}
