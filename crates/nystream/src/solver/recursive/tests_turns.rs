//! Rows that go to the factor, beside rows that are summed.

use super::tests::{Problem, problem};
use super::*;

/// Rows of a block: some turns, and a short one.
const SIZE: usize = 100;

fn learner(problem: &Problem, precise: bool) -> RecursiveRidge {
    RecursiveRidge::new(problem.kernel, problem.dictionary.clone(), 2, 0.3, precise).unwrap()
}

fn blocks(problem: &Problem, from: usize, to: usize) -> Vec<Block<'_>> {
    let block = |start: usize| {
        let end = (start + SIZE).min(to);
        let targets = problem.targets.as_ref().subrows(start, end - start);
        Block { rows: problem.rows().slice(start, end), targets, weights: None }
    };
    (from..to).step_by(SIZE).map(block).collect()
}

/// Takes rows up, line after line of blocks.
fn take_up(learner: &mut RecursiveRidge, problem: &Problem, cuts: &[usize]) -> Innovations {
    let mut found = Innovations::default();
    cuts.windows(2).for_each(|cut| learner.take_up(&blocks(problem, cut[0], cut[1]), &mut found).unwrap());
    found
}

fn assert_close(a: &[f64], b: &[f64], relative: f64) {
    assert_eq!(a.len(), b.len());
    for (i, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() < relative * (1.0 + b.abs()), "number {i}: {a} {b}");
    }
}

fn numbers(matrix: MatRef<'_, f64>) -> Vec<f64> {
    matrix.col_iter().flat_map(|column| column.iter().copied()).collect()
}

#[test]
fn they_are_predicted_and_remembered_alike() {
    let problem = problem(420);
    for precise in [true, false] {
        let (mut summed, mut factored) = (learner(&problem, precise), learner(&problem, precise));
        let mut expected = Innovations::default();
        summed.advance_all(&blocks(&problem, 0, 420), &[], &mut expected).unwrap();
        assert!(summed.sums.gram.implied().is_none());
        let found = take_up(&mut factored, &problem, &[0, 200, 420]);
        assert!(factored.sums.gram.implied().is_some());
        assert_close(&found.predictions, &expected.predictions, 1e-9);
        assert_close(&found.variance_factors, &expected.variance_factors, 1e-8);
        assert_close(&numbers(factored.coefficients()), &numbers(summed.coefficients()), 1e-9);
        // What the factor implies, and what is summed beside it.
        let [of_factor, of_rows] = [&factored, &summed].map(|learner| learner.sums());
        assert_close(&numbers(of_factor.gram.to_matrix().as_ref()), &numbers(of_rows.gram.to_matrix().as_ref()), 1e-10);
        assert_close(&of_factor.cross, &of_rows.cross, 1e-12);
        assert_close(&of_factor.feature_sum, &of_rows.feature_sum, 1e-12);
        assert_close(&of_factor.target_sum, &of_rows.target_sum, 1e-12);
        let scalars = |sums: &NystromSums| [sums.weight(), sums.seen(), sums.energy];
        assert_close(&scalars(of_factor), &scalars(of_rows), 1e-12);
    }
}

#[test]
fn cuts_threads_and_looks_do_not_matter() {
    let problem = problem(500);
    let run = |threads: usize, cuts: &[usize], look: &(dyn Fn(&RecursiveRidge) + Sync)| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (mut learner, mut found) = (learner(&problem, false), Vec::new());
            for cut in cuts.windows(2) {
                found.extend(take_up(&mut learner, &problem, cut).predictions);
                look(&learner);
            }
            (found, numbers(learner.coefficients()), numbers(learner.lower().as_ref()))
        })
    };
    let expected = run(1, &[0, 500], &|_| ());
    for threads in 1..=3 {
        assert!(run(threads, &[0, 500], &|_| ()) == expected, "{threads}");
        let look = |learner: &RecursiveRidge| assert!(learner.sums().gram.to_matrix().norm_max() > 0.0);
        assert!(run(threads, &[0, 100, 400, 500], &look) == expected, "{threads}");
    }
}

/// Another ridge, weights, and rows that fade end the factor: what follows is what it would be had there been none.
#[test]
fn what_changes_the_sums_goes_on_from_what_the_factor_implies() {
    let problem = problem(300);
    let change: [fn(&mut RecursiveRidge); 3] = [
        |learner| learner.set_ridge(0.7).unwrap(),
        |learner| learner.fade(0.5).unwrap(),
        |learner| learner.restart_from(learner.sums().clone()).unwrap(),
    ];
    for precise in [true, false] {
        for change in change {
            let (mut summed, mut factored) = (learner(&problem, precise), learner(&problem, precise));
            let mut expected = Innovations::default();
            summed.advance_all(&blocks(&problem, 0, 100), &[], &mut expected).unwrap();
            take_up(&mut factored, &problem, &[0, 100]);
            [&mut summed, &mut factored].into_iter().for_each(change);
            assert!(factored.sums.gram.implied().is_none());
            let mut found = take_up(&mut factored, &problem, &[100, 200]);
            summed.advance_all(&blocks(&problem, 100, 200), &[], &mut expected).unwrap();
            assert_close(&found.predictions, &expected.predictions, 1e-9);
            let rows = problem.rows().slice(200, 300);
            let (targets, weights) = (problem.targets.as_ref().subrows(200, 100), Some(&problem.weights[200..]));
            summed.advance(rows, targets, weights, &mut expected).unwrap();
            factored.advance(rows, targets, weights, &mut found).unwrap();
            assert_close(&found.predictions, &expected.predictions, 1e-9);
        }
    }
}

#[test]
fn a_copy_of_the_sums_stays_as_it_was() {
    let problem = problem(200);
    let mut learner = learner(&problem, true);
    take_up(&mut learner, &problem, &[0, 100]);
    let copy = learner.sums().clone();
    let before = numbers(learner.sums().gram.to_matrix().as_ref());
    take_up(&mut learner, &problem, &[100, 200]);
    assert_eq!(numbers(copy.gram.to_matrix().as_ref()), before);
    assert!(numbers(learner.sums().gram.to_matrix().as_ref()) != before);
}
