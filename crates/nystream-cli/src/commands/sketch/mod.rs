//! `nystream sketch`: a dictionary alone, its quality, and the guarantee checked on small data.

mod batch;
mod matching;
mod sequential;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use nystream::Error;
use nystream::fit::Copies;
use nystream::sketch::{DictionaryMethod, Schedule};

use crate::args::{Common, KernelArgs, ReadArgs, TableArgs, bytes};
use crate::files::Files;
use crate::output::Outcome;

/// Build a dictionary alone: atoms, effective dimension, captured share
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nystream sketch houses.csv --method rpcholesky --budget 200
  nystream sketch synth:waves?n=2000 --method batch-exact --budget 400 --leverage-ridge 1 --check --plot scores.svg
  nystream sketch monday.csv --method squeak --budget 500 --save monday.nys --plot growth.svg
  nystream sketch tuesday.csv --resume monday.nys --save both.nys
  nystream sketch tuesday.csv --like monday.nys --seed 2 --save tuesday.nys
  zcat big.csv.gz | nystream sketch - --method squeak --scale none --bandwidth 2

uniform, batch-exact, two-pass-scores and rpcholesky choose among all rows, or among a uniform sample of them if there are
more than --sample. squeak, ink-estimate and ink-oracle follow the stream: every row passes once, after a first reading
for scaling and bandwidth. With --scale none and a number for --bandwidth there is no first reading, so `-` works. The
memory of squeak does not grow with the rows; INK holds them all. Where the stream needs more atoms than the budget, γ
is raised and the report says which one holds. --check compares with the exact kernel matrix (at most 3,000 rows) and
says whether 0 ≼ K − K̃ ≼ γ/(1−ε) K(K+γI)⁻¹ holds.")]
pub struct SketchArgs {
    /// File (CSV, LIBSVM, JSON lines, Parquet, Arrow; gzip or not), `-` for standard input, or `synth:...`
    data: String,
    /// uniform, batch-exact, two-pass-scores, rpcholesky, squeak, ink-estimate or ink-oracle (default: rpcholesky)
    #[arg(long, value_name = "METHOD")]
    method: Option<DictionaryMethod>,
    /// Most atoms (draws, for batch methods that draw with replacement), or none for sequential methods (default: 200)
    #[arg(long, value_name = "ATOMS", value_parser = budget, allow_negative_numbers = true)]
    budget: Option<Budget>,
    /// Leverage ridge γ, at the start for sequential methods (default: 1 for methods that draw by leverage scores,
    /// --check and --plot)
    #[arg(long, value_name = "GAMMA", allow_negative_numbers = true)]
    leverage_ridge: Option<f64>,
    /// Columns drawn in the first pass of two-pass-scores (default: the budget)
    #[arg(long, value_name = "COLUMNS", allow_negative_numbers = true)]
    first_pass: Option<usize>,
    /// Rows kept in memory, to choose from or, for sequential methods, to choose the bandwidth on (default: 10,000)
    #[arg(long, value_name = "ROWS", allow_negative_numbers = true)]
    sample: Option<usize>,
    /// Verify the guarantee against the exact kernel matrix
    #[arg(long)]
    check: bool,
    /// ε of the guarantee: from 0 to below 1 with --check, above 0 for sequential methods (default: 0.5)
    #[arg(long, value_name = "EPSILON", allow_negative_numbers = true)]
    accuracy: Option<f64>,
    /// Where to write the atoms as CSV: row number (from 1) and weight
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Where to draw an SVG: the leverage scores, largest first; for sequential methods size and effective dimension
    /// over the stream
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Of all random choices (default: 0, or that of the --like file; sketches to be merged should have different ones)
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    stream: StreamArgs,
    #[command(flatten)]
    kernel: KernelArgs,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    read: ReadArgs,
}

/// Options of sequential methods.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sequential methods")]
struct StreamArgs {
    /// Most memory of squeak, such as 20MB; beside or instead of --budget
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    budget_bytes: Option<u64>,
    /// δ of the theorem, between 0 and 1 (default: 0.1)
    #[arg(long, value_name = "DELTA", allow_negative_numbers = true)]
    failure_prob: Option<f64>,
    /// Copies q̄ of a new row: a number, theorem, or theorem:ROWS for a stream of that length (default: 5 for squeak, ten
    /// times the budget for INK)
    #[arg(long, value_name = "COPIES", value_parser = copies, allow_negative_numbers = true)]
    oversampling: Option<Copies>,
    /// When squeak learns rows: one at a time as printed in the paper, a block at a time, or lazily, old atoms being
    /// scored anew only when there are more by a factor (default: block)
    #[arg(long, value_enum)]
    schedule: Option<ScheduleName>,
    /// Rows of a block, for --schedule block and lazy (default: 256)
    #[arg(long, value_name = "ROWS", allow_negative_numbers = true)]
    block: Option<usize>,
    /// Growth after which --schedule lazy scores old atoms anew, at least 1 (default: 1.1)
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true)]
    growth: Option<f64>,
    /// Where to write the sketch, to be resumed, merged and inspected
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Go on with the rows of DATA from this sketch, by its columns, kernel and settings
    #[arg(long, value_name = "FILE", conflicts_with = "like")]
    resume: Option<PathBuf>,
    /// Start an empty sketch with the columns, scaling, kernel and settings of this one: for another part of the data
    #[arg(long, value_name = "FILE")]
    like: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScheduleName {
    PerPoint,
    Block,
    Lazy,
}

