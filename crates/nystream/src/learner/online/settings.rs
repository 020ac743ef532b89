//! What a learner is made from.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::kernel::Kernel;

/// What targets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Targets {
    /// ±1, for two classes.
    Classes,
    /// Any number.
    Numbers,
}

impl fmt::Display for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Classes => "classes",
            Self::Numbers => "numbers",
        })
    }
}

/// Everything about a learner but its name and the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnerSettings {
    /// The kernel.
    pub kernel: Kernel,
    /// Most rows kept.
    #[doc(alias = "B")]
    pub budget: usize,
    /// Columns of a row.
    pub features: usize,
    /// What targets are.
    pub targets: Targets,
    /// Of all random choices.
    pub seed: u64,
    /// Length of the stream, where it is known; some learners set their step or their cycle by it.
    #[doc(alias = "T")]
    pub expected_rows: Option<u64>,
    /// The learner's own options, as they are written: checked against the table when the learner is made.
    pub options: BTreeMap<String, String>,
}

impl LearnerSettings {
    /// Budget 200, seed 0, no options.
    pub fn new(kernel: Kernel, features: usize, targets: Targets) -> Self {
        Self { kernel, budget: 200, features, targets, seed: 0, expected_rows: None, options: BTreeMap::new() }
    }

    /// With an option set. Numbers are kept to the last bit.
    pub fn with(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.options.insert(name.to_owned(), value.to_string());
        self
    }
}
