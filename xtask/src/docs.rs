//! `cargo xtask docs`: the library's documentation.

use crate::run::{Outcome, cargo, check};

/// Builds the documentation of the workspace with every feature, and shows it if `open`.
pub fn run(open: bool) -> Outcome {
    let mut command = cargo(["doc", "--workspace", "--all-features", "--no-deps", "--locked"]);
    if open {
        command.arg("--open");
    }
    check(&mut command)
}
