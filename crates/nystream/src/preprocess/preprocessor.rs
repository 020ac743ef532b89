//! What the first pass learnt: everything needed to turn records into rows, in training and in prediction.

use std::collections::HashSet;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::binding::Layout;
use super::columns::Role;
use super::options::{Missing, Scale};
use super::scan_targets::TargetCode;
use crate::error::{Error, Result};

/// What a feature column holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ColumnKind {
    /// Numbers.
    Number,
    /// One of these levels.
    Category {
        /// Names of the levels, in the order of their zero-one columns.
        levels: Vec<String>,
    },
}

impl ColumnKind {
    /// Number of features the column becomes.
    pub fn width(&self) -> usize {
        match self {
            Self::Number => 1,
            Self::Category { levels } => levels.len(),
        }
    }
}

/// A feature column as it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputColumn<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it holds.
    pub kind: &'a ColumnKind,
}

/// The columns of the training data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Inputs {
    /// A table.
    Table {
        /// Whether the names come from the file.
        named: bool,
        /// Names of all columns, targets and ignored ones included.
        names: Vec<String>,
        /// Roles of all columns.
        roles: Vec<Role>,
        /// What each feature column holds.
        kinds: Vec<ColumnKind>,
    },
    /// A label and sparse numbered features.
    Sparse {
        /// Number of features.
        width: usize,
    },
}

/// What is to be predicted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Task {
    /// Numbers.
    Regression {
        /// How many a row.
        targets: usize,
    },
    /// One of these classes.
    Classification {
        /// Names of the classes in the order of their indices: by number if all are numbers, else by text.
        labels: Vec<String>,
    },
}

/// The stored fields; [`check`](Parts::check) says what holds between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Parts {
    pub rows: u64,
    pub dropped: u64,
    pub missing: Missing,
    pub scaling: Scale,
    pub inputs: Inputs,
    pub target_names: Vec<String>,
    pub task: Task,
    pub class_counts: Vec<u64>,
    pub target_mean: Vec<f64>,
    pub target_variance: Vec<f64>,
    /// Per feature: what is subtracted; empty if nothing is.
    pub shift: Vec<f64>,
    /// Per feature: what is divided by; empty without scaling.
    pub scale: Vec<f64>,
    /// Per feature: stands for a missing cell, before scaling; empty unless cells may be missing.
    pub fill: Vec<f64>,
    /// Features that were the same in all rows, increasing.
    pub constant: Vec<u32>,
}

/// How the first pass coded rows; known only to the process that made that pass.
#[derive(Debug, Clone)]
pub(super) struct FirstPass {
    /// For each feature column, the final position of each level code.
    pub levels: Vec<Vec<u32>>,
    pub targets: TargetCode,
    pub layout: Layout,
}

/// Turns records into rows of numbers and targets.
///
/// Part of a saved model. Reading one back checks it, so that damaged bytes give an error and no panic later.
#[derive(Debug, Clone)]
pub struct Preprocessor {
    pub(super) parts: Parts,
    pub(super) first_pass: Option<FirstPass>,
}

/// Equal if they map records alike; how the first pass coded its rows does not count.
impl PartialEq for Preprocessor {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl Serialize for Preprocessor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.parts.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Preprocessor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parts = Parts::deserialize(deserializer)?;
        parts.check().map_err(serde::de::Error::custom)?;
        Ok(Self { parts, first_pass: None })
    }
}

