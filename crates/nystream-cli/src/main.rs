//! Placeholder.
#![allow(dead_code)]
mod memory;
mod plot;
mod progress;
mod report;
mod table;
fn main() {}
