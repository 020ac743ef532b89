//! Kernel machines for streams: one pass over the data, memory fixed in advance, an answer at any time.
//!
//! Data flows one way, and a module knows only what stands to its left:
//! [`source`] → [`preprocess`] → [`kernel`] → [`sketch`] → [`solver`] → [`model`].

pub mod error;
pub mod kernel;
pub mod linalg;
pub mod preprocess;
pub mod random;
pub mod rows;
pub mod sketch;
pub mod source;

pub use error::{Error, Result};
