//! Data and files that come after the first pass: what is matched, what is refused.

use super::*;

#[test]
fn features_are_matched_by_name_and_order() {
    let source = Memory::table("id,a,b,y", ["1,2,3,1.5", "4,5,6,2", "7,8,9,3"]);
    let options = TableOptions { targets: vec!["y".into()], ignore: vec!["id".into()], ..Default::default() };
    let found = learn(&source, &options).unwrap();
    let rows =
        |header: &str, line: &str| apply(&found, &Memory::table(header, [line]), false).map(|b| dense(&b).to_vec());
    for (header, line) in
        [("id,a,b,y", "0,2,3,0"), ("a,b", "2,3"), ("y,a,id,b", ",2,,3"), ("a,b,y", "2,3,0"), ("a,id,b", "2,x,3")]
    {
        assert_eq!(rows(header, line).unwrap(), [2.0, 3.0], "{header}");
    }
    let message = |header: &str| rows(header, &header.replace(|c: char| c != ',', "1")).unwrap_err().to_string();
    let order = "'b' (the features are those of training, but in another order), expected 'a'";
    assert_eq!(message("b,a"), format!("feature 1 of new.csv differs: found {order}"));
    assert_eq!(message("a"), "feature 2 of new.csv differs: found no more columns, expected 'b', which is missing");
    let renamed = "'c', which was not in the training data, expected 'b', which is missing";
    assert_eq!(message("a,c"), format!("feature 2 of new.csv differs: found {renamed}"));
    let extra = "'c', which was not in the training data, expected only the 2 features of training";
    assert_eq!(message("a,b,c"), format!("feature 3 of new.csv differs: found {extra}"));
    assert!(message("a,b,y,y").contains("several columns of this name"));
    let target = apply(&found, &Memory::table("a,b", ["1,2"]), true).unwrap_err().to_string();
    assert_eq!(target, "new.csv: column 'y': found no such column, expected the target, which is needed here");
    let kind = found.bind(&Schema::Labelled { width: 2 }, "new.svm").unwrap_err().to_string();
    assert!(kind.starts_with("the kind of data in new.svm differs: found sparse"), "{kind}");
}

#[test]
fn unnamed_columns_are_matched_by_count() {
    let source = Memory::table("a,y,b", ["1,2,3", "4,5,6", "7,9,9"]).unnamed();
    let options = TableOptions { targets: vec!["2".into()], ..Default::default() };
    let found = learn(&source, &options).unwrap();
    let named = Memory::table("p,q,r", ["1,2,3"]);
    let batch = apply(&found, &named, true).unwrap();
    assert_eq!((dense(&batch), batch.targets.as_slice()), (&[1.0, 3.0][..], &[2.0][..]));
    let two = Memory::table("p,q", ["1,2"]).unnamed();
    assert_eq!(dense(&apply(&found, &two, false).unwrap()), [1.0, 2.0]);
    assert!(apply(&found, &two, true).is_err());
    let message = apply(&found, &Memory::table("p", ["1"]).unnamed(), false).unwrap_err().to_string();
    let expected = "expected 2 (the features of training) or 3 (all its columns)";
    assert_eq!(message, format!("the number of columns of new.csv differs: found 1, {expected}"));
}

#[test]
fn equal_names_can_be_read_again() {
    let source = Memory::table("a,a,y", ["1,2,3", "4,5,6", "7,8,8"]);
    let options = TableOptions { ignore: vec!["1".into()], ..Default::default() };
    // "1" is no name here, so it is the first column; the second has the same name and stays a feature.
    let found = learn(&source, &options).unwrap();
    assert_eq!(dense(&apply(&found, &source, true).unwrap()), [2.0, 5.0, 8.0]);
}

#[test]
fn new_data_is_refused_with_its_place() {
    let source = Memory::table("x,color,y", ["1,red,a", "2,blue,b", "3,4,b"]);
    let options = TableOptions { scale: Scale::Standard, ..one_hot() };
    let found = learn(&source, &options).unwrap();
    let message = |line: &str, need_targets| {
        let new = Memory::table("x,color,y", ["1,red,a", line]);
        apply(&found, &new, need_targets).map(|batch| dense(&batch)[4..].to_vec()).map_err(|error| error.to_string())
    };
    assert_eq!(message("2,4,zzz", false), Ok(vec![0.0, 1.0, 0.0, 0.0]));
    let levels = "one of the levels '4', 'blue', 'red'";
    let at = |column: &str| format!("new.csv: row 2, column '{column}': found");
    assert_eq!(message("2,green,a", true), Err(format!("{} \"green\", expected {levels}", at("color"))));
    assert_eq!(message("2,5,a", true), Err(format!("{} 5, expected {levels}", at("color"))));
    assert_eq!(message("2,inf,a", true), Err(format!("{} inf, expected {levels}", at("color"))));
    assert_eq!(message("2,NaN,a", true), Err(format!("{} NaN, expected a finite number", at("color"))));
    assert_eq!(message("x,red,a", true), Err(format!("{} \"x\", expected a number, as in training", at("x"))));
    assert_eq!(message("inf,red,a", true), Err(format!("{} inf, expected a finite number", at("x"))));
    assert_eq!(message("NaN,red,a", true), Err(format!("{} NaN, expected a finite number", at("x"))));
    let missing = "a missing value, expected a number (or training with --missing mean|drop)";
    assert_eq!(message(",red,a", true), Err(format!("{} {missing}", at("x"))));
    assert_eq!(message("1,red,c", true), Err(format!("{} \"c\", expected one of the labels 'a', 'b'", at("y"))));
    assert_eq!(message("1,red,7", true), Err(format!("{} 7, expected one of the labels 'a', 'b'", at("y"))));
    let missing = "a missing target, expected a target (or --missing drop)";
    assert_eq!(message("1,red,", true), Err(format!("{} {missing}", at("y"))));
}

