//! Single rows through the streaming learner at low latency: 200 atoms, 8 features, one thread.

use std::time::Instant;

use nystream::learner::streaming::{StreamingOptions, StreamingRidge};
use nystream::random::Generator;
use nystream::rows::{Row, Rows};

use crate::Outcome;
use crate::machine::threads;

const ATOMS: usize = 200;
const COLS: usize = 8;
/// Enough for the head and the bank of bandwidths to be over.
const BEFORE: usize = 6000;
const MEASURED: usize = 20_000;
/// Most microseconds, medians.
const PREDICT_TARGET: f64 = 1.0;
const LEARN_TARGET: f64 = 20.0;

/// Times every call by itself. Every so many rows learning folds a block into the sums: that shows in the mean.
pub fn run() -> Outcome {
    let mut rng = Generator::new(1);
    let count = BEFORE + MEASURED;
    let data: Vec<f64> = (0..count * COLS).map(|_| rng.normal()).collect();
    let codes: Vec<f64> = data.chunks_exact(COLS).map(|x| x[0].sin() + x[1] * x[2] + 0.1 * rng.normal()).collect();
    let options = StreamingOptions { budget: ATOMS, ..StreamingOptions::default() };
    let (mut predict, mut learn) = (Vec::new(), Vec::new());
    threads(1)?.install(|| -> Outcome {
        let mut learner = StreamingRidge::new(options, 1)?;
        let mut unused = Vec::new();
        let head = Rows::dense(&data[..BEFORE * COLS], BEFORE, COLS)?;
        learner.learn(head, &codes[..BEFORE], None, &mut unused)?;
        let mut out = [0.0];
        for i in BEFORE..count {
            let row = Row::Dense(&data[i * COLS..(i + 1) * COLS]);
            let start = Instant::now();
            learner.predict_row(row, &mut out)?;
            predict.push(start.elapsed().as_secs_f64());
            let start = Instant::now();
            learner.learn_row(row, &codes[i..=i], 1.0, &mut out)?;
            learn.push(start.elapsed().as_secs_f64());
        }
        let atoms = learner.dictionary().map_or(0, |dictionary| dictionary.len());
        println!("{MEASURED} rows after {BEFORE}, {atoms} atoms, {COLS} features, one thread; microseconds a row");
        Ok(())
    })?;
    for (name, times, target) in [("predict", &mut predict, PREDICT_TARGET), ("learn", &mut learn, LEARN_TARGET)] {
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize] * 1e6;
        let mean = times.iter().sum::<f64>() / times.len() as f64 * 1e6;
        let verdict = if at(0.5) < target { "met" } else { "MISSED" };
        println!(
            "  {name}: median {:.2} (target below {target}: {verdict}), 99 % {:.2}, longest {:.0}, mean {mean:.2}",
            at(0.5),
            at(0.99),
            at(1.0)
        );
    }
    println!();
    Ok(())
}
