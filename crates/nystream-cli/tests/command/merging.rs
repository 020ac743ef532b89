//! `merge`: sketches of parts become one.

use crate::support::{Folder, csv};

/// Parts a, b, c of the data as sketches alike but for their seeds.
fn parts() -> Folder {
    let folder = Folder::new();
    for (seed, name) in ["a", "b", "c"].into_iter().enumerate() {
        folder.put(&format!("{name}.csv"), csv(150 + 50 * seed, seed as u64));
    }
    folder.works("sketch a.csv --method squeak --budget 30 --leverage-ridge 0.1 --save a.nys -q");
    folder.works("sketch b.csv --like a.nys --seed 1 --save b.nys -q");
    folder.works("sketch c.csv --like a.nys --seed 2 --save c.nys -q");
    folder
}

#[test]
fn parts_become_one() {
    let folder = parts();
    let report = folder.json("merge a.nys b.nys c.nys --out all.nys");
    assert_eq!((&report["rows"], &report["merged"]), (&600.into(), &3.into()), "{report}");
    assert!((5..=30).contains(&report["atoms"].as_u64().unwrap()) && report.get("note").is_none(), "{report}");
    assert!(report["captured"].as_f64().unwrap() > 0.8, "{report}");
    let inside = folder.json("inspect all.nys");
    assert_eq!((&inside["rows"], &inside["atoms"]), (&report["rows"], &report["atoms"]));
    // The merged sketch goes on, and merges again; the same files give the same bytes.
    let more = folder.json("sketch a.csv --resume all.nys --save more.nys");
    assert_eq!((&more["rows"], &more["rows_read"]), (&750.into(), &150.into()), "{more}");
    folder.works("merge all.nys more.nys --out twice.nys -q");
    folder.works("merge a.nys b.nys c.nys --out again.nys -q");
    assert!(folder.bytes("all.nys") == folder.bytes("again.nys"));
    // Equal seeds are pointed out.
    folder.works("sketch b.csv --like a.nys --save same.nys -q");
    let note = folder.json("merge a.nys same.nys --out all.nys")["note"].clone();
    assert!(note.as_str().is_some_and(|note| note.contains("same seed")), "{note}");
}

#[test]
fn sketches_from_single_readings_merge_without_like() {
    let folder = parts();
    for name in ["a", "b"] {
        let seed = name.len() + usize::from(name == "b");
        let options = format!("--method squeak --scale none --bandwidth 2 --seed {seed}");
        folder.works(&format!("sketch {name}.csv {options} --save {name}.nys -q"));
    }
    assert_eq!(folder.json("merge a.nys b.nys --out both.nys")["rows"], 350);
}

#[test]
fn what_differs_is_named() {
    let folder = parts();
    let fixed = "--scale none --bandwidth 2 --method squeak";
    folder.works(&format!("sketch a.csv {fixed} --save base.nys -q"));
    for (options, field) in [
        ("--leverage-ridge 2", "leverage-ridge"),
        ("--accuracy 0.3", "accuracy"),
        ("--failure-prob 0.3", "failure-prob"),
        ("--kernel laplacian", "kernel"),
        ("--missing drop", "missing"),
        ("--ignore a", "feature names"),
        ("--target b", "feature names"),
    ] {
        folder.works(&format!("sketch b.csv {fixed} {options} --save other.nys -q"));
        folder.refuses("merge base.nys other.nys --out m.nys", &[field, "differs", "base.nys", "other.nys"]);
    }
    folder.works("sketch b.csv --scale none --bandwidth 3 --method squeak --save other.nys -q");
    folder.refuses("merge base.nys other.nys --out m.nys", &["bandwidth", "3", "2", "differs"]);
    folder.works("sketch b.csv --scale minmax --bandwidth 2 --method squeak --save other.nys -q");
    folder.refuses("merge base.nys other.nys --out m.nys", &["scale", "minmax", "none"]);
    // Scaled by rows of their own, the parts are not alike.
    folder.works("sketch b.csv --method squeak --bandwidth 2 --save one.nys -q");
    folder.works("sketch c.csv --method squeak --bandwidth 2 --save two.nys -q");
    folder.refuses("merge one.nys two.nys --out m.nys", &["shift of feature 'a'", "differs"]);
    folder.put("d.libsvm", "1 1:2 3:1\n0 2:1\n1 1:1\n");
    folder.works(&format!("sketch d.libsvm {fixed} --save sparse.nys -q"));
    folder.refuses("merge base.nys sparse.nys --out m.nys", &["kind of data", "sparse", "table"]);
}

#[test]
fn only_squeak_merges() {
    let folder = parts();
    folder.works("sketch a.csv --method ink-estimate --budget 9 --save ink.nys -q");
    folder.refuses("merge a.nys ink.nys --out m.nys", &["method", "ink-estimate", "squeak"]);
    folder.refuses("merge ink.nys ink.nys --out m.nys", &["method", "ink-estimate", "squeak"]);
    folder.works("fit a.csv --budget 9 --model model.nys -q");
    folder.refuses("merge model.nys a.nys --out m.nys", &["model.nys", "krr-model", "squeak"]);
    folder.refuses("merge a.nys model.nys --out m.nys", &["model.nys", "krr-model", "sketch"]);
    folder.refuses("merge a.nys --out m.nys", &["2", "FILE"]);
    folder.refuses("merge a.nys nothing.nys --out m.nys", &["nothing.nys", "cannot read"]);
    folder.refuses("merge a.nys b.nys --out no/such/folder/x", &["no/such/folder/x", "cannot write"]);
    folder.refuses("merge a.nys b.nys", &["--out", "required"]);
}
