//! Every option does something, and nothing but the options does.

use std::collections::HashMap;

use crate::support::{Folder, csv};

fn folder() -> Folder {
    let folder = Folder::new();
    folder.put("data.csv", csv(300, 1));
    folder
}

/// Predictions of the model fitted with these options.
fn predictions(folder: &Folder, options: &str) -> String {
    folder.works(&format!("fit data.csv --model m.nys -q {options}"));
    folder.works("predict m.nys data.csv")
}

#[test]
fn every_option_of_a_fit_changes_its_predictions() {
    let folder = folder();
    let mut seen: HashMap<String, String> = HashMap::new();
    for options in [
        "--budget 30 --sample 100 --dictionary rpcholesky",
        "--budget 30 --sample 150",
        "--budget 20 --sample 100",
        "--budget 30 --sample 100 --seed 5",
        "--budget 30 --sample 100 --dictionary uniform",
        "--budget 30 --sample 100 --dictionary two-pass-scores",
        "--budget 30 --sample 100 --dictionary batch-exact",
        "--budget 30 --sample 100 --dictionary squeak",
        "--budget 30 --sample 100 --dictionary squeak --leverage-ridge 5",
        "--budget 30 --sample 100 --dictionary ink-estimate",
        "--budget 30 --sample 100 --dictionary ink-oracle",
        "--budget 30 --sample 100 --dictionary uniform --leverage-ridge 0.5",
        "--budget 30 --sample 100 --dictionary batch-exact --leverage-ridge 0.1",
        "--budget 30 --sample 100 --ridge 3",
        "--budget 30 --sample 100 --no-intercept",
        "--budget 30 --sample 100 --bandwidth 0.6",
        "--budget 30 --sample 100 --bandwidth median",
        "--budget 30 --sample 100 --bandwidth alignment",
        "--budget 30 --sample 100 --scale none",
        "--budget 30 --sample 100 --scale minmax",
        "--budget 30 --sample 100 --kernel laplacian",
        "--budget 30 --sample 100 --kernel matern32",
        "--budget 30 --sample 100 --kernel matern52",
        "--budget 30 --sample 100 --kernel linear",
        "--budget 30 --sample 100 --kernel polynomial",
        "--budget 30 --sample 100 --kernel polynomial --degree 2",
        "--budget 30 --sample 100 --kernel polynomial --kernel-scale 0.2",
        "--budget 30 --sample 100 --kernel polynomial --offset 3",
        "--budget 30 --sample 100 --ignore a",
        "--budget 30 --sample 100 --target a",
        "--method exact",
        "--method exact --ridge 3",
        "--method exact --no-intercept",
    ] {
        let predicted = predictions(&folder, options);
        assert!(!predicted.contains("NaN") && !predicted.contains("inf"), "{options}");
        if let Some(same) = seen.insert(predicted, options.to_owned()) {
            panic!("'{options}' predicts what '{same}' does");
        }
    }
}

#[test]
fn numbers_given_are_numbers_used() {
    let folder = folder();
    let options = "--budget 17 --bandwidth 1.25 --ridge 0.03 --dictionary uniform --leverage-ridge 0.2";
    let report = folder.json(&format!("fit data.csv --model m.nys {options}"));
    assert_eq!((&report["budget"], &report["atoms"]), (&17.into(), &17.into()), "{report}");
    for (key, value) in [("bandwidth", 1.25), ("ridge", 0.03), ("leverage_ridge", 0.2)] {
        assert_eq!(report[key], value, "{key}");
    }
    let inside = folder.json("inspect m.nys");
    assert_eq!((&inside["ridge_by"], &inside["bandwidth_by"]), (&"fixed".into(), &"fixed".into()), "{inside}");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let folder = folder();
    for options in ["--budget 40 --sample 120", "--budget 40 --sample 120 --dictionary batch-exact", "--method exact"] {
        for model in ["a.nys", "b.nys"] {
            folder.works(&format!("fit data.csv --model {model} -q --seed 3 {options}"));
        }
        folder.works(&format!("fit data.csv --model c.nys -q --seed 4 {options}"));
        assert_eq!(folder.bytes("a.nys"), folder.bytes("b.nys"), "{options}");
        assert_ne!(folder.bytes("a.nys"), folder.bytes("c.nys"), "{options}");
    }
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let folder = Folder::new();
    for (data, options) in [
        ("synth:friedman?n=5000", "--budget 120 --bandwidth median"),
        ("synth:friedman?n=3000", "--budget 50 --kernel laplacian --dictionary two-pass-scores"),
        ("synth:rings?n=2000", "--budget 60"),
        ("synth:friedman?n=400", "--method exact"),
    ] {
        for threads in [1, 2, 3] {
            folder.works(&format!("fit {data} --model {threads}.nys -q --threads {threads} {options}"));
            let predicted = folder.works(&format!("predict {threads}.nys {data} --threads {threads}"));
            folder.put(&format!("{threads}.csv"), predicted);
        }
        for threads in ["2", "3"] {
            assert!(folder.bytes("1.nys") == folder.bytes(&format!("{threads}.nys")), "{data} {options} {threads}");
            assert!(folder.bytes("1.csv") == folder.bytes(&format!("{threads}.csv")), "{data} {options} {threads}");
        }
    }
}

