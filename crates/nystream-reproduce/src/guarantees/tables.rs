//! The report: tables, figures and verdicts of every ladder of q̄; schedules have a file of their own.

use super::runs::Runs;
use super::schedules::Comparisons;
use super::{ACCURACY, CHECKS, FAILURE_PROB, LEVERAGE_RIDGE, Plan, Results, SEEDS};
use crate::findings::{Findings, Verdict};
use crate::plot::{Chart, Kind, Series, side_by_side};
use crate::table::{Align, Table, count, significant};

pub(super) fn write(findings: &mut Findings, plan: &Plan, results: &[Results], comparisons: &Comparisons) {
    introduction(findings, plan, results);
    let mut verdicts = theorem_verdicts(plan, results);
    verdicts.extend(comparisons.verdicts(plan));
    findings.verdicts(verdicts);

    findings.heading("SQUEAK, per point");
    findings.text(
        "Frequency with which Eq. 11 holds at every checked step; the ratio ‖K − K̃‖₂(1−ε)/γ at the end and at its worst \
         step (mean and largest over the seeds); atoms at the end; atoms and copies over q̄ d_eff (the theorem allows for 3).",
    );
    findings.table(ladder_table(results.iter().map(|result| (result, &result.ladder))));
    let figure = draw(results.iter().map(|result| (result.problem.name, &result.ladder)));
    findings.figure("guarantees-squeak", "SQUEAK per point: Eq. 11, error and size against q̄", figure);

    findings.heading("Blocked, lazy and merged beside per point");
    comparisons.write(findings, results);

    for (i, name) in ["INK-ORACLE, exact scores", "INK-ESTIMATE"].into_iter().enumerate() {
        findings.heading(name);
        findings.text(ink_text(results, i));
        findings.table(ladder_table(results.iter().map(|result| (result, &result.ink[i]))));
        let figure = draw(results.iter().map(|result| (result.problem.name, &result.ink[i])));
        let file = ["guarantees-ink-oracle", "guarantees-ink-estimate"][i];
        findings.figure(file, format!("{name}: Eq. 11, error and size against q̄"), figure);
    }
}

fn introduction(findings: &mut Findings, plan: &Plan, results: &[Results]) {
    let fewer = if plan.seeds.count < SEEDS { format!(" (fewer than the usual {SEEDS})") } else { String::new() };
    findings.text(format!(
        "Streams of {} rows, followed with {}{fewer} for every number below, and compared at {CHECKS} steps of each \
         with the exact kernel matrix: does 0 ≼ K − K̃ ≼ γ/(1−ε) K(K+γI)⁻¹ (Eq. 11 of INK) hold, γ = {LEVERAGE_RIDGE}, ε = \
         {ACCURACY}, δ = {FAILURE_PROB}?",
        plan.rows, plan.seeds
    ));
    let mut table = Table::new(&[("stream", Align::Left), ("what it is", Align::Left), ("d_eff(γ)", Align::Right)]);
    for result in results {
        table.row([result.problem.name.into(), result.problem.about.into(), significant(result.effective_dim(), 4)]);
    }
    findings.table(table);
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn two(mean: f64, largest: f64) -> String {
    format!("{} / {}", significant(mean, 3), significant(largest, 3))
}

fn ladder_table<'a>(rows: impl Iterator<Item = (&'a Results, &'a Vec<Runs>)>) -> Table {
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        ("stream", Align::Left),
        right("q̄"),
        right("Eq. 11 always"),
        right("ratio, mean / max"),
        right("worst ratio, mean / max"),
        right("atoms"),
        right("atoms/(q̄ d_eff)"),
        right("copies/(q̄ d_eff)"),
    ]);
    for (result, ladder) in rows {
        for runs in ladder {
            let scale = runs.oversampling as f64 * result.effective_dim();
            table.row([
                result.problem.name.to_owned(),
                count(runs.oversampling),
                percent(runs.share(|run| run.holds_always)),
                two(runs.mean(|run| run.ratio), runs.largest(|run| run.ratio)),
                two(runs.mean(|run| run.worst_ratio), runs.largest(|run| run.worst_ratio)),
                format!("{:.1}", runs.mean(|run| run.atoms)),
                significant(runs.mean(|run| run.atoms) / scale, 3),
                significant(runs.mean(|run| run.copies) / scale, 3),
            ]);
        }
    }
    table
}

