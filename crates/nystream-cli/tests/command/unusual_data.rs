//! Data that is odd but fine.

use std::fmt::Write as _;

use crate::support::{Folder, Numbers, column, csv};

#[test]
fn constant_columns_work_and_are_reported() {
    let folder = Folder::new();
    let text = csv(100, 1);
    let with_constants: String = text
        .lines()
        .enumerate()
        .map(|(i, line)| if i == 0 { format!("p,q,{line}\n") } else { format!("7,0,{line}\n") })
        .collect();
    folder.put("plain.csv", text);
    folder.put("data.csv", with_constants);
    for scale in ["standard", "minmax"] {
        let plain = folder.json(&format!("fit plain.csv --model plain.nys --scale {scale}"));
        assert!(plain.get("constant_features").is_none(), "{plain}");
        let report = folder.json(&format!("fit data.csv --model m.nys --scale {scale}"));
        assert_eq!(report["constant_features"], 2, "{report}");
        // Columns that say nothing change nothing.
        let (a, b) = (folder.works("predict m.nys data.csv"), folder.works("predict plain.nys plain.csv"));
        for (x, y) in column(&a, 0).iter().zip(column(&b, 0)) {
            assert!((x - y).abs() < 1e-6, "{scale}: {x} {y}");
        }
    }
}

#[test]
fn only_constant_columns_give_the_mean() {
    let folder = Folder::new();
    folder.put("data.csv", "a,b,y\n1,2,3.5\n1,2,4.5\n1,2,7\n");
    // Standardised, all rows are zero: the linear kernel has nothing to choose atoms by.
    folder.refuses("fit data.csv --model m.nys --kernel linear", &["a kernel matrix of zeros"]);
    for options in [
        "",
        "--method exact",
        "--kernel linear --method exact",
        "--kernel polynomial",
        "--dictionary batch-exact",
        "--dictionary uniform --scale none",
        "--method exact --scale none",
    ] {
        folder.works(&format!("fit data.csv --model m.nys -q {options}"));
        for value in column(&folder.works("predict m.nys data.csv --std"), 0) {
            assert!((value - 5.0).abs() < 1e-6, "{options}: {value}");
        }
        folder.works("inspect m.nys");
    }
}

#[test]
fn constant_targets_give_that_constant() {
    let folder = Folder::new();
    let rows: String = (0..40).map(|i| format!("{i},{},2.5\n", i % 7)).collect();
    folder.put("data.csv", format!("a,b,y\n{rows}"));
    folder.works("fit data.csv --model m.nys --task regression -q");
    for value in column(&folder.works("predict m.nys data.csv --std"), 0) {
        assert!((value - 2.5).abs() < 1e-9, "{value}");
    }
    let score = folder.json("score m.nys data.csv");
    assert!(score["rmse"].as_f64().unwrap() < 1e-9, "{score}");
}

#[test]
fn duplicate_rows() {
    let folder = Folder::new();
    let text = csv(25, 1);
    let (header, rows) = text.split_once('\n').unwrap();
    folder.put("data.csv", format!("{header}\n{}", rows.repeat(8)));
    for dictionary in ["rpcholesky", "uniform", "two-pass-scores", "batch-exact"] {
        let report = folder.json(&format!("fit data.csv --model m.nys --dictionary {dictionary}"));
        assert_eq!(report["rows"], 200);
        assert!(folder.json("score m.nys data.csv")["rmse"].as_f64().unwrap() < 0.2, "{dictionary}");
    }
    folder.works("fit data.csv --model m.nys --method exact -q");
    assert!(folder.json("score m.nys data.csv")["rmse"].as_f64().unwrap() < 0.2);
}

#[test]
fn one_row_can_be_regressed_on() {
    let folder = Folder::new();
    folder.put("data.csv", "a,b,y\n1,2,3.5\n");
    for method in ["two-pass", "exact"] {
        let report = folder.json(&format!("fit data.csv --model m.nys --task regression --method {method}"));
        assert_eq!((&report["rows"], &report["atoms"]), (&1.into(), &1.into()), "{report}");
        let out = folder.works("predict m.nys data.csv --std");
        assert!((column(&out, 0)[0] - 3.5).abs() < 1e-9, "{method}: {out}");
        assert!(column(&out, 1)[0] >= 0.0, "{method}: {out}");
        folder.works("inspect m.nys");
        folder.works("score m.nys data.csv");
    }
}

#[test]
fn fewer_rows_than_the_budget() {
    let folder = Folder::new();
    folder.put("data.csv", csv(12, 1));
    for dictionary in ["rpcholesky", "uniform", "two-pass-scores", "batch-exact"] {
        let report = folder.json(&format!("fit data.csv --model m.nys --budget 500 --dictionary {dictionary}"));
        let atoms = report["atoms"].as_u64().unwrap();
        assert!((1..=12).contains(&atoms) && report["budget"] == 500, "{report}");
        folder.works("predict m.nys data.csv --std");
    }
}

#[test]
fn sparse_rows_without_entries() {
    let folder = Folder::new();
    folder.put("data.libsvm", "1 1:2 3:1\n-1\n1 1:3\n-1\n1 1:2 2:1\n-1\n");
    for scale in ["none", "minmax", "standard"] {
        folder.works(&format!("fit data.libsvm --model m.nys -q --scale {scale}"));
        assert_eq!(folder.json("score m.nys data.libsvm")["accuracy"], 1.0, "{scale}");
    }
}

#[test]
fn a_million_sparse_columns_take_little_memory() {
    const COLUMNS: usize = 1_000_000;
    let folder = Folder::new();
    let mut numbers = Numbers::new(5);
    let mut text = String::new();
    for i in 0..300 {
        let mut indices: Vec<usize> = (0..20).map(|_| 3 + (numbers.next() * (COLUMNS - 3) as f64) as usize).collect();
        indices.sort_unstable();
        indices.dedup();
        let sign = if i % 2 == 0 { 1 } else { -1 };
        write!(text, "{sign} {}:1", if sign > 0 { 1 } else { 2 }).unwrap();
        indices.iter().for_each(|index| write!(text, " {index}:{:.3}", 0.2 * numbers.next()).unwrap());
        text += if i == 7 && indices.last() != Some(&COLUMNS) { " 1000000:0.5\n" } else { "\n" };
    }
    folder.put("wide.libsvm", text);
    for scale in ["none", "minmax", "standard"] {
        let report = folder.json(&format!("fit wide.libsvm --model m.nys --scale {scale} --budget 100"));
        assert_eq!(report["features"], COLUMNS, "{report}");
        // Ten numbers a column would be 80 MB; one dense atom more than needed is 8, all of them 800.
        if let Some(peak) = report["peak_bytes"].as_u64() {
            assert!(peak < 200_000_000, "{scale}: {peak}");
        }
        let size = folder.bytes("m.nys").len();
        assert!(size < 25_000_000, "{scale}: {size}");
        let score = folder.json("score m.nys wide.libsvm");
        // Standardised, every one of the million rare columns weighs as much as the two that matter.
        let least = if scale == "standard" { 0.5 } else { 0.95 };
        assert!(score["accuracy"].as_f64().unwrap() >= least, "{scale}: {score}");
        assert!(score["log_loss"].as_f64().unwrap() < 0.75, "{scale}: {score}");
        assert_eq!(folder.works("predict m.nys wide.libsvm").lines().count(), 301);
        folder.works("inspect m.nys");
    }
}
