//! The same sums over rows in another basis: of kernels k, of levelled kernels Tk, or of features L⁻¹Sk.
//!
//! A change of basis M takes Σcc⊤ to M(Σcc⊤)M⊤. Its rounding errors have the size of what M is applied to, so that no way
//! may lead through kernels where digits are to be kept: features become levelled kernels by TS⁻¹L at once, and levelled
//! kernels become features by way of their own whitening L′, L′L′⊤ = T(K_ZZ + γS⁻²)T, whose features are a rotation
//! L⁻¹ST⁻¹L′ away. Only sums of kernels, whose errors are as large to begin with, are whitened as they are.

use std::sync::Arc;

use faer::{Mat, MatMut};

use super::keeping::Rounding;
use super::levelling::Levelling;
use super::nystrom::NystromSums;
use super::whitening::{KERNEL_ACCURACY, Whitening, scale_both_sides};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::linalg::{Cholesky, GramSum, lower_norm, mirror_lower, product};
use crate::sketch::Dictionary;

impl NystromSums {
    /// The same sums, of kernels.
    pub fn to_kernels(&self) -> Self {
        match (&self.whitening, &self.levelling) {
            (Some(whitening), _) => self.through(&whitening.to_kernels(), Basis::Kernels),
            (None, Some(levelling)) => {
                let (mut gram, mut beside) = (self.gram.to_matrix(), self.beside());
                levelling.restore(gram.as_mut());
                levelling.restore(gram.as_mut().transpose_mut());
                levelling.restore(beside.as_mut());
                self.rebuilt(Basis::Kernels, &gram, &beside)
            }
            (None, None) => self.clone(),
        }
    }

    /// The same sums, of levelled kernels.
    pub fn to_levelled(&self, levelling: Arc<Levelling>) -> Self {
        match &self.whitening {
            Some(whitening) => {
                let mut map = whitening.to_kernels();
                levelling.level(map.as_mut());
                self.through(&map, Basis::Levelled(levelling))
            }
            None => {
                let kernels = self.to_kernels();
                let (mut gram, mut beside) = (kernels.gram.to_matrix(), kernels.beside());
                levelling.level_both_sides(gram.as_mut());
                levelling.level(beside.as_mut());
                self.rebuilt(Basis::Levelled(levelling), &gram, &beside)
            }
        }
    }

    /// The same sums, of the features of a dictionary. Rounding errors of sums of kernels go with them.
    pub fn to_features_of(&self, whitening: Whitening) -> Result<Self> {
        let own = Some(whitening.leverage_ridge);
        let (sums, floor) = match (&self.whitening, &self.levelling) {
            (Some(before), _) => {
                let mut map = before.to_kernels();
                whitening.whiten_columns(map.as_mut());
                (self.through(&map, Basis::Features(whitening)), 0.0)
            }
            (None, Some(levelling)) => {
                let mut gram = self.gram.to_lower();
                let floor = self.rounding_of(&gram, 1.0, own).ridge_floor;
                // L′, from T S⁻¹ L.
                let mut map = whitening.to_kernels();
                levelling.level(map.as_mut());
                let overlap = product(map.as_ref(), map.transpose());
                let inner = Cholesky::new(overlap.as_ref(), "levelled kernels between atoms")?;
                inner.both_sides_in_place(gram.as_mut());
                mirror_lower(gram.as_mut());
                let mut beside = self.beside();
                forward_each(&inner, beside.as_mut());
                let mut rotation = inner.factor().to_owned();
                levelling.restore(rotation.as_mut());
                whitening.whiten_columns(rotation.as_mut());
                let half = product(rotation.as_ref(), gram.as_ref());
                let gram = product(half.as_ref(), rotation.transpose());
                let beside = product(rotation.as_ref(), beside.as_ref());
                (self.rebuilt(Basis::Features(whitening), &gram, &beside), floor)
            }
            (None, None) => {
                let mut gram = self.gram.to_lower();
                scale_both_sides(&mut gram, &whitening.weights);
                let floor = self.rounding_of(&gram, 1.0, own).ridge_floor;
                whitening.factor.both_sides_in_place(gram.as_mut());
                let mut beside = self.beside();
                whitening.weigh_columns(beside.as_mut());
                forward_each(&whitening.factor, beside.as_mut());
                (self.rebuilt(Basis::Features(whitening), &gram, &beside), floor)
            }
        };
        Ok(Self { inherited_floor: self.inherited_floor + floor, ..sums })
    }

