//! Standard deviations fitted to honest errors.

use faer::MatRef;
use nystream::Error;
use nystream::fit::Summing;
use nystream::kernel::Kernel;
use nystream::model::{KernelModel, PredictWorkspace};
use nystream::random::Generator;
use nystream::rows::{RowBlock, Rows};
use nystream::sketch::Dictionary;
use nystream::solver::{Ridge, SolverOptions};

/// Half of a normal variable's 90 % interval, in standard deviations.
const NORMAL: f64 = 1.644_853_626_951_472_2;

fn fitted(kernel: &Kernel, rows: Rows, targets: &[f64], dictionary: &Dictionary) -> KernelModel {
    let mut summing = Summing::new(*kernel, dictionary, 1, false).unwrap();
    summing.add(rows, MatRef::from_column_major_slice(targets, targets.len(), 1));
    let options = SolverOptions { ridge: Ridge::Fixed(0.1), intercept: true };
    summing.sums().solve(kernel, dictionary, &options).unwrap().model
}

/// Errors that are 0.3 times a normal variable, or of long tails, in all places alike.
#[test]
fn nine_in_ten_errors_lie_in_the_interval_whatever_their_tails() {
    for long in [false, true] {
        let mut rng = Generator::new(3);
        let mut draw = move || {
            let normal = 0.3 * rng.normal();
            // Student's t of 2 degrees of freedom.
            if long { normal / (-rng.uniform().ln()).sqrt() } else { normal }
        };
        let mut points = Generator::new(4);
        let data: Vec<f64> = (0..4000).map(|_| points.normal()).collect();
        let rows = Rows::dense(&data, 2000, 2).unwrap();
        let atoms = RowBlock::gather(rows, &(0..20).collect::<Vec<_>>());
        let dictionary = Dictionary::new(atoms, vec![1.0; 20], (0..20).collect(), 0.0).unwrap();
        let targets: Vec<f64> = (0..2000).map(|_| draw()).collect();
        let mut model = fitted(&Kernel::gaussian(0.5).unwrap(), rows, &targets, &dictionary);
        let errors: Vec<f64> = (0..2000).map(|_| draw()).collect();
        model.fit_spread(rows, &errors).unwrap();
        let (mut values, mut deviations) = (Vec::new(), Vec::new());
        let mut workspace = PredictWorkspace::default();
        model.predict_with_std(rows, &mut workspace, &mut values, &mut deviations).unwrap();
        let covered = |errors: &mut dyn FnMut() -> f64| {
            deviations.iter().filter(|std| errors().abs() <= NORMAL * **std).count() as f64 / 2000.0
        };
        // Errors of the same kind that it has not seen: a share of 0.9 of 2,000 varies by 0.0067, twice over.
        let share = covered(&mut draw);
        assert!((share - 0.9).abs() < 3.0 * 0.0067 * 2f64.sqrt(), "long tails {long}: {share}");
    }
}

#[test]
fn errors_that_grow_away_from_the_atoms_make_the_interval_grow() {
    let mut rng = Generator::new(5);
    let data: Vec<f64> = (0..1000).map(|_| 3.0 * rng.normal()).collect();
    let rows = Rows::dense(&data, 1000, 1).unwrap();
    let atoms = RowBlock::gather(rows, &[0, 1, 2]);
    let dictionary = Dictionary::new(atoms, vec![1.0; 3], vec![0, 1, 2], 0.0).unwrap();
    let kernel = Kernel::gaussian(0.5).unwrap();
    let targets: Vec<f64> = (0..1000).map(|_| 0.1 * rng.normal()).collect();
    let mut model = fitted(&kernel, rows, &targets, &dictionary);
    let unspanned: Vec<f64> = (0..1000)
        .map(|i| 1.0 - (0..3).map(|j| kernel.pair(rows.row(i), rows.row(j))).fold(0.0, f64::max).powi(2))
        .collect();
    let mut run = |grow: f64| {
        let errors: Vec<f64> = unspanned.iter().map(|u| (0.1 + grow * u) * rng.normal()).collect();
        model.fit_spread(rows, &errors).unwrap();
        let (mut values, mut deviations) = (Vec::new(), Vec::new());
        model.predict_with_std(rows, &mut PredictWorkspace::default(), &mut values, &mut deviations).unwrap();
        let near = (0..1000).find(|&i| unspanned[i] < 0.01).unwrap();
        let far = (0..1000).find(|&i| unspanned[i] > 0.99).unwrap();
        deviations[far] / deviations[near]
    };
    let (even, growing) = (run(0.0), run(2.0));
    assert!(even < 1.5 && growing > 3.0, "{even} {growing}");
}

#[test]
fn few_errors_change_nothing_and_a_wrong_number_is_refused() {
    let data = [0.0, 1.0, 2.0];
    let rows = Rows::dense(&data, 3, 1).unwrap();
    let dictionary = Dictionary::new(RowBlock::gather(rows, &[0]), vec![1.0], vec![0], 0.0).unwrap();
    let mut model = fitted(&Kernel::gaussian(1.0).unwrap(), rows, &[0.0, 1.0, 0.5], &dictionary);
    let before = model.uncertainty().unwrap().noise_variances().to_vec();
    model.fit_spread(rows, &[9.0; 3]).unwrap();
    assert_eq!(model.uncertainty().unwrap().noise_variances(), before);
    assert!(matches!(model.fit_spread(rows, &[1.0; 2]), Err(Error::Shape { .. })));
}
