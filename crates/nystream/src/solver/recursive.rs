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
//! other half, the sums and the next factor, so that two threads share the work without waiting for each other ([`line`]).
//! With many atoms rows go to the factor itself ([`turns`]), and the sums are what it implies; not if rows have weights, for those
//! of a stream that fades change the sums after every block.

mod line;
mod loading;
mod passing;
mod predicting;
mod turns;

use std::sync::Arc;

use faer::{ColRef, Mat, MatMut, MatRef};

pub use self::line::Block;
use self::line::{Line, Outcome, Works};
use self::loading::Features;
use self::predicting::Predicting;
use self::turns::{Worker, take_up};
use super::loss::Loss;
use super::nystrom::NystromSums;
use super::rowwise::RowwiseRidge;
use super::summed::Implied;
use super::whitening::Whitening;
use crate::error::{Error, Result};
use crate::kernel::{Centres, Kernel};
use crate::linalg::{GramSum, PackedFactoring, Patch, Patches, PlusIdentity, ReflectedFactor};
use crate::rows::Rows;
use crate::sketch::Dictionary;

/// Precision of the intercept before any row, in rows: it is not penalised, but must have a value. Far smaller, and the
/// first block would lose digits to it.
const INTERCEPT_PRIOR: f64 = 1e-4;

/// Features from which on rows go to the factor itself.
const REFLECTED_WIDTH: usize = 500;

/// Sums over a stream, and the solution from them that the next block starts with.
#[derive(Debug)]
pub struct RecursiveRidge {
    kernel: Kernel,
    dictionary: Dictionary,
    centres: Centres,
    /// R where kernels are summed, levelled or not; none where features are, and it is the identity.
    regulariser: Option<Arc<GramSum>>,
    sums: NystromSums,
    ridge: f64,
    loss: Loss,
    start: Start,
    predicting: Predicting,
    works: Works,
    workers: Vec<Worker>,
}