    /// What rounding asks for once there are `growth` times as many rows, if these are sums of kernels, levelled or not.
    pub fn rounding(&self, dictionary: &Dictionary, growth: f64) -> Rounding {
        let mut gram = self.gram.to_lower();
        if self.levelling.is_none() {
            scale_both_sides(&mut gram, dictionary.weights());
        }
        // Errors of kernels that were summed once lie in all directions, and stay: what they ask for holds at this γ.
        let own = self.levelling.is_some() && self.inherited_floor > 0.0;
        let rounding = self.rounding_of(&gram, growth, own.then(|| dictionary.leverage_ridge()));
        // Sums of levelled kernels may be precise where the kernels themselves are not.
        let least = KERNEL_ACCURACY * self.energy / self.weight;
        if self.levelling.is_some() && rounding.nugget < least {
            return self.rounding_of(&gram, growth, Some(least));
        }
        rounding
    }

    /// The same from the lower triangle of S Σkkᵀ S, or of sums of levelled kernels.
    pub(super) fn rounding_of(&self, gram: &Mat<f64>, growth: f64, own: Option<f64>) -> Rounding {
        // Errors of many additions lie in all directions, those of turning features into kernels may lie in one.
        let norm = lower_norm(gram.as_ref()) * (gram.nrows() as f64).sqrt();
        Rounding::new(norm, gram.nrows(), self.weight, growth, own)
    }

    /// What is penalised where kernels are summed: K_ZZ + γS⁻², levelled if they are.
    pub(super) fn regulariser(&self, kernel: &Kernel, dictionary: &Dictionary) -> Mat<f64> {
        let mut matrix = kernel.matrix(dictionary.atoms().rows());
        for (i, weight) in dictionary.weights().iter().enumerate() {
            matrix[(i, i)] += dictionary.leverage_ridge() / (weight * weight);
        }
        if let Some(levelling) = &self.levelling {
            levelling.level_both_sides(matrix.as_mut());
        }
        matrix
    }

    /// What whitens levelled kernels.
    pub(super) fn levelled_whitening(&self, kernel: &Kernel, dictionary: &Dictionary) -> Result<Whitening> {
        let overlap = self.regulariser(kernel, dictionary);
        Whitening::of_overlap(vec![1.0; dictionary.len()], overlap.as_ref(), dictionary.leverage_ridge())
    }

    /// Σφy, and Σφ in the last column.
    fn beside(&self) -> Mat<f64> {
        let outputs = self.target_sum.len();
        let entry = |i: usize, t: usize| if t < outputs { self.cross[i * outputs + t] } else { self.feature_sum[i] };
        Mat::from_fn(self.gram.dim(), outputs + 1, entry)
    }

    fn through(&self, map: &Mat<f64>, basis: Basis) -> Self {
        let half = product(map.as_ref(), self.gram.to_matrix().as_ref());
        let gram = product(map.as_ref(), half.transpose());
        self.rebuilt(basis, &gram, &product(map.as_ref(), self.beside().as_ref()))
    }

    fn rebuilt(&self, basis: Basis, gram: &Mat<f64>, beside: &Mat<f64>) -> Self {
        let outputs = self.target_sum.len();
        let (whitening, levelling) = match basis {
            Basis::Kernels => (None, None),
            Basis::Levelled(levelling) => (None, Some(levelling)),
            Basis::Features(whitening) => (Some(Arc::new(whitening)), None),
        };
        Self {
            whitening,
            levelling,
            gram: GramSum::from_matrix(gram.as_ref()).into(),
            feature_sum: beside.col(outputs).iter().copied().collect(),
            cross: (0..self.cross.len()).map(|i| beside[(i / outputs, i % outputs)]).collect(),
            target_sum: self.target_sum.clone(),
            target_squares: self.target_squares.clone(),
            energy: self.energy,
            weight: self.weight,
            rows: self.rows,
            passed: self.passed,
            inherited_floor: self.inherited_floor,
        }
    }
}

