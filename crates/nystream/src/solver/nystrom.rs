//! Regularised Nyström ridge regression from sums over the rows.
//!
//! D. Calandriello, A. Lazaric, M. Valko: "Analysis of Nyström Method with Sequential Ridge Leverage
//! Score Sampling", UAI 2016, Eq. 5 and 6. With k = S k_Z(x), B = S K_ZZ S + γI = LLᵀ and features
//! φ(x) = L⁻¹k, the solution of Eq. 6 is f(x) = φ(x)ᵀθ with (Σφφᵀ + μI)θ = Σφy. Both sums follow from
//! Σkkᵀ and Σky, which one pass over the data gives in O(m²) memory; they add up over partitions.
//! The pass costs m² multiply-adds and m kernel evaluations a row.
//!
//! Departures from the paper:
//! - An unpenalised intercept is fitted (centred features and targets); switched off, it is Eq. 6.
//! - A dictionary without a leverage ridge (γ = 0) gets a nugget in its place, because Σkkᵀ carries
//!   rounding errors E that whitening divides by γ, while γ itself perturbs the problem like a
//!   change of γn/m in μ. The nugget makes the two equal: γ = √(‖E‖m/n), ‖E‖ ≈ 2ε‖Σkkᵀ‖_F/√m, and
//!   the ridge is kept ten times above their common size. Nugget and jitter are reported.
//! - Where a smaller ridge is wanted (nearly noiseless targets), [`NystromSums::whitened`] sums φφᵀ
//!   itself. Its rounding errors are not divided by γ, so the nugget can be as small as the accuracy
//!   of the kernels; a row then costs 2m² multiply-adds.

use std::sync::Arc;

use faer::{Mat, MatMut, MatRef};

use super::gcv::{GcvChoice, RidgePath};
use super::keeping::Rounding;
use super::levelling::Levelling;
use super::settings::{Ridge, SolverOptions};
use super::summed::SummedGram;
use super::whitening::{Whitening, scale_both_sides};
use crate::error::{Error, Result};
use crate::kernel::{Centres, Kernel};
use crate::linalg::{Cholesky, GramSum, PackedRows, add_column_products, lower_norm};
use crate::model::{KernelModel, NystromPosterior, Uncertainty};
use crate::sketch::Dictionary;

/// Sums over rows of the kernels with m atoms: all that Nyström ridge regression needs of the data.
#[derive(Debug, Clone)]
pub struct NystromSums {
    /// What turns kernels into the features that are summed; none if the kernels themselves are.
    pub(super) whitening: Option<Arc<Whitening>>,
    /// What turns kernels into the levelled kernels that are summed, where neither they nor features are.
    pub(super) levelling: Option<Arc<Levelling>>,
    pub(super) gram: SummedGram,
    pub(super) feature_sum: Vec<f64>,
    /// Σφy, all targets of a feature together.
    pub(super) cross: Vec<f64>,
    pub(super) target_sum: Vec<f64>,
    pub(super) target_squares: Vec<f64>,
    pub(super) energy: f64,
    /// Σw: the number of rows, if none has a weight of its own and none is forgotten.
    pub(super) weight: f64,
    pub(super) rows: u64,
    /// Σw of rows that were seen and not summed: they cost nothing (see [`Loss`](super::Loss)).
    pub(super) passed: f64,
    /// Of features that were made from sums of kernels: the smallest ridge above the rounding errors that came with them.
    pub(super) inherited_floor: f64,
}

/// A solved problem.
#[derive(Debug, Clone)]
pub struct NystromFit {
    /// The model.
    pub model: KernelModel,
    /// Ridge, degrees of freedom and generalised cross-validation scores.
    pub choice: GcvChoice,
    /// γ in force: the dictionary's own, or the nugget in its place.
    pub leverage_ridge: f64,
    /// Added to the diagonal of S K_ZZ S + γI and of Σφφᵀ + μI by their factorisations.
    pub jitter: f64,
    /// Share of the kernel energy Σk(x,x) that the atoms span.
    pub captured: f64,
    /// Residual sum of squares of each target.
    pub residuals: Vec<f64>,
    /// The smallest ridge that rounding errors in these sums allow.
    pub ridge_floor: f64,
}

