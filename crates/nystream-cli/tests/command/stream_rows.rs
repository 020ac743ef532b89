//! `fit --method stream`: what rows a stream takes, and from which it goes on.

use crate::support::{Folder, Numbers, csv, numbers};

/// A CSV text with another line in place of row `row` (from 1).
fn with_row(text: &str, row: usize, line: &str) -> String {
    text.lines().enumerate().map(|(i, old)| format!("{}\n", if i == row { line } else { old })).collect()
}

#[test]
fn late_rows_too_large_to_learn_are_refused_by_their_place() {
    let folder = Folder::new();
    let text = csv(9000, 1);
    folder.put("good.csv", &text);
    let fit = "--method stream --budget 30";
    folder.works(&format!("fit good.csv {fit} --model m.nys --checkpoint c.part --every 4096"));
    let summed = "squared and summed";
    for (row, line, column, found) in [
        (8500, "1,2,1e300", "'y'", "1e300"),
        (8999, "1,2,-1e101", "'y'", "-1e101"),
        // Among the first rows, where only the learner finds it too large.
        (4000, "1,2,1e120", "'y'", "1e120"),
        (8500, "1,-1e250,3", "'b'", "-1.00e250"),
    ] {
        folder.put("bad.csv", with_row(&text, row, line));
        let place = format!("row {row}");
        let parts = ["bad.csv", &place[..], column, found, summed];
        folder.refuses(&format!("fit bad.csv {fit} --model m.nys --checkpoint c.part"), &parts);
        folder.refuses("evaluate bad.csv --budget 30 --scale running --plot e.svg", &parts);
    }
    // Kernels of inner products overflow earlier.
    folder.put("bad.csv", with_row(&text, 8500, "1e60,2,3"));
    let parts = ["bad.csv", "row 8500", "'a'", "1e60", "kernel"];
    for kernel in ["linear", "polynomial"] {
        let line = format!("fit bad.csv {fit} --scale none --kernel {kernel} --model m.nys --checkpoint c.part");
        folder.refuses(&line, &parts);
    }
    folder.put("bad.libsvm", {
        let mut rows: String = (0..6000).map(|i| format!("{} 1:{} 2:{}\n", i % 7, i % 5, i % 11)).collect();
        rows.push_str("1 1:1 2:1e200\n");
        rows
    });
    let line = format!("fit bad.libsvm {fit} --task regression --model m.nys");
    folder.refuses(&line, &["bad.libsvm", "row 6001", "'2'", "about 1.00e200", summed]);
    // What was there before is as good as it was.
    folder.works("predict m.nys good.csv");
    folder.works("inspect c.part");
}

/// Rows a, w, b, y: the weight is large where a is, and y follows another law there.
fn weighed(rows: usize, seed: u64) -> String {
    let mut noise = Numbers::new(seed + 100);
    let row = |[a, b, y]: [f64; 3]| {
        let w = if noise.next() < 0.5 { 5.0 } else { 0.2 };
        format!("{a},{w},{b},{}\n", if w > 1.0 { y } else { y + 1.0 })
    };
    format!("a,w,b,y\n{}", numbers(rows, seed).into_iter().map(row).collect::<String>())
}

#[test]
fn rows_count_by_their_weights() {
    let folder = Folder::new();
    folder.put("a.csv", weighed(6000, 1));
    folder.put("test.csv", csv(500, 3));
    let line = "fit a.csv --method stream --budget 30 --weights w --target y --model";
    let report = folder.json(&format!("{line} w.nys --checkpoint w.part --every 2000"));
    // The weight is no feature, and data without it can be predicted.
    assert_eq!((&report["features"], &report["rows"]), (&2.into(), &6000.into()), "{report}");
    folder.works("fit a.csv --method stream --budget 30 --ignore w --target y --model u.nys");
    let rmse = |model: &str| folder.json(&format!("score {model} test.csv"))["rmse"].as_f64().unwrap();
    // Light rows lie 1 above: unweighed, half of that is learnt; weighed, a 26th.
    let (weighted, unweighted) = (rmse("w.nys"), rmse("u.nys"));
    assert!(weighted < 0.2 && unweighted > 0.4, "{weighted} {unweighted}");
    assert_eq!(folder.json("inspect w.nys")["weights"], "w");
    assert_eq!(folder.json("inspect w.part")["weights"], "w");
    // By number too; to go on, the same column is needed.
    let again = "fit a.csv --method stream --budget 30 --target y --model x.nys";
    folder.works(&format!("{again} --weights 2"));
    assert!(folder.bytes("x.nys") == folder.bytes("w.nys"));
    folder.refuses(&format!("{again} --resume w.part"), &["weights", "none named", "w"]);
    folder.works(&format!("{again} --resume w.part --weights w"));
    assert!(folder.bytes("x.nys") == folder.bytes("w.nys"));
    // Parts learn with the weights of the first, and merge.
    folder.put("b.csv", weighed(3000, 2));
    let like = "fit b.csv --method stream --budget 30 --model b.nys --checkpoint b.part --like w.part";
    folder.refuses(&format!("{like} --weights w"), &["weights", "--like"]);
    folder.works(like);
    folder.works("merge w.part b.part --out c.part --model c.nys");
    let merged = rmse("c.nys");
    assert!(merged < 0.2, "{merged}");
    folder.put("c.csv", csv(3000, 2));
    folder.refuses(&like.replace("b.csv", "c.csv"), &["c.csv", "column 'w'", "weights"]);
}

