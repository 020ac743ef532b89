//! Online kernel learners of the literature, one trait, one table.
//!
//! A learner takes a row, says what it makes of it, and is told the target: ±1 for two classes, a number for
//! regression. [`LEARNERS`] lists all of them with their papers, options and costs; a [`Learner`] is one of them with its
//! settings, checks what it is given, and can be saved and loaded to the last bit. [`run`] is the prequential protocol:
//! every row predicted before it is learnt.
//!
//! ```
//! use nystream::kernel::Kernel;
//! use nystream::learner::online::{Learner, LearnerSettings, Targets};
//! use nystream::rows::Row;
//!
//! let settings = LearnerSettings::new(Kernel::gaussian(1.0)?, 2, Targets::Classes).with("step-size", 0.5);
//! let mut learner = Learner::new("kogd", settings)?;
//! assert_eq!(learner.learn(Row::Dense(&[0.0, 1.0]), 1.0)?, 0.0); // what it knew before
//! assert!(learner.predict(Row::Dense(&[0.0, 1.1]))? > 0.0);
//! # Ok::<(), nystream::Error>(())
//! ```
//!
//! A new learner is a file with a type that implements [`OnlineLearner`] and a static [`LearnerEntry`], and the entry's
//! name in `table.rs`. The laws in `tests/` then run over it.

mod bogd;
mod bpas;
mod entry;
mod expansion;
mod fogd;
mod forgetron;
mod kogd;
mod learner;
mod loss;
mod nogd;
mod oldest;
mod options;
mod perceptron;
mod projectron;
mod projectron_plus;
mod rbp;
mod run;
mod second_order;
mod settings;
mod skegd;
mod span;
mod span_bound;
mod square;
mod state;
mod steps;
mod streaming_ridge;
mod table;
#[cfg(test)]
mod tests;
mod tune;

pub use entry::{LearnerEntry, Make, OnlineLearner, Order};
pub use learner::{KIND, Learner, check};
pub use loss::Loss;
pub use options::{Chosen, Default, OptionKind, OptionSpec, Trial};
pub(super) use run::POINTS;
pub use run::{Run, run};
pub use settings::{LearnerSettings, Targets};
pub use table::{LEARNERS, find};
pub use tune::{Attempt, Tuning, TuningPart, tunable, tune};
