//! What sequential dictionaries cost: SQUEAK's time per row and memory against the length of the stream, blocks against
//! single rows, its share of a matrix product's rate; INK-ESTIMATE's exponents.
//!
//! The stream is `synth:friedman` (10 columns, standardised), Gaussian kernel, σ = 3; a budget of 500 atoms fixes the
//! size of the dictionary. γ starts at 0.05, too small for the budget, so that it is full after a few blocks, and rises
//! from there: short streams have as many atoms as long ones. Two threads.
//!
//! Multiply-adds of scoring n atoms: n³/6 for the Cholesky factor, n³/6 for its triangular inverse, n²/2 for the diagonal of the
//! inverse ([`Squeak::scoring_work`]: a block is scored twice, once more where γ rises); b·n·d for the inner products of the
//! kernel of b rows that join; two operations each. Nothing is counted for exponentials, draws or moving numbers. They are
//! compared with the rate of a matrix product ([`crate::machine`]) on as many threads: a stream is cut into pieces, products
//! are timed between them, the faster of those before and after counts, and the share is the median over the pieces.

use nystream::kernel::Kernel;
use nystream::rows::Rows;
use nystream::sketch::{EstimateOracle, InkOptions, InkOracle, Schedule, SequentialDictionary, Squeak, SqueakOptions};
use nystream::source::{OpenOptions, RecordBlock, open};

use crate::Outcome;
use crate::machine::{Product, threads};
use crate::table::{Table, seconds, verdict};
use crate::timing::{median, timed};

const COLS: usize = 10;
/// The longest stream, unless asked otherwise; the others have a tenth and a hundredth.
const ROWS: usize = 1_000_000;
const BUDGET: usize = 500;
const BLOCK: usize = 512; // about as many rows as atoms: the products are larger than with fewer rows, and a row costs no more
/// γ at the start.
const LEVERAGE_RIDGE: f64 = 0.05;
const THREADS: usize = 2;
/// Pieces of a stream, and the seconds of products between them.
const PIECES: usize = 20;
const PRODUCTS: f64 = 0.2;
/// Rows that single rows are timed on.
const SINGLE_ROWS: usize = 40;
/// Rows that blocks are timed on beside single rows.
const BLOCK_ROWS: usize = 40 * BLOCK;
/// Rows before either is timed, so that the budget is full.
const WARM_ROWS: usize = 8000;

/// Measures SQUEAK and INK-ESTIMATE. `rows` is the length of the longest stream.
pub fn run(rows: Option<usize>) -> Outcome {
    let rows = rows.unwrap_or(ROWS);
    let data = Data::new(rows.max(WARM_ROWS + BLOCK_ROWS))?;
    let pool = threads(THREADS)?;
    pool.install(|| lengths(&data, rows))?;
    pool.install(|| blocks(&data))?;
    pool.install(|| ink(&data, rows))
}

/// Standardised rows.
struct Data(Vec<f64>);

impl Data {
    fn new(rows: usize) -> Outcome<Self> {
        let mut source = open(&format!("synth:friedman?n={rows}&d={COLS}&seed=1"), &OpenOptions::default())?;
        let mut block = RecordBlock::default();
        let mut record = [0.0; COLS + 1];
        let mut numbers = Vec::with_capacity(rows * COLS);
        while source.read(&mut block, 4096)? {
            for i in 0..block.len() {
                block.cells.rows().row(i).copy_to(&mut record);
                numbers.extend(record[..COLS].iter().map(|x| (x - 0.5) * 12f64.sqrt()));
            }
        }
        Ok(Self(numbers))
    }

    fn rows(&self, start: usize, end: usize) -> nystream::Result<Rows<'_>> {
        Rows::dense(&self.0[start * COLS..end * COLS], end - start, COLS)
    }
}

fn options(schedule: Schedule) -> nystream::Result<SqueakOptions> {
    let kernel = Kernel::gaussian(3.0)?;
    Ok(SqueakOptions { budget: Some(BUDGET), schedule, seed: 1, ..SqueakOptions::new(kernel, LEVERAGE_RIDGE) })
}

