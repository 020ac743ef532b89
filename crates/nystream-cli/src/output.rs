//! Writing results: standard output or a file that appears whole or not at all.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use nystream::Error;
use nystream::persist::{AtomicFile, write_atomically};

use crate::args::Common;
use crate::report::Report;

/// Why a command ended early.
#[derive(Debug)]
pub enum Failure {
    /// Something is wrong, and the library says what.
    Library(Error),
    /// Whoever was reading our output has stopped (`nystream ... | head`): nothing to complain about.
    ReaderGone,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

/// What a command returns.
pub type Outcome = Result<(), Failure>;

/// An error of writing to standard output.
pub fn stdout_failure(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Failure::ReaderGone
    } else {
        Failure::Library(Error::io("standard output", "write", error))
    }
}

/// Prints text to standard output.
pub fn print(text: &str) -> Outcome {
    let mut out = BufWriter::new(io::stdout().lock());
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(stdout_failure)
}

/// Prints a report as the options say: JSON, a list for people, or nothing.
pub fn show(report: &Report, common: &Common) -> Outcome {
    if common.quiet && !common.json {
        return Ok(());
    }
    let mut out = BufWriter::new(io::stdout().lock());
    report.write(&mut out, common.json).and_then(|()| out.flush()).map_err(stdout_failure)
}

/// Finds out before the work, not after it, whether a file can be written. Nothing is left behind.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    match std::fs::metadata(path) {
        // To open and close a pipe would end it for its reader; devices tell when they are written to.
        Ok(about) if !about.is_file() && !about.is_dir() => Ok(()),
        _ => AtomicFile::create(path).map(drop),
    }
}

/// Writes a text file in one step.
pub fn write_text(path: &Path, text: &str) -> Result<(), Error> {
    write_atomically(path, text.as_bytes())
}
