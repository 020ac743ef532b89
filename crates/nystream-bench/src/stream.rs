//! The streaming learner over whole streams, reading included, on two threads: speed, and whether length changes anything.
//!
//! A row of the recursion needs 2·m² multiply-adds for m atoms (m² to predict it, m² to sum it), which is 4·m² operations.
//! What these take at the rate of a matrix product ([`crate::machine`]) on the same threads, measured in turn with our
//! runs, is compared with our time a row. Speeds are in this process; peaks of memory are those that the command reports of
//! itself. A generated stream is generated as it is read.

use std::env;
use std::path::{Path, PathBuf};

use nystream::fit::{FitOptions, Silent};
use nystream::learner::stream;
use nystream::learner::streaming::StreamingOptions;
use nystream::source::{OpenOptions, open};

use crate::Outcome;
use crate::command::{Report, program};
use crate::machine::{Product, threads};
use crate::table::{Table, seconds, verdict};
use crate::timing::timed;

const THREADS: usize = 2;
/// Runs of each kind; the fastest counts.
const ROUNDS: usize = 3;

const REAL_SET: &str = "cod-rna.libsvm.gz";
const REAL_BUDGET: usize = 200;
/// Rows a second.
const REAL_TARGET: f64 = 200_000.0;

const LONG_ROWS: usize = 1_000_000;
const LONG_COLS: usize = 20;
const LONG_BUDGET: usize = 1000;
/// Rows a second.
const LONG_TARGET: f64 = 18_000.0;
/// How many times the time of its multiply-adds a row may take.
const PRODUCT_TARGET: f64 = 2.0;

/// Rows of the longest stream of three, unless asked otherwise; the others have a tenth and a hundredth.
const SCALE_ROWS: usize = 10_000_000;
const SCALE_BUDGET: usize = 200;
/// Their parts of the longest, and how often each is run in every round. Lengths take turns, and the median counts: the machine's
/// speed changes by a third within minutes, and the fastest of many short runs has a better minute than any long one can have.
const LENGTHS: [(usize, usize); 3] = [(100, 7), (10, 3), (1, 1)];
/// How many times the least the largest may be and still be the same.
const FLAT: f64 = 1.1;

/// Measures all three. `rows` shortens the generated streams.
pub fn run(folder: &Path, rows: Option<usize>) -> Outcome {
    let pool = threads(THREADS)?;
    pool.install(real)?;
    pool.install(|| long(rows.map_or(LONG_ROWS, |rows| rows.min(LONG_ROWS))))?;
    scale(folder, rows.unwrap_or(SCALE_ROWS).min(SCALE_ROWS))
}

/// One pass over a source: its rows and seconds.
fn learn(location: &str, budget: usize) -> Outcome<(f64, f64)> {
    let (time, model) = timed(|| -> nystream::Result<_> {
        let mut source = open(location, &OpenOptions::default())?;
        let options = StreamingOptions { budget, ..StreamingOptions::default() };
        stream(source.as_mut(), FitOptions::default().table, options, &mut Silent)
    });
    Ok((model?.summary().rows as f64, time))
}

fn judged(full_size: bool, met: bool) -> String {
    if full_size { verdict(met) } else { "not judged: scaled down".to_owned() }
}

fn real() -> Outcome {
    let title = format!("{REAL_SET}, {REAL_BUDGET} atoms, {THREADS} threads, reading and unpacking included");
    let path = env::var_os("NYSTREAM_DATA").map(|folder| PathBuf::from(folder).join(REAL_SET));
    let Some(path) = path.filter(|path| path.exists()) else {
        println!(
            "{title}: SKIPPED, for NYSTREAM_DATA does not name a folder with it. Its target does not count as met.\n"
        );
        return Ok(());
    };
    println!("{title}\n");
    let (mut rows, mut best) = (0.0, f64::INFINITY);
    for _ in 0..ROUNDS {
        let (seen, time) = learn(&path.to_string_lossy(), REAL_BUDGET)?;
        (rows, best) = (seen, best.min(time));
    }
    let rate = rows / best;
    let mut table = Table::new(&["rows", "time", "rows/s", "target", "verdict"]);
    let target = format!("≥ {REAL_TARGET:.0}");
    table.row([rows.to_string(), seconds(best), format!("{rate:.0}"), target, verdict(rate >= REAL_TARGET)]);
    println!("{table}");
    Ok(())
}

