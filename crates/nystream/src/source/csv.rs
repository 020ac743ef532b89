//! Comma-separated values, and their relatives with other delimiters.
//!
//! Records are as in RFC 4180: cells may be quoted, quoted cells may hold delimiters, line ends and doubled quotes; lines
//! end in LF or CRLF. More lenient than that: spaces and tabs around a cell do not count, a quote inside an unquoted cell
//! is an ordinary character, blank lines are skipped. With a space as delimiter, runs of spaces and tabs count as one and
//! those at the ends of a line as none.
//!
//! A line without quotes is parsed straight from the input buffer, each number once, with no copy and no allocation.

use super::input::Input;
use super::number::{self, Cell};
use super::record::TableRow;
use super::{RecordBlock, RecordSource, Schema, refuse, refuse_duplicates, shown};
use crate::error::Result;

/// Reads delimited text.
pub(super) struct CsvSource {
    input: Input,
    schema: Schema,
    columns: usize,
    rows_read: u64,
    header: bool,
    splitter: Splitter,
}

/// Cuts a record into cells.
struct Splitter {
    /// The two bytes that delimit cells; the same one twice unless the delimiter is a space.
    delimiters: [u8; 2],
    /// Cells of a record with quotes, unquoted, end to end.
    unquoted: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
}

impl CsvSource {
    /// Opens delimited text. Without `header`, the first line is one if any of its cells is neither number nor missing.
    pub fn open(mut input: Input, header: Option<bool>, delimiter: Option<u8>) -> Result<Self> {
        let delimiter = match delimiter {
            Some(delimiter) => delimiter,
            None => guess_delimiter(first_line(&mut input)?),
        };
        let mut splitter = Splitter::new(delimiter);
        let Some(first) = splitter.next_record(&mut input)? else {
            return Err(refuse(input.origin(), 0, None, "an empty file", "at least one row"));
        };
        let mut names = Vec::new();
        let mut text = false;
        if !splitter.unquote(first) {
            return Err(refuse(input.origin(), 0, None, "a quote that is never closed", "a closing quote"));
        }
        let mut start = 0;
        for &end in &splitter.ends {
            let cell = &splitter.unquoted[start..end];
            text |= number::cell(cell) == Cell::Text;
            names.push(String::from_utf8_lossy(number::trim(cell)).into_owned());
            start = end;
        }
        let header = header.unwrap_or(text);
        for (j, name) in names.iter_mut().enumerate() {
            if !header || name.is_empty() {
                *name = (j + 1).to_string();
            }
        }
        refuse_duplicates(input.origin(), &names)?;
        if !header {
            input.unread();
        }
        let columns = names.len();
        Ok(Self { input, schema: Schema::Table { names, named: header }, columns, rows_read: 0, header, splitter })
    }
}

