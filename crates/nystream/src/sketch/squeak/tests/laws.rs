//! What must hold for any stream.

use super::*;

#[test]
fn chunking_does_not_matter() {
    for kernel in [Kernel::gaussian(1.5).unwrap(), Kernel::polynomial(2, 0.5, 1.0).unwrap()] {
        // 40 columns: kernel values by matrix products.
        for block in [oracle::normal_rows(200, 2, 1), oracle::normal_rows(100, 40, 2)] {
            for schedule in schedules() {
                for rows in [block.clone(), sparse_copy(&block)] {
                    let options = SqueakOptions { kernel, ..options(schedule) };
                    let whole = squeak_of(&options, rows.rows());
                    let mut pieces = Squeak::new(options).unwrap();
                    let (mut from, mut size) = (0, 1);
                    while from < rows.len() {
                        let to = rows.len().min(from + size);
                        pieces.insert(rows.rows().slice(from, to)).unwrap();
                        // Looking changes nothing.
                        pieces.dictionary().unwrap();
                        pieces.report().unwrap();
                        (from, size) = (to, size * 2 % 37 + 1);
                    }
                    assert!(bytes(&whole) == bytes(&pieces), "{schedule:?}");
                }
            }
        }
    }
}

#[test]
fn threads_do_not_matter() {
    let block = oracle::normal_rows(700, 6, 3);
    for schedule in [Schedule::Blocks { rows: 200 }, Schedule::Lazy { rows: 200, growth: 1.5 }] {
        let mut options = options(schedule);
        options.leverage_ridge = 0.3;
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| squeak_of(&options, block.rows()))
        };
        let one = on(1);
        // Large enough that the work is shared.
        assert!(one.atoms() > 200, "{}", one.atoms());
        assert!(bytes(&one) == bytes(&on(3)), "{schedule:?}");
    }
}

#[test]
fn probabilities_only_fall_and_rows_keep_their_numbers() {
    let block = oracle::normal_rows(160, 2, 4);
    for schedule in schedules() {
        let mut squeak = Squeak::new(options(schedule)).unwrap();
        let mut before: Vec<(u64, u64, f64)> = Vec::new();
        for start in (0..160).step_by(16) {
            squeak.insert(block.rows().slice(start, start + 16)).unwrap();
            let now = held(&squeak);
            for (number, copies, probability) in &now {
                assert!(*probability > 0.0 && *probability <= 1.0 && *copies >= 1);
                match before.iter().find(|old| old.0 == *number) {
                    Some(old) => assert!(*probability <= old.2 && *copies <= old.1),
                    None => assert!(*number >= start as u64),
                }
            }
            for (i, point) in now.iter().enumerate() {
                let found = squeak.atoms.rows().rows().row(i);
                assert_eq!(crate::kernel::squared_distance(found, block.rows().row(point.0 as usize)), 0.0);
            }
            before = now;
        }
    }
}

#[test]
fn kernel_values_stay_with_their_atoms() {
    let block = oracle::normal_rows(150, 3, 5);
    for schedule in schedules() {
        for kernel in oracle::kernels() {
            let squeak = squeak_of(&SqueakOptions { kernel, ..options(schedule) }, block.rows());
            let rows = squeak.atoms.rows().rows();
            let kernels = squeak.atoms.kernels();
            assert!(squeak.atoms() > 10 && squeak.atoms() < 140);
            for j in 0..squeak.atoms() {
                for i in j..squeak.atoms() {
                    let expected = kernel.pair(rows.row(i), rows.row(j));
                    assert!((kernels[(i, j)] - expected).abs() < 1e-11 * expected.abs().max(1.0));
                }
            }
        }
    }
}

#[test]
fn the_bordered_factor_is_that_of_the_atoms() {
    let block = oracle::normal_rows(400, 2, 6);
    let mut squeak = Squeak::new(options(Schedule::Lazy { rows: 16, growth: 3.0 })).unwrap();
    let mut bordered = 0;
    for start in (0..400).step_by(16) {
        squeak.insert(block.rows().slice(start, start + 16)).unwrap();
        if let Some((lower, ridge, jitter)) = squeak.scorer.factor() {
            let mut fresh = Scorer::default();
            fresh.of_rows(&squeak.options.kernel, &squeak.atoms, block.rows().slice(0, 1), ridge).unwrap();
            let (expected, ..) = fresh.factor().unwrap();
            assert_eq!(jitter, 0.0);
            for j in 0..squeak.atoms() {
                assert!((j..squeak.atoms()).all(|i| (lower[(i, j)] - expected[(i, j)]).abs() < 1e-9));
            }
            bordered += 1;
        }
    }
    assert!(bordered > 5, "{bordered}");
}

#[test]
fn refused_rows_change_nothing() {
    for schedule in schedules() {
        let block = oracle::normal_rows(40, 2, 7);
        let mut squeak = squeak_of(&options(schedule), block.rows());
        let before = bytes(&squeak);
        let mut bad = block.clone();
        if let RowBlock::Dense { data, .. } = &mut bad {
            data[79] = f64::NAN;
        }
        let found = squeak.insert(bad.rows()).unwrap_err();
        assert!(matches!(found, Error::Input { row: 40, .. }), "{found}");
        let found = squeak.insert(oracle::normal_rows(3, 5, 1).rows()).unwrap_err();
        assert!(matches!(found, Error::Shape { found: 5, expected: 2, .. }), "{found}");
        let found = squeak.insert(sparse_copy(&block).rows()).unwrap_err();
        assert!(matches!(found, Error::Incompatible { .. }), "{found}");
        assert!(bytes(&squeak) == before);
        squeak.insert(block.rows().slice(0, 0)).unwrap();
        assert!(bytes(&squeak) == before);
    }
}