#[test]
fn numbers_that_overflow_when_scaled_are_refused() {
    let options = TableOptions { scale: Scale::Standard, ..Default::default() };
    let found = learn(&Memory::table("x,y", ["0,1", "1e-140,2", "0,3"]), &options).unwrap();
    let error = apply(&found, &Memory::table("x,y", ["1e300,1"]), true).unwrap_err().to_string();
    assert!(error.contains("row 1, column 'x'") && error.contains("about the size"), "{error}");
    let found = learn(&Memory::sparse(["1 2:1e-140", "2", "3"]), &options).unwrap();
    let error = apply(&found, &Memory::sparse(["1 2:1e300"]), true).unwrap_err().to_string();
    assert!(error.contains("row 1, column '2'") && error.contains("about the size"), "{error}");
}

#[test]
fn damaged_preprocessors_are_not_read() {
    let source = Memory::table("x,color,y", ["1,red,a", "2,blue,b", ",4,b"]);
    let options = TableOptions { scale: Scale::Standard, missing: Missing::Mean, ..one_hot() };
    let good = serde_json::to_value(learn(&source, &options).unwrap()).unwrap();
    assert!(serde_json::from_value::<Preprocessor>(good.clone()).is_ok());
    let list = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    for (pointer, value) in [
        ("/shift", "[0]"),
        ("/scale", "[]"),
        ("/scale/0", "0"),
        ("/scale/0", "-1"),
        ("/fill", "[1, 2, 3, 4, 5]"),
        ("/constant", "[4]"),
        ("/class_counts", "[1]"),
        ("/task/Classification/labels", r#"["a", "a"]"#),
        ("/task/Classification/labels", r#"["a"]"#),
        ("/task", r#"{"Regression": {"targets": 1}}"#),
        ("/target_names", "[]"),
        ("/target_names/0", r#""x""#),
        ("/inputs", r#"{"Sparse": {"width": 4}}"#),
        ("/inputs/Table/names", r#"["x", "y"]"#),
        ("/inputs/Table/roles/0", r#"{"Feature": 7}"#),
        ("/inputs/Table/roles/2", r#"{"Target": 7}"#),
        ("/inputs/Table/roles/2", r#""Ignored""#),
        ("/inputs/Table/kinds/1/Category/levels", "[]"),
        ("/inputs/Table/kinds/1/Category/levels", r#"["4", "red", "red"]"#),
        ("/missing", r#""Drop""#),
        ("/scaling", r#""None""#),
    ] {
        let mut damaged = good.clone();
        *damaged.pointer_mut(pointer).unwrap() = list(value);
        assert!(serde_json::from_value::<Preprocessor>(damaged).is_err(), "{pointer} {value}");
    }
}

#[test]
fn coded_rows_of_another_pass_are_refused() {
    let source = Memory::table("color,y", ["red,a", "blue,b"]);
    let (found, coded) = fit(&source, &one_hot(), 2).unwrap();
    let mut batch = Batch::default();
    assert!(found.finish_coded(&coded[0], &mut batch).is_ok());
    let back: Preprocessor = serde_json::from_str(&serde_json::to_string(&found).unwrap()).unwrap();
    assert!(back.finish_coded(&coded[0], &mut batch).is_err());
    let spoilt = |change: fn(&mut CodedBlock)| {
        let mut coded = coded[0].clone();
        change(&mut coded);
        coded
    };
    for coded in [
        spoilt(|coded| coded.targets[0] = 2.0),
        spoilt(|coded| coded.targets.truncate(1)),
        spoilt(|coded| coded.rows = RowBlock::Dense { data: vec![2.0, 0.0], len: 2, cols: 1 }),
        spoilt(|coded| coded.rows = RowBlock::Dense { data: vec![f64::NAN, 0.0], len: 2, cols: 1 }),
        spoilt(|coded| coded.rows = RowBlock::Dense { data: vec![0.0; 4], len: 2, cols: 2 }),
    ] {
        assert!(found.finish_coded(&coded, &mut batch).is_err());
    }
}

#[test]
fn buffers_are_reused() {
    let source = Memory::table("a,b,y", (0..50).map(|i| format!("{i},1,{i}")));
    let found = learn(&source, &TableOptions { scale: Scale::Standard, ..Default::default() }).unwrap();
    let binding = found.bind(source.schema(), "again").unwrap();
    let (block, mut batch) = (source.block(), Batch::default());
    found.transform(&binding, &block, &mut batch, true).unwrap();
    let places = (dense(&batch).as_ptr(), batch.targets.as_ptr());
    found.transform(&binding, &block, &mut batch, true).unwrap();
    assert_eq!((dense(&batch).as_ptr(), batch.targets.as_ptr()), places);
    // A batch that held sparse rows can hold dense ones.
    batch.rows = RowBlock::sparse(7);
    found.transform(&binding, &block, &mut batch, true).unwrap();
    assert_eq!((batch.len(), batch.rows.cols()), (50, 2));
}

#[test]
fn observing_learns_what_encoding_learns() {
    let source = Memory::table("x,color,y", ["1,red,a", "2,blue,b", "3,4,b"]);
    let mut scan = Scan::new(source.schema(), "data.csv", one_hot()).unwrap();
    scan.observe(&source.block()).unwrap();
    assert_eq!((scan.rows(), scan.dropped_rows(), scan.target_count()), (3, 0, 1));
    assert_eq!(scan.finish().unwrap(), learn(&source, &one_hot()).unwrap());
}
