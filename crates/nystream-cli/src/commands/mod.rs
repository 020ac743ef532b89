//! One file a subcommand.

pub mod completions;
pub mod demo;
pub mod evaluate;
pub mod fit;
pub mod inspect;
pub mod learners;
pub mod merge;
pub mod predict;
pub mod reproduce;
pub mod score;
pub mod sketch;

mod describe;
