//! Data that cannot be used: one line says where and why, exit code 2, nothing written.

use crate::support::{Folder, assert_refused};

/// Fits a file of this content, which must be refused; the old model must stay.
fn fit_refuses(name: &str, content: &str, options: &str, parts: &[&str]) {
    let folder = Folder::new();
    folder.put(name, content);
    folder.refuses(&format!("fit {name} --model m.nys {options}"), parts);
    folder.put("m.nys", "an older model");
    folder.refuses(&format!("fit {name} --model m.nys {options}"), parts);
    folder.refuses(&format!("fit {name} --model m.nys --method exact {options}"), parts);
}

#[test]
fn empty_file() {
    for name in ["data.csv", "data.libsvm", "data.jsonl"] {
        fit_refuses(name, "", "", &[name, "empty", "expected at least one row"]);
    }
}

#[test]
fn header_only() {
    fit_refuses("data.csv", "a,b,y\n", "", &["data.csv", "a header and no rows", "expected at least one row"]);
}

#[test]
fn no_such_file() {
    let folder = Folder::new();
    folder.refuses("fit nothing.csv --model m.nys", &["nothing.csv", "cannot open"]);
}

#[test]
fn ragged_rows() {
    let (short, long) = ("a,b,y\n1,2,3\n4,5\n6,7,8\n", "a,b,y\n1,2,3\n4,5,6,7\n");
    fit_refuses("data.csv", short, "", &["data.csv", "row 2", "found 2 columns", "expected 3"]);
    fit_refuses("data.csv", long, "", &["data.csv", "row 2", "found 4", "expected 3"]);
}

#[test]
fn text_in_a_number_column() {
    let content = "a,b,y\n1,2,3\n4,blue,5\n6,7,8\n";
    fit_refuses("data.csv", content, "", &["data.csv", "row 2", "column 'b'", "\"blue\"", "--categorical"]);
    // Text after numbers is no category either.
    fit_refuses("data.csv", content, "--categorical one-hot", &["data.csv", "row 2", "column 'b'", "\"blue\""]);
}

#[test]
fn text_among_targets_that_are_to_be_numbers() {
    let content = "a,b,y\n1,2,3\n4,5,many\n6,7,8\n";
    fit_refuses("data.csv", content, "--task regression", &["data.csv", "row 2", "column 'y'", "many"]);
}

#[test]
fn nan_and_missing_cells() {
    for cell in ["NaN", "nan", "", "NA"] {
        let content = format!("a,b,y\n1,2,3\n4,{cell},5\n6,7,8\n");
        fit_refuses("data.csv", &content, "", &["data.csv", "row 2", "column 'b'", "missing", "--missing mean|drop"]);
        let content = format!("a,b,y\n1,2,3\n4,5,{cell}\n6,7,8\n");
        fit_refuses("data.csv", &content, "", &["data.csv", "row 2", "column 'y'", "missing", "--missing drop"]);
    }
}

#[test]
fn infinity() {
    for (cell, options) in [("inf", ""), ("-Infinity", "--missing mean"), ("1e999", "--missing drop")] {
        let content = format!("a,b,y\n1,2,3\n4,{cell},5\n6,7,8\n");
        fit_refuses("data.csv", &content, options, &["data.csv", "row 2", "column 'b'", "expected a finite number"]);
        let content = format!("a,b,y\n1,2,3\n4,5,{cell}\n6,7,8\n");
        fit_refuses("data.csv", &content, options, &["data.csv", "row 2", "column 'y'", "expected a finite number"]);
    }
    fit_refuses("data.libsvm", "1 1:2\n-1 3:inf\n", "", &["data.libsvm", "row 2", "expected a finite number"]);
}

#[test]
fn nothing_left_when_rows_are_dropped() {
    fit_refuses("data.csv", "a,b,y\n1,,3\n,4,5\n", "--missing drop", &["data.csv", "missing"]);
}

#[test]
fn one_class_only() {
    let content = "a,b,y\n1,2,red\n4,5,red\n6,7,red\n";
    fit_refuses("data.csv", content, "", &["data.csv", "column 'y'", "one class 'red'", "two classes"]);
    fit_refuses("data.libsvm", "1 1:2\n1 2:3\n1 1:4\n", "--task classification", &["data.libsvm", "two classes"]);
}

