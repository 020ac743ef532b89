//! The peers: a Python process that stays for a whole benchmark and is asked over its standard input.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::{env, fs};

use serde_json::{Value, json};

use crate::Outcome;

/// What limits the threads of numpy's matrix products, of OpenMP and of their kin.
const THREAD_SETTINGS: [&str; 5] =
    ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"];

/// A running `peers/peer.py`.
pub struct Peer {
    child: Child,
    /// Closed to make the process end.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts one that uses this many threads.
    pub fn start(threads: usize) -> Outcome<Self> {
        let mut command = Command::new(python()?);
        command.arg(script("peer.py")).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.envs(THREAD_SETTINGS.map(|name| (name, threads.to_string())));
        let mut child = command.spawn().map_err(|e| format!("cannot start the Python peer: {e}"))?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or("the Python peer has no output")?;
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    /// Has a task done.
    pub fn ask(&mut self, task: &Value) -> Outcome<Value> {
        let input = self.input.as_mut().ok_or("the Python peer has no input")?;
        let name = task["task"].as_str().unwrap_or_default();
        writeln!(input, "{task}").map_err(|e| format!("cannot ask the Python peer for {name}: {e}"))?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        if line.is_empty() {
            return Err(format!("the Python peer ended during {name}; its message stands above").into());
        }
        let answer: Value = serde_json::from_str(&line)?;
        match answer["error"].as_str() {
            Some(error) => Err(format!("the Python peer's {name}: {error}").into()),
            None => Ok(answer),
        }
    }

    /// Names and versions, in words.
    pub fn versions(&mut self) -> Outcome<String> {
        let answer = self.ask(&json!({ "task": "versions" }))?;
        let named = |name| format!("{name} {}", answer[name].as_str().unwrap_or("?"));
        Ok(["python", "numpy", "scikit-learn", "pandas"].map(named).join(", "))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.input = None;
        // It has ended or is about to; there is nobody left to tell otherwise.
        let _ = self.child.wait();
    }
}

/// A number of an answer.
pub fn number(answer: &Value, key: &str) -> Outcome<f64> {
    answer[key].as_f64().ok_or_else(|| format!("the Python peer's answer has no number '{key}': {answer}").into())
}

/// Writes numbers for the peer, and describes them as its tasks want it.
pub fn share(folder: &Path, name: &str, data: &[f64], shape: &[usize]) -> Outcome<Value> {
    let path = folder.join(format!("{name}.f64"));
    let bytes: Vec<u8> = data.iter().flat_map(|value| value.to_le_bytes()).collect();
    fs::write(&path, bytes).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    Ok(json!({ "path": path, "shape": shape }))
}

/// Numbers that the peer wrote.
pub fn read_back(path: &Path) -> Outcome<Vec<f64>> {
    let bytes = fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let (numbers, _) = bytes.as_chunks::<8>();
    Ok(numbers.iter().map(|&number| f64::from_le_bytes(number)).collect())
}

/// The interpreter that has the peers.
pub fn python() -> Outcome<PathBuf> {
    let missing = "NYSTREAM_BENCH_PYTHON does not name a Python interpreter; `cargo xtask bench` makes one and sets it";
    env::var_os("NYSTREAM_BENCH_PYTHON").map(PathBuf::from).ok_or_else(|| missing.into())
}

/// A file of `peers/`.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name)
}