impl Preprocessor {
    /// Number of features after expansion: the width of the rows handed out.
    pub fn feature_count(&self) -> usize {
        self.parts.feature_count()
    }
    /// Name of feature `index` after expansion: `size`, `color=red`; sparse features are called by number, from 1.
    pub fn feature_name(&self, index: usize) -> String {
        if let Inputs::Sparse { .. } = self.parts.inputs {
            return (index + 1).to_string();
        }
        let mut rest = index;
        for InputColumn { name, kind } in self.input_columns() {
            match kind {
                ColumnKind::Number if rest == 0 => return name.to_owned(),
                ColumnKind::Category { levels } if rest < levels.len() => return format!("{name}={}", levels[rest]),
                _ => rest -= kind.width(),
            }
        }
        String::new()
    }
    /// Names of all features after expansion. For sparse data use [`feature_name`](Self::feature_name) on the few of
    /// interest.
    pub fn feature_names(&self) -> Vec<String> {
        if let Inputs::Sparse { width } = self.parts.inputs {
            return (1..=width).map(|number| number.to_string()).collect();
        }
        let mut names = Vec::with_capacity(self.feature_count());
        for InputColumn { name, kind } in self.input_columns() {
            match kind {
                ColumnKind::Number => names.push(name.to_owned()),
                ColumnKind::Category { levels } => names.extend(levels.iter().map(|level| format!("{name}={level}"))),
            }
        }
        names
    }
    /// The columns of the training data.
    pub fn inputs(&self) -> &Inputs {
        &self.parts.inputs
    }
    /// Feature columns before expansion; none for sparse data.
    pub fn input_columns(&self) -> impl Iterator<Item = InputColumn<'_>> {
        let (names, roles, kinds): (&[String], &[Role], &[ColumnKind]) = match &self.parts.inputs {
            Inputs::Table { names, roles, kinds, .. } => (names, roles, kinds),
            Inputs::Sparse { .. } => (&[], &[], &[]),
        };
        let features = names.iter().zip(roles).filter(|(_, role)| matches!(role, Role::Feature(_)));
        features.zip(kinds).map(|((name, _), kind)| InputColumn { name, kind })
    }
    /// Names of the columns that were left out on request.
    pub fn ignored_names(&self) -> Vec<&str> {
        let Inputs::Table { names, roles, .. } = &self.parts.inputs else { return Vec::new() };
        names.iter().zip(roles).filter(|(_, role)| **role == Role::Ignored).map(|(name, _)| name.as_str()).collect()
    }
    /// Whether rows are sparse.
    pub fn is_sparse(&self) -> bool {
        matches!(self.parts.inputs, Inputs::Sparse { .. })
    }
    /// What is to be predicted.
    pub fn task(&self) -> &Task {
        &self.parts.task
    }
    /// Names of the classes; none for regression.
    pub fn labels(&self) -> &[String] {
        match &self.parts.task {
            Task::Classification { labels } => labels,
            Task::Regression { .. } => &[],
        }
    }
    /// Names of the target columns.
    pub fn target_names(&self) -> &[String] {
        &self.parts.target_names
    }
    /// Number of targets a row: those of a regression, 1 for classification.
    pub fn target_count(&self) -> usize {
        self.parts.target_names.len()
    }
    /// Rows of the first pass, without those left out.
    pub fn rows(&self) -> u64 {
        self.parts.rows
    }
    /// Rows of the first pass that were left out because of missing cells.
    pub fn dropped_rows(&self) -> u64 {
        self.parts.dropped
    }
    /// Rows of each class; empty for regression.
    pub fn class_counts(&self) -> &[u64] {
        &self.parts.class_counts
    }
    /// Mean of each target; empty for classification.
    pub fn target_mean(&self) -> &[f64] {
        &self.parts.target_mean
    }
    /// Population variance of each target; empty for classification.
    pub fn target_variance(&self) -> &[f64] {
        &self.parts.target_variance
    }
    /// How number columns are scaled.
    pub fn scaling(&self) -> Scale {
        self.parts.scaling
    }
    /// What happens to missing cells.
    pub fn missing(&self) -> Missing {
        self.parts.missing
    }
    /// What is subtracted from each feature; empty without scaling and for sparse data.
    pub fn shift(&self) -> &[f64] {
        &self.parts.shift
    }
    /// What each feature is divided by after the subtraction; empty without scaling.
    pub fn scale(&self) -> &[f64] {
        &self.parts.scale
    }
    /// Names of the features that were the same in all rows of the first pass.
    ///
    /// Sparse data: only if it was scaled or imputed, and only features that occur at all.
    pub fn constant_features(&self) -> Vec<String> {
        let constant = &self.parts.constant;
        if self.is_sparse() {
            return constant.iter().map(|&index| self.feature_name(index as usize)).collect();
        }
        let names = self.feature_names();
        constant.iter().map(|&index| names[index as usize].clone()).collect()
    }
}