impl RecordSource for CsvSource {
    fn origin(&self) -> &str {
        self.input.origin()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read(&mut self, block: &mut RecordBlock, max_rows: usize) -> Result<bool> {
        block.start_table(self.rows_read + 1, self.columns);
        while block.len() < max_rows.max(1) {
            let mut row = block.push_table_row();
            let lead = leading_numbers(self.input.buffered(), self.splitter.delimiters, row.numbers());
            if lead.whole {
                self.input.consume(lead.length);
                self.rows_read += 1;
                continue;
            }
            // A fresh borrow of the buffer for every record; errors need the origin, so they are built afterwards.
            let Some(record) = self.splitter.next_record(&mut self.input)? else {
                block.pop_table_row();
                break;
            };
            if let Err(fault) = fill(&mut row, &mut self.splitter, record, lead, self.columns) {
                return Err(fault.at(self.input.origin(), self.rows_read + 1, &self.schema));
            }
            self.rows_read += 1;
        }
        if self.rows_read == 0 {
            return Err(refuse(self.input.origin(), 0, None, "a header and no rows", "at least one row"));
        }
        Ok(!block.is_empty())
    }

    fn rereadable(&self) -> bool {
        self.input.rereadable()
    }

    fn rewind(&mut self) -> Result<()> {
        self.input.rewind()?;
        self.rows_read = 0;
        if self.header {
            self.splitter.next_record(&mut self.input)?;
        }
        Ok(())
    }

    fn progress(&self) -> Option<f64> {
        self.input.progress()
    }
}

/// What is wrong with a record.
enum Fault {
    Ragged { found: usize, expected: usize },
    NotUtf8 { column: usize, cell: String },
    OpenQuote,
}

impl Fault {
    fn at(self, origin: &str, row: u64, schema: &Schema) -> crate::Error {
        match self {
            Self::Ragged { found, expected } => {
                refuse(origin, row, None, format!("{found} columns"), format!("{expected} columns"))
            }
            Self::NotUtf8 { column, cell } => refuse(
                origin,
                row,
                Some(&schema.column_name(column)),
                format!("bytes that are not UTF-8 in '{cell}'"),
                "UTF-8 text",
            ),
            Self::OpenQuote => refuse(origin, row, None, "a quote that is never closed", "a closing quote"),
        }
    }
}

/// How far a record is plain numbers.
#[derive(Clone, Copy)]
struct Lead {
    /// Numbers read; a delimiter or the end of the line follows each.
    cells: usize,
    /// Bytes they take, with the delimiters or the end of the line behind them.
    length: usize,
    /// Whether they are all cells of the row.
    whole: bool,
}

/// Reads numbers from the start of `bytes` into a row, as long as they stand there without quotes, the right number of
/// them. Nearly every row of a numeric file is read here, with one look at each byte.
///
/// A number is known to end only by what follows it, so the last bytes at hand can never be taken for a whole one.
fn leading_numbers(bytes: &[u8], [first, second]: [u8; 2], numbers: &mut [f64]) -> Lead {
    let last = numbers.len().wrapping_sub(1);
    let mut rest = bytes;
    for (column, cell) in numbers.iter_mut().enumerate() {
        let mut start = rest;
        while let [b' ', tail @ ..] = start {
            start = tail;
        }
        let tail = match number::prefix(start) {
            Some((value, length)) => {
                *cell = value;
                &start[length..]
            }
            None => &[],
        };
        rest = match tail {
            [b, tail @ ..] if column < last && (*b == first || *b == second) => tail,
            [b'\n', tail @ ..] | [b'\r', b'\n', tail @ ..] if column == last => tail,
            _ => {
                *cell = f64::NAN;
                return Lead { cells: column, length: bytes.len() - rest.len(), whole: false };
            }
        };
    }
    Lead { cells: numbers.len(), length: bytes.len() - rest.len(), whole: true }
}

/// Fills a row with a record, of which some leading numbers have been read already.
fn fill(row: &mut TableRow, splitter: &mut Splitter, record: &[u8], lead: Lead, columns: usize) -> Result<(), Fault> {
    if memchr::memchr(b'"', &record[lead.length..]).is_none() {
        return fill_plain(row, splitter.delimiters, record, lead, columns);
    }
    if !splitter.unquote(record) {
        return Err(Fault::OpenQuote);
    }
    if splitter.ends.len() != columns {
        return Err(Fault::Ragged { found: splitter.ends.len(), expected: columns });
    }
    let mut start = 0;
    for (column, &end) in splitter.ends.iter().enumerate() {
        let cell = &splitter.unquoted[start..end];
        put(row, column, number::cell(cell), cell)?;
        start = end;
    }
    Ok(())
}

/// A record without quotes: numbers are parsed where they stand.
fn fill_plain(row: &mut TableRow, delimiters: [u8; 2], record: &[u8], lead: Lead, columns: usize) -> Result<(), Fault> {
    let [first, second] = delimiters;
    let runs = first == b' ';
    let mut rest = &record[lead.length..];
    if runs {
        rest = number::trim(rest);
    }
    let mut column = lead.cells;
    // Spaces behind the last number of a line delimit nothing.
    let mut more = !(runs && rest.is_empty());
    while more {
        while let [b' ', tail @ ..] = rest {
            rest = tail;
        }
        let (kind, length) = match number::prefix(rest) {
            Some((value, length)) if rest.get(length).is_none_or(|b| *b == first || *b == second) => {
                (Cell::Number(value), length)
            }
            _ => {
                let length = memchr::memchr2(first, second, rest).unwrap_or(rest.len());
                (number::cell(&rest[..length]), length)
            }
        };
        if column < columns {
            put(row, column, kind, &rest[..length])?;
        }
        column += 1;
        more = length < rest.len();
        rest = rest.get(length + 1..).unwrap_or_default();
        if runs {
            rest = number::trim(rest);
        }
    }
    if column != columns {
        return Err(Fault::Ragged { found: column, expected: columns });
    }
    Ok(())
}

#[inline]
fn put(row: &mut TableRow, column: usize, kind: Cell, cell: &[u8]) -> Result<(), Fault> {
    match kind {
        Cell::Number(value) => row.number(column, value),
        Cell::Missing => row.missing(column),
        Cell::Text => match std::str::from_utf8(number::trim(cell)) {
            Ok(text) => row.text(column, text),
            Err(_) => return Err(Fault::NotUtf8 { column, cell: shown(cell) }),
        },
    }
    Ok(())
}

/// Where a scan for the end of a record stands.
#[derive(Clone, Copy, PartialEq)]
enum Scan {
    CellStart,
    Unquoted,
    Quoted,
    /// Just after a quote within a quoted cell: it closes the cell, or doubles as a character.
    Closing,
}

impl Scan {
    fn step(self, byte: u8, delimiters: [u8; 2]) -> Self {
        let ends_cell = delimiters.contains(&byte) || byte == b'\n';
        match self {
            Self::CellStart if byte == b'"' => Self::Quoted,
            Self::CellStart if byte == b' ' => Self::CellStart,
            Self::Quoted if byte == b'"' => Self::Closing,
            Self::Quoted => Self::Quoted,
            Self::Closing if byte == b'"' => Self::Quoted,
            _ if ends_cell => Self::CellStart,
            _ => Self::Unquoted,
        }
    }
}

impl Splitter {
    fn new(delimiter: u8) -> Self {
        let delimiters = if delimiter == b' ' { [b' ', b'\t'] } else { [delimiter; 2] };
        Self { delimiters, unquoted: Vec::new(), ends: Vec::new() }
    }

