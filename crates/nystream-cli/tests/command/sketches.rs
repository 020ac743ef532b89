//! Sequential dictionaries: made, saved, resumed, inspected.

use std::collections::HashMap;

use crate::support::{Folder, assert_refused, csv};

const METHODS: [&str; 3] = ["squeak", "ink-estimate", "ink-oracle"];
/// Nothing to learn beforehand.
const ONE_PASS: &str = "--scale none --bandwidth 1.5";

fn folder(rows: usize) -> Folder {
    let folder = Folder::new();
    folder.put("data.csv", csv(rows, 1));
    folder
}

/// The rows of a CSV text from `from` to `to`, with its header.
fn part(text: &str, from: usize, to: usize) -> String {
    let rows: String = text.lines().skip(1 + from).take(to - from).map(|line| format!("{line}\n")).collect();
    format!("{}\n{rows}", text.lines().next().unwrap())
}

#[test]
fn every_method_reports_its_keys_and_keeps_its_budget() {
    let folder = folder(300);
    for method in METHODS {
        let options =
            "--budget 25 --bandwidth 0.3 --leverage-ridge 0.01 --check --plot p.svg --out atoms.csv --save s.nys";
        let report = folder.json(&format!("sketch data.csv --method {method} {options}"));
        for key in [
            "rows",
            "features",
            "target",
            "budget",
            "atoms",
            "copies",
            "kernel",
            "bandwidth",
            "bandwidth_by",
            "leverage_ridge",
            "initial_leverage_ridge",
            "effective_dim",
            "captured",
            "oversampling",
            "accuracy_epsilon",
            "failure_prob",
            "score_factor",
            "dimension_factor",
            "theorem_oversampling",
            "theorem_atoms",
            "error_bound",
            "promised",
            "bytes",
            "bound_holds",
            "bound_ratio",
            "seconds_learn",
            "seconds_total",
            "rows_per_second",
            "peak_bytes",
        ] {
            assert!(report.get(key).is_some(), "{method}: {key}: {report}");
        }
        assert_eq!((&report["method"], &report["rows"]), (&method.into(), &300.into()));
        let atoms = report["atoms"].as_u64().unwrap();
        assert!((1..=25).contains(&atoms), "{report}");
        // The budget was too small for this ridge, so it rose.
        assert!(report["leverage_ridge"].as_f64() > report["initial_leverage_ridge"].as_f64(), "{report}");
        assert_eq!(report["initial_leverage_ridge"], 0.01);
        assert_eq!(String::from_utf8(folder.bytes("atoms.csv")).unwrap().lines().count() as u64, 1 + atoms);
        let picture = String::from_utf8(folder.bytes("p.svg")).unwrap();
        assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>") && !picture.contains("NaN"));
        for words in ["effective dimension", "leverage ridge in force", "rows seen"] {
            assert!(picture.contains(words), "{method}: {words}");
        }
        let inside = folder.json("inspect s.nys");
        for key in [
            "method",
            "rows",
            "features",
            "target",
            "atoms",
            "leverage_ridge",
            "effective_dim",
            "captured",
            "bandwidth",
        ] {
            assert_eq!(inside[key], report[key], "{method}: {key}");
        }
        assert_eq!(inside["feature_names"], "a, b");
        assert!(folder.works(&format!("sketch data.csv --method {method} --budget 9")).contains("effective dim"));
    }
}

#[test]
fn the_guarantee_is_checked() {
    let folder = folder(300);
    let line = "sketch data.csv --method squeak --budget none --leverage-ridge 0.5 --check";
    let good = folder.json(&format!("{line} --oversampling 60"));
    assert_eq!(good["bound_holds"], true, "{good}");
    assert!(good["bound_ratio"].as_f64().unwrap() <= 1.0 && good.get("budget").is_none(), "{good}");
    let promised = folder.json(&format!("{line} --oversampling theorem"));
    assert_eq!((&promised["promised"], &promised["bound_holds"]), (&true.into(), &true.into()), "{promised}");
    let ink = folder.json("sketch data.csv --method ink-oracle --budget none --oversampling theorem --check");
    assert_eq!((&ink["promised"], &ink["bound_holds"]), (&true.into(), &true.into()), "{ink}");
    let many = "sketch synth:friedman?n=3100 --method squeak --budget 20 --check --save s.nys";
    folder.refuses(many, &["check", "3000 rows"]);
}