#[test]
fn without_standard_deviations_the_file_is_smaller() {
    let folder = folder();
    for options in ["--budget 60", "--method exact"] {
        folder.works(&format!("fit data.csv --model with.nys -q {options}"));
        folder.works(&format!("fit data.csv --model without.nys -q --no-std {options}"));
        let (with, without) = (folder.bytes("with.nys").len(), folder.bytes("without.nys").len());
        assert!(without < with / 3, "{options}: {with} {without}");
        assert_eq!(folder.works("predict with.nys data.csv"), folder.works("predict without.nys data.csv"));
        let deviations = crate::support::column(&folder.works("predict with.nys data.csv --std"), 1);
        assert!(deviations.iter().all(|d| *d > 0.0 && d.is_finite()), "{options}");
        folder.refuses("predict without.nys data.csv --std", &["std"]);
        assert!(folder.json("score with.nys data.csv").get("coverage90").is_some());
        assert!(folder.json("score without.nys data.csv").get("coverage90").is_none());
        assert_eq!(folder.json("inspect with.nys")["std"], true);
        assert_eq!(folder.json("inspect without.nys")["std"], false);
    }
}

#[test]
fn tasks_can_be_forced() {
    let folder = Folder::new();
    let rows: String = (0..60).map(|i| format!("{},{},{}\n", i % 7, i % 11, (i % 7) / 2)).collect();
    folder.put("data.csv", format!("a,b,y\n{rows}"));
    let as_numbers = folder.json("fit data.csv --model m.nys --task regression");
    assert_eq!(as_numbers["task"], "regression");
    let as_classes = folder.json("fit data.csv --model m.nys --task classification");
    assert_eq!(as_classes["task"], "classification of 4 classes");
}

#[test]
fn sketches_use_their_options() {
    let folder = folder();
    let mut seen: HashMap<Vec<u8>, String> = HashMap::new();
    for options in [
        "--method rpcholesky",
        "--method uniform",
        "--method uniform --seed 2",
        "--method batch-exact",
        "--method batch-exact --leverage-ridge 0.01",
        "--method two-pass-scores",
        "--method two-pass-scores --first-pass 10",
        "--method rpcholesky --kernel laplacian",
        "--method rpcholesky --sample 100",
        "--method rpcholesky --bandwidth 0.2",
    ] {
        let report = folder.json(&format!("sketch data.csv --budget 25 --out atoms.csv {options}"));
        let captured = report["captured"].as_f64().unwrap();
        assert!(captured > 0.0 && captured <= 1.0 + 1e-9, "{options}: {report}");
        let atoms = folder.bytes("atoms.csv");
        assert_eq!(String::from_utf8_lossy(&atoms).lines().count() as u64, 1 + report["atoms"].as_u64().unwrap());
        if let Some(same) = seen.insert(atoms, options.to_owned()) {
            panic!("'{options}' chooses what '{same}' does");
        }
    }
    let strict = folder.json("sketch data.csv --budget 25 --check --accuracy 0");
    let loose = folder.json("sketch data.csv --budget 25 --check --accuracy 0.5");
    let ratio = strict["bound_ratio"].as_f64().unwrap() / loose["bound_ratio"].as_f64().unwrap();
    assert!((ratio - 2.0).abs() < 1e-9, "{strict} {loose}");
    assert_eq!(folder.json("sketch data.csv --budget 300 --check")["bound_holds"], true);
}
