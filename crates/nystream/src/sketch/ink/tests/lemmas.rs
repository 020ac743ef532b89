//! Lemmas 1–3 at every step at which their conditions hold, and E[S Sᵀ] = I.

use super::super::super::check::check_guarantee;
use super::super::super::sequential::SequentialDictionary;
use super::*;

/// Rounding of a score: everything is of order 1, condition numbers up to some thousands.
const TOLERANCE: f64 = 1e-9;

#[test]
fn exact_probabilities_only_fall() {
    // INK, Lemma 1.
    let block = naive::normal_rows(60, 3, 21);
    let mut falls = 0;
    for kernel in naive::kernels() {
        for gamma in [0.1, 2.0] {
            let mut last: Vec<f64> = vec![];
            for n in 1..=60 {
                let k = naive::gram(&kernel, block.rows().slice(0, n), block.rows().slice(0, n));
                let scores = naive::leverage(&k, gamma);
                let d_eff: f64 = scores.iter().sum();
                let now: Vec<f64> = scores.iter().map(|score| score / d_eff).collect();
                assert!(now.iter().zip(&last).all(|(now, last)| *now <= last + TOLERANCE));
                falls += now.iter().zip(&last).filter(|(now, last)| **now < *last - 1e-6).count();
                last = now;
            }
        }
    }
    assert!(falls > 5000, "{falls}");
}

/// How often the conditions held and failed, and the largest d̃/d_eff and d̃/(β d_eff) under them.
#[derive(Debug, Default)]
struct Counts {
    scores_judged: usize,
    dims_judged: usize,
    failing_steps: usize,
    /// Scores below τ/α or above τ at steps that fail Eq. 11.
    outside: usize,
    largest_ratio: f64,
    largest_share_of_beta: f64,
    smallest_score: f64,
}

fn judge(kernel: Kernel, rows: Rows, options: InkOptions, counts: &mut Counts) {
    let (gamma, epsilon) = (options.leverage_ridge, options.accuracy);
    let alpha = (2.0 - epsilon) / (1.0 - epsilon);
    let mut ink = InkEstimate::new(options).unwrap();
    let mut always = true;
    let last = naive::gram(&kernel, rows, rows);
    let largest = crate::linalg::SymmetricEigen::values_of(last.as_ref()).unwrap()[rows.len() - 1];
    let beta = alpha * alpha * (1.0 + largest / gamma);
    for (t, row) in singly(rows).enumerate() {
        let dictionary = ink.dictionary().unwrap();
        let holds = match (t, dictionary.is_empty()) {
            (0, _) => true,
            (_, true) => false,
            _ => check_guarantee(&kernel, rows.slice(0, t), &dictionary, None, epsilon).unwrap().bound_holds,
        };
        always &= holds;
        let estimate = next_estimate(&ink, row);
        let exact = naive::leverage(&last.submatrix(0, 0, t + 1, t + 1).to_owned(), gamma);
        let d_eff: f64 = exact.iter().sum();
        let atoms = ink.atoms().iter().map(|atom| atom.row).chain([t]);
        for (i, score) in atoms.zip(estimate.scores.iter().chain([&estimate.new_score])) {
            let within =
                score.is_some_and(|score| exact[i] / alpha <= score + TOLERANCE && score <= exact[i] + TOLERANCE);
            if holds {
                assert!(within, "row {t}, atom {i}: {score:?}, exact {}", exact[i]);
                counts.scores_judged += 1;
                counts.smallest_score = counts.smallest_score.min(score.unwrap() / exact[i]);
            } else {
                counts.outside += usize::from(!within);
            }
        }
        counts.failing_steps += usize::from(!holds);
        if always {
            let found = estimate.effective_dim;
            assert!(d_eff <= found + TOLERANCE && found <= beta * d_eff + TOLERANCE, "{t}: {found} {d_eff} {beta}");
            counts.dims_judged += 1;
            counts.largest_ratio = counts.largest_ratio.max(found / d_eff);
            counts.largest_share_of_beta = counts.largest_share_of_beta.max(found / d_eff / beta);
        }
        ink.insert(row).unwrap();
    }
}

