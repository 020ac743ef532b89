//! Real sets in a folder.

use std::path::{Path, PathBuf};

use nystream::random::Generator;
use nystream::source::{MemorySource, OpenOptions, RecordBlock, Schema, open};
use nystream::{Error, Result};

/// The file of this name, which ends in `.gz`, or the same unpacked where only that is there.
pub(crate) fn file(folder: &Path, name: &str) -> PathBuf {
    let packed = folder.join(name);
    match name.strip_suffix(".gz").map(|name| folder.join(name)) {
        Some(plain) if !packed.exists() && plain.exists() => plain,
        _ => packed,
    }
}

/// Numbers under named columns, in the order of the file.
#[derive(Debug)]
pub(crate) struct Numbers {
    names: Vec<String>,
    data: Vec<f64>,
}

impl Numbers {
    /// Reads a table that has a number in every cell.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let mut source = open(&path.to_string_lossy(), &OpenOptions::default())?;
        let mut block = RecordBlock::default();
        let mut data = Vec::new();
        while source.read(&mut block, 4096)? {
            if let Some(odd) = block.oddities.first() {
                let column = Some(source.schema().column_name(odd.column));
                let (origin, row) = (source.origin().to_owned(), block.first_row + odd.row as u64);
                let found = "text or nothing".to_owned();
                return Err(Error::Input { origin, row, column, found, expected: "a number".to_owned() });
            }
            let cells = block.cells.rows();
            let start = data.len();
            data.resize(start + cells.len() * cells.cols(), 0.0);
            data[start..].chunks_exact_mut(cells.cols()).enumerate().for_each(|(i, row)| cells.row(i).copy_to(row));
        }
        match source.schema() {
            Schema::Table { names, .. } => Ok(Self { names: names.clone(), data }),
            Schema::Labelled { .. } => Err(Error::Input {
                origin: source.origin().to_owned(),
                row: 0,
                column: None,
                found: "labelled rows".to_owned(),
                expected: "a table".to_owned(),
            }),
        }
    }

    /// The first `most` rows of an order shuffled by the seed: nine tenths of them, and the rest.
    pub(crate) fn split(&self, seed: u64, most: usize) -> Result<(MemorySource, MemorySource)> {
        let cols = self.names.len();
        let mut order: Vec<usize> = (0..self.data.len() / cols).collect();
        Generator::new(seed).shuffle(&mut order);
        order.truncate(most);
        let (train, test) = order.split_at(order.len() - order.len() / 10);
        let part = |rows: &[usize]| {
            let data = rows.iter().flat_map(|&i| &self.data[i * cols..(i + 1) * cols]).copied().collect();
            MemorySource::table(self.names.clone(), data)
        };
        Ok((part(train)?, part(test)?))
    }
}

#[cfg(test)]
mod tests {
    use nystream::source::RecordSource;

    use super::*;

    fn first_column(source: &mut MemorySource) -> Vec<f64> {
        let mut block = RecordBlock::default();
        assert!(source.read(&mut block, 1000).unwrap());
        let rows = block.cells.rows();
        let mut row = vec![0.0; rows.cols()];
        let mut take = |i| {
            rows.row(i).copy_to(&mut row);
            row[0]
        };
        (0..rows.len()).map(&mut take).collect()
    }

    #[test]
    fn a_split_has_every_row_once_and_follows_its_seed() {
        let folder = tempfile::tempdir().unwrap();
        let lines: String = (0..50).map(|i| format!("{i},{}\n", 2 * i)).collect();
        std::fs::write(folder.path().join("a.csv"), format!("x,target\n{lines}")).unwrap();
        let path = file(folder.path(), "a.csv.gz");
        assert!(path.ends_with("a.csv"));
        let numbers = Numbers::read(&path).unwrap();
        let parts = |seed, most| {
            let (mut train, mut test) = numbers.split(seed, most).unwrap();
            (first_column(&mut train), first_column(&mut test))
        };
        let (train, test) = parts(1, usize::MAX);
        assert_eq!((train.len(), test.len()), (45, 5));
        let mut all = [train.clone(), test.clone()].concat();
        assert_ne!(all, (0..50).map(f64::from).collect::<Vec<_>>());
        all.sort_by(f64::total_cmp);
        assert_eq!(all, (0..50).map(f64::from).collect::<Vec<_>>());
        assert_eq!(parts(1, usize::MAX), (train.clone(), test));
        assert_ne!(parts(2, usize::MAX).0, train);
        assert_eq!((parts(1, 20).0.len(), parts(1, 20).1.len()), (18, 2));
    }

    #[test]
    fn cells_that_are_no_numbers_and_files_that_are_not_there_are_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.csv"), "x,target\n1,2\nred,4\n").unwrap();
        let message = Numbers::read(&file(folder.path(), "a.csv.gz")).unwrap_err().to_string();
        assert!(message.contains("row 2") && message.contains("'x'"), "{message}");
        let message = Numbers::read(&file(folder.path(), "b.csv.gz")).unwrap_err().to_string();
        assert!(message.contains("b.csv.gz"), "{message}");
    }
}
