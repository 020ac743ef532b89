//! Kernel ridge regression: exact, and regularised Nyström from sums over blocks of rows.
//!
//! Both solve for any number of targets at once, with an unpenalised intercept, and choose the
//! ridge by generalised cross-validation if asked to.

mod bandwidth;
mod calibrate;
mod conversion;
mod exact;
mod fixed_ridge;
mod gcv;
mod keeping;
mod left_out;
mod levelling;
mod loss;
mod moving;
mod nystrom;
mod press;
mod recursive;
mod rowwise;
mod saving;
mod settings;
mod summed;
mod whitening;

pub use bandwidth::{SAMPLE as BANDWIDTH_SAMPLE, alignment_bandwidth, alignment_grid, median_bandwidth};
pub use calibrate::fit_calibration;
pub use exact::{ExactFit, check_exact_memory, solve_exact};
pub use gcv::{GcvChoice, RidgePath};
pub use left_out::{SummedRows, left_out_outputs};
pub use loss::Loss;
pub use moving::{Guard, Sample, move_sums};
pub use nystrom::{NystromFit, NystromSums};
pub use press::press_ridge;
pub use recursive::{Block, Innovations, RecursiveRidge};
pub use rowwise::RowwiseRidge;
pub use settings::{Ridge, SolverOptions};
pub use whitening::Whitening;