#[test]
fn one_reading_from_standard_input() {
    let folder = folder(400);
    let text = csv(400, 1);
    let run = folder.run_with(&format!("sketch - --method squeak {ONE_PASS} --save piped.nys -q"), &text);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    folder.works(&format!("sketch data.csv --method squeak {ONE_PASS} --save file.nys -q"));
    assert!(folder.bytes("piped.nys") == folder.bytes("file.nys"));
    // What needs the rows beforehand cannot be had from a pipe; the message says what to change.
    for (options, name) in [
        ("--bandwidth 2", "scale"),
        ("--scale none", "bandwidth"),
        ("--scale none --bandwidth 2 --missing mean", "missing"),
        ("--scale none --bandwidth 2 --categorical one-hot", "categorical"),
    ] {
        let line = format!("sketch - --method squeak --save none.nys {options}");
        let run = folder.run_with(&line, &text);
        assert_refused(&line, &run, &[name, "only once", "--scale none", "file"]);
        assert!(!folder.path("none.nys").exists());
    }
    // By a file that has it all, a pipe will do.
    folder.works("sketch data.csv --method squeak --save scaled.nys -q");
    let run = folder.run_with("sketch - --like scaled.nys --save again.nys -q", &text);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert!(folder.bytes("again.nys") == folder.bytes("scaled.nys"));
}

#[test]
fn resumed_streams_give_the_bytes_of_uninterrupted_ones() {
    let folder = folder(500);
    let text = csv(500, 1);
    folder.put("head.csv", part(&text, 0, 183));
    folder.put("tail.csv", part(&text, 183, 500));
    for (method, options) in [
        ("squeak", "--schedule per-point --leverage-ridge 0.1"),
        ("squeak", "--schedule block --block 64 --budget 30"),
        ("squeak", "--schedule lazy --block 50 --growth 1.2 --budget 40"),
        ("squeak", "--oversampling theorem --accuracy 0.9 --failure-prob 0.5 --budget-bytes 1MB --block 64"),
        ("ink-estimate", "--budget 20"),
        ("ink-oracle", "--budget 20"),
    ] {
        let options = format!("--method {method} {options} {ONE_PASS}");
        folder.works(&format!("sketch data.csv {options} --save whole.nys -q"));
        folder.works(&format!("sketch head.csv {options} --save head.nys -q"));
        let report = folder.json("sketch tail.csv --resume head.nys --save both.nys");
        assert_eq!((&report["rows"], &report["rows_read"]), (&500.into(), &317.into()), "{options}");
        assert!(folder.bytes("whole.nys") == folder.bytes("both.nys"), "{options}");
        assert!(folder.bytes("whole.nys") != folder.bytes("head.nys"), "{options}");
    }
    // With preprocessing of its own, as --like hands it on.
    folder.works("sketch data.csv --method squeak --budget 30 --save whole.nys -q");
    folder.works("sketch head.csv --like whole.nys --save head.nys -q");
    folder.works("sketch tail.csv --resume head.nys --save both.nys -q");
    assert!(folder.bytes("whole.nys") == folder.bytes("both.nys"));
}

#[test]
fn sparse_rows_that_grow_wider() {
    let folder = Folder::new();
    let rows: String = (0..80).map(|i| format!("{} {}:1 {}:0.5\n", i % 2, 1 + i % 7, 10 + i / 2)).collect();
    folder.put("data.libsvm", &rows);
    for method in METHODS {
        let report = folder.json(&format!("sketch data.libsvm --method {method} {ONE_PASS} --save s.nys"));
        assert_eq!(report["rows"], 80, "{method}");
        assert_eq!(folder.json("inspect s.nys")["features"], 49, "{method}");
        let run = folder.run_with(&format!("sketch - --format libsvm --method {method} {ONE_PASS}"), &rows);
        assert_eq!(run.code, Some(if method == "squeak" { 0 } else { 2 }), "{method}: {}", run.err);
    }
}

