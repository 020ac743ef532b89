//! Dense linear algebra on top of faer: factorisations that report their rescues, tiled Gram sums.
//!
//! Matrices are column-major [`faer::Mat`]. Everything here gives the same bits on any number of
//! threads: factorisations and many-column solves of faer do, and single columns are solved
//! sequentially.

mod cholesky;
mod columns;
mod eigen;
mod factoring;
mod fused;
mod gram;
mod growing;
mod triangle;

pub use cholesky::Cholesky;
pub use columns::add_column_products;
pub(crate) use columns::dot;
pub use eigen::SymmetricEigen;
pub use factoring::{Factoring, ReusedMatrix};
pub(crate) use fused::{add_scaled, add_transposed_times, symmetric_times, times};
pub use gram::GramSum;
pub use growing::{GrowingFactor, GrowingSymmetric};

use faer::Par;

/// Work below this many multiply-adds is not worth handing to other threads.
const PARALLEL_WORK: usize = 1 << 20;

/// Threads for a task of this many multiply-adds.
pub(crate) fn parallelism(work: usize) -> Par {
    if work < PARALLEL_WORK || rayon::current_num_threads() == 1 { Par::Seq } else { Par::rayon(0) }
}
