//! Where rows come from: files, standard input, generators, memory.
//!
//! A [`RecordSource`] hands over blocks of raw records: numbers where cells are numbers, and a
//! short list of *oddities* (text, missing cells) where they are not. It knows nothing of targets,
//! categories or scaling; `preprocess` turns records into rows and targets. So numeric files are
//! read at full speed into reused buffers, and every policy about odd cells lives in one place.

mod record;

pub use record::{LABEL_COLUMN, OddCell, Oddity, RecordBlock, Schema};

use crate::error::Result;

/// Something that can be read a block of records at a time, in constant memory.
pub trait RecordSource {
    /// How to name this source in messages: the file name, `stdin`, or `synth:...`.
    fn origin(&self) -> &str;

    /// The columns. For sparse sources the width is what has been seen so far.
    fn schema(&self) -> &Schema;

    /// Clears `block` and fills it with up to `max_rows` records. Returns false when none are left.
    ///
    /// How a stream is cut into blocks never changes the records.
    fn read(&mut self, block: &mut RecordBlock, max_rows: usize) -> Result<bool>;

    /// Whether [`rewind`](Self::rewind) works: true for files and generators, false for standard input.
    fn rereadable(&self) -> bool;

    /// Starts again from the first record.
    fn rewind(&mut self) -> Result<()>;

    /// How far the reading is, from 0 to 1, where that can be known.
    fn progress(&self) -> Option<f64>;
}
