//! CSV files from our own generator: 20 features and a target.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use nystream::rows::Row;
use nystream::source::{OpenOptions, RecordBlock, RecordSource, Schema, open};

use crate::Outcome;

/// Features of every row.
pub const FEATURES: usize = 20;

/// How numbers are written.
#[derive(Debug, Clone, Copy)]
pub enum Digits {
    /// Six after the point.
    Six,
    /// As many as needed to read the same number back.
    All,
}

/// A CSV file that can grow: rows of one stream, in order.
pub struct Growing {
    source: Box<dyn RecordSource>,
    digits: Digits,
    file: BufWriter<File>,
}

impl Growing {
    /// A file with a header alone, of a stream of up to `rows` rows.
    pub fn create(path: &Path, rows: usize, digits: Digits) -> Outcome<Self> {
        let location = format!("synth:friedman?n={rows}&d={FEATURES}&seed=1");
        let source = open(&location, &OpenOptions::default())?;
        let file = File::create(path).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        let mut file = BufWriter::with_capacity(1 << 20, file);
        if let Schema::Table { names, .. } = source.schema() {
            writeln!(file, "{}", names.join(","))?;
        }
        Ok(Self { source, digits, file })
    }

    /// Appends the next `rows` rows, and leaves the file complete.
    pub fn grow(&mut self, rows: usize) -> Outcome {
        let mut block = RecordBlock::default();
        let mut left = rows;
        while left > 0 && self.source.read(&mut block, left.min(4096))? {
            for i in 0..block.len() {
                let Row::Dense(cells) = block.cells.rows().row(i) else {
                    return Err("the generator's rows are not dense".into());
                };
                for (j, cell) in cells.iter().enumerate() {
                    let separator = if j == 0 { "" } else { "," };
                    match self.digits {
                        Digits::Six => write!(self.file, "{separator}{cell:.6}")?,
                        Digits::All => write!(self.file, "{separator}{cell}")?,
                    }
                }
                writeln!(self.file)?;
            }
            left -= block.len();
        }
        Ok(self.file.flush()?)
    }
}