/// What is summed.
enum Basis {
    Kernels,
    Levelled(Arc<Levelling>),
    Features(Whitening),
}

/// L⁻¹B, a column at a time: their number must not change the bits of any.
fn forward_each(factor: &Cholesky, mut columns: MatMut<'_, f64>) {
    for t in 0..columns.ncols() {
        factor.forward_in_place(columns.as_mut().subcols_mut(t, 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Centres, KernelWorkspace};
    use crate::persist::Container;
    use crate::random::Generator;
    use crate::rows::{Row, RowBlock, Rows};
    use crate::solver::{Innovations, Loss, RecursiveRidge, Ridge, SolverOptions};

    const ROWS: usize = 1200;
    const ATOMS: usize = 160;
    const COLS: usize = 5;

    /// A smooth function of five columns under a wide kernel: six directions hold all but a ten-thousandth of K_ZZ.
    struct Smooth {
        data: Vec<f64>,
        targets: Mat<f64>,
        kernel: Kernel,
        dictionary: Dictionary,
    }

    impl Smooth {
        fn new() -> Self {
            let mut rng = Generator::new(4);
            let data: Vec<f64> = (0..ROWS * COLS).map(|_| rng.normal()).collect();
            let value = |i: usize| (data[COLS * i] * data[COLS * i + 1]).sin() + data[COLS * i + 2].powi(2);
            let targets = Mat::from_fn(ROWS, 1, |i, _| value(i) + 0.1 * rng.normal());
            let atoms = RowBlock::gather(Rows::dense(&data, ROWS, COLS).unwrap(), &(0..ATOMS).collect::<Vec<_>>());
            let weights = (0..ATOMS).map(|i| 0.8 + 0.002 * i as f64).collect();
            let dictionary = Dictionary::new(atoms, weights, (0..ATOMS as u64).collect(), 1e-12).unwrap();
            Self { data, targets, kernel: Kernel::gaussian(4.0).unwrap(), dictionary }
        }

        fn rows(&self) -> Rows<'_> {
            Rows::dense(&self.data, ROWS, COLS).unwrap()
        }

        fn whitening(&self) -> Whitening {
            Whitening::new(&self.kernel, &self.dictionary, None).unwrap()
        }

        fn levelling(&self) -> Arc<Levelling> {
            let kernels = self.kernel.matrix(self.dictionary.atoms().rows());
            Arc::new(Levelling::of(kernels.as_ref()).unwrap().unwrap())
        }

        /// The rows summed as they come into these empty sums.
        fn summed(&self, mut sums: NystromSums) -> NystromSums {
            let mut block = Mat::zeros(ROWS, ATOMS);
            let centres = Centres::new(self.dictionary.atoms().rows());
            self.kernel.block(self.rows(), &centres, &mut KernelWorkspace::default(), block.as_mut());
            if let Some(levelling) = &sums.levelling {
                levelling.apply(block.as_mut(), &mut Vec::new());
            }
            sums.add(block.as_mut(), self.targets.as_ref(), ROWS as f64);
            sums
        }

        fn features(&self) -> NystromSums {
            self.summed(NystromSums::whitened(self.whitening(), 1))
        }

        fn levelled(&self) -> NystromSums {
            self.summed(NystromSums { levelling: Some(self.levelling()), ..NystromSums::new(ATOMS, 1) })
        }
    }

    /// How far apart sums of products are, of the largest of them.
    fn apart(a: &NystromSums, b: &NystromSums) -> f64 {
        let (a, b) = (a.gram.to_matrix(), b.gram.to_matrix());
        (&a - &b).norm_max() / b.norm_max()
    }

    #[test]
    fn every_basis_turns_into_every_other() {
        let smooth = Smooth::new();
        let (features, levelled) = (smooth.features(), smooth.levelled());
        let kernels = smooth.summed(NystromSums::new(ATOMS, 1));
        // Leading directions come back with errors of the others, as much larger as they are.
        let least = smooth.levelling().factors().iter().copied().fold(1.0, f64::min);
        let rounding = 1e2 * f64::EPSILON;
        assert!(apart(&features.to_levelled(smooth.levelling()), &levelled) < rounding / least);
        assert!(apart(&kernels.to_levelled(smooth.levelling()), &levelled) < rounding / (least * least));
        assert!(apart(&levelled.to_kernels(), &kernels) < rounding / least);
        assert!(apart(&features.to_kernels(), &kernels) < rounding / least);
        // Features of a smaller γ than the atoms' kernels have digits for are no two times the same; of a larger one they are.
        let wider = smooth.dictionary.with_leverage_ridge(1e-6).unwrap();
        let map = || Whitening::new(&smooth.kernel, &wider, None).unwrap();
        let direct = smooth.summed(NystromSums::whitened(map(), 1));
        for sums in [&features, &levelled] {
            let found = sums.to_features_of(map()).unwrap();
            assert!(apart(&found, &direct) < 1e-9, "{}", apart(&found, &direct));
            let cross = |sums: &NystromSums| Mat::from_fn(ATOMS, 1, |i, _| sums.cross[i]);
            assert!((cross(&found) - cross(&direct)).norm_max() < 1e-7 * cross(&direct).norm_max());
        }
        // What sums of kernels lose, and levelled ones do not.
        let lost = apart(&kernels.to_features_of(map()).unwrap(), &direct);
        let kept = apart(&levelled.to_features_of(map()).unwrap(), &direct);
        assert!(lost > 100.0 * kept, "{lost} {kept}");
        assert!(
            levelled.to_features_of(map()).unwrap().inherited_floor
                < 1e-3 * kernels.to_features_of(map()).unwrap().inherited_floor
        );
    }

    #[test]
    fn solutions_and_ridges_do_not_depend_on_the_basis() {
        let smooth = Smooth::new();
        let dictionary = smooth.dictionary.with_leverage_ridge(1e-9).unwrap();
        let (features, levelled) = (smooth.features(), smooth.levelled());
        let features = features.to_features_of(Whitening::new(&smooth.kernel, &dictionary, None).unwrap()).unwrap();
        let options = SolverOptions { ridge: Ridge::Fixed(1e-3), intercept: true };
        let [a, b] = [&features, &levelled].map(|sums| sums.solve(&smooth.kernel, &dictionary, &options).unwrap());
        assert!((a.residuals[0] / b.residuals[0] - 1.0).abs() < 1e-6);
        assert!((a.captured - b.captured).abs() < 1e-9);
        let path = |sums: &NystromSums| {
            let choice = sums.ridge_path(&smooth.kernel, &dictionary, true).unwrap().choose().unwrap();
            (choice.ridge, choice.scores[0])
        };
        let (of_features, of_levelled) = (path(&features), path(&levelled));
        assert!((of_features.0 / of_levelled.0 - 1.0).abs() < 1e-3, "{of_features:?} {of_levelled:?}");
        assert!((of_features.1 / of_levelled.1 - 1.0).abs() < 1e-6, "{of_features:?} {of_levelled:?}");
    }

    #[test]
    fn a_ridge_too_small_for_kernels_keeps_them_levelled_and_predicts_the_same() {
        let smooth = Smooth::new();
        predicts_the_same_levelled(&smooth, Loss::Squared);
        // Rows that are passed over are never levelled.
        let codes = Mat::from_fn(ROWS, 1, |i, _| if smooth.targets[(i, 0)] > 1.0 { 1.0 } else { -1.0 });
        predicts_the_same_levelled(&Smooth { targets: codes, ..smooth }, Loss::SquaredHinge);
    }

    fn predicts_the_same_levelled(smooth: &Smooth, loss: Loss) {
        let start = |dictionary: &Dictionary| {
            let learner = RecursiveRidge::new(smooth.kernel, dictionary.clone(), 1, 1e-3, true).unwrap();
            let mut learner = learner.with_loss(loss);
            let mut found = Innovations::default();
            let targets = smooth.targets.as_ref().subrows(0, 600);
            learner.advance(smooth.rows().slice(0, 600), targets, None, &mut found).unwrap();
            learner
        };
        let mut levelled = start(&smooth.dictionary);
        levelled.choose(Ridge::Fixed(1e-3)).unwrap();
        assert!(levelled.sums().levelling.is_some() && !levelled.sums().is_whitened());
        // Features of the γ that it chose.
        let mut features = start(levelled.dictionary());
        let end = |learner: &mut RecursiveRidge| {
            let mut found = Innovations::default();
            let targets = smooth.targets.as_ref().subrows(600, 600);
            learner.advance(smooth.rows().slice(600, ROWS), targets, None, &mut found).unwrap();
            found
        };
        // Saved and loaded, it goes on to the same bits; single rows say the same as blocks.
        let mut file = Container::new("test", serde_json::Value::Null);
        levelled.put(&mut file, "it").unwrap();
        let mut again = RecursiveRidge::take(&mut file, "it", smooth.kernel, COLS, 1, false).unwrap().with_loss(loss);
        let mut rowwise = levelled.rowwise();
        let (mut singly, mut one) = (Vec::new(), [0.0]);
        for i in 600..ROWS {
            let row: Row = smooth.rows().row(i);
            rowwise.learn(row, &[smooth.targets[(i, 0)]], 1.0, &mut one);
            singly.push(one[0]);
        }
        let (a, b) = (end(&mut features), end(&mut levelled));
        let bits = |found: Innovations| -> Vec<u64> {
            found.predictions.iter().chain(&found.variance_factors).map(|v| v.to_bits()).collect()
        };
        assert_eq!(bits(b.clone()), bits(end(&mut again)));
        assert_eq!(levelled.sums().passed > 100.0, loss == Loss::SquaredHinge);
        let far = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(far(&a.predictions, &b.predictions) < 1e-6, "{}", far(&a.predictions, &b.predictions));
        assert!(far(&singly, &b.predictions) < 1e-7, "{}", far(&singly, &b.predictions));
        // A ridge far below the floor of levelled kernels too is for features.
        levelled.choose(Ridge::Fixed(1e-13)).unwrap();
        assert!(levelled.sums().is_whitened());
    }

    #[test]
    fn features_with_errors_of_kernels_are_levelled_at_the_gamma_that_these_ask_for() {
        let smooth = Smooth::new();
        let mut learner = RecursiveRidge::new(smooth.kernel, smooth.dictionary.clone(), 1, 1.0, false).unwrap();
        let advance = |learner: &mut RecursiveRidge, from: usize| {
            let (mut found, targets) = (Innovations::default(), smooth.targets.as_ref().subrows(from, 600));
            learner.advance(smooth.rows().slice(from, from + 600), targets, None, &mut found).unwrap();
            found.predictions
        };
        advance(&mut learner, 0);
        learner.choose(Ridge::Fixed(1e-13)).unwrap();
        let (inherited, gamma) = (learner.sums().inherited_floor, learner.dictionary().leverage_ridge());
        assert!(learner.sums().is_whitened() && inherited > 0.0);
        let copy = |sums: &NystromSums| {
            RecursiveRidge::from_sums(smooth.kernel, learner.dictionary().clone(), sums.clone(), 2.0 * inherited)
                .unwrap()
        };
        let [mut features, mut levelled] = [copy(learner.sums()), copy(learner.sums())];
        levelled.choose(Ridge::Fixed(2.0 * inherited)).unwrap();
        assert!(levelled.sums().levelling.is_some());
        assert_eq!((levelled.sums().inherited_floor, levelled.dictionary().leverage_ridge()), (inherited, gamma));
        let (a, b) = (advance(&mut features, 600), advance(&mut levelled, 600));
        let apart = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(apart < 1e-5, "{apart}");
        // And again when the ridge is chosen anew.
        levelled.choose(Ridge::Fixed(2.0 * inherited)).unwrap();
        assert!(levelled.sums().levelling.is_some() && levelled.dictionary().leverage_ridge() == gamma);
    }
}
