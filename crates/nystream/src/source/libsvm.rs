//! LIBSVM (svmlight) files: a label, then `index:value` pairs, indices from 1 and increasing.
//!
//! Blank lines and everything after `#` are skipped. Zeros written out are not stored, but count for the width. A label
//! may be text (an oddity of [`LABEL_COLUMN`]); query numbers (`qid:`) and lists of labels are refused.

use super::input::Input;
use super::number::{self, Cell};
use super::{LABEL_COLUMN, RecordBlock, RecordSource, Schema, refuse, shown};
use crate::error::{Error, Result};
use crate::rows::RowBlock;

/// The largest index: one less than fits, so that the width fits too.
const LARGEST_INDEX: u64 = u32::MAX as u64 - 1;

/// Reads LIBSVM files.
pub(super) struct LibsvmSource {
    input: Input,
    schema: Schema,
    rows_read: u64,
}

impl LibsvmSource {
    /// Opens a LIBSVM file.
    pub fn open(input: Input) -> Self {
        Self { input, schema: Schema::Labelled { width: 0 }, rows_read: 0 }
    }

    fn width(&self) -> usize {
        match self.schema {
            Schema::Labelled { width } => width,
            Schema::Table { .. } => 0,
        }
    }
}

impl RecordSource for LibsvmSource {
    fn origin(&self) -> &str {
        self.input.origin()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read(&mut self, block: &mut RecordBlock, max_rows: usize) -> Result<bool> {
        let mut width = self.width();
        block.start_labelled(self.rows_read + 1, width);
        while block.len() < max_rows.max(1) {
            let Some(line) = self.input.next_line()? else { break };
            let line = match memchr::memchr(b'#', line) {
                Some(comment) => &line[..comment],
                None => line,
            };
            let line = number::trim(line);
            if line.is_empty() {
                continue;
            }
            match push_line(line, block) {
                Ok(row_width) => width = width.max(row_width),
                Err(fault) => return Err(fault.at(self.input.origin(), self.rows_read + 1)),
            }
            self.rows_read += 1;
        }
        if self.rows_read == 0 {
            return Err(refuse(self.input.origin(), 0, None, "an empty file", "at least one row"));
        }
        self.schema = Schema::Labelled { width };
        block.cells.set_cols(width);
        Ok(!block.is_empty())
    }

    fn rereadable(&self) -> bool {
        self.input.rereadable()
    }

    fn rewind(&mut self) -> Result<()> {
        self.rows_read = 0;
        self.input.rewind()
    }

    fn progress(&self) -> Option<f64> {
        self.input.progress()
    }
}

/// What is wrong with a line, and in which feature.
struct Fault {
    column: Option<String>,
    found: String,
    expected: String,
}

impl Fault {
    fn new(found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { column: None, found: found.into(), expected: expected.into() }
    }

