//! From raw records to numeric rows and targets.
//!
//! Two stages. A [`Scan`] reads the records once: it validates them, learns which columns hold
//! categories, which labels exist, and the statistics that scaling and imputation need, in
//! O(columns + levels) memory. [`Scan::finish`] turns what was learnt into a [`Preprocessor`], which
//! is part of a saved model and maps records to rows ready for a kernel, in training and in prediction.
//!
//! During the first pass categories and scaling are not known yet, so [`Scan::encode`] hands out
//! *coded* rows of fixed width, which [`Preprocessor::finish_coded`] completes afterwards;
//! [`Preprocessor::transform`] does both at once. The two ways agree bit for bit, and neither depends
//! on how the stream is cut into blocks: statistics are updated row by row.
//!
//! Decisions, each in one place:
//! - Which column is what: [`TableOptions`] and `columns`.
//! - A column holds categories if its first cell is text (with [`Categorical::OneHot`]) or if its levels were
//!   given. Each level becomes a column of zeros and ones, which is never scaled.
//! - A missing number becomes the mean of its column; a missing category the levels' frequencies, which
//!   are the means of its zero-one columns.
//! - Sparse (LIBSVM) rows are never centred, so they stay sparse; distances do not change by centring.

mod alike;
mod batch;
mod binding;
mod codes;
mod columns;
mod file;
mod first_rows;
mod options;
mod preprocessor;
mod scan;
mod scan_sparse;
mod scan_table;
mod scan_targets;
mod statistics;
#[cfg(test)]
mod tests;
mod transform;
mod weights;

pub use batch::{Batch, CodedBlock};
pub use binding::Binding;
pub use columns::Role;
pub use first_rows::standardise_by_first;
pub use options::{Categorical, ColumnRef, Missing, Scale, TableOptions, TaskRequest};
pub use preprocessor::{ColumnKind, InputColumn, Inputs, Preprocessor, Task};
pub use scan::Scan;

use crate::error::input_error;

/// The most classes or levels of one column.
pub const MAX_CLASSES: usize = 10_000;

/// Text as an error message shows it: quoted, control characters escaped, not too long.
fn quoted(text: &str) -> String {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// The first ten names, for an error message.
fn listing(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let mut list = names.iter().take(SHOWN).map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        list.push_str(&format!(", ... ({} in all)", names.len()));
    }
    list
}

/// Whether all numbers are finite. Integer arithmetic without branches, so that it vectorises.
fn all_finite(values: &[f64]) -> bool {
    const EXPONENT: u64 = 0x7ff0_0000_0000_0000;
    const ONE: u64 = 0x0010_0000_0000_0000;
    // Adding one to an exponent of all ones, and to no other, carries into the sign bit.
    values.iter().fold(0u64, |carry, v| carry | (v.to_bits() & EXPONENT).wrapping_add(ONE)) >> 63 == 0
}
