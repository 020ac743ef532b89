//! SHRINK-EXPAND: integer weights follow the falling probabilities, by coin flips that keep their mean.
//!
//! INK, Subroutine 2. An atom's weight b stands for 1/(q̄ p̃). While b p̃ ≤ 1/q̄ a coin of b/(b + 1) decides between
//! b + 1 and 0: E[b] stays what it was, so that E[S Sᵀ] = I for ever, and an atom survives to b with probability 1/b.
//! Cost: O(log b) coins an atom on average over its whole life.
//!
//! Departures from the paper:
//! - line 3 tests b_{i,t} ≠ 0, which never changes inside the loop; b_{i,t+1} ≠ 0 is meant, as line 10 has it for the
//!   new column, and line 1 runs over i, not j;
//! - a weight that has reached 2⁵³, where counts stop being exact in floating point, stays (it is reached with
//!   probability 2⁻⁵³ an atom).

use super::options::MAX_COUNT;
use crate::random::Generator;

/// A row that is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Atom {
    /// Its number in the stream, from 0.
    pub row: usize,
    /// p̃: above 0, at most 1, never rising.
    #[doc(alias = "p̃")]
    pub probability: f64,
    /// b: its squared weight in S; 0 once dropped.
    #[doc(alias = "b")]
    pub inflation: u64,
}

impl Atom {
    /// A row that has just arrived (INK, Alg. 2, line 1, and Subroutine 2, line 9).
    pub(super) fn new(row: usize) -> Self {
        Self { row, probability: 1.0, inflation: 1 }
    }

    /// √b, its weight in S.
    pub fn weight(&self) -> f64 {
        (self.inflation as f64).sqrt()
    }
}

/// Subroutine 2 on all atoms in their order; the new row stands last. Those with weight 0 afterwards are dropped.
pub(super) fn shrink_expand(atoms: &mut [Atom], oversampling: u64, rng: &mut Generator) {
    let threshold = 1.0 / oversampling as f64;
    for atom in atoms {
        // Lines 2–7 for the old ones, 10–14 for the new one: the same loop.
        while atom.inflation != 0 && atom.inflation < MAX_COUNT && atom.inflation as f64 * atom.probability <= threshold
        {
            let b = atom.inflation as f64;
            atom.inflation = if rng.bernoulli(b / (b + 1.0)) { atom.inflation + 1 } else { 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_stop_just_above_the_inverse_of_the_probability_and_keep_their_mean() {
        // 1/(q̄ p̃) = 12.5: an atom ends at 13 with probability 1/13, else at 0.
        let trials = 20_000;
        let mut rng = Generator::new(1);
        let mut kept = 0;
        for _ in 0..trials {
            let mut atoms = [Atom { row: 0, probability: 0.008, inflation: 1 }];
            shrink_expand(&mut atoms, 10, &mut rng);
            assert!([0, 13].contains(&atoms[0].inflation));
            kept += usize::from(atoms[0].inflation == 13);
        }
        let p = 1.0 / 13.0;
        // Five standard deviations of a binomial.
        let tolerance = 5.0 * (p * (1.0 - p) * trials as f64).sqrt();
        assert!((kept as f64 - p * trials as f64).abs() < tolerance, "{kept}");
    }

    #[test]
    fn atoms_above_the_threshold_and_dropped_ones_draw_nothing() {
        let mut rng = Generator::new(2);
        let before = rng.clone();
        let mut atoms = [
            Atom { row: 0, probability: 0.1, inflation: 11 },
            Atom { row: 1, probability: 1e-300, inflation: 0 },
            Atom { row: 2, probability: 1e-300, inflation: MAX_COUNT },
        ];
        let copy = atoms;
        shrink_expand(&mut atoms, 1, &mut rng);
        assert_eq!((atoms, rng), (copy, before));
    }
}
