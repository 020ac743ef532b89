//! Learners that read a stream once, predict each row before they learn it, and hold no more than their budget.

pub mod streaming;
