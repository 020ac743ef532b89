//! Learners that read a stream once, predict each row before they learn it, and hold no more than their budget.

mod ahead;
mod checkpoint;
mod evaluate;
mod fingerprint;
mod joining;
mod pass;
mod recent;
pub mod streaming;

pub use evaluate::{Evaluation, Shuffled, evaluate_rows};
pub use pass::{StreamPass, stream};