/// The lower triangle of Σφφᵀ, and what goes with it.
pub(super) struct InFeatures {
    pub(super) gram: Mat<f64>,
    pub(super) beside: Beside,
}

/// What goes with sums as features of a dictionary; without means if there is an intercept.
pub(super) struct Beside {
    pub(super) mean: Mat<f64>,
    pub(super) cross: Mat<f64>,
    pub(super) squares: Vec<f64>,
    pub(super) whitening: Arc<Whitening>,
    pub(super) floor: f64,
    pub(super) captured: f64,
}

/// Σφφᵀ + μI, factored.
pub(super) struct Factored {
    pub(super) beside: Beside,
    pub(super) posterior: Cholesky,
    pub(super) ridge: f64,
    /// How the ridge was chosen, if it was.
    pub(super) choice: Option<GcvChoice>,
    /// The trace of the inverse, if it was not.
    pub(super) trace: f64,
}

impl NystromSums {
    /// No rows yet, for this many atoms and targets.
    pub fn new(atoms: usize, targets: usize) -> Self {
        Self::with(None, atoms, targets)
    }

    /// No rows yet; features are summed instead of kernels, for ridges that need the digits.
    pub fn whitened(whitening: Whitening, targets: usize) -> Self {
        let atoms = whitening.dim();
        Self::with(Some(whitening), atoms, targets)
    }

    fn with(whitening: Option<Whitening>, atoms: usize, targets: usize) -> Self {
        Self {
            whitening: whitening.map(Arc::new),
            levelling: None,
            gram: GramSum::new(atoms).into(),
            feature_sum: vec![0.0; atoms],
            cross: vec![0.0; atoms * targets],
            target_sum: vec![0.0; targets],
            target_squares: vec![0.0; targets],
            energy: 0.0,
            weight: 0.0,
            rows: 0,
            passed: 0.0,
            inherited_floor: 0.0,
        }
    }

    /// Adds a block: its kernels with the atoms (rows × m), its targets (rows × targets), and its Σk(x,x).
    ///
    /// Targets far from zero should be shifted by about their mean, to keep their digits. The block is left in an
    /// unspecified state.
    pub fn add(&mut self, mut block: MatMut<'_, f64>, targets: MatRef<'_, f64>, energy: f64) {
        self.to_features(block.as_mut());
        self.add_features(block.as_ref(), targets, energy);
    }

    /// [`add`](Self::add) of rows of what is summed: kernels with the atoms, unless features are.
    pub fn add_features(&mut self, block: MatRef<'_, f64>, targets: MatRef<'_, f64>, energy: f64) {
        self.gram.add(block);
        add_column_products(block, targets, &mut self.feature_sum, &mut self.cross);
        self.add_targets(targets, energy);
    }

    /// [`add_features`](Self::add_features) of packed rows.
    pub fn add_packed(&mut self, rows: &PackedRows, targets: MatRef<'_, f64>, energy: f64) {
        self.gram.add_packed(rows);
        rows.add_column_products(targets, &mut self.feature_sum, &mut self.cross);
        self.add_targets(targets, energy);
    }

    fn add_targets(&mut self, targets: MatRef<'_, f64>, energy: f64) {
        for (t, column) in targets.col_iter().enumerate() {
            self.target_sum[t] += column.iter().sum::<f64>();
            self.target_squares[t] += column.iter().map(|v| v * v).sum::<f64>();
        }
        self.energy += energy;
        self.weight += targets.nrows() as f64;
        self.rows += targets.nrows() as u64;
    }

    /// Turns a block of kernels into what is summed, in place.
    pub(super) fn to_features(&self, block: MatMut<'_, f64>) {
        if let Some(whitening) = &self.whitening {
            whitening.apply(block);
        }
    }

    /// [`add`](Self::add) of rows with weights, all above 0; `energy` is Σw k(x,x).
    pub fn add_rows(&mut self, mut block: MatMut<'_, f64>, targets: MatRef<'_, f64>, weights: &[f64], energy: f64) {
        self.to_features(block.as_mut());
        let (height, atoms) = (block.nrows(), block.ncols());
        let roots: Vec<f64> = weights.iter().map(|w| w.sqrt()).collect();
        let scaled =
            Mat::from_fn(height, atoms + 1, |i, j| if j < atoms { roots[i] * block[(i, j)] } else { roots[i] });
        let targets = Mat::from_fn(height, targets.ncols(), |i, t| roots[i] * targets[(i, t)]);
        self.add_weighted(scaled.as_ref(), targets.as_ref(), energy);
    }

