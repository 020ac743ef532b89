//! What holds for every sequential dictionary: budget, chunks, threads, repeats, bad rows.

use super::super::super::sequential::SequentialDictionary;
use super::*;
use crate::error::Error;

fn run<O: Oracle>(options: &InkOptions, rows: Rows, block: usize) -> InkOracle<O> {
    let mut ink = InkOracle::<O>::new(options.clone()).unwrap();
    for start in (0..rows.len()).step_by(block) {
        ink.insert(rows.slice(start, rows.len().min(start + block))).unwrap();
        ink.flush().unwrap();
    }
    ink
}

fn budget_holds<O: Oracle>(rows: Rows, kernel: Kernel) {
    for budget in [1, 5, 12] {
        let options = InkOptions { budget: Some(budget), ..options(kernel, 60, 5) };
        let mut ink = InkOracle::<O>::new(options).unwrap();
        let (mut ridge, mut dim) = (0.7, 0.0);
        for row in singly(rows) {
            ink.insert(row).unwrap();
            let report = ink.report().unwrap();
            assert!(report.atoms <= budget && ink.dictionary().unwrap().len() == report.atoms);
            assert!(report.leverage_ridge >= ridge && report.effective_dim >= dim);
            (ridge, dim) = (report.leverage_ridge, report.effective_dim);
            assert_eq!(report.theorem.error_bound, ridge / 0.6);
        }
        let report = ink.report().unwrap();
        assert!(report.leverage_ridge > 0.7 && report.initial_leverage_ridge == 0.7, "{report:?}");
        assert_eq!(ink.dictionary().unwrap().leverage_ridge(), report.leverage_ridge);
        assert!(report.captured < 1.0 && (report.captured > 0.0) == (report.atoms > 0));
        // d̃ still bounds the effective dimension at the γ in force.
        let k = naive::gram(&kernel, rows, rows);
        assert!(report.effective_dim >= naive::leverage(&k, report.leverage_ridge).iter().sum::<f64>() - 1e-9);
    }
}

#[test]
fn a_budget_is_never_exceeded_and_the_ridge_rises_instead() {
    let block = naive::normal_rows(120, 2, 31);
    let kernel = Kernel::gaussian(0.8).unwrap();
    budget_holds::<EstimateOracle>(block.rows(), kernel);
    budget_holds::<ExactOracle>(block.rows(), kernel);
    // One that is large enough changes nothing, and the constructor for budgets asks for enough of them.
    assert_eq!(InkOptions::with_budget(kernel, 0.7, 12).validated().unwrap().oversampling, 120);
    let free = run::<EstimateOracle>(&options(kernel, 20, 1), block.rows(), 10);
    let ample = run::<EstimateOracle>(&InkOptions { budget: Some(120), ..options(kernel, 20, 1) }, block.rows(), 10);
    assert_eq!(free.atoms(), ample.atoms());
}

#[test]
fn chunks_and_sparse_storage_do_not_matter() {
    let block = naive::normal_rows(90, 3, 32);
    let mut sparse = RowBlock::sparse(3);
    sparse.extend(block.rows());
    for kernel in naive::kernels() {
        let options = InkOptions { budget: Some(15), ..options(kernel, 40, 2) };
        let whole = run::<EstimateOracle>(&options, block.rows(), 90);
        for size in [1, 7, 33] {
            let parts = run::<EstimateOracle>(&options, block.rows(), size);
            assert_eq!((parts.atoms(), parts.report().unwrap()), (whole.atoms(), whole.report().unwrap()));
        }
        let rows = |ink: &InkEstimate| ink.atoms().iter().map(|atom| atom.row).collect::<Vec<_>>();
        assert_eq!(rows(&run::<EstimateOracle>(&options, sparse.rows(), 90)), rows(&whole));
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    // Enough atoms and rows for products and factorisations to go parallel (kernels do in a test of their own).
    let block = naive::normal_rows(400, 10, 33);
    let kernel = Kernel::gaussian(3.0).unwrap();
    let options = options(kernel, 4000, 3);
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run::<EstimateOracle>(&options, block.rows(), 400))
    };
    let (one, three) = (on(1), on(3));
    assert!(one.atoms().len() > 200, "{}", one.atoms().len());
    assert_eq!((one.atoms(), one.report().unwrap()), (three.atoms(), three.report().unwrap()));
    assert_eq!(one.to_container().unwrap(), three.to_container().unwrap());
}

