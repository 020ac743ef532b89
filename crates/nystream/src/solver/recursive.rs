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

mod passing;
mod predicting;

use std::sync::Arc;

use faer::{ColRef, Mat, MatMut, MatRef};
use rayon::prelude::*;

use self::passing::Passing;
use self::predicting::Predicting;
use super::levelling::Levelling;
use super::loss::Loss;
use super::nystrom::NystromSums;
use super::rowwise::RowwiseRidge;
use super::whitening::Whitening;
use crate::error::Result;
use crate::kernel::{Centres, Kernel, KernelWorkspace};
use crate::linalg::{Factoring, PackedRows, side_by_side};
use crate::rows::{RowBlock, Rows};
use crate::sketch::Dictionary;

/// Precision of the intercept before any row, in rows: it is not penalised, but must have a value. Far smaller, and the
/// first block would lose digits to it.
const INTERCEPT_PRIOR: f64 = 1e-4;

/// Rows whose features are made together, by one thread.
const STRIP: usize = 48;

/// Sums over a stream, and the solution from them that the next block starts with.
#[derive(Debug)]
pub struct RecursiveRidge {
    kernel: Kernel,
    dictionary: Dictionary,
    centres: Centres,
    /// R where kernels are summed, levelled or not; none where features are, and it is the identity.
    regulariser: Option<Mat<f64>>,
    sums: NystromSums,
    ridge: f64,
    loss: Loss,
    start: Start,
    /// Where the next block's start is made while this block is predicted.
    next: Start,
    loaded: Loaded,
    /// The block after this one, if it was known while this one was learnt.
    ahead: Loaded,
    predicting: Predicting,
    passing: Passing,
    /// √w y of a block.
    targets: Vec<f64>,
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
    workspaces: Vec<StripWorkspace>,
}

/// Memory for a strip of rows.
#[derive(Debug, Default)]
struct StripWorkspace {
    kernels: KernelWorkspace,
    features: PackedRows,
    /// What levelled kernels are made with.
    along: Vec<f64>,
}

/// What makes features of rows.
#[derive(Clone)]
struct Features<'a> {
    kernel: &'a Kernel,
    centres: &'a Centres,
    whitening: Option<Arc<Whitening>>,
    levelling: Option<Arc<Levelling>>,
}

impl<'a> Features<'a> {
    fn of(kernel: &'a Kernel, centres: &'a Centres, sums: &NystromSums) -> Self {
        Self { kernel, centres, whitening: sums.whitening.clone(), levelling: sums.levelling.clone() }
    }
}

/// L and θ at the start of a block.
#[derive(Debug)]
struct Start {
    factor: Factoring,
    theta: Mat<f64>,
}

/// Rows as they are learnt.
#[derive(Clone, Copy)]
struct Learnt<'a> {
    /// √w (φ, 1).
    features: MatRef<'a, f64>,
    /// √w y.
    targets: MatRef<'a, f64>,
}

impl<'a> Learnt<'a> {
    /// √w.
    fn roots(&self) -> ColRef<'a, f64> {
        self.features.col(self.features.ncols() - 1)
    }
}