#[test]
fn evaluating_weighs_rows_too() {
    let folder = Folder::new();
    folder.put("a.csv", weighed(2000, 1));
    for line in ["--scale running", "", "--shuffle 1"] {
        let line = format!("evaluate a.csv --budget 30 --target y {line}");
        let (weighted, ignored) =
            (folder.json(&format!("{line} --weights w")), folder.json(&format!("{line} --ignore w")));
        assert_eq!(weighted["rows"], 2000);
        assert_ne!(weighted["mse"], ignored["mse"], "{line}");
    }
    let refused = ["weights", "nogd", "streaming-ridge"];
    folder.refuses("evaluate a.csv --weights w --target y --learner nogd", &refused);
}

#[test]
fn bad_weights_are_refused() {
    let folder = Folder::new();
    folder.put("a.csv", weighed(6000, 1));
    for method in ["two-pass", "exact"] {
        folder
            .refuses(&format!("fit a.csv --model m.nys --weights w --method {method}"), &["weights", "stream", method]);
    }
    let fit = "--method stream --budget 30 --model m.nys --checkpoint c.part";
    folder.refuses(&format!("fit a.csv {fit} --weights y"), &["a.csv", "'y'", "weights", "target"]);
    folder.refuses(&format!("fit a.csv {fit} --weights v"), &["a.csv", "'v'", "no such column"]);
    // Among the first rows and later.
    for row in [7, 5500] {
        let place = format!("row {row}");
        for (cell, found) in [
            ("0", "found 0"),
            ("-1", "found -1"),
            ("inf", "found inf"),
            ("", "missing"),
            ("x", "\"x\""),
            ("1e200", "1e200"),
        ] {
            folder.put("bad.csv", with_row(&weighed(6000, 1), row, &format!("1,{cell},2,3")));
            let parts = ["bad.csv", &place[..], "column 'w'", found, "above 0"];
            folder.refuses(&format!("fit bad.csv {fit} --weights w"), &parts);
        }
    }
    folder.put("a.libsvm", "1 1:2\n0 1:3\n");
    folder.refuses(&format!("fit a.libsvm {fit} --weights 1"), &["weights", "LIBSVM"]);
}

#[test]
fn going_on_with_rows_that_changed_is_refused() {
    let folder = Folder::new();
    let text = csv(9000, 1);
    folder.put("a.csv", &text);
    let line = "--method stream --budget 30 --model m.nys";
    folder.works(&format!("fit a.csv {line} --checkpoint c.part"));
    folder.works(&format!("fit a.csv {line} --resume c.part"));
    // After the first rows, which have a fingerprint of their own, and up to the last one learnt.
    for row in [4097, 6000, 9000] {
        folder.put("b.csv", with_row(&text, row, "1,2,3"));
        let parts = ["9000 rows of b.csv", "other data", "checkpoint"];
        folder.refuses(&format!("fit b.csv {line} --resume c.part"), &parts);
    }
    folder.put("longer.csv", format!("{text}1,2,3\n"));
    folder.works(&format!("fit longer.csv {line} --resume c.part"));
}

#[test]
fn checkpoints_come_when_they_are_due() {
    let folder = Folder::new();
    let text = csv(9000, 1);
    let fit = "--method stream --budget 30 --model m.nys --checkpoint c.part --every 500";
    // A run that fails keeps the last checkpoint: of the last multiple of 500 before the bad row.
    for (row, saved) in [(5210, 5000), (8499, 8000), (8501, 8500)] {
        folder.put("a.csv", with_row(&text, row, "1,what,3"));
        std::fs::remove_file(folder.path("c.part")).ok();
        let run = folder.run(&format!("fit a.csv {fit}"));
        assert_eq!(run.code, Some(2), "{}", run.err);
        let seen = folder.json("inspect c.part");
        let rows = seen["rows"].as_u64().unwrap() + seen["rows_waiting"].as_u64().unwrap();
        assert_eq!(rows, saved, "{seen}");
        // Mended, the file goes on from there to the model of an uninterrupted run.
        folder.put("a.csv", &text);
        folder.works("fit a.csv --method stream --budget 30 --model m.nys --resume c.part");
        let resumed = folder.bytes("m.nys");
        folder.works("fit a.csv --method stream --budget 30 --model m.nys");
        assert!(folder.bytes("m.nys") == resumed);
    }
}
