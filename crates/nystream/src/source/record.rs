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

/// A row being filled; cells not set are NaN.
pub(super) struct TableRow<'a> {
    row: usize,
    cells: &'a mut [f64],
    oddities: &'a mut Vec<Oddity>,
    texts: &'a mut String,
}

impl TableRow<'_> {
    /// The cells, for numbers.
    #[inline]
    pub fn numbers(&mut self) -> &mut [f64] {
        self.cells
    }
    #[inline]
    pub fn number(&mut self, column: usize, value: f64) {
        self.cells[column] = value;
    }
    pub fn missing(&mut self, column: usize) {
        self.oddities.push(Oddity { row: self.row, column, cell: OddCell::Missing });
    }
    pub fn text(&mut self, column: usize, text: &str) {
        let start = self.texts.len();
        self.texts.push_str(text);
        self.oddities.push(Oddity { row: self.row, column, cell: OddCell::Text { start, end: self.texts.len() } });
    }
}

impl Schema {
    /// The name of a column; feature numbers of labelled rows count from 1, as in the file.
    pub fn column_name(&self, column: usize) -> String {
        match self {
            _ if column == LABEL_COLUMN => "label".to_owned(),
            Self::Table { names, .. } if column < names.len() => names[column].clone(),
            _ => (column + 1).to_string(),
        }
    }
}

impl RecordBlock {
    /// Makes the block an empty one of dense rows, keeping its memory if it was one.
    pub(super) fn start_table(&mut self, first_row: u64, columns: usize) {
        self.clear(first_row);
        if self.cells.is_sparse() {
            self.cells = RowBlock::dense(columns);
        }
        self.cells.set_cols(columns);
    }
    /// Makes the block an empty one of labelled sparse rows, keeping its memory if it was one.
    pub(super) fn start_labelled(&mut self, first_row: u64, width: usize) {
        self.clear(first_row);
        if !self.cells.is_sparse() {
            self.cells = RowBlock::sparse(width);
        }
        self.cells.set_cols(width);
    }
    /// Appends `count` rows of NaN to a table and returns their cells.
    pub(super) fn push_table_rows(&mut self, count: usize) -> &mut [f64] {
        match &mut self.cells {
            RowBlock::Dense { data, len, cols } => {
                let start = data.len();
                data.resize(start + count * *cols, f64::NAN);
                *len += count;
                &mut data[start..]
            }
            RowBlock::Sparse { .. } => &mut [],
        }
    }
    /// Appends a row of NaN to a table, to be filled.
    pub(super) fn push_table_row(&mut self) -> TableRow<'_> {
        let row = self.len();
        self.push_table_rows(1);
        let cells = match &mut self.cells {
            RowBlock::Dense { data, cols, .. } => {
                let start = data.len() - *cols;
                &mut data[start..]
            }
            RowBlock::Sparse { .. } => &mut [],
        };
        TableRow { row, cells, oddities: &mut self.oddities, texts: &mut self.texts }
    }
    /// Takes back the last row of a table, which has no oddities.
    pub(super) fn pop_table_row(&mut self) {
        if let RowBlock::Dense { data, len, cols } = &mut self.cells {
            *len -= 1;
            data.truncate(*len * *cols);
        }
    }
    /// Puts the oddities from `from` on in order, by row, then column.
    pub(super) fn sort_oddities(&mut self, from: usize) {
        let fresh = &mut self.oddities[from..];
        if !fresh.is_sorted_by_key(|odd| (odd.row, odd.column)) {
            fresh.sort_unstable_by_key(|odd| (odd.row, odd.column));
        }
    }
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
