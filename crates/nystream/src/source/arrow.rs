//! Arrow: record batches into record blocks, and Arrow IPC files and streams.
//!
//! Numbers of every width become doubles, booleans 1 and 0, nulls and NaN missing; strings (dictionary-encoded or not)
//! are read as cells of a CSV file would be. Dates count days since 1970, timestamps seconds since then, times of day
//! and durations seconds, whatever unit they are stored in. Other types are refused by column name.

use std::fmt::Display;
use std::fs::File;
use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};

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
                self.batch = guarded(&self.origin, || next().transpose())?;
                self.used = 0;
                if self.batch.is_none() {
                    break;
                }
                continue;
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
        for step in steps {
            if array.data_type() == step {
                continue;
            }
            array = cast(&array, step).map_err(|e| {
                let name = self.schema.column_name(column);
                let found = format!("a value that does not fit ({e})");
                refuse(&self.origin, self.rows_read + 1, Some(&name), found, "numbers")
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

/// Runs a decoder. Those of Arrow and Parquet panic on some damaged files (lengths that point beyond the data); that
/// too becomes an error.
pub(super) fn guarded<T, E: Display>(origin: &str, decode: impl FnOnce() -> Result<T, E>) -> Result<T> {
    // After an error nothing is read from the decoder any more, so its broken state cannot be seen.
    let reason = match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "a length or offset beyond the data".to_owned(),
    };
    Err(refuse(origin, 0, None, format!("damaged data ({reason})"), "a complete file"))
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
            let reader = guarded(&origin, || StreamReader::try_new(input, None))?;
            Reader::Stream(Box::new(reader))
        } else if let Some(path) = input.plain_path() {
            let file = File::open(path).map_err(|e| Error::io(path, "open", e))?;
            let reader = guarded(&origin, || FileReader::try_new(BufReader::new(file), None))?;
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
            Reader::File(reader) => guarded(&self.batches.origin, || reader.set_index(0))?,
            Reader::Stream(reader) => {
                let input = reader.get_mut().reopen()?;
                **reader = guarded(&self.batches.origin, || StreamReader::try_new(input, None))?;
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

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::Arc;

    use arrow_array::*;
    use arrow_ipc::writer::{FileWriter, StreamWriter};
    use arrow_schema::Field;

    use super::super::testing::{Item, Record, assert_laws, assert_source_laws, error_of, file_with, read_all};
    use super::super::{OpenOptions, open, open_reader};
    use super::*;

    fn number(value: f64) -> Item {
        Item::Number(value.to_bits())
    }

    /// A batch with one column of every kind.
    fn mixed() -> RecordBatch {
        let floats: ArrayRef = Arc::new(Float32Array::from(vec![Some(0.5), None, Some(f32::NAN)]));
        let words: StringArray = vec![Some("red"), None, Some("4.5")].into_iter().collect();
        let codes: DictionaryArray<types::Int8Type> = vec![Some("a"), Some("b"), Some("NA")].into_iter().collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("i8", Arc::new(Int8Array::from(vec![-1, 2, 3]))),
            ("u64", Arc::new(UInt64Array::from(vec![1, u64::MAX, 3]))),
            ("f16", cast(&floats, &DataType::Float16).unwrap()),
            ("f32", floats),
            ("f64", Arc::new(Float64Array::from(vec![0.1, f64::INFINITY, -0.0]))),
            ("flag", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
            ("wide", cast(&words, &DataType::LargeUtf8).unwrap()),
            ("view", cast(&words, &DataType::Utf8View).unwrap()),
            ("word", Arc::new(words)),
            ("code", Arc::new(codes)),
            ("price", Arc::new(Decimal128Array::from(vec![125, -50, 0]).with_precision_and_scale(9, 2).unwrap())),
            ("day", Arc::new(Date32Array::from(vec![Some(1), None, Some(-1)]))),
            ("date", Arc::new(Date64Array::from(vec![86_400_000, 0, 43_200_000]))),
            ("time", Arc::new(TimestampMillisecondArray::from(vec![1500, 0, -500]))),
            ("none", Arc::new(NullArray::new(3))),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
    }

    fn expected() -> Vec<Record> {
        use Item::Missing;
        let word = |text: &str| Item::Text(text.to_owned());
        let columns: Vec<[Item; 3]> = vec![
            [-1.0, 2.0, 3.0].map(number),
            [1.0, u64::MAX as f64, 3.0].map(number),
            [number(0.5), Missing, Missing],
            [number(0.5), Missing, Missing],
            [0.1, f64::INFINITY, -0.0].map(number),
            [number(1.0), number(0.0), Missing],
            [word("red"), Missing, number(4.5)],
            [word("red"), Missing, number(4.5)],
            [word("red"), Missing, number(4.5)],
            [word("a"), word("b"), Missing],
            [1.25, -0.5, 0.0].map(number),
            [number(1.0), Missing, number(-1.0)],
            [1.0, 0.0, 0.5].map(number),
            [1.5, 0.0, -0.5].map(number),
            [Missing, Missing, Missing],
        ];
        (0..3).map(|i| columns.iter().map(|column| column[i].clone()).enumerate().collect()).collect()
    }

    fn file_bytes(batches: &[RecordBatch]) -> Vec<u8> {
        let mut writer = FileWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.into_inner().unwrap()
    }

    fn stream_bytes(batches: &[RecordBatch]) -> Vec<u8> {
        let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.into_inner().unwrap()
    }

    #[test]
    fn every_type_comes_out_of_files_and_streams() {
        let batches = [mixed(), mixed().slice(0, 0), mixed()];
        let twice = [expected(), expected()].concat();
        let (_file, path) = file_with(&file_bytes(&batches), ".arrow");
        assert_eq!(assert_source_laws(open(&path, &OpenOptions::default()).unwrap().as_mut()), twice);
        assert_eq!(assert_laws(&stream_bytes(&batches), ".arrow", &OpenOptions::default()), twice);
        assert_eq!(assert_laws(&stream_bytes(&batches), "", &OpenOptions::default()), twice);
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn parquet_gives_the_same_records() {
        let batch = mixed();
        let (_file, path) = file_with(&parquet_bytes(&[batch.clone(), batch]), ".parquet");
        let mut source = open(&path, &OpenOptions::default()).unwrap();
        assert_eq!(assert_source_laws(source.as_mut()), [expected(), expected()].concat());
    }

    #[cfg(feature = "parquet")]
    fn parquet_bytes(batches: &[RecordBatch]) -> Vec<u8> {
        let mut writer = parquet::arrow::ArrowWriter::try_new(Vec::new(), batches[0].schema(), None).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.into_inner().unwrap()
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn parquet_needs_a_whole_file_on_disk() {
        let bytes = parquet_bytes(&[mixed()]);
        let piped = open_reader("pipe", Box::new(Cursor::new(bytes.clone())), &OpenOptions::default());
        assert!(error_of(piped).contains("pipe: the file: found Parquet data that comes as a stream"));
        let (_file, path) = file_with(&bytes[..bytes.len() / 2], ".parquet");
        assert!(error_of(open(&path, &OpenOptions::default())).contains("damaged data"));
    }

    #[test]
    fn the_file_format_needs_a_file_and_all_of_it() {
        let bytes = file_bytes(&[mixed()]);
        let piped = open_reader("pipe", Box::new(Cursor::new(bytes.clone())), &OpenOptions::default());
        assert!(error_of(piped).contains("Arrow stream format"));
        let (_file, path) = file_with(&bytes[..bytes.len() - 20], ".arrow");
        assert!(error_of(open(&path, &OpenOptions::default())).contains("damaged data"));
        let stream = stream_bytes(&[mixed()]);
        let cut =
            open_reader("pipe", Box::new(Cursor::new(stream[..stream.len() / 2].to_vec())), &OpenOptions::default());
        assert!(error_of(cut).contains("damaged data"));
    }

    #[test]
    fn nested_columns_empty_tables_and_equal_names_are_refused() {
        let refusal = |batch: &RecordBatch| {
            let bytes = Cursor::new(stream_bytes(std::slice::from_ref(batch)));
            error_of(open_reader("pipe", Box::new(bytes), &OpenOptions::default()))
        };
        let list = ListArray::from_iter_primitive::<types::Int32Type, _, _>([Some([Some(1)])]);
        let nested = RecordBatch::try_from_iter([("deep", Arc::new(list) as ArrayRef)]).unwrap();
        let message = refusal(&nested);
        assert!(message.contains("column 'deep'") && message.contains("List"), "{message}");
        assert!(refusal(&mixed().slice(0, 0)).contains("no rows"));
        let one: ArrayRef = Arc::new(Int8Array::from(vec![1]));
        let fields = vec![Field::new("x", DataType::Int8, false), Field::new("x", DataType::Int8, false)];
        let twice = RecordBatch::try_new(Arc::new(arrow_schema::Schema::new(fields)), vec![one.clone(), one]).unwrap();
        assert!(refusal(&twice).contains("column 'x'"));
    }

    /// Flips single bytes; each time there must be records or an error, not a panic.
    #[test]
    fn damaged_bytes_never_panic() {
        let mut kinds = vec![(file_bytes(&[mixed()]), ".arrow"), (stream_bytes(&[mixed()]), ".ipc")];
        #[cfg(feature = "parquet")]
        kinds.push((parquet_bytes(&[mixed()]), ".parquet"));
        let mut errors = 0;
        for (bytes, suffix) in &mut kinds {
            for at in (0..bytes.len()).step_by(7) {
                let old = bytes[at];
                bytes[at] ^= 1 << (at % 8);
                let (_file, path) = file_with(bytes, suffix);
                let result = catch_unwind(|| {
                    let mut source = open(&path, &OpenOptions::default())?;
                    let mut block = RecordBlock::default();
                    while source.read(&mut block, 2)? {}
                    Ok::<_, Error>(())
                });
                errors += usize::from(result.unwrap_or_else(|_| panic!("{suffix}: panic at byte {at}")).is_err());
                bytes[at] = old;
            }
            let (_file, path) = file_with(bytes, suffix);
            read_all(open(&path, &OpenOptions::default()).unwrap().as_mut(), 2);
        }
        assert!(errors > 0);
    }
}
