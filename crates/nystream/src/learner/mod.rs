//! Learners that read a stream once, predict each row before they learn it, and hold no more than their budget.

mod checkpoint;
mod evaluate;
mod fingerprint;
pub mod online;
mod pass;
pub mod streaming;

pub use evaluate::{Evaluation, Shuffled, evaluate_rows};
pub use pass::{StreamPass, stream};
