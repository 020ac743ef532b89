//! The table of learners.

use super::entry::{LearnerEntry, Make, Order};
use super::second_order::{con_kons, krls, nons_ald, pros_n_kons};
use super::settings::Targets;
use super::{bogd, bpas, fogd, forgetron, kogd, nogd, perceptron, projectron, projectron_plus, rbp};
use crate::error::{Error, Result, nearest_name};

/// Every learner there is.
pub static LEARNERS: &[&LearnerEntry] = &[
    &perceptron::ENTRY,
    &kogd::ENTRY,
    &rbp::ENTRY,
    &forgetron::ENTRY,
    &projectron::ENTRY,
    &projectron_plus::ENTRY,
    &bpas::ENTRY,
    &bogd::ENTRY,
    &nogd::ENTRY,
    &fogd::ENTRY,
    &pros_n_kons::ENTRY,
    &con_kons::ENTRY,
    &nons_ald::ENTRY,
    &krls::ENTRY,
    &STREAMING_RIDGE,
];

static STREAMING_RIDGE: LearnerEntry = LearnerEntry {
    name: "streaming-ridge",
    title: "streaming kernel ridge regression",
    citation: "this library; after Calandriello, Lazaric, Valko, \"Pack only the essentials: adaptive dictionary learning \
               for kernel ridge regression\" (2016), Eq. 6, with atoms by randomly pivoted Cholesky",
    targets: &[Targets::Classes, Targets::Numbers],
    order: Order::Second,
    cost: "O(B d + B²), by blocks",
    options: &[],
    make: Make::Blocks,
};

/// The learner of this name, or an error that names the nearest.
pub fn find(name: &str) -> Result<&'static LearnerEntry> {
    LEARNERS.iter().copied().find(|entry| entry.name == name).ok_or_else(|| {
        let nearest = nearest_name(name, LEARNERS.iter().map(|entry| entry.name));
        let hint = nearest.map_or_else(String::new, |nearest| format!("; the nearest is '{nearest}'"));
        let expected = "a name that `nystream learners` shows";
        Error::InvalidParam { name: "learner", found: format!("'{name}'{hint}"), expected }
    })
}
