//! Tables, figures and verdicts of the runs.

use super::runs::{Method, Run, Runs};
use super::{
    ACCURACY, BLOCK, CHECKS, FAILURE_PROB, FALSE_ALARM, GROWTH, LEVERAGE_RIDGE, Plan, Results, SEEDS, VARIANTS,
};
use crate::findings::{Findings, Verdict};
use crate::plot::{Chart, Kind, Series, side_by_side};
use crate::statistics::{proportions_p_value, ranks_p_value};
use crate::table::{Align, Table, count, significant};

/// Those that should be as good as per point.
const SCHEDULES: [Method; 4] = [Method::Blocked, Method::Lazy, Method::Merged2, Method::Merged4];
/// What is compared: Eq. 11, the error, the size.
const MEASURES: [&str; 3] = ["Eq. 11", "ratio", "atoms"];

pub(super) fn write(findings: &mut Findings, plan: &Plan, results: &[Results]) {
    introduction(findings, plan, results);
    let comparisons = compare(results);
    let mut verdicts = theorem_verdicts(plan, results);
    verdicts.extend(schedule_verdicts(plan, &comparisons));
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
    schedules(findings, results, &comparisons);

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
    let fewer = if plan.seeds < SEEDS { format!(" (fewer than the usual {SEEDS})") } else { String::new() };
    findings.text(format!(
        "Streams of {} rows, followed with {} seeds{fewer} for every number below, and compared at {CHECKS} steps of each \
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

fn percent(share: f64) -> String {
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
                plan.seeds,
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

/// One variant beside one reference, on one stream, at one q̄.
struct Comparison {
    stream: &'static str,
    oversampling: u64,
    variant: Method,
    reference: Method,
    /// Of Eq. 11, the ratio, the atoms.
    p_values: [f64; 3],
    /// Shares of runs in which Eq. 11 holds; quotients of the means of ratio and atoms.
    shares: [f64; 2],
    quotients: [f64; 2],
}

/// Every variant beside per point, and beside per point without the floor.
fn compare(results: &[Results]) -> Vec<Comparison> {
    let mut all = Vec::new();
    for result in results {
        for group in &result.compared {
            for reference in &group[..2] {
                for variant in group[1..=VARIANTS.len()].iter().filter(|variant| variant.method != reference.method) {
                    all.push(compare_two(result.problem.name, variant, reference));
                }
            }
        }
    }
    all
}

fn compare_two(stream: &'static str, variant: &Runs, reference: &Runs) -> Comparison {
    // Merged dictionaries exist at the end only.
    let everywhere = variant.method.follows();
    let holds = |run: &Run| if everywhere { run.holds_always } else { run.holds };
    let ratio = |run: &Run| if everywhere { run.worst_ratio } else { run.ratio };
    let hits = |runs: &Runs| (runs.count(holds), runs.runs.len() as u64);
    Comparison {
        stream,
        oversampling: variant.oversampling,
        variant: variant.method,
        reference: reference.method,
        p_values: [
            proportions_p_value(hits(variant), hits(reference)),
            ranks_p_value(&variant.values(ratio), &reference.values(ratio)),
            ranks_p_value(&variant.values(|run| run.atoms), &reference.values(|run| run.atoms)),
        ],
        shares: [variant.share(holds), reference.share(holds)],
        quotients: [
            variant.mean(ratio) / reference.mean(ratio),
            variant.mean(|run| run.atoms) / reference.mean(|run| run.atoms),
        ],
    }
}

/// The p-value below which two samples count as different, all tests together.
fn level(comparisons: &[Comparison]) -> f64 {
    FALSE_ALARM / (comparisons.len() * MEASURES.len()).max(1) as f64
}

fn schedule_verdicts(plan: &Plan, comparisons: &[Comparison]) -> Vec<Verdict> {
    let level = level(comparisons);
    let verdict = |reference: Method, measure: usize| {
        let cells: Vec<&Comparison> =
            comparisons.iter().filter(|c| c.reference == reference && SCHEDULES.contains(&c.variant)).collect();
        let differ = cells.iter().filter(|c| c.p_values[measure] < level).count();
        Verdict {
            target: format!(
                "blocked, lazy and merged indistinguishable from {}: {}",
                reference.name(),
                MEASURES[measure]
            ),
            found: format!("{differ} of {} comparisons differ (p < {})", cells.len(), significant(level, 2)),
            // Few seeds tell nothing apart.
            met: (plan.seeds >= SEEDS).then_some(differ == 0),
        }
    };
    [Method::PerPoint, Method::WithoutFloor]
        .into_iter()
        .flat_map(|reference| (0..MEASURES.len()).map(move |measure| (reference, measure)))
        .map(|(reference, measure)| verdict(reference, measure))
        .collect()
}

fn schedules(findings: &mut Findings, results: &[Results], comparisons: &[Comparison]) {
    let level = level(comparisons);
    findings.text(format!(
        "Blocks of {BLOCK} rows; lazy with growth {GROWTH}; merged from per-point dictionaries of 2 and 4 equal parts of the \
         stream, judged at the end, where the others are judged at every checked step. \"No floor\" is per point without the \
         floor p̃/2 of line 5 (blocks of one row): the rule that the other schedules and merging have. Eq. 11 is compared by \
         Fisher's exact test, ratio and atoms by the test of Mann and Whitney; {} tests in all, so that p < {} counts as \
         different (Bonferroni, {} %). Quotients of means are the variant's over the reference's; * marks those that differ.",
        comparisons.len() * MEASURES.len(),
        significant(level, 2),
        100.0 * FALSE_ALARM,
    ));
    findings.table(summary_table(comparisons, level));
    findings.text(WHY);
    findings.table(length_table(results));
    findings.text("Every comparison:");
    findings.table(comparison_table(comparisons, level));
}

fn summary_table(comparisons: &[Comparison], level: f64) -> Table {
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        ("variant", Align::Left),
        ("beside", Align::Left),
        right("Eq. 11 differs"),
        right("ratio differs"),
        right("ratio, quotient"),
        right("atoms differ"),
        right("atoms, quotient"),
    ]);
    for reference in [Method::PerPoint, Method::WithoutFloor] {
        for variant in VARIANTS.into_iter().filter(|&variant| variant != reference) {
            let cells: Vec<&Comparison> =
                comparisons.iter().filter(|c| c.reference == reference && c.variant == variant).collect();
            let differ =
                |i: usize| format!("{} of {}", cells.iter().filter(|c| c.p_values[i] < level).count(), cells.len());
            let range = |i: usize| {
                let low = cells.iter().map(|c| c.quotients[i]).fold(f64::INFINITY, f64::min);
                let high = cells.iter().map(|c| c.quotients[i]).fold(0.0, f64::max);
                format!("{low:.2} to {high:.2}")
            };
            let names = [variant.name().to_owned(), reference.name().to_owned()];
            table.row(names.into_iter().chain([differ(0), differ(1), range(0), differ(2), range(1)]));
        }
    }
    table
}

/// What the experiments beside the schedules are.
const WHY: &str = "\
Three experiments look for what makes sizes differ: per point without the floor; merging a per-point dictionary of all rows \
but the last with one of that row alone (\"merged, last row\"), which scores every atom once at (1+ε)γ, as every merge does, and \
does nothing else; and blocks of several lengths, whose atoms are scored the less often the longer the block (mean atoms):";

/// Atoms against the rows of a block.
fn length_table(results: &[Results]) -> Table {
    let lengths = [
        (Method::WithoutFloor, "blocks of 1"),
        (Method::Blocks5, "of 5"),
        (Method::Blocked, "of 25"),
        (Method::Blocks100, "of 100"),
        (Method::Lazy, "lazy, of 25"),
    ];
    let columns = [("stream", Align::Left), ("q̄", Align::Right)].into_iter();
    let columns: Vec<_> = columns.chain(lengths.map(|(_, name)| (name, Align::Right))).collect();
    let mut table = Table::new(&columns);
    for result in results {
        for group in &result.compared {
            let atoms = |(method, _): &(Method, &str)| {
                let runs = group.iter().find(|runs| runs.method == *method);
                runs.map_or_else(String::new, |runs| format!("{:.1}", runs.mean(|run| run.atoms)))
            };
            let q = group.first().map_or(0, |runs| runs.oversampling);
            let start = [result.problem.name.to_owned(), count(q)].into_iter();
            table.row(start.chain(lengths.iter().map(atoms)));
        }
    }
    table
}

fn comparison_table(comparisons: &[Comparison], level: f64) -> Table {
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        ("stream", Align::Left),
        right("q̄"),
        ("variant", Align::Left),
        ("beside", Align::Left),
        right("Eq. 11"),
        right("p"),
        right("ratio, quotient"),
        right("p"),
        right("atoms, quotient"),
        right("p"),
    ]);
    for c in comparisons {
        let p = |i: usize| {
            let mark = if c.p_values[i] < level { "*" } else { "" };
            format!("{}{mark}", significant(c.p_values[i], 2))
        };
        table.row([
            c.stream.to_owned(),
            count(c.oversampling),
            c.variant.name().to_owned(),
            c.reference.name().to_owned(),
            format!("{} : {}", percent(c.shares[0]), percent(c.shares[1])),
            p(0),
            format!("{:.3}", c.quotients[0]),
            p(1),
            format!("{:.3}", c.quotients[1]),
            p(2),
        ]);
    }
    table
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
