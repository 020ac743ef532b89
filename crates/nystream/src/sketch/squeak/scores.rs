//! Ridge leverage scores of atoms and of new rows, from one factorisation.
//!
//! With B = S K_ZZ S + gI, k_i − k_iᵀS B⁻¹ Sᵀk_i = g (1 − g [B⁻¹]_ii)/s_i² for an atom i (push S through
//! (A + gI)⁻¹A = I − g(A + gI)⁻¹), so the inverse's diagonal gives the score of every atom at once. A point outside has
//! (k − ‖L⁻¹ S k_Z‖²)/g, B = LLᵀ. Atoms that are scored change, so that factor is of no further use; the one that rows
//! outside are scored with is bordered by those that become atoms.

use faer::{Mat, MatRef};

use super::atoms::Atoms;
use crate::error::Result;
use crate::kernel::{Centres, Kernel, KernelWorkspace};
use crate::linalg::{Factoring, InverseDiagonal, PackedFactoring, Patch, Patches, PlusIdentity, ReusedMatrix};
use crate::rows::Rows;

/// In messages.
const WHAT: &str = "the dictionary's kernels";

/// Memory that every step reuses, and the factor of B that rows are scored with where it still holds. Results never depend on
/// it.
#[derive(Debug, Default)]
pub(super) struct Scorer {
    /// For atoms.
    packed: PackedFactoring,
    inverse: InverseDiagonal,
    /// For rows outside.
    factoring: Factoring,
    /// The ridge g of the factor, if it is that of the atoms as they are.
    factored: Option<f64>,
    weights: Vec<f64>,
    diagonal: Vec<f64>,
    columns: ReusedMatrix,
    pub(super) kernels: KernelWorkspace,
    largest_jitter: f64,
    /// Multiply-adds of factors and of diagonals of inverses since it was made.
    work: f64,
}

impl Scorer {
    /// Multiply-adds of all scorings of atoms since it was made: n³/6 for a Cholesky factor of n atoms, n³/6 + n²/2 for the
    /// diagonal of the inverse.
    pub(super) fn work(&self) -> f64 {
        self.work
    }

    /// Atoms or weights have changed.
    pub(super) fn forget(&mut self) {
        self.factored = None;
    }

    /// Gives back all memory.
    pub(super) fn release(&mut self) {
        *self = Self { largest_jitter: self.largest_jitter, work: self.work, ..Self::default() };
    }

    /// The factor, its g and what was added to it, where it holds.
    pub(super) fn factor(&self) -> Option<(MatRef<'_, f64>, f64, f64)> {
        self.factored.map(|ridge| (self.factoring.lower(), ridge, self.factoring.jitter()))
    }

    /// The factor as it was saved.
    pub(super) fn set_factor(&mut self, atoms: &Atoms, factor: &Mat<f64>, ridge: f64, jitter: f64) {
        self.weigh(atoms);
        self.factoring.set(factor.as_ref(), jitter);
        self.factored = Some(ridge);
    }

    /// Factors B at g = `ridge` for rows outside, unless that is at hand.
    fn prepare(&mut self, atoms: &Atoms, ridge: f64) -> Result<()> {
        if self.factored == Some(ridge) {
            return Ok(());
        }
        self.factored = None;
        self.weigh(atoms);
        let (kernels, s) = (atoms.kernels(), &self.weights);
        let fill = |j: usize, out: &mut [f64]| {
            let column = kernels.col(j).subrows(j, out.len());
            out.iter_mut().zip(column.iter()).zip(&s[j..]).for_each(|((out, k), weight)| *out = k * (weight * s[j]));
            out[0] += ridge;
        };
        self.factoring.factor(atoms.len(), fill, WHAT)?;
        self.largest_jitter = self.largest_jitter.max(self.factoring.jitter());
        self.factored = Some(ridge);
        Ok(())
    }

    fn weigh(&mut self, atoms: &Atoms) {
        self.weights.clear();
        self.weights.extend(atoms.weights());
    }

    /// φᵀ(ΦSSᵀΦᵀ + gI)⁻¹φ of every atom: Eq. 7 without its factor 1 − ε, at g = γ.
    pub(super) fn of_atoms(&mut self, atoms: &Atoms, ridge: f64, out: &mut Vec<f64>) -> Result<()> {
        let explained = self.explained(atoms, ridge)?;
        out.clear();
        out.extend(explained.iter().zip(atoms.standing()).map(|(share, point)| share / point.squared_weight()));
        Ok(())
    }

