//! JSON lines: one flat object a line; the keys of the first one are the columns.
//!
//! Later objects may have their keys in any order; an absent key or `null` is a missing cell, `true` and `false` are 1
//! and 0, strings are read as cells of a CSV file would be (so `"3.5"` is a number and `"NA"` is missing). `NaN` and
//! `Infinity`, which some writers emit, are taken as missing and infinite. Nested values and new keys are refused.
//!
//! The objects are walked by hand rather than by `serde_json`, whose default float parser may be off in the last bit:
//! the same number must come out of every format. Strings with escapes are left to it.

use std::collections::HashMap;

use super::input::Input;
use super::number::{self, Cell};
use super::record::TableRow;
use super::{RecordBlock, RecordSource, Schema, refuse, refuse_duplicates, shown};
use crate::error::{Error, Result};

/// Reads JSON lines.
pub(super) struct JsonLinesSource {
    input: Input,
    schema: Schema,
    columns: Columns,
    rows_read: u64,
}

/// Finds columns by key.
struct Columns {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    /// The row (from 1) that has set each column last.
    set_by: Vec<u64>,
    scratch: Scratch,
}

/// Strings with escapes, decoded.
#[derive(Default)]
struct Scratch {
    key: String,
    value: String,
}

/// A value of a flat object.
enum Scalar<'a> {
    Number(f64),
    Missing,
    Text(&'a str),
}

/// What is wrong with a line, and in which column.
struct Fault {
    column: Option<String>,
    found: String,
    expected: &'static str,
}

impl Fault {
    fn new(found: impl Into<String>, expected: &'static str) -> Self {
        Self { column: None, found: found.into(), expected }
    }

    fn at(self, origin: &str, row: u64) -> Error {
        refuse(origin, row, self.column.as_deref(), self.found, self.expected)
    }
}

impl JsonLinesSource {
    /// Opens JSON lines; looks at the first object.
    pub fn open(mut input: Input) -> Result<Self> {
        let Some(line) = next_object(&mut input)? else {
            return Err(refuse(input.origin(), 0, None, "an empty file", "at least one row"));
        };
        let mut names = Vec::new();
        let walked = walk(line, &mut Scratch::default(), |key, _| {
            names.push(key.to_owned());
            Ok(())
        });
        if let Err(fault) = walked {
            return Err(fault.at(input.origin(), 1));
        }
        if names.is_empty() {
            return Err(refuse(input.origin(), 1, None, "an object without keys", "at least one column"));
        }
        refuse_duplicates(input.origin(), &names)?;
        input.unread();
        let columns = Columns {
            numbers: names.iter().cloned().enumerate().map(|(j, name)| (name, j)).collect(),
            set_by: vec![0; names.len()],
            names: names.clone(),
            scratch: Scratch::default(),
        };
        Ok(Self { input, schema: Schema::Table { names, named: true }, columns, rows_read: 0 })
    }
}

