//! Ridge regression that predicts every row before learning it, a block of rows at a time.
//!
//! Recursive least squares does this row by row and is bound by memory. The same numbers follow from matrix products
//! over a block: let A = Σφφᵀ + μR before the block (R the regulariser, the intercept a feature that is always 1), A = LLᵀ,
//! θ = A⁻¹Σφy, and Φ the rows of the block. With V = L⁻¹Φᵀ and I + VᵀV = CCᵀ, the errors of all rows, each predicted
//! from the rows before it, are e = diag(C) C⁻¹ (y − Φθ): C with its columns divided by their diagonal is the unit
//! triangle U of I + VᵀV = UDUᵀ, and e = U⁻¹(y − Φθ). Row i's predictive variance is σ²D_ii, D_ii = C_ii². (These are the
//! innovations of a Kalman filter; T. Kailath, "An innovations approach to least-squares estimation", IEEE TAC 13, 1968.)
//!
//! A row of weight w counts as √w φ and √w y, and its error comes out times √w. A block of b rows costs b m² + b² m/2 +
//! m³/6 multiply-adds beside its kernels: least a row at b = m/√3. Half of it, the predictions, needs nothing of the
//! other half, the sums and the next factor, so that two threads share a block without waiting for each other.

use std::sync::Arc;

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::{Accum, Mat, MatMut, MatRef};
use rayon::prelude::*;

use super::nystrom::NystromSums;
use super::rowwise::RowwiseRidge;
use super::whitening::Whitening;
use crate::error::Result;
use crate::kernel::{Centres, Kernel, KernelWorkspace};
use crate::linalg::{Factoring, on_a_share, parallelism, side_by_side};
use crate::rows::{RowBlock, Rows};
use crate::sketch::Dictionary;

/// Precision of the intercept before any row, in rows: it is not penalised, but must have a value. Far smaller, and the
/// first block would lose digits to it.
const INTERCEPT_PRIOR: f64 = 1e-4;

/// Rows whose features are made together, by one thread.
const STRIP: usize = 64;

/// Sums over a stream, and the solution from them that the next block starts with.
#[derive(Debug)]
pub struct RecursiveRidge {
    kernel: Kernel,
    dictionary: Dictionary,
    centres: Centres,
    /// K_ZZ where kernels are summed; none where features are.
    overlap: Option<Mat<f64>>,
    sums: NystromSums,
    ridge: f64,
    start: Start,
    /// Where the next block's start is made while this block is predicted.
    next: Start,
    loaded: Loaded,
    /// The block after this one, if it was known while this one was learnt.
    ahead: Loaded,
    scratch: Scratch,
}

/// Features of a block of rows.
#[derive(Debug, Default)]
struct Loaded {
    /// The rows themselves, if these features are for later.
    rows: Option<RowBlock>,
    /// √w (φ, 1), column-major.
    features: Vec<f64>,
    /// k(x,x).
    diagonals: Vec<f64>,
    /// One a strip of rows.
    workspaces: Vec<KernelWorkspace>,
}

/// What makes features of rows.
#[derive(Clone)]
struct Features<'a> {
    kernel: &'a Kernel,
    centres: &'a Centres,
    whitening: Option<Arc<Whitening>>,
}

/// L and θ at the start of a block.
#[derive(Debug)]
struct Start {
    factor: Factoring,
    theta: Mat<f64>,
}

#[derive(Debug, Default)]
struct Scratch {
    solved: Vec<f64>,
    products: Vec<f64>,
    targets: Vec<f64>,
    residuals: Vec<f64>,
    innovations: Factoring,
}

/// What was predicted of a block before it was learnt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Innovations {
    /// Row-major, rows × targets: predictions, each from the rows before it.
    pub predictions: Vec<f64>,
    /// D of each row: the variance of its prediction error, noise included, over σ². What the atoms leave out is not in it.
    pub variance_factors: Vec<f64>,
}

