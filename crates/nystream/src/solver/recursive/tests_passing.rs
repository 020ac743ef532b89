//! Two classes: what is learnt of a block and what is predicted, beside fits from scratch.

use super::tests::{Problem, problem};
use super::*;
use crate::linalg::Cholesky;
use crate::rows::RowBlock;

const RIDGE: f64 = 0.01;

struct Literal {
    features: Mat<f64>,
    codes: Vec<f64>,
    weights: Vec<f64>,
    taught: Vec<usize>,
}

impl Literal {
    /// The output of a row from the rows taught so far, by a fit from scratch.
    fn output(&self, row: usize) -> f64 {
        let width = self.features.ncols();
        let prior = |a: usize| if a + 1 < width { RIDGE } else { INTERCEPT_PRIOR };
        let normal = Mat::from_fn(width, width, |a, b| {
            let product = |&r: &usize| self.weights[r] * self.features[(r, a)] * self.features[(r, b)];
            self.taught.iter().map(product).sum::<f64>() + if a == b { prior(a) } else { 0.0 }
        });
        let cross = |a: usize| {
            self.taught.iter().map(|&r| self.weights[r] * self.features[(r, a)] * self.codes[r]).sum::<f64>()
        };
        let mut theta = Mat::from_fn(width, 1, |a, _| cross(a));
        Cholesky::new(normal.as_ref(), "test").unwrap().solve_in_place(theta.as_mut());
        (0..width).map(|a| self.features[(row, a)] * theta[(a, 0)]).sum()
    }

    /// One-step-ahead outputs of a block; rows beyond the margin at its start are not taught.
    fn advance(&mut self, block: std::ops::Range<usize>) -> Vec<f64> {
        let within: Vec<bool> = block.clone().map(|i| self.codes[i] * self.output(i) < 1.0).collect();
        block
            .zip(within)
            .map(|(i, within)| {
                let output = self.output(i);
                if within {
                    self.taught.push(i);
                }
                output
            })
            .collect()
    }
}

fn literal(problem: &Problem, weighted: bool) -> Literal {
    let rows = problem.rows().len();
    // Two classes with some room between most of them.
    let codes = (0..rows).map(|i| (problem.data[3 * i] + 0.3 * problem.data[3 * i + 1]).signum()).collect();
    let weights = if weighted { problem.weights.clone() } else { vec![1.0; rows] };
    Literal { features: problem.features(), codes, weights, taught: Vec::new() }
}

#[test]
fn blocks_predict_every_row_and_learn_those_within_the_margin() {
    let problem = problem(120);
    for (precise, weighted) in [(true, false), (false, false), (true, true), (false, true)] {
        for sizes in [vec![40, 40, 40], vec![1; 120], vec![30, 7, 50, 1, 32]] {
            let mut theirs = literal(&problem, weighted);
            let mut learner = RecursiveRidge::new(problem.kernel, problem.dictionary.clone(), 1, RIDGE, precise)
                .unwrap()
                .with_loss(Loss::SquaredHinge);
            let (mut start, mut found) = (0, Innovations::default());
            for size in sizes {
                let block = start..start + size;
                let expected = theirs.advance(block.clone());
                let weights = weighted.then(|| &theirs.weights[block.clone()]);
                let targets = Mat::from_fn(size, 1, |i, _| theirs.codes[start + i]);
                let rows = problem.rows().slice(start, start + size);
                learner.advance(rows, targets.as_ref(), weights, &mut found).unwrap();
                for (i, (got, want)) in found.predictions.iter().zip(&expected).enumerate() {
                    assert!((got - want).abs() < 1e-8, "row {}: {got} {want}", start + i);
                    let taught = theirs.taught.contains(&(start + i));
                    assert_eq!(found.variance_factors[i].is_nan(), !taught);
                }
                start += size;
            }
            assert!(theirs.taught.len() > 30 && theirs.taught.len() < 100, "{}", theirs.taught.len());
            let weight: f64 = theirs.taught.iter().map(|&i| theirs.weights[i]).sum();
            assert!((learner.sums().weight() - weight).abs() < 1e-9);
            assert!((learner.sums().seen() - theirs.weights.iter().sum::<f64>()).abs() < 1e-9);
            assert_eq!(learner.sums().rows(), 120);
        }
    }
}

#[test]
fn single_rows_are_passed_over_as_in_a_block() {
    let problem = problem(120);
    let mut theirs = literal(&problem, true);
    let mut learner = RecursiveRidge::new(problem.kernel, problem.dictionary.clone(), 1, RIDGE, true)
        .unwrap()
        .with_loss(Loss::SquaredHinge);
    theirs.advance(0..60);
    let targets = Mat::from_fn(60, 1, |i, _| theirs.codes[i]);
    let first = problem.rows().slice(0, 60);
    learner.advance(first, targets.as_ref(), Some(&theirs.weights[..60]), &mut Innovations::default()).unwrap();
    let mut rowwise = learner.rowwise();
    let expected = theirs.advance(60..120);
    for (i, want) in (60..120).zip(expected) {
        let mut predicted = [0.0];
        rowwise.learn(problem.rows().row(i), &theirs.codes[i..i + 1], theirs.weights[i], &mut predicted);
        assert!((predicted[0] - want).abs() < 1e-8, "row {i}: {} {want}", predicted[0]);
    }
}

/// A block of rows that all cost nothing changes nothing.
#[test]
fn nothing_to_learn_is_no_error() {
    let problem = problem(120);
    let theirs = literal(&problem, false);
    let far: Vec<usize> = (0..120).filter(|&i| problem.data[3 * i].abs() < 1.5).collect();
    let mut learner = RecursiveRidge::new(problem.kernel, problem.dictionary.clone(), 1, 1e-9, true)
        .unwrap()
        .with_loss(Loss::SquaredHinge);
    // The same row again and again is learnt at once; then it is beyond the margin.
    let rows = RowBlock::gather(problem.rows(), &vec![far[0]; 50]);
    let targets = Mat::from_fn(50, 1, |_, _| 1.01 * theirs.codes[far[0]]);
    let mut found = Innovations::default();
    learner.advance(rows.rows(), targets.as_ref(), None, &mut found).unwrap();
    let (weight, before) = (learner.sums().weight(), learner.coefficients().to_owned());
    let codes = Mat::from_fn(50, 1, |_, _| theirs.codes[far[0]]);
    learner.advance(rows.rows(), codes.as_ref(), None, &mut found).unwrap();
    assert!(found.predictions.iter().all(|f| (f * theirs.codes[far[0]] - 1.01).abs() < 1e-3));
    assert!(learner.sums().weight() == weight && learner.sums().seen() == 100.0);
    assert!(learner.coefficients() == before);
}
