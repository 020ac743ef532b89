//! Learners that read a stream once, predict each row before they learn it, and hold no more than their budget.

mod pass;
pub mod streaming;

pub use pass::{StreamPass, stream};
