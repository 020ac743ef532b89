//! Laws of every learner in the table, and what is said of bad settings.

mod laws;
mod options;
mod oracles;
pub(super) mod stream;
