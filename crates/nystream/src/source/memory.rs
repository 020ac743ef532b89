//! Records already in memory, for embedding and tests.

use super::{RecordBlock, RecordSource, Schema, refuse_duplicates};
use crate::error::{Error, Result};
use crate::rows::{RowBlock, Rows, SparseRows};

/// Numbers held in memory, read like any other source. NaN stands for a missing cell.
///
/// ```
/// use nystream::source::{MemorySource, RecordBlock, RecordSource};
///
/// let names = vec!["x".to_owned(), "y".to_owned()];
/// let mut source = MemorySource::table(names, vec![1.0, 2.0, 3.0, f64::NAN])?;
/// let mut block = RecordBlock::default();
/// assert!(source.read(&mut block, 10)?);
/// assert_eq!((block.len(), block.oddities.len()), (2, 1));
/// # Ok::<(), nystream::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MemorySource {
    schema: Schema,
    rows: RowBlock,
    labels: Vec<f64>,
    next: usize,
}

impl MemorySource {
    /// Rows of named columns, row-major.
    pub fn table(names: Vec<String>, data: Vec<f64>) -> Result<Self> {
        let cols = names.len();
        if cols == 0 {
            return Err(Error::Shape { what: "column names", found: 0, expected: 1 });
        }
        if !data.len().is_multiple_of(cols) {
            return Err(Error::Shape { what: "table data", found: data.len(), expected: data.len() / cols * cols });
        }
        refuse_duplicates("memory", &names)?;
        let rows = RowBlock::Dense { len: data.len() / cols, data, cols };
        Ok(Self { schema: Schema::Table { names, named: true }, rows, labels: Vec::new(), next: 0 })
    }

    /// Sparse rows, each with a label.
    pub fn labelled(rows: SparseRows, labels: Vec<f64>) -> Result<Self> {
        if labels.len() != rows.len() {
            return Err(Error::Shape { what: "labels", found: labels.len(), expected: rows.len() });
        }
        let mut owned = RowBlock::sparse(rows.cols());
        owned.extend(Rows::Sparse(rows));
        Ok(Self { schema: Schema::Labelled { width: rows.cols() }, rows: owned, labels, next: 0 })
    }

    fn mark_missing(block: &mut RecordBlock) {
        let mut missing = Vec::new();
        for i in 0..block.len() {
            match block.cells.rows().row(i) {
                crate::rows::Row::Dense(values) => {
                    missing.extend((0..values.len()).filter(|&j| values[j].is_nan()).map(|j| (i, j)));
                }
                crate::rows::Row::Sparse { indices, values } => {
                    let places = (0..values.len()).filter(|&j| values[j].is_nan());
                    missing.extend(places.map(|j| (i, indices[j] as usize)));
                    if block.labels[i].is_nan() {
                        missing.push((i, super::LABEL_COLUMN));
                    }
                }
            }
        }
        missing.into_iter().for_each(|(row, column)| block.mark_missing(row, column));
    }
}

impl RecordSource for MemorySource {
    fn origin(&self) -> &str {
        "memory"
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read(&mut self, block: &mut RecordBlock, max_rows: usize) -> Result<bool> {
        let end = self.rows.len().min(self.next.saturating_add(max_rows.max(1)));
        let first_row = self.next as u64 + 1;
        match self.schema {
            Schema::Table { .. } => block.start_table(first_row, self.rows.cols()),
            Schema::Labelled { width } => {
                block.start_labelled(first_row, width);
                block.labels.extend_from_slice(&self.labels[self.next..end]);
            }
        }
        block.cells.extend(self.rows.rows().slice(self.next, end));
        Self::mark_missing(block);
        self.next = end;
        Ok(!block.is_empty())
    }

    fn rereadable(&self) -> bool {
        true
    }

    fn rewind(&mut self) -> Result<()> {
        self.next = 0;
        Ok(())
    }

    fn progress(&self) -> Option<f64> {
        Some(if self.rows.is_empty() { 1.0 } else { self.next as f64 / self.rows.len() as f64 })
    }
}

#[cfg(test)]
mod tests {
    use super::super::LABEL_COLUMN;
    use super::super::testing::{Item, assert_source_laws};
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn tables_read_like_files() {
        let data = (0..14).map(|i| if i == 5 { f64::NAN } else { f64::from(i) }).collect();
        let mut source = MemorySource::table(names(&["x", "y"]), data).unwrap();
        let records = assert_source_laws(&mut source);
        assert_eq!(records.len(), 7);
        assert_eq!(records[2], [(0, Item::Number(4f64.to_bits())), (1, Item::Missing)]);
    }

    #[test]
    fn labelled_rows_read_like_files() {
        let rows = SparseRows::new(&[0, 2, 2, 3], &[0, 4, 1], &[1.0, 2.0, f64::NAN], 5).unwrap();
        let mut source = MemorySource::labelled(rows, vec![1.0, f64::NAN, -1.0]).unwrap();
        let records = assert_source_laws(&mut source);
        assert_eq!(records[1], [(LABEL_COLUMN, Item::Missing)]);
        assert_eq!(records[2], [(1, Item::Missing), (LABEL_COLUMN, Item::Number((-1f64).to_bits()))]);
        assert_eq!(source.schema(), &Schema::Labelled { width: 5 });
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        assert!(MemorySource::table(Vec::new(), Vec::new()).is_err());
        assert!(MemorySource::table(names(&["x", "y"]), vec![1.0; 3]).is_err());
        assert!(MemorySource::table(names(&["x", "x"]), vec![1.0; 4]).is_err());
        let rows = SparseRows::new(&[0, 0], &[], &[], 0).unwrap();
        assert!(MemorySource::labelled(rows, vec![1.0; 2]).is_err());
    }
}
