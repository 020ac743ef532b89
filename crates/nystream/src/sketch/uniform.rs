//! Uniform sampling without replacement: the plain choice, and the one to beat.
//!
//! Each of the m atoms has weight √(n/m), so that E[S Sᵀ] = I as with the other samplers and γ means
//! the same in Eq. 5 of INK whatever the method. With γ = 0 (plain Nyström) the weights cancel.
//! On data of low coherence it is as good as leverage scores (F. Bach, "Sharp analysis of low-rank
//! kernel matrix approximations", COLT 2013).

use super::dictionary::Dictionary;
use super::direct_sample::gather;
use crate::error::Result;
use crate::random::Generator;
use crate::rows::Rows;

/// `budget` different rows (all of them if there are no more), in the order of the data.
pub fn uniform(rows: Rows, budget: usize, leverage_ridge: f64, rng: &mut Generator) -> Result<Dictionary> {
    let chosen = rng.choose(rows.len(), budget);
    let weight = (rows.len() as f64 / chosen.len().max(1) as f64).sqrt();
    let weights = vec![weight; chosen.len()];
    gather(rows, &chosen, weights, leverage_ridge)
}

#[cfg(test)]
mod tests {
    use super::super::oracle;
    use super::*;

    #[test]
    fn squared_weights_are_one_on_average() {
        let block = oracle::normal_rows(20, 1, 1);
        let repeats = 2000;
        let mut mean = [0.0; 20];
        for seed in 0..repeats {
            let dictionary = uniform(block.rows(), 5, 0.0, &mut Generator::new(seed)).unwrap();
            assert_eq!(dictionary.len(), 5);
            for (&i, w) in dictionary.indices().iter().zip(dictionary.weights()) {
                mean[i as usize] += w * w / repeats as f64;
            }
        }
        // n/m with probability m/n, else 0: variance n/m − 1 = 3; five standard errors.
        let tolerance = 5.0 * (3.0 / repeats as f64).sqrt();
        assert!(mean.iter().all(|m: &f64| (m - 1.0).abs() < tolerance), "{mean:?}");
    }

    #[test]
    fn fewer_rows_than_budget_are_all_kept_with_weight_one() {
        let block = oracle::normal_rows(4, 2, 2);
        let dictionary = uniform(block.rows(), 9, 0.0, &mut Generator::new(1)).unwrap();
        assert_eq!((dictionary.atoms(), dictionary.weights()), (&block, &[1.0; 4][..]));
    }
}