    /// 1 − g [B⁻¹]_ii of every atom: its part of the effective dimension of the weighted dictionary.
    pub(super) fn explained(&mut self, atoms: &Atoms, ridge: f64) -> Result<&[f64]> {
        self.weigh(atoms);
        let matrix = Weighted { kernels: atoms.kernels(), weights: &self.weights };
        self.packed.factor_in_parallel(&PlusIdentity { matrix, factor: ridge }, WHAT)?;
        self.inverse.write(&self.packed, &mut self.diagonal);
        let n = atoms.len() as f64;
        self.work += n.powi(3) / 3.0 + n * n / 2.0;
        self.largest_jitter = self.largest_jitter.max(self.packed.jitter());
        let ridge = ridge + self.packed.jitter();
        self.diagonal.iter_mut().for_each(|d| *d = (1.0 - ridge * *d).clamp(0.0, 1.0));
        Ok(&self.diagonal)
    }

    /// (k − ‖L⁻¹ S k_Z‖²)/g of every row, none of which is among the atoms. The columns L⁻¹ S k_Z are kept for
    /// [`admit`](Self::admit).
    pub(super) fn of_rows(&mut self, kernel: &Kernel, atoms: &Atoms, rows: Rows, ridge: f64) -> Result<Vec<f64>> {
        self.columns.reshape(atoms.len(), rows.len());
        if atoms.len() == 0 {
            return Ok((0..rows.len()).map(|i| kernel.diagonal(rows.row(i)) / ridge).collect());
        }
        self.prepare(atoms, ridge)?;
        let mut columns = self.columns.as_mut();
        kernel.block(atoms.rows().rows(), &Centres::new(rows), &mut self.kernels, columns.as_mut());
        for column in columns.as_mut().col_iter_mut() {
            column.iter_mut().zip(&self.weights).for_each(|(value, weight)| *value *= weight);
        }
        self.factoring.forward_in_place(columns.as_mut());
        let ridge = ridge + self.factoring.jitter();
        let score =
            |i: usize| (kernel.diagonal(rows.row(i)) - columns.as_ref().col(i).squared_norm_l2()).max(0.0) / ridge;
        Ok((0..rows.len()).map(score).collect())
    }

    /// Borders the factor by the rows of [`of_rows`](Self::of_rows) that were `accepted`, the atoms' last ones now.
    pub(super) fn admit(&mut self, atoms: &Atoms, accepted: &[usize]) {
        let Some(ridge) = self.factored.take() else { return };
        let (old, kernels) = (self.weights.len(), atoms.kernels());
        self.weights.extend(atoms.standing()[old..].iter().map(|point| point.squared_weight().sqrt()));
        let (s, columns) = (&self.weights, self.columns.as_ref());
        let border = Mat::from_fn(old, accepted.len(), |i, j| s[old + j] * columns[(i, accepted[j])]);
        let corner = |j: usize, out: &mut [f64]| {
            let weight = s[old + j];
            out.iter_mut()
                .enumerate()
                .for_each(|(i, v)| *v = weight * s[old + j + i] * kernels[(old + j + i, old + j)]);
            out[0] += ridge;
        };
        if self.factoring.extend(border.as_ref(), corner) {
            self.factored = Some(ridge);
        }
    }

    /// The largest jitter that any factorisation took.
    pub(super) fn largest_jitter(&self) -> f64 {
        self.largest_jitter
    }

    pub(super) fn set_largest_jitter(&mut self, jitter: f64) {
        self.largest_jitter = self.largest_jitter.max(jitter);
    }

    /// Bytes held.
    pub(super) fn size_bytes(&self) -> usize {
        let vectors = (self.weights.capacity() + self.diagonal.capacity()) * 8;
        let factors = self.packed.size_bytes() + self.inverse.size_bytes() + self.factoring.size_bytes();
        factors + self.columns.size_bytes() + self.kernels.size_bytes() + vectors
    }
}

/// S K_ZZ S, read from the lower triangle of K_ZZ.
#[derive(Debug, Clone, Copy)]
struct Weighted<'a> {
    kernels: MatRef<'a, f64>,
    weights: &'a [f64],
}

impl Patches for Weighted<'_> {
    fn dim(&self) -> usize {
        self.weights.len()
    }

    fn diagonal(&self, i: usize) -> f64 {
        self.kernels[(i, i)] * (self.weights[i] * self.weights[i])
    }

    #[inline(always)]
    fn read(&self, row: usize, col: usize, out: &mut Patch) {
        self.kernels.read(row, col, out);
        let rows = &self.weights[row.min(self.weights.len())..];
        for (out, weight) in out.iter_mut().zip(&self.weights[col.min(self.weights.len())..]) {
            out.iter_mut().zip(rows).for_each(|(out, other)| *out *= other * weight);
        }
    }
}

impl Clone for Scorer {
    fn clone(&self) -> Self {
        Self {
            factoring: self.factoring.clone(),
            factored: self.factored,
            weights: self.weights.clone(),
            largest_jitter: self.largest_jitter,
            ..Self::default()
        }
    }
}
