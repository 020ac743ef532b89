//! Arrow: record batches into record blocks, and Arrow IPC files and streams.
//!
//! Numbers of every width become doubles, booleans 1 and 0, nulls and NaN missing; strings (dictionary-encoded or not)
//! are read as cells of a CSV file would be. Dates count days since 1970, timestamps seconds since then, times of day
//! and durations seconds, whatever unit they are stored in. Other types are refused by column name.

use std::fs::File;
use std::io::BufReader;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, DataType, Fields, TimeUnit};

use super::input::Input;
use super::number::{self, Cell};
use super::{RecordBlock, RecordSource, Schema, refuse, refuse_duplicates};
use crate::error::{Error, Result};

/// Hands record batches over as blocks of other sizes.
pub(super) struct Batches {
    origin: String,
    pub schema: Schema,
    plans: Vec<Plan>,
    batch: Option<RecordBatch>,
    /// How many rows of `batch` have been handed over.
    used: usize,
    rows_read: u64,
}

/// How a column becomes numbers.
#[derive(Debug, Clone, PartialEq)]
enum Plan {
    /// Cast to these types in turn, the last being doubles; then multiply.
    Number { steps: Vec<DataType>, scale: f64 },
    /// Cast to this string type, then read the cells.
    Text(DataType),
    /// Nothing but nulls.
    Missing,
}

impl Batches {
    /// For batches of these columns.
    pub fn new(origin: &str, fields: &Fields) -> Result<Self> {
        let names: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
        if names.is_empty() {
            return Err(refuse(origin, 0, None, "no columns", "at least one column"));
        }
        refuse_duplicates(origin, &names)?;
        let plan = |(name, kind): (&String, &DataType)| {
            plan(kind).ok_or_else(|| {
                refuse(origin, 0, Some(name), format!("type {kind}"), "numbers, booleans, strings, dates or times")
            })
        };
        let plans = names.iter().zip(fields.iter().map(|field| field.data_type())).map(plan).collect::<Result<_>>()?;
        let schema = Schema::Table { names, named: true };
        Ok(Self { origin: origin.to_owned(), schema, plans, batch: None, used: 0, rows_read: 0 })
    }

    /// How many rows have been handed over.
    #[cfg(feature = "parquet")]
    pub fn rows_read(&self) -> u64 {
        self.rows_read
    }

    /// Starts again; the next batch will be the first.
    pub fn rewind(&mut self) {
        (self.batch, self.used, self.rows_read) = (None, 0, 0);
    }

    /// Fills `block` from the batches that `next` gives.
    pub fn read(
        &mut self,
        block: &mut RecordBlock,
        max_rows: usize,
        mut next: impl FnMut() -> Option<Result<RecordBatch, ArrowError>>,
    ) -> Result<bool> {
        block.start_table(self.rows_read + 1, self.plans.len());
        while block.len() < max_rows.max(1) {
            let Some(batch) = &self.batch else {
                match next() {
                    None => break,
                    Some(batch) => {
                        self.batch = Some(batch.map_err(|e| damaged(&self.origin, &e))?);
                        self.used = 0;
                        continue;
                    }
                }
            };
            let count = (batch.num_rows() - self.used).min(max_rows.max(1) - block.len());
            if batch.num_columns() != self.plans.len() {
                return Err(refuse(
                    &self.origin,
                    0,
                    None,
                    "batches of different columns",
                    "the same columns throughout",
                ));
            }
            if count > 0 {
                let slice = batch.slice(self.used, count);
                self.append(&slice, block)?;
                self.used += count;
                self.rows_read += count as u64;
            } else {
                self.batch = None;
            }
        }
        if self.rows_read == 0 {
            return Err(refuse(&self.origin, 0, None, "columns and no rows", "at least one row"));
        }
        Ok(!block.is_empty())
    }

    fn append(&self, batch: &RecordBatch, block: &mut RecordBlock) -> Result<()> {
        let first = block.len();
        let fresh = block.oddities.len();
        block.push_table_rows(batch.num_rows());
        for (column, (array, plan)) in batch.columns().iter().zip(&self.plans).enumerate() {
            match plan {
                Plan::Number { steps, scale } => {
                    let array = self.cast_through(array, steps, column)?;
                    append_numbers(&array, *scale, block, first, column);
                }
                Plan::Text(kind) => {
                    let array = self.cast_through(array, std::slice::from_ref(kind), column)?;
                    append_texts(&array, block, first, column);
                }
                Plan::Missing => (0..batch.num_rows()).for_each(|i| block.mark_missing(first + i, column)),
            }
        }
        block.sort_oddities(fresh);
        Ok(())
    }

    fn cast_through(&self, array: &ArrayRef, steps: &[DataType], column: usize) -> Result<ArrayRef> {
        let mut array = array.clone();
        for step in steps.iter().filter(|step| *step != &array.data_type().clone()) {
            array = cast(&array, step).map_err(|e| {
                let name = self.schema.column_name(column);
                refuse(
                    &self.origin,
                    self.rows_read + 1,
                    Some(&name),
                    format!("a value that does not fit ({e})"),
                    "numbers",
                )
            })?;
        }
        Ok(array)
    }
}

fn append_numbers(array: &ArrayRef, scale: f64, block: &mut RecordBlock, first: usize, column: usize) {
    let Some(array) = array.as_primitive_opt::<Float64Type>() else { return };
    let cols = block.cells.cols();
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    for (i, &value) in array.values().iter().enumerate() {
        if value.is_nan() || nulls.is_some_and(|nulls| nulls.is_null(i)) {
            block.mark_missing(first + i, column);
        } else if let crate::rows::RowBlock::Dense { data, .. } = &mut block.cells {
            data[(first + i) * cols + column] = if scale == 1.0 { value } else { value * scale };
        }
    }
}

