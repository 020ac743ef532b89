//! `nystream merge`: one file for the rows of several.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use nystream::Error;
use nystream::fit::SavedSketch;
use nystream::persist::Container;
use nystream::sketch::SequentialDictionary;

use super::describe::put_sketch;
use crate::args::Common;
use crate::memory::peak_bytes;
use crate::output::{Outcome, check_writable, show};
use crate::report::Report;

/// Merge sketches of parts of the data into one
#[derive(Debug, Args)]
#[command(after_help = "Example:
  nystream sketch monday.csv --method squeak --save monday.nys
  nystream sketch tuesday.csv --like monday.nys --seed 2 --save tuesday.nys
  nystream merge monday.nys tuesday.nys --out both.nys

Sketches by squeak merge if kernel, starting leverage ridge, accuracy, failure probability and preprocessing agree, as
--like sees to. Files are merged in pairs, these in pairs again, and so on. Budget, schedule and oversampling of the
first go on to hold.")]
pub struct MergeArgs {
    /// Files to merge, in the order of their rows
    #[arg(required = true, num_args = 2.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where to write the merged file
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

pub fn run(args: &MergeArgs, common: &Common) -> Outcome {
    let start = Instant::now();
    let files = args.files.iter().map(Container::load).collect::<Result<Vec<_>, _>>()?;
    // Each kind of file has a way to merge of its own.
    let mut report = match files[0].kind.as_str() {
        "sketch" => merge_sketches(args, files)?,
        other => {
            let reason = format!("it holds a {other:?}; only sketches by squeak can be merged");
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
    let merged = in_pairs(sketches)?;
    merged.save(&args.out)?;
    let mut report = Report::new();
    report.put("saved", args.out.display().to_string());
    report.put("merged", count);
    put_sketch(&mut report, &merged, &merged.sketch().report()?);
    if let Some((a, b)) = shared {
        let (a, b) = (a.display(), b.display());
        report.put("note", format!("{a} and {b} were drawn with the same seed; --seed can make them independent"));
    }
    Ok(report)
}

/// A binary tree over the files, whose depth decides how many times an atom is drawn anew.
fn in_pairs(mut sketches: Vec<(SavedSketch, &Path)>) -> nystream::Result<SavedSketch> {
    while sketches.len() > 1 {
        let mut next = Vec::with_capacity(sketches.len().div_ceil(2));
        let mut rest = sketches.into_iter();
        while let Some((left, name)) = rest.next() {
            next.push(match rest.next() {
                Some((right, other)) => (left.merge(right).map_err(|error| named(error, name, other))?, name),
                None => (left, name),
            });
        }
        sketches = next;
    }
    match sketches.pop() {
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
