//! The recursion by blocks beside the one row by row.

use super::*;
use crate::linalg::Cholesky;
use crate::random::Generator;
use crate::rows::RowBlock;

pub(super) struct Problem {
    pub data: Vec<f64>,
    pub targets: Mat<f64>,
    pub weights: Vec<f64>,
    pub kernel: Kernel,
    pub dictionary: Dictionary,
}

pub(super) fn problem(rows: usize) -> Problem {
    let mut rng = Generator::new(8);
    let data: Vec<f64> = (0..rows * 3).map(|_| rng.normal()).collect();
    let targets = Mat::from_fn(rows, 2, |i, t| 5.0 + (data[3 * i + t] * 2.0).sin() + 0.1 * rng.normal());
    let weights = (0..rows).map(|_| 0.2 + 2.0 * rng.uniform()).collect();
    let all = Rows::dense(&data, rows, 3).unwrap();
    let chosen: Vec<usize> = (0..12).map(|i| i * rows / 12).collect();
    let indices = chosen.iter().map(|&i| i as u64).collect();
    let atom_weights = (0..12).map(|i| 0.5 + 0.1 * f64::from(i)).collect();
    let dictionary = Dictionary::new(RowBlock::gather(all, &chosen), atom_weights, indices, 0.05).unwrap();
    Problem { data, targets, weights, kernel: Kernel::gaussian(1.4).unwrap(), dictionary }
}

impl Problem {
    pub fn rows(&self) -> Rows<'_> {
        Rows::dense(&self.data, self.targets.nrows(), 3).unwrap()
    }

    /// Features (φ, 1) of every row, φ = L⁻¹ S k, naively.
    pub fn features(&self) -> Mat<f64> {
        let atoms = self.dictionary.atoms().rows();
        let s = self.dictionary.weights();
        let inner = Mat::from_fn(12, 12, |i, j| {
            let ridge = if i == j { self.dictionary.leverage_ridge() } else { 0.0 };
            s[i] * s[j] * self.kernel.pair(atoms.row(i), atoms.row(j)) + ridge
        });
        let factor = Cholesky::new(inner.as_ref(), "test").unwrap();
        let rows = self.rows();
        let mut kernels = Mat::from_fn(12, rows.len(), |j, i| s[j] * self.kernel.pair(rows.row(i), atoms.row(j)));
        factor.forward_in_place(kernels.as_mut());
        Mat::from_fn(rows.len(), 13, |i, j| if j < 12 { kernels[(j, i)] } else { 1.0 })
    }

    /// Each row predicted by a fit to the rows before it, from scratch; and its variance factor.
    fn expected(&self, ridge: f64, weighted: bool) -> (Mat<f64>, Vec<f64>) {
        let features = self.features();
        let n = features.nrows();
        let mut predictions = Mat::zeros(n, 2);
        let mut factors = Vec::new();
        for i in 0..n {
            let w = |r: usize| if weighted { self.weights[r] } else { 1.0 };
            let normal = Mat::from_fn(13, 13, |a, b| {
                let prior = if a != b {
                    0.0
                } else if a < 12 {
                    ridge
                } else {
                    INTERCEPT_PRIOR
                };
                (0..i).map(|r| w(r) * features[(r, a)] * features[(r, b)]).sum::<f64>() + prior
            });
            let factor = Cholesky::new(normal.as_ref(), "test").unwrap();
            let mut own = Mat::from_fn(13, 1, |a, _| features[(i, a)]);
            factor.solve_in_place(own.as_mut());
            let spread: f64 = (0..13).map(|a| features[(i, a)] * own[(a, 0)]).sum();
            factors.push(1.0 + w(i) * spread);
            for t in 0..2 {
                predictions[(i, t)] = (0..i)
                    .map(|r| {
                        let reach: f64 = (0..13).map(|a| features[(r, a)] * own[(a, 0)]).sum();
                        w(r) * reach * self.targets[(r, t)]
                    })
                    .sum();
            }
        }
        (predictions, factors)
    }
}

#[test]
fn blocks_give_the_numbers_of_the_row_by_row_recursion() {
    let problem = problem(90);
    for (precise, weighted) in [(true, false), (false, false), (true, true), (false, true)] {
        let (expected, factors) = problem.expected(0.3, weighted);
        for sizes in [vec![90], vec![1; 90], vec![7, 40, 1, 42]] {
            let mut learner = RecursiveRidge::new(problem.kernel, problem.dictionary.clone(), 2, 0.3, precise).unwrap();
            let (mut start, mut found) = (0, Innovations::default());
            for size in sizes {
                let weights = weighted.then(|| &problem.weights[start..start + size]);
                let targets = problem.targets.as_ref().subrows(start, size);
                learner.advance(problem.rows().slice(start, start + size), targets, weights, &mut found).unwrap();
                for i in 0..size {
                    for t in 0..2 {
                        let (got, want) = (found.predictions[2 * i + t], expected[(start + i, t)]);
                        assert!((got - want).abs() < 1e-9, "row {}: {got} {want}", start + i);
                    }
                    // With nothing but the intercept's prior, the first factor is 1e4.
                    let ratio = found.variance_factors[i] / factors[start + i];
                    assert!((ratio - 1.0).abs() < 1e-8, "row {}: {ratio}", start + i);
                }
                start += size;
            }
        }
    }
}

