//! Bandwidths and kinds of atoms to be tried beside those that the head chose.
//!
//! Each is a learner fitted to the rows of the head, which takes as long as some thousand rows of the stream, so not all are:
//! the climb begins at what the head chose and goes on beside the best so far, by the errors of rows left out or, of long
//! heads, by what the sums expect. The best two follow the stream. Measured with 10 orders of 11 sets at 14 budgets beside
//! all nine candidates, of which those follow that are not clearly behind: errors 0.990 to 1.014 times (one alone: up to 1.056).

use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};
use std::ops::RangeInclusive;

use rayon::prelude::*;

use super::bank::clearly_behind;
use super::head::{Chosen, Judged, Kept, with_kernel};
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

/// Factors that are less than this apart are neighbours.
const NEXT: f64 = 1.5;
/// Candidates that follow the stream.
const FOLLOWING: usize = 2;

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

/// Learners of what the head chose and, if the bandwidth may still change, of what is near it: the best of them, first the
/// best. They need not follow the stream to lose.
pub(super) fn candidates(options: &StreamingOptions, kept: &Kept, chosen: Chosen) -> Result<Vec<Candidate>> {
    let (kernel, method) = chosen;
    let auto = options.bandwidth == Bandwidth::Auto;
    let Some(bandwidth) = kernel.bandwidth().filter(|_| auto) else {
        let (learner, judged) = with_kernel(options, kept, kernel, method)?;
        return Ok(vec![Candidate { factor: 1.0, method, learner, judged }]);
    };
    let both = |factor: f64| options.budget <= BOTH_METHODS && NEAR.contains(&factor);
    let pairs = FACTORS.into_iter().flat_map(|factor| METHODS.map(|other| (factor, other)));
    let mut pairs: Vec<Pair> = pairs.filter(|&(factor, other)| other == method || both(factor)).collect();
    let mut candidates = Vec::new();
    loop {
        let wanted = next(&candidates, method, &mut pairs);
        if wanted.is_empty() {
            break;
        }
        candidates.extend(fitted(options, kept, bandwidth, wanted)?);
    }
    keep_the_best(&mut candidates);
    Ok(candidates)
}

/// Takes the best so far (at first: what the head chose) and its neighbours out of `pairs`, and its own bandwidth with other
/// atoms.
fn next(candidates: &[Candidate], method: DictionaryMethod, pairs: &mut Vec<Pair>) -> Vec<Pair> {
    let ours = candidates.iter().filter(|candidate| candidate.method == method);
    let best = ours.min_by(|a, b| a.judged.error().total_cmp(&b.judged.error())).map_or(1.0, |best| best.factor);
    let near = |&mut (factor, other): &mut Pair| {
        let apart = (factor / best).max(best / factor);
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

/// Drops those that rows left out show behind: clearly, or behind two others. Expectations drop nobody.
fn keep_the_best(candidates: &mut Vec<Candidate>) {
    candidates.sort_by(|a, b| a.judged.error().total_cmp(&b.judged.error()));
    if let Some(Judged::LeftOut(best)) = candidates.first().map(|best| best.judged.clone()) {
        let behind = |judged: &Judged| matches!(judged, Judged::LeftOut(errors) if clearly_behind(errors, &best));
        candidates.truncate(FOLLOWING);
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
        let mut pairs: Vec<Pair> = all.collect();
        let mut candidates = Vec::new();
        let rounds: [&[(Pair, f64)]; 3] = [
            // Other atoms that do better do not lead anywhere: they are compared at the best bandwidth only.
            &[
                ((1.0, RpCholesky), 0.1),
                ((1.0, Uniform), 1.0),
                ((FRAC_1_SQRT_2, Uniform), 0.9),
                ((SQRT_2, Uniform), 1.1),
            ],
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
    fn the_best_two_follow_unless_rows_left_out_show_the_second_clearly_behind() {
        let left = |judged: [Judged; 3]| {
            let factors = [1.0, 2.0, 0.5];
            let all = factors.into_iter().zip(judged).map(|(factor, judged)| candidate((factor, Uniform), judged));
            let mut candidates: Vec<Candidate> = all.collect();
            keep_the_best(&mut candidates);
            candidates.iter().map(|c| c.factor).collect::<Vec<_>>()
        };
        let left_out = |errors: [f64; 4]| Judged::LeftOut(errors.to_vec());
        let (best, near, far) = ([1.0, 2.0, 1.0, 2.1], [1.1, 1.9, 1.2, 2.0], [2.0, 3.0, 2.1, 3.0]);
        assert_eq!(left([far, best, near].map(left_out)), [2.0, 0.5]);
        assert_eq!(left([near, near, best].map(left_out)), [0.5, 1.0]);
        assert_eq!(left([far, best, far].map(left_out)), [2.0]);
        assert_eq!(left([3.0, 2.0, 1.0].map(Judged::Expected)), [0.5, 2.0, 1.0]);
        // Where nothing is known nobody goes.
        assert_eq!(left([Judged::Not, Judged::Not, Judged::Not]), [1.0, 2.0, 0.5]);
    }
}
