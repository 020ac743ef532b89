//! Learners of second order: Newton steps, or least squares, in the span of a dictionary that grows.
//!
//! | learner | dictionary | step | when the dictionary grows |
//! |---|---|---|---|
//! | [`pros_n_kons`] | sampled by leverage (KORS) | online Newton | starts again |
//! | [`con_kons`] | sampled by leverage (KORS) | online Newton | carries on |
//! | [`nons_ald`] | approximate linear dependence | online Newton | carries on |
//! | [`krls`] | approximate linear dependence | least squares | carries on |
//!
//! A round costs its kernels and O(B²), also when the dictionary grows. In the papers dictionaries have no hard limit;
//! here no row is admitted once the budget is full, and rows go on being learnt in the span of the atoms there are.

pub(super) mod con_kons;
mod curved_loss;
mod embedding;
pub(super) mod krls;
#[cfg(test)]
mod literal;
mod newton;
pub(super) mod nons_ald;
pub(super) mod pros_n_kons;
mod recursion;
mod row_sampling;
#[cfg(test)]
mod tests;