#[test]
fn repeats_are_recognised_and_options_have_effect() {
    let block = repeated_rows(300);
    let kernel = Kernel::gaussian(1.0).unwrap();
    let base = options(kernel, 1500, 4);
    let ink = run::<EstimateOracle>(&base, block.rows(), 300);
    let report = ink.report().unwrap();
    // Four different points, of 300: d_eff < 4.
    assert_eq!(ink.unreliable_steps(), 0);
    assert!(report.captured > 0.8 && report.copies > 2 * report.atoms as u64, "{report:?}");
    for other in [
        InkOptions { leverage_ridge: 3.0, ..base.clone() },
        InkOptions { accuracy: 0.8, ..base.clone() },
        InkOptions { oversampling: 1000, ..base.clone() },
        InkOptions { seed: 9, ..base.clone() },
    ] {
        assert_ne!(run::<EstimateOracle>(&other, block.rows(), 300).atoms(), ink.atoms(), "{other:?}");
    }
    let surer = run::<EstimateOracle>(&InkOptions { failure_prob: 0.01, ..base }, block.rows(), 300);
    assert!(surer.report().unwrap().theorem.oversampling > report.theorem.oversampling);
}

#[test]
fn the_report_knows_the_theorem() {
    let block = naive::normal_rows(30, 2, 34);
    let kernel = Kernel::gaussian(1.0).unwrap();
    let few = run::<EstimateOracle>(&options(kernel, 10, 1), block.rows(), 30).report().unwrap();
    let alpha = 1.6 / 0.6;
    assert!((few.theorem.score_factor - alpha).abs() < 1e-12 && !few.theorem.promised);
    // ρ = tr K/γ = 30/0.7.
    assert!((few.theorem.dimension_factor.unwrap() - alpha * alpha * (1.0 + 30.0 / 0.7)).abs() < 1e-9);
    let asked = 28.0 * alpha * few.effective_dim / 0.16 * (4.0f64 * 30.0 / 0.1).ln();
    assert!((few.theorem.oversampling - asked).abs() < 1e-6 && few.theorem.atoms == 80.0);
    // With the theorem's q̄ nothing is dropped from so few rows, and each keeps weight 1.
    let many = run::<EstimateOracle>(&options(kernel, asked as u64 * 2, 1), block.rows(), 30);
    let report = many.report().unwrap();
    assert!(report.theorem.promised && report.atoms == 30 && report.copies == 30, "{report:?}");
    let exact = run::<ExactOracle>(&options(kernel, 10, 1), block.rows(), 30).report().unwrap();
    assert_eq!((exact.theorem.score_factor, exact.theorem.dimension_factor), (1.0, Some(1.0)));
    let k = naive::gram(&kernel, block.rows(), block.rows());
    assert!((exact.effective_dim - naive::leverage(&k, 0.7).iter().sum::<f64>()).abs() < 1e-9);
}

#[test]
fn what_is_captured_is_of_all_rows_at_the_ridge_in_force() {
    let block = naive::normal_rows(60, 2, 35);
    let kernel = Kernel::gaussian(1.0).unwrap();
    for budget in [None, Some(12)] {
        let options = InkOptions { budget, ..options(kernel, 40, 6) };
        let ink = run::<ExactOracle>(&options, block.rows(), 7);
        let (report, dictionary) = (ink.report().unwrap(), ink.dictionary().unwrap());
        assert_eq!(report.leverage_ridge > 0.7, budget.is_some());
        let check = crate::sketch::check_guarantee(&kernel, block.rows(), &dictionary, None, 0.5).unwrap();
        assert!((report.captured - check.captured).abs() < 1e-9, "{report:?} {check:?}");
    }
}

