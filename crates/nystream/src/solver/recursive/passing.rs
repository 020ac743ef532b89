//! Rows of a block that cost nothing: predicted as any other, not learnt.
//!
//! Which those are is said by the outputs at the start of the block ([`Loss`]), so that learning need not wait for
//! predictions. Let T be the rows that are learnt, V = L⁻¹Φ_Tᵀ, I + VᵀV = CCᵀ and z = C⁻¹(y − Φθ)_T. After the first k of
//! them a row x has the output φᵀ(θ + g₁z₁ + … + g_k z_k), the g the rows of C⁻¹Φ_T A⁻¹ = C⁻¹(L⁻ᵀV)ᵀ: the first k of them and of z
//! do not depend on later rows. So a row that is passed over costs one product of vectors, with θ as it was when its turn
//! came, and no solve. Nor need its kernels be levelled, where those that are learnt are: θ and the g are levelled in their
//! place.

use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::{Accum, ColRef, MatMut, MatRef, Par};

use super::{Innovations, Learnt, Start, resize};
use crate::linalg::{PackedFactoring, PackedRows, ReusedMatrix, parallelism};
use crate::solver::Loss;
use crate::solver::levelling::Levelling;

/// Columns that are summed side by side: a sum waits for the one before.
const ABREAST: usize = 4;

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
    /// (L⁻ᵀV)ᵀ, then the g, a row each.
    gains: ReusedMatrix,
    /// What they are levelled with.
    along: Vec<f64>,
    /// Rows that are not learnt: their places, and how many are learnt before them.
    passed: Vec<(usize, usize)>,
    /// What their outputs change by, one after the other for each target.
    changes: Vec<f64>,
    /// Sums of the g so far times their z, of a few columns.
    moved: Vec<[f64; ABREAST]>,
}

impl Reaching {
    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        let vectors = self.along.capacity() + 2 * self.passed.capacity() + self.changes.capacity();
        self.lower.size_bytes() + self.gains.size_bytes() + 8 * (vectors + ABREAST * self.moved.capacity())
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
        reaching: &mut Reaching,
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
        reaching.passed.clear();
        let mut before = 0;
        for i in 0..height {
            match self.taught.get(before) {
                Some(&taught) if taught == i => before += 1,
                _ => reaching.passed.push((i, before)),
            }
        }
        reaching.changes.clear();
        reaching.changes.resize(reaching.passed.len() * outputs, 0.0);
        if learnt > 0 {
            let Reaching { lower, gains, along, .. } = reaching;
            gains.reshape(learnt, width);
            solved.write_transposed(gains.as_mut());
            lower.reshape(width, width);
            start.factor.write_lower(lower.as_mut());
            // A single column is not bitwise equal on several threads.
            let par = if learnt == 1 { Par::Seq } else { parallelism(width * width * learnt / 2) };
            solve_upper_triangular_in_place(lower.as_ref().transpose(), gains.as_mut().transpose_mut(), par);
            if let Some(levelling) = levelling {
                levelling.apply(gains.as_mut().subcols_mut(0, width - 1), along);
            }
            lower.reshape(learnt, learnt);
            innovations.write_lower(lower.as_mut());
            let par = parallelism(learnt * learnt * width / 2);
            solve_lower_triangular_in_place(lower.as_ref(), gains.as_mut(), par);
            for t in 0..outputs {
                reaching.add_changes(all.features, errors.col(t), t);
            }
        }
        let found = out.clone();
        out.predictions.clear();
        out.variance_factors.clear();
        let (mut before, mut passed) = (0, 0);
        for i in 0..height {
            if self.taught.get(before) == Some(&i) {
                out.predictions.extend_from_slice(&found.predictions[before * outputs..(before + 1) * outputs]);
                out.variance_factors.push(found.variance_factors[before]);
                before += 1;
                continue;
            }
            for t in 0..outputs {
                let change = reaching.changes[t * reaching.passed.len() + passed];
                out.predictions.push((self.outputs[i * outputs + t] + change) / roots[i]);
            }
            out.variance_factors.push(f64::NAN);
            passed += 1;
        }
    }
}

impl Reaching {
    /// φᵀ(g₁z₁ + … + g_k z_k) of every row that is passed over, for one target.
    fn add_changes(&mut self, features: MatRef<'_, f64>, errors: ColRef<'_, f64>, target: usize) {
        let Self { gains, passed, changes, moved, .. } = self;
        let (gains, width) = (gains.as_ref(), features.ncols());
        let changes = &mut changes[target * passed.len()..(target + 1) * passed.len()];
        moved.resize(gains.nrows() + 1, [0.0; ABREAST]);
        for first in (0..width).step_by(ABREAST) {
            // Past the last column there is nothing to add.
            let columns: [_; ABREAST] =
                std::array::from_fn(|c| (column(gains, first + c), column(features, first + c)));
            let mut sums = [0.0; ABREAST];
            for (k, error) in errors.iter().enumerate() {
                for (sum, (gains, _)) in sums.iter_mut().zip(&columns) {
                    *sum += error * gains.get(k).copied().unwrap_or(0.0);
                }
                moved[k + 1] = sums;
            }
            for (change, &(i, before)) in changes.iter_mut().zip(&*passed) {
                for (moved, (_, features)) in moved[before].iter().zip(&columns) {
                    *change += features.get(i).copied().unwrap_or(0.0) * moved;
                }
            }
        }
    }
}

/// A column of a column-major matrix; nothing past the last.
fn column(matrix: MatRef<'_, f64>, j: usize) -> &[f64] {
    let inside = (j < matrix.ncols()).then(|| matrix.col(j));
    inside.and_then(ColRef::try_as_col_major).map_or(&[], ColRef::as_slice)
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
