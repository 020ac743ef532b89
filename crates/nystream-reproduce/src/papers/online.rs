//! Tables of learners over sets: ours beside the printed value, and the difference.

use nystream::error::nearest_hint;
use nystream::learner::online::{Order, Targets, find};
use nystream::{Error, Result};
use serde_json::{Value, json};

use super::cell::{Cell, Task};
use super::data::Loaded;
use super::file::{Contender, OnlineSet, OnlineTable, Target, TuneOn, Variant};
use super::limits::Limits;
use crate::findings::{Findings, Verdict};
use crate::plot::{Chart, Kind, Series, grid, side_by_side};
use crate::statistics::mean;
use crate::study::Settings;
use crate::table::{Align, Table, count, significant};

/// A set as one variant reads it, and what every contender made of it.
struct Block<'a> {
    variant: &'a Variant,
    title: String,
    kind: Targets,
    cells: Vec<(&'a Contender, Cell)>,
    numbers: Value,
}

/// Runs a table.
pub(super) fn run(
    study: &'static str,
    table: &OnlineTable,
    settings: &Settings,
    stage: &mut dyn FnMut(&str),
) -> Result<Findings> {
    let table = &only(table, &settings.learners)?;
    let limits = Limits::new(study, settings, &table.heading)?;
    let mut findings = limits.begin(study, &table.heading);
    if !settings.learners.is_empty() {
        findings.text(format!("**Only these rows of the table: {}.**", settings.learners.join("; ")));
    }
    let (mut done, mut sets) = (Vec::new(), Vec::new());
    for set in &table.sets {
        findings.heading(&set.name);
        let (there, file) = limits.usable(&set.data, &mut findings)?;
        if !there {
            continue;
        }
        let mut blocks = Vec::new();
        for variant in &set.variants {
            let sha256 = file["sha256"].as_str().unwrap_or_default();
            let block = block(study, table, (set, variant), sha256, &limits, stage)?;
            findings.text(&block.title);
            let orders = block.cells.iter().filter(|(_, cell)| cell.runs.is_ok()).map(|(_, cell)| cell.orders());
            limits.say_if_fewer(orders, &mut findings);
            findings.table(shown(set, &block, limits.orders));
            for (contender, cell) in &block.cells {
                if let Err(why) = &cell.runs {
                    findings.text(format!("{} has no result: {why}.", contender.title));
                }
            }
            blocks.push(block);
        }
        let name = format!("{study}-{}", set.name.replace('.', "-"));
        let charts: Vec<Chart> = blocks.iter().map(|block| chart(set, block)).collect();
        let svg = side_by_side(&charts, 720 * charts.len() as u32, 480);
        findings.figure(&name, format!("{}: error against time a row", set.name), svg);
        let variants: Vec<Value> = blocks.iter().map(|block| block.numbers.clone()).collect();
        sets.push(json!({ "name": set.name, "data": file, "budget": set.budget, "variants": variants }));
        done.push((set, blocks));
    }
    limits.require_any(!done.is_empty())?;
    findings.heading("All sets");
    findings.text("Each set under the reading of it with the smallest mean error of all learners.");
    findings.figure(study, "error against time a row, all sets", overview(&done));
    findings.heading("Targets");
    findings.verdicts(verdicts(table, &done, &limits));
    findings.data = json!({ "run": limits.numbers(), "sets": sets });
    findings.remark = limits.store.remark()?;
    Ok(findings)
}

/// The table with the rows of these titles alone, or all of them if none is named.
fn only(table: &OnlineTable, titles: &[String]) -> Result<OnlineTable> {
    let mut table = table.clone();
    let there = || table.learners.iter().map(|contender| contender.title.as_str());
    if let Some(unknown) = titles.iter().find(|title| !there().any(|name| name == *title)) {
        let found = format!("'{unknown}'{}", nearest_hint(unknown, there()));
        return Err(Error::InvalidParam { name: "learner", found, expected: "the title of a row of the table" });
    }
    table.learners.retain(|contender| titles.is_empty() || titles.contains(&contender.title));
    Ok(table)
}

