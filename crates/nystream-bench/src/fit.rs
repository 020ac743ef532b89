//! Nyström ridge regression in memory beside scikit-learn's `Nystroem` + `Ridge`: same rows, centres, kernel and ridge.
//!
//! n = 100,000 rows, d = 20 columns, m = 1,000 centres, 2 threads each. Ours: packing the centres, kernel blocks, sums,
//! solution; the peer: `Nystroem.fit` on the centres, `transform` of all rows, `Ridge.fit`. Our ridge μ on the features
//! φ = L⁻¹k with an unpenalised intercept is `Ridge(alpha=μ)`: the features differ by a rotation, which a ridge does not
//! see. Both errors are on the same 10,000 further rows.
//!
//! Our rate counts n·m² operations for the symmetric sum Σkkᵀ (a multiplication and an addition for each of its m²/2
//! different entries) and 2·n·m·d for the inner products of the kernel, nothing for exponentials and the solution. It is
//! compared with the rate of a matrix product ([`crate::machine`]) on the same threads, measured before each of our fits.

use std::path::Path;

use faer::MatRef;
use nystream::fit::Summing;
use nystream::kernel::Kernel;
use nystream::model::{KernelModel, PredictWorkspace};
use nystream::random::Generator;
use nystream::rows::{RowBlock, Rows};
use nystream::sketch::Dictionary;
use nystream::solver::{Ridge, SolverOptions};
use nystream::source::{OpenOptions, RecordBlock, open};
use serde_json::json;

use crate::Outcome;
use crate::machine::{Product, threads};
use crate::peers::{Peer, number, share};
use crate::table::{Table, seconds, verdict};
use crate::timing::{settle, timed};

const ROWS: usize = 100_000;
const TEST_ROWS: usize = 10_000;
const COLS: usize = 20;
const CENTRES: usize = 1000;
const THREADS: usize = 2;
const RIDGE: f64 = 1.0;
const ROUNDS: usize = 10;
/// Rows of a kernel block: 8 MB, as in a fit from a file.
const BLOCK: usize = 1024;

/// Compares times, errors, and our rate with that of a matrix product.
pub fn run(folder: &Path) -> Outcome {
    println!("Nyström ridge fit, n = {ROWS}, d = {COLS}, m = {CENTRES}, {THREADS} threads each\n");
    let data = Data::new()?;
    let bandwidth = (COLS as f64).sqrt();
    let task = json!({
        "task": "nystroem_ridge",
        "x": share(folder, "x", &data.xs[..ROWS * COLS], &[ROWS, COLS])?,
        "y": share(folder, "y", &data.ys[..ROWS], &[ROWS])?,
        "x_test": share(folder, "x-test", &data.xs[ROWS * COLS..], &[TEST_ROWS, COLS])?,
        "y_test": share(folder, "y-test", &data.ys[ROWS..], &[TEST_ROWS])?,
        "z": share(folder, "z", &data.centres, &[CENTRES, COLS])?,
        "gamma": 1.0 / (2.0 * bandwidth * bandwidth),
        "alpha": RIDGE,
    });
    let kernel = Kernel::gaussian(bandwidth)?;
    let pool = threads(THREADS)?;
    let mut peer = Peer::start(THREADS)?;
    let mut product = Product::new();
    let (mut ours, mut theirs, mut product_rate) = (f64::INFINITY, f64::INFINITY, 0.0f64);
    let (mut our_error, mut their_error) = (f64::NAN, f64::NAN);
    for _ in 0..ROUNDS {
        product_rate = product_rate.max(pool.install(|| product.rate(0.3)));
        let (time, model) = pool.install(|| timed(|| data.fit(kernel)));
        ours = ours.min(time);
        our_error = data.test_error(&model?)?;
        let answer = peer.ask(&task)?;
        theirs = theirs.min(number(&answer, "seconds")?);
        their_error = number(&answer, "rmse")?;
        settle();
    }

    let (n, m, d) = (ROWS as f64, CENTRES as f64, COLS as f64);
    let rate = (n * m * m + 2.0 * n * m * d) / ours;
    let (speed, share, error) = (theirs / ours, rate / product_rate, our_error / their_error);
    let mut table = Table::new(&["", "ours", "peer", "ratio", "target", "verdict"]);
    let giga = |rate: f64| format!("{:.1} GFLOP/s", rate / 1e9);
    let mut row = |name: &str, cells: [String; 2], ratio: String, target: &str, met: bool| {
        let [ours, peer] = cells;
        table.row([name.to_owned(), ours, peer, ratio, target.to_owned(), verdict(met)]);
    };
    let times = [seconds(ours), seconds(theirs)];
    row("time, scikit-learn Nystroem + Ridge", times, format!("{speed:.2}"), "≥ 4", speed >= 4.0);
    let errors = [format!("{our_error:.5}"), format!("{their_error:.5}")];
    let same = (error - 1.0).abs() <= 0.01;
    row("test RMSE, the same", errors, format!("{error:.5}"), "1 ± 0.01", same);
    let rates = [giga(rate), giga(product_rate)];
    row("rate, matrix product", rates, format!("{:.0} %", share * 100.0), "≥ 65 %", share >= 0.65);
    println!("{table}");
    println!("Counted: n·m² + 2·n·m·d operations for ours, 2·1500³ for the product of two matrices.\n");
    Ok(())
}

