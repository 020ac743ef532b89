//! Dictionaries: small weighted sets of points that stand for a whole data set.

mod dictionary;

pub use dictionary::Dictionary;