impl RecursiveRidge {
    /// No rows yet. With `precise`, features are summed instead of kernels (see [`NystromSums::whitened`]). The
    /// dictionary's γ must be above 0.
    pub fn new(kernel: Kernel, dictionary: Dictionary, targets: usize, ridge: f64, precise: bool) -> Result<Self> {
        let sums = if precise {
            NystromSums::whitened(Whitening::new(&kernel, &dictionary, None)?, targets)
        } else {
            NystromSums::new(dictionary.len(), targets)
        };
        Self::from_sums(kernel, dictionary, sums, ridge)
    }

    /// Goes on from sums over the same atoms.
    pub fn from_sums(kernel: Kernel, dictionary: Dictionary, sums: NystromSums, ridge: f64) -> Result<Self> {
        let centres = Centres::new(dictionary.atoms().rows());
        let overlap = (!sums.is_whitened()).then(|| kernel.matrix(dictionary.atoms().rows()));
        let (start, next) = (Start::empty(), Start::empty());
        let (loaded, ahead, scratch) = Default::default();
        let mut learner =
            Self { kernel, dictionary, centres, overlap, sums, ridge, start, next, loaded, ahead, scratch };
        learner.restart()?;
        Ok(learner)
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The atoms.
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// The sums so far.
    pub fn sums(&self) -> &NystromSums {
        &self.sums
    }

    /// μ.
    pub fn ridge(&self) -> f64 {
        self.ridge
    }

    /// Changes μ.
    pub fn set_ridge(&mut self, ridge: f64) -> Result<()> {
        self.ridge = ridge;
        self.restart()
    }

    /// Changes how the sums are kept: the same rows and atoms, in kernels or in features.
    pub(super) fn replace_sums(&mut self, dictionary: Dictionary, sums: NystromSums, ridge: f64) -> Result<()> {
        let kernels = !sums.is_whitened();
        if kernels && self.overlap.is_none() {
            self.overlap = Some(self.kernel.matrix(dictionary.atoms().rows()));
        } else if !kernels {
            self.overlap = None;
        }
        (self.dictionary, self.sums, self.ridge) = (dictionary, sums, ridge);
        self.ahead.rows = None;
        self.restart()
    }

    /// Lets all rows so far count for less by a factor.
    pub fn fade(&mut self, factor: f64) -> Result<()> {
        self.sums.fade(factor);
        self.restart()
    }

    fn restart(&mut self) -> Result<()> {
        let regulariser =
            Regulariser { ridge: self.ridge, dictionary: &self.dictionary, overlap: self.overlap.as_ref() };
        self.start.make(&self.sums, regulariser)
    }

    /// Predictions of rows from all rows so far, row-major.
    pub fn predict(&mut self, rows: Rows, out: &mut Vec<f64>) {
        let (height, width) = (rows.len(), self.width());
        let features =
            Features { kernel: &self.kernel, centres: &self.centres, whitening: self.sums.whitening.clone() };
        self.loaded.load(&features, rows, None);
        let features = MatRef::from_column_major_slice(&self.loaded.features[..height * width], height, width);
        let values = features * &self.start.theta;
        out.clear();
        out.extend((0..height).flat_map(|i| (0..values.ncols()).map(move |t| (i, t))).map(|(i, t)| values[(i, t)]));
    }

    /// Predicts every row from those before it, then learns the block. `weights` are one a row, all above 0; none: all 1.
    pub fn advance(
        &mut self,
        rows: Rows,
        targets: MatRef<'_, f64>,
        weights: Option<&[f64]>,
        out: &mut Innovations,
    ) -> Result<()> {
        self.advance_towards(None, rows, targets, weights, out)
    }

    /// [`advance`](Self::advance) where the rows of the next block are known, and have no weights: threads that wait for
    /// others make its features. If it is not the next after all, nothing is lost but the time.
    pub fn advance_towards(
        &mut self,
        upcoming: Option<Rows>,
        rows: Rows,
        targets: MatRef<'_, f64>,
        weights: Option<&[f64]>,
        out: &mut Innovations,
    ) -> Result<()> {
        let (height, width, outputs) = (rows.len(), self.width(), targets.ncols());
        let make = Features { kernel: &self.kernel, centres: &self.centres, whitening: self.sums.whitening.clone() };
        std::mem::swap(&mut self.loaded, &mut self.ahead);
        let known = self.loaded.rows.take().is_some_and(|known| known.rows() == rows);
        if !known || weights.is_some() {
            self.loaded.load(&make, rows, weights);
        }
        let Scratch { solved, products, targets: scaled, residuals, innovations } = &mut self.scratch;
        let Loaded { features, diagonals, .. } = &self.loaded;
        let features = MatRef::from_column_major_slice(&features[..height * width], height, width);
        let roots = features.col(width - 1);
        // √w y.
        resize(scaled, height * outputs);
        let mut scaled = MatMut::from_column_major_slice_mut(scaled, height, outputs);
        for t in 0..outputs {
            (0..height).for_each(|i| scaled[(i, t)] = roots[i] * targets[(i, t)]);
        }
        let scaled = scaled.as_ref();
        let energy = (0..height).map(|i| roots[i] * roots[i] * diagonals[i]).sum();

        // Neither needs what the other finds: the predictions of this block, and the start of the next.
        let start = &self.start;
        let predict = || -> Result<()> {
            // √w (y − Φθ).
            resize(residuals, height * outputs);
            let mut residuals = MatMut::from_column_major_slice_mut(residuals, height, outputs);
            residuals.copy_from(scaled);
            let par = parallelism(height * width * outputs);
            matmul(residuals.as_mut(), Accum::Add, features, start.theta.as_ref(), -1.0, par);
            // Vᵀ, then I + VᵀV = CCᵀ.
            resize(solved, height * width);
            let mut solved = MatMut::from_column_major_slice_mut(solved, height, width);
            solved.copy_from(features);
            start.factor.forward_in_place(solved.as_mut().transpose_mut());
            resize(products, height * height);
            let mut products = MatMut::from_column_major_slice_mut(products, height, height);
            let (whole, lower) = (BlockStructure::Rectangular, BlockStructure::TriangularLower);
            let (solved, right) = (solved.as_ref(), solved.as_ref().transpose());
            let par = parallelism(height * height * width / 2);
            triangular::matmul(products.as_mut(), lower, Accum::Replace, solved, whole, right, whole, 1.0, par);
            let products = products.as_ref();
            let fill = |j: usize, out: &mut [f64]| {
                out.iter_mut()
                    .zip(products.col(j).subrows(j, height - j).iter())
                    .for_each(|(out, value)| *out = *value);
                out[0] += 1.0;
            };
            innovations.factor(height, fill, "innovations")?;
            innovations.forward_in_place(residuals.as_mut());
            out.variance_factors.clear();
            out.predictions.clear();
            for i in 0..height {
                let pivot = innovations.lower()[(i, i)];
                out.variance_factors.push(pivot * pivot);
                out.predictions.extend((0..outputs).map(|t| targets[(i, t)] - pivot * residuals[(i, t)] / roots[i]));
            }
            Ok(())
        };
        let (sums, next) = (&mut self.sums, &mut self.next);
        let regulariser =
            Regulariser { ridge: self.ridge, dictionary: &self.dictionary, overlap: self.overlap.as_ref() };
        let learn = || {
            sums.add_weighted(features, scaled, energy);
            next.make(sums, regulariser)
        };
        let ahead = &mut self.ahead;
        let (predicted, learnt) = match upcoming {
            Some(rows) => {
                let mut copy = RowBlock::like(rows);
                copy.extend(rows);
                ahead.rows = Some(copy);
                side_by_side(predict, || rayon::join(learn, || ahead.load(&make, rows, None)).0)
            }
            None => side_by_side(predict, learn),
        };
        predicted?;
        match learnt {
            Ok(()) => std::mem::swap(&mut self.start, &mut self.next),
            // Rounding errors of sums of kernels have outgrown the ridge before it was chosen anew.
            Err(_) if !self.sums.is_whitened() => self.rescue(&self.dictionary.clone(), self.ridge)?,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The same learner, a row at a time from here on.
    pub fn rowwise(&self) -> RowwiseRidge {
        let whitening = self.sums.whitening();
        let mut coefficients = self.start.theta.clone();
        if let Some(whitening) = whitening {
            whitening.transposed_in_place(coefficients.as_mut().subrows_mut(0, self.dictionary.len()));
        }
        let factor = self.start.factor.lower();
        RowwiseRidge::new(self.kernel, self.centres.clone(), whitening, factor, &coefficients)
    }

    /// Makes sparse atoms wider: rows have come with columns that no atom has.
    pub fn widen(&mut self, width: usize) {
        self.dictionary.widen(width);
        // The packing depends on the width, and must not depend on when the learner was saved.
        self.centres = Centres::new(self.dictionary.atoms().rows());
        self.ahead.rows = None;
    }

    /// Adds numbers to all targets so far, one each.
    pub fn shift_targets(&mut self, by: &[f64]) -> Result<()> {
        self.sums.shift_targets(by);
        self.restart()
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        let atoms = self.dictionary.atoms().size_bytes() + 16 * self.dictionary.len() + self.centres.size_bytes();
        let square = |matrix: &Mat<f64>| 8 * matrix.nrows() * matrix.ncols();
        let start = |start: &Start| start.factor.size_bytes() + square(&start.theta);
        let Scratch { solved, products, targets, residuals, innovations } = &self.scratch;
        let scratch = [solved, products, targets, residuals];
        let numbers: usize = scratch.into_iter().map(Vec::capacity).sum();
        atoms
            + self.overlap.as_ref().map_or(0, square)
            + self.sums.size_bytes()
            + start(&self.start)
            + start(&self.next)
            + innovations.size_bytes()
            + self.loaded.size_bytes()
            + self.ahead.size_bytes()
            + 8 * numbers
    }

    fn width(&self) -> usize {
        self.dictionary.len() + 1
    }
}

impl Loaded {
    /// √w (φ, 1) of the rows, and their k(x,x).
    fn load(&mut self, make: &Features, rows: Rows, weights: Option<&[f64]>) {
        let (height, atoms) = (rows.len(), make.centres.len());
        resize(&mut self.features, height * (atoms + 1));
        resize(&mut self.diagonals, height);
        self.workspaces.resize_with(height.div_ceil(STRIP), KernelWorkspace::default);
        let strip = |((s, mut out), workspace): ((usize, MatMut<'_, f64>), &mut KernelWorkspace)| {
            let from = s * STRIP;
            let (mut features, constant) = out.as_mut().split_at_col_mut(atoms);
            make.kernel.block(rows.slice(from, from + features.nrows()), make.centres, workspace, features.as_mut());
            if let Some(whitening) = &make.whitening {
                on_a_share(usize::MAX, || whitening.apply(features.as_mut()));
            }
            match weights {
                Some(weights) => {
                    let weights = &weights[from..];
                    for column in features.col_iter_mut() {
                        column.iter_mut().zip(weights).for_each(|(v, w)| *v *= w.sqrt());
                    }
                    constant.col_mut(0).iter_mut().zip(weights).for_each(|(v, w)| *v = w.sqrt());
                }
                None => constant.col_mut(0).iter_mut().for_each(|v| *v = 1.0),
            }
        };
        let all = MatMut::from_column_major_slice_mut(&mut self.features, height, atoms + 1);
        all.par_row_chunks_mut(STRIP).enumerate().zip(&mut self.workspaces).for_each(strip);
        make.kernel.diagonals(rows, &mut self.diagonals);
    }

    fn size_bytes(&self) -> usize {
        8 * (self.features.capacity() + self.diagonals.capacity())
            + self.workspaces.iter().map(KernelWorkspace::size_bytes).sum::<usize>()
            + self.rows.as_ref().map_or(0, RowBlock::size_bytes)
    }
}

fn resize(buffer: &mut Vec<f64>, len: usize) {
    buffer.resize(len, 0.0);
}

/// μR: R is the identity where features are summed, else K_ZZ + γS⁻².
#[derive(Clone, Copy)]
struct Regulariser<'a> {
    ridge: f64,
    dictionary: &'a Dictionary,
    overlap: Option<&'a Mat<f64>>,
}

impl Regulariser<'_> {
    /// Adds the entries (j, j), (j + 1, j), … of column j.
    fn add(&self, j: usize, out: &mut [f64]) {
        match self.overlap {
            Some(overlap) => {
                let column = overlap.col(j).subrows(j, out.len()).iter();
                out.iter_mut().zip(column).for_each(|(out, value)| *out += self.ridge * value);
                let weight = self.dictionary.weights()[j];
                out[0] += self.ridge * self.dictionary.leverage_ridge() / (weight * weight);
            }
            None => out[0] += self.ridge,
        }
    }
}

impl Start {
    fn empty() -> Self {
        Self { factor: Factoring::default(), theta: Mat::new() }
    }

    /// Solves anew, in the same memory.
    fn make(&mut self, sums: &NystromSums, regulariser: Regulariser) -> Result<()> {
        let (atoms, outputs) = (sums.gram.dim(), sums.target_sum.len());
        let fill = |j: usize, out: &mut [f64]| {
            if j == atoms {
                out[0] = sums.weight() + INTERCEPT_PRIOR;
                return;
            }
            let (column, last) = out.split_at_mut(atoms - j);
            sums.gram.write_column(j, column);
            regulariser.add(j, column);
            last[0] = sums.feature_sum[j];
        };
        self.factor.factor(atoms + 1, fill, "regularised sums")?;
        if self.theta.nrows() != atoms + 1 || self.theta.ncols() != outputs {
            self.theta = Mat::zeros(atoms + 1, outputs);
        }
        for t in 0..outputs {
            (0..atoms).for_each(|i| self.theta[(i, t)] = sums.cross[i * outputs + t]);
            self.theta[(atoms, t)] = sums.target_sum[t];
            self.factor.solve_in_place(self.theta.as_mut().subcols_mut(t, 1));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Cholesky;
    use crate::random::Generator;
    use crate::rows::RowBlock;

    struct Problem {
        data: Vec<f64>,
        targets: Mat<f64>,
        weights: Vec<f64>,
        kernel: Kernel,
        dictionary: Dictionary,
    }

    fn problem(rows: usize) -> Problem {
        let mut rng = Generator::new(8);
        let data: Vec<f64> = (0..rows * 3).map(|_| rng.normal()).collect();
        let targets = Mat::from_fn(rows, 2, |i, t| 5.0 + (data[3 * i + t] * 2.0).sin() + 0.1 * rng.normal());
        let weights = (0..rows).map(|_| 0.2 + 2.0 * rng.uniform()).collect();
        let all = Rows::dense(&data, rows, 3).unwrap();
        let chosen: Vec<usize> = (0..12).map(|i| i * rows / 12).collect();
        let indices = chosen.iter().map(|&i| i as u64).collect();
        let atom_weights = (0..12).map(|i| 0.5 + 0.1 * f64::from(i)).collect();
        let dictionary = Dictionary::new(RowBlock::gather(all, &chosen), atom_weights, indices, 0.05).unwrap();
        Problem { data, targets, weights, kernel: Kernel::gaussian(1.4).unwrap(), dictionary }
    }

    impl Problem {
        fn rows(&self) -> Rows<'_> {
            Rows::dense(&self.data, self.targets.nrows(), 3).unwrap()
        }

        /// Features (φ, 1) of every row, φ = L⁻¹ S k, naively.
        fn features(&self) -> Mat<f64> {
            let atoms = self.dictionary.atoms().rows();
            let s = self.dictionary.weights();
            let inner = Mat::from_fn(12, 12, |i, j| {
                let ridge = if i == j { self.dictionary.leverage_ridge() } else { 0.0 };
                s[i] * s[j] * self.kernel.pair(atoms.row(i), atoms.row(j)) + ridge
            });
            let factor = Cholesky::new(inner.as_ref(), "test").unwrap();
            let rows = self.rows();
            let mut kernels = Mat::from_fn(12, rows.len(), |j, i| s[j] * self.kernel.pair(rows.row(i), atoms.row(j)));
            factor.forward_in_place(kernels.as_mut());
            Mat::from_fn(rows.len(), 13, |i, j| if j < 12 { kernels[(j, i)] } else { 1.0 })
        }

        /// Each row predicted by a fit to the rows before it, from scratch; and its variance factor.
        fn expected(&self, ridge: f64, weighted: bool) -> (Mat<f64>, Vec<f64>) {
            let features = self.features();
            let n = features.nrows();
            let mut predictions = Mat::zeros(n, 2);
            let mut factors = Vec::new();
            for i in 0..n {
                let w = |r: usize| if weighted { self.weights[r] } else { 1.0 };
                let normal = Mat::from_fn(13, 13, |a, b| {
                    let prior = if a != b {
                        0.0
                    } else if a < 12 {
                        ridge
                    } else {
                        INTERCEPT_PRIOR
                    };
                    (0..i).map(|r| w(r) * features[(r, a)] * features[(r, b)]).sum::<f64>() + prior
                });
                let factor = Cholesky::new(normal.as_ref(), "test").unwrap();
                let mut own = Mat::from_fn(13, 1, |a, _| features[(i, a)]);
                factor.solve_in_place(own.as_mut());
                let spread: f64 = (0..13).map(|a| features[(i, a)] * own[(a, 0)]).sum();
                factors.push(1.0 + w(i) * spread);
                for t in 0..2 {
                    predictions[(i, t)] = (0..i)
                        .map(|r| {
                            let reach: f64 = (0..13).map(|a| features[(r, a)] * own[(a, 0)]).sum();
                            w(r) * reach * self.targets[(r, t)]
                        })
                        .sum();
                }
            }
            (predictions, factors)
        }
    }

    #[test]
    fn rows_known_ahead_change_nothing_even_if_others_come() {
        let problem = problem(90);
        for precise in [true, false] {
            let run = |upcoming: &dyn Fn(usize) -> Option<usize>| {
                let mut learner =
                    RecursiveRidge::new(problem.kernel, problem.dictionary.clone(), 2, 0.3, precise).unwrap();
                let mut all = Vec::new();
                for start in [0, 30, 60] {
                    let ahead = upcoming(start).map(|from| problem.rows().slice(from, from + 30));
                    let (rows, mut found) = (problem.rows().slice(start, start + 30), Innovations::default());
                    let targets = problem.targets.as_ref().subrows(start, 30);
                    learner.advance_towards(ahead, rows, targets, None, &mut found).unwrap();
                    all.extend(found.predictions);
                }
                all
            };
            let alone = run(&|_| None);
            assert_eq!(alone, run(&|start| (start < 60).then_some(start + 30)));
            assert_eq!(alone, run(&|_| Some(7)));
        }
    }

    #[test]
    fn blocks_give_the_numbers_of_the_row_by_row_recursion() {
        let problem = problem(90);
        for (precise, weighted) in [(true, false), (false, false), (true, true), (false, true)] {
            let (expected, factors) = problem.expected(0.3, weighted);
            for sizes in [vec![90], vec![1; 90], vec![7, 40, 1, 42]] {
                let mut learner =
                    RecursiveRidge::new(problem.kernel, problem.dictionary.clone(), 2, 0.3, precise).unwrap();
                let (mut start, mut found) = (0, Innovations::default());
                for size in sizes {
                    let weights = weighted.then(|| &problem.weights[start..start + size]);
                    let targets = problem.targets.as_ref().subrows(start, size);
                    learner.advance(problem.rows().slice(start, start + size), targets, weights, &mut found).unwrap();
                    for i in 0..size {
                        for t in 0..2 {
                            let (got, want) = (found.predictions[2 * i + t], expected[(start + i, t)]);
                            assert!((got - want).abs() < 1e-9, "row {}: {got} {want}", start + i);
                        }
                        // With nothing but the intercept's prior, the first factor is 1e4.
                        let ratio = found.variance_factors[i] / factors[start + i];
                        assert!((ratio - 1.0).abs() < 1e-8, "row {}: {ratio}", start + i);
                    }
                    start += size;
                }
            }
        }
    }

    #[test]
    fn single_rows_give_the_same_numbers() {
        let problem = problem(90);
        for (precise, weighted) in [(true, false), (false, true)] {
            let (expected, _) = problem.expected(0.3, weighted);
            let mut learner = RecursiveRidge::new(problem.kernel, problem.dictionary.clone(), 2, 0.3, precise).unwrap();
            let weights = weighted.then(|| &problem.weights[..40]);
            let targets = problem.targets.as_ref().subrows(0, 40);
            learner.advance(problem.rows().slice(0, 40), targets, weights, &mut Innovations::default()).unwrap();
            let mut rowwise = learner.rowwise();
            let mut predicted = [0.0; 2];
            for i in 40..90 {
                let codes = [problem.targets[(i, 0)], problem.targets[(i, 1)]];
                let weight = if weighted { problem.weights[i] } else { 1.0 };
                rowwise.learn(problem.rows().row(i), &codes, weight, &mut predicted);
                for t in 0..2 {
                    assert!((predicted[t] - expected[(i, t)]).abs() < 1e-9, "row {i}: {}", predicted[t]);
                }
            }
        }
    }

    #[test]
    fn threads_do_not_matter() {
        let problem = problem(700);
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let all: Vec<usize> = (0..600).collect();
                let atoms = RowBlock::gather(problem.rows(), &all);
                let indices = all.iter().map(|&i| i as u64).collect();
                let dictionary = Dictionary::new(atoms, vec![1.0; 600], indices, 0.1).unwrap();
                let mut learner = RecursiveRidge::new(problem.kernel, dictionary, 2, 0.3, false).unwrap();
                let mut found = Innovations::default();
                for start in [0, 350] {
                    let targets = problem.targets.as_ref().subrows(start, 350);
                    learner.advance(problem.rows().slice(start, start + 350), targets, None, &mut found).unwrap();
                }
                found
            })
        };
        assert_eq!(run(1), run(2));
        assert_eq!(run(1), run(3));
    }

    #[test]
    fn fading_equals_smaller_weights() {
        let problem = problem(60);
        let first = vec![0.25; 30];
        let mut faded = RecursiveRidge::new(problem.kernel, problem.dictionary.clone(), 2, 0.3, true).unwrap();
        let mut light = RecursiveRidge::new(problem.kernel, problem.dictionary.clone(), 2, 0.3, true).unwrap();
        let (mut a, mut b) = (Innovations::default(), Innovations::default());
        let part = |start| (problem.rows().slice(start, start + 30), problem.targets.as_ref().subrows(start, 30));
        faded.advance(part(0).0, part(0).1, None, &mut a).unwrap();
        faded.fade(0.25).unwrap();
        light.advance(part(0).0, part(0).1, Some(&first), &mut b).unwrap();
        faded.advance(part(30).0, part(30).1, None, &mut a).unwrap();
        light.advance(part(30).0, part(30).1, None, &mut b).unwrap();
        assert!(a.predictions.iter().zip(&b.predictions).all(|(a, b)| (a - b).abs() < 1e-9));
        assert!((faded.sums().weight() - 37.5).abs() < 1e-12);
    }
}
