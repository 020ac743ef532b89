//! The learners against their authors' pseudo-code, and against what they must equal where that is known exactly.

use super::curved_loss::CurvedLoss;
use super::literal::{LiteralKons, LiteralNons, Slope, literal_krls};
use crate::kernel::Kernel;
use crate::learner::online::{Learner, LearnerSettings, Targets};
use crate::linalg::Cholesky;
use crate::random::Generator;
use crate::rows::Row;
use faer::Mat;

type Stream = Vec<(Vec<f64>, f64)>;

/// Rows in the square with a target of their own; every fifth row repeats an earlier one exactly.
fn stream(rows: usize, targets: Targets) -> Stream {
    let mut rng = Generator::new(31);
    let mut stream: Stream = Vec::new();
    for t in 0..rows {
        if t % 5 == 4 {
            stream.push(stream[rng.below(t as u64) as usize].clone());
            continue;
        }
        let x = vec![2.0 * rng.uniform() - 1.0, 2.0 * rng.uniform() - 1.0];
        let wave = (3.0 * x[0]).sin() * x[1] + 0.1 * rng.normal();
        stream.push((x, if targets == Targets::Classes { wave.signum() } else { wave }));
    }
    stream
}

fn settings(targets: Targets, budget: usize) -> LearnerSettings {
    let mut settings = LearnerSettings::new(Kernel::gaussian(0.7).unwrap(), 2, targets);
    settings.budget = budget;
    settings.seed = 17;
    settings
}

fn run(name: &str, settings: LearnerSettings, rows: &Stream) -> (Vec<f64>, usize) {
    let mut learner = Learner::new(name, settings).unwrap();
    let outputs = rows.iter().map(|(x, y)| learner.learn(Row::Dense(x), *y).unwrap()).collect();
    (outputs, learner.atoms())
}

/// Rounding: the eigenvalues the oracle divides by go down to 1e-11 of the largest, so its features have errors of
/// about 1e-16/√1e-11 ≈ 3e-11, carried through a few hundred rounds.
const TOLERANCE: f64 = 1e-8;

fn assert_alike((ours, our_atoms): &(Vec<f64>, usize), (theirs, their_atoms): &(Vec<f64>, usize)) {
    assert_eq!(our_atoms, their_atoms);
    for (t, (a, b)) in ours.iter().zip(theirs).enumerate() {
        assert!((a - b).abs() < TOLERANCE, "round {t}: {a}, literally {b}");
    }
}

fn kons(restart: bool, slope: Slope, sigma: f64, bound: f64, budget: usize) -> LiteralKons {
    let kernel = Kernel::gaussian(0.7).unwrap();
    let (alpha, gamma, epsilon, beta) = (0.6, 0.8, 0.3, 1.1);
    LiteralKons { kernel, restart, slope, bound, alpha, sigma, gamma, epsilon, beta, budget }
}

fn kons_settings(targets: Targets, bound: f64, budget: usize) -> LearnerSettings {
    settings(targets, budget)
        .with("bound", bound)
        .with("ridge", 0.6)
        .with("leverage-ridge", 0.8)
        .with("accuracy", 0.3)
        .with("oversampling", 1.1)
}

#[test]
fn pros_n_kons_and_con_kons_equal_their_algorithms_literally() {
    let squared: Slope = |f, y| CurvedLoss::Squared.derivative(f, y);
    let hinge: Slope = |f, y| CurvedLoss::SquaredHinge.derivative(f, y);
    let logistic: Slope = |f, y| CurvedLoss::Logistic.derivative(f, y);
    // A bound of 0.4 makes the projection work; a budget of 12 is full long before the end.
    for (targets, loss, slope, sigma, bound, budget) in [
        (Targets::Numbers, "squared", squared, 0.125, 1.0, 200),
        (Targets::Numbers, "squared", squared, 0.125, 0.4, 12),
        (Targets::Classes, "squared-hinge", hinge, 0.125, 0.4, 12),
        (Targets::Classes, "logistic", logistic, (-2.0f64).exp(), 2.0, 12),
    ] {
        let rows = stream(250, targets);
        for (name, restart) in [("pros-n-kons", true), ("con-kons", false)] {
            let ours = run(name, kons_settings(targets, bound, budget).with("loss", loss), &rows);
            let theirs = kons(restart, slope, sigma, bound, budget).run(&rows, 17);
            assert_alike(&ours, &theirs);
            assert!(ours.1 >= 12, "{name}: a dictionary of {} tests little", ours.1);
            assert!(ours.0.iter().all(|f| f.abs() <= bound));
        }
    }
}

#[test]
fn nons_ald_equals_its_algorithm_literally() {
    for (targets, bound, budget) in [(Targets::Numbers, 1.0, 200), (Targets::Classes, 0.3, 9)] {
        let rows = stream(250, targets);
        let kernel = Kernel::gaussian(0.7).unwrap();
        let slope: Slope = |f, y| 2.0 * (f - y);
        let (mu, eta, threshold) = (0.5, 0.25 / (bound * bound + 1.0), 0.004);
        let theirs = LiteralNons { kernel, slope, bound, mu, eta, threshold, budget }.run(&rows);
        let ours = settings(targets, budget).with("bound", bound).with("ridge", mu).with("dependence", threshold);
        assert_alike(&run("nons-ald", ours, &rows), &theirs);
        assert!(theirs.1 >= 9);
    }
}