/// L and θ at the start of a block. L is not, where rows went to another factor: that of the sums.
#[derive(Debug)]
struct Start {
    factor: PackedFactoring,
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
    /// Of numbers that are column-major: rows, features and targets.
    fn of(features: &'a [f64], targets: &'a [f64], (height, width, outputs): (usize, usize, usize)) -> Self {
        let features = MatRef::from_column_major_slice(&features[..height * width], height, width);
        Self { features, targets: MatRef::from_column_major_slice(&targets[..height * outputs], height, outputs) }
    }

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
        let regulariser = match sums.gram.implied() {
            Some(implied) => implied.regulariser.clone(),
            None => in_tiles(&sums, &kernel, &dictionary),
        };
        let (start, predicting, works, workers) = Default::default();
        let mut learner = Self {
            kernel,
            dictionary,
            centres,
            regulariser,
            sums,
            ridge,
            loss: Loss::Squared,
            start,
            predicting,
            works,
            workers,
        };
        match learner.sums.gram.implied() {
            Some(_) => learner.solve_implied(),
            None => learner.restart_or_rescue()?,
        }
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
        self.regulariser = in_tiles(&sums, &self.kernel, &dictionary);
        (self.dictionary, self.sums, self.ridge) = (dictionary, sums, ridge);
        self.works.forget_ahead();
        self.restart()
    }

    /// Lets all rows so far count for less by a factor.
    pub fn fade(&mut self, factor: f64) -> Result<()> {
        self.sums.fade(factor);
        self.restart_or_rescue()
    }

    /// Factors the sums and solves anew; from features, if sums of kernels are lost in rounding errors.
    fn restart_or_rescue(&mut self) -> Result<()> {
        match self.restart() {
            Err(Error::NotPositiveDefinite { .. }) if !self.sums.is_whitened() => {
                self.rescue(&self.dictionary.clone(), self.ridge)
            }
            done => done,
        }
    }

    /// Factors the sums and solves anew.
    fn restart(&mut self) -> Result<()> {
        // Sums that a factor implied are sums from here on.
        let _: &mut GramSum = &mut self.sums.gram;
        let regulariser = Regulariser { ridge: self.ridge, matrix: self.regulariser.as_deref() };
        self.start.make(&self.sums, regulariser)
    }

    /// θ from the factor that rows went to.
    fn solve_implied(&mut self) {
        let Some(Implied { factor, .. }) = self.sums.gram.implied() else { return };
        self.start.theta = factor.values();
        for column in self.start.theta.col_iter_mut() {
            if let Some(column) = column.try_as_col_major_mut() {
                factor.backward_in_place(column.as_slice_mut());
            }
        }
    }

    /// Predictions of rows from all rows so far, row-major.
    pub fn predict(&mut self, rows: Rows, out: &mut Vec<f64>) {
        let (height, width) = (rows.len(), self.width());
        let features = Features::of(&self.kernel, &self.centres, &self.sums);
        let loaded = &mut self.works.job().loaded;
        loaded.load(&features, rows, None);
        let features = MatRef::from_column_major_slice(&loaded.features[..height * width], height, width);
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
        self.advance_all(&[Block { rows, targets, weights }], &[], out)
    }

    /// [`advance`](Self::advance) for one block after the other: what was predicted of them all is in `out`. If the rows
    /// of blocks after them are known, and have no weights, threads that would wait make their features. If others come
    /// after all, nothing is lost but the time.
    pub fn advance_all(&mut self, blocks: &[Block], upcoming: &[Rows], out: &mut Innovations) -> Result<()> {
        out.predictions.clear();
        out.variance_factors.clear();
        let plain = blocks.iter().all(|block| block.weights.is_none());
        if plain && self.loss == Loss::Squared && self.width() >= REFLECTED_WIDTH {
            return self.take_up(blocks, out);
        }
        if self.sums.gram.implied().is_some() {
            self.restart_or_rescue()?;
        }
        let mut rest = blocks;
        while !rest.is_empty() {
            let line = Line {
                make: Features::of(&self.kernel, &self.centres, &self.sums),
                regulariser: Regulariser { ridge: self.ridge, matrix: self.regulariser.as_deref() },
                loss: self.loss,
                sums: &mut self.sums,
                predicting: &mut self.predicting,
                works: &mut self.works,
            };
            let Outcome { done, stopped } = line.run(&mut self.start, rest, upcoming, out)?;
            rest = &rest[done..];
            match stopped {
                None => {}
                // Rounding errors of sums of kernels have outgrown the ridge before it was chosen anew.
                Some(_) if !self.sums.is_whitened() => self.rescue(&self.dictionary.clone(), self.ridge)?,
                Some(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// [`advance_all`](Self::advance_all) of rows that go to the factor itself.
    fn take_up(&mut self, blocks: &[Block], out: &mut Innovations) -> Result<()> {
        self.works.forget_ahead();
        let implied = self.sums.gram.take().unwrap_or_else(|| {
            let mut values = Mat::zeros(self.width(), self.sums.targets());
            self.start.values(&self.sums, values.as_mut());
            let factor = Arc::new(ReflectedFactor::new(self.lower().as_ref(), values.as_ref()));
            let (ridge, jitter) = (self.ridge, self.start.factor.jitter());
            Implied { factor, ridge, regulariser: self.regulariser.clone(), jitter }
        });
        let Implied { mut factor, ridge, regulariser, jitter } = implied;
        let make = Features::of(&self.kernel, &self.centres, &self.sums);
        take_up(make, Arc::make_mut(&mut factor), &mut self.sums, &mut self.workers, blocks, out)?;
        self.sums.gram.imply(Implied { factor, ridge, regulariser, jitter });
        self.solve_implied();
        Ok(())
    }

    /// L.
    fn lower(&self) -> Mat<f64> {
        let mut lower = Mat::zeros(self.width(), self.width());
        match self.sums.gram.implied() {
            Some(implied) => implied.factor.write_lower(lower.as_mut()),
            None => self.start.factor.write_lower(lower.as_mut()),
        }
        lower
    }

    /// The same learner, a row at a time from here on.
    pub fn rowwise(&self) -> RowwiseRidge {
        let whitening = self.sums.whitening();
        let mut coefficients = self.start.theta.clone();
        if let Some(whitening) = whitening {
            whitening.transposed_in_place(coefficients.as_mut().subrows_mut(0, self.dictionary.len()));
        }
        let levelling = self.sums.levelling.as_deref();
        if let Some(levelling) = levelling {
            levelling.level(coefficients.as_mut().subrows_mut(0, self.dictionary.len()));
        }
        let lower = self.lower();
        RowwiseRidge::new(self.kernel, self.centres.clone(), (whitening, levelling), lower.as_ref(), &coefficients)
            .with_loss(self.loss)
    }

    /// Makes sparse atoms wider: rows have come with columns that no atom has.
    pub fn widen(&mut self, width: usize) {
        self.dictionary.widen(width);
        // The packing depends on the width, and must not depend on when the learner was saved.
        self.centres = Centres::new(self.dictionary.atoms().rows());
        self.works.forget_ahead();
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
            + self.regulariser.as_ref().map_or(0, |regulariser| regulariser.size_bytes())
            + self.sums.size_bytes()
            + start(&self.start)
            + self.predicting.size_bytes()
            + self.works.size_bytes(self.width(), self.sums.targets(), self.loss)
            + self.workers.iter().map(Worker::size_bytes).sum::<usize>()
    }

    fn width(&self) -> usize {
        self.dictionary.len() + 1
    }
}

fn resize(buffer: &mut Vec<f64>, len: usize) {
    buffer.resize(len, 0.0);
}

/// R where kernels are summed; none where features are.
pub(super) fn in_tiles(sums: &NystromSums, kernel: &Kernel, dictionary: &Dictionary) -> Option<Arc<GramSum>> {
    (!sums.is_whitened()).then(|| Arc::new(GramSum::from_matrix(sums.regulariser(kernel, dictionary).as_ref())))
}

/// μR: R is the identity where features are summed, else K_ZZ + γS⁻², levelled where kernels are.
#[derive(Clone, Copy)]
struct Regulariser<'a> {
    ridge: f64,
    /// R; none: the identity.
    matrix: Option<&'a GramSum>,
}

/// A = Σφφᵀ + μR with the constant as the last feature.
struct Regularised<'a> {
    gram: &'a GramSum,
    sums: &'a NystromSums,
    regulariser: Regulariser<'a>,
}

impl Patches for Regularised<'_> {
    fn dim(&self) -> usize {
        self.gram.dim() + 1
    }

    fn diagonal(&self, i: usize) -> f64 {
        let Regulariser { ridge, matrix } = self.regulariser;
        match i < self.gram.dim() {
            true => self.gram.diagonal(i) + ridge * matrix.map_or(1.0, |matrix| matrix.diagonal(i)),
            false => self.sums.weight() + INTERCEPT_PRIOR,
        }
    }

    #[inline(always)]
    fn read(&self, row: usize, col: usize, out: &mut Patch) {
        let (atoms, Regulariser { ridge, matrix }) = (self.gram.dim(), self.regulariser);
        let sum = self.gram;
        match matrix {
            Some(matrix) => {
                let (sum, more) = (sum.patch(row, col), matrix.patch(row, col));
                let (held, past) = out.split_at_mut(sum.len());
                // One loop: nested ones, of eight numbers a column, were made to gather a number from each of eight columns.
                let (sum, more) = (sum.as_flattened(), more.as_flattened());
                for ((out, sum), more) in held.as_flattened_mut().iter_mut().zip(sum).zip(more) {
                    *out = sum + ridge * more;
                }
                past.fill([0.0; _]);
            }
            None => PlusIdentity { matrix: sum, factor: ridge }.read(row, col, out),
        }
        if (row..row + out[0].len()).contains(&atoms) {
            for (out, k) in out.iter_mut().zip(col..=atoms) {
                out[atoms - row] = self.sums.feature_sum.get(k).copied().unwrap_or_else(|| self.diagonal(atoms));
            }
        }
    }
}