#[test]
fn every_option_changes_something() {
    let folder = folder(300);
    let mut seen: HashMap<Vec<u8>, String> = HashMap::new();
    for options in [
        "--method squeak",
        "--method squeak --budget 10",
        "--method squeak --budget none",
        "--method squeak --budget-bytes 700kB --block 64",
        "--method squeak --leverage-ridge 0.3",
        "--method squeak --accuracy 0.3",
        "--method squeak --oversampling 9",
        "--method squeak --oversampling theorem",
        "--method squeak --oversampling theorem:1000000",
        "--method squeak --oversampling theorem --failure-prob 0.01",
        "--method squeak --schedule per-point",
        "--method squeak --block 100",
        "--method squeak --schedule lazy",
        "--method squeak --schedule lazy --growth 3",
        "--method squeak --schedule lazy --block 20",
        "--method squeak --seed 3",
        "--method squeak --kernel laplacian",
        "--method squeak --bandwidth 0.5",
        "--method squeak --bandwidth auto --sample 40",
        "--method squeak --scale minmax",
        "--method squeak --ignore a",
        "--method ink-estimate",
        "--method ink-estimate --oversampling 60",
        "--method ink-estimate --budget none",
        "--method ink-oracle",
        "--method ink-oracle --budget 9",
    ] {
        let ridge = if options.contains("leverage-ridge") { "" } else { "--leverage-ridge 0.05" };
        folder.works(&format!("sketch data.csv --out atoms.csv -q {ridge} {options}"));
        if let Some(same) = seen.insert(folder.bytes("atoms.csv"), options.to_owned()) {
            panic!("'{options}' chooses what '{same}' does");
        }
    }
    // δ changes the theorem's numbers alone where q̄ is given.
    let bound = |delta: &str| {
        folder.json(&format!("sketch data.csv --method squeak --failure-prob {delta}"))["theorem_oversampling"].clone()
    };
    assert_ne!(bound("0.1"), bound("0.2"));
}

#[test]
fn options_that_do_not_belong_to_the_method() {
    let folder = folder(60);
    folder.works("sketch data.csv --method squeak --save s.nys -q");
    for option in
        ["budget-bytes 1MB", "schedule lazy", "block 9", "growth 2", "failure-prob 0.1", "oversampling 3", "save x.nys"]
    {
        let name = option.split(' ').next().unwrap();
        folder.refuses(&format!("sketch data.csv --method uniform --{option}"), &[name, "uniform", "--method squeak"]);
        if ["budget-bytes", "schedule", "block", "growth"].contains(&name) {
            let line = format!("sketch data.csv --method ink-estimate --{option} --save x.nys");
            folder.refuses(&line, &[name, "ink-estimate", "--method squeak"]);
        }
    }
    for (options, parts) in [
        ("--method squeak --schedule per-point --block 3", ["block", "per-point", "lazy"]),
        ("--method squeak --growth 3", ["growth", "--schedule block", "--schedule lazy"]),
        ("--method squeak --first-pass 3", ["first-pass", "squeak", "two-pass-scores"]),
        ("--method squeak --sample 30 --bandwidth 2", ["sample", "squeak", "auto"]),
        ("--method uniform --accuracy 0.1", ["accuracy", "uniform", "--check"]),
        ("--method uniform --budget none", ["budget", "uniform", "sequential"]),
        ("--method squeak --budget 0", ["budget", "0", "at least 1"]),
        ("--method squeak --budget few", ["budget", "few", "none"]),
        ("--method squeak --leverage-ridge 0", ["leverage-ridge", "0", "above 0"]),
        ("--method squeak --accuracy 1", ["accuracy", "1", "between 0 and 1"]),
        ("--method squeak --failure-prob 0", ["failure-prob", "0", "between 0 and 1"]),
        ("--method squeak --budget-bytes 1kB", ["budget-bytes", "1000", "more bytes"]),
        ("--method squeak --oversampling 0", ["oversampling", "0", "1 to 2^32"]),
        ("--method squeak --oversampling theorems", ["oversampling", "theorems", "theorem:ROWS"]),
        ("--method squeak --block 0", ["block", "0", "rows"]),
        ("--method squeak --schedule lazy --growth 0.5", ["growth", "0.5", "at least 1"]),
        ("--method ink-estimate --oversampling theorem:9", ["oversampling", "9", "theorem"]),
        ("--method squeaky", ["method", "squeaky", "ink-oracle"]),
        ("--resume s.nys --like s.nys", ["--resume", "--like", "cannot"]),
    ] {
        folder.refuses(&format!("sketch data.csv --out atoms.csv --plot p.svg {options}"), &parts);
    }
}

