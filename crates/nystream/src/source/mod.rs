//! Where rows come from: files, standard input, generators, memory.
//!
//! A [`RecordSource`] hands over blocks of raw records: numbers where cells are numbers, and a
//! short list of *oddities* (text, missing cells) where they are not. It knows nothing of targets,
//! categories or scaling; `preprocess` turns records into rows and targets. So numeric files are
//! read at full speed into reused buffers, and every policy about odd cells lives in one place.
//!
//! [`open`](open()) opens a path, `-` for standard input, or a `synth:` generator, and finds the format out:
//!
//! ```no_run
//! use nystream::source::{OpenOptions, RecordBlock, open};
//!
//! let mut source = open("data.csv.gz", &OpenOptions::default())?;
//! let mut block = RecordBlock::default();
//! while source.read(&mut block, 4096)? {
//!     println!("{} records from {} on", block.len(), block.first_row);
//! }
//! # Ok::<(), nystream::Error>(())
//! ```

#[cfg(feature = "arrow")]
mod arrow;
mod csv;
mod decimal;
mod input;
mod jsonl;
mod libsvm;
mod memory;
mod number;
mod open;
#[cfg(feature = "parquet")]
mod parquet;
mod record;
mod stops;
mod synth;
#[cfg(test)]
mod testing;

pub use memory::MemorySource;
pub use number::{Cell, MISSING_SPELLINGS, cell};
pub use open::{Format, OpenOptions, open, open_reader};
pub use record::{LABEL_COLUMN, OddCell, Oddity, RecordBlock, Schema};
pub use stops::Stops;

use crate::error::{Result, input_error as refuse};

/// Something that can be read a block of records at a time, in constant memory.
pub trait RecordSource: Send {
    /// How to name this source in messages: the file name, `stdin`, or `synth:...`.
    fn origin(&self) -> &str;

    /// The columns. For sparse sources the width is what has been seen so far.
    fn schema(&self) -> &Schema;

    /// Clears `block` and fills it with up to `max_rows` records (at least one). Returns false when none are left.
    ///
    /// How a stream is cut into blocks never changes the records. After an error the block's content means nothing.
    fn read(&mut self, block: &mut RecordBlock, max_rows: usize) -> Result<bool>;

    /// Whether [`rewind`](Self::rewind) works: true for files and generators, false for standard input.
    fn rereadable(&self) -> bool;

    /// Starts again from the first record.
    fn rewind(&mut self) -> Result<()>;

    /// How far the reading is, from 0 to 1, where that can be known.
    fn progress(&self) -> Option<f64>;
}

/// Refuses a name that stands twice.
fn refuse_duplicates(origin: &str, names: &[String]) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    match names.iter().find(|name| !seen.insert(name.as_str())) {
        Some(name) => {
            Err(refuse(origin, 0, Some(name), "a column of that name twice", "a different name for every column"))
        }
        None => Ok(()),
    }
}

/// Bytes as a message shows them: the beginning, whatever they are.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(160)]);
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}
