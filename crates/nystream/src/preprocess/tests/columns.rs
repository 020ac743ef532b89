//! What columns and targets become, and every refusal of the first pass with its place.

use super::*;

#[test]
fn categories_become_sorted_zero_one_columns() {
    let source = Memory::table("color,size,y", ["red,5,1.5", "blue,7,2.5", "red,9,0.5"]);
    let options = TableOptions { scale: Scale::Standard, ..one_hot() };
    let found = learn(&source, &options).unwrap();
    assert_eq!(found.feature_names(), ["color=blue", "color=red", "size"]);
    assert_eq!((0..3).map(|i| found.feature_name(i)).collect::<Vec<_>>(), found.feature_names());
    let deviation = (8.0f64 / 3.0).sqrt();
    let batch = apply(&found, &source, true).unwrap();
    assert_eq!(dense(&batch), [0.0, 1.0, -2.0 / deviation, 1.0, 0.0, 0.0, 0.0, 1.0, 2.0 / deviation]);
    assert_eq!(batch.targets, [1.5, 2.5, 0.5]);
    assert_eq!((found.target_mean(), found.rows()), (&[1.5][..], 3));
    assert!((found.target_variance()[0] - 2.0 / 3.0).abs() < 1e-15);
}

#[test]
fn listed_levels_keep_their_order_and_may_be_numbers() {
    let source = Memory::table("zone,y", ["3,0.5", "1,1.5", "3,7"]);
    let options = TableOptions { categorical: "zone=3,2,1".parse().unwrap(), ..Default::default() };
    let found = learn(&source, &options).unwrap();
    assert_eq!(found.feature_names(), ["zone=3", "zone=2", "zone=1"]);
    assert_eq!(dense(&apply(&found, &source, true).unwrap()), [1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    assert_eq!(found.constant_features(), ["zone=2"]);
    let message = refusal(&Memory::table("zone,y", ["3,1", "4,2"]), &options);
    assert_eq!(message, "data.csv: row 2, column 'zone': found 4, expected one of the levels '3', '2', '1'");
    for (levels, part) in [("zone=1,1", "listed twice"), ("y=1", "no feature"), ("x=1", "no such column")] {
        let options = TableOptions { categorical: levels.parse().unwrap(), ..Default::default() };
        assert!(refusal(&source, &options).contains(part), "{levels}");
    }
}

#[test]
fn missing_cells_become_means_and_frequencies() {
    let source = Memory::table("x,color,y", [",red,1", "2,,2", "4,red,3", "6,blue,4"]);
    let options = TableOptions { missing: Missing::Mean, ..one_hot() };
    let batch = apply(&learn(&source, &options).unwrap(), &source, true).unwrap();
    let third = 1.0 / 3.0;
    assert_eq!(dense(&batch), [4.0, 0.0, 1.0, 2.0, third, 2.0 * third, 4.0, 0.0, 1.0, 6.0, 1.0, 0.0]);
    let message = refusal(&Memory::table("x,y", [",1", ",2"]), &options);
    assert_eq!(message, "data.csv: column 'x': found missing in every row, expected at least one value");
    let message = refusal(&Memory::table("x,y", ["1,1", "2,"]), &options);
    assert_eq!(message, "data.csv: row 2, column 'y': found a missing target, expected a target (or --missing drop)");
}

#[test]
fn rows_with_missing_cells_are_dropped_whole() {
    // The dropped rows hold a level, a label and text that would otherwise be learnt or refused.
    let source = Memory::table("x,color,y", ["1,red,a", ",green,b", "2,blue,", "3,blue,c", "oops,,d"]);
    let options = TableOptions { missing: Missing::Drop, ..one_hot() };
    let found = learn(&source, &options).unwrap();
    assert_eq!((found.rows(), found.dropped_rows()), (2, 3));
    assert_eq!(found.labels(), ["a", "c"]);
    assert_eq!(found.class_counts(), [1, 1]);
    assert_eq!(found.feature_names(), ["x", "color=blue", "color=red"]);
    let batch = apply(&found, &source, true).unwrap();
    assert_eq!((batch.dropped.as_slice(), batch.records()), (&[1, 2, 4][..], 5));
    assert_eq!((batch.source_row(1), batch.targets.as_slice()), (4, &[0.0, 1.0][..]));
    // Without targets only the features count.
    let batch = apply(&found, &source, false).unwrap();
    assert_eq!((batch.dropped.as_slice(), batch.targets.len()), (&[1, 4][..], 0));
    let message = refusal(&Memory::table("x,y", [",1", "2,"]), &options);
    assert_eq!(
        message,
        "data.csv: the file: found missing values in all 2 rows, expected a row without missing values"
    );
}

#[test]
fn odd_features_are_refused_with_their_place() {
    let plain = TableOptions::default();
    let text = Memory::table("x,color,y", ["1,2,3", "1,red,4"]);
    let place = "data.csv: row 2, column 'color': found \"red\", expected a number";
    assert_eq!(refusal(&text, &plain), format!("{place} (or --categorical one-hot)"));
    let changed = refusal(&text, &one_hot());
    assert_eq!(changed, format!("{place}, as in the rows before (or all levels, --categorical COLUMN=LEVEL,LEVEL)"));
    let unlisted = TableOptions { categorical: "x=1".parse().unwrap(), ..Default::default() };
    assert_eq!(refusal(&text, &unlisted), format!("{place} (or this column's levels in --categorical)"));
    let missing = Memory::table("x,y", ["1,3", ",4"]);
    let place = "data.csv: row 2, column 'x': found";
    assert_eq!(
        refusal(&missing, &plain),
        format!("{place} a missing value, expected a number (or --missing mean|drop)")
    );
    for missing in [Missing::Refuse, Missing::Mean, Missing::Drop] {
        let options = TableOptions { missing, ..one_hot() };
        let infinite = Memory::table("x,y", ["1,3", "-inf,4"]);
        assert_eq!(refusal(&infinite, &options), format!("{place} -inf, expected a finite number"));
        // NaN that no reader has marked as missing.
        let nan = Memory::table("x,y", ["1,3", "NaN,4"]);
        assert_eq!(refusal(&nan, &options), format!("{place} NaN, expected a finite number"));
    }
    let infinite_level = Memory::table("x,y", ["a,3", "inf,4"]);
    assert_eq!(refusal(&infinite_level, &one_hot()), format!("{place} inf, expected a finite number"));
    let huge = refusal(&Memory::table("x,y", ["1e200,1", "-1e200,2"]), &plain);
    assert!(huge.contains("column 'x'") && huge.contains("can be squared"), "{huge}");
}

#[test]
fn ignored_columns_are_not_looked_at() {
    let source = Memory::table("id,x,y", ["a,1,2", ",2,3", "inf,3,7"]);
    let options = TableOptions { ignore: vec!["id".into()], ..Default::default() };
    let found = learn(&source, &options).unwrap();
    assert_eq!(found.ignored_names(), ["id"]);
    assert_eq!(dense(&apply(&found, &source, true).unwrap()), [1.0, 2.0, 3.0]);
}

#[test]
fn odd_targets_are_refused_with_their_place() {
    let with = |task| TableOptions { task, ..Default::default() };
    let text = Memory::table("x,y", ["1,3", "2,red"]);
    let place = "data.csv: row 2, column 'y': found";
    let found = refusal(&text, &with(TaskRequest::Regression));
    assert_eq!(found, format!("{place} \"red\", expected a number, for regression"));
    let found = refusal(&text, &with(TaskRequest::Auto));
    assert_eq!(found, format!("{place} \"red\", expected a number, as in the rows before (or --task classification)"));
    assert_eq!(learn(&text, &with(TaskRequest::Classification)).unwrap().labels(), ["3", "red"]);
    let infinite = Memory::table("x,y", ["1,3", "2,inf"]);
    assert_eq!(refusal(&infinite, &with(TaskRequest::Auto)), format!("{place} inf, expected a finite number"));
    let huge = refusal(&Memory::table("x,y", ["1,1e200", "2,-1e200"]), &with(TaskRequest::Regression));
    assert!(huge.contains("column 'y'") && huge.contains("can be squared"), "{huge}");
    let several = TableOptions { targets: vec!["x".into(), "y".into()], ..with(TaskRequest::Classification) };
    let found = refusal(&Memory::table("x,y,z", ["1,2,3"]), &several);
    assert_eq!(found, "task: found classification with 2 target columns, expected one target column, or regression");
    let several = TableOptions { task: TaskRequest::Auto, ..several };
    let found = refusal(&Memory::table("x,y,z", ["1,a,3"]), &several);
    assert_eq!(found, "data.csv: row 1, column 'y': found \"a\", expected a number, for regression");
    assert!(refusal(&Memory::table("x,y", [""; 0]), &with(TaskRequest::Auto)).contains("found no rows"));
}

#[test]
fn the_task_follows_the_targets() {
    let task = |targets: &[&str], request| {
        let source = Memory::table("x,y", targets.iter().enumerate().map(|(i, y)| format!("{i},{y}")));
        let options = TableOptions { task: request, ..Default::default() };
        let found = learn(&source, &options)?;
        let batch = apply(&found, &source, true)?;
        Ok((found.task().clone(), batch.targets, found.class_counts().to_vec()))
    };
    let classes = |labels: &[&str]| Task::Classification { labels: labels.iter().map(|&l| l.to_owned()).collect() };
    let outcome = |result: Result<_>| result.map_err(|error| error.to_string());
    use TaskRequest::{Auto, Classification, Regression};
    assert_eq!(outcome(task(&["+1", "-1", "1.0"], Auto)), Ok((classes(&["-1", "1"]), vec![1.0, 0.0, 1.0], vec![1, 2])));
    assert_eq!(
        outcome(task(&["10", "9", "9", "-0"], Classification)),
        Ok((classes(&["0", "9", "10"]), vec![2.0, 1.0, 1.0, 0.0], vec![1, 2, 1]))
    );
    assert_eq!(
        outcome(task(&["b", "a", "10", "b"], Auto)),
        Ok((classes(&["10", "a", "b"]), vec![2.0, 1.0, 0.0, 2.0], vec![1, 1, 2]))
    );
    let regression = Task::Regression { targets: 1 };
    assert_eq!(outcome(task(&["1", "2", "3"], Auto)), Ok((regression.clone(), vec![1.0, 2.0, 3.0], vec![])));
    assert_eq!(outcome(task(&["1", "2", "1"], Regression)), Ok((regression.clone(), vec![1.0, 2.0, 1.0], vec![])));
    assert_eq!(outcome(task(&["1", "1"], Regression)), Ok((regression, vec![1.0, 1.0], vec![])));
    let one = "data.csv: column 'y': found the one class 'a' in all 2 rows, expected at least two classes";
    assert_eq!(outcome(task(&["a", "a"], Auto)), Err(one.to_owned()));
    assert_eq!(outcome(task(&["1", "1"], Classification)), Err(one.replace("'a'", "'1'")));
    let same = "data.csv: column 'y': found the same value 1 in all 2 rows, expected at least two different targets \
                (or --task regression)";
    assert_eq!(outcome(task(&["1", "1"], Auto)), Err(same.to_owned()));
}

#[test]
fn several_targets_keep_the_order_asked_for() {
    let source = Memory::table("a,x,b", ["1,2,3", "4,5,6"]);
    let options = TableOptions { targets: vec!["b".into(), "a".into()], ..Default::default() };
    let found = learn(&source, &options).unwrap();
    assert_eq!((found.target_names(), found.task()), (&["b".into(), "a".into()][..], &Task::Regression { targets: 2 }));
    assert_eq!(apply(&found, &source, true).unwrap().targets, [3.0, 1.0, 6.0, 4.0]);
    assert_eq!(found.target_mean(), [4.5, 2.5]);
}

#[test]
fn too_many_classes_and_levels_are_refused() {
    let many = |header: &str, write: fn(usize) -> String| Memory::table(header, (0..=MAX_CLASSES).map(write));
    let options = TableOptions { task: TaskRequest::Classification, ..Default::default() };
    let found = refusal(&many("x,y", |i| format!("1,{i}")), &options);
    assert!(found.contains("row 10001, column 'y'") && found.contains("at most 10000"), "{found}");
    let found = refusal(&many("x,y", |i| format!("t{i},1")), &one_hot());
    assert!(found.contains("row 10001, column 'x'") && found.contains("at most 10000"), "{found}");
}

#[test]
fn constant_columns_become_zero_and_are_named() {
    let source = Memory::table("a,b,c,y", ["7.3,1,0.1,1", "7.3,2,0.1,2", "7.3,3,0.1,3"]);
    for scale in [Scale::Standard, Scale::MinMax] {
        let found = learn(&source, &TableOptions { scale, ..Default::default() }).unwrap();
        assert_eq!(found.constant_features(), ["a", "c"]);
        let batch = apply(&found, &source, true).unwrap();
        assert_eq!([0, 2, 3, 5, 6, 8].map(|i| dense(&batch)[i]), [0.0; 6]);
    }
    let found = learn(&source, &TableOptions::default()).unwrap();
    assert_eq!(found.constant_features(), ["a", "c"]);
    assert_eq!(dense(&apply(&found, &source, true).unwrap())[..3], [7.3, 1.0, 0.1]);
}

#[test]
fn sparse_columns_are_divided_but_not_centred() {
    let source = Memory::sparse(["1 1:3 4:2", "2 1:-4 4:2", "3 4:2", "4 4:2"]);
    let scaled = |scale| {
        let found = learn(&source, &TableOptions { scale, ..Default::default() }).unwrap();
        let RowBlock::Sparse { indices, values, cols, .. } = apply(&found, &source, true).unwrap().rows else {
            return (Vec::new(), Vec::new(), 0, Vec::new());
        };
        (indices, values, cols, found.constant_features())
    };
    let variance = (9.0 + 16.0 - 4.0 * 0.0625) / 4.0f64;
    let (indices, values, cols, constant) = scaled(Scale::Standard);
    assert_eq!((indices.as_slice(), cols), (&[0, 3, 0, 3, 3, 3][..], 4));
    assert_eq!(values[..4], [3.0 / variance.sqrt(), 2.0, -4.0 / variance.sqrt(), 2.0]);
    assert_eq!(constant, ["4"]);
    assert_eq!(scaled(Scale::MinMax).1, [0.75, 1.0, -1.0, 1.0, 1.0, 1.0]);
    assert_eq!(scaled(Scale::None).1, [3.0, 2.0, -4.0, 2.0, 2.0, 2.0]);
}

#[test]
fn a_million_sparse_columns_are_fine_and_absurd_ones_are_refused() {
    let source = Memory::sparse(["1 1:1 1000000:2", "2", "3 5:1"]);
    let options = TableOptions { scale: Scale::Standard, missing: Missing::Mean, ..Default::default() };
    let found = learn(&source, &options).unwrap();
    assert_eq!((found.feature_count(), apply(&found, &source, true).unwrap().rows.cols()), (1_000_000, 1_000_000));
    assert_eq!(found.feature_name(999_999), "1000000");
    let absurd = Memory::sparse(["1 4294967295:1", "2 1:1", "3"]);
    assert!(refusal(&absurd, &options).contains("use --scale none"));
    assert_eq!(learn(&absurd, &TableOptions::default()).unwrap().feature_count(), 4_294_967_295);
}

#[test]
fn sparse_refusals_name_row_and_feature() {
    let plain = TableOptions::default();
    let message = |lines: [&str; 2]| refusal(&Memory::sparse(lines), &plain);
    assert_eq!(
        message(["1", "2"]),
        "data.csv: the file: found rows without a single feature, expected at least one feature"
    );
    let place = "data.csv: row 2, column '3': found";
    assert_eq!(message(["1 1:1", "2 3:inf"]), format!("{place} inf, expected a finite number"));
    assert_eq!(message(["1 1:1", "2 3:x"]), format!("{place} \"x\", expected a number"));
    assert_eq!(
        message(["1 1:1", "2 3:"]),
        format!("{place} a missing value, expected a number (or --missing mean|drop)")
    );
    assert!(message(["1 1:1", " 3:1"]).contains("row 2, column 'label': found no label"));
    let found = learn(&Memory::sparse(["a 1:1", "b 3:1"]), &plain).unwrap();
    let error = apply(&found, &Memory::sparse(["a 3:1", "b 1:1 4:2"]), true).unwrap_err().to_string();
    let expected = "new.csv: row 2, column '4': found a feature that was not in the training data, expected features up \
                    to 3, as in training";
    assert_eq!(error, expected);
    for options in [
        TableOptions { targets: vec!["y".into()], ..Default::default() },
        TableOptions { ignore: vec!["1".into()], ..Default::default() },
        TableOptions { categorical: "a=b".parse().unwrap(), ..Default::default() },
    ] {
        assert!(refusal(&Memory::sparse(["1 1:1"]), &options).contains("sparse (LIBSVM)"));
    }
}
