//! Speed of a Gaussian kernel block, one thread: million evaluations a second.

use std::hint::black_box;
use std::time::Instant;

use faer::Mat;
use nystream::kernel::{Centres, Kernel, KernelWorkspace};
use nystream::random::Generator;
use nystream::rows::Rows;

const ROWS: usize = 1024;
const CENTRES: usize = 1000;
/// Time given to each measurement; the fastest repetition counts.
const SECONDS: f64 = 2.0;

/// Measures blocks of 1024 × 1000 at several widths, and one row against 200 centres.
pub fn run() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool of one thread");
    pool.install(|| {
        for cols in [8, 20, 54, 300] {
            println!("gaussian block {ROWS} x {CENTRES}, d = {cols}: {:.1} M evaluations/s", block_rate(cols) / 1e6);
        }
        for cols in [8, 22, 54] {
            println!("gaussian row, 200 centres, d = {cols}: {:.0} ns", row_seconds(cols) * 1e9);
        }
    });
}

fn normal(rng: &mut Generator, count: usize) -> Vec<f64> {
    (0..count).map(|_| rng.normal()).collect()
}

fn kernel(cols: usize) -> Kernel {
    Kernel::gaussian((cols as f64).sqrt()).expect("a bandwidth above 0")
}

fn block_rate(cols: usize) -> f64 {
    let mut rng = Generator::new(1);
    let (xs, zs) = (normal(&mut rng, ROWS * cols), normal(&mut rng, CENTRES * cols));
    let xs = Rows::dense(&xs, ROWS, cols).expect("the right number of values");
    let centres = Centres::new(Rows::dense(&zs, CENTRES, cols).expect("the right number of values"));
    let mut out = Mat::zeros(ROWS, CENTRES);
    let mut workspace = KernelWorkspace::default();
    let best = fastest(|| {
        kernel(cols).block(black_box(xs), &centres, &mut workspace, out.as_mut());
        black_box(&out);
    });
    (ROWS * CENTRES) as f64 / best
}

fn row_seconds(cols: usize) -> f64 {
    let mut rng = Generator::new(2);
    let (x, zs) = (normal(&mut rng, cols), normal(&mut rng, 200 * cols));
    let x = Rows::dense(&x, 1, cols).expect("the right number of values");
    let centres = Centres::new(Rows::dense(&zs, 200, cols).expect("the right number of values"));
    let mut out = vec![0.0; 200];
    let best = fastest(|| {
        for _ in 0..100 {
            kernel(cols).row(black_box(x).row(0), &centres, &mut out);
            black_box(&out);
        }
    });
    best / 100.0
}

/// Seconds of the fastest run.
fn fastest(mut task: impl FnMut()) -> f64 {
    let begun = Instant::now();
    let mut best = f64::INFINITY;
    while begun.elapsed().as_secs_f64() < SECONDS {
        let start = Instant::now();
        task();
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}
