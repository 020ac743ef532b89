//! Laws of the two stages, and every refusal with its message.

use proptest::prelude::*;

use super::*;
use crate::error::Result;
use crate::rows::{Row, RowBlock};
use crate::source::{LABEL_COLUMN, RecordBlock, RecordSource, Schema};

/// Records in memory, written as text: an empty cell is missing, `label index:value ...` is a sparse row.
#[derive(Clone)]
struct Memory {
    schema: Schema,
    lines: Vec<String>,
    next: usize,
}

impl Memory {
    fn table(header: &str, lines: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let schema = Schema::Table { names: header.split(',').map(str::to_owned).collect(), named: true };
        Self { schema, lines: lines.into_iter().map(Into::into).collect(), next: 0 }
    }
    fn unnamed(mut self) -> Self {
        if let Schema::Table { names, named } = &mut self.schema {
            *names = (1..=names.len()).map(|number| number.to_string()).collect();
            *named = false;
        }
        self
    }
    fn sparse(lines: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let lines = lines.into_iter().map(Into::into).collect();
        Self { schema: Schema::Labelled { width: 0 }, lines, next: 0 }
    }
    fn block(&self) -> RecordBlock {
        let mut block = RecordBlock::default();
        self.clone().read(&mut block, usize::MAX).unwrap();
        block
    }
}

/// The number to store for a cell, after noting what is odd about it.
fn cell(block: &mut RecordBlock, row: usize, column: usize, text: &str) -> f64 {
    match text.parse::<f64>() {
        Ok(number) => number,
        Err(_) => {
            if text.is_empty() {
                block.mark_missing(row, column);
            } else {
                block.mark_text(row, column, text);
            }
            f64::NAN
        }
    }
}

impl RecordSource for Memory {
    fn origin(&self) -> &str {
        "data.csv"
    }
    fn schema(&self) -> &Schema {
        &self.schema
    }
    fn read(&mut self, block: &mut RecordBlock, max_rows: usize) -> Result<bool> {
        block.clear(self.next as u64 + 1);
        let end = self.lines.len().min(self.next.saturating_add(max_rows));
        block.cells = match &self.schema {
            Schema::Table { names, .. } => RowBlock::dense(names.len()),
            Schema::Labelled { width } => RowBlock::sparse(*width),
        };
        for (i, line) in self.lines[self.next..end].iter().enumerate() {
            if let Schema::Labelled { width } = &mut self.schema {
                let mut words = line.split(' ');
                let label = words.next().unwrap_or("");
                let (mut indices, mut values) = (Vec::new(), Vec::new());
                for word in words {
                    let (index, value) = word.split_once(':').unwrap();
                    let index = index.parse::<u32>().unwrap() - 1;
                    indices.push(index);
                    values.push(cell(block, i, index as usize, value));
                    *width = (*width).max(index as usize + 1);
                }
                block.cells.push(Row::Sparse { indices: &indices, values: &values });
                let label = cell(block, i, LABEL_COLUMN, label);
                block.labels.push(label);
                block.cells.set_cols(*width);
            } else {
                let cells: Vec<f64> = line.split(',').enumerate().map(|(j, text)| cell(block, i, j, text)).collect();
                block.cells.push(Row::Dense(&cells));
            }
        }
        self.next = end;
        Ok(!block.is_empty())
    }
    fn rereadable(&self) -> bool {
        true
    }
    fn rewind(&mut self) -> Result<()> {
        self.next = 0;
        Ok(())
    }
    fn progress(&self) -> Option<f64> {
        None
    }
}

fn fit(source: &Memory, options: &TableOptions, block_size: usize) -> Result<(Preprocessor, Vec<CodedBlock>)> {
    let mut source = source.clone();
    let mut scan = Scan::new(source.schema(), source.origin(), options.clone())?;
    let (mut block, mut coded) = (RecordBlock::default(), Vec::new());
    while source.read(&mut block, block_size)? {
        let mut out = CodedBlock::default();
        scan.encode(&block, &mut out)?;
        coded.push(out);
    }
    Ok((scan.finish()?, coded))
}

