//! Two classes: rows that are told apart with room to spare teach nothing.
//!
//! The loss is then the squared hinge ([`Loss`]). After the head a row is summed if the learner, as it stood at the start of
//! the block, did not have it beyond the margin; earlier rows stay summed or not as they were. (In the limit that is the
//! solution: rows near the margin are misjudged early only.) The rows of the head are at hand, and their sums are brought to
//! the solution itself: those within the margin of the ridge regression on them.

use super::head::{Kept, add_all};
use super::options::{LossChoice, StreamingOptions};
use crate::error::Result;
use crate::solver::{Loss, NystromSums, RecursiveRidge};

/// Rounds towards the solution on the head. Few rows change sides in the last ones.
const ROUNDS: usize = 6;

impl Kept {
    /// What errors cost: if that is left to the rows, the squared hinge if all are of two classes.
    pub fn loss(&self, options: &StreamingOptions) -> Loss {
        match options.loss {
            LossChoice::Auto if self.outputs == 1 && self.codes.iter().all(|code| code.abs() == 1.0) => {
                Loss::SquaredHinge
            }
            LossChoice::Auto => Loss::Squared,
            LossChoice::Fixed(loss) => loss,
        }
    }
}

/// The learner with sums over the kept rows within its own margin; it comes with sums over all of them.
pub(super) fn within_margin(mut learner: RecursiveRidge, kept: &Kept, decay: f64) -> Result<RecursiveRidge> {
    let loss = Loss::SquaredHinge;
    let mut taught = vec![true; kept.len()];
    let mut outputs = Vec::new();
    for _ in 0..ROUNDS {
        learner.predict(kept.rows.rows(), &mut outputs);
        let now: Vec<bool> = kept.codes.iter().zip(&outputs).map(|(code, f)| !loss.passes(*code, *f)).collect();
        // Without any row of a class there would be nothing to tell apart.
        if now == taught || !now.contains(&true) {
            break;
        }
        taught = now;
        let sums = learner.sums();
        let mut sums = match sums.whitening() {
            Some(whitening) => NystromSums::whitened(whitening.clone(), 1),
            None => NystromSums::new(learner.dictionary().len(), 1),
        };
        add_all(learner.kernel(), learner.dictionary(), kept, &taught, decay, &mut sums);
        learner = RecursiveRidge::from_sums(*learner.kernel(), learner.dictionary().clone(), sums, learner.ridge())?;
    }
    Ok(learner.with_loss(loss))
}
