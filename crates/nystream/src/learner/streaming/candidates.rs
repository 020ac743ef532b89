//! Bandwidths and kinds of atoms to be tried beside those that the head chose.
//!
//! Each is a learner fitted to the rows of the head, which takes as long as some thousand rows of the stream. So with more than
//! 100 atoms not all are: the climb begins at what the head chose and goes on beside the best so far, by the errors of rows
//! left out or, of long heads, by what the sums expect. With up to 500 atoms the best two by rows left out follow the
//! stream. With 200 and 400 atoms and 10 orders of each set of docs/streaming.md, beside fitting all nine and following those
//! that are not clearly behind, errors were 0.99 to 1.02 times as large (with one alone 0.994 to 1.056 times); with 1,000 atoms
//! on cpuact the same two had 1.19 instead of 1.04 times the error of two passes, and with 40 on a smooth function 0.057 instead
//! of less than 0.05.

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
/// Candidates that follow the stream, where rows left out judge them.
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

/// Learners of what the head chose and, if the bandwidth may still change, of what is near it, without those that need not
/// follow the stream to lose.
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
    let (mut candidates, mut tried) = (Vec::new(), Vec::new());
    loop {
        let wanted = if options.tries_all() { std::mem::take(&mut pairs) } else { next(&tried, method, &mut pairs) };
        if wanted.is_empty() {
            break;
        }
        let found = fitted(options, kept, bandwidth, wanted)?;
        tried.extend(found.iter().map(|new| ((new.factor, new.method), new.judged.error())));
        candidates.extend(found);
        if options.short_start() {
            // At once: the next ones take their memory.
            keep_the_best(&mut candidates);
        }
    }
    drop_behind(&mut candidates);
    Ok(candidates)
}

/// Takes the best so far (at first: what the head chose) and its neighbours out of `pairs`, and its own bandwidth with other
/// atoms. `tried` are pairs and their errors.
fn next(tried: &[(Pair, f64)], method: DictionaryMethod, pairs: &mut Vec<Pair>) -> Vec<Pair> {
    let ours = tried.iter().filter(|((_, other), _)| *other == method);
    let best = ours.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(1.0, |((factor, _), _)| *factor);
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

/// The best two by rows left out, first the best. Expectations drop nobody.
fn keep_the_best(candidates: &mut Vec<Candidate>) {
    if candidates.iter().all(|candidate| matches!(candidate.judged, Judged::LeftOut(_))) {
        candidates.sort_by(|a, b| a.judged.error().total_cmp(&b.judged.error()));
        candidates.truncate(FOLLOWING);
    }
}

/// Drops those that rows left out show clearly behind.
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
        let mut pairs: Vec<Pair> = all.collect();
        let mut tried = Vec::new();
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
            let wanted = next(&tried, Uniform, &mut pairs);
            assert_eq!(wanted, expected.iter().map(|(pair, _)| *pair).collect::<Vec<_>>());
            tried.extend_from_slice(expected);
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

    #[test]
    fn of_those_that_rows_left_out_judge_the_best_two_stay() {
        let kept = |judged: [Judged; 3]| {
            let all = [1.0, 2.0, 0.5].into_iter().zip(judged);
            let mut candidates = all.map(|(factor, judged)| candidate((factor, Uniform), judged)).collect();
            keep_the_best(&mut candidates);
            candidates.iter().map(|c| c.factor).collect::<Vec<_>>()
        };
        assert_eq!(
            kept([[3.0, 3.0], [1.0, 2.0], [2.0, 2.0]].map(|errors| Judged::LeftOut(errors.to_vec()))),
            [2.0, 0.5]
        );
        assert_eq!(kept([3.0, 2.0, 1.0].map(Judged::Expected)), [1.0, 2.0, 0.5]);
        assert_eq!(kept([Judged::Not, Judged::Not, Judged::Not]), [1.0, 2.0, 0.5]);
    }

    /// 100 atoms try all, 101 climb and two follow; above 500 all that were fitted follow.
    #[test]
    fn how_much_is_tried_depends_on_what_it_costs() {
        let mut rng = crate::random::Generator::new(3);
        let data: Vec<f64> = (0..600).map(|_| rng.normal()).collect();
        let mut kept = Kept::new(1);
        let codes: Vec<f64> = data.iter().map(|x| (2.0 * x).sin() + 0.3 * rng.normal()).collect();
        kept.extend(Rows::dense(&data, 600, 1).unwrap(), &codes, &[1.0; 600]);
        let tried = |budget: usize| {
            let options = StreamingOptions { budget, ..StreamingOptions::default() };
            candidates(&options, &kept, (Kernel::gaussian(1.0).unwrap(), Uniform)).unwrap().len()
        };
        assert!(tried(101) <= FOLLOWING && tried(100) > FOLLOWING && tried(501) > FOLLOWING);
    }
}