fn learn(source: &Memory, options: &TableOptions) -> Result<Preprocessor> {
    Ok(fit(source, options, 3)?.0)
}

fn apply(preprocessor: &Preprocessor, source: &Memory, need_targets: bool) -> Result<Batch> {
    let binding = preprocessor.bind(source.schema(), "new.csv")?;
    let mut batch = Batch::default();
    preprocessor.transform(&binding, &source.block(), &mut batch, need_targets)?;
    Ok(batch)
}

/// The message of the first pass.
fn refusal(source: &Memory, options: &TableOptions) -> String {
    learn(source, options).unwrap_err().to_string()
}

/// Bits of all rows and targets of several batches.
fn bits(batches: &[Batch]) -> Vec<u64> {
    let mut all = Vec::new();
    for batch in batches {
        for i in 0..batch.len() {
            all.push(batch.source_row(i));
            match batch.rows.rows().row(i) {
                Row::Dense(values) => all.extend(values.iter().map(|v| v.to_bits())),
                Row::Sparse { indices, values } => {
                    all.extend(indices.iter().map(|&j| u64::from(j)));
                    all.extend(values.iter().map(|v| v.to_bits()));
                }
            }
        }
    }
    all.extend(batches.iter().flat_map(|batch| &batch.targets).map(|v| v.to_bits()));
    all
}

fn transformed(preprocessor: &Preprocessor, source: &Memory, block_size: usize) -> Vec<Batch> {
    let mut source = source.clone();
    let binding = preprocessor.bind(source.schema(), source.origin()).unwrap();
    let (mut block, mut batches) = (RecordBlock::default(), Vec::new());
    while source.read(&mut block, block_size).unwrap() {
        let mut batch = Batch::default();
        preprocessor.transform(&binding, &block, &mut batch, true).unwrap();
        batches.push(batch);
    }
    batches
}

fn finished(preprocessor: &Preprocessor, coded: &[CodedBlock]) -> Vec<Batch> {
    let finish = |coded| {
        let mut batch = Batch::default();
        preprocessor.finish_coded(coded, &mut batch).unwrap();
        batch
    };
    coded.iter().map(finish).collect()
}

/// Both ways to rows agree, at two block sizes, and the preprocessor reads back the same.
fn check_laws(source: &Memory, options: &TableOptions, sizes: [usize; 2]) -> Result<(), TestCaseError> {
    let first = fit(source, options, sizes[0]);
    let second = fit(source, options, sizes[1]);
    let ((one, one_coded), (two, two_coded)) = match (first, second) {
        (Ok(first), Ok(second)) => (first, second),
        (Err(first), Err(second)) => {
            prop_assert_eq!(first.to_string(), second.to_string());
            return Ok(());
        }
        _ => return Err(TestCaseError::fail("only one block size gave an error")),
    };
    let json = serde_json::to_string(&one).unwrap();
    prop_assert_eq!(&json, &serde_json::to_string(&two).unwrap());
    let back: Preprocessor = serde_json::from_str(&json).unwrap();
    prop_assert_eq!(&back, &one);
    let expected = bits(&finished(&one, &one_coded));
    prop_assert_eq!(&bits(&finished(&two, &two_coded)), &expected);
    for size in sizes {
        prop_assert_eq!(&bits(&transformed(&back, source, size)), &expected);
    }
    Ok(())
}

fn any_options() -> impl Strategy<Value = TableOptions> {
    let missing = prop_oneof![Just(Missing::Refuse), Just(Missing::Mean), Just(Missing::Drop)];
    let scale = prop_oneof![Just(Scale::None), Just(Scale::MinMax), Just(Scale::Standard)];
    let task = prop_oneof![Just(TaskRequest::Auto), Just(TaskRequest::Regression), Just(TaskRequest::Classification)];
    (missing, scale, task).prop_map(|(missing, scale, task)| TableOptions {
        missing,
        scale,
        task,
        ..Default::default()
    })
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![6 => (-1e3..1e3f64).prop_map(|v| v.to_string()), 2 => Just("1".to_owned()), 1 => Just(String::new())]
}

