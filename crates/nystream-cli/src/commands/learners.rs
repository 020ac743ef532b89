//! `nystream learners`: every learner with its options, defaults and citation.

use std::fmt::Write as _;

use clap::Args;
use nystream::learner::online::{LEARNERS, LearnerEntry, OptionSpec, find};
use serde_json::{Value, json};

use crate::args::Common;
use crate::output::{Outcome, print};
use crate::table::{Align, Table};

/// Show every learner: what it takes, what it costs, its options and the paper it is from
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nystream learners
  nystream learners projectron++
  nystream learners --json")]
pub struct LearnersArgs {
    /// Learners to show in full (default: a table of all of them)
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

pub fn run(args: &LearnersArgs, common: &Common) -> Outcome {
    let chosen = args.names.iter().map(|name| find(name)).collect::<Result<Vec<_>, _>>()?;
    if common.json {
        let shown = if chosen.is_empty() { LEARNERS } else { &chosen[..] };
        let all: Vec<Value> = shown.iter().map(|entry| to_json(entry)).collect();
        return print(&format!("{}\n", json!({ "learners": all })));
    }
    if common.quiet {
        return Ok(());
    }
    if chosen.is_empty() {
        return print(&overview());
    }
    print(&chosen.iter().map(|entry| in_full(entry)).collect::<Vec<_>>().join("\n"))
}

fn targets(entry: &LearnerEntry) -> Vec<String> {
    entry.targets.iter().map(ToString::to_string).collect()
}

fn to_json(entry: &LearnerEntry) -> Value {
    let option = |option: &OptionSpec| {
        json!({
            "name": option.name,
            "symbol": option.symbol,
            "meaning": option.meaning,
            "default": option.default.to_string(),
            "range": option.kind.to_string(),
        })
    };
    json!({
        "name": entry.name,
        "title": entry.title,
        "citation": entry.citation,
        "targets": targets(entry),
        "order": entry.order.word(),
        "cost": entry.cost,
        "options": entry.options.iter().map(option).collect::<Vec<_>>(),
    })
}

fn overview() -> String {
    let columns = ["learner", "order", "targets", "work a row", "options"].map(|name| (name, Align::Left));
    let mut table = Table::new(&columns);
    for entry in LEARNERS {
        let options: Vec<&str> = entry.options.iter().map(|option| option.name).collect();
        let (targets, options) = (targets(entry).join(", "), options.join(", "));
        table.row([entry.name, entry.order.word(), &targets, entry.cost, &options]);
    }
    format!("{table}\nB is the budget, d the non-zero values of a row. `nystream learners NAME` tells more.\n")
}

fn in_full(entry: &LearnerEntry) -> String {
    let mut text = format!("{}: {}\n", entry.name, entry.title);
    let _ = writeln!(text, "  {}", entry.citation);
    let _ =
        writeln!(text, "  {} order, for {}; {} a row", entry.order.word(), targets(entry).join(" and "), entry.cost);
    if entry.options.is_empty() {
        let _ = writeln!(text, "  no options of its own");
        return text;
    }
    let columns = ["option", "symbol", "default", "range", "what it is"].map(|name| (name, Align::Left));
    let mut table = Table::new(&columns);
    for option in entry.options {
        let (default, range) = (option.default.to_string(), option.kind.to_string());
        table.row([&format!("--{}", option.name), option.symbol, &default, &range, option.meaning]);
    }
    table.to_string().lines().for_each(|line| _ = writeln!(text, "  {line}"));
    text
}
