//! Experiments that show what nystream promises, over its public API: nothing is printed, tables and figures are data.
//!
//! A [`Study`] has a name, a line that says what it shows, and a function from [`Settings`] to [`Findings`]. [`STUDIES`]
//! lists them; [`find`] takes the name that a person wrote. [`Findings`] turn into Markdown and JSON.
//!
//! ```
//! use nystream_reproduce::{Settings, find};
//!
//! let study = find("merge-tree")?;
//! let settings = Settings { seeds: Some(1), rows: Some(2000), ..Settings::default() };
//! let findings = (study.run)(&settings, &mut |_stage| {})?;
//! assert!(findings.to_markdown().contains("| partitions |"));
//! # Ok::<(), nystream::Error>(())
//! ```
//!
//! [`plot`] and [`table`] are what figures and tables are made of, here and in the command.

mod approximation;
pub mod contest;
mod data;
mod drift;
mod findings;
mod guarantees;
mod merge_tree;
mod one_pass;
mod papers;
pub mod plot;
mod sets;
mod statistics;
mod streaming;
mod study;
pub mod table;
mod when_it_pays;

pub use findings::{Figure, Findings, Part, Verdict};
pub use study::{Needs, RunStudy, STUDIES, Settings, Study, find};
