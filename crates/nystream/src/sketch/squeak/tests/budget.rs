//! The budget is never exceeded, and γ in force is the one that holds.

use super::*;

#[test]
fn the_budget_is_never_exceeded_and_the_ridge_only_rises() {
    let block = oracle::normal_rows(400, 3, 1);
    for schedule in schedules() {
        let mut options = options(schedule);
        (options.leverage_ridge, options.budget) = (0.05, Some(40));
        let mut squeak = Squeak::new(options).unwrap();
        let mut ridge = 0.05;
        for start in (0..400).step_by(5) {
            squeak.insert(block.rows().slice(start, start + 5)).unwrap();
            assert!(squeak.atoms() <= 40 && squeak.dictionary().unwrap().len() <= 40);
            assert!(squeak.leverage_ridge() >= ridge);
            ridge = squeak.leverage_ridge();
        }
        let report = squeak.report().unwrap();
        assert!(report.leverage_ridge >= ridge && ridge > 0.05 && report.initial_leverage_ridge == 0.05);
        // Raised as needed, not far beyond.
        assert!(squeak.atoms() >= 15, "{schedule:?}: {} atoms at {ridge}", squeak.atoms());
        assert_eq!(squeak.dictionary().unwrap().leverage_ridge(), report.leverage_ridge);
    }
}

#[test]
fn what_fits_is_not_touched_by_a_budget() {
    let block = oracle::normal_rows(100, 2, 2);
    for schedule in schedules() {
        let free = squeak_of(&options(schedule), block.rows());
        let bounded = squeak_of(&SqueakOptions { budget: Some(500), ..options(schedule) }, block.rows());
        assert_eq!(held(&free), held(&bounded));
        assert_eq!(bounded.leverage_ridge(), 0.5);
    }
}

#[test]
fn the_raised_ridge_holds() {
    let block = oracle::normal_rows(300, 2, 3);
    for schedule in schedules() {
        let mut options = options(schedule);
        (options.leverage_ridge, options.budget, options.oversampling) = (0.01, Some(90), Oversampling::Fixed(40));
        let squeak = squeak_of(&options, block.rows());
        let dictionary = squeak.dictionary().unwrap();
        let check = crate::sketch::check_guarantee(&options.kernel, block.rows(), &dictionary, None, 0.5).unwrap();
        assert!(check.leverage_ridge > 0.01 && check.bound_holds, "{schedule:?}: {check:?}");
    }
}

#[test]
fn bytes_bound_the_atoms_by_the_stated_formula() {
    let block = oracle::normal_rows(300, 4, 4);
    for schedule in schedules() {
        for rows in [block.clone(), sparse_copy(&block)] {
            let row_bytes = if rows.is_sparse() { 56.0 } else { 32.0 };
            let mut options = options(schedule);
            let bytes = options.bytes_for(30, row_bytes) as u64 + 1;
            (options.leverage_ridge, options.budget_bytes) = (0.05, Some(bytes));
            let squeak = squeak_of(&options, rows.rows());
            assert!(squeak.atoms() <= 30 && squeak.atoms() >= 10, "{}", squeak.atoms());
            assert_eq!(squeak.allowed_atoms(), 30);
            options.budget = Some(12);
            assert!(squeak_of(&options, rows.rows()).atoms() <= 12);
        }
    }
    // Room for an atom, but not for a wide one.
    let narrow = SqueakOptions { budget_bytes: Some(23_000), ..options(Schedule::PerPoint) };
    for wide in [oracle::normal_rows(30, 50, 1), sparse_copy(&oracle::normal_rows(30, 50, 1))] {
        let found = Squeak::new(narrow.clone()).unwrap().insert(wide.rows()).unwrap_err();
        assert!(matches!(found, Error::InvalidParam { name: "budget-bytes", .. }), "{found}");
    }
}

#[test]
fn a_budget_of_one_atom_works() {
    for schedule in schedules() {
        let options = SqueakOptions { budget: Some(1), ..options(schedule) };
        let squeak = squeak_of(&options, oracle::normal_rows(100, 2, 5).rows());
        assert!(squeak.atoms() <= 1 && squeak.report().unwrap().leverage_ridge.is_finite());
    }
}

#[test]
fn the_bytes_held_are_never_more_than_the_budget_and_not_far_below() {
    let block = oracle::normal_rows(3000, 4, 6);
    for schedule in [Schedule::PerPoint, Schedule::Blocks { rows: 100 }, Schedule::Lazy { rows: 64, growth: 1.1 }] {
        for (rows, bytes) in [(block.clone(), 2_500_000), (sparse_copy(&block), 2_000_000)] {
            // Single rows cost as much as a hundred atoms each.
            let (length, bytes) = if schedule == Schedule::PerPoint { (400, bytes / 8) } else { (3000, bytes) };
            let mut options = options(schedule);
            (options.leverage_ridge, options.budget_bytes) = (1e-4, Some(bytes));
            let mut squeak = Squeak::new(options).unwrap();
            for start in (0..length).step_by(50) {
                squeak.insert(rows.rows().slice(start, start + 50)).unwrap();
                let held = squeak.report().unwrap().bytes;
                assert!(held <= bytes, "{schedule:?}, {start} rows: {held} of {bytes}");
            }
            // After a merge, whatever both together took.
            let mut other = Squeak::new(SqueakOptions { seed: 9, ..squeak.options().clone() }).unwrap();
            other.insert(rows.rows().slice(0, length / 2)).unwrap();
            let merged = squeak.clone().merge(other).unwrap();
            assert!(merged.report().unwrap().bytes <= bytes, "{schedule:?}, merged");
            let report = squeak.report().unwrap();
            assert!(report.leverage_ridge > 1e-4 && report.bytes > bytes / 2, "{schedule:?}: {report:?}");
        }
    }
}

/// What rows had left over at the γ of their time is far less than at the one in force.
#[test]
fn the_captured_share_is_that_of_the_ridge_in_force() {
    let block = oracle::normal_rows(400, 3, 7);
    for schedule in schedules() {
        let mut options = options(schedule);
        (options.leverage_ridge, options.budget, options.oversampling) = (0.01, Some(80), Oversampling::Fixed(40));
        let squeak = squeak_of(&options, block.rows());
        let report = squeak.report().unwrap();
        let dictionary = squeak.dictionary().unwrap();
        let check = crate::sketch::check_guarantee(&options.kernel, block.rows(), &dictionary, None, 0.5).unwrap();
        assert!(report.leverage_ridge > 0.1);
        assert!((report.captured - check.captured).abs() < 0.1, "{schedule:?}: {} {}", report.captured, check.captured);
    }
}