/// Multiply-adds of the kernels of `rows` rows that join `atoms` atoms.
fn kernel_work(atoms: usize, rows: usize) -> f64 {
    (rows * (atoms + rows) * COLS) as f64
}

fn lengths(data: &Data, rows: usize) -> Outcome {
    println!("SQUEAK in blocks of {BLOCK}, at most {BUDGET} atoms, d = {COLS}, {THREADS} threads\n");
    let mut table =
        Table::new(&["rows", "time", "per row", "atoms", "γ in force", "bytes held", "share of a product's rate"]);
    let mut product = Product::new();
    let mut points = Vec::new();
    let mut bytes = Vec::new();
    let mut share = 0.0;
    for length in [rows / 100, rows / 10, rows] {
        let mut squeak = Squeak::new(options(Schedule::Blocks { rows: BLOCK })?)?;
        let piece = length.div_ceil(PIECES).next_multiple_of(BLOCK);
        let (mut time, mut shares) = (0.0, Vec::new());
        let mut before = product.rate(PRODUCTS);
        for start in (0..length).step_by(piece) {
            let end = (start + piece).min(length);
            let (mut kernels, scored) = (0.0, squeak.scoring_work());
            let (seconds, outcome) = timed(|| -> nystream::Result<()> {
                for start in (start..end).step_by(BLOCK) {
                    let end = (start + BLOCK).min(end);
                    kernels += kernel_work(squeak.atoms(), end - start);
                    squeak.insert(data.rows(start, end)?)?;
                }
                if end == length { squeak.flush() } else { Ok(()) }
            });
            outcome?;
            time += seconds;
            let after = product.rate(PRODUCTS);
            shares.push(2.0 * (kernels + squeak.scoring_work() - scored) / seconds / before.max(after));
            before = after;
        }
        share = median(&mut shares);
        let report = squeak.report()?;
        table.row([
            length.to_string(),
            seconds(time),
            format!("{:.1} µs", 1e6 * time / length as f64),
            report.atoms.to_string(),
            format!("{:.3}", report.leverage_ridge),
            format!("{:.1} MB", report.bytes as f64 / 1e6),
            format!("{:.0} %", 100.0 * share),
        ]);
        points.push((length as f64, time));
        bytes.push(report.bytes as f64);
    }
    println!("{table}");
    let slope = slope(&points);
    let growth = bytes[2] / bytes[0];
    let judged = |met: bool| if rows < ROWS { "not judged: scaled down".to_owned() } else { verdict(met) };
    let mut targets = Table::new(&["", "found", "target", "verdict"]);
    let mut target = |name: &str, found: String, wanted: &str, met: bool| {
        targets.row([name.to_owned(), found, wanted.to_owned(), judged(met)]);
    };
    target("slope of log time against log rows", format!("{slope:.3}"), "≤ 1.05", slope <= 1.05);
    target("bytes held, longest / shortest", format!("{growth:.3}"), "≤ 1.05", growth <= 1.05);
    target("share of a product's rate, longest", format!("{:.0} %", 100.0 * share), "≥ 40 %", share >= 0.4);
    println!("{targets}");
    println!("Counted: 2 (n³/3 + n²/2) operations for every scoring of n atoms, 2 b n d for the kernels of b rows.\n");
    Ok(())
}

/// Least-squares slope of log y against log x.
pub fn slope(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|&(x, y)| (x.ln(), y.ln())).collect();
    let count = logs.len() as f64;
    let mean = logs.iter().fold((0.0, 0.0), |sum, p| (sum.0 + p.0 / count, sum.1 + p.1 / count));
    let cross: f64 = logs.iter().map(|p| (p.0 - mean.0) * (p.1 - mean.1)).sum();
    cross / logs.iter().map(|p| (p.0 - mean.0).powi(2)).sum::<f64>()
}

/// A dictionary with a full budget, from here on under this schedule: settings of the first of two that are merged hold.
fn warmed(data: &Data, schedule: Schedule) -> Outcome<Squeak> {
    let mut full = Squeak::new(SqueakOptions { seed: 2, ..options(Schedule::Blocks { rows: BLOCK })? })?;
    full.insert(data.rows(1, WARM_ROWS)?)?;
    let mut first = Squeak::new(options(schedule)?)?;
    first.insert(data.rows(0, 1)?)?;
    Ok(first.merge(full)?)
}