    /// The next record that is not blank.
    fn next_record<'i>(&self, input: &'i mut Input) -> Result<Option<&'i [u8]>> {
        let delimiters = self.delimiters;
        loop {
            // Set once a quote is met: from there on, every byte counts.
            let mut scan: Option<Scan> = None;
            let record = input.next_record(|bytes, from| {
                let mut at = from;
                if scan.is_none() {
                    at += memchr::memchr2(b'\n', b'"', &bytes[from..])?;
                    if bytes[at] == b'\n' {
                        return Some(at);
                    }
                    // Up to the quote there was no other one; only whether a cell starts there matters.
                    let fresh = match bytes[..at].iter().rposition(|b| *b != b' ') {
                        Some(before) => delimiters.contains(&bytes[before]) || delimiters.contains(&bytes[at - 1]),
                        None => true,
                    };
                    scan = Some(if fresh { Scan::CellStart } else { Scan::Unquoted });
                }
                let mut state = scan?;
                for (i, &byte) in bytes[at..].iter().enumerate() {
                    if byte == b'\n' && state != Scan::Quoted {
                        return Some(at + i);
                    }
                    state = state.step(byte, delimiters);
                }
                scan = Some(state);
                None
            })?;
            let Some(record) = record else { return Ok(None) };
            let blank = number::trim(record).is_empty() && (delimiters[0] == b' ' || !record.contains(&delimiters[0]));
            if !blank {
                break;
            }
        }
        Ok(Some(input.last_record()))
    }

    /// Splits a record with quotes into `unquoted` and `ends`; false if a quote stays open.
    fn unquote(&mut self, record: &[u8]) -> bool {
        self.unquoted.clear();
        self.ends.clear();
        let runs = self.delimiters[0] == b' ';
        let record = if runs { number::trim(record) } else { record };
        let mut state = Scan::CellStart;
        let mut previous_ended = false;
        for &byte in record {
            let next = state.step(byte, self.delimiters);
            let ends_cell = next == Scan::CellStart && self.delimiters.contains(&byte);
            let opens = state == Scan::CellStart && next == Scan::Quoted;
            if ends_cell {
                if !(runs && previous_ended) {
                    self.ends.push(self.unquoted.len());
                }
            } else if !opens && next != Scan::Closing {
                self.unquoted.push(byte);
            }
            previous_ended = ends_cell;
            state = next;
        }
        self.ends.push(self.unquoted.len());
        state != Scan::Quoted
    }
}

