//! Peak memory of `nystream fit` on files: below the target, and the same for twice the rows.
//!
//! The numbers are the process's own (`peak_bytes` of its JSON). The file grows in between, so the larger fit sees the
//! smaller one's rows and as many again. The dictionary is named, because uniform atoms take some 5 MB less than those of
//! randomly pivoted Cholesky, and which of them predicts better depends on the sample. A peak still depends a little on
//! the sample that the seed draws, so each size is fitted with several seeds: the limit is judged by the largest peak,
//! sameness by the medians.

use std::fs;
use std::path::Path;

use crate::Outcome;
use crate::command::{Report, program};
use crate::generate::{Digits, FEATURES, Growing};
use crate::table::{Table, seconds, verdict};

/// Rows of the larger fit, unless asked otherwise; the smaller has half.
const ROWS: usize = 10_000_000;
const BUDGET: usize = 200;
const DICTIONARY: &str = "rpcholesky";
/// Fits of each size, with seeds from 0.
const RUNS: usize = 3;
/// Bytes allowed.
const LIMIT: f64 = 400e6;
/// How much the two medians may differ and still be the same.
const SAME: f64 = 0.05;

/// Fits both and compares. `rows` is the size of the larger fit.
pub fn run(folder: &Path, rows: Option<usize>) -> Outcome {
    let rows = rows.unwrap_or(ROWS);
    let program = program()?;
    println!(
        "Peak memory of `nystream fit --budget {BUDGET} --dictionary {DICTIONARY}` on CSV files of {FEATURES} features\n"
    );
    let path = folder.join("rows.csv");
    let mut file = Growing::create(&path, rows, Digits::Six)?;
    let scaled = rows < ROWS;
    let judged = |met: bool| if scaled { "not judged: scaled down".to_owned() } else { verdict(met) };
    let mut table = Table::new(&["rows", "file", "time", "peaks", "median", "target", "verdict"]);
    let mut medians = Vec::new();
    for (part, total) in [(rows / 2, rows / 2), (rows - rows / 2, rows)] {
        file.grow(part)?;
        let mut peaks = Vec::new();
        let mut time = f64::INFINITY;
        for seed in 0..RUNS {
            let (budget, seed) = (BUDGET.to_string(), seed.to_string());
            let options = ["--budget", &budget, "--seed", &seed, "--dictionary", DICTIONARY];
            let report = Report::of_fit(&program, &path.to_string_lossy(), folder, &options)?;
            report.require_rows(total)?;
            peaks.push(report.number("peak_bytes")?);
            time = time.min(report.number("seconds_total")?);
        }
        peaks.sort_by(f64::total_cmp);
        let (median, largest) = (peaks[RUNS / 2], peaks[RUNS - 1]);
        table.row([
            total.to_string(),
            format!("{:.0} MB", fs::metadata(&path)?.len() as f64 / 1e6),
            seconds(time),
            peaks.iter().map(|peak| format!("{:.1}", peak / 1e6)).collect::<Vec<_>>().join(", "),
            format!("{:.1} MB", median / 1e6),
            format!("< {:.0} MB", LIMIT / 1e6),
            judged(largest < LIMIT),
        ]);
        medians.push(median);
    }
    let ratio = medians[1] / medians[0];
    table.row([
        "larger / smaller".to_owned(),
        String::new(),
        String::new(),
        String::new(),
        format!("{ratio:.3}"),
        format!("1 ± {SAME}"),
        judged((ratio - 1.0).abs() <= SAME),
    ]);
    println!("{table}");
    if scaled {
        println!("Scaled down by --rows {rows}: the targets are about {} and {ROWS} rows.\n", ROWS / 2);
    }
    Ok(())
}
