//! Rows of numbers, dense or sparse (CSR), borrowed or owned.
//!
//! `Rows` is a borrowed view that every computation takes; `RowBlock` owns rows and is refilled
//! without reallocating. Dense data is row-major and contiguous, so a C-order array passes
//! uncopied. Sparse indices count from 0, increase within a row, and fit in 32 bits.

use crate::error::{Error, Result};

/// A borrowed set of rows.
#[derive(Debug, Clone, Copy)]
pub enum Rows<'a> {
    /// Row-major, contiguous.
    Dense(DenseRows<'a>),
    /// Compressed sparse rows.
    Sparse(SparseRows<'a>),
}

/// Dense rows: `len × cols` numbers, row-major.
#[derive(Debug, Clone, Copy)]
pub struct DenseRows<'a> {
    data: &'a [f64],
    len: usize,
    cols: usize,
}

/// Sparse rows: row `i` holds entries `offsets[i]..offsets[i + 1]`.
#[derive(Debug, Clone, Copy)]
pub struct SparseRows<'a> {
    offsets: &'a [usize],
    indices: &'a [u32],
    values: &'a [f64],
    cols: usize,
}

/// One row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Row<'a> {
    /// All values.
    Dense(&'a [f64]),
    /// Non-zero values with their columns, increasing.
    Sparse {
        /// Columns, from 0.
        indices: &'a [u32],
        /// Values in those columns.
        values: &'a [f64],
    },
}

impl<'a> DenseRows<'a> {
    /// Views `data` as `len` rows of `cols` numbers.
    pub fn new(data: &'a [f64], len: usize, cols: usize) -> Result<Self> {
        if len.checked_mul(cols) != Some(data.len()) {
            return Err(Error::Shape { what: "dense row data", found: data.len(), expected: len.saturating_mul(cols) });
        }
        Ok(Self { data, len, cols })
    }
    /// The numbers, row-major.
    pub fn data(&self) -> &'a [f64] {
        self.data
    }
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }
    /// Row `i`.
    pub fn row(&self, i: usize) -> &'a [f64] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }
}

impl<'a> SparseRows<'a> {
    /// Views CSR arrays as rows, after checking that they are consistent.
    pub fn new(offsets: &'a [usize], indices: &'a [u32], values: &'a [f64], cols: usize) -> Result<Self> {
        let end = *offsets.last().ok_or(Error::Shape { what: "sparse row offsets", found: 0, expected: 1 })?;
        if indices.len() != values.len() || end > indices.len() || offsets.windows(2).any(|w| w[0] > w[1]) {
            return Err(Error::Shape { what: "sparse row entries", found: values.len(), expected: end });
        }
        for w in offsets.windows(2) {
            let row = &indices[w[0]..w[1]];
            if row.windows(2).any(|p| p[0] >= p[1]) || row.last().is_some_and(|&j| j as usize >= cols) {
                return Err(Error::Internal(
                    "sparse indices must increase within a row and stay below the column count",
                ));
            }
        }
        Ok(Self { offsets, indices, values, cols })
    }
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }
    /// Number of stored entries.
    pub fn entries(&self) -> usize {
        self.offsets[self.len()] - self.offsets[0]
    }
    /// Columns and values of row `i`.
    pub fn row(&self, i: usize) -> (&'a [u32], &'a [f64]) {
        let span = self.offsets[i]..self.offsets[i + 1];
        (&self.indices[span.clone()], &self.values[span])
    }
}

impl PartialEq for Rows<'_> {
    /// Whether they are the same rows, kept the same way.
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && (0..self.len()).all(|i| self.row(i) == other.row(i))
    }
}

impl<'a> Rows<'a> {
    /// Dense rows.
    pub fn dense(data: &'a [f64], len: usize, cols: usize) -> Result<Self> {
        DenseRows::new(data, len, cols).map(Self::Dense)
    }
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Dense(rows) => rows.len(),
            Self::Sparse(rows) => rows.len(),
        }
    }
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Number of columns.
    pub fn cols(&self) -> usize {
        match self {
            Self::Dense(rows) => rows.cols(),
            Self::Sparse(rows) => rows.cols(),
        }
    }
    /// Row `i`.
    pub fn row(&self, i: usize) -> Row<'a> {
        match self {
            Self::Dense(rows) => Row::Dense(rows.row(i)),
            Self::Sparse(rows) => {
                let (indices, values) = rows.row(i);
                Row::Sparse { indices, values }
            }
        }
    }
    /// Rows `start..end`.
    pub fn slice(&self, start: usize, end: usize) -> Self {
        match *self {
            Self::Dense(rows) => Self::Dense(DenseRows {
                data: &rows.data[start * rows.cols..end * rows.cols],
                len: end - start,
                cols: rows.cols,
            }),
            Self::Sparse(rows) => Self::Sparse(SparseRows { offsets: &rows.offsets[start..=end], ..rows }),
        }
    }
    /// Whether every stored value is finite.
    pub fn all_finite(&self) -> bool {
        match self {
            Self::Dense(rows) => rows.data.iter().all(|v| v.is_finite()),
            Self::Sparse(rows) => rows.values[rows.offsets[0]..rows.offsets[rows.len()]].iter().all(|v| v.is_finite()),
        }
    }
}

impl Row<'_> {
    /// Squared Euclidean norm.
    pub fn squared_norm(&self) -> f64 {
        let values = match self {
            Self::Dense(values) => values,
            Self::Sparse { values, .. } => values,
        };
        values.iter().map(|v| v * v).sum()
    }
    /// Writes all values, zeros included, into `out`.
    pub fn copy_to(&self, out: &mut [f64]) {
        match self {
            Self::Dense(values) => out.copy_from_slice(values),
            Self::Sparse { indices, values } => {
                out.fill(0.0);
                for (&j, &v) in indices.iter().zip(*values) {
                    out[j as usize] = v;
                }
            }
        }
    }
}

