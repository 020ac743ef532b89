//! E[S Sᵀ] = I: the mean of s_i² over many runs, dropped points counting 0.

use super::*;

const ROWS: usize = 16;
const RUNS: u64 = 3000;

/// Sums of s² and of its square for every row, over runs of `make`.
fn check(what: &str, make: impl Fn(u64) -> Squeak) {
    let mut sums = [(0.0, 0.0); ROWS];
    for run in 0..RUNS {
        for point in make(run).atoms.standing() {
            let weight = point.squared_weight();
            let (sum, squares) = &mut sums[point.number as usize];
            (*sum, *squares) = (*sum + weight, *squares + weight * weight);
        }
    }
    let n = RUNS as f64;
    let mut spread: f64 = 0.0;
    for (row, (sum, squares)) in sums.iter().enumerate() {
        let (mean, variance) = (sum / n, (squares / n - (sum / n).powi(2)) * n / (n - 1.0));
        // Five standard errors: over 6 × 16 comparisons, all within them but for 1 time in 18,000.
        assert!((mean - 1.0).abs() < 5.0 * (variance / n).sqrt(), "{what}, row {row}: {mean}, variance {variance}");
        spread = spread.max(variance);
    }
    assert!(spread > 0.5, "{what}: hardly anything was random");
}

fn base(schedule: Schedule, seed: u64) -> SqueakOptions {
    SqueakOptions { oversampling: Oversampling::Fixed(3), seed, ..options(schedule) }
}

fn stream() -> RowBlock {
    // Wide enough apart, and few enough, that no probability falls below a few percent.
    let mut block = oracle::normal_rows(ROWS, 2, 90);
    if let RowBlock::Dense { data, .. } = &mut block {
        data.iter_mut().for_each(|v| *v *= 2.0);
    }
    block
}

fn run(options: &SqueakOptions, rows: Rows) -> Squeak {
    let mut squeak = squeak_of(options, rows);
    squeak.flush().unwrap();
    squeak
}

#[test]
fn of_every_schedule() {
    let block = stream();
    check("per point", |seed| run(&base(Schedule::PerPoint, seed), block.rows()));
    check("blocks", |seed| run(&base(Schedule::Blocks { rows: 5 }, seed), block.rows()));
    check("lazy", |seed| run(&base(Schedule::Lazy { rows: 5, growth: 1.2 }, seed), block.rows()));
}

#[test]
fn under_a_budget_and_after_a_change_of_oversampling() {
    let block = stream();
    let tight = |seed| SqueakOptions { budget: Some(6), ..base(Schedule::Blocks { rows: 5 }, seed) };
    check("budget", |seed| run(&tight(seed), block.rows()));
    check("two oversamplings", |seed| {
        let mut squeak = run(&base(Schedule::Blocks { rows: 4 }, seed), block.rows().slice(0, 8));
        squeak.options.oversampling = Oversampling::Fixed(7);
        squeak.insert(block.rows().slice(8, ROWS)).unwrap();
        squeak
    });
}

#[test]
fn of_merged_ones() {
    let block = stream();
    let part = |seed, from, to| run(&base(Schedule::Blocks { rows: 4 }, seed), block.rows().slice(from, to));
    check("merged", |seed| {
        let right = part(seed + 20_000, 6, 12).merge(part(seed + 40_000, 12, ROWS)).unwrap();
        part(seed, 0, 6).merge(right).unwrap()
    });
}
