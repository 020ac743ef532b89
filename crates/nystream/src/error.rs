//! The one error type of the library: what was wrong, where it was found, what was expected.
//!
//! `Internal` means a bug of ours; every other variant can be caused by a caller or by data.

use std::path::{Path, PathBuf};

/// Shorthand for results of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter outside its range.
    #[error("{name}: found {found}, expected {expected}")]
    InvalidParam {
        /// The parameter's name, as the user writes it (`bandwidth`, `ridge`, ...).
        name: &'static str,
        /// What was given.
        found: String,
        /// What would have been right.
        expected: &'static str,
    },
    /// An option of a learner that is unknown or outside its range.
    #[error("{learner}: {name}: found {found}, expected {expected}")]
    InvalidOption {
        /// Whose option.
        learner: &'static str,
        /// The option's name, as the user writes it.
        name: &'static str,
        /// What was given.
        found: String,
        /// What would have been right.
        expected: String,
    },
    /// A value in the data that cannot be used.
    #[error("{origin}: {}: found {found}, expected {expected}", place(*.row, .column))]
    Input {
        /// The file or generator.
        origin: String,
        /// Data row, counted from 1 after any header; 0 when the whole file is meant.
        row: u64,
        /// Column by name (or number), where one cell is to blame.
        column: Option<String>,
        /// What was found there.
        found: String,
        /// What would have been right.
        expected: String,
    },
    /// Arrays whose sizes do not fit together.
    #[error("{what}: found {found}, expected {expected}")]
    Shape {
        /// Which array or count.
        what: &'static str,
        /// Its size.
        found: usize,
        /// The size that fits.
        expected: usize,
    },
    /// A matrix that should be positive definite is not, even after the largest jitter allowed.
    #[error("matrix of {what} is not positive definite at pivot {pivot}, even with {jitter:e} added to its diagonal")]
    NotPositiveDefinite {
        /// What the matrix is.
        what: &'static str,
        /// The pivot that failed.
        pivot: usize,
        /// The largest diagonal addition tried.
        jitter: f64,
    },
    /// Two things that do not belong together, named by the setting that differs.
    #[error("{field} differs: found {found}, expected {expected}")]
    Incompatible {
        /// The setting that differs.
        field: String,
        /// Its value here.
        found: String,
        /// Its value there.
        expected: String,
    },
    /// Bytes that are not a file of ours, or a damaged one.
    #[error("{origin}: not a readable model: {reason}")]
    Format {
        /// The file.
        origin: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Numbers that overflowed: a file of them could not be read again, so none is written.
    #[error("{what} cannot be saved: {place}: found {found}, expected finite numbers")]
    NotFinite {
        /// What was to be saved.
        what: &'static str,
        /// Where in it.
        place: String,
        /// What stands there.
        found: String,
    },
    /// The operating system said no.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done: `read`, `write`, ...
        action: &'static str,
        /// The system's own error.
        source: std::io::Error,
    },
    /// More memory would be needed than allowed.
    #[error("{what} needs {needed_bytes} bytes, more than the {allowed_bytes} allowed; {advice}")]
    TooLarge {
        /// What needs the memory.
        what: &'static str,
        /// How much it needs.
        needed_bytes: u64,
        /// The limit in force.
        allowed_bytes: u64,
        /// What to do instead.
        advice: &'static str,
    },
    /// A bug of ours.
    #[error("internal error (please report): {0}")]
    Internal(&'static str),
}

fn place(row: u64, column: &Option<String>) -> String {
    match (row, column) {
        (0, None) => "the file".to_owned(),
        (0, Some(column)) => format!("column '{column}'"),
        (row, None) => format!("row {row}"),
        (row, Some(column)) => format!("row {row}, column '{column}'"),
    }
}

/// An error about `row` (from 1; 0 for the whole source) and perhaps a column of `origin`.
pub(crate) fn input_error(
    origin: &str,
    row: u64,
    column: Option<&str>,
    found: impl Into<String>,
    expected: impl Into<String>,
) -> Error {
    Error::Input {
        origin: origin.to_owned(),
        row,
        column: column.map(str::to_owned),
        found: found.into(),
        expected: expected.into(),
    }
}

impl Error {
    /// An `Io` error about `path`.
    pub fn io(path: impl Into<PathBuf>, action: &'static str, source: std::io::Error) -> Self {
        Self::Io { path: path.into(), action, source }
    }

    /// An error about settings that differ, with the file that holds what was expected; others stay as they are.
    pub fn as_in(self, file: &Path) -> Self {
        match self {
            Self::Incompatible { field, found, expected } => {
                Self::Incompatible { field, found, expected: format!("{expected} as in {}", file.display()) }
            }
            other => other,
        }
    }

    /// Checks that a parameter is a finite number above zero.
    pub fn require_positive(name: &'static str, value: f64) -> Result<f64> {
        if value.is_finite() && value > 0.0 {
            Ok(value)
        } else {
            Err(Self::InvalidParam { name, found: value.to_string(), expected: "a finite number above 0" })
        }
    }
}

/// The name that takes the fewest letters to get to, for messages about unknown ones; the first of several. None if even
/// that one is another word: if more than a third of the letters differ.
pub fn nearest_name<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let apart = names.into_iter().map(|name| (letters_apart(written, name), name));
    let (letters, name) = apart.min_by_key(|(letters, _)| *letters)?;
    let longer = written.chars().count().max(name.chars().count());
    (3 * letters <= longer).then_some(name)
}

/// What to say after a name that is unknown: "; the nearest is 'name'", or nothing.
pub fn nearest_hint<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest_name(written, names).map_or_else(String::new, |nearest| format!("; the nearest is '{nearest}'"))
}

/// Letters to insert, delete or replace, and neighbours to swap, to get from one word to the other.
fn letters_apart(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut next = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = row[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            next[j] = replaced.min(next[j - 1] + 1).min(row[j] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                next[j] = next[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_letters() {
        for (a, b, expected) in [("", "abc", 3), ("kitten", "sitting", 3), ("same", "same", 0), ("ab", "ba", 1)] {
            assert_eq!(letters_apart(a, b), expected);
        }
        assert_eq!(nearest_name("garantees", ["merge-tree", "guarantees"]), Some("guarantees"));
        assert_eq!(nearest_name("x", []), None);
    }

    #[test]
    fn names_that_resemble_nothing_get_no_hint() {
        let names = ["rbp", "kogd", "projectron"];
        for written in ["xyz", "", "rbf2", "ran"] {
            assert_eq!(nearest_hint(written, names), "", "{written}");
        }
        assert_eq!(nearest_hint("kodg", names), "; the nearest is 'kogd'");
        assert_eq!(nearest_hint("projektrom", names), "; the nearest is 'projectron'");
    }
}
