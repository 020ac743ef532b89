//! How times are taken: the smallest counts, for whatever else the machine does can only add.

use std::time::{Duration, Instant};

/// Seconds of one run, and its result.
pub fn timed<T>(task: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let result = task();
    (start.elapsed().as_secs_f64(), result)
}

/// Seconds of the fastest of the runs that begin within `seconds`; at least one.
pub fn fastest_within(seconds: f64, mut task: impl FnMut()) -> f64 {
    let begun = Instant::now();
    let mut best = f64::INFINITY;
    loop {
        best = best.min(timed(&mut task).0);
        if begun.elapsed().as_secs_f64() >= seconds {
            return best;
        }
    }
}

/// The middle one, the upper of two.
pub fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Waits until the threads of the peer's last product have stopped spinning, or they would slow ours.
pub fn settle() {
    std::thread::sleep(Duration::from_millis(500));
}