/// Frequency, worst ratio and size against q̄, a line a stream.
fn draw<'a>(ladders: impl Iterator<Item = (&'static str, &'a Vec<Runs>)> + Clone) -> String {
    let lines = |value: &dyn Fn(&Runs) -> f64| -> Vec<Series> {
        let line = |(name, runs): (&str, &Vec<Runs>)| {
            Series::new(name, Kind::Line, runs.iter().map(|r| (r.oversampling as f64, value(r))).collect())
        };
        ladders.clone().map(line).collect()
    };
    let chart = |title: &str, y_label: &str, log_y: bool, series: Vec<Series>| Chart {
        title: title.into(),
        x_label: "q̄".into(),
        y_label: y_label.into(),
        log_x: true,
        log_y,
        series,
    };
    let largest = ladders.clone().flat_map(|(_, runs)| runs).map(|r| r.oversampling).max().unwrap_or(1) as f64;
    let smallest = ladders.clone().flat_map(|(_, runs)| runs).map(|r| r.oversampling).min().unwrap_or(1) as f64;
    let mut ratios = lines(&|runs| runs.mean(|run| run.worst_ratio));
    ratios.push(Series::new("the bound", Kind::Dashed, vec![(smallest, 1.0), (largest, 1.0)]));
    let charts = [
        chart("Eq. 11 at every step", "share of runs", false, lines(&|runs| runs.share(|run| run.holds_always))),
        chart("Error at the worst step", "‖K − K̃‖₂ (1−ε)/γ, mean", true, ratios),
        chart("Size at the end", "atoms, mean", true, lines(&|runs| runs.mean(|run| run.atoms))),
    ];
    side_by_side(&charts, 1350, 430)
}

fn theorem_verdicts(plan: &Plan, results: &[Results]) -> Vec<Verdict> {
    let last = results.iter().filter_map(|result| result.ladder.last());
    let share = last.clone().map(|runs| runs.share(|run| run.holds_always)).fold(1.0, f64::min);
    let q = last.clone().map(|runs| runs.oversampling).max().unwrap_or(0);
    let worst = last.clone().map(|runs| runs.largest(|run| run.worst_ratio)).fold(0.0, f64::max);
    let size = last.map(|runs| runs.largest(|run| run.worst_copies)).fold(0.0, f64::max);
    let promised = 1.0 - FAILURE_PROB;
    vec![
        Verdict::new(
            format!("SQUEAK at the theorem's q̄ = {}: Eq. 11 at every step with probability {promised}", count(q)),
            format!(
                "{} of {} runs on the worst stream; largest ratio {}",
                percent(share),
                plan.seeds.count,
                significant(worst, 3)
            ),
            share >= promised,
        ),
        Verdict::new(
            "SQUEAK at the theorem's q̄: at most 3 q̄ d_eff copies at every step",
            format!("at most {} q̄ d_eff", significant(size, 3)),
            size <= 3.0,
        ),
        smallest_oversampling(results),
    ]
}

/// The least q̄ that is enough everywhere.
fn smallest_oversampling(results: &[Results]) -> Verdict {
    let enough = |result: &Results| {
        let mut least = None;
        for runs in result.ladder.iter().rev() {
            if runs.share(|run| run.holds_always) < 1.0 - FAILURE_PROB {
                break;
            }
            least = Some(runs.oversampling);
        }
        (result.problem.name, least)
    };
    let words: Vec<String> = results
        .iter()
        .map(enough)
        .map(|(name, least)| format!("{name} {}", least.map_or_else(|| "none".into(), |q| format!("q̄ = {}", count(q)))))
        .collect();
    Verdict {
        target: "the least q̄ from which on Eq. 11 holds at every step in 90 % of the runs (no target)".into(),
        found: words.join(", "),
        met: None,
    }
}

fn ink_text(results: &[Results], which: usize) -> String {
    let bounds: Vec<String> = results
        .iter()
        .filter_map(|result| Some((result, result.ink[which].last()?)))
        .map(|(result, last)| {
            let bound = last.largest(|run| run.theorem);
            let kept = last.runs.iter().all(|run| run.atoms as usize == result.problem.rows.len());
            let stop = if kept {
                format!("every row is kept from q̄ = {} on", count(last.oversampling))
            } else {
                format!("not every row is kept at q̄ = {} yet", count(last.oversampling))
            };
            format!("{}: {}, {stop}", result.problem.name, significant(bound, 3))
        })
        .collect();
    format!(
        "The theorem's q̄ by stream, and where the ladder ends: {}. Where every row is kept K̃ cannot be better, and a \
         larger q̄ changes nothing. Copies are the sum of the weights b.",
        bounds.join("; ")
    )
}