    /// Adds rows of features, each with its targets times the root of its weight; the last column of `block` holds the
    /// roots themselves. `energy` is Σw k(x,x).
    pub fn add_weighted(&mut self, block: MatRef<'_, f64>, targets: MatRef<'_, f64>, energy: f64) {
        let atoms = self.gram.dim();
        self.gram.add(block.subcols(0, atoms));
        self.add_beside(block, targets, energy);
    }

    /// Gives back the memory that rows were packed in.
    pub fn forget_rows(&mut self) {
        self.gram.forget_rows();
    }

    /// [`add_weighted`](Self::add_weighted) of rows that went to a factor instead of Σφφᵀ.
    pub(super) fn add_beside(&mut self, block: MatRef<'_, f64>, targets: MatRef<'_, f64>, energy: f64) {
        let (atoms, outputs) = (self.feature_sum.len(), targets.ncols());
        let (features, roots) = (block.subcols(0, atoms), block.col(atoms));
        // One reading of the block for Σφy and Σφ: the roots stand beside the targets.
        let beside =
            Mat::from_fn(block.nrows(), outputs + 1, |i, t| if t < outputs { targets[(i, t)] } else { roots[i] });
        let (mut unused, mut products) = (vec![0.0; atoms], vec![0.0; atoms * (outputs + 1)]);
        add_column_products(features, beside.as_ref(), &mut unused, &mut products);
        for (j, sums) in products.chunks_exact(outputs + 1).enumerate() {
            (0..outputs).for_each(|t| self.cross[j * outputs + t] += sums[t]);
            self.feature_sum[j] += sums[outputs];
        }
        for (t, column) in targets.col_iter().enumerate() {
            self.target_sum[t] += column.iter().zip(roots.iter()).map(|(v, root)| v * root).sum::<f64>();
            self.target_squares[t] += column.iter().map(|v| v * v).sum::<f64>();
        }
        self.energy += energy;
        self.weight += roots.iter().map(|root| root * root).sum::<f64>();
        self.rows += block.nrows() as u64;
    }

    /// Σw k(x,x) of the rows summed.
    pub fn energy(&self) -> f64 {
        self.energy
    }

    /// Share of the targets' variance that residual sums of squares are; of several targets the mean.
    pub fn unexplained(&self, residuals: &[f64]) -> f64 {
        let share = |(t, residual): (usize, &f64)| {
            let total = self.target_squares[t] - self.target_sum[t] * self.target_sum[t] / self.weight;
            if total > 0.0 { (residual / total).clamp(0.0, 1.0) } else { 0.0 }
        };
        residuals.iter().enumerate().map(share).sum::<f64>() / residuals.len().max(1) as f64
    }

    /// Multiplies every sum: rows so far count for less.
    pub fn fade(&mut self, factor: f64) {
        self.gram.scale(factor);
        let sums = [&mut self.feature_sum, &mut self.cross, &mut self.target_sum, &mut self.target_squares];
        sums.into_iter().flatten().for_each(|v| *v *= factor);
        self.energy *= factor;
        self.weight *= factor;
        self.passed *= factor;
        self.inherited_floor *= factor;
    }