#[test]
fn rows_that_cannot_be_used_leave_it_unchanged() {
    let block = naive::normal_rows(20, 2, 36);
    let kernel = Kernel::polynomial(3, 1.0, 1.0).unwrap();
    let mut ink = run::<EstimateOracle>(&options(kernel, 10, 1), block.rows(), 20);
    let before = ink.to_container().unwrap();
    let refused = |ink: &mut InkEstimate, data: &[f64], cols| {
        ink.insert(Rows::dense(data, data.len() / cols, cols).unwrap()).unwrap_err()
    };
    assert!(matches!(refused(&mut ink, &[1.0, 2.0, f64::NAN, 0.0], 2), Error::Input { row: 2, .. }));
    assert!(matches!(refused(&mut ink, &[1.0, 2.0, 3.0], 3), Error::Shape { found: 3, expected: 2, .. }));
    assert!(refused(&mut ink, &[1e100, 0.0], 2).to_string().contains("scale"));
    assert!(refused(&mut ink, &[1e40, 0.0], 2).to_string().contains("1e75"));
    ink.insert(block.rows().slice(3, 3)).unwrap();
    assert_eq!(ink.to_container().unwrap(), before);
}

#[test]
fn rows_without_energy_count_but_never_enter() {
    let mut data = vec![0.0; 10];
    data.extend([1.0, 2.0, 0.0, -1.0]);
    let rows = Rows::dense(&data, 7, 2).unwrap();
    for exact in [false, true] {
        let options = options(Kernel::Linear, 10, 1);
        let (report, dictionary) = if exact {
            let ink = run::<ExactOracle>(&options, rows, 7);
            (ink.report().unwrap(), ink.dictionary().unwrap())
        } else {
            let ink = run::<EstimateOracle>(&options, rows, 7);
            assert_eq!(ink.unreliable_steps(), 0);
            (ink.report().unwrap(), ink.dictionary().unwrap())
        };
        assert!(report.rows == 7 && dictionary.indices().iter().all(|&i| i >= 5), "{dictionary:?}");
    }
    let empty = InkEstimate::new(options(Kernel::Linear, 10, 1)).unwrap();
    assert!(empty.dictionary().unwrap().is_empty() && empty.report().unwrap().captured == 1.0);
}

#[test]
fn the_exact_oracle_refuses_more_rows_than_it_can_hold() {
    assert!(matches!(ExactOracle::require_fits(10_001), Err(Error::TooLarge { .. })));
    let data = vec![1.0; 10_001];
    let mut ink = InkExact::new(options(Kernel::Linear, 10, 1)).unwrap();
    let found = ink.insert(Rows::dense(&data, 10_001, 1).unwrap()).unwrap_err().to_string();
    assert!(found.contains("ink-estimate") && ink.rows() == 0, "{found}");
}

#[test]
fn a_ridge_below_rounding_is_survived() {
    // Scores drown in rounding: rows are kept rather than judged by noise, and a budget still holds.
    let block = repeated_rows(60);
    let kernel = Kernel::gaussian(1.0).unwrap();
    let tiny = InkOptions { budget: Some(9), oversampling: 30, ..InkOptions::new(kernel, 1e-13) };
    let ink = run::<EstimateOracle>(&tiny, block.rows(), 60);
    let report = ink.report().unwrap();
    assert!(report.atoms <= 9 && ink.unreliable_steps() > 0 && report.leverage_ridge > 1e-13, "{report:?}");
    assert!(report.captured > 0.5 && !report.theorem.promised, "{report:?}");
}
