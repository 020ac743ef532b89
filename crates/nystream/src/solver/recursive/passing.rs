//! Rows of a block that cost nothing: predicted as any other, not learnt.
//!
//! Which those are is said by the outputs at the start of the block ([`Loss`]), so that learning need not wait for
//! predictions. Let T be the rows that are learnt, V = L⁻¹Φ_Tᵀ, I + VᵀV = CCᵀ and z = C⁻¹(y − Φθ)_T. After the first k of
//! them a row x has the output φᵀθ + g₁z₁ + … + g_k z_k with g = C⁻¹Φ_T A⁻¹φ: the first k entries of g and of z do not
//! depend on later rows. So a row that is passed over costs a product with W = A⁻¹Φ_Tᵀ = L⁻ᵀV, and no solve with L. Nor need
//! its kernels be levelled, where those that are learnt are: θ and W are levelled in their place.

use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::{Accum, MatMut, MatRef, Par};

use super::{Innovations, Learnt, Start, resize};
use crate::linalg::{PackedFactoring, PackedRows, ReusedMatrix, parallelism};
use crate::solver::Loss;
use crate::solver::levelling::Levelling;

/// Which rows of a block are learnt.
#[derive(Debug, Default)]
pub(super) struct Passing {
    /// Places of the rows that are learnt.
    taught: Vec<usize>,
    /// Σw of the others.
    pub passed: f64,
    /// √w f of all rows at the start, row-major.
    outputs: Vec<f64>,
    /// What is learnt, column-major.
    features: Vec<f64>,
    targets: Vec<f64>,
    /// Their columns.
    shape: (usize, usize),
    /// What kernels are levelled with.
    along: Vec<f64>,
}

/// Memory for predicting the others.
#[derive(Debug, Default)]
pub(super) struct Reaching {
    /// L, then C.
    lower: ReusedMatrix,
    /// Wᵀ.
    towards: ReusedMatrix,
    /// g of every row, a column each.
    reach: ReusedMatrix,
    /// What W is levelled with.
    along: Vec<f64>,
}

impl Reaching {
    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.lower.size_bytes() + self.towards.size_bytes() + self.reach.size_bytes() + 8 * self.along.capacity()
    }
}

impl Passing {
    /// Tells rows of a block apart. Gives Σw k(x,x) of those that are learnt. If there is a levelling, it is still to be done.
    pub fn split(
        &mut self,
        loss: Loss,
        all: Learnt,
        start: &Start,
        diagonals: &[f64],
        levelling: Option<&Levelling>,
    ) -> f64 {
        let mut theta = start.theta.clone();
        let atoms = theta.nrows() - 1;
        if let Some(levelling) = levelling {
            levelling.level(theta.as_mut().subrows_mut(0, atoms));
        }
        let (height, outputs) = (all.features.nrows(), theta.ncols());
        resize(&mut self.outputs, height * outputs);
        let row_major = MatMut::from_row_major_slice_mut(&mut self.outputs, height, outputs);
        matmul(
            row_major,
            Accum::Replace,
            all.features,
            theta.as_ref(),
            1.0,
            parallelism(height * theta.nrows() * outputs),
        );
        let roots = all.roots();
        self.taught.clear();
        self.passed = 0.0;
        let mut energy = 0.0;
        for i in 0..height {
            let root = roots[i];
            let outputs = &self.outputs[i * outputs..(i + 1) * outputs];
            let passes = |(t, output): (usize, &f64)| loss.passes(all.targets[(i, t)] / root, output / root);
            if outputs.iter().enumerate().all(passes) {
                self.passed += root * root;
            } else {
                self.taught.push(i);
                energy += root * root * diagonals[i];
            }
        }
        self.shape = (all.features.ncols(), outputs);
        gather(all.features, &self.taught, &mut self.features);
        gather(all.targets, &self.taught, &mut self.targets);
        if let Some(levelling) = levelling
            && !self.taught.is_empty()
        {
            let kernels = &mut self.features[..self.taught.len() * atoms];
            levelling.apply(MatMut::from_column_major_slice_mut(kernels, self.taught.len(), atoms), &mut self.along);
        }
        energy
    }

