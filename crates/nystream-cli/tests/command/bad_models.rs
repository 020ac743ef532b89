//! Model files that cannot be read, and data that does not fit its model.

use crate::support::{Folder, csv};

fn with_model() -> Folder {
    let folder = Folder::new();
    folder.put("data.csv", csv(40, 1));
    folder.works("fit data.csv --model m.nys -q");
    folder
}

/// Every command that reads a model refuses this one.
fn all_refuse(folder: &Folder, model: &str, parts: &[&str]) {
    for line in
        ["inspect MODEL", "predict MODEL data.csv", "predict MODEL data.csv --out p.csv", "score MODEL data.csv"]
    {
        folder.refuses(&line.replace("MODEL", model), parts);
    }
}

#[test]
fn another_version() {
    let folder = with_model();
    let bytes = folder.bytes("m.nys");
    let old = br#"\"format_version\":1"#;
    let at = bytes.windows(old.len()).position(|window| window == old).unwrap();
    let mut newer = bytes.clone();
    newer[at + old.len() - 1] = b'9';
    folder.put("newer.nys", newer);
    all_refuse(&folder, "newer.nys", &["newer.nys", "format version 9", "newer than version 1", "nystream"]);
}

#[test]
fn truncated_and_altered() {
    let folder = with_model();
    let bytes = folder.bytes("m.nys");
    for length in [0, 7, 50, 500, bytes.len() / 2, bytes.len() - 1] {
        folder.put("cut.nys", &bytes[..length]);
        all_refuse(&folder, "cut.nys", &["cut.nys", "not a readable model"]);
    }
    let mut altered = bytes.clone();
    *altered.last_mut().unwrap() ^= 1;
    folder.put("altered.nys", altered);
    all_refuse(&folder, "altered.nys", &["altered.nys", "checksum"]);
}

#[test]
fn no_model_at_all() {
    let folder = with_model();
    all_refuse(&folder, "nothing.nys", &["nothing.nys", "cannot read"]);
    all_refuse(&folder, "data.csv", &["data.csv", "not a readable model"]);
}

#[test]
fn features_in_another_order() {
    let folder = with_model();
    folder.put("other.csv", "b,a,y\n1,2,3\n4,5,6\n");
    for line in ["predict m.nys other.csv", "predict m.nys other.csv --out p.csv", "score m.nys other.csv"] {
        folder.refuses(line, &["other.csv", "feature 1", "found 'b'", "another order", "expected 'a'"]);
    }
}

#[test]
fn features_of_other_names() {
    let folder = with_model();
    folder.put("other.csv", "a,c,y\n1,2,3\n");
    folder.refuses("predict m.nys other.csv", &["other.csv", "feature 2", "found 'c'", "expected 'b'"]);
}

#[test]
fn wrong_number_of_features() {
    let folder = with_model();
    folder.put("more.csv", "a,b,c,y\n1,2,3,4\n");
    folder.refuses("predict m.nys more.csv", &["more.csv", "'c'", "2 features"]);
    folder.put("fewer.csv", "a,y\n1,2\n");
    folder.refuses("predict m.nys fewer.csv", &["fewer.csv", "feature 2", "'b'", "missing"]);
    folder.put("unnamed.csv", "1,2,3,4\n");
    folder.refuses("predict m.nys unnamed.csv", &["unnamed.csv", "columns", "found 4", "expected 2"]);
    folder.put("sparse.libsvm", "1 1:2 2:3\n");
    folder.refuses("predict m.nys sparse.libsvm", &["sparse.libsvm", "LIBSVM", "table"]);
}

#[test]
fn sparse_rows_wider_than_in_training() {
    let folder = Folder::new();
    folder.put("data.libsvm", "1 1:2\n-1 2:1\n1 1:3\n-1 2:2 3:1\n");
    folder.works("fit data.libsvm --model m.nys -q");
    folder.put("wide.libsvm", "1 1:2\n-1 2:1 7:1\n");
    folder.refuses("predict m.nys wide.libsvm", &["wide.libsvm", "row 2", "7", "3"]);
    folder.put("table.csv", "a,b,y\n1,2,3\n");
    folder.refuses("predict m.nys table.csv", &["table.csv", "table", "LIBSVM"]);
}

#[test]
fn odd_cells_when_predicting() {
    let folder = with_model();
    for (cell, part) in [("", "missing"), ("blue", "\"blue\""), ("inf", "finite")] {
        folder.put("odd.csv", format!("a,b,y\n1,2,3\n4,{cell},5\n"));
        folder.refuses("predict m.nys odd.csv", &["odd.csv", "row 2", "column 'b'", part]);
        folder.refuses("predict m.nys odd.csv --out p.csv", &["odd.csv", "row 2", "column 'b'", part]);
    }
    // The target is not looked at when predicting, but must be there to score.
    folder.put("unknown.csv", "a,b,y\n1,2,\n");
    folder.works("predict m.nys unknown.csv");
    folder.refuses("score m.nys unknown.csv", &["unknown.csv", "row 1", "column 'y'", "missing"]);
}

#[test]
fn empty_data_when_predicting() {
    let folder = with_model();
    folder.put("empty.csv", "");
    folder.put("header.csv", "a,b,y\n");
    for command in ["predict", "score"] {
        folder.refuses(&format!("{command} m.nys empty.csv"), &["empty.csv", "empty"]);
        folder.refuses(&format!("{command} m.nys header.csv"), &["header.csv", "no rows"]);
        folder.refuses(&format!("{command} m.nys nothing.csv"), &["nothing.csv", "cannot open"]);
    }
}

#[test]
fn target_missing_in_score() {
    let folder = with_model();
    folder.put("features.csv", "a,b\n1,2\n");
    folder.works("predict m.nys features.csv");
    folder.refuses("score m.nys features.csv", &["features.csv", "column 'y'", "no such column", "the target"]);
}

#[test]
fn labels_that_training_did_not_have() {
    let folder = Folder::new();
    folder.put("data.csv", "a,y\n1,red\n2,blue\n3,red\n4,blue\n");
    folder.works("fit data.csv --model m.nys -q");
    folder.put("other.csv", "a,y\n1,red\n2,green\n");
    folder.refuses("score m.nys other.csv", &["other.csv", "row 2", "column 'y'", "green"]);
    folder.works("predict m.nys other.csv");
}

#[test]
fn what_a_model_cannot_give() {
    let folder = with_model();
    folder.put("classes.csv", "a,y\n1,red\n2,blue\n3,red\n4,blue\n");
    folder.works("fit classes.csv --model classes.nys -q");
    folder.works("fit data.csv --model small.nys --no-std -q");
    folder.refuses("predict small.nys data.csv --std", &["std", "without"]);
    folder.refuses("predict small.nys data.csv --std --out p.csv", &["std", "without"]);
    folder.refuses("predict m.nys data.csv --probabilities", &["probabilities", "regression"]);
    folder.refuses("predict classes.nys classes.csv --std", &["std", "--probabilities"]);
    // What is refused is not said to be there.
    for (model, given) in [("m.nys", true), ("small.nys", false), ("classes.nys", false)] {
        assert_eq!(folder.json(&format!("inspect {model}"))["std"], given, "{model}");
    }
    folder.refuses("predict m.nys data.csv --json", &["out", "--json"]);
}