fn target() -> impl Strategy<Value = Vec<String>> {
    let of = |choices: Vec<&'static str>| prop::collection::vec(prop::sample::select(choices), 30);
    let words = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect::<Vec<_>>();
    prop_oneof![
        of(vec!["yes", "no", "7"]).prop_map(words),
        of(vec!["1", "-1", "+1"]).prop_map(words),
        of(vec!["3", "10", "2", "-0"]).prop_map(words),
        prop::collection::vec((-5.0..5.0f64).prop_map(|v| v.to_string()), 30),
    ]
}

proptest! {
    #[test]
    fn tables_do_not_depend_on_blocks(
        options in any_options(),
        rows in prop::collection::vec((number(), prop::sample::select(vec!["red", "blue", "4", "", "green"]), number()), 1..30),
        targets in target(),
        sizes in [1..9usize, 1..40usize],
    ) {
        let lines = rows.iter().zip(&targets).map(|((a, color, b), y)| format!("{a},{color},note,{y},{b}"));
        let source = Memory::table("a,color,note,y,b", lines);
        let options = TableOptions {
            targets: vec!["y".into()],
            ignore: vec!["note".into()],
            categorical: Categorical::OneHot,
            ..options
        };
        check_laws(&source, &options, sizes)?;
    }

    #[test]
    fn sparse_rows_do_not_depend_on_blocks(
        options in any_options(),
        rows in prop::collection::vec(prop::collection::btree_map(1..12u32, number(), 0..6), 1..30),
        targets in target(),
        sizes in [1..9usize, 1..40usize],
    ) {
        let lines = rows.iter().zip(&targets).map(|(row, y)| {
            row.iter().fold(y.clone(), |line, (index, value)| format!("{line} {index}:{value}"))
        });
        check_laws(&Memory::sparse(lines), &options, sizes)?;
    }

    #[test]
    fn scaled_columns_have_the_promised_statistics(column in prop::collection::vec(-1e3..1e3f64, 2..60)) {
        let source = Memory::table("x,y", column.iter().enumerate().map(|(i, x)| format!("{x},{i}")));
        let n = column.len() as f64;
        let scaled = |scale| {
            let options = TableOptions { scale, task: TaskRequest::Regression, ..Default::default() };
            let batch = apply(&learn(&source, &options).unwrap(), &source, true).unwrap();
            (0..batch.len()).map(|i| match batch.rows.rows().row(i) {
                Row::Dense(row) => row[0],
                Row::Sparse { .. } => f64::NAN,
            }).collect::<Vec<_>>()
        };
        let mean = column.iter().sum::<f64>() / n;
        let deviation = (column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
        prop_assume!(deviation > 1e-3);
        for (found, x) in scaled(Scale::Standard).iter().zip(&column) {
            prop_assert!((found - (x - mean) / deviation).abs() < 1e-12 * (1.0 + 1e3 / deviation));
        }
        let ranged = scaled(Scale::MinMax);
        prop_assert!(ranged.iter().all(|v| v.abs() <= 1.0));
        prop_assert!(ranged.iter().copied().fold(f64::MIN, f64::max) > 1.0 - 1e-12);
        prop_assert!(ranged.iter().copied().fold(f64::MAX, f64::min) < -1.0 + 1e-12);
    }
}

fn dense(batch: &Batch) -> &[f64] {
    match &batch.rows {
        RowBlock::Dense { data, .. } => data,
        RowBlock::Sparse { .. } => &[],
    }
}

fn one_hot() -> TableOptions {
    TableOptions { categorical: Categorical::OneHot, ..Default::default() }
}

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