#[test]
fn one_row_has_no_two_targets() {
    fit_refuses("data.csv", "a,b,y\n1,2,3.5\n", "", &["data.csv", "column 'y'", "--task regression"]);
}

#[test]
fn target_that_is_not_there() {
    let content = "a,b,y\n1,2,3\n4,5,6\n";
    for wrong in ["price", "7"] {
        let options = format!("--target {wrong}");
        fit_refuses("data.csv", content, &options, &["data.csv", wrong, "no such column", "'a', 'b', 'y'"]);
        let options = format!("--ignore {wrong}");
        fit_refuses("data.csv", content, &options, &["data.csv", wrong, "no such column", "'a', 'b', 'y'"]);
    }
    fit_refuses("data.csv", content, "--target y --target y", &["data.csv", "column 'y'", "twice"]);
}

#[test]
fn no_features_left() {
    fit_refuses("data.csv", "y\n1\n2\n3\n", "", &["data.csv", "feature"]);
    fit_refuses("data.libsvm", "1.5\n2.5\n3.75\n", "", &["data.libsvm", "without a single feature", "at least one"]);
}

#[test]
fn two_columns_of_one_name() {
    fit_refuses("data.csv", "a,a,y\n1,2,3\n4,5,6\n", "", &["data.csv", "column 'a'", "twice"]);
}

#[test]
fn names_that_would_break_the_line() {
    let content = "a,\"b\nc\u{1b}[31m\",y\n1,2,3\n4,blue,5\n";
    fit_refuses("data.csv", content, "", &["data.csv", "row 2", "column 'b\\nc\\u{1b}[31m'", "\"blue\""]);
}

#[test]
fn numbers_too_large_to_scale() {
    let content = "a,b,y\n1e300,2,3\n-1e300,5,6\n2,3,4\n";
    fit_refuses("data.csv", content, "", &["data.csv", "column 'a'", "numbers from -1e300 to 1e300"]);
    let content = "a,b,y\n1,2,1e300\n4,5,-1e300\n2,3,4\n";
    fit_refuses("data.csv", content, "", &["data.csv", "column 'y'", "numbers from -1e300 to 1e300"]);
}

#[test]
fn indices_out_of_order() {
    fit_refuses("data.libsvm", "1 1:2\n-1 3:1 2:4\n", "", &["data.libsvm", "row 2", "index 2 after 3", "increasing"]);
    fit_refuses("data.libsvm", "1 1:2\n-1 3:1 3:4\n", "", &["data.libsvm", "row 2", "index 3", "increasing"]);
    fit_refuses("data.libsvm", "1 1:2\n-1 0:1\n", "", &["data.libsvm", "row 2", "0"]);
}

#[test]
fn lines_that_are_not_json() {
    let content = "{\"a\":1,\"y\":2}\n{\"a\":1,\n";
    fit_refuses("data.jsonl", content, "", &["data.jsonl", "row 2"]);
}

#[test]
fn damaged_gzip() {
    let folder = Folder::new();
    folder.put("data.csv.gz", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xff, 0xff, 0xff]);
    folder.refuses("fit data.csv.gz --model m.nys", &["data.csv.gz"]);
}

#[test]
fn standard_input_cannot_be_read_twice() {
    let folder = Folder::new();
    let line = "fit - --model m.nys";
    let run = folder.run_with(line, "a,y\n1,2\n3,4\n");
    assert_refused(line, &run, &["method", "two-pass", "read twice"]);
    assert!(!folder.path("m.nys").exists());
}

#[test]
fn sketches_refuse_the_same() {
    let folder = Folder::new();
    folder.put("data.csv", "a,b,y\n1,2,3\n4,blue,5\n");
    folder.refuses("sketch data.csv --out atoms.csv --plot p.svg", &["data.csv", "row 2", "column 'b'", "\"blue\""]);
    folder.put("empty.csv", "");
    folder.refuses("sketch empty.csv --out atoms.csv", &["empty.csv", "empty"]);
}
