//! What every source must do, checked the same way for all of them.

use std::io::{Cursor, Write};

use super::{LABEL_COLUMN, OddCell, OpenOptions, RecordBlock, RecordSource, open, open_reader};
use crate::error::Result;
use crate::rows::Row;

/// A cell as a test compares it: numbers by their bits.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    Number(u64),
    Missing,
    Text(String),
}

/// A record as (column, cell), the label of a sparse row last.
pub type Record = Vec<(usize, Item)>;

/// Opens text as if it came through a pipe.
pub fn text_source(text: &str, options: &OpenOptions) -> Result<Box<dyn RecordSource>> {
    open_reader("pipe", Box::new(Cursor::new(text.as_bytes().to_vec())), options)
}

/// Writes a temporary file and returns it with its path.
pub fn file_with(bytes: &[u8], suffix: &str) -> (tempfile::NamedTempFile, String) {
    let mut file = tempfile::Builder::new().suffix(suffix).tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.flush().unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    (file, path)
}

/// Everything that is left, in blocks of `rows`.
pub fn read_all(source: &mut dyn RecordSource, rows: usize) -> Vec<Record> {
    try_read_all(source, rows).unwrap()
}

/// As `read_all`, or the first error.
pub fn try_read_all(source: &mut dyn RecordSource, rows: usize) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    let mut block = RecordBlock::default();
    while source.read(&mut block, rows)? {
        assert!(!block.is_empty() && block.len() <= rows);
        assert_eq!(block.first_row, records.len() as u64 + 1);
        push_records(&block, &mut records);
    }
    assert!(block.is_empty());
    assert!(!source.read(&mut block, rows)?, "the end is not final");
    Ok(records)
}

fn push_records(block: &RecordBlock, records: &mut Vec<Record>) {
    let places: Vec<_> = block.oddities.iter().map(|odd| (odd.row, odd.column)).collect();
    assert!(places.is_sorted_by(|a, b| a < b), "oddities out of order: {places:?}");
    let mut odd = block.oddities.iter().peekable();
    for i in 0..block.len() {
        let mut cells: Vec<(usize, f64)> = match block.cells.rows().row(i) {
            Row::Dense(values) => values.iter().copied().enumerate().collect(),
            Row::Sparse { indices, values } => {
                indices.iter().map(|&j| j as usize).zip(values.iter().copied()).collect()
            }
        };
        if block.cells.is_sparse() {
            cells.push((LABEL_COLUMN, block.labels[i]));
        }
        let record = cells.into_iter().map(|(column, value)| {
            let item = match odd.next_if(|odd| (odd.row, odd.column) == (i, column)) {
                Some(odd) => {
                    assert!(value.is_nan());
                    match odd.cell {
                        OddCell::Missing => Item::Missing,
                        cell => Item::Text(block.text(cell).unwrap().to_owned()),
                    }
                }
                None => {
                    assert!(!value.is_nan(), "NaN without an oddity in row {i}, column {column}");
                    Item::Number(value.to_bits())
                }
            };
            (column, item)
        });
        records.push(record.collect());
    }
    assert!(odd.next().is_none(), "an oddity points nowhere");
}

/// Chunking changes nothing, rewinding gives the same records, progress grows from 0 to 1.
pub fn assert_source_laws(source: &mut dyn RecordSource) -> Vec<Record> {
    assert!(source.rereadable());
    let records = read_all(source, 1000);
    let schema = source.schema().clone();
    for rows in [1, 3, 1000] {
        source.rewind().unwrap();
        assert_eq!(read_all(source, rows), records, "in blocks of {rows}");
        assert_eq!(source.schema(), &schema);
        assert_eq!(source.progress(), Some(1.0));
    }
    source.rewind().unwrap();
    let mut block = RecordBlock::default();
    let mut last = 0.0;
    while source.read(&mut block, 1).unwrap() {
        let progress = source.progress().unwrap();
        assert!((last..=1.0).contains(&progress), "progress went from {last} to {progress}");
        last = progress;
    }
    records
}

/// The laws for a file of these bytes, and for the same bytes through a pipe.
pub fn assert_laws(bytes: &[u8], suffix: &str, options: &OpenOptions) -> Vec<Record> {
    let (_file, path) = file_with(bytes, suffix);
    let mut source = open(&path, options).unwrap();
    assert_eq!(source.origin(), path);
    let records = assert_source_laws(source.as_mut());
    let mut piped = open_reader("pipe", Box::new(Cursor::new(bytes.to_vec())), options).unwrap();
    assert_eq!(read_all(piped.as_mut(), 2), records, "through a pipe");
    assert!(!piped.rereadable() && piped.rewind().is_err() && piped.progress().is_none());
    records
}

/// The message of the error that opening or reading gives.
pub fn error_of(source: Result<Box<dyn RecordSource>>) -> String {
    match source.and_then(|mut source| try_read_all(source.as_mut(), 2)) {
        Ok(records) => panic!("no error, but {records:?}"),
        Err(error) => error.to_string(),
    }
}