/// Owned rows, refilled in place.
#[derive(Debug, Clone, PartialEq)]
pub enum RowBlock {
    /// Row-major, contiguous.
    Dense {
        /// `len × cols` numbers.
        data: Vec<f64>,
        /// Number of rows (kept apart, for rows of no columns).
        len: usize,
        /// Number of columns.
        cols: usize,
    },
    /// Compressed sparse rows.
    Sparse {
        /// Where each row starts, and the end: `len + 1` numbers from 0.
        offsets: Vec<usize>,
        /// Columns, increasing within a row.
        indices: Vec<u32>,
        /// Values in those columns.
        values: Vec<f64>,
        /// Number of columns.
        cols: usize,
    },
}

impl RowBlock {
    /// No dense rows yet, of `cols` columns.
    pub fn dense(cols: usize) -> Self {
        Self::Dense { data: Vec::new(), len: 0, cols }
    }
    /// No sparse rows yet, of `cols` columns.
    pub fn sparse(cols: usize) -> Self {
        Self::Sparse { offsets: vec![0], indices: Vec::new(), values: Vec::new(), cols }
    }
    /// An empty block of the same kind and width as `rows`.
    pub fn like(rows: Rows) -> Self {
        match rows {
            Rows::Dense(_) => Self::dense(rows.cols()),
            Rows::Sparse(_) => Self::sparse(rows.cols()),
        }
    }
    /// Whether the rows are stored sparsely.
    pub fn is_sparse(&self) -> bool {
        matches!(self, Self::Sparse { .. })
    }
    /// The rows, borrowed.
    pub fn rows(&self) -> Rows<'_> {
        match self {
            Self::Dense { data, len, cols } => Rows::Dense(DenseRows { data, len: *len, cols: *cols }),
            Self::Sparse { offsets, indices, values, cols } => {
                Rows::Sparse(SparseRows { offsets, indices, values, cols: *cols })
            }
        }
    }
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows().len()
    }
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.rows().cols()
    }
    /// Sets the number of columns (sparse widths become known while reading). Dense blocks must be empty.
    pub fn set_cols(&mut self, width: usize) {
        match self {
            Self::Dense { cols, len, .. } => {
                debug_assert_eq!(*len, 0);
                *cols = width;
            }
            Self::Sparse { cols, .. } => *cols = width,
        }
    }
    /// Raises the number of columns of sparse rows; dense ones stay as they are.
    pub fn widen(&mut self, width: usize) {
        if let Self::Sparse { cols, .. } = self {
            *cols = width.max(*cols);
        }
    }
    /// Forgets the rows, keeps the memory.
    pub fn clear(&mut self) {
        match self {
            Self::Dense { data, len, .. } => {
                data.clear();
                *len = 0;
            }
            Self::Sparse { offsets, indices, values, .. } => {
                offsets.truncate(1);
                indices.clear();
                values.clear();
            }
        }
    }
    /// Appends a row. A sparse row may go into a dense block and the reverse (zeros are then left out).
    pub fn push(&mut self, row: Row) {
        match self {
            Self::Dense { data, len, cols } => {
                let start = data.len();
                data.resize(start + *cols, 0.0);
                row.copy_to(&mut data[start..]);
                *len += 1;
            }
            Self::Sparse { offsets, indices, values, .. } => {
                match row {
                    Row::Dense(all) => {
                        for (j, &v) in all.iter().enumerate().filter(|(_, v)| **v != 0.0) {
                            indices.push(j as u32);
                            values.push(v);
                        }
                    }
                    Row::Sparse { indices: i, values: v } => {
                        indices.extend_from_slice(i);
                        values.extend_from_slice(v);
                    }
                }
                offsets.push(indices.len());
            }
        }
    }
    /// Appends all of `rows`.
    pub fn extend(&mut self, rows: Rows) {
        for i in 0..rows.len() {
            self.push(rows.row(i));
        }
    }
    /// The chosen rows, in the order given.
    pub fn gather(rows: Rows, chosen: &[usize]) -> Self {
        let mut out = Self::like(rows);
        for &i in chosen {
            out.push(rows.row(i));
        }
        out
    }
    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        match self {
            Self::Dense { data, .. } => data.capacity() * 8,
            Self::Sparse { offsets, indices, values, .. } => {
                offsets.capacity() * 8 + indices.capacity() * 4 + values.capacity() * 8
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_and_dense_pushes_agree() {
        let dense = [0.0, 2.0, 0.0, 1.0, 0.0, 3.0];
        let rows = Rows::dense(&dense, 2, 3).unwrap();
        let mut sparse = RowBlock::sparse(3);
        sparse.extend(rows);
        let mut back = RowBlock::dense(3);
        back.extend(sparse.rows());
        assert_eq!(back, RowBlock::Dense { data: dense.to_vec(), len: 2, cols: 3 });
        assert_eq!(sparse.rows().slice(1, 2).row(0).squared_norm(), 10.0);
    }

    #[test]
    fn inconsistent_arrays_are_refused() {
        assert!(Rows::dense(&[1.0; 5], 2, 3).is_err());
        assert!(SparseRows::new(&[0, 2], &[1, 0], &[1.0, 1.0], 3).is_err());
        assert!(SparseRows::new(&[0, 1], &[3], &[1.0], 3).is_err());
        assert!(SparseRows::new(&[0, 2], &[1], &[1.0], 3).is_err());
    }
}
