//! Raw records as the format readers hand them over.

use crate::rows::RowBlock;

/// Stands for the label that precedes the features of a sparse (LIBSVM) row.
pub const LABEL_COLUMN: usize = usize::MAX;

/// The columns of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schema {
    /// Named columns; features and targets alike. Files without a header have columns `1`, `2`, ...
    Table {
        /// Column names, in file order.
        names: Vec<String>,
        /// Whether the names come from the file (a header) rather than from counting.
        named: bool,
    },
    /// A label and sparse numbered features.
    Labelled {
        /// One more than the largest feature index seen so far (indices from 0).
        width: usize,
    },
}

/// A cell that is not a finite-or-infinite number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OddCell {
    /// Empty, or one of the documented spellings of "missing" (`NA`, `N/A`, `NaN`, `null`, `?`).
    Missing,
    /// Text; look it up with [`RecordBlock::text`].
    Text {
        /// Start in the block's text arena.
        start: usize,
        /// End in the block's text arena.
        end: usize,
    },
}

/// Where an odd cell is, and what it holds. The number stored at that place is NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oddity {
    /// Row within the block, from 0.
    pub row: usize,
    /// Column, from 0; [`LABEL_COLUMN`] for the label of a sparse row.
    pub column: usize,
    /// What is there.
    pub cell: OddCell,
}

/// A block of records. Buffers are reused from block to block.
#[derive(Debug, Clone)]
pub struct RecordBlock {
    /// Number of the first record in its source, from 1.
    pub first_row: u64,
    /// Numbers: every column of a table (row-major), or the sparse features of labelled rows.
    pub cells: RowBlock,
    /// Labels of sparse rows, one a row; empty for tables.
    pub labels: Vec<f64>,
    /// Cells that are not numbers, by row, then column (the label of a row comes last).
    pub oddities: Vec<Oddity>,
    /// Arena of the odd cells' text.
    pub texts: String,
}

impl Default for RecordBlock {
    fn default() -> Self {
        Self { first_row: 1, cells: RowBlock::dense(0), labels: Vec::new(), oddities: Vec::new(), texts: String::new() }
    }
}

impl RecordBlock {
    /// Number of records.
    pub fn len(&self) -> usize {
        self.cells.len()
    }
    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Forgets the records, keeps the memory; the next ones will be `first_row` onwards.
    pub fn clear(&mut self, first_row: u64) {
        self.first_row = first_row;
        self.cells.clear();
        self.labels.clear();
        self.oddities.clear();
        self.texts.clear();
    }
    /// Notes a missing cell.
    pub fn mark_missing(&mut self, row: usize, column: usize) {
        self.oddities.push(Oddity { row, column, cell: OddCell::Missing });
    }
    /// Notes a text cell.
    pub fn mark_text(&mut self, row: usize, column: usize, text: &str) {
        let start = self.texts.len();
        self.texts.push_str(text);
        self.oddities.push(Oddity { row, column, cell: OddCell::Text { start, end: self.texts.len() } });
    }
    /// The text of an odd cell, `None` if it is missing.
    pub fn text(&self, cell: OddCell) -> Option<&str> {
        match cell {
            OddCell::Missing => None,
            OddCell::Text { start, end } => Some(&self.texts[start..end]),
        }
    }
}