#[test]
fn single_rows_give_the_same_numbers() {
    let problem = problem(90);
    for (precise, weighted) in [(true, false), (false, true)] {
        let (expected, _) = problem.expected(0.3, weighted);
        let mut learner = RecursiveRidge::new(problem.kernel, problem.dictionary.clone(), 2, 0.3, precise).unwrap();
        let weights = weighted.then(|| &problem.weights[..40]);
        let targets = problem.targets.as_ref().subrows(0, 40);
        learner.advance(problem.rows().slice(0, 40), targets, weights, &mut Innovations::default()).unwrap();
        let mut rowwise = learner.rowwise();
        let mut predicted = [0.0; 2];
        for i in 40..90 {
            let codes = [problem.targets[(i, 0)], problem.targets[(i, 1)]];
            let weight = if weighted { problem.weights[i] } else { 1.0 };
            rowwise.learn(problem.rows().row(i), &codes, weight, &mut predicted);
            for t in 0..2 {
                assert!((predicted[t] - expected[(i, t)]).abs() < 1e-9, "row {i}: {}", predicted[t]);
            }
        }
    }
}

#[test]
fn threads_do_not_matter() {
    let problem = problem(700);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let all: Vec<usize> = (0..600).collect();
            let atoms = RowBlock::gather(problem.rows(), &all);
            let indices = all.iter().map(|&i| i as u64).collect();
            let dictionary = Dictionary::new(atoms, vec![1.0; 600], indices, 0.1).unwrap();
            let mut learner = RecursiveRidge::new(problem.kernel, dictionary, 2, 0.3, false).unwrap();
            let mut found = Innovations::default();
            for start in [0, 350] {
                let targets = problem.targets.as_ref().subrows(start, 350);
                learner.advance(problem.rows().slice(start, start + 350), targets, None, &mut found).unwrap();
            }
            found
        })
    };
    assert_eq!(run(1), run(2));
    assert_eq!(run(1), run(3));
}

#[test]
fn fading_equals_smaller_weights() {
    let problem = problem(60);
    let first = vec![0.25; 30];
    let mut faded = RecursiveRidge::new(problem.kernel, problem.dictionary.clone(), 2, 0.3, true).unwrap();
    let mut light = RecursiveRidge::new(problem.kernel, problem.dictionary.clone(), 2, 0.3, true).unwrap();
    let (mut a, mut b) = (Innovations::default(), Innovations::default());
    let part = |start| (problem.rows().slice(start, start + 30), problem.targets.as_ref().subrows(start, 30));
    faded.advance(part(0).0, part(0).1, None, &mut a).unwrap();
    faded.fade(0.25).unwrap();
    light.advance(part(0).0, part(0).1, Some(&first), &mut b).unwrap();
    faded.advance(part(30).0, part(30).1, None, &mut a).unwrap();
    light.advance(part(30).0, part(30).1, None, &mut b).unwrap();
    assert!(a.predictions.iter().zip(&b.predictions).all(|(a, b)| (a - b).abs() < 1e-9));
    assert!((faded.sums().weight() - 37.5).abs() < 1e-12);
}

/// Sums of kernels of fewer rows than atoms, all but unpenalised, have no factor without an addition to the diagonal, which would
/// go by that of the constant.
#[test]
fn sums_of_kernels_that_ask_for_jitter_become_features() {
    let mut rng = Generator::new(9);
    let data: Vec<f64> = (0..80).map(|_| rng.normal()).collect();
    let rows = Rows::dense(&data, 40, 2).unwrap();
    let atoms = RowBlock::gather(rows, &(0..40).collect::<Vec<_>>());
    let kernel = Kernel::gaussian(9.0).unwrap();
    let targets = Mat::from_fn(20, 1, |i, _| data[2 * i]);
    // How they are kept after a block, after they have faded, and begun anew from what is left.
    for (leverage_ridge, ridge, kernels) in [(1e-7, 1e-9, [false; 3]), (1e-6, 1e-2, [true; 3])] {
        let dictionary = Dictionary::new(atoms.clone(), vec![1.0; 40], (0..40).collect(), leverage_ridge).unwrap();
        let mut learner = RecursiveRidge::new(kernel, dictionary, 1, ridge, false).unwrap();
        assert!(!learner.sums().is_whitened());
        let block = Block { rows: rows.slice(0, 20), targets: targets.as_ref(), weights: None };
        learner.advance_all(&[block], &[], &mut Innovations::default()).unwrap();
        let mut predicted = Vec::new();
        learner.predict(rows.slice(0, 20), &mut predicted);
        assert!(predicted.iter().zip(targets.col(0).iter()).all(|(p, y)| (p - y).abs() < 0.2), "{predicted:?}");
        let kept = !learner.sums().is_whitened();
        learner.fade(0.5).unwrap();
        let faded = !learner.sums().is_whitened();
        let (dictionary, sums) = (learner.dictionary().clone(), learner.sums().clone());
        let again = RecursiveRidge::from_sums(kernel, dictionary, sums, learner.ridge()).unwrap();
        assert_eq!([kept, faded, !again.sums().is_whitened()], kernels);
    }
    // Sums that nobody asked before.
    let dictionary = Dictionary::new(atoms, vec![1.0; 40], (0..40).collect(), 1e-7).unwrap();
    let mut sums = RecursiveRidge::new(kernel, dictionary.clone(), 1, 1e-9, false).unwrap().sums().clone();
    let mut block = Mat::zeros(20, 40);
    kernel.block(rows.slice(0, 20), &Centres::new(dictionary.atoms().rows()), &mut Default::default(), block.as_mut());
    sums.add(block.as_mut(), targets.as_ref(), 20.0);
    let begun = RecursiveRidge::from_sums(kernel, dictionary, sums, 1e-9).unwrap();
    assert!(begun.sums().is_whitened());
}
