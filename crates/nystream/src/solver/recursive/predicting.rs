//! Predictions of a block's rows, each from the rows before it: the formulas of the [module](super).

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut};

use super::passing::{Passing, Reaching};
use super::{Innovations, Learnt, Start, resize};
use crate::error::Result;
use crate::linalg::{GramSum, PackedFactoring, PackedRows, PlusIdentity, parallelism};
use crate::solver::levelling::Levelling;

/// Memory for it.
#[derive(Debug, Default)]
pub(super) struct Predicting {
    /// V.
    solved: PackedRows,
    /// VᵀV.
    products: GramSum,
    residuals: Vec<f64>,
    /// C.
    innovations: PackedFactoring,
    reaching: Reaching,
}

impl Predicting {
    /// Predicts all rows; `passing` says which of them are learnt, if not all are, and what the others lack to be features.
    pub fn predict(
        &mut self,
        start: &Start,
        all: Learnt,
        passing: Option<(&Passing, Option<&Levelling>)>,
        out: &mut Innovations,
    ) -> Result<()> {
        let Self { solved, products, residuals, innovations, reaching } = self;
        let taught = passing.map(|(passing, _)| passing.learnt());
        let Learnt { features, targets } = taught.unwrap_or(all);
        let roots = features.col(features.ncols() - 1);
        let (height, width, outputs) = (features.nrows(), features.ncols(), targets.ncols());
        // √w (y − Φθ).
        resize(residuals, height * outputs);
        let mut residuals = MatMut::from_column_major_slice_mut(residuals, height, outputs);
        residuals.copy_from(targets);
        let par = parallelism(height * width * outputs);
        matmul(residuals.as_mut(), Accum::Add, features, start.theta.as_ref(), -1.0, par);
        // V, then I + VᵀV = CCᵀ.
        start.factor.triangle().solve(features, solved);
        products.reset(height);
        products.add_packed(solved);
        innovations.factor(&PlusIdentity { matrix: &*products, factor: 1.0 }, "innovations")?;
        for column in residuals.as_mut().col_iter_mut() {
            if let Some(column) = column.try_as_col_major_mut() {
                innovations.forward_in_place(column.as_slice_mut());
            }
        }
        out.variance_factors.clear();
        out.predictions.clear();
        for i in 0..height {
            let pivot = innovations.diagonal(i);
            out.variance_factors.push(pivot * pivot);
            let prediction = |t: usize| (targets[(i, t)] - pivot * residuals[(i, t)]) / roots[i];
            out.predictions.extend((0..outputs).map(prediction));
        }
        if let Some((passing, levelling)) = passing {
            let found = (&*solved, &*innovations, residuals.as_ref());
            passing.spread(reaching, start, (all, levelling), found, out);
        }
        Ok(())
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        let Self { solved, products, residuals, innovations, reaching } = self;
        let packed = solved.size_bytes() + products.size_bytes();
        packed + 8 * residuals.capacity() + innovations.size_bytes() + reaching.size_bytes()
    }
}
