//! The `nystream` command as a process of its own, so that its peak memory is its own too.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Outcome;

/// The command that `cargo xtask bench` built.
pub fn program() -> Outcome<PathBuf> {
    let missing = "NYSTREAM_BIN does not name the `nystream` command; `cargo xtask bench` builds it and sets it";
    env::var_os("NYSTREAM_BIN").map(PathBuf::from).ok_or_else(|| missing.into())
}

/// What `nystream fit` reports.
pub struct Report(Value);

impl Report {
    /// Fits `data` with these options; the model goes to `folder`.
    pub fn of_fit(program: &Path, data: &str, folder: &Path, options: &[&str]) -> Outcome<Self> {
        let mut command = Command::new(program);
        command.arg("fit").arg(data).arg("--model").arg(folder.join("model.nys")).arg("--json").args(options);
        let output = command.stderr(Stdio::inherit()).output();
        let output = output.map_err(|e| format!("cannot run {}: {e}", program.display()))?;
        if !output.status.success() {
            return Err(format!("`nystream fit` ended with {}", output.status).into());
        }
        Ok(Self(serde_json::from_slice(&output.stdout)?))
    }

    /// A number of it.
    pub fn number(&self, key: &str) -> Outcome<f64> {
        let found = self.0[key].as_f64();
        found.ok_or_else(|| format!("`nystream fit --json` gave no number '{key}': {}", self.0).into())
    }

    /// Checks that all rows were seen.
    pub fn require_rows(&self, rows: usize) -> Outcome {
        if self.number("rows")? != rows as f64 {
            return Err(format!("`nystream fit` saw {} rows, not {rows}", self.0["rows"]).into());
        }
        Ok(())
    }
}
