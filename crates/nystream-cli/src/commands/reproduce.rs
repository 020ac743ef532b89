//! `nystream reproduce`: studies that show what is promised, as tables, figures and numbers.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use nystream::Error;
use nystream::fit::Observer;
use nystream_reproduce::{Needs, STUDIES, Settings, Study, find};
use serde_json::{Value, json};

use crate::args::Common;
use crate::output::{Outcome, print, write_text};
use crate::progress::Progress;
use crate::table::{Align, Table, duration};

mod extent;

use extent::Extent;

/// Run the studies behind the claims: guarantees against exact matrices, when dictionaries pay, merging, tables of papers
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nystream reproduce --list
  nystream reproduce guarantees --seeds 20 --first-seed 1000
  nystream reproduce merge-tree --rows 100000 --out report
  nystream reproduce one-pass drift --data FOLDER --out report
  nystream reproduce skegd-table-4 --data DIR --permutations 5
  nystream reproduce skegd-table-3 --data DIR --learner SkeGD --learner NOGD

Prints tables in Markdown. With --out it also writes report.md, the figures as SVG and the numbers as report.json.
Fewer seeds or rows take less time; the report says how many there were. A report that has more than the new one would have
is not replaced, but for --replace.

Tables of papers (skegd-*, online-mse) keep every finished run in FOLDER/cells of --out and take it from there when they are
run again with the same settings: a run that was broken off, or stopped by --minutes, goes on; more permutations can be added.")]
pub struct ReproduceArgs {
    /// Which studies (default: all that need no real data, or all of them with --data)
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Show the names, what each shows, and how long it takes
    #[arg(long)]
    list: bool,
    /// Folder for the report, its figures and numbers
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Runs of everything random, orders of every set (default: the study's own)
    #[arg(long, value_name = "N", visible_alias = "permutations")]
    seeds: Option<u64>,
    /// The first of these seeds (default: 0), to try on others what was found with some; not for tables of papers
    #[arg(long, value_name = "SEED")]
    first_seed: Option<u64>,
    /// Rows of the largest stream (default: the study's own)
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    /// Tables of papers begin no run after so many minutes each; what is finished is shown, and the report says what is not
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
    /// Tables of learners (skegd-table-3, skegd-table-4, online-mse) with the row of this title alone; may be given several times
    #[arg(long = "learner", value_name = "TITLE")]
    learners: Vec<String>,
    /// Replace a report in --out that has more studies, rows or seeds than this one
    #[arg(long, requires = "out")]
    replace: bool,
    /// Folder of the real data sets
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
}

pub fn run(args: &ReproduceArgs, common: &Common) -> Outcome {
    if args.list {
        return list(common);
    }
    let settings = Settings {
        seeds: args.seeds,
        first_seed: args.first_seed,
        rows: args.rows,
        data: args.data.clone(),
        cells: args.out.as_ref().map(|folder| folder.join("cells")),
        minutes: args.minutes,
        learners: args.learners.clone(),
    };
    let studies = chosen(args)?;
    let extent = extent(args, &studies);
    if let Some(folder) = &args.out {
        if !args.replace {
            extent.may_replace(folder)?;
        }
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, "create", e))?;
    }
    let mut progress = Progress::new(!common.quiet && !common.json);
    let mut all = Vec::new();
    for study in studies {
        let start = Instant::now();
        let findings = (study.run)(&settings, &mut |stage| progress.stage(stage))?;
        all.push((findings, start.elapsed()));
    }
    progress.finish();

    let mut text = String::new();
    for (findings, time) in &all {
        let remark = findings.remark.as_ref().map_or_else(String::new, |remark| format!(" {remark}."));
        let _ = writeln!(text, "{}\nTook {}.{remark}\n", findings.to_markdown(), duration(*time));
    }
    let numbers: Vec<Value> = all.iter().map(|(findings, _)| findings.to_json()).collect();
    let numbers = json!({ "studies": numbers });
    if let Some(folder) = &args.out {
        for figure in all.iter().flat_map(|(findings, _)| findings.figures()) {
            write_text(&folder.join(format!("{}.svg", figure.name)), &figure.svg)?;
        }
        write_text(&folder.join("report.md"), &format!("{}\n\n{text}", extent.line()))?;
        write_text(&folder.join("report.json"), &format!("{numbers:#}\n"))?;
    }
    match (common.json, common.quiet) {
        (true, _) => print(&format!("{numbers}\n")),
        (false, true) => Ok(()),
        (false, false) => print(&text),
    }
}

/// The studies that were asked for.
fn chosen(args: &ReproduceArgs) -> Result<Vec<&'static Study>, Error> {
    let studies: Vec<&Study> = if args.names.is_empty() {
        STUDIES.iter().filter(|study| study.needs == Needs::Nothing || args.data.is_some()).collect()
    } else {
        args.names.iter().map(|name| find(name)).collect::<Result<_, _>>()?
    };
    if let Some(study) = studies.iter().find(|study| study.needs == Needs::RealData && args.data.is_none()) {
        let found = format!("none, for '{}', which needs real data", study.name);
        return Err(Error::InvalidParam { name: "data", found, expected: "the folder of the sets" });
    }
    if let Some(study) = studies.iter().find(|study| study.is_of_a_paper() && args.first_seed.is_some()) {
        return Err(Error::InvalidParam {
            name: "first-seed",
            found: format!("a seed, for '{}'", study.name),
            expected: "only studies that are not of a paper, whose file states its seeds",
        });
    }
    match studies.iter().find(|study| !args.learners.is_empty() && !study.has_learners()) {
        Some(study) => Err(Error::InvalidParam {
            name: "learner",
            found: format!("a title, for '{}'", study.name),
            expected: "only tables of learners, as skegd-table-3",
        }),
        None => Ok(studies),
    }
}

/// What the report will cover.
fn extent(args: &ReproduceArgs, studies: &[&Study]) -> Extent {
    Extent {
        studies: studies.iter().map(|study| study.name.to_owned()).collect(),
        learners: args.learners.clone(),
        seeds: args.seeds,
        first_seed: args.first_seed,
        rows: args.rows,
        minutes: args.minutes,
        data: args.data.is_some(),
    }
}

fn list(common: &Common) -> Outcome {
    let needs = |study: &Study| match study.needs {
        Needs::Nothing => "nothing",
        Needs::RealData => "--data",
    };
    if common.json {
        let one = |study: &Study| json!({ "name": study.name, "description": study.description, "needs": needs(study), "minutes": study.minutes });
        return print(&format!("{}\n", json!({ "studies": STUDIES.iter().map(one).collect::<Vec<_>>() })));
    }
    let columns =
        [("name", Align::Left), ("needs", Align::Left), ("takes", Align::Left), ("what it shows", Align::Left)];
    let mut table = Table::new(&columns);
    for study in &STUDIES {
        table.row([study.name, needs(study), &format!("{} min", study.minutes), study.description]);
    }
    print(&table.to_string())
}
