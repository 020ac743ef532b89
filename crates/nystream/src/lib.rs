//! Kernel machines for streams: one pass over the data, memory fixed in advance, an answer at any time.
//!
//! Data flows one way, and a module knows only what stands to its left:
//! [`source`] → [`preprocess`] → [`kernel`] → [`sketch`] → [`model`] → [`solver`] → [`fit`].

pub mod error;
pub mod fit;
pub mod kernel;
pub mod learner;
pub mod linalg;
pub mod model;
pub mod persist;
pub mod preprocess;
pub mod random;
pub mod rows;
pub mod sketch;
pub mod solver;
pub mod source;

pub use error::{Error, Result};

/// The program in the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
