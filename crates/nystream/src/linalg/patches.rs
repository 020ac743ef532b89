//! Symmetric matrices as factorisations by packed products read them: a patch at a time, whatever holds them.

use faer::MatRef;

use super::gram::GramSum;
use super::packed_rows::BLOCK;
use super::rank_update::STRIP;

/// Some of the lower triangle of a symmetric matrix: of each of 24 columns, 8 rows.
pub type Patch = [[f64; STRIP]; BLOCK];

/// A symmetric matrix that is read a patch at a time.
pub trait Patches {
    /// Number of rows.
    fn dim(&self) -> usize;

    /// An entry of the diagonal.
    fn diagonal(&self, i: usize) -> f64;

    /// Writes all entries from a row and a column on, zeros past the last. The row is a multiple of 8, the column of 24, and
    /// entries above the diagonal may be anything. Best `#[inline(always)]`: it is called from code for wide registers.
    fn read(&self, row: usize, col: usize, out: &mut Patch);
}

/// A matrix and a multiple of the identity.
#[derive(Debug, Clone, Copy)]
pub struct PlusIdentity<M> {
    /// The matrix.
    pub matrix: M,
    /// Times the identity.
    pub factor: f64,
}

impl<M: Patches> Patches for PlusIdentity<M> {
    fn dim(&self) -> usize {
        self.matrix.dim()
    }

    fn diagonal(&self, i: usize) -> f64 {
        self.matrix.diagonal(i) + self.factor
    }

    #[inline(always)]
    fn read(&self, row: usize, col: usize, out: &mut Patch) {
        self.matrix.read(row, col, out);
        let diagonal = row.max(col)..self.dim().min(row + STRIP).min(col + BLOCK);
        diagonal.for_each(|i| out[i - col][i - row] += self.factor);
    }
}

impl Patches for &GramSum {
    fn dim(&self) -> usize {
        GramSum::dim(self)
    }

    fn diagonal(&self, i: usize) -> f64 {
        GramSum::diagonal(self, i)
    }

    #[inline(always)]
    fn read(&self, row: usize, col: usize, out: &mut Patch) {
        let held = self.patch(row, col);
        out.iter_mut().zip(held).for_each(|(out, held)| *out = *held);
        out[held.len()..].fill([0.0; STRIP]);
    }
}

/// Of which only the lower triangle is read; best column-major.
impl Patches for MatRef<'_, f64> {
    fn dim(&self) -> usize {
        self.nrows()
    }

    fn diagonal(&self, i: usize) -> f64 {
        self[(i, i)]
    }

    #[inline(always)]
    fn read(&self, row: usize, col: usize, out: &mut Patch) {
        let (rows, cols) = (STRIP.min(self.nrows().saturating_sub(row)), BLOCK.min(self.ncols().saturating_sub(col)));
        for (out, column) in out.iter_mut().zip(self.subcols(col.min(self.ncols()), cols).col_iter()) {
            let column = column.subrows(row.min(self.nrows()), rows);
            match column.try_as_col_major().and_then(|column| column.as_slice().first_chunk()) {
                Some(whole) => *out = *whole,
                None => *out = std::array::from_fn(|i| if i < rows { column[i] } else { 0.0 }),
            }
        }
        out[cols..].fill([0.0; STRIP]);
    }
}
