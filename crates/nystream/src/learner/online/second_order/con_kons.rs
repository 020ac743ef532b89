//! CON-KONS: PROS-N-KONS without its restarts.
//!
//! D. Calandriello, A. Lazaric, M. Valko, "Efficient second-order online kernel learning with adaptive embedding",
//! NIPS 2017, section 5, the variant compared with Alg. 1 in the experiments: when an atom enters, weights and second
//! moments are carried over into the larger embedding instead of being reset. With Q what carries features over the old
//! dictionary into those over the new one (an isometry, as the old span lies in the new), w̃ ← Qw̃ and
//! A ← αI + Q(A − αI)Qᵀ: the function does not change, and directions that are new start from α. In the basis used here
//! that is appending a zero and an α ([`newton`](super::newton)).
//!
//! A round costs its kernels and O(B²): O(B d + B²).
//!
//! Departures from the paper: those of [`pros_n_kons`](super::pros_n_kons), but for the restarts.
//!
//! Not confirmed: the paper describes the variant in words that were not at hand. The formulas above are those of the
//! baseline of this name in the implementation of Li and Liao (ICML 2023), where in the round of a change the step of
//! the last gradient is left out of w̃ (not out of A), and the first α is counted twice; here neither is.

use super::pros_n_kons::{Kons, OPTIONS, OnChange};
use crate::error::Result;
use crate::learner::online::entry::{LearnerEntry, Make, OnlineLearner, Order};
use crate::learner::online::options::Chosen;
use crate::learner::online::settings::{LearnerSettings, Targets};
use crate::persist::Container;

pub(in crate::learner::online) static ENTRY: LearnerEntry = LearnerEntry {
    name: "con-kons",
    title: "online Newton in a Nyström embedding, carried over when it changes (CON-KONS)",
    citation: "Calandriello, Lazaric, Valko, \"Efficient second-order online kernel learning with adaptive embedding\", \
               NIPS 2017, section 5",
    targets: &[Targets::Classes, Targets::Numbers],
    order: Order::Second,
    cost: "O(B d + B²)",
    options: OPTIONS,
    make: Make::Rows { build, load },
};

fn build(settings: &LearnerSettings, chosen: &Chosen) -> Result<Box<dyn OnlineLearner>> {
    Ok(Box::new(Kons::new(settings, chosen, OnChange::CarryOver)?))
}

fn load(settings: &LearnerSettings, chosen: &Chosen, file: &mut Container) -> Result<Box<dyn OnlineLearner>> {
    Ok(Box::new(Kons::load(settings, chosen, OnChange::CarryOver, file)?))
}
