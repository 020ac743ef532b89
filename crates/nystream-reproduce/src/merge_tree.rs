//! `merge-tree`: SQUEAK on partitions of a long stream, merged two by two (DISQUEAK), beside SQUEAK on all of it.
//!
//! Norms on the probe vary from seed to seed by a third and more of their mean, because they hang on the few rare clusters
//! that a dictionary happens to miss. So quotients of means are given with their standard errors, and are judged only
//! where these are small.

use std::time::Instant;

use nystream::kernel::Kernel;
use nystream::rows::Rows;
use nystream::sketch::{SequentialDictionary, Squeak, SqueakOptions};
use nystream::{Error, Result};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::approximation::{difference_on, mirror, spectral_norm, trace};
use crate::data::Labelled;
use crate::findings::{Findings, Verdict};
use crate::statistics::{deviation, mean, quotient};
use crate::study::Settings;
use crate::table::{Align, Table, count, significant};

pub(crate) const MINUTES: u32 = 10;

const ROWS: usize = 1_000_000;
const SEEDS: u64 = 3;
/// Rows that no dictionary sees, on which all are judged.
const PROBE: usize = 2000;
const PARTITIONS: [usize; 4] = [1, 2, 8, 64];
/// γ over the number of rows: a few hundred atoms on this stream.
const RIDGE_SHARE: f64 = 5e-5;
/// Of the runs with a budget.
const BUDGET: usize = 200;
/// How many times the errors of one dictionary those of 64 merged ones may be.
const TARGET: f64 = 1.1;
/// Quotients with larger standard errors are not judged.
const TOLERATED: f64 = 0.1;
/// The most seeds of the partitions between the first and the last, which are not compared.
const BETWEEN: u64 = 10;

/// What one tree came to.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Run {
    atoms: f64,
    leverage_ridge: f64,
    /// tr(K − K̃)/tr K on the probe.
    residual: f64,
    /// ‖K − K̃‖₂ on the probe.
    spectral: f64,
    seconds: f64,
    merge_seconds: f64,
}

pub(crate) fn run(settings: &Settings, stage: &mut dyn FnMut(&str)) -> Result<Findings> {
    let (rows, seeds) = (settings.rows_or(ROWS)?, settings.seeds_or(SEEDS)?);
    let data = Labelled::read(&format!("synth:waves?n={}&d=3&seed=1", rows + PROBE))?;
    let (stream, probe) = (data.part(0, rows).0, data.part(rows, rows + PROBE).0);
    let gamma = RIDGE_SHARE * rows as f64;
    let kernel = Kernel::gaussian(0.5)?;
    let mut findings = Findings::new("merge-tree", "Merging partitions of a stream");
    let fewer = if rows < ROWS { format!(" (fewer than the usual {})", count(ROWS as u64)) } else { String::new() };
    findings.text(format!(
        "SQUEAK (q̄ = 5, blocks of 256) on {} rows{fewer} of `synth:waves`, d = 3, Gaussian kernel, σ = 0.5, γ = {}; \
         partitions are equal ranges of the stream, learnt side by side on {} threads and merged two by two. Judged on {PROBE} \
         rows that none has seen: the share of kernel energy left over, and ‖K − K̃‖₂, K̃ with the dictionary's own weights \
         and γ. Means (± standard deviations) over {seeds}{}.",
        count(rows as u64),
        significant(gamma, 3),
        rayon::current_num_threads(),
        if seeds.count > BETWEEN { format!(", over {BETWEEN} where there are 2 and 8 partitions") } else { String::new() },
    ));
    let mut verdicts = Vec::new();
    let mut data = Vec::new();
    for (name, budget) in [("Without a budget", None), ("With a budget", Some(BUDGET))] {
        let mut lines = Vec::new();
        for parts in PARTITIONS {
            let compared = parts == PARTITIONS[0] || parts == PARTITIONS[PARTITIONS.len() - 1];
            let most = if compared { u64::MAX } else { BETWEEN };
            let runs = seeds
                .each()
                .take(most as usize)
                .map(|seed| {
                    stage(&format!("merge-tree: {parts} partitions, {}, seed {seed}", name.to_lowercase()));
                    let options = SqueakOptions { budget, seed: seed << 32, ..SqueakOptions::new(kernel, gamma) };
                    tree(&options, stream, parts, probe)
                })
                .collect::<Result<Vec<_>>>()?;
            lines.push((parts, runs));
        }
        findings.heading(name);
        if let Some(budget) = budget {
            findings
                .text(format!("At most {budget} atoms, at any time and in any part; γ rises where that is too few."));
        }
        findings.table(table(&lines));
        verdicts.push(verdict(name, &lines, rows));
        data.push(json!({ "budget": budget, "partitions": lines.iter().map(numbers).collect::<Vec<_>>() }));
    }
    findings.verdicts(verdicts);
    findings.data =
        json!({ "rows": rows, "seeds": seeds.count, "first_seed": seeds.first, "leverage_ridge": gamma, "runs": data });
    Ok(findings)
}