impl RecordSource for JsonLinesSource {
    fn origin(&self) -> &str {
        self.input.origin()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read(&mut self, block: &mut RecordBlock, max_rows: usize) -> Result<bool> {
        block.start_table(self.rows_read + 1, self.columns.names.len());
        while block.len() < max_rows.max(1) {
            let Some(line) = next_object(&mut self.input)? else { break };
            let fresh = block.oddities.len();
            if let Err(fault) = self.columns.fill(line, self.rows_read + 1, &mut block.push_table_row()) {
                return Err(fault.at(self.input.origin(), self.rows_read + 1));
            }
            block.sort_oddities(fresh);
            self.rows_read += 1;
        }
        Ok(!block.is_empty())
    }

    fn rereadable(&self) -> bool {
        self.input.rereadable()
    }

    fn rewind(&mut self) -> Result<()> {
        self.rows_read = 0;
        self.columns.set_by.fill(0);
        self.input.rewind()
    }

    fn progress(&self) -> Option<f64> {
        self.input.progress()
    }
}

/// The next line that is not blank.
fn next_object(input: &mut Input) -> Result<Option<&[u8]>> {
    loop {
        match input.next_line()? {
            None => return Ok(None),
            Some(line) if line.trim_ascii().is_empty() => {}
            Some(_) => break,
        }
    }
    Ok(Some(input.last_record()))
}

impl Columns {
    /// Puts the values of a line into `row`, which is row `number` of the source.
    fn fill(&mut self, line: &[u8], number: u64, row: &mut TableRow) -> Result<(), Fault> {
        let Self { names, numbers, set_by, scratch } = self;
        let mut count = 0;
        walk(line, scratch, |key, value| {
            // Nearly always the keys come in the order of the first object.
            let column = match names.get(count) {
                Some(name) if name == key => count,
                _ => *numbers.get(key).ok_or_else(|| Fault {
                    column: Some(key.to_owned()),
                    found: "a new key".to_owned(),
                    expected: "the keys of the first object only",
                })?,
            };
            if std::mem::replace(&mut set_by[column], number) == number {
                let found = "the same key twice".to_owned();
                return Err(Fault { column: Some(key.to_owned()), found, expected: "every key once" });
            }
            match value {
                Scalar::Number(value) => row.number(column, value),
                Scalar::Missing => row.missing(column),
                Scalar::Text(text) => row.text(column, text),
            }
            count += 1;
            Ok(())
        })?;
        if count < names.len() {
            (0..names.len()).filter(|&j| set_by[j] != number).for_each(|j| row.missing(j));
        }
        Ok(())
    }
}

/// Calls `visit` with every key and value of a flat object.
fn walk<F>(line: &[u8], scratch: &mut Scratch, mut visit: F) -> Result<(), Fault>
where
    F: FnMut(&str, Scalar) -> Result<(), Fault>,
{
    let mut cursor = Cursor { bytes: line, at: 0 };
    if cursor.peek() != Some(b'{') {
        return Err(Fault::new(format!("'{}'", shown(line)), "one JSON object a line"));
    }
    cursor.at += 1;
    let mut closed = cursor.take(b'}');
    while !closed {
        let key = cursor.string(&mut scratch.key)?;
        if !cursor.take(b':') {
            return Err(cursor.fault("a colon after the key"));
        }
        let value =
            cursor.value(&mut scratch.value).map_err(|fault| Fault { column: Some(key.to_owned()), ..fault })?;
        visit(key, value)?;
        closed = cursor.take(b'}');
        if !closed && !cursor.take(b',') {
            return Err(cursor.fault("a comma or the end of the object"));
        }
    }
    match cursor.peek() {
        None => Ok(()),
        Some(_) => Err(cursor.fault("nothing after the object on its line")),
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The next byte that is not white space, left in place.
    fn peek(&mut self) -> Option<u8> {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\r')) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// Steps over `byte` if it comes next.
    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn fault(&self, expected: &'static str) -> Fault {
        match &self.bytes[self.at..] {
            [] => Fault::new("the end of the line", expected),
            rest => Fault::new(format!("'{}'", shown(rest)), expected),
        }
    }

    /// A string; `scratch` holds it if it has escapes.
    fn string<'s>(&mut self, scratch: &'s mut String) -> Result<&'s str, Fault>
    where
        'a: 's,
    {
        if self.peek() != Some(b'"') {
            return Err(self.fault("a string in double quotes"));
        }
        let start = self.at;
        let mut end = start + 1;
        let mut escapes = false;
        loop {
            match memchr::memchr2(b'"', b'\\', &self.bytes[end.min(self.bytes.len())..]) {
                None => return Err(self.fault("a closing quote")),
                Some(more) if self.bytes[end + more] == b'"' => {
                    end += more + 1;
                    break;
                }
                Some(more) => {
                    escapes = true;
                    end += more + 2;
                }
            }
        }
        self.at = end;
        let quoted = &self.bytes[start..end];
        if escapes {
            *scratch = serde_json::from_slice(quoted)
                .map_err(|_| Fault::new(format!("'{}'", shown(quoted)), "a valid JSON string"))?;
            return Ok(scratch);
        }
        std::str::from_utf8(&quoted[1..quoted.len() - 1])
            .map_err(|_| Fault::new(format!("bytes that are not UTF-8 in '{}'", shown(quoted)), "UTF-8 text"))
    }

    fn value<'s>(&mut self, scratch: &'s mut String) -> Result<Scalar<'s>, Fault>
    where
        'a: 's,
    {
        match self.peek() {
            Some(b'"') => {
                let text = self.string(scratch)?;
                return Ok(match number::cell(text.as_bytes()) {
                    Cell::Number(value) => Scalar::Number(value),
                    Cell::Missing => Scalar::Missing,
                    Cell::Text => Scalar::Text(text),
                });
            }
            Some(b'{' | b'[') => return Err(self.fault("a flat object: numbers, strings, true, false or null")),
            _ => {}
        }
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|b| matches!(b, b',' | b'}' | b' ' | b'\t')).unwrap_or(rest.len());
        let word = &rest[..length];
        let value = match word {
            b"null" | b"NaN" => Scalar::Missing,
            b"true" => Scalar::Number(1.0),
            b"false" => Scalar::Number(0.0),
            b"Infinity" => Scalar::Number(f64::INFINITY),
            b"-Infinity" => Scalar::Number(f64::NEG_INFINITY),
            _ => match number::prefix(word) {
                Some((value, used)) if used == length => Scalar::Number(value),
                _ => return Err(self.fault("a number, string, true, false or null")),
            },
        };
        self.at += length;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Item, assert_laws, error_of, text_source};
    use super::super::{Format, OpenOptions};

