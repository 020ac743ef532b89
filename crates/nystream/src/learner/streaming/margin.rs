//! Two classes: rows that are told apart with room to spare teach nothing.
//!
//! The loss is then the squared hinge ([`Loss`]). After the head a row is summed if the learner, as it stood at the start of
//! the block, did not have it beyond the margin; earlier rows stay summed or not as they were. (In the limit that is the
//! solution: rows near the margin are misjudged early only.) The rows of the head are at hand, and their sums are brought to
//! the solution itself: those within the margin of the ridge regression on them.

use super::head::Kept;
use super::kept_features::KeptFeatures;
use super::options::{LossChoice, StreamingOptions};
use crate::error::Result;
use crate::solver::{Loss, RecursiveRidge};

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
pub(super) fn within_margin(
    mut learner: RecursiveRidge,
    features: &mut KeptFeatures,
    codes: &[f64],
) -> Result<RecursiveRidge> {
    let loss = Loss::SquaredHinge;
    let mut taught = vec![true; codes.len()];
    for _ in 0..ROUNDS {
        let outputs = features.outputs(&learner);
        let now: Vec<bool> = codes.iter().zip(&outputs).map(|(code, output)| !loss.passes(*code, *output)).collect();
        if now == taught || !now.contains(&true) {
            break;
        }
        taught = now;
        learner.restart_from(features.sums(&taught))?;
    }
    Ok(learner.with_loss(loss))
}