/// Learns the parts, merges them, judges the whole.
fn tree(options: &SqueakOptions, stream: Rows, parts: usize, probe: Rows) -> Result<Run> {
    let start = Instant::now();
    let n = stream.len();
    let learn = |part: usize| {
        let mut squeak = Squeak::new(SqueakOptions { seed: options.seed + part as u64, ..options.clone() })?;
        squeak.insert(stream.slice(part * n / parts, (part + 1) * n / parts))?;
        squeak.flush()?;
        Ok(squeak)
    };
    let mut level = (0..parts).into_par_iter().map(learn).collect::<Result<Vec<Squeak>>>()?;
    let learnt = start.elapsed();
    while level.len() > 1 {
        let mut pairs = Vec::new();
        let mut rest = level.into_iter();
        while let Some(left) = rest.next() {
            pairs.push((left, rest.next()));
        }
        let merge = |(left, right): (Squeak, Option<Squeak>)| match right {
            Some(right) => left.merge(right),
            None => Ok(left),
        };
        level = pairs.into_par_iter().map(merge).collect::<Result<_>>()?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let whole = level.pop().ok_or(Error::Internal("no partition"))?;
    let dictionary = whole.dictionary()?;
    let mut left = difference_on(&options.kernel, probe, &dictionary)?;
    mirror(&mut left);
    let energy: f64 = (0..probe.len()).map(|i| options.kernel.diagonal(probe.row(i))).sum();
    Ok(Run {
        atoms: dictionary.len() as f64,
        leverage_ridge: whole.leverage_ridge(),
        residual: trace(left.as_ref()) / energy,
        spectral: spectral_norm(left.as_ref())?,
        seconds,
        merge_seconds: seconds - learnt.as_secs_f64(),
    })
}

fn average(runs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    mean(runs.iter().map(of))
}

/// Mean and standard deviation over the seeds; the latter only where there are several.
fn spread(runs: &[Run], of: impl Fn(&Run) -> f64) -> String {
    let values: Vec<f64> = runs.iter().map(of).collect();
    let centre = mean(values.iter().copied());
    if runs.len() < 2 {
        return significant(centre, 4);
    }
    format!("{} ± {}", significant(centre, 4), significant(deviation(&values), 2))
}

fn table(lines: &[(usize, Vec<Run>)]) -> Table {
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        right("partitions"),
        right("atoms"),
        right("γ"),
        right("energy left over"),
        right("‖K − K̃‖₂"),
        right("time"),
        right("of it merging"),
    ]);
    for (parts, runs) in lines {
        table.row([
            parts.to_string(),
            format!("{:.1}", average(runs, |run| run.atoms)),
            significant(average(runs, |run| run.leverage_ridge), 4),
            spread(runs, |run| run.residual),
            spread(runs, |run| run.spectral),
            format!("{:.2} s", average(runs, |run| run.seconds)),
            format!("{:.2} s", average(runs, |run| run.merge_seconds)),
        ]);
    }
    table
}

fn verdict(name: &str, lines: &[(usize, Vec<Run>)], rows: usize) -> Verdict {
    let (first, last) = (&lines[0].1, &lines[lines.len() - 1].1);
    let values = |runs: &[Run], of: fn(&Run) -> f64| runs.iter().map(of).collect::<Vec<f64>>();
    let compare = |of: fn(&Run) -> f64| quotient(&values(last, of), &values(first, of));
    let errors = [compare(|run| run.residual), compare(|run| run.spectral)];
    let words = |(value, error): (f64, f64)| {
        if error.is_nan() { format!("{value:.3}") } else { format!("{value:.3} ± {error:.3}") }
    };
    let certain = errors.iter().all(|&(_, error)| error <= TOLERATED);
    Verdict {
        target: format!("{name}: errors of 64 partitions within {TARGET} times those of one"),
        found: format!(
            "energy left over {}, ‖K − K̃‖₂ {}, atoms {} times (± standard errors; judged if at most {TOLERATED})",
            words(errors[0]),
            words(errors[1]),
            words(compare(|run| run.atoms))
        ),
        met: (rows >= ROWS && certain).then_some(errors.iter().all(|&(value, _)| value <= TARGET)),
    }
}

fn numbers((parts, runs): &(usize, Vec<Run>)) -> Value {
    json!({
        "partitions": parts,
        "atoms": average(runs, |run| run.atoms),
        "leverage_ridge": average(runs, |run| run.leverage_ridge),
        "energy_left_over": average(runs, |run| run.residual),
        "spectral_error": average(runs, |run| run.spectral),
        "spectral_errors": runs.iter().map(|run| run.spectral).collect::<Vec<_>>(),
        "seconds": average(runs, |run| run.seconds),
        "seconds_merging": average(runs, |run| run.merge_seconds),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(threads: usize, parts: usize, budget: Option<usize>) -> Run {
        let data = Labelled::read("synth:waves?n=1700&d=3&seed=1").unwrap();
        let options = SqueakOptions { budget, ..SqueakOptions::new(Kernel::gaussian(0.5).unwrap(), 0.2) };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let run = pool.install(|| tree(&options, data.part(0, 1500).0, parts, data.part(1500, 1700).0).unwrap());
        Run { seconds: 0.0, merge_seconds: 0.0, ..run }
    }

    #[test]
    fn trees_of_any_width_are_about_as_good_and_threads_do_not_matter() {
        let one = small(1, 1, None);
        for parts in [2, 3, 8] {
            let many = small(1, parts, None);
            assert_eq!(many, small(3, parts, None));
            assert!(many.residual < 1.5 * one.residual && many.atoms < 1.5 * one.atoms, "{parts} {many:?} {one:?}");
        }
    }

    #[test]
    fn a_budget_is_kept_by_raising_gamma() {
        let free = small(2, 4, None);
        let bound = small(2, 4, Some(40));
        assert!(free.atoms > 40.0 && bound.atoms <= 40.0 && bound.leverage_ridge > free.leverage_ridge);
        assert!(bound.residual > free.residual);
    }

    #[test]
    fn the_report_says_that_it_was_small() {
        let settings = Settings { seeds: Some(1), rows: Some(1200), ..Settings::default() };
        let findings = run(&settings, &mut |_| {}).unwrap();
        let text = findings.to_markdown();
        assert!(text.contains("1,200 rows (fewer than the usual 1,000,000)") && text.contains("not judged"), "{text}");
        assert_eq!(findings.data["runs"][0]["partitions"].as_array().unwrap().len(), 4);
    }
}