    /// What is learnt.
    pub fn learnt(&self) -> Learnt<'_> {
        let (width, outputs) = self.shape;
        let matrix = |numbers, width| MatRef::from_column_major_slice(numbers, self.taught.len(), width);
        Learnt { features: matrix(&self.features, width), targets: matrix(&self.targets, outputs) }
    }

    /// Number of rows that are not.
    pub fn rows_passed(&self, height: usize) -> u64 {
        (height - self.taught.len()) as u64
    }

    /// Puts what was found of the rows learnt in their places, and predicts the others. `solved` is V, `innovations` C,
    /// and `errors` z. If there is a levelling, it has not been done to `all`.
    pub fn spread(
        &self,
        Reaching { lower, towards, reach, along }: &mut Reaching,
        start: &Start,
        (all, levelling): (Learnt, Option<&Levelling>),
        (solved, innovations, errors): (&PackedRows, &PackedFactoring, MatRef<'_, f64>),
        out: &mut Innovations,
    ) {
        let (height, width, outputs) = (all.features.nrows(), all.features.ncols(), all.targets.ncols());
        let (learnt, roots) = (self.taught.len(), all.roots());
        if learnt == height {
            return;
        }
        reach.reshape(learnt, height);
        if learnt > 0 {
            towards.reshape(learnt, width);
            solved.write_transposed(towards.as_mut());
            lower.reshape(width, width);
            start.factor.write_lower(lower.as_mut());
            // A single column is not bitwise equal on several threads.
            let par = if learnt == 1 { Par::Seq } else { parallelism(width * width * learnt / 2) };
            solve_upper_triangular_in_place(lower.as_ref().transpose(), towards.as_mut().transpose_mut(), par);
            if let Some(levelling) = levelling {
                levelling.apply(towards.as_mut().subcols_mut(0, width - 1), along);
            }
            let (features, par) = (all.features.transpose(), parallelism(height * width * learnt));
            matmul(reach.as_mut(), Accum::Replace, towards.as_ref(), features, 1.0, par);
            lower.reshape(learnt, learnt);
            innovations.write_lower(lower.as_mut());
            let par = if height == 1 { Par::Seq } else { parallelism(learnt * learnt * height / 2) };
            solve_lower_triangular_in_place(lower.as_ref(), reach.as_mut(), par);
        }
        let found = out.clone();
        out.predictions.clear();
        out.variance_factors.clear();
        let reach = reach.as_ref();
        let mut before = 0;
        for i in 0..height {
            if self.taught.get(before) == Some(&i) {
                out.predictions.extend_from_slice(&found.predictions[before * outputs..(before + 1) * outputs]);
                out.variance_factors.push(found.variance_factors[before]);
                before += 1;
                continue;
            }
            let reach = reach.col(i).subrows(0, before);
            for t in 0..outputs {
                let errors = errors.col(t).subrows(0, before);
                let change: f64 = reach.iter().zip(errors.iter()).map(|(g, z)| g * z).sum();
                out.predictions.push((self.outputs[i * outputs + t] + change) / roots[i]);
            }
            out.variance_factors.push(f64::NAN);
        }
    }
}

/// Some rows of a matrix, column-major.
fn gather(matrix: MatRef<'_, f64>, rows: &[usize], out: &mut Vec<f64>) {
    resize(out, rows.len() * matrix.ncols());
    for (out, column) in out.chunks_exact_mut(rows.len().max(1)).zip(matrix.col_iter()) {
        let Some(column) = column.try_as_col_major() else { continue };
        let column = column.as_slice();
        out.iter_mut().zip(rows).for_each(|(out, &i)| *out = column[i]);
    }
}