    const SMALL: &str = concat!(
        "{\"a\": 1.5, \"b\":true,\"c\":\"red\"}\r\n\n",
        "{\"c\":\"bl\\u00fce \\\"x\\\"\",\"a\":-2e3}\n",
        "  { } \n",
        "{\"b\":null,\"c\":\"3.25\",\"a\":NaN}\n",
        "{\"c\":\"NA\",\"b\":-Infinity,\"\\u0061\":0.1}",
    );

    #[test]
    fn columns_by_key_in_any_order() {
        let number = |v: f64| Item::Number(v.to_bits());
        let rows = assert_laws(SMALL.as_bytes(), ".jsonl", &OpenOptions::default());
        let row = |items: [Item; 3]| items.into_iter().enumerate().collect::<Vec<_>>();
        assert_eq!(rows[0], row([number(1.5), number(1.0), Item::Text("red".into())]));
        assert_eq!(rows[1], row([number(-2000.0), Item::Missing, Item::Text("blüe \"x\"".into())]));
        assert_eq!(rows[2], row([Item::Missing, Item::Missing, Item::Missing]));
        assert_eq!(rows[3], row([Item::Missing, Item::Missing, number(3.25)]));
        assert_eq!(rows[4], row([number(0.1), number(f64::NEG_INFINITY), Item::Missing]));
        assert_eq!(rows.len(), 5);
    }

    #[test]
    fn bad_lines_are_refused_with_row_and_key() {
        let options = OpenOptions { format: Some(Format::JsonLines), ..OpenOptions::default() };
        for (text, parts) in [
            ("", &["empty file", "at least one row"][..]),
            ("{}", &["without keys"]),
            ("{\"a\":1,\"a\":2}", &["column 'a'", "twice"]),
            ("{\"a\":1}\n{\"a\":2,\"b\":3}", &["row 2", "column 'b'", "a new key"]),
            ("{\"a\":1,\"b\":1}\n{\"a\":2,\"a\":3}", &["row 2", "column 'a'", "twice"]),
            ("{\"a\":1}\n{\"a\":[1]}", &["row 2", "column 'a'", "'[1]}'", "flat"]),
            ("{\"a\":{\"b\":1}}", &["row 1", "column 'a'", "flat"]),
            ("{\"a\":1}\n\n{\"a\":abc}", &["row 2", "'abc}'"]),
            ("{\"a\":1", &["row 1", "end of the line"]),
            ("{\"a", &["row 1", "closing quote"]),
            ("{\"a\\", &["row 1", "closing quote"]),
            ("{\"a\":\"\\q\"}", &["valid JSON string"]),
            ("{\"a\" 1}", &["colon"]),
            ("{\"a\":}", &["'}'"]),
            ("{\"a\":1} {\"a\":2}", &["nothing after the object"]),
            ("[1,2]", &["'[1,2]'", "one JSON object a line"]),
        ] {
            let message = error_of(text_source(text, &options));
            assert!(parts.iter().all(|part| message.contains(part)), "{text:?} gave {message:?}");
        }
    }
}