/// What was predicted of a block before it was learnt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Innovations {
    /// Row-major, rows × targets: predictions, each from the rows before it.
    pub predictions: Vec<f64>,
    /// D of each row: the variance of its prediction error, noise included, over σ². What the atoms leave out is not in it.
    /// Not a number for rows that cost nothing and were not learnt.
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
        let regulariser = (!sums.is_whitened()).then(|| sums.regulariser(&kernel, &dictionary));
        let (start, next) = (Start::empty(), Start::empty());
        let (loaded, ahead, predicting, passing) = Default::default();
        let mut learner = Self {
            kernel,
            dictionary,
            centres,
            regulariser,
            sums,
            ridge,
            loss: Loss::Squared,
            start,
            next,
            loaded,
            ahead,
            predicting,
            passing,
            targets: Vec::new(),
        };
        learner.restart()?;
        Ok(learner)
    }

    /// With this loss from here on.
    pub fn with_loss(self, loss: Loss) -> Self {
        Self { loss, ..self }
    }

    /// What errors cost.
    pub fn loss(&self) -> Loss {
        self.loss
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

    /// Begins again from other sums of the same kind.
    pub fn restart_from(&mut self, sums: NystromSums) -> Result<()> {
        debug_assert_eq!(self.sums.is_whitened(), sums.is_whitened());
        self.sums = sums;
        self.restart()
    }

    /// θ: of what is summed, features or kernels, levelled or not, and of the constant.
    pub fn coefficients(&self) -> MatRef<'_, f64> {
        self.start.theta.as_ref()
    }

    /// Changes how the sums are kept: the same rows and atoms, in kernels or in features.
    pub(super) fn replace_sums(&mut self, dictionary: Dictionary, sums: NystromSums, ridge: f64) -> Result<()> {
        self.regulariser = (!sums.is_whitened()).then(|| sums.regulariser(&self.kernel, &dictionary));
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
        let regulariser = Regulariser { ridge: self.ridge, matrix: self.regulariser.as_ref() };
        self.start.make(&self.sums, regulariser)
    }

    /// Predictions of rows from all rows so far, row-major.
    pub fn predict(&mut self, rows: Rows, out: &mut Vec<f64>) {
        let (height, width) = (rows.len(), self.width());
        let features = Features::of(&self.kernel, &self.centres, &self.sums);
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
        let make = Features::of(&self.kernel, &self.centres, &self.sums);
        std::mem::swap(&mut self.loaded, &mut self.ahead);
        let known = self.loaded.rows.take().is_some_and(|known| known.rows() == rows);
        if !known || weights.is_some() {
            self.loaded.load(&make, rows, weights);
        }
        let Loaded { features, diagonals, .. } = &self.loaded;
        let features = MatRef::from_column_major_slice(&features[..height * width], height, width);
        let roots = features.col(width - 1);
        // √w y.
        resize(&mut self.targets, height * outputs);
        let mut scaled = MatMut::from_column_major_slice_mut(&mut self.targets, height, outputs);
        for t in 0..outputs {
            (0..height).for_each(|i| scaled[(i, t)] = roots[i] * targets[(i, t)]);
        }
        let all = Learnt { features, targets: scaled.as_ref() };
        let (start, predicting, passing) = (&self.start, &mut self.predicting, &mut self.passing);
        let (passing, energy) = match self.loss {
            Loss::Squared => (None, (0..height).map(|i| roots[i] * roots[i] * diagonals[i]).sum()),
            loss => {
                let energy = passing.split(loss, all, start.theta.as_ref(), diagonals);
                self.sums.pass_over(passing.passed, passing.rows_passed(height));
                (Some(&*passing), energy)
            }
        };

        // Neither needs what the other finds: the predictions of this block, and the start of the next.
        let (sums, next) = (&mut self.sums, &mut self.next);
        let regulariser = Regulariser { ridge: self.ridge, matrix: self.regulariser.as_ref() };
        let learnt = passing.map_or(all, Passing::learnt);
        let learn = || {
            sums.add_weighted(learnt.features, learnt.targets, energy);
            next.make(sums, regulariser)
        };
        let predict = || predicting.predict(start, all, passing, out);
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
        let levelling = self.sums.levelling.clone();
        if let Some(levelling) = &levelling {
            levelling.level(coefficients.as_mut().subrows_mut(0, self.dictionary.len()));
        }
        let factor = self.start.factor.lower();
        RowwiseRidge::new(self.kernel, self.centres.clone(), (whitening, levelling), factor, &coefficients)
            .with_loss(self.loss)
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
        atoms
            + self.regulariser.as_ref().map_or(0, square)
            + self.sums.size_bytes()
            + start(&self.start)
            + start(&self.next)
            + self.predicting.size_bytes()
            + self.passing.size_bytes()
            + self.loaded.size_bytes()
            + self.ahead.size_bytes()
            + 8 * self.targets.capacity()
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
        self.workspaces.resize_with(height.div_ceil(STRIP), StripWorkspace::default);
        let strip = |((s, mut out), workspace): ((usize, MatMut<'_, f64>), &mut StripWorkspace)| {
            let from = s * STRIP;
            let (mut features, constant) = out.as_mut().split_at_col_mut(atoms);
            let part = rows.slice(from, from + features.nrows());
            make.kernel.block(part, make.centres, &mut workspace.kernels, features.as_mut());
            if let Some(levelling) = &make.levelling {
                levelling.apply(features.as_mut(), &mut workspace.along);
            }
            if let Some(whitening) = &make.whitening {
                whitening.apply_packed(features.as_mut(), &mut workspace.features);
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
            + self
                .workspaces
                .iter()
                .map(|strip| strip.kernels.size_bytes() + strip.features.size_bytes() + 8 * strip.along.capacity())
                .sum::<usize>()
            + self.rows.as_ref().map_or(0, RowBlock::size_bytes)
    }
}

fn resize(buffer: &mut Vec<f64>, len: usize) {
    buffer.resize(len, 0.0);
}

/// μR: R is the identity where features are summed, else K_ZZ + γS⁻², levelled where kernels are.
#[derive(Clone, Copy)]
struct Regulariser<'a> {
    ridge: f64,
    /// R; none: the identity.
    matrix: Option<&'a Mat<f64>>,
}

impl Regulariser<'_> {
    /// Adds the entries (j, j), (j + 1, j), … of column j.
    fn add(&self, j: usize, out: &mut [f64]) {
        match self.matrix {
            Some(matrix) => {
                let column = matrix.col(j).subrows(j, out.len()).iter();
                out.iter_mut().zip(column).for_each(|(out, value)| *out += self.ridge * value);
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
mod tests;
#[cfg(test)]
mod tests_passing;
