//! Bandwidths and kinds of atoms to be tried beside those that the head chose.

use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};
use std::ops::RangeInclusive;

use rayon::prelude::*;

use super::bank::clearly_behind;
use super::head::{Judged, Kept, with_kernel};
use super::options::StreamingOptions;
use crate::error::Result;
use crate::fit::Bandwidth;
use crate::linalg::on_a_share;
use crate::sketch::DictionaryMethod;
use crate::solver::RecursiveRidge;

/// Bandwidths of the bank, as factors of the one that the head chose.
const FACTORS: [f64; 6] = [1.0, FRAC_1_SQRT_2, 0.5, SQRT_2, 2.0, 2.0 * SQRT_2];
/// Factors that are tried with both ways to choose atoms; the others only with the one that the head chose.
const NEAR: RangeInclusive<f64> = FRAC_1_SQRT_2..=SQRT_2;
/// How their atoms are chosen: rows of high leverage, or rows as they come. Neither is better on every stream.
const METHODS: [DictionaryMethod; 2] = [DictionaryMethod::RpCholesky, DictionaryMethod::Uniform];
/// With more atoms than this only the kind that the head chose: each candidate holds several matrices of their size.
const BOTH_METHODS: usize = 1000;

/// With more atoms than this not all candidates are fitted to the head, but only those on the way to the best: each takes as
/// long as thousands of rows of the stream.
pub(super) const LARGE: usize = 500;
/// Factors that are less than this apart are neighbours.
const NEXT: f64 = 1.5;

/// A learner fitted to the head, before it is known whether it will follow the stream.
pub(super) struct Candidate {
    /// Its bandwidth over the one that the head chose.
    pub factor: f64,
    /// How its atoms were chosen.
    pub method: DictionaryMethod,
    pub learner: RecursiveRidge,
    /// What is known of its errors on the head.
    pub judged: Judged,
}

/// A factor of the bandwidth, and how atoms are chosen.
type Pair = (f64, DictionaryMethod);

/// The learner that the head chose, first, and others if the bandwidth may still change, without those that rows left out
/// show clearly behind: they need not follow the stream to lose.
pub(super) fn beside(options: &StreamingOptions, kept: &Kept, chosen: Candidate) -> Result<Vec<Candidate>> {
    let auto = options.bandwidth == Bandwidth::Auto;
    let Some(bandwidth) = chosen.learner.kernel().bandwidth().filter(|_| auto) else { return Ok(vec![chosen]) };
    let method = chosen.method;
    let pairs = FACTORS.into_iter().flat_map(|factor| METHODS.map(|other| (factor, other)));
    let both = |factor: f64| options.budget <= BOTH_METHODS && NEAR.contains(&factor);
    let others = |&(factor, other): &Pair| (factor, other) != (1.0, method) && (other == method || both(factor));
    let mut pairs: Vec<Pair> = pairs.filter(others).collect();
    let fitted = |pairs: Vec<Pair>| fitted(options, kept, bandwidth, pairs);
    let climbs = options.budget > LARGE && matches!(chosen.judged, Judged::Expected(_));
    let mut candidates = vec![chosen];
    loop {
        let wanted = if climbs { next(&candidates, method, &mut pairs) } else { std::mem::take(&mut pairs) };
        if wanted.is_empty() {
            break;
        }
        candidates.extend(fitted(wanted)?);
    }
    drop_behind(&mut candidates);
    Ok(candidates)
}

/// Takes the neighbours of the best so far out of `pairs`, and its own bandwidth with other atoms.
fn next(candidates: &[Candidate], method: DictionaryMethod, pairs: &mut Vec<Pair>) -> Vec<Pair> {
    let ours = candidates.iter().filter(|candidate| candidate.method == method);
    let Some(best) = ours.min_by(|a, b| a.judged.error().total_cmp(&b.judged.error())) else { return Vec::new() };
    let near = |&mut (factor, other): &mut Pair| {
        let apart = (factor / best.factor).max(best.factor / factor);
        if other == method { apart < NEXT } else { apart == 1.0 }
    };
    pairs.extract_if(.., near).collect()
}

