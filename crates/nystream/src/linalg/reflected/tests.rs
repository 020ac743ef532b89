use faer::Mat;

use pulp::Scalar;

use super::super::registers::{Plain, narrow};
use super::*;
use crate::random::Generator;

/// Recursive least squares, row by row: A⁻¹ and θ.
struct RowByRow {
    inverse: Mat<f64>,
    theta: Mat<f64>,
}

impl RowByRow {
    /// Errors and the variance factor of a row, which is learnt.
    fn learn(&mut self, features: &[f64], targets: &[f64]) -> (Vec<f64>, f64) {
        let width = features.len();
        let gain: Vec<f64> = (0..width).map(|i| (0..width).map(|j| self.inverse[(i, j)] * features[j]).sum()).collect();
        let variance = 1.0 + features.iter().zip(&gain).map(|(a, b)| a * b).sum::<f64>();
        let predicted = |t: usize| (0..width).map(|i| features[i] * self.theta[(i, t)]).sum::<f64>();
        let errors: Vec<f64> = targets.iter().enumerate().map(|(t, y)| y - predicted(t)).collect();
        for i in 0..width {
            (0..errors.len()).for_each(|t| self.theta[(i, t)] += gain[i] * errors[t] / variance);
            (0..width).for_each(|j| self.inverse[(i, j)] -= gain[i] * gain[j] / variance);
        }
        (errors, variance)
    }
}

fn random(rng: &mut Generator, rows: usize, cols: usize) -> Mat<f64> {
    Mat::from_fn(rows, cols, |_, _| rng.normal())
}

/// A factor of `diagonal`² I, and z = 0.
fn plain(width: usize, outputs: usize, diagonal: f64) -> ReflectedFactor {
    let lower = Mat::from_fn(width, width, |i, j| if i == j { diagonal } else { 0.0 });
    ReflectedFactor::new(lower.as_ref(), Mat::zeros(width, outputs).as_ref())
}

fn lower(factor: &ReflectedFactor) -> Mat<f64> {
    let mut lower = Mat::zeros(factor.width(), factor.width());
    factor.write_lower(lower.as_mut());
    lower
}

#[test]
fn errors_variances_and_factor_are_those_of_the_recursion_row_by_row() {
    let mut rng = Generator::new(4);
    for (width, outputs) in [(1, 1), (7, 1), (8, 3), (23, 1), (24, 1), (25, 2), (47, 24), (61, 1)] {
        let mut factor = plain(width, outputs, 0.5);
        let mut naive = RowByRow {
            inverse: Mat::from_fn(width, width, |i, j| if i == j { 4.0 } else { 0.0 }),
            theta: Mat::zeros(width, outputs),
        };
        let (mut sums, mut found) = (Mat::<f64>::identity(width, width) * 0.25, Reflecting::default());
        for (turn, rows) in [48, 1, 6, 20, 47, 48].into_iter().enumerate() {
            let (features, targets) = (random(&mut rng, rows, width), random(&mut rng, rows, outputs));
            let new = NewRows { features: features.as_ref(), targets: targets.as_ref() };
            Wave::new(&mut factor).take_up(0, new, &mut found);
            for i in 0..rows {
                let row: Vec<f64> = features.row(i).iter().copied().collect();
                let (errors, variance) = naive.learn(&row, &targets.row(i).iter().copied().collect::<Vec<_>>());
                assert!((found.variance(i) / variance - 1.0).abs() < 1e-11, "{width} {turn} {i}");
                for (t, error) in errors.iter().enumerate() {
                    let found = found.error(i, t);
                    assert!((found - error).abs() < 1e-11, "{width} {turn} {i}: {found} {error}");
                }
            }
            sums += features.transpose() * &features;
            let lower = lower(&factor);
            assert!((&lower * lower.transpose() - &sums).norm_max() < 1e-11, "{width} {turn}");
            let mut theta = factor.values();
            for (t, column) in theta.col_iter_mut().enumerate() {
                let column = column.try_as_col_major_mut().unwrap().as_slice_mut();
                factor.backward_in_place(column);
                assert!((0..width).all(|i| (column[i] - naive.theta[(i, t)]).abs() < 1e-11));
            }
            assert!((0..width).all(|i| lower[(i, i)] > 0.0));
        }
    }
}

