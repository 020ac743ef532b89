//! What a table's file says: data with checksums, seeds, parameters, and the values that the paper prints.
//!
//! The files lie in `tables/` of this crate, are part of the program, and are checked by the tests.

use std::collections::BTreeMap;

use nystream::{Error, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Where a table comes from, and what holds for all of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Heading {
    pub title: String,
    /// Paper, place, year, number of the table there.
    pub source: String,
    /// What the paper leaves open, and how it is read here; one paragraph each.
    pub notes: Vec<String>,
    /// Orders of every set, their seeds from `first_seed` on.
    pub permutations: u64,
    pub first_seed: u64,
    /// Of the order that settings are tuned on.
    pub tuning_seed: u64,
}

/// A data file as it was when the table was written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DataFile {
    /// Below the folder of the data.
    pub file: String,
    pub sha256: String,
}

/// A way to read a set that the paper leaves open.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Variant {
    /// `none`, `minmax` or `standard`.
    pub scale: String,
    /// `alignment`, `median` or a number.
    pub bandwidth: String,
    /// Whether step sizes are tuned on a stream like those that are run, or on the set it is made of.
    #[serde(default)]
    pub tune_on: TuneOn,
}

impl Variant {
    /// In words.
    pub fn words(&self) -> String {
        let tuned = if self.tune_on == TuneOn::Set { ", tuned on the set" } else { "" };
        match self.bandwidth.parse::<f64>() {
            Ok(_) => format!("scale {}, σ = {}{tuned}", self.scale, self.bandwidth),
            Err(_) => format!("scale {}, σ by {}{tuned}", self.scale, self.bandwidth),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum TuneOn {
    #[default]
    Stream,
    Set,
}

/// A learner in a table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Contender {
    /// As the paper calls it.
    pub title: String,
    /// Whose printed values it stands beside, if not those of its own title.
    pub beside: Option<String>,
    /// Its name here.
    pub learner: String,
    /// If it is not that of the set.
    pub budget: Option<usize>,
    #[serde(default)]
    pub options: BTreeMap<String, String>,
}

impl Contender {
    /// What the paper prints for it.
    pub fn printed<'a>(&self, set: &'a OnlineSet) -> Option<&'a Printed> {
        set.printed.get(self.beside.as_ref().unwrap_or(&self.title))
    }
}

/// What the paper prints: mistakes in percent, errors as they are.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Printed {
    pub mean: f64,
    pub sd: Option<f64>,
    pub seconds: Option<f64>,
    pub atoms: Option<usize>,
}

/// A table of learners over sets.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OnlineTable {
    pub heading: Heading,
    pub learners: Vec<Contender>,
    pub sets: Vec<OnlineSet>,
    pub targets: Vec<Target>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OnlineSet {
    pub name: String,
    pub data: DataFile,
    pub budget: usize,
    /// How much of the rows settings are tuned on.
    pub tune_share: f64,
    /// An adversarial stream of the set's rows in place of the set.
    pub adversarial: Option<Adversarial>,
    pub variants: Vec<Variant>,
    /// By the contender's title.
    pub printed: BTreeMap<String, Printed>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Adversarial {
    pub blocks: usize,
    pub rounds: usize,
}

/// What is to be shown; errors in the unit of the printed values, judged on every set under at least one variant.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Target {
    /// The contender's mean is at most this much above the printed one.
    AtMostAbove { title: String, by: f64 },
    /// The contender's mean is this close to the printed one.
    Within { title: String, by: f64 },
    /// No contender has a smaller mean.
    Best { title: String },
}

/// A table of kernel approximations.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KernelTable {
    pub heading: Heading,
    /// s_p/B, s_m/B and k/B.
    pub projection_share: f64,
    pub sample_share: f64,
    pub rank_share: f64,
    /// d
    pub blocks: usize,
    pub methods: Vec<Method>,
    pub sets: Vec<KernelSet>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Method {
    pub title: String,
    pub approximation: Approximation,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Approximation {
    /// Of the first B rows.
    IncrementalNystrom,
    /// Of s_m rows of all; it needs them at once.
    ModifiedNystrom,
    /// Begun with B rows; then every `every`-th enters.
    Sketch { every: usize, full_inverse: bool },
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KernelSet {
    pub name: String,
    pub data: DataFile,
    pub variants: Vec<Variant>,
    pub budgets: Vec<KernelBudget>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KernelBudget {
    pub budget: usize,
    /// By the method's title.
    pub printed: BTreeMap<String, Printed>,
}

/// Figures of errors and times against a parameter.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FigureTable {
    pub heading: Heading,
    pub figures: Vec<FigureSpec>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FigureSpec {
    /// Of its file.
    pub name: String,
    pub caption: String,
    pub set: String,
    pub data: DataFile,
    pub variant: Variant,
    pub tune_share: f64,
    /// `budget`, or an option of the learner.
    pub x: String,
    pub x_label: String,
    pub values: Vec<f64>,
    pub curves: Vec<Curve>,
    /// What the paper says of it.
    pub claim: Claim,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Curve {
    pub contender: Contender,
    pub budget: usize,
    /// Whether the paper's claim is about it.
    pub claimed: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    pub words: String,
    /// From the first value to the last.
    pub mistakes: Option<Trend>,
    pub seconds: Option<Trend>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Trend {
    Falls,
    Rises,
}

/// A table of the program. The tests read all of them, so an error here is a bug.
pub(super) fn parsed<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|_| Error::Internal("a table's file that cannot be read"))
}
