//! Options that learners by gradient descent share.

use super::options::{Chosen, Default, OptionKind, OptionSpec, Trial};
use crate::error::Result;

/// η
pub(super) const STEP_SIZE: OptionSpec = OptionSpec {
    name: "step-size",
    symbol: "η",
    meaning: "length of a gradient step",
    kind: OptionKind::Positive,
    default: Default::Number(0.2),
    trial: Trial::of("0.05"),
};

/// λ
pub(super) const REGULARIZATION: OptionSpec = OptionSpec {
    name: "regularization",
    symbol: "λ",
    meaning: "weight of the squared norm; η λ is below 1",
    kind: OptionKind::NonNegative,
    default: Default::Number(0.01),
    trial: Trial::of("0.2"),
};

/// η and 1 − ηλ.
pub(super) fn shrinking(chosen: &Chosen) -> Result<(f64, f64)> {
    let step = chosen.number("step-size")?;
    let product = step * chosen.number("regularization")?;
    if product >= 1.0 {
        return Err(chosen.refused("regularization", format!("η λ = {product}"), "η λ below 1"));
    }
    Ok((step, 1.0 - product))
}