fn blocks(data: &Data) -> Outcome {
    println!("Blocks beside single rows, from the same dictionary after {WARM_ROWS} rows\n");
    let mut table = Table::new(&["schedule", "rows timed", "atoms before", "atoms after", "per row"]);
    let mut times = Vec::new();
    let single = ("per point", Schedule::PerPoint, SINGLE_ROWS);
    for (name, schedule, count) in [
        single,
        ("blocks of 512", Schedule::Blocks { rows: BLOCK }, BLOCK_ROWS),
        ("lazy, blocks of 512", Schedule::Lazy { rows: BLOCK, growth: Schedule::GROWTH }, BLOCK_ROWS),
    ] {
        let mut squeak = warmed(data, schedule)?;
        let before = squeak.atoms();
        let rows = data.rows(WARM_ROWS, WARM_ROWS + count)?;
        let (time, outcome) = timed(|| squeak.insert(rows).and_then(|()| squeak.flush()));
        outcome?;
        let each = time / count as f64;
        table.row([
            name.to_owned(),
            count.to_string(),
            before.to_string(),
            squeak.atoms().to_string(),
            format!("{:.1} µs", 1e6 * each),
        ]);
        times.push(each);
    }
    println!("{table}");
    let ratio = times[0] / times[1];
    let mut targets = Table::new(&["", "found", "target", "verdict"]);
    let name = "times as fast per row, blocks of 512".to_owned();
    targets.row([name, format!("{ratio:.1}"), "≥ 30".to_owned(), verdict(ratio >= 30.0)]);
    println!("{targets}");
    Ok(())
}

fn ink(data: &Data, rows: usize) -> Outcome {
    // Its cost grows with the stream by nature.
    let longest = (rows / 100).clamp(800, 8000);
    println!("INK-ESTIMATE, γ = 1 at the start: time of the last 100 rows\n");
    let mut table = Table::new(&["rows before", "atoms allowed", "atoms", "per row"]);
    let mut at = |length: usize, budget: usize| -> Outcome<f64> {
        let mut ink = InkOracle::<EstimateOracle>::new(InkOptions::with_budget(Kernel::gaussian(3.0)?, 1.0, budget))?;
        ink.insert(data.rows(0, length)?)?;
        let more = data.rows(length, length + 100)?;
        let (time, outcome) = timed(|| ink.insert(more));
        outcome?;
        let each = time / 100.0;
        table.row([
            length.to_string(),
            budget.to_string(),
            ink.atoms().len().to_string(),
            format!("{:.1} µs", 1e6 * each),
        ]);
        Ok(each)
    };
    let mut by_rows = Vec::new();
    for length in [longest / 8, longest / 4, longest / 2, longest] {
        by_rows.push((length as f64, at(length, 50)?));
    }
    let mut by_atoms = Vec::new();
    for budget in [25, 50, 100, 200] {
        by_atoms.push((budget as f64, at((longest / 4).max(400), budget)?));
    }
    println!("{table}");
    println!(
        "Exponents: {:.2} in t (at most 1: O(t m + m³) a row), {:.2} in the atoms (1 to 3). No target.\n",
        slope(&by_rows),
        slope(&by_atoms)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_exponents() {
        let points: Vec<(f64, f64)> = [1.0, 10.0, 100.0].map(|x: f64| (x, 3.0 * x.powf(1.5))).into();
        assert!((slope(&points) - 1.5).abs() < 1e-12);
    }

    #[test]
    fn work_is_that_of_the_header() {
        assert_eq!(kernel_work(10, 2), 240.0);
        // Two rows at once, scored twice at n = 2: 2 (8/3 + 2).
        let data = Data::new(2).unwrap();
        let options = SqueakOptions::new(Kernel::gaussian(3.0).unwrap(), 1e-9);
        let mut squeak = Squeak::new(options).unwrap();
        squeak.insert(data.rows(0, 2).unwrap()).unwrap();
        squeak.flush().unwrap();
        assert!(squeak.atoms() == 2 && (squeak.scoring_work() - 2.0 * (8.0 / 3.0 + 2.0)).abs() < 1e-12);
    }
}