#[test]
fn a_stream_of_one_repeated_row_needs_few_atoms_and_keeps_the_weight() {
    for schedule in schedules() {
        let block = repeated(&[1.0, -2.0], 1000);
        let mut squeak = squeak_of(&options(schedule), block.rows());
        squeak.flush().unwrap();
        let weight: f64 = squeak.atoms.standing().iter().map(|point| point.squared_weight()).sum();
        // d_eff = 1000/(1000 + γ) < 1, so some ten atoms at q̄ = 5; their weights estimate 1000.
        assert!(squeak.atoms() < 60 && weight > 200.0 && weight < 5000.0, "{schedule:?} {} {weight}", squeak.atoms());
        let report = squeak.report().unwrap();
        assert!(report.effective_dim > 0.9 && report.effective_dim < 1.1 && report.captured > 0.98, "{report:?}");
    }
}

#[test]
fn rows_without_energy_are_dropped() {
    for schedule in schedules() {
        let options = SqueakOptions { kernel: Kernel::Linear, ..options(schedule) };
        let squeak = squeak_of(&options, repeated(&[0.0, 0.0], 64).rows());
        assert!(
            squeak.report().unwrap().captured == 1.0 && squeak.dictionary().unwrap().is_empty() || squeak.atoms() < 8
        );
        let all_of_it = squeak_of(&options, oracle::normal_rows(200, 2, 8).rows());
        // Two columns: rank 2, and what is left is within γ.
        assert!(all_of_it.report().unwrap().effective_dim < 2.1);
    }
}

#[test]
fn the_dictionary_approximates_all_rows() {
    let block = oracle::clustered_rows(300, 9);
    for schedule in schedules() {
        let mut options = options(schedule);
        options.oversampling = Oversampling::Fixed(60);
        let squeak = squeak_of(&options, block.rows());
        let dictionary = squeak.dictionary().unwrap();
        let check = crate::sketch::check_guarantee(&options.kernel, block.rows(), &dictionary, None, 0.5).unwrap();
        let report = squeak.report().unwrap();
        assert!(check.bound_holds, "{schedule:?} {check:?}");
        assert!(report.effective_dim / check.effective_dim < 1.5 && check.effective_dim / report.effective_dim < 1.5);
        // Judged at their arrival, the first of each cluster by a dictionary that knew little.
        let late = check.captured - report.captured;
        assert!(late > -0.01 && late < 0.05, "{report:?} {check:?}");
        assert_eq!((report.rows, report.atoms), (300, dictionary.len()));
    }
}

#[test]
fn the_theorem_is_stated_and_kept() {
    let mut options = options(Schedule::Blocks { rows: 16 });
    let block = oracle::normal_rows(48, 2, 10);
    let report = squeak_of(&options, block.rows()).report().unwrap();
    let needed = 39.0 * 3.0 * (2.0 * 48.0 / 0.1f64).ln() / 0.25;
    assert!((report.theorem.oversampling - needed).abs() < 1e-9 && !report.theorem.promised);
    assert_eq!((report.theorem.score_factor, report.theorem.error_bound, report.oversampling), (3.0, 1.0, 5));

    options.oversampling = Oversampling::Theorem { expected_rows: 20 };
    let mut squeak = squeak_of(&options, block.rows().slice(0, 20));
    let first = squeak.report().unwrap();
    assert!(first.theorem.promised);
    // Row 21 is beyond 20, row 41 beyond 40.
    squeak.insert(block.rows().slice(20, 48)).unwrap();
    let q = |n: f64| (39.0 * 3.0 * (2.0 * n / 0.1f64).ln() / 0.25).ceil() as u64;
    for (point, trials) in squeak.atoms.standing().iter().map(|point| (point.number, point.trials)) {
        assert_eq!(
            trials,
            q(if point < 20 {
                20.0
            } else if point < 40 {
                40.0
            } else {
                80.0
            }),
            "{point}"
        );
    }
    let report = squeak.report().unwrap();
    assert!(!report.theorem.promised && report.oversampling == q(80.0));
}

#[test]
fn options_out_of_range_are_named() {
    let name = |change: fn(&mut SqueakOptions)| {
        let mut options = options(Schedule::PerPoint);
        change(&mut options);
        match Squeak::new(options) {
            Err(Error::InvalidParam { name, .. }) => name,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(name(|o| o.leverage_ridge = 0.0), "leverage-ridge");
    assert_eq!(name(|o| o.leverage_ridge = f64::NAN), "leverage-ridge");
    assert_eq!(name(|o| o.accuracy = 1.0), "accuracy");
    assert_eq!(name(|o| o.accuracy = 0.0), "accuracy");
    assert_eq!(name(|o| o.failure_prob = f64::NAN), "failure-prob");
    assert_eq!(name(|o| o.oversampling = Oversampling::Fixed(0)), "oversampling");
    assert_eq!(name(|o| o.oversampling = Oversampling::Theorem { expected_rows: 0 }), "oversampling");
    assert_eq!(name(|o| o.budget = Some(0)), "budget");
    assert_eq!(name(|o| o.budget_bytes = Some(50)), "budget-bytes");
    assert_eq!(name(|o| o.schedule = Schedule::Blocks { rows: 0 }), "block");
    assert_eq!(name(|o| o.schedule = Schedule::Lazy { rows: 5, growth: 0.9 }), "growth");
    assert_eq!(name(|o| o.kernel = Kernel::Gaussian { bandwidth: -1.0 }), "bandwidth");
    assert_eq!(name(|o| (o.accuracy, o.oversampling) = (1e-4, Oversampling::Theorem { expected_rows: 9 })), "accuracy");
}