/// Training rows, then test rows; targets; centres.
struct Data {
    xs: Vec<f64>,
    ys: Vec<f64>,
    centres: Vec<f64>,
    indices: Vec<u64>,
}

impl Data {
    fn new() -> Outcome<Self> {
        let location = format!("synth:friedman?n={}&d={COLS}&seed=1", ROWS + TEST_ROWS);
        let mut source = open(&location, &OpenOptions::default())?;
        let mut block = RecordBlock::default();
        let mut record = [0.0; COLS + 1];
        let (mut xs, mut ys) = (Vec::new(), Vec::new());
        while source.read(&mut block, 4096)? {
            for i in 0..block.len() {
                block.cells.rows().row(i).copy_to(&mut record);
                // Uniform on [0, 1], standardised.
                xs.extend(record[..COLS].iter().map(|x| (x - 0.5) * 12f64.sqrt()));
                ys.push(record[COLS]);
            }
        }
        let chosen = Generator::new(2).choose(ROWS, CENTRES);
        let centres = chosen.iter().flat_map(|&i| xs[i * COLS..(i + 1) * COLS].iter().copied()).collect();
        Ok(Self { xs, ys, centres, indices: chosen.iter().map(|&i| i as u64).collect() })
    }

    fn fit(&self, kernel: Kernel) -> nystream::Result<KernelModel> {
        let mut atoms = RowBlock::dense(COLS);
        atoms.extend(Rows::dense(&self.centres, CENTRES, COLS)?);
        let dictionary = Dictionary::new(atoms, vec![1.0; CENTRES], self.indices.clone(), 0.0)?;
        let rows = Rows::dense(&self.xs[..ROWS * COLS], ROWS, COLS)?;
        let mut summing = Summing::new(kernel, &dictionary, 1, false)?;
        for start in (0..ROWS).step_by(BLOCK) {
            let end = (start + BLOCK).min(ROWS);
            let targets = MatRef::from_column_major_slice(&self.ys[start..end], end - start, 1);
            summing.add(rows.slice(start, end), targets);
        }
        let options = SolverOptions { ridge: Ridge::Fixed(RIDGE), intercept: true };
        Ok(summing.sums().solve(&kernel, &dictionary, &options)?.model)
    }

    fn test_error(&self, model: &KernelModel) -> nystream::Result<f64> {
        let rows = Rows::dense(&self.xs[ROWS * COLS..], TEST_ROWS, COLS)?;
        let mut predicted = Vec::new();
        model.predict(rows, &mut PredictWorkspace::default(), &mut predicted)?;
        let squared: f64 = predicted.iter().zip(&self.ys[ROWS..]).map(|(a, b)| (a - b).powi(2)).sum();
        Ok((squared / TEST_ROWS as f64).sqrt())
    }
}
