//! Dense linear algebra on top of faer: factorisations that report their rescues, tiled Gram sums, leading parts by
//! random projection.
//!
//! Matrices are column-major [`faer::Mat`]. Everything here gives the same bits on any number of
//! threads: factorisations and many-column solves of faer do, and single columns are solved
//! sequentially.

mod aligned;
mod cholesky;
mod columns;
mod congruence;
mod eigen;
mod factoring;
mod fused;
mod gram;
mod growing;
mod packed;
mod packed_cholesky;
mod packed_inverse;
mod packed_rows;
mod packed_solve;
mod packed_vectors;
mod patches;
mod randomised;
mod rank_update;
mod reflected;
mod registers;
mod sweeps;
mod tiles;
mod triangle;
mod tridiagonal;
mod vectorised;

pub use cholesky::Cholesky;
pub use columns::add_column_products;
pub(crate) use columns::{centre_columns, dot};
pub(crate) use congruence::mirror_lower;
pub use eigen::SymmetricEigen;
pub use factoring::{Factoring, ReusedMatrix};
pub(crate) use fused::{add_gram_times, add_scaled, add_symmetric_times, add_transposed_times, times};
pub use gram::{GramSum, lower_norm};
pub use growing::{GrowingFactor, GrowingSymmetric};
pub use packed_cholesky::PackedFactoring;
pub use packed_inverse::InverseDiagonal;
pub(crate) use packed_rows::PANEL;
pub use packed_rows::{PackedPart, PackedRows};
pub use packed_solve::PackedTriangle;
pub use patches::{Patch, Patches, PlusIdentity};
pub(crate) use randomised::product;
pub use randomised::{Svd, TestMatrix};
pub use reflected::{MOST_ROWS, NewRows, ReflectedFactor, Reflecting, Wave};
pub(crate) use tiles::{TiledRows, TiledTriangle};
pub(crate) use triangle::Triangle;
pub use tridiagonal::{ShiftedTridiagonal, Tridiagonal};
pub(crate) use vectorised::{Vectorised, multiply_add, vectorised};

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use faer::Par;

/// Work below this many multiply-adds is not worth handing to other threads.
const PARALLEL_WORK: usize = 1 << 20;
/// The same for products and factorisations of faer, whose threads wait for each other many times.
const PARALLEL_FAER: usize = 1 << 22;

thread_local! {
    /// Tasks that share the threads with the one running here, itself among them.
    static SIDE_BY_SIDE: Cell<usize> = const { Cell::new(1) };
    /// Whether the task running here stays on its thread.
    static UNDIVIDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a task of this many multiply-adds may be handed to other threads in parts.
fn is_divided(work: usize) -> bool {
    work >= PARALLEL_WORK && !is_undivided()
}

/// Whether the task running here stays on its thread.
pub(crate) fn is_undivided() -> bool {
    UNDIVIDED.get()
}

/// Runs a task that stays on its thread: one that others wait for, and that must not take up another meanwhile.
pub(crate) fn undivided<T>(task: impl FnOnce() -> T) -> T {
    let before = UNDIVIDED.replace(true);
    let result = task();
    UNDIVIDED.set(before);
    result
}

/// Threads for a task of this many multiply-adds.
pub(crate) fn parallelism(work: usize) -> Par {
    let threads = rayon::current_num_threads() / SIDE_BY_SIDE.get();
    if work < PARALLEL_FAER || threads <= 1 || is_undivided() { Par::Seq } else { Par::rayon(threads) }
}

/// Runs two tasks of about the same size at once, each on half of the threads: faer's parallel products wait for each
/// other, and would wait for a thread that the other task has.
pub(crate) fn side_by_side<A: Send, B: Send>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
    // Of the threads that are this task's: another thread that takes `b` may be in the middle of something else.
    let tasks = SIDE_BY_SIDE.get().saturating_mul(2);
    rayon::join(|| on_a_share(tasks, a), || on_a_share(tasks, b))
}

/// Runs a task that shares the threads with others.
pub(crate) fn on_a_share<T>(tasks: usize, task: impl FnOnce() -> T) -> T {
    let before = SIDE_BY_SIDE.replace(tasks);
    let result = task();
    SIDE_BY_SIDE.set(before);
    result
}

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

/// Runs a task of many parallel steps on a thread of the pool: from elsewhere each step would wake one and wait for it.
pub(crate) fn on_the_pool<T: Send>(task: impl FnOnce() -> T + Send) -> T {
    rayon::scope(|_| task())
}
