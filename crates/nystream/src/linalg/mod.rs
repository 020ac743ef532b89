//! Dense linear algebra on top of faer: factorisations that report their rescues, tiled Gram sums, leading parts by
//! random projection.
//!
//! Matrices are column-major [`faer::Mat`]. Everything here gives the same bits on any number of
//! threads: factorisations and many-column solves of faer do, and single columns are solved
//! sequentially.

mod aligned;
mod cholesky;
mod columns;
mod company;
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
pub(crate) use company::in_company;
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

/// Runs a task of many parallel steps on a thread of the pool: from elsewhere each step would wake one and wait for it.
pub(crate) fn on_the_pool<T: Send>(task: impl FnOnce() -> T + Send) -> T {
    rayon::scope(|_| task())
}
