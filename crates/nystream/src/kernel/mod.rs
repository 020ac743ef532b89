//! Kernels and their evaluation: one pair, one row against m centres, a block against m centres; a set of centres that
//! changes one at a time ([`SupportSet`]); random Fourier features ([`RandomFeatures`]).
//!
//! [`Kernel::pair`] is the plain definition; the other two agree with it to better than 1e-12
//! relative, dense or sparse, near or far: distances come from differences, or from norms and inner products
//! wherever those lose nothing. Kernels of a distance are never NaN, negative or above 1, and exactly 1 for
//! equal points; values below 1e-302 may come out as 0.

mod block;
mod centres;
mod dense;
mod exp;
mod gaussian;
mod packed;
mod random_features;
mod row;
mod sincos;
mod sparse;
mod spec;
mod support;
mod support_gaussian;
mod support_lists;
mod transform;
mod vector;

pub use block::KernelWorkspace;
pub use centres::Centres;
pub use random_features::RandomFeatures;
pub use spec::Kernel;
pub(crate) use spec::squared_distance;
pub use support::SupportSet;
