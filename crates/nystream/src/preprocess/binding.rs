//! Fits a preprocessor to the columns of a source: the training data again, or data to predict.

use std::ops::Range;

use super::codes::Lookup;
use super::columns::{Columns, Role, Run, runs};
use super::input_error;
use super::preprocessor::{ColumnKind, InputColumn, Inputs, Preprocessor};
use crate::error::{Error, Result};
use crate::source::Schema;

/// Where features are read and written.
#[derive(Debug, Clone, Default)]
pub(super) struct Layout {
    /// Number columns.
    pub runs: Vec<Run>,
    /// Category columns.
    pub categories: Vec<CategoryPlace>,
    /// Where each feature column is written, and the end.
    starts: Vec<usize>,
}

/// A category column, read at `from` and written from `to` on.
#[derive(Debug, Clone, Copy)]
pub(super) struct CategoryPlace {
    pub feature: usize,
    pub from: usize,
    pub to: usize,
    pub len: usize,
}

impl Layout {
    /// Feature `j` is read at `from(j)`.
    pub fn new(kinds: &[ColumnKind], from: impl Fn(usize) -> usize) -> Self {
        let mut starts = vec![0];
        let mut categories = Vec::new();
        let mut numbers = Vec::new();
        let mut to = 0;
        for (feature, kind) in kinds.iter().enumerate() {
            match kind {
                ColumnKind::Number => numbers.push((from(feature), to)),
                ColumnKind::Category { levels } => {
                    categories.push(CategoryPlace { feature, from: from(feature), to, len: levels.len() });
                }
            }
            to += kind.width();
            starts.push(to);
        }
        Self { runs: runs(numbers.into_iter()), categories, starts }
    }
    /// Where feature column `j` is written.
    pub fn output(&self, j: usize) -> Range<usize> {
        self.starts[j]..self.starts[j + 1]
    }
    /// Columns written.
    pub fn width(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }
}

/// How to read a certain source with a certain [`Preprocessor`]; made by [`Preprocessor::bind`].
#[derive(Debug, Clone)]
pub struct Binding {
    pub(super) origin: String,
    pub(super) shape: Shape,
    pub(super) labels: Lookup,
}

#[derive(Debug, Clone)]
pub(super) enum Shape {
    Table { columns: Box<Columns>, layout: Layout, levels: Vec<Option<Lookup>> },
    Sparse,
}

impl Binding {
    /// Whether the source has the targets.
    pub fn has_targets(&self) -> bool {
        match &self.shape {
            Shape::Table { columns, .. } => !columns.targets.is_empty(),
            Shape::Sparse => true,
        }
    }
}

impl Preprocessor {
    /// Checks that a source has the features of the training data and finds out where.
    ///
    /// Named columns must have the same names in the same order, where targets, weights and ignored columns may be absent or
    /// stand anywhere. If either table has no names, the columns must be all those of the training data, or its
    /// features alone.
    pub fn bind(&self, schema: &Schema, origin: &str) -> Result<Binding> {
        let shape = match (&self.parts.inputs, schema) {
            (Inputs::Sparse { .. }, Schema::Labelled { .. }) => Shape::Sparse,
            (Inputs::Table { named, names, roles, kinds }, Schema::Table { names: found, named: found_named }) => {
                let columns = if found == names {
                    Columns::new(found.clone(), roles.clone())
                } else if *named && *found_named {
                    self.match_names(found, origin)?
                } else {
                    self.match_count(found, roles, origin)?
                };
                let layout = Layout::new(kinds, |j| columns.features[j]);
                let levels = kinds.iter().map(|kind| match kind {
                    ColumnKind::Number => None,
                    ColumnKind::Category { levels } => Some(Lookup::new(levels)),
                });
                Shape::Table { levels: levels.collect(), columns: Box::new(columns), layout }
            }
            (trained, _) => {
                let (table, sparse) = ("a table of columns", "sparse labelled rows (LIBSVM)");
                let trained_on_table = matches!(trained, Inputs::Table { .. });
                let (found, expected) = if trained_on_table { (sparse, table) } else { (table, sparse) };
                return Err(Error::Incompatible {
                    field: format!("the kind of data in {origin}"),
                    found: found.to_owned(),
                    expected: format!("{expected}, as in training"),
                });
            }
        };
        Ok(Binding { origin: origin.to_owned(), shape, labels: Lookup::new(self.labels()) })
    }

    fn match_names(&self, found: &[String], origin: &str) -> Result<Columns> {
        let (ignored, weight) = (self.ignored_names(), self.weight_name());
        let mut places = vec![None; self.target_count()];
        let mut roles = Vec::with_capacity(found.len());
        let mut features: Vec<&str> = Vec::new();
        for (at, name) in found.iter().enumerate() {
            if let Some(k) = self.target_names().iter().position(|target| target == name) {
                if places[k].replace(at).is_some() {
                    return Err(input_error(
                        origin,
                        0,
                        Some(name),
                        "several columns of this name",
                        "one target column",
                    ));
                }
                roles.push(Role::Target(k));
            } else if ignored.contains(&name.as_str()) {
                roles.push(Role::Ignored);
            } else if weight == Some(name.as_str()) {
                roles.push(Role::Weight);
            } else {
                roles.push(Role::Feature(features.len()));
                features.push(name);
            }
        }
        if places.contains(&None) {
            // Some targets cannot be compared with; the others are no features either.
            for at in places.into_iter().flatten() {
                roles[at] = Role::Ignored;
            }
        }
        let expected: Vec<&str> = self.input_columns().map(|InputColumn { name, .. }| name).collect();
        if features == expected {
            return Ok(Columns::new(found.to_vec(), roles));
        }
        let differs = features.iter().zip(&expected).take_while(|(found, expected)| found == expected).count();
        let (mut sorted, mut sorted_expected) = (features.clone(), expected.clone());
        sorted.sort_unstable();
        sorted_expected.sort_unstable();
        let here = match features.get(differs) {
            Some(name) if sorted == sorted_expected => {
                format!("'{name}' (the features are those of training, but in another order)")
            }
            Some(name) if !expected.contains(name) => format!("'{name}', which was not in the training data"),
            Some(name) => format!("'{name}'"),
            None => "no more columns".to_owned(),
        };
        let expected = match expected.get(differs) {
            Some(name) if features.contains(name) => format!("'{name}'"),
            Some(name) => format!("'{name}', which is missing"),
            None => format!("only the {} features of training", expected.len()),
        };
        Err(Error::Incompatible { field: format!("feature {} of {origin}", differs + 1), found: here, expected })
    }

    fn match_count(&self, found: &[String], roles: &[Role], origin: &str) -> Result<Columns> {
        let features = self.input_columns().count();
        let roles = match found.len() {
            all if all == roles.len() => roles.to_vec(),
            count if count == features => (0..features).map(Role::Feature).collect(),
            count => {
                return Err(Error::Incompatible {
                    field: format!("the number of columns of {origin}"),
                    found: count.to_string(),
                    expected: format!("{features} (the features of training) or {} (all its columns)", roles.len()),
                });
            }
        };
        Ok(Columns::new(found.to_vec(), roles))
    }
}