    fn at(self, origin: &str, row: u64) -> Error {
        refuse(origin, row, self.column.as_deref(), self.found, self.expected)
    }
}

/// The next word of a line, and what follows it.
fn split_word(line: &[u8]) -> (&[u8], &[u8]) {
    let end = memchr::memchr2(b' ', b'\t', line).unwrap_or(line.len());
    (&line[..end], number::trim(&line[end..]))
}

/// Adds a trimmed line that is not blank; returns the width it needs.
fn push_line(line: &[u8], block: &mut RecordBlock) -> Result<usize, Fault> {
    let row = block.len();
    let (label, mut rest) = split_word(line);
    if memchr::memchr2(b':', b',', label).is_some() {
        let what = if label.contains(&b':') { "no label" } else { "several labels" };
        return Err(Fault::new(format!("{what} ('{}')", shown(label)), "one label, then index:value pairs"));
    }
    let RowBlock::Sparse { offsets, indices, values, .. } = &mut block.cells else {
        return Err(Fault::new("a dense block", "a sparse one")); // start_labelled has made it sparse
    };
    let mut previous = 0u64;
    let mut missing = false;
    while !rest.is_empty() {
        let (index, value, after) = match split_pair(rest) {
            Some((index, value, length)) => (index, value, &rest[length..]),
            None => odd_pair(rest)?,
        };
        if index <= previous {
            return Err(out_of_order(index, previous));
        }
        previous = index;
        if value != 0.0 {
            missing |= value.is_nan();
            indices.push((index - 1) as u32);
            values.push(value);
        }
        rest = number::trim(after);
    }
    offsets.push(indices.len());
    if missing {
        let start = offsets[row];
        let columns: Vec<usize> =
            (start..values.len()).filter(|&i| values[i].is_nan()).map(|i| indices[i] as usize).collect();
        columns.into_iter().for_each(|column| block.mark_missing(row, column));
    }
    push_label(label, row, block)?;
    Ok(previous as usize)
}

fn push_label(label: &[u8], row: usize, block: &mut RecordBlock) -> Result<(), Fault> {
    let value = match number::cell(label) {
        Cell::Number(value) => value,
        Cell::Missing => {
            block.mark_missing(row, LABEL_COLUMN);
            f64::NAN
        }
        Cell::Text => {
            let text = std::str::from_utf8(label)
                .map_err(|_| Fault::new(format!("bytes that are not UTF-8 in '{}'", shown(label)), "UTF-8 text"))?;
            block.mark_text(row, LABEL_COLUMN, text);
            f64::NAN
        }
    };
    block.labels.push(value);
    Ok(())
}

/// The `index:value` at the start of `bytes` and its length, if it is an ordinary one followed by a space or the end.
#[inline]
fn split_pair(bytes: &[u8]) -> Option<(u64, f64, usize)> {
    let mut index = 0u64;
    let mut at = 0;
    while let Some(digit) = bytes.get(at).map(|b| b.wrapping_sub(b'0')).filter(|d| *d < 10) {
        index = index * 10 + u64::from(digit);
        at += 1;
        if index > LARGEST_INDEX {
            return None;
        }
    }
    if at == 0 || bytes.get(at) != Some(&b':') {
        return None;
    }
    let (value, length) = number::prefix(&bytes[at + 1..])?;
    let end = at + 1 + length;
    matches!(bytes.get(end), None | Some(b' ' | b'\t')).then_some((index, value, end))
}

/// A pair with an unusual value (missing, infinite), or the error that says what it is instead.
#[cold]
fn odd_pair(bytes: &[u8]) -> Result<(u64, f64, &[u8]), Fault> {
    const PAIR: &str = "index:value pairs, indices from 1";
    let (word, after) = split_word(bytes);
    let Some(colon) = memchr::memchr(b':', word) else {
        return Err(Fault::new(format!("'{}'", shown(word)), PAIR));
    };
    let (index, value) = (&word[..colon], &word[colon + 1..]);
    if index == b"qid" {
        return Err(Fault::new("a query number (qid)", "index:value pairs only: ranking data is not supported"));
    }
    let index = match std::str::from_utf8(index).ok().and_then(|text| text.parse::<u64>().ok()) {
        Some(index) if index <= LARGEST_INDEX => index,
        _ => {
            return Err(Fault::new(format!("index '{}'", shown(index)), format!("an index from 1 to {LARGEST_INDEX}")));
        }
    };
    match number::cell(value) {
        Cell::Number(number) => Ok((index, number, after)),
        Cell::Missing => Ok((index, f64::NAN, after)),
        Cell::Text => Err(Fault {
            column: Some(index.to_string()),
            found: format!("'{}'", shown(value)),
            expected: "a number".to_owned(),
        }),
    }
}

#[cold]
fn out_of_order(index: u64, previous: u64) -> Fault {
    match index {
        0 => Fault::new("index 0", "indices from 1"),
        _ if index == previous => Fault::new(format!("index {index} twice"), "increasing indices"),
        _ => Fault::new(format!("index {index} after {previous}"), "increasing indices"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Item, assert_laws, error_of, read_all, text_source};
    use super::super::{Format, OpenOptions};
    use super::*;

    fn options() -> OpenOptions {
        OpenOptions { format: Some(Format::Libsvm), ..OpenOptions::default() }
    }

    fn refusal(text: &str) -> String {
        error_of(text_source(text, &options()))
    }

    const SMALL: &str = "# made by hand\n+1 1:0.5 3:-2e1\n\n-1\r\ncat 2:0 4:1 # a comment\n? 1:nan 2:inf\n";

    #[test]
    fn labels_features_comments_and_empty_rows() {
        let mut source = text_source(SMALL, &options()).unwrap();
        let rows = read_all(source.as_mut(), 2);
        assert_eq!(source.schema(), &Schema::Labelled { width: 4 });
        let number = |v: f64| Item::Number(v.to_bits());
        assert_eq!(rows[0], [(0, number(0.5)), (2, number(-20.0)), (LABEL_COLUMN, number(1.0))]);
        assert_eq!(rows[1], [(LABEL_COLUMN, number(-1.0))]);
        assert_eq!(rows[2], [(3, number(1.0)), (LABEL_COLUMN, Item::Text("cat".into()))]);
        assert_eq!(rows[3], [(0, Item::Missing), (1, number(f64::INFINITY)), (LABEL_COLUMN, Item::Missing)]);
        assert_laws(SMALL.as_bytes(), ".libsvm", &OpenOptions::default());
    }

    #[test]
    fn a_million_columns_and_the_largest_index() {
        let mut text = String::from("1");
        (1..=1_000_000).for_each(|i| text.push_str(&format!(" {i}:{}", i % 7)));
        text.push_str(&format!("\n-1 {LARGEST_INDEX}:3\n"));
        let mut source = text_source(&text, &options()).unwrap();
        let mut block = RecordBlock::default();
        assert!(source.read(&mut block, 1).unwrap());
        assert_eq!(source.schema(), &Schema::Labelled { width: 1_000_000 });
        assert_eq!(block.cells.cols(), 1_000_000);
        assert!(source.read(&mut block, 1).unwrap());
        assert_eq!(source.schema(), &Schema::Labelled { width: LARGEST_INDEX as usize });
    }

    #[test]
    fn bad_lines_are_refused_with_their_row() {
        for (text, parts) in [
            ("", &["empty file", "at least one row"][..]),
            ("# nothing\n\n", &["empty file"]),
            ("1 1:1\n1 0:1", &["row 2", "index 0", "indices from 1"]),
            ("1 1:1\n\n1 3:1 2:1", &["row 2", "index 2 after 3", "increasing"]),
            ("1 2:1 2:1", &["row 1", "index 2 twice", "increasing"]),
            ("1 qid:3 1:1", &["row 1", "qid", "not supported"]),
            ("1,2 1:1", &["row 1", "several labels ('1,2')"]),
            ("1:1 2:2", &["row 1", "no label ('1:1')"]),
            ("1 1:abc", &["row 1", "column '1'", "'abc'", "a number"]),
            ("1 1:1 word", &["row 1", "'word'", "index:value"]),
            ("1 x:1", &["row 1", "index 'x'"]),
            ("1 4294967295:1", &["index '4294967295'", "4294967294"]),
            ("1 99999999999999999999999:1", &["index '99999999999999999999999'"]),
        ] {
            let message = refusal(text);
            assert!(parts.iter().all(|part| message.contains(part)), "{text:?} gave {message:?}");
        }
    }
}
