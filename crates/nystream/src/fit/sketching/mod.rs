//! Sequential dictionaries over a source, saved, resumed and merged.
//!
//! [`sketch`] starts one. What must be known before rows can be made (scaling, categories, a bandwidth that is to be
//! chosen) takes a reading of its own; then every row passes through the dictionary once, in blocks. Where nothing is to
//! be learnt first, one reading does, so standard input will do. [`SavedSketch`] is the dictionary with what turns
//! records into its rows: it goes on with [`SavedSketch::follow`], to the same bits as one uninterrupted stream, and
//! merges with others made alike.
//!
//! Memory: that of the dictionary, which does not grow with the stream for SQUEAK, and blocks of rows.

mod file;
mod settings;
mod stream;
mod watch;

pub use file::SavedSketch;
pub use settings::{Copies, SketchSettings};
pub use stream::sketch;
pub use watch::{Trace, TracePoint, Watch};

pub(super) use stream::Feed;