#[test]
fn digits_stay_where_rows_are_far_apart_in_size_and_nearly_dependent() {
    // The recursion on sums loses what is below 1e-16 of the largest; here the same rows come in another order.
    let mut rng = Generator::new(5);
    let width = 30;
    let scale = |j: usize| 10f64.powi(-((j % 6) as i32));
    let rows = Mat::from_fn(480, width, |_, j| scale(j) * rng.normal());
    let taken = |from_last: bool| {
        let mut factor = plain(width, 1, 1e-3);
        let mut found = Reflecting::default();
        for block in 0..10 {
            let block = if from_last { 9 - block } else { block };
            let features = rows.subrows(48 * block, 48).to_owned();
            let targets = Mat::zeros(48, 1);
            let new = NewRows { features: features.as_ref(), targets: targets.as_ref() };
            Wave::new(&mut factor).take_up(0, new, &mut found);
        }
        lower(&factor)
    };
    let (one, other) = (taken(false), taken(true));
    for j in 0..width {
        for i in j..width {
            assert!((one[(i, j)] - other[(i, j)]).abs() < 1e-13 * 22.0 * scale(i), "{i} {j}");
        }
    }
}

#[test]
fn turns_on_two_threads_have_the_bits_of_one() {
    let mut rng = Generator::new(6);
    let (width, turns) = (70, 9);
    let blocks: Vec<_> = (0..turns).map(|_| (random(&mut rng, 48, width), random(&mut rng, 48, 1))).collect();
    let new = |turn: usize| NewRows { features: blocks[turn].0.as_ref(), targets: blocks[turn].1.as_ref() };
    let errors = |found: &Reflecting| (0..48).map(|i| (found.error(i, 0), found.variance(i))).collect::<Vec<_>>();
    let mut factors = [plain(width, 1, 0.1), plain(width, 1, 0.1)];
    let mut expected = Vec::new();
    let [one, two] = &mut factors;
    let wave = Wave::new(one);
    let mut found = Reflecting::default();
    for turn in 0..turns {
        wave.take_up(turn as u64, new(turn), &mut found);
        expected.push(errors(&found));
    }
    let wave = Wave::new(two);
    let every_other = |first: usize| {
        let mut found = Reflecting::default();
        let turns = (first..turns).step_by(2);
        turns.map(|turn| (wave.take_up(turn as u64, new(turn), &mut found), errors(&found)).1).collect::<Vec<_>>()
    };
    let (even, odd) = std::thread::scope(|scope| {
        let odd = scope.spawn(|| every_other(1));
        (every_other(0), odd.join().unwrap())
    });
    for (turn, expected) in expected.iter().enumerate() {
        assert_eq!(if turn % 2 == 0 { &even[turn / 2] } else { &odd[turn / 2] }, expected);
    }
    assert_eq!(lower(&factors[0]), lower(&factors[1]));
}

#[test]
fn a_turn_that_ends_in_a_panic_is_not_waited_for() {
    let mut factor = plain(30, 1, 1.0);
    let wave = Wave::new(&mut factor);
    let (features, targets) = (Mat::zeros(5, 30), Mat::zeros(5, 1));
    let wrong = NewRows { features: features.as_ref().subcols(0, 3), targets: targets.as_ref() };
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        wave.take_up(0, wrong, &mut Reflecting::default());
    }));
    assert!(panicked.is_err() && wave.has_given_up());
    let right = NewRows { features: features.as_ref(), targets: targets.as_ref() };
    wave.take_up(1, right, &mut Reflecting::default());
}

/// The same bits on wide registers and on narrow ones; without vectors, the same numbers.
#[test]
fn registers_do_not_matter() {
    let mut rng = Generator::new(9);
    for width in [5, 24, 70, 100] {
        let rows: Vec<_> = [48, 20, 1].map(|count| (random(&mut rng, count, width), random(&mut rng, count, 2))).into();
        let run = |take: &dyn Fn(TakeUp)| {
            let (mut factor, mut numbers) = (plain(width, 2, 0.1), Vec::new());
            for (features, targets) in &rows {
                let (wave, mut found) = (Wave::new(&mut factor), Reflecting::default());
                found.reserve(wave.shape());
                let rows = NewRows { features: features.as_ref(), targets: targets.as_ref() };
                take(TakeUp { wave: &wave, turn: 0, rows, found: &mut found });
                numbers.extend(
                    (0..features.nrows()).flat_map(|i| [found.error(i, 0), found.error(i, 1), found.variance(i)]),
                );
            }
            numbers.extend(lower(&factor).col_iter().flat_map(|column| column.iter().copied()));
            numbers
        };
        let usual = run(&|task| on_panels(task));
        if let Some(narrow) = narrow() {
            assert_eq!(run(&|task| task.run(narrow)), usual, "{width}");
        }
        let scalar = run(&|task| task.run(Plain::<Scalar, 4>(Scalar)));
        assert!(usual.iter().zip(&scalar).all(|(a, b)| (a - b).abs() < 1e-10 * (1.0 + a.abs())), "{width}");
    }
}
