//! A second thread that stays awake while a task has short parallel steps.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a thread that keeps another company looks for something to do.
const PATIENCE: Duration = Duration::from_millis(20);
/// Looks before it lets other threads of the machine run.
const LOOKS: u32 = 100;

/// Runs a task of many short parallel steps, with some between that are not: a second thread stays awake meanwhile, and takes
/// what there is to do. A thread that sleeps is woken within 0.1 ms, or, where the machine is not the only one on its
/// processor, within 2 ms.
pub(crate) fn in_company<T: Send>(task: impl FnOnce() -> T + Send) -> T {
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }
    let (here, over) = (rayon::current_thread_index(), AtomicBool::new(false));
    let accompany = || {
        // Whoever began the task may come here while it waits for a part of it; the rest is below, on its own stack.
        if rayon::current_thread_index() == here {
            return;
        }
        let (mut since, mut looks) = (Instant::now(), 0);
        while !over.load(Ordering::Acquire) {
            if rayon::yield_now() == Some(rayon::Yield::Executed) {
                (since, looks) = (Instant::now(), 0);
                continue;
            }
            looks += 1;
            if looks % LOOKS == 0 {
                if since.elapsed() > PATIENCE {
                    return;
                }
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    };
    let company = || {
        // Set however the task ends: a panic in it must not leave the other thread looking.
        let _over = Over(&over);
        task()
    };
    rayon::join(company, accompany).0
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    fn pool(threads: usize) -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
    }

    /// Steps with parts, some of which have parts themselves: while it waits for one, the thread of the task may meet its own
    /// company.
    fn steps() -> usize {
        let sum = |range: std::ops::Range<usize>| range.into_par_iter().with_max_len(7).map(|i| i % 5).sum::<usize>();
        (0..300)
            .map(|i| rayon::join(|| sum(0..i), || rayon::join(|| sum(i..2 * i), || sum(0..3)).0))
            .map(|(a, b)| a + b)
            .sum()
    }

    #[test]
    fn tasks_end_on_any_number_of_threads_also_within_each_other() {
        let alone = pool(1).install(steps);
        for threads in [1, 2, 3, 8] {
            let pool = pool(threads);
            for _ in 0..20 {
                assert_eq!(pool.install(|| in_company(steps)), alone, "{threads}");
                assert_eq!(pool.install(|| in_company(|| in_company(steps))), alone, "{threads}");
                let both = || rayon::join(|| in_company(steps), || in_company(steps));
                assert_eq!(pool.install(both), (alone, alone), "{threads}");
            }
        }
    }

    #[test]
    fn a_panic_is_passed_on_and_leaves_nobody_behind() {
        let pool = pool(2);
        for _ in 0..5 {
            let panic = || pool.install(|| in_company(|| -> u64 { panic!("on purpose") }));
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panic)).is_err());
        }
        assert_eq!(pool.install(|| in_company(steps)), pool.install(steps));
    }
}