#[test]
fn scores_and_dimension_are_within_their_factors_while_the_accuracy_condition_holds() {
    // INK, Lemma 2 and 3.
    let (normal, clustered) = (naive::normal_rows(60, 3, 22), naive::clustered_rows(60, 23));
    let mut counts = Counts { smallest_score: 1.0, ..Counts::default() };
    for kernel in naive::kernels() {
        for (seed, oversampling) in [(1, 3), (2, 100), (3, 1000)] {
            for block in [&normal, &clustered] {
                judge(kernel, block.rows(), options(kernel, oversampling, seed), &mut counts);
            }
        }
    }
    println!("{counts:?}");
    assert!(counts.scores_judged > 5000 && counts.dims_judged > 500, "{counts:?}");
    // The condition is not an empty one: it fails for small q̄, and then scores leave their bounds.
    assert!(counts.failing_steps > 50 && counts.outside > 50, "{counts:?}");
    assert!(counts.largest_ratio > 1.5, "{counts:?}");
}

/// Deviations that the largest of `count` standard normal ones passes with probability 1e-6 at most.
fn largest_deviation(count: usize) -> f64 {
    (2.0 * (2.0 * count as f64 / 1e-6).ln()).sqrt()
}

#[test]
fn exact_scores_give_every_row_its_weight_with_its_probability() {
    // Exact probabilities do not depend on the draws, so b_i is known: M_i, the first integer above 1/(q̄ p_i), with
    // probability 1/M_i, else 0. E[b_i] = 1 and Var[b_i] = M_i − 1.
    let (rows, seeds, oversampling) = (40, 1000, 8);
    let block = naive::normal_rows(rows, 2, 24);
    let kernel = Kernel::gaussian(1.0).unwrap();
    let scores = naive::leverage(&naive::gram(&kernel, block.rows(), block.rows()), 0.7);
    let d_eff: f64 = scores.iter().sum();
    let targets: Vec<u64> = scores.iter().map(|tau| (d_eff / (tau * oversampling as f64)) as u64 + 1).collect();
    let mut survived = vec![0; rows];
    for seed in 0..seeds {
        let mut ink = InkExact::new(options(kernel, oversampling, seed)).unwrap();
        ink.insert(block.rows()).unwrap();
        for atom in ink.atoms() {
            assert_eq!(atom.inflation, targets[atom.row]);
            survived[atom.row] += 1;
        }
    }
    let bound = largest_deviation(rows);
    for (i, (&survived, &target)) in survived.iter().zip(&targets).enumerate() {
        let mean = (survived * target) as f64 / seeds as f64;
        let deviation = ((target - 1) as f64 / seeds as f64).sqrt();
        assert!((mean - 1.0).abs() <= bound * deviation, "row {i}: mean {mean}, target {target}");
    }
    assert!(targets.iter().filter(|&&target| target > 2).count() > rows / 2, "{targets:?}");
}

#[test]
fn estimated_scores_leave_the_mean_of_the_weights_at_one() {
    // E[S Sᵀ] = I whatever the estimates. Over independent seeds, with the deviation estimated from them.
    let (rows, seeds) = (60, 400);
    let block = naive::normal_rows(rows, 2, 25);
    let kernel = Kernel::gaussian(1.0).unwrap();
    let mut means = vec![];
    let mut survivors = 0;
    for seed in 0..seeds {
        let mut ink = InkEstimate::new(options(kernel, 40, seed)).unwrap();
        ink.insert(block.rows()).unwrap();
        means.push(ink.report().unwrap().copies as f64 / rows as f64);
        survivors += ink.atoms().len();
    }
    let n = means.len() as f64;
    let mean = means.iter().sum::<f64>() / n;
    let variance = means.iter().map(|b| (b - mean).powi(2)).sum::<f64>() / (n - 1.0);
    println!("mean {mean}, deviation {}, {} atoms", (variance / n).sqrt(), survivors as f64 / n);
    assert!((mean - 1.0).abs() <= largest_deviation(1) * (variance / n).sqrt(), "{mean} {variance}");
    // Many rows must have been dropped for this to mean anything.
    assert!(survivors * 4 < 3 * rows * seeds as usize, "{survivors}");
}