fn block<'a>(
    study: &str,
    table: &'a OnlineTable,
    (set, variant): (&'a OnlineSet, &'a Variant),
    sha256: &str,
    limits: &Limits,
    stage: &mut dyn FnMut(&str),
) -> Result<Block<'a>> {
    let data = Loaded::read(&limits.folder, &set.data, &variant.scale)?;
    let kernel = data.kernel(variant)?;
    let task = Task {
        data: &data,
        scale: &variant.scale,
        kernel,
        adversarial: set.adversarial,
        tune_on: variant.tune_on,
        tune_share: set.tune_share,
        heading: &table.heading,
        limits,
        sha256,
    };
    let mut cells = Vec::new();
    for contender in &table.learners {
        stage(&format!("{study}: {} ({}), {}", set.name, variant.scale, contender.title));
        cells.push((contender, task.run(contender, contender.budget.unwrap_or(set.budget))?));
    }
    let rows = cells.first().map_or(0, |(_, cell)| cell.rows);
    let bandwidth = kernel.bandwidth().unwrap_or(f64::NAN);
    let tuned = match (set.adversarial, variant.tune_on) {
        _ if cells.iter().all(|(_, cell)| cell.tuning.is_none()) => String::new(),
        (None, _) if set.tune_share == 1.0 => "; tuned on all rows in an order of their own".to_owned(),
        (None, _) => format!("; tuned on {} of the rows, in an order of their own", set.tune_share),
        (Some(_), TuneOn::Stream) => "; tuned on a stream of its own".to_owned(),
        (Some(_), TuneOn::Set) => "; tuned on the set that the stream is made of".to_owned(),
    };
    let title = format!(
        "Scale {}, σ = {} ({}), {} rows, budget {}{tuned}.",
        variant.scale,
        significant(bandwidth, 4),
        variant.bandwidth,
        count(rows as u64),
        set.budget,
    );
    let one = |(contender, cell): &(&Contender, Cell)| {
        let printed = contender.printed(set);
        json!({
            "title": contender.title, "learner": contender.learner, "options": contender.options,
            "budget": contender.budget.unwrap_or(set.budget), "mean": cell.error(), "sd": cell.spread(), "runs": cell.numbers(),
            "printed": printed.map(|p| json!({ "mean": p.mean, "sd": p.sd, "seconds": p.seconds, "atoms": p.atoms })),
            "difference": printed.map(|p| unit(data.kind) * cell.error() - p.mean),
        })
    };
    let numbers = json!({
        "scale": variant.scale, "bandwidth_rule": variant.bandwidth, "bandwidth": bandwidth, "rows": rows,
        "learners": cells.iter().map(one).collect::<Vec<_>>(),
    });
    Ok(Block { variant, title, kind: data.kind, cells, numbers })
}

/// Mistakes are printed in percent.
fn unit(kind: Targets) -> f64 {
    match kind {
        Targets::Classes => 100.0,
        Targets::Numbers => 1.0,
    }
}

fn decimals(kind: Targets) -> usize {
    match kind {
        Targets::Classes => 3,
        Targets::Numbers => 5,
    }
}

fn shown(set: &OnlineSet, block: &Block, orders: u64) -> Table {
    let (error, undecided) = match block.kind {
        Targets::Classes => ("mistakes, %", "undecided"),
        Targets::Numbers => ("mean squared error", ""),
    };
    let mut columns = vec![("learner", Align::Left), (error, Align::Right)];
    columns.extend(["printed", "difference", "seconds", "printed", "atoms", "printed"].map(|c| (c, Align::Right)));
    columns.push(("tuned", Align::Left));
    if !undecided.is_empty() {
        columns.push((undecided, Align::Right));
    }
    // A column of its own where they are not the same everywhere.
    let fewer = block.cells.iter().any(|(_, cell)| cell.runs.is_ok() && cell.orders() < orders);
    if fewer {
        columns.push(("orders", Align::Right));
    }
    let mut table = Table::new(&columns);
    let (unit, digits) = (unit(block.kind), decimals(block.kind));
    for (contender, cell) in &block.cells {
        let printed = contender.printed(set);
        let or_empty = |value: Option<String>| value.unwrap_or_default();
        let theirs = or_empty(printed.map(|p| match p.sd {
            Some(sd) => format!("{} ± {sd}", p.mean),
            None => p.mean.to_string(),
        }));
        let seconds = or_empty(printed.and_then(|p| p.seconds).map(|s| s.to_string()));
        let atoms = or_empty(printed.and_then(|p| p.atoms).map(|a| a.to_string()));
        if cell.orders() == 0 {
            let (none, found) = (String::new, if cell.runs.is_ok() { "not run" } else { "none" });
            table.row([contender.title.clone(), found.into(), theirs, none(), none(), seconds]);
            continue;
        }
        let ours = unit * cell.error();
        let mut row = vec![
            contender.title.clone(),
            format!("{ours:.digits$} ± {:.digits$}", unit * cell.spread()),
            theirs,
            or_empty(printed.map(|p| format!("{:+.digits$}", ours - p.mean))),
            significant(cell.seconds(), 3),
            seconds,
            significant(cell.atoms(), 3),
            atoms,
            cell.tuned_words(),
        ];
        if !undecided.is_empty() {
            row.push(format!("{:.1}", cell.undecided()));
        }
        if fewer {
            row.push(cell.orders().to_string());
        }
        table.row(row);
    }
    table
}

