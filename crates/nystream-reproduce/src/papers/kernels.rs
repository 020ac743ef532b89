//! Tables of kernel approximations: the relative error of feature maps over all rows, ours beside the printed value.

use std::time::Instant;

use nystream::kernel::Kernel;
use nystream::random::Generator;
use nystream::rows::Rows;
use nystream::sketch::incremental::{
    FeatureMap, IncrementalOptions, IncrementalSketch, PseudoInverse, incremental_nystrom, modified_nystrom,
};
use nystream::{Error, Result};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::data::Loaded;
use super::file::{Approximation, KernelSet, KernelTable, Method, Variant};
use super::limits::Limits;
use super::store::Record;
use crate::findings::Findings;
use crate::plot::{Chart, Kind, Series, side_by_side};
use crate::statistics::mean;
use crate::study::Settings;
use crate::table::{Align, Table, count, significant};

/// Of a method at a budget, by order: relative error, seconds.
struct Cell<'a> {
    method: &'a Method,
    budget: usize,
    runs: Vec<(f64, f64)>,
}

impl Cell<'_> {
    fn error(&self) -> f64 {
        mean(self.runs.iter().map(|run| run.0))
    }

    fn spread(&self) -> f64 {
        let middle = self.error();
        let squares: f64 = self.runs.iter().map(|run| (run.0 - middle).powi(2)).sum();
        (squares / (self.runs.len() as f64 - 1.0).max(1.0)).sqrt()
    }

    fn seconds(&self) -> f64 {
        mean(self.runs.iter().map(|run| run.1))
    }
}

/// Runs a table.
pub(super) fn run(
    study: &'static str,
    table: &KernelTable,
    settings: &Settings,
    stage: &mut dyn FnMut(&str),
) -> Result<Findings> {
    let limits = Limits::new(study, settings, &table.heading)?;
    let mut findings = limits.begin(study, &table.heading);
    let (mut sets, mut charts) = (Vec::new(), Vec::new());
    for set in &table.sets {
        findings.heading(&set.name);
        let (there, file) = limits.usable(&set.data, &mut findings)?;
        if !there {
            continue;
        }
        let mut variants = Vec::new();
        for variant in &set.variants {
            let data = Loaded::read(&limits.folder, &set.data, &variant.scale)?;
            let kernel = data.kernel(variant)?;
            let bandwidth = kernel.bandwidth().unwrap_or(f64::NAN);
            let mut cells = Vec::new();
            for budget in set.budgets.iter().map(|b| b.budget) {
                for method in &table.methods {
                    stage(&format!("{study}: {} ({}), B = {budget}, {}", set.name, variant.scale, method.title));
                    let about = json!({
                        "sha256": file["sha256"], "rows": limits.rows, "scale": variant.scale, "bandwidth": bandwidth,
                        "shares": [table.projection_share, table.sample_share, table.rank_share], "blocks": table.blocks,
                        "approximation": format!("{:?}", method.approximation), "budget": budget,
                        "first_seed": table.heading.first_seed,
                    });
                    let record = limits.store.record(about);
                    cells.push(cell(table, method, &kernel, budget, (&data, &record), &limits)?);
                }
            }
            findings.text(format!(
                "Scale {}, σ = {} ({}), {} rows.",
                variant.scale,
                significant(bandwidth, 4),
                variant.bandwidth,
                count(data.rows.len().min(limits.most_rows()) as u64)
            ));
            limits.say_if_fewer(cells.iter().map(|cell| cell.runs.len() as u64), &mut findings);
            findings.table(shown(set, &cells));
            variants.push(json!({
                "scale": variant.scale, "bandwidth_rule": variant.bandwidth, "bandwidth": bandwidth,
                "cells": cells.iter().map(|cell| numbers(set, cell)).collect::<Vec<_>>(),
            }));
            charts.push(chart(table, set, variant, &cells));
        }
        sets.push(json!({ "name": set.name, "data": file, "variants": variants }));
    }
    limits.require_any(!sets.is_empty())?;
    findings.heading("Figure");
    let svg = side_by_side(&charts, 480 * charts.len() as u32, 480);
    findings.figure(study, "relative error of the kernel matrix against the budget", svg);
    findings.data = json!({ "run": limits.numbers(), "sets": sets });
    findings.remark = limits.store.remark()?;
    Ok(findings)
}