fn append_texts(array: &ArrayRef, block: &mut RecordBlock, first: usize, column: usize) {
    let cols = block.cells.cols();
    let mut put = |i: usize, text: Option<&str>| match text.map_or(Cell::Missing, |text| number::cell(text.as_bytes()))
    {
        Cell::Number(value) => {
            if let crate::rows::RowBlock::Dense { data, .. } = &mut block.cells {
                data[(first + i) * cols + column] = value;
            }
        }
        Cell::Missing => block.mark_missing(first + i, column),
        Cell::Text => block.mark_text(first + i, column, text.unwrap_or_default().trim_matches([' ', '\t'])),
    };
    if let Some(strings) = array.as_string_opt::<i32>() {
        strings.iter().enumerate().for_each(|(i, text)| put(i, text));
    } else if let Some(strings) = array.as_string_opt::<i64>() {
        strings.iter().enumerate().for_each(|(i, text)| put(i, text));
    } else if let Some(strings) = array.as_string_view_opt() {
        strings.iter().enumerate().for_each(|(i, text)| put(i, text));
    }
}

/// How to turn a type into numbers or text; `None` if it cannot be.
fn plan(kind: &DataType) -> Option<Plan> {
    use DataType::*;
    let through = |step: DataType, scale: f64| Some(Plan::Number { steps: vec![step, Float64], scale });
    match kind {
        Null => Some(Plan::Missing),
        Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 | Float16 | Float32 | Float64 | Boolean
        | Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..) => {
            Some(Plan::Number { steps: vec![Float64], scale: 1.0 })
        }
        Utf8 | LargeUtf8 | Utf8View => Some(Plan::Text(kind.clone())),
        Date32 => through(Int32, 1.0),
        Date64 => through(Int64, 1.0 / 86_400_000.0),
        Time32(unit) => through(Int32, seconds(unit)),
        Time64(unit) | Timestamp(unit, _) | Duration(unit) => through(Int64, seconds(unit)),
        Dictionary(_, value) => match plan(value)? {
            Plan::Number { mut steps, scale } => {
                steps.insert(0, value.as_ref().clone());
                Some(Plan::Number { steps, scale })
            }
            other => Some(other),
        },
        _ => None,
    }
}

fn seconds(unit: &TimeUnit) -> f64 {
    match unit {
        TimeUnit::Second => 1.0,
        TimeUnit::Millisecond => 1e-3,
        TimeUnit::Microsecond => 1e-6,
        TimeUnit::Nanosecond => 1e-9,
    }
}

fn damaged(origin: &str, error: &ArrowError) -> Error {
    refuse(origin, 0, None, format!("damaged data ({error})"), "a complete file")
}

/// Reads Arrow IPC, in the file or the stream format.
pub(super) struct ArrowSource {
    batches: Batches,
    reader: Reader,
    batches_read: usize,
}

enum Reader {
    File(Box<FileReader<BufReader<File>>>),
    Stream(Box<StreamReader<Input>>),
}

impl ArrowSource {
    /// Opens Arrow IPC; the file format needs a regular file, the stream format any input.
    pub fn open(mut input: Input) -> Result<Self> {
        let origin = input.origin().to_owned();
        let reader = if !input.peek(6)?.starts_with(b"ARROW1") {
            let reader = StreamReader::try_new(input, None).map_err(|e| damaged(&origin, &e))?;
            Reader::Stream(Box::new(reader))
        } else if let Some(path) = input.plain_path() {
            let file = File::open(path).map_err(|e| Error::io(path, "open", e))?;
            let reader = FileReader::try_new(BufReader::new(file), None).map_err(|e| damaged(&origin, &e))?;
            Reader::File(Box::new(reader))
        } else {
            let expected = "a plain file on disk, or the Arrow stream format";
            return Err(refuse(&origin, 0, None, "the Arrow file format, which cannot be read as it comes", expected));
        };
        let schema = match &reader {
            Reader::File(reader) => reader.schema(),
            Reader::Stream(reader) => reader.schema(),
        };
        Ok(Self { batches: Batches::new(&origin, schema.fields())?, reader, batches_read: 0 })
    }
}

impl RecordSource for ArrowSource {
    fn origin(&self) -> &str {
        &self.batches.origin
    }

    fn schema(&self) -> &Schema {
        &self.batches.schema
    }

    fn read(&mut self, block: &mut RecordBlock, max_rows: usize) -> Result<bool> {
        let Self { batches, reader, batches_read } = self;
        batches.read(block, max_rows, || {
            let batch = match reader {
                Reader::File(reader) => reader.next(),
                Reader::Stream(reader) => reader.next(),
            };
            *batches_read += usize::from(batch.is_some());
            batch
        })
    }

    fn rereadable(&self) -> bool {
        match &self.reader {
            Reader::File(_) => true,
            Reader::Stream(reader) => reader.get_ref().rereadable(),
        }
    }

    fn rewind(&mut self) -> Result<()> {
        match &mut self.reader {
            Reader::File(reader) => reader.set_index(0).map_err(|e| damaged(&self.batches.origin, &e))?,
            Reader::Stream(reader) => {
                let input = reader.get_mut().reopen()?;
                **reader = StreamReader::try_new(input, None).map_err(|e| damaged(&self.batches.origin, &e))?;
            }
        }
        self.batches_read = 0;
        self.batches.rewind();
        Ok(())
    }

    fn progress(&self) -> Option<f64> {
        match &self.reader {
            Reader::File(reader) => Some(self.batches_read as f64 / reader.num_batches().max(1) as f64),
            Reader::Stream(reader) => reader.get_ref().progress(),
        }
    }
}
