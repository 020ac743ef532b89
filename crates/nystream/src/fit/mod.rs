//! From a source to a trained model: the passes over the data, in bounded memory.
//!
//! [`two_pass`] reads the data twice: the first pass learns columns, labels and scaling and keeps a
//! seeded sample; kernel bandwidth and dictionary come from the sample; the second pass sums. It
//! holds O(m² + md) numbers whatever the number of rows. [`exact`] holds everything. [`sketch`] makes a sequential
//! dictionary alone.

mod choose;
mod codes;
mod exact;
mod observe;
mod options;
mod reservoir;
mod sketching;
mod summing;
mod trial;
mod two_pass;

pub use choose::{Choice, Effort, choose, choose_kernel, choose_with};
pub use codes::TargetCodes;
pub use exact::exact;
pub use observe::{Observer, Silent};
pub use options::{Bandwidth, FitOptions, KernelFamily};
pub use reservoir::Reservoir;
pub use sketching::{Copies, SavedSketch, SketchSettings, Trace, TracePoint, Watch, sketch};
pub use summing::Summing;
pub(crate) use two_pass::scores_to_calibration;
pub use two_pass::{FirstPass, SecondPass, first_pass, two_pass};
