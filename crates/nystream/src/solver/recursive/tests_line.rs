//! Many blocks by two workers, beside one block at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::tests::{Problem, problem};
use super::*;

const SIZE: usize = 30;

fn on<T: Send>(threads: usize, task: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(task)
}

/// Codes ±1 for the squared hinge, else the targets.
fn targets(problem: &Problem, loss: Loss) -> Mat<f64> {
    let outputs = if loss == Loss::Squared { 2 } else { 1 };
    Mat::from_fn(problem.targets.nrows(), outputs, |i, t| match loss {
        Loss::Squared => problem.targets[(i, t)],
        Loss::SquaredHinge => (problem.targets[(i, t)] - 5.0).signum(),
    })
}

fn learner(problem: &Problem, loss: Loss, precise: bool) -> RecursiveRidge {
    let outputs = if loss == Loss::Squared { 2 } else { 1 };
    let dictionary = problem.dictionary.clone();
    RecursiveRidge::new(problem.kernel, dictionary, outputs, 0.3, precise).unwrap().with_loss(loss)
}

fn blocks<'a>(problem: &'a Problem, targets: &'a Mat<f64>, from: usize, to: usize) -> Vec<Block<'a>> {
    let block = |start: usize| {
        let (end, targets) = ((start + SIZE).min(to), targets.as_ref());
        let rows = problem.rows().slice(start, end);
        Block { rows, targets: targets.subrows(start, end - start), weights: None }
    };
    (from..to).step_by(SIZE).map(block).collect()
}

/// All that a learner would go on with, as bits.
fn state(learner: &RecursiveRidge) -> Vec<u64> {
    let gram = learner.sums.gram.to_matrix();
    let numbers = gram.col_iter().flat_map(|column| column.iter()).chain(learner.coefficients().col(0).iter());
    numbers.map(|v| v.to_bits()).collect()
}

#[test]
fn many_blocks_are_one_after_the_other_on_any_threads_whatever_was_thought_to_come() {
    let problem = problem(700);
    for loss in [Loss::Squared, Loss::SquaredHinge] {
        let targets = targets(&problem, loss);
        for precise in [true, false] {
            // Cut into lines of blocks here; features are made ahead for the rows there.
            let run = |threads: usize, cuts: &[usize], upcoming: &(dyn Fn(usize) -> Option<usize> + Sync)| {
                on(threads, || {
                    let mut learner = learner(&problem, loss, precise);
                    let (mut all, mut found) = (Vec::new(), Innovations::default());
                    for cut in cuts.windows(2) {
                        let later = upcoming(cut[1]).map_or(Vec::new(), |from| blocks(&problem, &targets, from, 700));
                        let later: Vec<Rows> = later.iter().take(3).map(|block| block.rows).collect();
                        learner.advance_all(&blocks(&problem, &targets, cut[0], cut[1]), &later, &mut found).unwrap();
                        all.extend_from_slice(&found.predictions);
                        assert_eq!(found.variance_factors.len(), cut[1] - cut[0]);
                    }
                    let bits: Vec<u64> = all.iter().map(|v: &f64| v.to_bits()).collect();
                    (bits, state(&learner))
                })
            };
            let singly: Vec<usize> = (0..700).step_by(SIZE).chain([700]).collect();
            let expected = run(1, &singly, &|_| None);
            assert_eq!(expected.0.len(), 700 * targets.ncols());
            for threads in 1..=3 {
                assert!(run(threads, &[0, 700], &|_| None) == expected, "{threads}");
                assert!(run(threads, &[0, 210, 240, 570, 700], &Some) == expected, "{threads}");
                assert!(run(threads, &singly, &|from| Some(from.saturating_sub(7))) == expected, "{threads}");
            }
        }
    }
}

#[test]
fn learning_that_fails_is_an_error_after_the_blocks_before_it_and_a_panic_is_one() {
    let problem = problem(300);
    let (targets, endless) = (targets(&problem, Loss::Squared), vec![f64::MAX; SIZE]);
    for threads in 1..=2 {
        on(threads, || {
            let mut blocks = blocks(&problem, &targets, 0, 300);
            blocks[5].weights = Some(&endless);
            let mut learner = learner(&problem, Loss::Squared, true);
            let mut found = Innovations::default();
            let outcome = learner.advance_all(&blocks, &[], &mut found);
            assert!(matches!(outcome, Err(Error::NotPositiveDefinite { .. })), "{outcome:?}");
            // The workers do not wait for a task that nobody will finish.
            let none = Mat::zeros(SIZE, 7);
            (blocks[5].weights, blocks[5].targets) = (None, none.as_ref());
            let panic = catch_unwind(AssertUnwindSafe(|| learner.advance_all(&blocks, &[], &mut found)));
            assert!(panic.is_err());
        });
    }
}