#[test]
fn nons_ald_takes_its_threshold_from_the_length_of_the_stream() {
    let rows = stream(250, Targets::Numbers);
    let mut with_length = settings(Targets::Numbers, 200);
    with_length.expected_rows = Some(2500);
    assert_eq!(
        run("nons-ald", with_length, &rows),
        run("nons-ald", settings(Targets::Numbers, 200).with("dependence", 0.01), &rows)
    );
}

#[test]
fn krls_equals_its_algorithm_literally() {
    for (targets, budget) in [(Targets::Numbers, 200), (Targets::Numbers, 7), (Targets::Classes, 7)] {
        let rows = stream(300, targets);
        let theirs = literal_krls(Kernel::gaussian(0.7).unwrap(), 0.01, budget, &rows);
        assert_alike(&run("krls", settings(targets, budget), &rows), &theirs);
        assert!(theirs.1 >= 7);
    }
}

/// With ν = 0 and few points every point is an atom, and least squares without a ridge is K⁻¹y.
#[test]
fn krls_without_a_threshold_is_exact_kernel_least_squares() {
    let kernel = Kernel::gaussian(0.3).unwrap();
    let rows: Stream =
        stream(40, Targets::Numbers).into_iter().enumerate().filter(|(t, _)| t % 5 != 4).map(|(_, r)| r).collect();
    let n = rows.len();
    let mut given = LearnerSettings::new(kernel, 2, Targets::Numbers).with("dependence", 0);
    given.budget = n;
    let mut learner = Learner::new("krls", given).unwrap();
    for (x, y) in &rows {
        learner.learn(Row::Dense(x), *y).unwrap();
    }
    assert_eq!(learner.atoms(), n);
    let k = |a: &[f64], b: &[f64]| kernel.pair(Row::Dense(a), Row::Dense(b));
    let gram = Mat::from_fn(n, n, |i, j| k(&rows[i].0, &rows[j].0));
    let mut coefficients = Mat::from_fn(n, 1, |i, _| rows[i].1);
    Cholesky::new(gram.as_ref(), "K").unwrap().solve_in_place(coefficients.as_mut());
    let mut rng = Generator::new(8);
    for i in 0..50 {
        let x = if i < n { rows[i].0.clone() } else { vec![rng.uniform(), rng.uniform()] };
        let exact: f64 = (0..n).map(|j| k(&x, &rows[j].0) * coefficients[(j, 0)]).sum();
        let ours = learner.predict(Row::Dense(&x)).unwrap();
        assert!((ours - exact).abs() < 1e-7, "{ours} {exact}");
    }
}

/// Beyond its budget KRLS is least squares over the projections of all rows onto its atoms.
#[test]
fn krls_at_its_budget_is_least_squares_over_the_projections() {
    let (kernel, rows) = (Kernel::gaussian(0.7).unwrap(), stream(120, Targets::Numbers));
    let mut learner = Learner::new("krls", settings(Targets::Numbers, 6)).unwrap();
    let mut atoms: Vec<(usize, &[f64])> = Vec::new();
    for (t, (x, y)) in rows.iter().enumerate() {
        let before = learner.atoms();
        learner.learn(Row::Dense(x), *y).unwrap();
        if learner.atoms() > before {
            atoms.push((t, x));
        }
    }
    let k = |a: &[f64], b: &[f64]| kernel.pair(Row::Dense(a), Row::Dense(b));
    // Row t of A: its coefficients on the atoms there were when it was learnt, itself included if it is one.
    let known = |t: usize| atoms.iter().filter(|(s, _)| *s <= t).count();
    let mut a = Mat::<f64>::zeros(rows.len(), 6);
    for (t, (x, _)) in rows.iter().enumerate() {
        let m = known(t);
        let gram = Mat::from_fn(m, m, |i, j| k(atoms[i].1, atoms[j].1));
        let mut solved = Mat::from_fn(m, 1, |i, _| k(x, atoms[i].1));
        Cholesky::new(gram.as_ref(), "K").unwrap().solve_in_place(solved.as_mut());
        (0..m).for_each(|i| a[(t, i)] = solved[(i, 0)]);
    }
    // Values at the atoms: (AᵀA)⁻¹Aᵀy.
    let y = Mat::from_fn(rows.len(), 1, |t, _| rows[t].1);
    let mut values = a.transpose() * y;
    Cholesky::new((a.transpose() * &a).as_ref(), "AᵀA").unwrap().solve_in_place(values.as_mut());
    for (i, (_, z)) in atoms.iter().enumerate() {
        let ours = learner.predict(Row::Dense(z)).unwrap();
        assert!((ours - values[(i, 0)]).abs() < TOLERANCE, "{ours} {}", values[(i, 0)]);
    }
}

#[test]
fn seeds_decide_about_the_sampled_dictionaries() {
    let rows = stream(200, Targets::Classes);
    for name in ["pros-n-kons", "con-kons"] {
        let with_seed = |seed: u64| {
            let mut given = settings(Targets::Classes, 50).with("leverage-ridge", 3.0);
            given.seed = seed;
            run(name, given, &rows)
        };
        assert_eq!(with_seed(1), with_seed(1));
        assert_ne!(with_seed(1), with_seed(2));
    }
}

#[test]
fn a_loss_of_classes_is_refused_for_numbers() {
    for name in ["pros-n-kons", "con-kons"] {
        let message =
            Learner::new(name, settings(Targets::Numbers, 9).with("loss", "logistic")).unwrap_err().to_string();
        assert!(message.contains("loss") && message.contains("squared"), "{message}");
    }
}