impl ScheduleName {
    fn of(schedule: &Schedule) -> Self {
        match schedule {
            Schedule::PerPoint => Self::PerPoint,
            Schedule::Blocks { .. } => Self::Block,
            Schedule::Lazy { .. } => Self::Lazy,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::PerPoint => "per-point",
            Self::Block => "block",
            Self::Lazy => "lazy",
        }
    }
}

/// `--budget`: a number of atoms, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Budget {
    Atoms(usize),
    Unlimited,
}

/// Atoms, where no budget is given.
const BUDGET: usize = 200;
/// Rows of the sample, where none are given.
const SAMPLE: usize = 10_000;

fn budget(text: &str) -> Result<Budget, String> {
    match text {
        "none" => Ok(Budget::Unlimited),
        _ => text.parse().map(Budget::Atoms).map_err(|_| "expected a number of atoms, or the word none".to_owned()),
    }
}

fn copies(text: &str) -> Result<Copies, String> {
    let wrong = || "expected a number of copies, theorem, or theorem:ROWS".to_owned();
    match text.strip_prefix("theorem") {
        Some("") => Ok(Copies::Theorem { expected_rows: None }),
        Some(rows) => {
            let rows = rows.strip_prefix(':').and_then(|rows| rows.parse().ok()).ok_or_else(wrong)?;
            Ok(Copies::Theorem { expected_rows: Some(rows) })
        }
        None => text.parse().map(Copies::Fixed).map_err(|_| wrong()),
    }
}

impl SketchArgs {
    /// The most atoms, none for no limit.
    fn most_atoms(&self) -> nystream::Result<Option<usize>> {
        match self.budget {
            Some(Budget::Atoms(0)) => {
                Err(Error::InvalidParam { name: "budget", found: "0".to_owned(), expected: "at least 1 atom" })
            }
            Some(Budget::Atoms(atoms)) => Ok(Some(atoms)),
            Some(Budget::Unlimited) => Ok(None),
            None if self.stream.budget_bytes.is_some() => Ok(None),
            None => Ok(Some(BUDGET)),
        }
    }

    fn require_files_apart(&self) -> nystream::Result<()> {
        Files::new()
            .data(&self.data)
            .reads("--resume", self.stream.resume.as_ref())
            .reads("--like", self.stream.like.as_ref())
            .writes("out", self.out.as_ref())
            .writes("plot", self.plot.as_ref())
            .writes("save", self.stream.save.as_ref())
            // The same sketch, going on.
            .may_replace("save", "--resume")
            .require_apart()
    }

    /// Refuses options that mean nothing to the method.
    fn require_fitting(&self, method: DictionaryMethod) -> nystream::Result<()> {
        let stream = &self.stream;
        let refuse = |name, expected| Error::InvalidParam {
            name,
            found: format!("this option with --method {method}"),
            expected,
        };
        if self.first_pass.is_some() && method != DictionaryMethod::TwoPassScores {
            return Err(refuse("first-pass", "--method two-pass-scores"));
        }
        let of_squeak = [
            ("budget-bytes", stream.budget_bytes.is_some()),
            ("schedule", stream.schedule.is_some()),
            ("block", stream.block.is_some()),
            ("growth", stream.growth.is_some()),
        ];
        if let Some((name, _)) = of_squeak.into_iter().find(|(_, given)| *given)
            && method != DictionaryMethod::Squeak
        {
            return Err(refuse(name, "--method squeak"));
        }
        if method.is_sequential() {
            return Ok(());
        }
        let of_sequential = [
            ("failure-prob", stream.failure_prob.is_some()),
            ("oversampling", stream.oversampling.is_some()),
            ("save", stream.save.is_some()),
            ("resume", stream.resume.is_some()),
            ("like", stream.like.is_some()),
        ];
        if let Some((name, _)) = of_sequential.into_iter().find(|(_, given)| *given) {
            return Err(refuse(name, "--method squeak, ink-estimate or ink-oracle"));
        }
        if self.accuracy.is_some() && !self.check {
            return Err(refuse("accuracy", "--check beside it, or a sequential method"));
        }
        Ok(())
    }

    /// The schedule asked for.
    fn schedule(&self) -> nystream::Result<Schedule> {
        let StreamArgs { schedule, block, growth, .. } = &self.stream;
        let name = schedule.unwrap_or(ScheduleName::Block);
        let refuse = |option, expected| Error::InvalidParam {
            name: option,
            found: format!("this option with --schedule {}", name.name()),
            expected,
        };
        if block.is_some() && name == ScheduleName::PerPoint {
            return Err(refuse("block", "--schedule block or lazy"));
        }
        if growth.is_some() && name != ScheduleName::Lazy {
            return Err(refuse("growth", "--schedule lazy"));
        }
        let rows = block.unwrap_or(256);
        Ok(match name {
            ScheduleName::PerPoint => Schedule::PerPoint,
            ScheduleName::Block => Schedule::Blocks { rows },
            ScheduleName::Lazy => Schedule::Lazy { rows, growth: growth.unwrap_or(Schedule::GROWTH) },
        })
    }
}

pub fn run(args: &SketchArgs, common: &Common) -> Outcome {
    args.require_files_apart()?;
    if args.stream.resume.is_some() || args.stream.like.is_some() {
        // What method it is, the file says.
        if let Some(method) = args.method {
            args.require_fitting(method)?;
        }
        return sequential::run(args, DictionaryMethod::Squeak, common);
    }
    let method = args.method.unwrap_or(DictionaryMethod::RpCholesky);
    args.require_fitting(method)?;
    if method.is_sequential() { sequential::run(args, method, common) } else { batch::run(args, method, common) }
}
