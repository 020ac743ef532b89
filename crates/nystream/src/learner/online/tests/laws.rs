//! What holds for every learner.

use super::stream::{BUDGET, FEATURES, ROWS, cases, outputs, settings, stream};
use crate::learner::online::{Learner, Targets};
use crate::persist::Container;
use crate::rows::Row;

#[test]
fn predicting_changes_nothing_and_tells_what_learning_returns() {
    for (entry, targets) in cases() {
        for sparse in [false, true] {
            let (rows, y) = stream(targets, sparse);
            let rows = rows.rows();
            let expected = outputs(entry.name, settings(targets), sparse);
            let mut learner = Learner::new(entry.name, settings(targets)).unwrap();
            for i in 0..ROWS {
                let elsewhere = learner.predict(rows.row((i * 7) % ROWS)).unwrap();
                let here = learner.predict(rows.row(i)).unwrap();
                assert_eq!(elsewhere, learner.predict(rows.row((i * 7) % ROWS)).unwrap(), "{}", entry.name);
                assert_eq!(here, expected[i], "{} {targets}, row {i}", entry.name);
                assert_eq!(learner.learn(rows.row(i), y[i]).unwrap(), here, "{} {targets}, row {i}", entry.name);
            }
        }
    }
}

#[test]
fn the_budget_is_never_exceeded_and_memory_does_not_grow() {
    for (entry, targets) in cases() {
        for budget in [1, 2, BUDGET] {
            let (rows, y) = stream(targets, false);
            let mut settings = settings(targets);
            settings.budget = budget;
            let mut learner = Learner::new(entry.name, settings).unwrap();
            let random_features = entry.options.iter().any(|option| option.name == "dimension");
            let mut halfway = 0;
            for i in 0..ROWS {
                learner.learn(rows.rows().row(i), y[i]).unwrap();
                assert!(random_features || learner.atoms() <= budget, "{} {}", entry.name, learner.atoms());
                if i == ROWS / 2 {
                    halfway = learner.size_bytes();
                }
            }
            assert!(learner.atoms() > 0, "{}", entry.name);
            // Vectors may double once more when the budget fills late; what grew with the rows would grow more.
            assert!(learner.size_bytes() <= 2 * halfway + 1024, "{}", entry.name);
            assert_eq!(learner.rows(), ROWS as u64);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for (entry, targets) in cases() {
        let once = outputs(entry.name, settings(targets), false);
        assert_eq!(once, outputs(entry.name, settings(targets), false), "{}", entry.name);
        assert!(once.iter().all(|output| output.is_finite()), "{}", entry.name);
        assert!(once.iter().any(|output| *output != 0.0), "{}", entry.name);
    }
}

#[test]
fn saved_and_loaded_at_any_time_it_goes_on_with_the_same_bits() {
    for (entry, targets) in cases() {
        for sparse in [false, true] {
            let (rows, y) = stream(targets, sparse);
            let expected = outputs(entry.name, settings(targets), sparse);
            let mut learner = Learner::new(entry.name, settings(targets)).unwrap();
            for i in 0..ROWS {
                // At the start, while the budget fills, at its brim, and every so often later.
                if i < 4 || (BUDGET - 2..BUDGET + 5).contains(&i) || i % 61 == 0 {
                    let bytes = learner.to_container().unwrap().to_bytes().unwrap();
                    let atoms = learner.atoms();
                    learner = Learner::from_container(Container::from_bytes("memory", &bytes).unwrap()).unwrap();
                    assert_eq!((learner.rows(), learner.atoms()), (i as u64, atoms), "{}", entry.name);
                    let again = learner.to_container().unwrap().to_bytes().unwrap();
                    assert_eq!(bytes, again, "{}: a copy is saved alike", entry.name);
                }
                let output = learner.learn(rows.rows().row(i), y[i]).unwrap();
                assert_eq!(output.to_bits(), expected[i].to_bits(), "{} {targets}, row {i}", entry.name);
            }
        }
    }
}

#[test]
fn cuts_into_calls_do_not_matter() {
    for (entry, targets) in cases() {
        let (rows, y) = stream(targets, true);
        let expected = outputs(entry.name, settings(targets), true);
        for step in [1, 7, 250] {
            let mut learner = Learner::new(entry.name, settings(targets)).unwrap();
            let mut out = Vec::new();
            for start in (0..ROWS).step_by(step) {
                let end = (start + step).min(ROWS);
                learner.learn_all(rows.rows().slice(start, end), &y[start..end], &mut out).unwrap();
            }
            assert_eq!(out, expected, "{} by {step}", entry.name);
        }
    }
}

#[test]
fn what_is_not_a_number_is_refused_and_nothing_is_learnt() {
    for (entry, targets) in cases() {
        let (rows, y) = stream(targets, false);
        let expected = outputs(entry.name, settings(targets), false);
        let mut learner = Learner::new(entry.name, settings(targets)).unwrap();
        let mut good = [0.5; FEATURES];
        for i in 0..60 {
            for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                assert!(learner.learn(Row::Dense(&good), bad).is_err());
                good[3] = bad;
                let message = learner.learn(Row::Dense(&good), 1.0).unwrap_err().to_string();
                let place = format!("row {}, column '4'", i + 1);
                assert!(message.contains(entry.name) && message.contains(&place), "{message}");
                assert!(learner.predict(Row::Dense(&good)).is_err());
                assert!(learner.predict(Row::Sparse { indices: &[2], values: &[bad] }).is_err());
                good[3] = 0.5;
            }
            assert!(learner.learn(Row::Dense(&good[1..]), 1.0).is_err());
            assert!(learner.learn(Row::Sparse { indices: &[FEATURES as u32], values: &[1.0] }, 1.0).is_err());
            assert!(learner.learn(Row::Sparse { indices: &[2, 1], values: &[1.0, 1.0] }, 1.0).is_err());
            assert!(learner.learn(Row::Sparse { indices: &[1], values: &[] }, 1.0).is_err());
            if targets == Targets::Classes {
                assert!(learner.learn(Row::Dense(&good), 0.5).is_err());
            }
            assert_eq!(learner.learn(rows.rows().row(i), y[i]).unwrap(), expected[i], "{}", entry.name);
        }
    }
}

#[test]
fn damaged_files_are_refused() {
    for (entry, targets) in cases() {
        let (rows, y) = stream(targets, false);
        let mut learner = Learner::new(entry.name, settings(targets)).unwrap();
        learner.learn_all(rows.rows().slice(0, 50), &y[..50], &mut Vec::new()).unwrap();
        let whole = learner.to_container().unwrap();
        for (name, _) in whole.tensors() {
            // The same file without this array.
            let mut parts = Container::new(whole.kind.clone(), whole.document.clone());
            for (other, tensor) in whole.tensors().filter(|(other, _)| *other != name) {
                use crate::persist::TensorData::{F64, U32, U64};
                match tensor.data.clone() {
                    F64(data) => parts.put_f64(other, &tensor.shape, data).unwrap(),
                    U32(data) => parts.put_u32(other, &tensor.shape, data).unwrap(),
                    U64(data) => parts.put_u64(other, &tensor.shape, data).unwrap(),
                }
            }
            let error = Learner::from_container(parts).unwrap_err();
            assert!(matches!(error, crate::Error::Format { .. }), "{} without {name}: {error}", entry.name);
        }
        let mut other = whole.clone();
        other.document["learner"] = "nobody".into();
        assert!(Learner::from_container(other).is_err());
        let mut more = whole.clone();
        more.put_f64("extra", &[1], vec![1.0]).unwrap();
        assert!(Learner::from_container(more).unwrap_err().to_string().contains("extra"), "{}", entry.name);
        let mut smaller = whole.clone();
        smaller.document["settings"]["budget"] = 1.into();
        assert!(Learner::from_container(smaller).is_err(), "{}: state of another budget", entry.name);
    }
}