impl Parts {
    pub fn feature_count(&self) -> usize {
        match &self.inputs {
            Inputs::Table { kinds, .. } => kinds.iter().map(ColumnKind::width).sum(),
            Inputs::Sparse { width } => *width,
        }
    }

    /// Checks that the fields fit together.
    pub fn check(&self) -> Result<()> {
        let width = self.feature_count();
        let must = |holds: bool, reason: &str| {
            if holds { Ok(()) } else { Err(Error::Format { origin: "preprocessor".into(), reason: reason.into() }) }
        };
        must(width > 0, "there are no features")?;
        let targets = self.target_names.len();
        must(targets > 0, "there is no target")?;
        match &self.inputs {
            Inputs::Sparse { width } => {
                must(*width as u64 <= 1 << 32, "the sparse width is above 2^32")?;
                must(targets == 1 && self.shift.is_empty(), "sparse data has one label and is not centred")?;
            }
            Inputs::Table { names, roles, kinds, .. } => {
                must(names.len() == roles.len(), "columns and roles differ in number")?;
                let features =
                    roles.iter().filter_map(|role| if let Role::Feature(j) = role { Some(*j) } else { None });
                must(features.eq(0..kinds.len()), "features are not numbered in order")?;
                let mut places = vec![false; targets];
                for (name, role) in names.iter().zip(roles) {
                    if let Role::Target(k) = role {
                        let fits = self.target_names.get(*k) == Some(name) && !places[*k];
                        must(fits, "targets are not numbered as they are named")?;
                        places[*k] = true;
                    }
                }
                must(places.iter().all(|&placed| placed), "a target has no column")?;
                let weights = roles.iter().filter(|role| **role == Role::Weight).count();
                must(weights <= 1, "there is more than one column of weights")?;
                for kind in kinds {
                    if let ColumnKind::Category { levels } = kind {
                        must(!levels.is_empty() && all_different(levels), "levels must be some and different")?;
                    }
                }
            }
        }
        match &self.task {
            Task::Regression { targets: count } => {
                let complete = self.target_mean.len() == targets && self.target_variance.len() == targets;
                must(*count == targets && complete, "targets and their statistics differ in number")?;
            }
            Task::Classification { labels } => {
                must(targets == 1 && labels.len() >= 2, "classification has one target and two labels or more")?;
                must(all_different(labels), "labels must be different")?;
                must(self.class_counts.len() == labels.len(), "labels and class counts differ in number")?;
            }
        }
        let sized = |values: &[f64], needed: bool| values.len() == if needed { width } else { 0 };
        let scaled = self.scaling != Scale::None;
        must(sized(&self.scale, scaled), "features and scales differ in number")?;
        must(sized(&self.fill, self.missing == Missing::Mean), "features and means differ in number")?;
        let centred = scaled && matches!(self.inputs, Inputs::Table { .. });
        must(sized(&self.shift, centred), "features and shifts differ in number")?;
        must(self.scale.iter().all(|s| s.is_finite() && *s > 0.0), "scales must be finite and above 0")?;
        must(self.shift.iter().chain(&self.fill).all(|v| v.is_finite()), "shifts and means must be finite")?;
        must(self.constant.iter().all(|&index| (index as usize) < width), "a constant feature does not exist")
    }
}

fn all_different(names: &[String]) -> bool {
    let mut seen = HashSet::with_capacity(names.len());
    names.iter().all(|name| seen.insert(name))
}
