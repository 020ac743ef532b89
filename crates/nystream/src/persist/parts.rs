//! Parts that several kinds of file have in common: sets of rows, and lower triangles.

use faer::{Mat, MatRef};

use super::container::Container;
use crate::error::Result;
use crate::rows::{RowBlock, Rows, SparseRows};

impl Container {
    /// Adds rows: dense ones as `{name}s`, sparse ones as `{name}_offsets`, `{name}_indices` and `{name}_values`.
    pub fn put_rows(&mut self, name: &str, rows: Rows) -> Result<()> {
        match rows {
            Rows::Dense(dense) => {
                self.put_f64(&format!("{name}s"), &[dense.len(), dense.cols()], dense.data().to_vec())
            }
            Rows::Sparse(sparse) => {
                let mut offsets = vec![0u64];
                let (mut indices, mut values) = (Vec::new(), Vec::new());
                for i in 0..sparse.len() {
                    let (index, value) = sparse.row(i);
                    indices.extend_from_slice(index);
                    values.extend_from_slice(value);
                    offsets.push(indices.len() as u64);
                }
                self.put_u64(&format!("{name}_offsets"), &[offsets.len()], offsets)?;
                self.put_u32(&format!("{name}_indices"), &[indices.len()], indices)?;
                self.put_f64(&format!("{name}_values"), &[values.len()], values)
            }
        }
    }

    /// Takes out rows of `features` columns, after checking that they are finite and consistent.
    pub fn take_rows(&mut self, name: &str, features: usize) -> Result<RowBlock> {
        let dense = format!("{name}s");
        if self.has(&dense) {
            let (shape, data) = self.take_finite(&dense, 2)?;
            if shape[1] != features {
                return Err(self.malformed(format!("{name}s of {} features, expected {features}", shape[1])));
            }
            return Ok(RowBlock::Dense { data, len: shape[0], cols: shape[1] });
        }
        let (_, offsets) = self.take_u64(&format!("{name}_offsets"), 1)?;
        let (_, indices) = self.take_u32(&format!("{name}_indices"), 1)?;
        let (_, values) = self.take_finite(&format!("{name}_values"), 1)?;
        let offsets: Vec<usize> = offsets.iter().map(|&o| usize::try_from(o).unwrap_or(usize::MAX)).collect();
        SparseRows::new(&offsets, &indices, &values, features)
            .map_err(|_| self.malformed(format!("sparse {name}s that are inconsistent")))?;
        if offsets[0] != 0 || offsets.last() != Some(&indices.len()) {
            return Err(self.malformed(format!("sparse {name}s with entries that belong to no row")));
        }
        Ok(RowBlock::Sparse { offsets, indices, values, cols: features })
    }

    /// Adds the lower triangle of a matrix, column by column.
    pub fn put_lower(&mut self, name: &str, matrix: MatRef<'_, f64>) -> Result<()> {
        let n = matrix.nrows();
        let packed: Vec<f64> = (0..n).flat_map(|j| (j..n).map(move |i| matrix[(i, j)])).collect();
        self.put_f64(name, &[packed.len()], packed)
    }

    /// Takes out the lower triangle of a matrix of n rows; zeros above it.
    pub fn take_lower(&mut self, name: &str, n: usize) -> Result<Mat<f64>> {
        let (_, packed) = self.take_finite(name, 1)?;
        if n.checked_add(1).and_then(|next| next.checked_mul(n)).map(|twice| twice / 2) != Some(packed.len()) {
            let found = packed.len();
            return Err(self.malformed(format!("{name}: {found} numbers, expected the lower triangle of {n} rows")));
        }
        let mut next = packed.iter();
        let mut matrix = Mat::zeros(n, n);
        for j in 0..n {
            for i in j..n {
                matrix[(i, j)] = next.next().copied().unwrap_or(0.0);
            }
        }
        Ok(matrix)
    }
}
