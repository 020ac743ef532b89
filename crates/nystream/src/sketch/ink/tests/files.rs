//! Saving, resuming to the same bits, and files that are not what they should be.

use super::super::super::sequential::SequentialDictionary;
use super::*;
use crate::error::Error;
use crate::persist::Container;

fn resumed<O: Oracle>(ink: &InkOracle<O>) -> InkOracle<O> {
    let bytes = ink.to_container().unwrap().to_bytes().unwrap();
    InkOracle::from_container(Container::from_bytes("test", &bytes).unwrap()).unwrap()
}

fn continues<O: Oracle>(rows: Rows, options: InkOptions) {
    let mut ink = InkOracle::<O>::new(options).unwrap();
    let mut other = resumed(&ink);
    let cuts = [0, 1, 31, 32, 70, rows.len()];
    for pair in cuts.windows(2) {
        let part = rows.slice(pair[0], pair[1]);
        ink.insert(part).unwrap();
        other.insert(part).unwrap();
        assert_eq!(ink.to_container().unwrap(), other.to_container().unwrap());
        let (mut a, mut b) = (ink.report().unwrap(), other.report().unwrap());
        // Memory may have been taken in other steps.
        (a.bytes, b.bytes) = (0, 0);
        assert_eq!(a, b);
        other = resumed(&other);
    }
}

#[test]
fn a_resumed_dictionary_goes_on_to_the_same_bits() {
    let block = naive::normal_rows(100, 3, 41);
    let mut sparse = RowBlock::sparse(3);
    sparse.extend(block.rows());
    for kernel in naive::kernels() {
        for rows in [block.rows(), sparse.rows()] {
            for budget in [None, Some(8)] {
                continues::<EstimateOracle>(rows, InkOptions { budget, ..options(kernel, 20, 7) });
            }
        }
        continues::<ExactOracle>(block.rows(), InkOptions { budget: Some(8), ..options(kernel, 20, 7) });
    }
}

fn example() -> InkEstimate {
    let block = naive::normal_rows(40, 2, 42);
    let mut ink = InkEstimate::new(options(Kernel::gaussian(1.0).unwrap(), 20, 7)).unwrap();
    ink.insert(block.rows()).unwrap();
    assert!(ink.atoms().len() > 3);
    ink
}

#[test]
fn another_method_and_another_kind_are_refused_by_name() {
    let file = example().to_container().unwrap();
    let text = InkExact::from_container(file.clone()).unwrap_err().to_string();
    assert!(text.contains("ink-estimate") && text.contains("ink-oracle"), "{text}");
    let mut other = file;
    other.kind = "krr-model".to_owned();
    assert!(InkEstimate::from_container(other).is_err());
}

#[test]
fn files_with_wrong_contents_are_refused() {
    let good = example().to_container().unwrap();
    assert!(InkEstimate::from_container(good.clone()).is_ok());
    let refused = |file: Container, what: &str| {
        assert!(matches!(InkEstimate::from_container(file), Err(Error::Format { .. })), "{what}");
    };
    // Every tensor missing, of another size, or not finite.
    let names: Vec<String> = good.tensors().map(|(name, _)| name.to_owned()).collect();
    for name in &names {
        let mut file = good.clone();
        let numbers = match name.as_str() {
            "atom_rows" | "inflations" => {
                file.take_u64(name, 1).unwrap();
                None
            }
            _ => Some(if ["rows", "columns"].contains(&name.as_str()) {
                file.take_f64(name, 2).unwrap()
            } else {
                file.take_f64(name, 1).unwrap()
            }),
        };
        refused(file.clone(), name);
        if let Some((shape, mut data)) = numbers {
            data[0] = f64::NAN;
            file.put_f64(name, &shape, data.clone()).unwrap();
            refused(file.clone(), name);
            file.take_f64(name, shape.len()).unwrap();
            let short = if shape.len() == 2 { vec![shape[0] - 1, shape[1]] } else { vec![shape[0] - 1] };
            data = vec![0.5; short.iter().product()];
            file.put_f64(name, &short, data).unwrap();
            refused(file, name);
        }
    }
    let mut more = good.clone();
    more.put_f64("more", &[1], vec![0.0]).unwrap();
    refused(more, "a tensor too many");
    // Counts and row numbers that cannot be.
    for (name, value) in [("atom_rows", 40), ("atom_rows", u64::MAX), ("inflations", 0), ("inflations", u64::MAX)] {
        let mut file = good.clone();
        let (shape, mut data) = file.take_u64(name, 1).unwrap();
        *data.last_mut().unwrap() = value;
        file.put_u64(name, &shape, data).unwrap();
        refused(file, name);
    }
    for value in [0.0, -1.0, 1.5] {
        let mut file = good.clone();
        let (shape, mut data) = file.take_f64("probabilities", 1).unwrap();
        data[0] = value;
        file.put_f64("probabilities", &shape, data).unwrap();
        refused(file, "probabilities");
    }
    // Settings and running numbers that cannot be.
    for (key, value) in [
        ("accuracy", 1.0.into()),
        ("leverage_ridge", (-1.0).into()),
        ("oversampling", 0.into()),
        ("failure_prob", 0.0.into()),
        ("budget", 2.into()),
        ("features", 3.into()),
        ("rng", serde_json::Value::Null),
        ("unknown", 1.into()),
    ] {
        let mut file = good.clone();
        file.document[key] = value;
        refused(file, key);
    }
    for key in ["leverage_ridge", "effective_dim", "energy"] {
        let mut file = good.clone();
        file.document["state"][key] = (-1.0).into();
        refused(file, key);
    }
}

#[test]
fn numbers_that_do_not_belong_together_do_no_harm() {
    // A file may be consistent in shape and yet not be the state of any stream.
    let block = naive::normal_rows(10, 2, 43);
    for (name, value) in [("columns", 1e200), ("column_products", -1e300), ("atom_kernels", 0.0), ("columns", 0.0)] {
        for budget in [None, Some(20)] {
            let mut file = example().to_container().unwrap();
            file.document["budget"] = serde_json::to_value(budget).unwrap();
            let rank = if name == "columns" { 2 } else { 1 };
            let (shape, data) = file.take_f64(name, rank).unwrap();
            file.put_f64(name, &shape, vec![value; data.len()]).unwrap();
            let Ok(mut ink) = InkEstimate::from_container(file) else { continue };
            if ink.insert(block.rows()).is_ok() {
                let report = ink.report().unwrap();
                assert!(report.rows == 50 && budget.is_none_or(|budget| report.atoms <= budget));
            }
        }
    }
}