impl Default for Start {
    fn default() -> Self {
        Self { factor: PackedFactoring::default(), theta: Mat::new() }
    }
}

impl Start {
    /// Solves anew, in the same memory.
    fn make(&mut self, sums: &NystromSums, regulariser: Regulariser) -> Result<()> {
        let (atoms, outputs) = (sums.gram.dim(), sums.target_sum.len());
        const WHAT: &str = "regularised sums";
        self.factor.factor(&Regularised { gram: &sums.gram, sums, regulariser }, WHAT)?;
        // Jitter goes by the mean of the diagonal. The constant is part of it, and beside it levelled kernels are as nothing: they
        // would be drowned, and the mean alone predict (seen on california with 400 atoms, in two orders of fifty).
        let jitter = self.factor.jitter();
        if regulariser.matrix.is_some() && jitter > 0.0 && sums.rows() > 0 {
            return Err(Error::NotPositiveDefinite { what: WHAT, pivot: atoms, jitter });
        }
        if self.theta.nrows() != atoms + 1 || self.theta.ncols() != outputs {
            self.theta = Mat::zeros(atoms + 1, outputs);
        }
        let Self { factor, theta } = self;
        write_targets(sums, theta.as_mut(), |column| factor.solve_in_place(column));
        Ok(())
    }

    /// z = L⁻¹r.
    fn values(&self, sums: &NystromSums, out: MatMut<'_, f64>) {
        write_targets(sums, out, |column| self.factor.forward_in_place(column));
    }
}

/// r = Σφy, with the constant as the last feature, a target a column, and what is to be done to each.
fn write_targets(sums: &NystromSums, out: MatMut<'_, f64>, then: impl Fn(&mut [f64])) {
    let (atoms, outputs) = (sums.feature_sum.len(), sums.target_sum.len());
    for (t, column) in out.col_iter_mut().enumerate() {
        let Some(column) = column.try_as_col_major_mut() else { continue };
        let column = column.as_slice_mut();
        (0..atoms).for_each(|i| column[i] = sums.cross[i * outputs + t]);
        column[atoms] = sums.target_sum[t];
        then(column);
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_line;
#[cfg(test)]
mod tests_passing;
#[cfg(test)]
mod tests_turns;
