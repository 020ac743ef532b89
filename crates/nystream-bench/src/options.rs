//! The command line.

use std::path::{Path, PathBuf};

use nystream::fit::Bandwidth;

/// Shown with `--help` and after a mistake.
pub const USAGE: &str = "\
cargo xtask bench [NAME...] [--rows N] [--seed N] [--learner NAME] [--bandwidth HOW] [--out DIR]

  kernel         Gaussian blocks beside scikit-learn's rbf_kernel
  fit            Nystroem ridge regression beside scikit-learn, and beside a matrix product
  memory         peak memory of `nystream fit` on 5 and 10 million rows (a file of 2 GB, deleted afterwards)
  csv            reading numbers beside pandas
  sketch         cost of SQUEAK and INK-ESTIMATE; atoms of equal number beside BLESS
  rows           ours alone: single rows through the streaming learner, predict and learn
  stream         ours alone: the streaming learner on whole streams: speed, and 10^5 to 10^7 rows (takes ten minutes)
  learners       ours alone: every online learner on real sets of NYSTREAM_DATA beside its bare kernel evaluations
  accuracy       real sets of NYSTREAM_DATA beside tuned scikit-learn (hours the first time)
  kernel-block   ours alone: blocks and single rows; runs only when named

  --rows N       rows of the larger file of `memory`, of the longest stream of `sketch`, of `stream` and of `learners`;
                 targets that need the full size are then not judged
  --seed N       of `accuracy`, and of the order of rows of `learners` (default: 1)
  --learner NAME of `learners`: this one alone; may be given several times
  --bandwidth HOW of `learners`: 'median', 'alignment' or a number (default: alignment, as `nystream evaluate`)
  --out DIR      for scratch files and the tuned peer's results (default: target/bench)
";

/// A benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    Kernel,
    Fit,
    Memory,
    Csv,
    Sketch,
    Rows,
    Stream,
    Learners,
    Accuracy,
    KernelBlock,
}

impl Name {
    /// Those that run when none is named.
    const USUAL: [Self; 9] = [
        Self::Kernel,
        Self::Fit,
        Self::Memory,
        Self::Csv,
        Self::Sketch,
        Self::Rows,
        Self::Stream,
        Self::Learners,
        Self::Accuracy,
    ];

    /// As a person writes it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Fit => "fit",
            Self::Memory => "memory",
            Self::Csv => "csv",
            Self::Sketch => "sketch",
            Self::Rows => "rows",
            Self::Stream => "stream",
            Self::Learners => "learners",
            Self::Accuracy => "accuracy",
            Self::KernelBlock => "kernel-block",
        }
    }

    /// Whether it runs beside peers.
    pub fn has_peers(self) -> bool {
        !matches!(self, Self::Rows | Self::Stream | Self::Learners | Self::KernelBlock)
    }

    fn parse(word: &str) -> Option<Self> {
        Self::USUAL.into_iter().chain([Self::KernelBlock]).find(|name| name.word() == word)
    }
}

/// What to run, and how.
#[derive(Debug, PartialEq)]
pub struct Options {
    pub names: Vec<Name>,
    pub rows: Option<usize>,
    pub seed: u64,
    /// All of them if none is named.
    pub learners: Vec<String>,
    /// Of the kernel that learners are timed with.
    pub bandwidth: Bandwidth,
    pub out: PathBuf,
}

impl Options {
    /// Reads the arguments; `None` if help was asked for.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Option<Self>, String> {
        let out = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench");
        let bandwidth = Bandwidth::Alignment;
        let mut options = Self { names: Vec::new(), rows: None, seed: 1, learners: Vec::new(), bandwidth, out };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} wants a value"));
            match argument.as_str() {
                "--help" | "-h" => return Ok(None),
                "--rows" => {
                    let rows: usize = number("--rows", &value()?)?;
                    if rows < 2 {
                        return Err(format!("--rows: found {rows}, expected at least 2"));
                    }
                    options.rows = Some(rows);
                }
                "--seed" => options.seed = number("--seed", &value()?)?,
                "--learner" => options.learners.push(value()?),
                "--bandwidth" => options.bandwidth = value()?.parse().map_err(|e: nystream::Error| e.to_string())?,
                "--out" => options.out = PathBuf::from(value()?),
                word => options.names.push(Name::parse(word).ok_or_else(|| format!("no benchmark '{word}'"))?),
            }
        }
        if options.names.is_empty() {
            options.names = Name::USUAL.to_vec();
        }
        Ok(Some(options))
    }
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{name}: found '{text}', expected a whole number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Option<Options>, String> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn without_names_the_usual_ones_run() {
        assert_eq!(parse("").unwrap().unwrap().names, Name::USUAL);
        let some =
            parse("csv --rows 1000 kernel-block --learner nogd --seed 7 --bandwidth median --learner fogd --out x");
        let (names, learners) = (vec![Name::Csv, Name::KernelBlock], vec!["nogd".to_owned(), "fogd".to_owned()]);
        let (bandwidth, out) = (Bandwidth::Median, PathBuf::from("x"));
        assert_eq!(some, Ok(Some(Options { names, rows: Some(1000), seed: 7, learners, bandwidth, out })));
        assert_eq!(parse("csv --help"), Ok(None));
    }

    #[test]
    fn mistakes_are_told() {
        for line in ["speed", "--rows", "--rows many", "--rows 1", "--seed -1", "--bandwidth wide", "--fast"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
