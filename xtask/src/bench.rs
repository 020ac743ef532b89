//! `cargo xtask bench`: the benchmarks, with a Python environment for the peers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Outcome, cargo, check, root};

const REQUIREMENTS: &str = "crates/nystream-bench/peers/requirements.txt";

/// Builds nystream-bench in release mode and runs it. It finds the peers' interpreter in
/// `NYSTREAM_BENCH_PYTHON`.
pub fn run(arguments: &[String]) -> Outcome {
    let python = environment()?;
    let mut bench = cargo(["run", "--release", "--locked", "--package", "nystream-bench", "--"]);
    check(bench.args(arguments).env("NYSTREAM_BENCH_PYTHON", python))
}

/// The interpreter of a virtual environment with the pinned peers, made anew when the pins changed.
fn environment() -> Outcome<PathBuf> {
    let root = root();
    let wanted = fs::read_to_string(root.join(REQUIREMENTS)).map_err(|e| format!("cannot read {REQUIREMENTS}: {e}"))?;
    let folder = root.join("target/bench-venv");
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let mark = folder.join("installed-requirements.txt");
    if python.exists() && is_current(&mark, &wanted) {
        return Ok(python);
    }
    let system = if cfg!(windows) { "python" } else { "python3" };
    check(Command::new(system).args(["-m", "venv", "--clear"]).arg(&folder))?;
    let mut install = Command::new(&python);
    install.current_dir(&root).args(["-m", "pip", "install", "--disable-pip-version-check", "-r", REQUIREMENTS]);
    check(&mut install)?;
    // Last, so that an installation cut short is repeated.
    fs::write(&mark, wanted).map_err(|e| format!("cannot write {}: {e}", mark.display()))?;
    Ok(python)
}

fn is_current(mark: &Path, wanted: &str) -> bool {
    fs::read_to_string(mark).is_ok_and(|installed| installed == wanted)
}
