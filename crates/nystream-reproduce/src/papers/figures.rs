//! Figures of errors and times against a parameter of a learner.

use nystream::learner::online::Targets;
use nystream::{Error, Result};
use serde_json::{Value, json};

use super::cell::{Cell, Task};
use super::data::Loaded;
use super::file::{Claim, Curve, FigureSpec, FigureTable, Trend};
use super::limits::Limits;
use crate::findings::{Findings, Verdict};
use crate::plot::{Chart, Kind, Series, side_by_side};
use crate::statistics::mean;
use crate::study::Settings;
use crate::table::{Align, Table, count, significant};

/// A curve's points: the parameter's value, and what came of it.
type Points<'a> = (&'a Curve, Vec<(f64, Cell)>);

/// Runs all figures of a table.
pub(super) fn run(
    study: &'static str,
    table: &FigureTable,
    settings: &Settings,
    stage: &mut dyn FnMut(&str),
) -> Result<Findings> {
    let limits = Limits::new(study, settings, &table.heading)?;
    let mut findings = limits.begin(study, &table.heading);
    let (mut verdicts, mut numbers) = (Vec::new(), Vec::new());
    for figure in &table.figures {
        findings.heading(&figure.caption);
        let (there, file) = limits.usable(&figure.data, &mut findings)?;
        if !there {
            continue;
        }
        let data = Loaded::read(&limits.folder, &figure.data, &figure.variant.scale)?;
        if data.kind != Targets::Classes {
            let (found, expected) = ("numbers".to_owned(), "two classes");
            return Err(Error::InvalidParam { name: "target", found, expected });
        }
        let task = Task {
            data: &data,
            scale: &figure.variant.scale,
            kernel: data.kernel(&figure.variant)?,
            adversarial: None,
            tune_on: figure.variant.tune_on,
            tune_share: figure.tune_share,
            heading: &table.heading,
            limits: &limits,
            sha256: file["sha256"].as_str().unwrap_or_default(),
        };
        let mut curves = Vec::new();
        for curve in &figure.curves {
            let mut points = Vec::new();
            for &value in &figure.values {
                stage(&format!("{study}: {}, {} = {value}, {}", figure.name, figure.x, curve.contender.title));
                let mut contender = curve.contender.clone();
                let mut budget = contender.budget.unwrap_or(curve.budget);
                if figure.x == "budget" {
                    budget = value as usize;
                } else {
                    contender.options.insert(figure.x.clone(), value.to_string());
                }
                points.push((value, task.run(&contender, budget)?));
            }
            curves.push((curve, points));
        }
        findings.text(format!(
            "{}, scale {}, σ = {} ({}), {} rows; tuned at every point on {} of the rows.",
            figure.set,
            figure.variant.scale,
            significant(task.kernel.bandwidth().unwrap_or(f64::NAN), 4),
            figure.variant.bandwidth,
            count(data.rows.len().min(limits.most_rows()) as u64),
            figure.tune_share,
        ));
        let all = || curves.iter().flat_map(|(_, points)| points).map(|(_, cell)| cell.orders());
        limits.say_if_fewer(all(), &mut findings);
        findings.table(shown(figure, &curves));
        findings.figure(&figure.name, &figure.caption, drawn(figure, &curves));
        let mut verdict = verdict(&figure.claim, &curves);
        verdict.met = verdict.met.filter(|_| all().all(|orders| limits.enough(orders)));
        verdicts.push(verdict);
        numbers.push(json!({ "name": figure.name, "data": file, "x": figure.x, "curves": listed(&curves) }));
    }
    limits.require_any(!numbers.is_empty())?;
    findings.heading("What the paper says of them");
    findings.verdicts(verdicts);
    findings.data = json!({ "run": limits.numbers(), "figures": numbers });
    findings.remark = limits.store.remark()?;
    Ok(findings)
}

fn shown(figure: &FigureSpec, curves: &[Points]) -> Table {
    let right = |name| (name, Align::Right);
    let columns = [
        ("curve", Align::Left),
        right(figure.x_label.as_str()),
        right("mistakes, %"),
        right("seconds"),
        ("tuned", Align::Left),
    ];
    let mut table = Table::new(&columns);
    for (curve, points) in curves {
        for (value, cell) in points {
            let mistakes = match &cell.runs {
                Ok(_) => format!("{:.3} ± {:.3}", 100.0 * cell.error(), 100.0 * cell.spread()),
                Err(why) => format!("none: {why}"),
            };
            let seconds = significant(cell.seconds(), 3);
            table.row([curve.contender.title.clone(), value.to_string(), mistakes, seconds, cell.tuned_words()]);
        }
    }
    table
}

fn drawn(figure: &FigureSpec, curves: &[Points]) -> String {
    let chart = |label: &str, pick: fn(&Cell) -> f64| Chart {
        title: figure.set.clone(),
        x_label: figure.x_label.clone(),
        y_label: label.into(),
        log_x: false,
        log_y: false,
        series: curves
            .iter()
            .map(|(curve, points)| {
                let points = points.iter().map(|(value, cell)| (*value, pick(cell))).collect();
                Series::new(curve.contender.title.clone(), Kind::Line, points)
            })
            .collect(),
    };
    let charts = [chart("mistakes, %", |cell| 100.0 * cell.error()), chart("seconds a run", Cell::seconds)];
    side_by_side(&charts, 1200, 460)
}

fn listed(curves: &[Points]) -> Vec<Value> {
    let point = |(value, cell): &(f64, Cell)| json!({ "x": value, "mean": cell.error(), "runs": cell.numbers() });
    let curve = |(curve, points): &Points| {
        json!({
            "title": curve.contender.title, "learner": curve.contender.learner, "options": curve.contender.options,
            "budget": curve.budget, "points": points.iter().map(point).collect::<Vec<_>>(),
        })
    };
    curves.iter().map(curve).collect()
}

/// The claimed curves' means at the first value and at the last.
fn verdict(claim: &Claim, curves: &[Points]) -> Verdict {
    let ends = |pick: fn(&Cell) -> f64| {
        let claimed = || curves.iter().filter(|(curve, _)| curve.claimed);
        let first = mean(claimed().filter_map(|(_, points)| points.first()).map(|(_, cell)| pick(cell)));
        let last = mean(claimed().filter_map(|(_, points)| points.last()).map(|(_, cell)| pick(cell)));
        (first, last)
    };
    let (mistakes, seconds) = (ends(|cell| 100.0 * cell.error()), ends(Cell::seconds));
    let holds = |trend: Option<Trend>, (first, last): (f64, f64)| match trend {
        None => true,
        Some(Trend::Falls) => last < first,
        Some(Trend::Rises) => last > first,
    };
    let found = format!(
        "from the first value to the last, mistakes {:.3} to {:.3} %, seconds {} to {}",
        mistakes.0,
        mistakes.1,
        significant(seconds.0, 3),
        significant(seconds.1, 3)
    );
    Verdict::new(claim.words.clone(), found, holds(claim.mistakes, mistakes) && holds(claim.seconds, seconds))
}