#[test]
fn options_that_contradict_the_file() {
    let folder = folder(200);
    folder.works(&format!("sketch data.csv --method squeak --budget 30 {ONE_PASS} --save s.nys -q"));
    for how in ["--resume", "--like"] {
        for option in [
            "method ink-estimate",
            "budget 31",
            "budget none",
            "leverage-ridge 2",
            "accuracy 0.4",
            "failure-prob 0.2",
            "oversampling 6",
            "oversampling theorem",
            "schedule lazy",
            "block 100",
            "budget-bytes 1GB",
            "kernel linear",
            "bandwidth 2",
            "bandwidth auto",
            "scale standard",
            "missing drop",
            "target a",
            "ignore a",
            "categorical one-hot",
            "task regression",
            "sample 50",
            "degree 2",
        ] {
            let name = option.split(' ').next().unwrap();
            folder.refuses(&format!("sketch data.csv {how} s.nys --{option} --save t.nys"), &[name, "s.nys"]);
        }
        let same = "--method squeak --budget 30 --leverage-ridge 1 --accuracy 0.5 --failure-prob 0.1 --oversampling 5 \
                    --schedule block --block 256 --kernel gaussian --bandwidth 1.5 --scale none --missing refuse \
                    --target y --seed 0";
        folder.works(&format!("sketch data.csv {how} s.nys {same} --save t.nys -q"));
    }
    folder.refuses("sketch data.csv --resume s.nys --seed 4 --save t.nys", &["seed", "4", "s.nys"]);
    folder.refuses("sketch data.csv --resume s.nys --check", &["check", "--resume"]);
    folder.put("other.csv", "a,c,y\n1,2,3\n");
    folder.refuses("sketch other.csv --resume s.nys --save t.nys", &["other.csv", "'c'", "'b'"]);
    folder.put("empty.csv", "a,b,y\n");
    folder.refuses("sketch empty.csv --resume s.nys --save t.nys", &["empty.csv", "no rows"]);
}

#[test]
fn the_number_of_threads_changes_no_byte_of_a_sketch() {
    let folder = Folder::new();
    for options in ["--method squeak --budget 150", "--method ink-estimate --budget 40"] {
        for threads in [1, 3] {
            let line = format!("sketch synth:friedman?n=1500 {options} --save {threads}.nys -q --threads {threads}");
            folder.works(&line);
        }
        assert!(folder.bytes("1.nys") == folder.bytes("3.nys"), "{options}");
    }
}

#[test]
fn files_of_strangers() {
    let folder = folder(80);
    folder.works("fit data.csv --model model.nys -q");
    folder.works("sketch data.csv --method squeak --budget 10 --save s.nys -q");
    let lines =
        ["inspect FILE", "sketch data.csv --resume FILE --save t.nys", "sketch data.csv --like FILE --save t.nys"];
    let refuse = |file: &str, parts: &[&str]| {
        for line in lines.iter().chain(&["merge s.nys FILE --out t.nys", "predict FILE data.csv --out p.csv"]) {
            folder.refuses(&line.replace("FILE", file), parts);
        }
    };
    let bytes = folder.bytes("s.nys");
    for length in [0, 60, bytes.len() / 2, bytes.len() - 1] {
        folder.put("cut.nys", &bytes[..length]);
        refuse("cut.nys", &["cut.nys", "not a readable model"]);
    }
    let mut altered = bytes.clone();
    *altered.last_mut().unwrap() ^= 1;
    folder.put("altered.nys", altered);
    refuse("altered.nys", &["altered.nys", "checksum"]);
    folder.refuses("sketch data.csv --resume model.nys", &["model.nys", "krr-model", "sketch"]);
    folder.refuses("predict s.nys data.csv", &["s.nys", "sketch", "krr-model"]);
    folder.refuses("score s.nys data.csv", &["s.nys", "sketch", "krr-model"]);
}
