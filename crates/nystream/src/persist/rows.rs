//! Rows in a container: one dense tensor, or three of compressed sparse rows.

use super::container::Container;
use crate::error::Result;
use crate::rows::{RowBlock, Rows, SparseRows};

impl Container {
    /// Adds rows: tensor `<noun>s` if they are dense, else `<noun>_offsets`, `<noun>_indices` and `<noun>_values`.
    pub fn put_rows(&mut self, noun: &str, rows: Rows) -> Result<()> {
        match rows {
            Rows::Dense(dense) => {
                self.put_f64(&format!("{noun}s"), &[dense.len(), dense.cols()], dense.data().to_vec())
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
                self.put_u64(&format!("{noun}_offsets"), &[offsets.len()], offsets)?;
                self.put_u32(&format!("{noun}_indices"), &[indices.len()], indices)?;
                self.put_f64(&format!("{noun}_values"), &[values.len()], values)
            }
        }
    }

    /// Takes out what [`put_rows`](Self::put_rows) added: finite rows of `features` columns.
    pub fn take_rows(&mut self, noun: &str, features: usize) -> Result<RowBlock> {
        let name = format!("{noun}s");
        if self.has(&name) {
            let (shape, data) = self.take_finite(&name, 2)?;
            if shape[1] != features {
                return Err(self.malformed(format!("{name} of {} features, expected {features}", shape[1])));
            }
            return Ok(RowBlock::Dense { data, len: shape[0], cols: shape[1] });
        }
        let (_, offsets) = self.take_u64(&format!("{noun}_offsets"), 1)?;
        let (_, indices) = self.take_u32(&format!("{noun}_indices"), 1)?;
        let (_, values) = self.take_finite(&format!("{noun}_values"), 1)?;
        let offsets: Vec<usize> = offsets.iter().map(|&o| usize::try_from(o).unwrap_or(usize::MAX)).collect();
        let consistent = SparseRows::new(&offsets, &indices, &values, features).is_ok();
        if !consistent || offsets[0] != 0 || offsets.last() != Some(&indices.len()) {
            return Err(self.malformed(format!("sparse {name} that are inconsistent")));
        }
        Ok(RowBlock::Sparse { offsets, indices, values, cols: features })
    }
}
