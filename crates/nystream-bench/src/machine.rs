//! The machine: what it is called, and how fast it multiplies matrices.
//!
//! The rate of a matrix product is 2·1500³ floating-point operations over the time of the fastest product of two f64
//! matrices of 1500 × 1500 by faer. It is what other rates are compared with, in the same process.

use std::fs;
use std::hint::black_box;

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};
use nystream::random::Generator;

use crate::Outcome;
use crate::timing::fastest_within;

const SIZE: usize = 1500;

/// Cores and processor, in words.
pub fn description() -> String {
    let cores = std::thread::available_parallelism().map_or_else(|_| "?".to_owned(), |n| n.to_string());
    let cpu = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let (cpu, system) = (cpu.unwrap_or_else(|| "processor unknown".to_owned()), std::env::consts::OS);
    format!("{cores} cores, {cpu}, {} {system}", std::env::consts::ARCH)
}

/// A pool of this many threads.
pub fn threads(count: usize) -> Outcome<rayon::ThreadPool> {
    Ok(rayon::ThreadPoolBuilder::new().num_threads(count).build()?)
}

/// The matrix product that is timed.
pub struct Product {
    left: Mat<f64>,
    right: Mat<f64>,
    out: Mat<f64>,
}

impl Product {
    pub fn new() -> Self {
        let mut rng = Generator::new(3);
        let mut random = || Mat::from_fn(SIZE, SIZE, |_, _| rng.normal());
        Self { left: random(), right: random(), out: Mat::zeros(SIZE, SIZE) }
    }

    /// Floating-point operations a second of the fastest product that began within `seconds`, on the current pool.
    pub fn rate(&mut self, seconds: f64) -> f64 {
        let threads = rayon::current_num_threads();
        let par = if threads == 1 { Par::Seq } else { Par::rayon(threads) };
        let best = fastest_within(seconds, || {
            matmul(self.out.as_mut(), Accum::Replace, black_box(&self.left), &self.right, 1.0, par);
            black_box(&self.out);
        });
        2.0 * (SIZE as f64).powi(3) / best
    }
}
