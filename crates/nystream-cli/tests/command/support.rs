//! Runs the built command in a folder of its own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder that is gone after the test.
pub struct Folder(TempDir);

/// What a run left behind.
pub struct Run {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Folder {
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// The command with these words, split at spaces, to be run in this folder.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nystream"));
        command.args(line.split_whitespace()).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    pub fn run(&self, line: &str) -> Run {
        self.command(line).output().unwrap().into()
    }

    /// Runs with this text as standard input.
    pub fn run_with(&self, line: &str, input: &str) -> Run {
        let pipes = |command: &mut Command| {
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let mut child = pipes(&mut self.command(line));
        // A command that refuses its options never reads.
        child.stdin.take().unwrap().write_all(input.as_bytes()).ok();
        child.wait_with_output().unwrap().into()
    }

    /// Runs what must work, silently on standard error, and returns what it prints.
    pub fn works(&self, line: &str) -> String {
        let run = self.run(line);
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "nystream {line}");
        run.out
    }

    /// Runs with `--json` what must work.
    pub fn json(&self, line: &str) -> Value {
        let out = self.works(&format!("{line} --json"));
        assert_eq!(out.lines().count(), 1, "nystream {line}: {out}");
        serde_json::from_str(&out).unwrap()
    }

    /// Runs what must be refused: exit code 2, nothing printed but one line with all these parts, no file changed.
    pub fn refuses(&self, line: &str, parts: &[&str]) {
        let before = self.content();
        let run = self.run(line);
        assert_refused(line, &run, parts);
        assert!(self.content() == before, "nystream {line}: files were left or changed");
    }

    fn content(&self) -> BTreeMap<String, Vec<u8>> {
        let files = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap());
        let files = files.filter(|entry| entry.path().is_file());
        files.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
    }
}

pub fn assert_refused(line: &str, run: &Run, parts: &[&str]) {
    let Run { code, out, err } = run;
    assert_eq!((*code, out.as_str()), (Some(2), ""), "nystream {line}: {err}");
    assert!(err.starts_with("nystream: ") && err.ends_with('\n') && err.lines().count() == 1, "nystream {line}: {err}");
    for part in parts {
        assert!(err.contains(part), "nystream {line}: '{part}' is not in: {err}");
    }
}

/// Numbers between 0 and 1 that look random and are always the same.
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }
    pub fn next(&mut self) -> f64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Rows a, b and a smooth y of them with a little noise.
pub fn numbers(rows: usize, seed: u64) -> Vec<[f64; 3]> {
    let mut numbers = Numbers::new(seed);
    (0..rows)
        .map(|_| {
            let (a, b, noise) = (4.0 * numbers.next() - 2.0, 10.0 * numbers.next(), numbers.next() - 0.5);
            [a, b, 3.0 + (2.0 * a).sin() + 0.05 * (b - 5.0).powi(2) + 0.1 * noise]
        })
        .collect()
}

/// The same as CSV with a header.
pub fn csv(rows: usize, seed: u64) -> String {
    let mut text = String::from("a,b,y\n");
    for [a, b, y] in numbers(rows, seed) {
        writeln!(text, "{a},{b},{y}").unwrap();
    }
    text
}

/// Cells of a CSV text without its header.
pub fn cells(text: &str) -> Vec<Vec<&str>> {
    text.lines().skip(1).map(|line| line.split(',').collect()).collect()
}

/// One column of a CSV text, as numbers.
pub fn column(text: &str, index: usize) -> Vec<f64> {
    cells(text).iter().map(|row| row[index].parse().unwrap()).collect()
}
