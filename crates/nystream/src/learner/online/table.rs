//! The table of learners.

use super::entry::LearnerEntry;
use super::second_order::{con_kons, krls, nons_ald, pros_n_kons};
use super::{
    bogd, bpas, fogd, forgetron, kogd, nogd, perceptron, projectron, projectron_plus, rbp, skegd, streaming_ridge,
};
use crate::error::{Error, Result, nearest_hint};

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
    &skegd::ENTRY,
    &pros_n_kons::ENTRY,
    &con_kons::ENTRY,
    &nons_ald::ENTRY,
    &krls::ENTRY,
    &streaming_ridge::ENTRY,
];

/// The learner of this name, or an error that names one like it.
pub fn find(name: &str) -> Result<&'static LearnerEntry> {
    LEARNERS.iter().copied().find(|entry| entry.name == name).ok_or_else(|| {
        let hint = nearest_hint(name, LEARNERS.iter().map(|entry| entry.name));
        let expected = "a name that `nystream learners` shows";
        Error::InvalidParam { name: "learner", found: format!("'{name}'{hint}"), expected }
    })
}