fn chart(set: &OnlineSet, block: &Block) -> Chart {
    let unit = unit(block.kind);
    let point = |(contender, cell): &(&Contender, Cell)| {
        let place = (1e6 * cell.seconds() / cell.rows as f64, unit * cell.error());
        Series::new(contender.title.clone(), Kind::Labelled, vec![place]).in_group(group(contender))
    };
    Chart {
        title: format!("{}, {}", set.name, block.variant.words()),
        x_label: "microseconds a row".into(),
        y_label: if block.kind == Targets::Classes { "mistakes, %" } else { "mean squared error" }.into(),
        log_x: true,
        log_y: block.kind == Targets::Numbers,
        series: block.cells.iter().map(point).collect(),
    }
}

/// Colours tell SkeGD, the streaming ridge, other learners of second order, and those of first order apart.
fn group(contender: &Contender) -> usize {
    match find(&contender.learner) {
        Ok(entry) if entry.name == "skegd" => 0,
        Ok(entry) if entry.name == "streaming-ridge" => 1,
        Ok(entry) if entry.order == Order::Second => 2,
        _ => usize::MAX,
    }
}

/// All sets in one picture, each under the reading that suits the learners best.
fn overview(done: &[(&OnlineSet, Vec<Block>)]) -> String {
    let whole =
        |block: &Block| mean(block.cells.iter().filter(|(_, cell)| cell.orders() > 0).map(|(_, cell)| cell.error()));
    let best = |(set, blocks): &(&OnlineSet, Vec<Block>)| {
        let empty = |block: &Block| block.cells.iter().filter(|(_, cell)| cell.orders() == 0).count();
        let order = |a: &&Block, b: &&Block| empty(a).cmp(&empty(b)).then(whole(a).total_cmp(&whole(b)));
        let block = blocks.iter().min_by(order)?;
        Some(chart(set, block))
    };
    grid(&done.iter().filter_map(best).collect::<Vec<_>>(), 2, 600, 430)
}

fn verdicts(table: &OnlineTable, done: &[(&OnlineSet, Vec<Block>)], limits: &Limits) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for target in &table.targets {
        for (set, blocks) in done {
            let judged: Vec<_> = blocks.iter().filter_map(|block| judge(target, set, block)).collect();
            let Some((words, _, _)) = judged.first() else { continue };
            let found: Vec<String> = judged.iter().map(|(_, found, _)| found.clone()).collect();
            let met = judged.iter().any(|(_, _, met)| *met);
            let mut verdict = Verdict::new(format!("{}: {words}", set.name), found.join("; "), met);
            let cells = || blocks.iter().flat_map(|block| &block.cells).filter(|(_, cell)| cell.runs.is_ok());
            verdict.met = verdict.met.filter(|_| cells().all(|(_, cell)| limits.enough(cell.orders())));
            verdicts.push(verdict);
        }
    }
    verdicts
}

/// An error as it is shown; "none" where the learner has no result.
fn written(block: &Block, cell: &Cell) -> String {
    match &cell.runs {
        Ok(runs) if !runs.is_empty() => format!("{:.*}", decimals(block.kind), unit(block.kind) * cell.error()),
        _ => "none".to_owned(),
    }
}

/// The target in words, what was found, and whether that meets it.
fn judge(target: &Target, set: &OnlineSet, block: &Block) -> Option<(String, String, bool)> {
    let row = |title: &str| block.cells.iter().find(|(contender, _)| contender.title == title);
    match target {
        Target::AtMostAbove { title, by } | Target::Within { title, by } => {
            let (contender, cell) = row(title)?;
            let printed = contender.printed(set)?.mean;
            let ours = unit(block.kind) * cell.error();
            let found = format!("{} ({})", written(block, cell), block.variant.words());
            Some(if matches!(target, Target::Within { .. }) {
                let words = format!("{title} within {by} of {printed} under one of the readings");
                (words, found, (ours - printed).abs() <= *by)
            } else {
                let words = format!("{title} at most {by} above {printed} under one of the readings");
                (words, found, ours <= printed + by)
            })
        }
        Target::Best { title } => {
            let (_, ours) = row(title)?;
            let others = block.cells.iter().filter(|(contender, _)| contender.title != *title);
            let others = others.filter(|(_, cell)| cell.orders() > 0);
            let (best, cell) = others.min_by(|a, b| a.1.error().total_cmp(&b.1.error()))?;
            let (here, there) = (written(block, ours), written(block, cell));
            let found = format!("{here} beside {there} of {} ({})", best.title, block.variant.words());
            Some((format!("{title} is best under one of the readings"), found, ours.error() <= cell.error()))
        }
    }
}
