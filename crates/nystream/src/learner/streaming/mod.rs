//! Streaming kernel ridge regression: one pass, a hard budget, an answer at any time.
//!
//! Second-order: the exact ridge solution on the features of at most `budget` atoms, updated with every row. Each row is
//! predicted from the rows before it (the innovations of [`RecursiveRidge`](crate::solver::RecursiveRidge)), then learnt.
//!
//! 1. **Head.** The first rows (five times the budget, at least 256) are kept. Whenever their number has doubled, bandwidth,
//!    atoms and ridge are chosen anew from all of them and the sums are made again, exactly. Atoms are chosen by randomly pivoted
//!    Cholesky: rows of high leverage given those already chosen; of classes, as many from each. A rare class makes the
//!    head longer, up to twenty times the budget.
//! 2. **Bank.** At the end of the head learners of several bandwidths are fitted to it, uphill from the chosen one, with both
//!    kinds of atoms; the best two by rows left out (of heads above 2,048 rows: all of them) each follow the stream with
//!    atoms and sums of their own, judged by their own one-step-ahead errors and by the errors that their sums expect; the
//!    best so far answers, those clearly behind are dropped, and half of the others whenever the rows have doubled. When the
//!    stream is twenty times the budget long, or twice as long as the head, the best stays.
//! 3. **Stream.** Atoms stay as they are, for changing them often costs more than it brings; only when rows come from where
//!    they do not reach are they chosen anew, and the sums move to the new ones ([`Change`]); some hundred rows of the whole
//!    stream, kept for this, tell what the old atoms had not seen of them. The ridge is chosen anew by
//!    generalised cross-validation from the sums whenever the rows have doubled.
//!
//! Of two classes the loss is the squared hinge, unless asked otherwise: a row that is right with room to spare teaches nothing
//! ([`Loss`](crate::solver::Loss)). They are told apart where outputs so far made fewest mistakes ([`StreamingRidge::threshold`]): that is for the score;
//! a model that is made from the learner goes by its probabilities, fitted to the last outputs.
//!
//! What is held does not grow with the stream: O(m²) a member of the bank, the head's rows until the bank is dropped.
//! Single rows are answered at once ([`StreamingRidge::predict_row`], [`StreamingRidge::learn_row`]).
//! How rows are cut into calls does not matter, nor does the number of threads.

mod bank;
mod candidates;
mod classes;
mod decision;
mod early;
mod file;
mod head;
mod kept_features;
mod learner;
mod margin;
mod merge;
mod options;
mod reopen;
mod rowwise;
mod score;
mod sizes;
mod status;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_head;
#[cfg(test)]
mod tests_reopen;
#[cfg(test)]
mod tests_wide;
mod witnesses;

pub use file::KIND;
pub use learner::StreamingRidge;
pub use options::{LossChoice, Reopen, StreamingOptions};
pub use reopen::Change;
pub use score::RunningScore;
pub(in crate::learner) use sizes::{CODE, Unfit, What, is_small};
pub use status::Status;