/// Learners of these bandwidths and atoms, fitted to the rows.
fn fitted(options: &StreamingOptions, kept: &Kept, bandwidth: f64, pairs: Vec<Pair>) -> Result<Vec<Candidate>> {
    let fit = |(factor, method): Pair| {
        let kernel = options.kernel.with_bandwidth(factor * bandwidth)?;
        let (learner, judged) = with_kernel(options, kept, kernel, method)?;
        Ok(Candidate { factor, method, learner, judged })
    };
    // One thread each: they are small, and there are several.
    pairs.into_par_iter().with_max_len(1).map(|pair| on_a_share(usize::MAX, || fit(pair))).collect()
}

fn drop_behind(candidates: &mut Vec<Candidate>) {
    let best = candidates.iter().min_by(|a, b| a.judged.error().total_cmp(&b.judged.error()));
    if let Some(Judged::LeftOut(best)) = best.map(|candidate| candidate.judged.clone()) {
        let behind = |judged: &Judged| matches!(judged, Judged::LeftOut(errors) if clearly_behind(errors, &best));
        candidates.retain(|candidate| !behind(&candidate.judged));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::rows::{RowBlock, Rows};
    use crate::sketch::Dictionary;
    use DictionaryMethod::{RpCholesky, Uniform};

    fn candidate((factor, method): Pair, judged: Judged) -> Candidate {
        let mut atoms = RowBlock::dense(1);
        atoms.extend(Rows::dense(&[0.0], 1, 1).unwrap());
        let dictionary = Dictionary::new(atoms, vec![1.0], vec![0], 1e-3).unwrap();
        let learner = RecursiveRidge::new(Kernel::gaussian(1.0).unwrap(), dictionary, 1, 1.0, false).unwrap();
        Candidate { factor, method, learner, judged }
    }

    #[test]
    fn a_climb_goes_on_beside_the_best_until_both_sides_are_known() {
        let all = FACTORS.into_iter().flat_map(|factor| METHODS.map(|method| (factor, method)));
        let mut pairs: Vec<Pair> = all.filter(|&pair| pair != (1.0, Uniform)).collect();
        let mut candidates = vec![candidate((1.0, Uniform), Judged::Expected(1.0))];
        let rounds: [&[(Pair, f64)]; 3] = [
            // Other atoms that do better do not lead anywhere: they are compared at the best bandwidth only.
            &[((1.0, RpCholesky), 0.1), ((FRAC_1_SQRT_2, Uniform), 0.9), ((SQRT_2, Uniform), 1.1)],
            &[((FRAC_1_SQRT_2, RpCholesky), 0.8), ((0.5, Uniform), 0.95)],
            &[],
        ];
        for expected in rounds {
            let wanted = next(&candidates, Uniform, &mut pairs);
            assert_eq!(wanted, expected.iter().map(|(pair, _)| *pair).collect::<Vec<_>>());
            candidates.extend(expected.iter().map(|&(pair, error)| candidate(pair, Judged::Expected(error))));
        }
    }

    #[test]
    fn those_that_rows_left_out_show_clearly_behind_are_dropped() {
        let left_out = |errors: &[f64]| Judged::LeftOut(errors.to_vec());
        let mut candidates = vec![
            candidate((1.0, Uniform), left_out(&[2.0, 3.0, 2.1, 3.0])),
            candidate((2.0, Uniform), left_out(&[1.0, 2.0, 1.0, 2.1])),
            candidate((0.5, Uniform), left_out(&[1.1, 1.9, 1.2, 2.0])),
        ];
        drop_behind(&mut candidates);
        assert_eq!(candidates.iter().map(|c| c.factor).collect::<Vec<_>>(), [2.0, 0.5]);
        // Expectations drop nobody.
        let mut expected = [1.0, 9.0].map(|error| candidate((error, Uniform), Judged::Expected(error))).into();
        drop_behind(&mut expected);
        assert_eq!(expected.len(), 2);
    }
}
