//! Kernels and their evaluation: one pair, one row against m centres, a block against m centres.

mod centres;
mod spec;

pub use centres::{Centres, KernelWorkspace};
pub use spec::Kernel;
pub(crate) use spec::squared_distance;
