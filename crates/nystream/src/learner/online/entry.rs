//! What every learner is: the trait, and its line in the table.

use super::options::{Chosen, OptionSpec};
use super::settings::{LearnerSettings, Targets};
use crate::error::Result;
use crate::persist::Container;
use crate::rows::Row;

/// A learner that takes one row at a time.
///
/// Rows and targets have been checked before they come here: finite, of the settings' width, targets of classes ±1.
/// Callers use [`Learner`](super::Learner), which does that.
pub trait OnlineLearner: std::fmt::Debug + Send {
    /// The output for a row: its sign is the class, or it is the number. Only scratch memory may change.
    fn predict(&mut self, row: Row) -> f64;
    /// Takes a row with its target, and returns the output predicted before learning it.
    fn learn(&mut self, row: Row, target: f64) -> Result<f64>;
    /// Rows kept; random features, for those that keep no rows.
    fn atoms(&self) -> usize;
    /// Bytes held.
    fn size_bytes(&self) -> usize;
    /// Adds its state to a file. [`Make::Rows`] `load` reads it back.
    fn save(&self, container: &mut Container) -> Result<()>;
}

/// A learner's line in the table.
#[derive(Debug)]
pub struct LearnerEntry {
    /// The name a user writes.
    pub name: &'static str,
    /// What it is called, in words.
    pub title: &'static str,
    /// Authors, title, place, year, and the algorithm's number there.
    pub citation: &'static str,
    /// Which targets it takes.
    pub targets: &'static [Targets],
    /// First or second order.
    pub order: Order,
    /// Work a round, B being the budget and d the non-zero values of a row.
    pub cost: &'static str,
    /// Its own options.
    pub options: &'static [OptionSpec],
    /// How it is made.
    pub make: Make,
}

/// Which derivatives of the loss a learner uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Steps along gradients.
    First,
    /// Steps scaled by a matrix of second moments.
    Second,
}

impl Order {
    /// `first` or `second`.
    pub fn word(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
        }
    }
}

/// Makes a learner from checked settings.
pub type Build = fn(&LearnerSettings, &Chosen) -> Result<Box<dyn OnlineLearner>>;
/// Reads a learner of these settings back from a file.
pub type Load = fn(&LearnerSettings, &Chosen, &mut Container) -> Result<Box<dyn OnlineLearner>>;

/// How learners of a kind are made.
#[derive(Debug)]
pub enum Make {
    /// One row after the other.
    Rows {
        /// A new one.
        build: Build,
        /// From a file.
        load: Load,
    },
    /// By blocks of rows, as [`StreamingRidge`](crate::learner::streaming::StreamingRidge): outputs come when a block is
    /// full.
    Blocks,
}
