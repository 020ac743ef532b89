//! Laws of the two stages; what columns become and what is refused, with its message, is in the modules below.

mod columns;
mod new_data;

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