fn long(rows: usize) -> Outcome {
    let location = format!("synth:friedman?n={rows}&d={LONG_COLS}");
    println!("{location}, {LONG_BUDGET} atoms, {THREADS} threads, generating included\n");
    let mut product = Product::new();
    let (mut best, mut flops) = (f64::INFINITY, 0.0f64);
    for _ in 0..ROUNDS {
        flops = flops.max(product.rate(0.5));
        best = best.min(learn(&location, LONG_BUDGET)?.1);
    }
    let (rate, a_row) = (rows as f64 / best, best / rows as f64);
    let products = multiply_adds(LONG_BUDGET) / flops;
    let full = rows == LONG_ROWS;
    let mut table = Table::new(&["what", "found", "target", "verdict"]);
    let mut line = |what: &str, found: String, target: String, met: bool| {
        table.row([what.to_owned(), found, target, judged(full, met)]);
    };
    line("rows/s", format!("{rate:.0}"), format!("≥ {LONG_TARGET:.0}"), rate >= LONG_TARGET);
    let times = a_row / products;
    let target = format!("≤ {PRODUCT_TARGET}");
    line("time a row over that of its multiply-adds", format!("{times:.2}"), target, times <= PRODUCT_TARGET);
    println!("{table}");
    let (a_row, products) = (a_row * 1e6, products * 1e6);
    println!(
        "{:.2} s in all; {a_row:.1} µs a row, of which 2·{LONG_BUDGET}² multiply-adds take {products:.1} µs at {:.1} GFLOP/s.\n",
        best,
        flops / 1e9
    );
    Ok(())
}

/// Operations of the 2·m² multiply-adds of a row.
fn multiply_adds(atoms: usize) -> f64 {
    4.0 * (atoms as f64).powi(2)
}

fn scale(folder: &Path, rows: usize) -> Outcome {
    let program = program()?;
    println!("`nystream fit --method stream --budget {SCALE_BUDGET}` on `synth:friedman`, {THREADS} threads\n");
    let full = rows == SCALE_ROWS;
    let mut table = Table::new(&[
        "rows",
        "runs",
        "median time",
        "rows/s",
        "of those beyond the line above",
        "peak memory",
        "target",
        "verdict",
    ]);
    let lengths = LENGTHS.map(|(part, runs)| ((rows / part).max(1), runs));
    let (mut times, mut largest) = (lengths.map(|_| Vec::new()), lengths.map(|_| 0.0f64));
    for _ in 0..ROUNDS {
        for (i, (rows, runs)) in lengths.into_iter().enumerate() {
            for _ in 0..runs {
                let (budget, threads) = (SCALE_BUDGET.to_string(), THREADS.to_string());
                let options = ["--method", "stream", "--budget", &budget, "--threads", &threads];
                let location = format!("synth:friedman?n={rows}");
                let report = Report::of_fit(&program, &location, folder, &options)?;
                report.require_rows(rows)?;
                times[i].push(report.number("seconds_total")?);
                largest[i] = largest[i].max(report.number("peak_bytes")?);
            }
        }
    }
    let (mut rates, mut peaks) = (Vec::new(), Vec::new());
    let mut before: Option<(usize, f64)> = None;
    for (((rows, _), times), peak) in lengths.into_iter().zip(&mut times).zip(largest) {
        let time = median(times);
        rates.push(rows as f64 / time);
        peaks.push(peak);
        let (rate, peak) = (format!("{:.0}", rows as f64 / time), format!("{:.1} MB", peak / 1e6));
        // Without what the first rows cost, where everything is chosen.
        let beyond =
            before.map_or_else(String::new, |(fewer, less)| format!("{:.0}", (rows - fewer) as f64 / (time - less)));
        before = Some((rows, time));
        let runs = times.len().to_string();
        table.row([rows.to_string(), runs, seconds(time), rate, beyond, peak, String::new(), String::new()]);
    }
    let (rate, peak) = (spread(&rates), spread(&peaks));
    table.row([
        "largest / least".to_owned(),
        String::new(),
        String::new(),
        format!("{rate:.3}"),
        String::new(),
        format!("{peak:.3}"),
        format!("both ≤ {FLAT}"),
        judged(full, rate <= FLAT && peak <= FLAT),
    ]);
    println!("{table}");
    Ok(())
}

/// The one in the middle; of an even number, the smaller of two.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) / 2]
}

/// How many times the least the largest is.
fn spread(values: &[f64]) -> f64 {
    let ends = values.iter().fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(*v), high.max(*v)));
    ends.1 / ends.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_tells_its_rows() {
        let (rows, time) = learn("synth:friedman?n=2500&d=6", 20).unwrap();
        assert!(rows == 2500.0 && time > 0.0);
        assert!(learn("synth:nothing", 20).is_err());
    }

    #[test]
    fn what_is_compared_is_what_was_promised() {
        // Two numbers multiplied and added are two operations: 2·10² pairs.
        assert_eq!(multiply_adds(10), 400.0);
        assert_eq!(spread(&[2.0, 1.0, 1.1]), 2.0);
        assert_eq!([median(&mut [3.0, 1.0, 2.0]), median(&mut [4.0, 1.0])], [2.0, 1.0]);
        assert_eq!(judged(false, true), "not judged: scaled down");
        assert_eq!(judged(true, false), "MISSED");
    }
}