/// The first line that is not blank, or the beginning of a very long one; nothing is used up.
fn first_line(input: &mut Input) -> Result<&[u8]> {
    let mut wanted = 1;
    loop {
        let bytes = input.peek(wanted)?;
        let whole = bytes.len() < wanted || bytes.len() > 1 << 20;
        wanted = bytes.len() + 1;
        let blank = bytes.iter().take_while(|b| b.is_ascii_whitespace()).count();
        if whole || memchr::memchr(b'\n', &bytes[blank..]).is_some() {
            break;
        }
    }
    let bytes = input.peek(0)?;
    let blank = bytes.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
    Ok(bytes[blank..].split(|b| *b == b'\n').next().unwrap_or_default())
}

/// The first of comma, tab, semicolon and bar that a line has; a space if it is several numbers; else a comma.
fn guess_delimiter(line: &[u8]) -> u8 {
    let mut quoted = false;
    let outside = |byte: &u8| {
        quoted ^= *byte == b'"';
        !quoted
    };
    let outside: Vec<u8> = line.iter().copied().filter(outside).collect();
    if let Some(found) = b",\t;|".iter().find(|d| outside.contains(d)) {
        return *found;
    }
    let words = || outside.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let all_numbers = words().all(|word| number::cell(word) != Cell::Text);
    if all_numbers && words().count() > 1 { b' ' } else { b',' }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::number::{self, Cell};
    use super::super::testing::{Item, Record, assert_laws, error_of, read_all, text_source, try_read_all};
    use super::super::{Format, OpenOptions, RecordSource, Schema, open_reader};

    fn number(value: f64) -> Item {
        Item::Number(value.to_bits())
    }

    fn text(text: &str) -> Item {
        Item::Text(text.to_owned())
    }

    fn row<const N: usize>(items: [Item; N]) -> Record {
        items.into_iter().enumerate().collect()
    }

    fn names(source: &dyn RecordSource) -> (Vec<&str>, bool) {
        match source.schema() {
            Schema::Table { names, named } => (names.iter().map(String::as_str).collect(), *named),
            Schema::Labelled { .. } => panic!("not a table"),
        }
    }

    fn rows_of(content: &str, options: &OpenOptions) -> Vec<Record> {
        read_all(text_source(content, options).unwrap().as_mut(), 2)
    }

    #[test]
    fn quotes_line_ends_blanks_and_missing_cells() {
        let content = concat!(
            "\u{feff}x, \"y, z\",label\r\n",
            "1, 2.5 ,red\r\n\r\n",
            "-1e3,NA,\"a \"\"b\"\",\nc\"\n",
            "\"4\",?,5\" pipe\n",
            "inf,,\"\"",
        );
        let rows = assert_laws(content.as_bytes(), ".csv", &OpenOptions::default());
        assert_eq!(rows[0], row([number(1.0), number(2.5), text("red")]));
        assert_eq!(rows[1], row([number(-1000.0), Item::Missing, text("a \"b\",\nc")]));
        assert_eq!(rows[2], row([number(4.0), Item::Missing, text("5\" pipe")]));
        assert_eq!(rows[3], row([number(f64::INFINITY), Item::Missing, Item::Missing]));
        assert_eq!(rows.len(), 4);
    }

    #[test]
    fn headers_are_found_or_given() {
        let open =
            |content: &str, header| text_source(content, &OpenOptions { header, ..OpenOptions::default() }).unwrap();
        assert_eq!(names(open("1,NA,inf\n", None).as_ref()), (vec!["1", "2", "3"], false));
        assert_eq!(names(open("1,a,3\n", None).as_ref()), (vec!["1", "a", "3"], true));
        assert_eq!(names(open(",a, b \n", None).as_ref()), (vec!["1", "a", "b"], true));
        assert_eq!(names(open("1,2\n3,4\n", Some(true)).as_ref()), (vec!["1", "2"], true));
        assert_eq!(names(open("a,b\n", Some(false)).as_ref()), (vec!["1", "2"], false));
        assert_eq!(read_all(open("1,2\n3,4\n", Some(true)).as_mut(), 9).len(), 1);
        assert_eq!(read_all(open("a,b\n3,4\n", Some(false)).as_mut(), 9)[0], row([text("a"), text("b")]));
    }

    #[test]
    fn delimiters_are_guessed_or_given() {
        let expected = vec![row([number(1.0), number(2.5)]), row([number(3.0), number(4.0)])];
        for content in ["1,2.5\n3,4\n", "1\t2.5\n3\t4\n", "1;2.5\n3;4\n", "1|2.5\n3|4\n", "  1  2.5\n3\t 4 \n"] {
            assert_eq!(rows_of(content, &OpenOptions::default()), expected, "{content:?}");
        }
        let spaces = OpenOptions { delimiter: Some(b' '), header: Some(false), ..OpenOptions::default() };
        assert_eq!(rows_of("1 \"a b\"  x\n", &spaces)[0], row([number(1.0), text("a b"), text("x")]));
        assert_eq!(rows_of("\"a,b\";c\n1;2\n", &OpenOptions::default())[0], row([number(1.0), number(2.0)]));
        assert_eq!(rows_of("two words\n1\n", &OpenOptions::default())[0], row([number(1.0)]));
    }

    #[test]
    fn empty_cells_at_the_end_of_a_line_count() {
        let rows = rows_of("a\tb\tc\n1\t\t\n\t\t\n", &OpenOptions::default());
        assert_eq!(rows[0], row([number(1.0), Item::Missing, Item::Missing]));
        assert_eq!(rows[1], row([Item::Missing, Item::Missing, Item::Missing]));
    }

    #[test]
    fn quoted_cells_may_span_the_read_buffer() {
        let long = "line\n".repeat(100_000);
        let content = format!("a,b\n1,\"{long}\"\n2,x\n");
        let rows = assert_laws(content.as_bytes(), ".csv", &OpenOptions::default());
        assert_eq!(rows[0], row([number(1.0), text(&long)]));
        assert_eq!(rows[1], row([number(2.0), text("x")]));
    }

    #[test]
    fn bad_files_are_refused() {
        for (content, parts) in [
            ("", &["found an empty file, expected at least one row"][..]),
            ("\n\r\n", &["an empty file"]),
            ("a,b\n", &["a header and no rows, expected at least one row"]),
            ("a,b\n\n\n", &["a header and no rows"]),
            ("a,b\n1,2\n\n1,2,3\n", &["row 2", "found 3 columns, expected 2 columns"]),
            ("a,b\n1\n", &["row 1", "found 1 columns, expected 2 columns"]),
            ("a,b\n1,2\n1,2,\n", &["row 2", "found 3 columns, expected 2 columns"]),
            ("3 4\n1 2\n1 \n", &["row 3", "found 1 columns, expected 2 columns"]),
            ("a,b\n\"1\"\n", &["row 1", "found 1 columns, expected 2 columns"]),
            ("a,b\n\"1\",2,\n", &["row 1", "found 3 columns, expected 2 columns"]),
            ("a,b\n1,\"2\n3,4\n", &["row 1", "never closed"]),
            ("a,\"b\n1,2\n", &["never closed"]),
            ("a,b, a\n1,2,3\n", &["column 'a'", "twice"]),
        ] {
            let message = error_of(text_source(content, &OpenOptions::default()));
            assert!(parts.iter().all(|part| message.contains(part)), "{content:?} gave {message:?}");
        }
        let latin = open_reader("pipe", Box::new(&b"a,b\n1,caf\xe9\n"[..]), &OpenOptions::default());
        let message = error_of(latin);
        assert!(message.contains("row 1, column 'b'") && message.contains("not UTF-8"), "{message}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn records_are_those_of_the_csv_crate(content in "[1a,\"\n]{1,16}") {
            let mut reader = ::csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(content.as_bytes());
            let theirs: Vec<Record> = reader
                .byte_records()
                .map(|record| {
                    let cell = |cell: &[u8]| match number::cell(cell) {
                        Cell::Number(value) => number(value),
                        Cell::Missing => Item::Missing,
                        Cell::Text => text(std::str::from_utf8(cell).unwrap()),
                    };
                    record.unwrap().iter().map(cell).enumerate().collect()
                })
                .collect();
            let ragged = theirs.iter().any(|record| record.len() != theirs[0].len());
            let options = OpenOptions { format: Some(Format::Csv), header: Some(false), delimiter: Some(b',') };
            let ours = text_source(&content, &options).and_then(|mut source| try_read_all(source.as_mut(), 2));
            match ours {
                Ok(ours) => prop_assert_eq!(ours, theirs),
                Err(error) => {
                    // The other crate takes a quote that is never closed, rows of different lengths and no rows.
                    let message = error.to_string();
                    prop_assert!(
                        ragged || theirs.is_empty() || message.contains("never closed"),
                        "{}", message
                    );
                }
            }
        }

        /// Whole rows at hand are read another way than those whose end has yet to come.
        #[test]
        fn records_are_the_same_however_the_bytes_arrive(
            rows in "(-?1?[.5]{0,2}[ ,\t]{0,2}(\r?\n|\"|a)?){0,9}",
            comma in any::<bool>(),
        ) {
            let delimiter = Some(if comma { b',' } else { b' ' });
            let options = OpenOptions { format: Some(Format::Csv), header: Some(false), delimiter };
            let content = format!("1{0}2\n{rows}", if comma { ',' } else { ' ' });
            let read = |most: usize| {
                let pieces = Pieces { content: content.clone().into_bytes(), at: 0, most };
                open_reader("pipe", Box::new(pieces), &options)
                    .and_then(|mut source| try_read_all(source.as_mut(), 3))
                    .map_err(|error| error.to_string())
            };
            let whole = read(usize::MAX);
            for most in [1, 2, 5] {
                prop_assert_eq!(read(most), whole.clone(), "{} bytes at a time", most);
            }
        }
    }

    /// Hands out few bytes at a time.
    struct Pieces {
        content: Vec<u8>,
        at: usize,
        most: usize,
    }

    impl std::io::Read for Pieces {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let length = out.len().min(self.most).min(self.content.len() - self.at);
            out[..length].copy_from_slice(&self.content[self.at..self.at + length]);
            self.at += length;
            Ok(length)
        }
    }
}
