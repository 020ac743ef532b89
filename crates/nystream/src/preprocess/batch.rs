//! Rows and targets, coded during the first pass and final afterwards.

use crate::rows::RowBlock;

/// Rows of the first pass, before categories and scaling are known.
///
/// Rows may be picked out and collected (a sample), as long as each keeps its targets.
#[derive(Debug, Clone, PartialEq)]
pub struct CodedBlock {
    /// Dense: feature columns, with the number of the category (by first appearance) in category columns and
    /// NaN for missing cells. Sparse: as read.
    pub rows: RowBlock,
    /// Row-major, one number a target. Where labels are text or classification was asked for: the number of the label,
    /// by first appearance.
    pub targets: Vec<f64>,
    /// How much each row counts; empty without a column of weights.
    pub weights: Vec<f64>,
    /// Number in its source of the first record that was read for this block, from 1.
    pub first_row: u64,
    /// Records of the block that were left out, from 0, increasing.
    pub dropped: Vec<usize>,
}

/// Rows and targets ready for use.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// Features: expanded, imputed, scaled; all finite.
    pub rows: RowBlock,
    /// Row-major, one number a target; for classification the class index. Empty if targets were not needed.
    pub targets: Vec<f64>,
    /// How much each row counts; empty without a column of weights, or if it was not read ([`Preprocessor::weigh`]).
    ///
    /// [`Preprocessor::weigh`]: super::Preprocessor::weigh
    pub weights: Vec<f64>,
    /// Number in its source of the first record that was read for this batch, from 1.
    pub first_row: u64,
    /// Records of the block that were left out, from 0, increasing.
    pub dropped: Vec<usize>,
}

impl Default for CodedBlock {
    fn default() -> Self {
        Self { rows: RowBlock::dense(0), targets: Vec::new(), weights: Vec::new(), first_row: 1, dropped: Vec::new() }
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self { rows: RowBlock::dense(0), targets: Vec::new(), weights: Vec::new(), first_row: 1, dropped: Vec::new() }
    }
}

impl CodedBlock {
    /// Number, in its source and from 1, of the record that became row `i`.
    pub fn source_row(&self, i: usize) -> u64 {
        record_of(i, self.first_row, &self.dropped)
    }
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Batch {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Number of records that were read for this batch, those left out included.
    pub fn records(&self) -> usize {
        self.len() + self.dropped.len()
    }
    /// Number, in its source and from 1, of the record that became row `i`.
    pub fn source_row(&self, i: usize) -> u64 {
        record_of(i, self.first_row, &self.dropped)
    }
}

/// Number of the record that became row `i`, where some were left out.
fn record_of(i: usize, first_row: u64, dropped: &[usize]) -> u64 {
    // The d-th record left out (from 0) stands before row i exactly if dropped[d] − d ≤ i.
    let (mut low, mut high) = (0, dropped.len());
    while low < high {
        let middle = (low + high) / 2;
        if dropped[middle] - middle <= i {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    first_row + (i + low) as u64
}

/// Makes `rows` dense, `len × cols`, and gives its numbers to be overwritten; keeps the memory.
pub(super) fn prepare_dense(rows: &mut RowBlock, len: usize, cols: usize) -> &mut [f64] {
    if rows.is_sparse() {
        *rows = RowBlock::dense(cols);
    }
    if let RowBlock::Dense { data, len: rows, cols: width } = rows {
        data.resize(len * cols, 0.0);
        *rows = len;
        *width = cols;
        return data;
    }
    &mut []
}

/// Shortens dense rows to the first `len`.
pub(super) fn truncate_dense(rows: &mut RowBlock, to: usize) {
    if let RowBlock::Dense { data, len, cols } = rows {
        data.truncate(to * *cols);
        *len = to;
    }
}

/// Makes `rows` sparse, of `cols` columns, and empty; keeps the memory.
pub(super) fn prepare_sparse(rows: &mut RowBlock, cols: usize) {
    if !rows.is_sparse() {
        *rows = RowBlock::sparse(cols);
    }
    rows.clear();
    rows.set_cols(cols);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_know_their_records() {
        let dropped = vec![0, 3, 4, 7];
        let batch = Batch { rows: RowBlock::Dense { data: vec![], len: 5, cols: 0 }, dropped, ..Batch::default() };
        let records: Vec<u64> = (0..batch.len()).map(|i| batch.source_row(i)).collect();
        assert_eq!(records, [2, 3, 6, 7, 9]);
        assert_eq!(batch.records(), 9);
    }
}
