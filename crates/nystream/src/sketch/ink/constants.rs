//! What INK's theorems ask for and give.
//!
//! INK, Thm. 1 and 2: with q̄ ≥ 28 α β d_eff(γ)_t log(4t/δ)/ε², with probability 1 − δ, Eq. 11 holds at every step and at
//! most 8 q̄ atoms are kept. Natural logarithm.
//!
//! Departures from the paper: β d_eff stands in the proof (App. B) only as a bound on d̃_eff, by
//! p̃_{i,s} ≥ τ_{i,t}/(α d̃_eff(γ)_t) for s ≤ t. d̃_eff is known, and at most β d_eff, so it stands in its place: what is
//! reported is enough for the theorem and never more than what is printed. It stays right where a budget has raised γ,
//! when d̃_eff is no longer within β of d_eff at the new γ. β itself is reported for ρ = tr(K)/γ ≥ λ_max(K)/γ.

/// 28 α d̃ log(4t/δ)/ε², with α = `score_factor`, d̃ = `effective_dim` (or β d_eff) and t = `rows`.
pub fn oversampling_bound(accuracy: f64, failure_prob: f64, score_factor: f64, effective_dim: f64, rows: u64) -> f64 {
    28.0 * score_factor * effective_dim / (accuracy * accuracy) * (4.0 * rows.max(1) as f64 / failure_prob).ln()
}

/// 8 q̄.
pub fn atoms_bound(oversampling: u64) -> f64 {
    8.0 * oversampling as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constants_are_those_of_the_theorem() {
        // 28·3·20/0.25·log(4·1000/0.1), by hand.
        assert!((oversampling_bound(0.5, 0.1, 3.0, 20.0, 1000) - 71_209.385_406).abs() < 1e-5);
        assert_eq!(atoms_bound(100), 800.0);
    }
}
