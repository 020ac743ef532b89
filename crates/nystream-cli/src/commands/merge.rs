//! `nystream merge`: one file for the rows of several.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use nystream::Error;
use nystream::fit::SavedSketch;
use nystream::learner::StreamPass;
use nystream::learner::streaming::KIND;
use nystream::persist::Container;
use nystream::sketch::SequentialDictionary;

use super::describe::{put_columns, put_sketch, put_stream};
use crate::args::Common;
use crate::files::Files;
use crate::memory::peak_bytes;
use crate::output::{Outcome, check_writable, show};
use crate::report::Report;

/// Merge sketches or streaming learners of parts of the data into one
#[derive(Debug, Args)]
#[command(after_help = "Example:
  nystream sketch monday.csv --method squeak --save monday.nys
  nystream sketch tuesday.csv --like monday.nys --seed 2 --save tuesday.nys
  nystream merge monday.nys tuesday.nys --out both.nys

  nystream fit monday.csv --method stream --model monday.nys --checkpoint monday.part
  nystream fit tuesday.csv --method stream --model tuesday.nys --checkpoint tuesday.part --like monday.part
  nystream merge monday.part tuesday.part --out both.part --model both.nys

Sketches by squeak merge if kernel, starting leverage ridge, accuracy, failure probability and preprocessing agree, as
--like sees to. Files are merged in pairs, these in pairs again, and so on. Budget, schedule and oversampling of the
first go on to hold.

Checkpoints of streams merge if preprocessing, targets, kernel, bandwidth, ridge, budget and half-life agree. On the same
atoms, which --like sees to, sums add up: the result is that of one learner that saw all rows. On different ones atoms are
chosen from both within the budget, and what the old ones did not span of the rows is lost. Scaling learnt on different
first rows differs and is refused: use --like, or --scale none with a --bandwidth.")]
pub struct MergeArgs {
    /// Files to merge, in the order of their rows
    #[arg(required = true, num_args = 2.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where to write the merged file
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Where to write the model of the merged learner (streams only)
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
}

pub fn run(args: &MergeArgs, common: &Common) -> Outcome {
    let start = Instant::now();
    // All files have been read when the first is written, so the merged one may take the place of a part.
    let parts = args.files.iter().fold(Files::new(), |files, path| files.reads("FILE", Some(path)));
    parts
        .writes("out", Some(&args.out))
        .writes("model", args.model.as_ref())
        .may_replace("out", "FILE")
        .require_apart()?;
    let files = args.files.iter().map(Container::load).collect::<Result<Vec<_>, _>>()?;
    // Each kind of file has a way to merge of its own.
    let mut report = match files[0].kind.as_str() {
        "sketch" => {
            if args.model.is_some() {
                let found = "this option with sketches".to_owned();
                return Err(Error::InvalidParam { name: "model", found, expected: "checkpoints of streams" }.into());
            }
            merge_sketches(args, files)?
        }
        KIND => merge_streams(args, files)?,
        other => {
            let reason =
                format!("it holds a {other:?}; only sketches by squeak and checkpoints of streams can be merged");
            return Err(Error::Format { origin: args.files[0].display().to_string(), reason }.into());
        }
    };
    report.put_seconds("seconds_total", start.elapsed());
    report.put_bytes("peak_bytes", peak_bytes());
    show(&report, common)
}

fn merge_sketches(args: &MergeArgs, files: Vec<Container>) -> nystream::Result<Report> {
    let mut sketches = Vec::new();
    for (file, path) in files.into_iter().zip(&args.files) {
        sketches.push((SavedSketch::from_container(file)?, path.as_path()));
    }
    check_writable(&args.out)?;
    let shared = shared_seed(&sketches);
    let count = sketches.len();
    let merged = in_pairs(sketches, SavedSketch::merge)?;
    merged.save(&args.out)?;
    let mut report = Report::new();
    report.put("saved", args.out.display().to_string());
    report.put("merged", count);
    put_columns(&mut report, merged.preprocessor());
    put_sketch(&mut report, &merged, &merged.sketch().report()?);
    if let Some((a, b)) = shared {
        let (a, b) = (a.display(), b.display());
        report.put("note", format!("{a} and {b} were drawn with the same seed; --seed can make them independent"));
    }
    Ok(report)
}

fn merge_streams(args: &MergeArgs, files: Vec<Container>) -> nystream::Result<Report> {
    let mut passes = Vec::new();
    for (file, path) in files.into_iter().zip(&args.files) {
        passes.push((StreamPass::from_container(file)?, path.as_path()));
    }
    check_writable(&args.out)?;
    args.model.as_deref().map(check_writable).transpose()?;
    let count = passes.len();
    let merged = in_pairs(passes, StreamPass::merge)?;
    let status = merged.learner().status()?;
    let file = merged.to_container()?;
    let mut report = Report::new();
    report.put("saved", args.out.display().to_string());
    report.put("merged", count);
    put_stream(&mut report, &merged, &status);
    // The model first: where there is none to be made, nothing is written.
    if let Some(path) = &args.model {
        merged.finish()?.save(path)?;
        report.put("model", path.display().to_string());
    }
    file.save(&args.out)?;
    Ok(report)
}

/// A binary tree over the files, whose depth decides how many times an atom is drawn anew.
fn in_pairs<T>(mut parts: Vec<(T, &Path)>, merge: impl Fn(T, T) -> nystream::Result<T>) -> nystream::Result<T> {
    while parts.len() > 1 {
        let mut next = Vec::with_capacity(parts.len().div_ceil(2));
        let mut rest = parts.into_iter();
        while let Some((left, name)) = rest.next() {
            next.push(match rest.next() {
                Some((right, other)) => (merge(left, right).map_err(|error| named(error, name, other))?, name),
                None => (left, name),
            });
        }
        parts = next;
    }
    match parts.pop() {
        Some((merged, _)) => Ok(merged),
        None => Err(Error::Internal("nothing to merge")),
    }
}

/// An error about settings that differ, with the files they are in.
fn named(error: Error, left: &Path, right: &Path) -> Error {
    match error {
        Error::Incompatible { field, found, expected } => {
            let field = format!("{field} of {} and {}", left.display(), right.display());
            Error::Incompatible { field, found, expected }
        }
        other => other,
    }
}

/// Two files with rows that were drawn by the same random numbers.
fn shared_seed<'a>(sketches: &[(SavedSketch, &'a Path)]) -> Option<(&'a Path, &'a Path)> {
    let seed = |i: usize| sketches[i].0.sketch().seed();
    let pairs = (0..sketches.len()).flat_map(|i| (0..i).map(move |j| (j, i)));
    pairs.into_iter().find(|&(j, i)| seed(j) == seed(i)).map(|(j, i)| (sketches[j].1, sketches[i].1))
}