    /// Adds the sums of other rows with the same atoms (and, if features are summed, the same map to them).
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if self.whitening.is_some() != other.whitening.is_some() || self.levelling != other.levelling {
            let name = |sums: &Self| match (&sums.whitening, &sums.levelling) {
                (Some(_), _) => "features".to_owned(),
                (None, Some(levelling)) => format!("kernels levelled in {} directions", levelling.factors().len()),
                (None, None) => "kernels".to_owned(),
            };
            let field = "what was summed".to_owned();
            return Err(Error::Incompatible { field, found: name(other), expected: name(self) });
        }
        if self.target_sum.len() != other.target_sum.len() {
            let (found, expected) = (other.target_sum.len(), self.target_sum.len());
            return Err(Error::Shape { what: "targets", found, expected });
        }
        self.gram.merge(&other.gram)?;
        let add = |mine: &mut Vec<f64>, theirs: &[f64]| mine.iter_mut().zip(theirs).for_each(|(a, b)| *a += b);
        add(&mut self.cross, &other.cross);
        add(&mut self.feature_sum, &other.feature_sum);
        add(&mut self.target_sum, &other.target_sum);
        add(&mut self.target_squares, &other.target_squares);
        self.energy += other.energy;
        self.weight += other.weight;
        self.rows += other.rows;
        self.passed += other.passed;
        self.inherited_floor += other.inherited_floor;
        Ok(())
    }

    /// Adds numbers to all targets so far, one each.
    pub fn shift_targets(&mut self, by: &[f64]) {
        for (t, &shift) in by.iter().enumerate() {
            for (feature, sum) in self.cross.iter_mut().skip(t).step_by(by.len()).zip(&self.feature_sum) {
                *feature += shift * sum;
            }
            self.target_squares[t] += shift * (2.0 * self.target_sum[t] + shift * self.weight);
            self.target_sum[t] += shift * self.weight;
        }
    }

    /// Number of rows summed.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// What turns kernels into the features that are summed; none if the kernels themselves are.
    pub fn whitening(&self) -> Option<&Whitening> {
        self.whitening.as_deref()
    }

    /// Whether features are summed, not kernels.
    pub fn is_whitened(&self) -> bool {
        self.whitening.is_some()
    }

    /// Whether small ridges mean something: features are summed, or levelled kernels.
    pub fn is_precise(&self) -> bool {
        self.whitening.is_some() || self.levelling.is_some()
    }

    /// Σw of the rows summed.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// Σw of all rows, those that were passed over too.
    pub fn seen(&self) -> f64 {
        self.weight + self.passed
    }

    /// Share of [`seen`](Self::seen) that was passed over.
    pub fn passed_share(&self) -> f64 {
        if self.passed > 0.0 { self.passed / self.seen() } else { 0.0 }
    }

    /// Counts rows that cost nothing: they are not summed.
    pub fn pass_over(&mut self, weight: f64, rows: u64) {
        self.passed += weight;
        self.rows += rows;
    }

    /// Number of atoms.
    pub fn atoms(&self) -> usize {
        self.gram.dim()
    }

    /// Number of targets.
    pub fn targets(&self) -> usize {
        self.target_sum.len()
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        let whitening = self.whitening.as_ref().map_or(0, |map| map.size_bytes());
        let levelling = self.levelling.as_ref().map_or(0, |levelling| levelling.size_bytes());
        whitening + levelling + self.gram.size_bytes() + 8 * (self.feature_sum.len() + self.cross.len())
    }

    /// Ridges and how they score, from the sums as features of the dictionary.
    pub fn ridge_path(&self, kernel: &Kernel, dictionary: &Dictionary, intercept: bool) -> Result<RidgePath> {
        let features = self.in_features(kernel, dictionary, intercept)?;
        Ok(self.path(&features.gram, &features.beside, intercept))
    }

    pub(super) fn path(&self, gram: &Mat<f64>, beside: &Beside, intercept: bool) -> RidgePath {
        let (cross, squares) = (beside.cross.clone(), beside.squares.clone());
        RidgePath::from_sums(gram, cross, squares, self.seen(), intercept, beside.floor.max(self.inherited_floor))
    }

    pub(super) fn check_solvable(&self, dictionary: &Dictionary) -> Result<()> {
        if dictionary.len() != self.gram.dim() {
            let (found, expected) = (dictionary.len(), self.gram.dim());
            return Err(Error::Shape { what: "dictionary atoms", found, expected });
        }
        if self.rows == 0 {
            return Err(Error::InvalidParam { name: "rows", found: "0".to_owned(), expected: "at least one row" });
        }
        Ok(())
    }

    /// Σφφᵀ, Σφ, Σφy: as summed, or from the sums of kernels, S Σkkᵀ S → L⁻¹ (…) L⁻ᵀ; without means if there is an intercept.
    /// Of levelled kernels they are features of another basis, in which all ridges are the same.
    pub(super) fn in_features(&self, kernel: &Kernel, dictionary: &Dictionary, intercept: bool) -> Result<InFeatures> {
        self.check_solvable(dictionary)?;
        let atoms = dictionary.len();
        let mut gram = self.gram.to_lower();
        let (whitening, floor) = match &self.whitening {
            Some(whitening) => (Arc::clone(whitening), feature_floor(&gram)),
            None if self.levelling.is_some() => {
                let own = Some(dictionary.leverage_ridge());
                let rounding = Rounding::new(lower_norm(gram.as_ref()), atoms, self.weight, 1.0, own);
                let whitening = self.levelled_whitening(kernel, dictionary)?;
                whitening.factor.both_sides_in_place(gram.as_mut());
                (Arc::new(whitening), rounding.ridge_floor)
            }
            None => {
                let rounding = self.scaled(&mut gram, dictionary);
                let whitening = Whitening::new(kernel, dictionary, Some(rounding.nugget))?;
                whitening.factor.both_sides_in_place(gram.as_mut());
                (Arc::new(whitening), rounding.ridge_floor)
            }
        };
        let captured = (0..atoms).map(|i| gram[(i, i)]).sum::<f64>() / self.energy;
        let beside = self.beside_in_features(whitening, floor, captured, intercept);
        if intercept {
            subtract_means(&mut gram, &beside.mean, self.weight);
        }
        Ok(InFeatures { gram, beside })
    }

    /// Σkkᵀ → S Σkkᵀ S, and what its rounding errors ask for.
    pub(super) fn scaled(&self, gram: &mut Mat<f64>, dictionary: &Dictionary) -> Rounding {
        scale_both_sides(gram, dictionary.weights());
        let own = Some(dictionary.leverage_ridge()).filter(|&own| own > 0.0);
        Rounding::new(lower_norm(gram.as_ref()), dictionary.len(), self.weight, 1.0, own)
    }

    pub(super) fn beside_in_features(
        &self,
        whitening: Arc<Whitening>,
        floor: f64,
        captured: f64,
        intercept: bool,
    ) -> Beside {
        let (atoms, targets) = (self.gram.dim(), self.target_sum.len());
        let mut mean = Mat::from_fn(atoms, 1, |i, _| self.feature_sum[i] / self.weight);
        let mut cross = Mat::from_fn(atoms, targets, |i, t| self.cross[i * targets + t]);
        if self.whitening.is_none() {
            for column in mean.as_mut().col_iter_mut().chain(cross.as_mut().col_iter_mut()) {
                let column = column.as_mat_mut();
                whitening.apply(column.transpose_mut());
            }
        }
        let mut squares = self.target_squares.clone();
        if intercept {
            for t in 0..targets {
                let sum = self.target_sum[t];
                (0..atoms).for_each(|i| cross[(i, t)] -= mean[(i, 0)] * sum);
                squares[t] = (squares[t] - sum * sum / self.weight).max(0.0);
            }
        }
        Beside { mean, cross, squares, whitening, floor, captured }
    }

    /// Σφφᵀ + μI with the ridge asked for or chosen.
    fn factored(&self, kernel: &Kernel, dictionary: &Dictionary, options: &SolverOptions) -> Result<Factored> {
        let ridge = options.ridge.validated()?;
        if let Ridge::Fixed(ridge) = ridge
            && let Some(factored) = self.factored_at(ridge, kernel, dictionary, options.intercept)?
        {
            return Ok(factored);
        }
        let InFeatures { mut gram, beside } = self.in_features(kernel, dictionary, options.intercept)?;
        let (ridge, choice) = match ridge {
            Ridge::Auto => {
                let choice = self.path(&gram, &beside, options.intercept).choose()?;
                (choice.ridge, Some(choice))
            }
            Ridge::Fixed(value) => (value, None),
        };
        for i in 0..gram.nrows() {
            gram[(i, i)] += ridge;
        }
        let posterior = Cholesky::new(gram.as_ref(), "regularised feature sums")?;
        let trace = if choice.is_some() { f64::NAN } else { posterior.inverse_diagonal().iter().sum() };
        Ok(Factored { beside, posterior, ridge, choice, trace })
    }

    /// Solves for every target.
    pub fn solve(&self, kernel: &Kernel, dictionary: &Dictionary, options: &SolverOptions) -> Result<NystromFit> {
        if self.levelling.is_some() {
            let features = self.to_features_of(Whitening::new(kernel, dictionary, None)?)?;
            return features.solve(kernel, dictionary, options);
        }
        let (atoms, targets, n) = (dictionary.len(), self.target_sum.len(), self.weight);
        let Factored { beside, posterior, ridge, choice, trace } = self.factored(kernel, dictionary, options)?;
        let Beside { mean, cross, squares, whitening, floor, captured } = beside;
        let centres = Centres::new(dictionary.atoms().rows());
        let weights = dictionary.weights();
        let leverage_ridge = whitening.leverage_ridge;

        // (Σφφᵀ + μI) θ = Σφy.
        let mut theta = cross.clone();
        for t in 0..targets {
            posterior.solve_in_place(theta.as_mut().subcols_mut(t, 1));
        }
        let slope_freedom = match &choice {
            Some(choice) => choice.degrees_of_freedom,
            None => atoms as f64 - ridge * trace + f64::from(u8::from(options.intercept)),
        };
        let free = (self.seen() - slope_freedom).max(1.0);
        let residuals: Vec<f64> = (0..targets)
            .map(|t| {
                // Σφφᵀθ = Σφy − μθ, so RSS = Σy² − θᵀΣφy − μ‖θ‖².
                let (column, right) = (theta.col(t), cross.col(t));
                let fitted: f64 = column.iter().zip(right.iter()).map(|(a, b)| a * b).sum();
                let rss = squares[t] - fitted - ridge * column.squared_norm_l2();
                rss.max(squares[t] * f64::EPSILON)
            })
            .collect();
        let choice = choice.unwrap_or_else(|| GcvChoice {
            ridge,
            degrees_of_freedom: slope_freedom,
            scores: residuals.iter().map(|rss| self.seen() * rss / (free * free)).collect(),
        });

        let mut intercepts = vec![0.0; targets];
        if options.intercept {
            for t in 0..targets {
                let shift: f64 = mean.col(0).iter().zip(theta.col(t).iter()).map(|(a, b)| a * b).sum();
                intercepts[t] = self.target_sum[t] / n - shift;
            }
        }
        // β = S L⁻ᵀ θ.
        let mut coefficients = theta;
        for t in 0..targets {
            whitening.factor.backward_in_place(coefficients.as_mut().subcols_mut(t, 1));
            (0..atoms).for_each(|i| coefficients[(i, t)] *= weights[i]);
        }
        let jitter = whitening.factor.jitter().max(posterior.jitter());
        let whitening = Arc::unwrap_or_clone(whitening);
        let uncertainty = Uncertainty::Nystrom(NystromPosterior {
            weights: whitening.weights,
            whitening: whitening.factor,
            posterior,
            constant: options.intercept.then(|| (mean.col(0).iter().copied().collect(), n)),
            ridge,
            unspanned_shares: vec![1.0; targets],
            noise_variances: residuals.iter().map(|rss| rss / free).collect(),
        });
        let model = KernelModel::new(*kernel, centres, coefficients, intercepts, Some(uncertainty))?;
        Ok(NystromFit {
            model,
            choice,
            leverage_ridge,
            jitter,
            captured: captured.clamp(0.0, 1.0),
            residuals,
            ridge_floor: floor,
        })
    }
}

/// The smallest ridge that rounding errors of sums of features allow, from the lower triangle of Σφφᵀ.
pub(super) fn feature_floor(gram: &Mat<f64>) -> f64 {
    1e3 * f64::EPSILON * lower_norm(gram.as_ref()) / (gram.nrows() as f64).sqrt()
}

/// ΣXXᵀ − n x̄x̄ᵀ, the lower triangle of it.
pub(super) fn subtract_means(gram: &mut Mat<f64>, mean: &Mat<f64>, n: f64) {
    let means: Vec<f64> = mean.col(0).iter().copied().collect();
    for (j, column) in gram.as_mut().col_iter_mut().enumerate() {
        let step = n * means[j];
        let below = column.subrows_mut(j, means.len() - j);
        below.iter_mut().zip(&means[j..]).for_each(|(value, mean)| *value -= step * mean);
    }
}
