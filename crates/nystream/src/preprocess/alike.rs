//! Whether two preprocessors make the same rows of the same records.

use super::columns::Columns;
use super::listing;
use super::options::{ColumnRef, TableOptions, TaskRequest};
use super::preprocessor::{ColumnKind, Inputs, Preprocessor, Task};
use crate::error::{Error, Result};

impl Preprocessor {
    /// The same map from records to rows without what is known of targets and rows: for what does not depend on them.
    pub fn of_features_alone(&self) -> Self {
        let mut parts = self.parts.clone();
        let targets = parts.target_names.len();
        (parts.rows, parts.dropped) = (0, 0);
        parts.task = Task::Regression { targets };
        parts.class_counts = Vec::new();
        parts.target_mean = vec![0.0; targets];
        parts.target_variance = vec![0.0; targets];
        parts.constant = Vec::new();
        Self { parts, first_pass: None }
    }

    /// Checks that other options ask for what the ones that this was `made_by` came to: a column may be called by its name, by
    /// its number or not at all, and a task that was found out may be asked for.
    pub fn require_same_reading(&self, made_by: &TableOptions, other: &TableOptions) -> Result<()> {
        let (mut made_by, mut other) = (made_by.clone(), other.clone());
        if let Inputs::Table { named, names, roles, .. } = &self.parts.inputs {
            let planned = Columns::plan(names, *named, "", &other);
            if planned.is_ok_and(|columns| columns.roles == *roles) {
                (other.targets, other.ignore) = (made_by.targets.clone(), made_by.ignore.clone());
            } else if made_by.targets.is_empty() && !other.targets.is_empty() {
                made_by.targets = self.target_names().iter().cloned().map(ColumnRef).collect();
            }
        }
        let found = match self.task() {
            Task::Regression { .. } => TaskRequest::Regression,
            Task::Classification { .. } => TaskRequest::Classification,
        };
        // Not the other way round: what would have been found in place of a task that was asked for is not known.
        if made_by.task == TaskRequest::Auto && other.task == found {
            other.task = TaskRequest::Auto;
        }
        made_by.require_same(&other)
    }

    /// Checks that both make the same rows of the same records, and says by name what differs. Widths of sparse rows
    /// may differ if they are not scaled.
    pub fn require_same_rows(&self, other: &Self) -> Result<()> {
        let (ours, theirs) = (&self.parts, &other.parts);
        let kind = |sparse: bool| if sparse { "sparse rows" } else { "a table" };
        same("kind of data", kind(self.is_sparse()), kind(other.is_sparse()))?;
        same("scale", ours.scaling, theirs.scaling)?;
        same("missing", ours.missing, theirs.missing)?;
        match (&ours.inputs, &theirs.inputs) {
            (Inputs::Table { kinds, .. }, Inputs::Table { kinds: other_kinds, .. }) => {
                let names = |of: &Self| listing(&of.input_columns().map(|c| c.name.to_owned()).collect::<Vec<_>>());
                let different = self.input_columns().map(|c| c.name).ne(other.input_columns().map(|c| c.name));
                if different {
                    return Err(differs("feature names", names(other), names(self)));
                }
                let place = kinds.iter().zip(other_kinds).position(|(ours, theirs)| ours != theirs);
                if let Some((name, i)) = place.and_then(|i| self.input_columns().nth(i).map(|c| (c.name, i))) {
                    let (found, expected) = (kind_words(&other_kinds[i]), kind_words(&kinds[i]));
                    return Err(differs(&format!("levels of column '{name}'"), found, expected));
                }
            }
            _ if !ours.scale.is_empty() || !ours.fill.is_empty() => {
                same("number of features", self.feature_count(), other.feature_count())?;
            }
            _ => {}
        }
        for (what, ours, theirs) in [
            ("shift", &ours.shift, &theirs.shift),
            ("scale", &ours.scale, &theirs.scale),
            ("mean", &ours.fill, &theirs.fill),
        ] {
            if let Some(j) = ours.iter().zip(theirs).position(|(ours, theirs)| ours != theirs) {
                let field = format!("{what} of feature '{}'", self.feature_name(j));
                return Err(differs(&field, theirs[j], ours[j]));
            }
        }
        Ok(())
    }
}

/// What a column holds, in words.
fn kind_words(kind: &ColumnKind) -> String {
    match kind {
        ColumnKind::Number => "numbers".to_owned(),
        ColumnKind::Category { levels } => listing(levels),
    }
}

fn same<T: PartialEq + ToString>(field: &str, ours: T, theirs: T) -> Result<()> {
    if ours == theirs { Ok(()) } else { Err(differs(field, theirs, ours)) }
}

fn differs(field: &str, found: impl ToString, expected: impl ToString) -> Error {
    Error::Incompatible { field: field.to_owned(), found: found.to_string(), expected: expected.to_string() }
}
