//! `cargo xtask bench`: the benchmarks, with a Python environment for the peers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Outcome, cargo, check, root};

const REQUIREMENTS: &str = "crates/nystream-bench/peers/requirements.txt";

/// Builds nystream-bench and the command in release mode and runs the former. It finds the peers' interpreter in
/// `NYSTREAM_BENCH_PYTHON` and the command in `NYSTREAM_BIN`.
pub fn run(arguments: &[String]) -> Outcome {
    let python = environment()?;
    check(&mut cargo(["build", "--release", "--locked", "--package", "nystream-cli", "--package", "nystream-bench"]))?;
    let release = release_folder()?;
    let program = |name: &str| release.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let mut bench = Command::new(program("nystream-bench"));
    bench.current_dir(root()).args(arguments);
    check(bench.env("NYSTREAM_BENCH_PYTHON", python).env("NYSTREAM_BIN", program("nystream")))
}

/// Where cargo puts release builds: beside the folder that we were built into, wherever the target folder is.
fn release_folder() -> Outcome<PathBuf> {
    let here = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    let target = here.parent().and_then(Path::parent);
    target.map(|target| target.join("release")).ok_or_else(|| format!("{}: not in a target folder", here.display()))
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
