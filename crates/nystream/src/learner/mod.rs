//! Learners that read a stream once, predict each row before they learn it, and hold no more than their budget.

mod adversarial;
mod ahead;
mod checkpoint;
mod evaluate;
mod fingerprint;
mod joining;
pub mod online;
mod pass;
mod recent;
pub mod streaming;
mod trail;

pub use adversarial::adversarial_stream;
pub use evaluate::{Evaluation, Shuffled, evaluate_rows};
pub use pass::{AfterBlock, StreamPass, stream};