fn cell<'a>(
    table: &KernelTable,
    method: &'a Method,
    kernel: &Kernel,
    budget: usize,
    (data, record): (&Loaded, &Record),
    limits: &Limits,
) -> Result<Cell<'a>> {
    let one = |order: u64| {
        if let Some(kept) = record.run(order) {
            return Ok(Some(kept));
        }
        if !limits.open() {
            return Ok(None);
        }
        let seed = table.heading.first_seed.wrapping_add(order);
        let (rows, _) = data.permuted(seed, limits.most_rows());
        let started = Instant::now();
        let map = approximated(table, method, kernel, budget, rows.rows(), seed)?;
        let features = map.features(rows.rows());
        let seconds = started.elapsed().as_secs_f64();
        drop(features);
        let run = (map.relative_error(rows.rows()), seconds);
        record.keep_run(order, &run)?;
        Ok(Some(run))
    };
    let runs: Vec<Result<Option<(f64, f64)>>> = (0..limits.orders).into_par_iter().map(one).collect();
    let runs: Vec<Option<(f64, f64)>> = runs.into_iter().collect::<Result<_>>()?;
    Ok(Cell { method, budget, runs: runs.into_iter().flatten().collect() })
}

/// The feature map after all rows.
fn approximated(
    table: &KernelTable,
    method: &Method,
    kernel: &Kernel,
    budget: usize,
    rows: Rows,
    seed: u64,
) -> Result<FeatureMap> {
    if rows.len() < budget {
        return Err(Error::Shape { what: "rows", found: rows.len(), expected: budget });
    }
    let share = |share: f64| ((share * budget as f64).round() as usize).max(1);
    let (sample_size, rank) = (share(table.sample_share), share(table.rank_share));
    match method.approximation {
        Approximation::IncrementalNystrom => incremental_nystrom(*kernel, rows.slice(0, budget), rank),
        Approximation::ModifiedNystrom => {
            let sampled = Generator::new(seed).choose(rows.len(), sample_size);
            modified_nystrom(*kernel, rows, &sampled, rank)
        }
        Approximation::Sketch { every, full_inverse } => {
            let options = IncrementalOptions {
                projection_size: share(table.projection_share),
                sample_size,
                rank,
                blocks: table.blocks,
                pseudo_inverse: if full_inverse { PseudoInverse::Full } else { PseudoInverse::Leading },
                most_rows: rows.len(),
                seed,
            };
            let mut sketch = IncrementalSketch::start(kernel, options, rows.slice(0, budget))?;
            let mut kernels = vec![0.0; sample_size];
            for i in (budget..rows.len()).step_by(every.max(1)) {
                sketch.map().kernels(rows.row(i), &mut kernels);
                sketch.enter(rows.row(i), &kernels)?;
            }
            sketch.refresh()?;
            Ok(sketch.map().clone())
        }
    }
}

fn shown(set: &KernelSet, cells: &[Cell]) -> Table {
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        ("method", Align::Left),
        right("B"),
        right("relative error"),
        right("printed"),
        right("difference"),
        right("seconds"),
        right("printed"),
    ]);
    for cell in cells {
        let printed = printed(set, cell);
        let ours = cell.error();
        table.row([
            cell.method.title.clone(),
            cell.budget.to_string(),
            format!("{ours:.4} ± {:.4}", cell.spread()),
            printed.map(|p| format!("{} ± {}", p.mean, p.sd.unwrap_or(0.0))).unwrap_or_default(),
            printed.map(|p| format!("{:+.4}", ours - p.mean)).unwrap_or_default(),
            significant(cell.seconds(), 3),
            printed.and_then(|p| p.seconds).map(|s| s.to_string()).unwrap_or_default(),
        ]);
    }
    table
}

fn printed<'a>(set: &'a KernelSet, cell: &Cell) -> Option<&'a super::file::Printed> {
    set.budgets.iter().find(|b| b.budget == cell.budget)?.printed.get(&cell.method.title)
}

fn numbers(set: &KernelSet, cell: &Cell) -> Value {
    let printed = printed(set, cell);
    json!({
        "method": cell.method.title, "budget": cell.budget, "mean": cell.error(), "sd": cell.spread(),
        "errors": cell.runs.iter().map(|run| run.0).collect::<Vec<_>>(), "seconds": cell.seconds(),
        "printed": printed.map(|p| json!({ "mean": p.mean, "sd": p.sd, "seconds": p.seconds })),
        "difference": printed.map(|p| cell.error() - p.mean),
    })
}

fn chart(table: &KernelTable, set: &KernelSet, variant: &Variant, cells: &[Cell]) -> Chart {
    let line = |method: &Method| {
        let own = cells.iter().filter(|cell| cell.method.title == method.title);
        let points = own.map(|cell| (cell.budget as f64, cell.error())).collect();
        Series::new(method.title.clone(), Kind::Line, points)
    };
    Chart {
        title: format!("{}, {}", set.name, variant.words()),
        x_label: "budget B".into(),
        y_label: "relative error".into(),
        log_x: false,
        log_y: true,
        series: table.methods.iter().map(line).collect(),
    }
}
