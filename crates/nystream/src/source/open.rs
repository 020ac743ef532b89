//! Opening a source by its location: which format it is, and whether this build can read it.

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use super::csv::CsvSource;
use super::input::Input;
use super::jsonl::JsonLinesSource;
use super::libsvm::LibsvmSource;
use super::number::{self, Cell};
use super::synth::{self, SynthSource};
use super::{RecordSource, refuse};
use crate::error::{Error, Result};

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Delimited text: a cell for every column.
    Csv,
    /// LIBSVM, also known as svmlight: a label and sparse features.
    Libsvm,
    /// One flat JSON object a line.
    JsonLines,
    /// Apache Parquet (feature `parquet`).
    Parquet,
    /// Apache Arrow IPC, file or stream format (feature `arrow`).
    ArrowIpc,
}

impl Format {
    const NAMES: [(Self, &str); 5] = [
        (Self::Csv, "csv"),
        (Self::Libsvm, "libsvm"),
        (Self::JsonLines, "jsonl"),
        (Self::Parquet, "parquet"),
        (Self::ArrowIpc, "arrow"),
    ];

    /// The format that a file's extension tells, `.gz` aside; `None` if its content must.
    fn of_extension(path: &Path) -> Option<Self> {
        Some(match extension(path)?.as_str() {
            "csv" | "tsv" => Self::Csv,
            "libsvm" | "svm" | "svmlight" => Self::Libsvm,
            "jsonl" | "ndjson" | "json" => Self::JsonLines,
            "parquet" => Self::Parquet,
            "arrow" | "feather" | "ipc" => Self::ArrowIpc,
            _ => return None,
        })
    }

    /// The format that the first bytes tell, of which the lines up to `end` are complete; `None` if more are needed.
    fn of_content(start: &[u8], end: usize) -> Option<Self> {
        if start.starts_with(b"PAR1") {
            return Some(Self::Parquet);
        }
        // An Arrow stream starts with a continuation marker; no UTF-8 text does.
        if start.starts_with(b"ARROW1") || start.starts_with(&[0xff; 4]) {
            return Some(Self::ArrowIpc);
        }
        for line in start[..end].split(|b| *b == b'\n') {
            let line = line.split(|b| *b == b'#').next().unwrap_or_default().trim_ascii();
            if line.starts_with(b"{") || line.starts_with(b"[") {
                return Some(Self::JsonLines);
            }
            // Sparse rows without features tell nothing: look for the first line with a second word.
            let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            if let Some(second) = words.nth(1) {
                return Some(if is_pair(second) { Self::Libsvm } else { Self::Csv });
            }
            if memchr::memchr3(b',', b';', b'|', line).is_some() {
                return Some(Self::Csv);
            }
        }
        None
    }
}

/// Whether a word looks like `3:0.5` or `qid:7`.
fn is_pair(word: &[u8]) -> bool {
    let Some(colon) = memchr::memchr(b':', word) else { return false };
    let (index, value) = (&word[..colon], &word[colon + 1..]);
    (index == b"qid" || (!index.is_empty() && index.iter().all(u8::is_ascii_digit)))
        && matches!(number::cell(value), Cell::Number(_))
}

fn extension(path: &Path) -> Option<String> {
    let lower = |path: &Path| path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    match lower(path)? {
        packed if packed == "gz" => lower(Path::new(path.file_stem()?)),
        plain => Some(plain),
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(Self::NAMES.iter().find(|(format, _)| format == self).map_or("", |(_, name)| name))
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::NAMES.iter().find(|(_, name)| *name == text).map(|(format, _)| *format).ok_or_else(|| {
            Error::InvalidParam {
                name: "format",
                found: format!("'{text}'"),
                expected: "csv, libsvm, jsonl, parquet or arrow",
            }
        })
    }
}

/// How to open a source; what is `None` is found out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// The format; found out from the extension (`.gz` aside), else from the content.
    pub format: Option<Format>,
    /// Whether the first line of a CSV file names the columns; if any of its cells is neither a number nor missing.
    pub header: Option<bool>,
    /// What separates the cells of a CSV file; a tab for `.tsv`, else the first of comma, tab, semicolon and bar that
    /// the first line has, or a space if that line is several numbers with spaces between. A space stands for any run
    /// of spaces and tabs.
    pub delimiter: Option<u8>,
}

impl OpenOptions {
    fn check(&self) -> Result<()> {
        match self.delimiter {
            Some(byte) if byte == b'"' || byte == b'\n' || byte == b'\r' || !byte.is_ascii() => {
                Err(Error::InvalidParam {
                    name: "delimiter",
                    found: format!("{:?}", char::from(byte)),
                    expected: "one ASCII character other than a quote or a line end",
                })
            }
            _ => Ok(()),
        }
    }

    /// Refuses options that only CSV has.
    fn check_unused(&self, format: &dyn fmt::Display) -> Result<()> {
        let name = match (self.header, self.delimiter) {
            (Some(_), _) => "header",
            (_, Some(_)) => "delimiter",
            _ => return Ok(()),
        };
        Err(Error::InvalidParam { name, found: format!("{format} data"), expected: "CSV data" })
    }
}

/// Opens a path, `-` for standard input, or `synth:name?parameter=value&…`.
///
/// Gzip is found out by content and needs the feature `gzip`, Arrow IPC the feature `arrow`, Parquet the feature
/// `parquet`.
pub fn open(location: &str, options: &OpenOptions) -> Result<Box<dyn RecordSource>> {
    options.check()?;
    if location.starts_with(synth::PREFIX) {
        options.check_unused(&"synth")?;
        if let Some(format) = options.format {
            return Err(Error::InvalidParam {
                name: "format",
                found: format!("{format} for a synth: source"),
                expected: "no format",
            });
        }
        return Ok(Box::new(SynthSource::open(location)?));
    }
    if location == "-" {
        return open_reader("stdin", Box::new(std::io::stdin()), options);
    }
    let path = Path::new(location);
    let mut options = options.clone();
    options.format = options.format.or_else(|| Format::of_extension(path));
    if options.format == Some(Format::Csv) && extension(path).as_deref() == Some("tsv") {
        options.delimiter = options.delimiter.or(Some(b'\t'));
    }
    open_input(Input::open(path)?, &options)
}

/// Reads from any reader, once; `origin` names it in messages.
pub fn open_reader(origin: &str, reader: Box<dyn Read + Send>, options: &OpenOptions) -> Result<Box<dyn RecordSource>> {
    options.check()?;
    open_input(Input::from_reader(origin, reader)?, options)
}

fn open_input(mut input: Input, options: &OpenOptions) -> Result<Box<dyn RecordSource>> {
    if input.peek(1)?.is_empty() {
        return Err(refuse(input.origin(), 0, None, "an empty file", "at least one row"));
    }
    let format = match options.format {
        Some(format) => format,
        None => sniff(&mut input)?,
    };
    let text = matches!(format, Format::Csv | Format::Libsvm | Format::JsonLines);
    let start = input.peek(2)?;
    if text && (start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff")) {
        return Err(refuse(input.origin(), 0, None, "UTF-16 text", "UTF-8 text"));
    }
    if format != Format::Csv {
        options.check_unused(&format)?;
    }
    match format {
        Format::Csv => Ok(Box::new(CsvSource::open(input, options.header, options.delimiter)?)),
        Format::Libsvm => Ok(Box::new(LibsvmSource::open(input))),
        Format::JsonLines => Ok(Box::new(JsonLinesSource::open(input)?)),
        Format::Parquet => open_parquet(input),
        Format::ArrowIpc => open_arrow(input),
    }
}

/// Finds the format out from as few of the first bytes as tell it: a pipe may be slow to bring more.
fn sniff(input: &mut Input) -> Result<Format> {
    const ENOUGH: usize = 1 << 16;
    let mut wanted = 8;
    loop {
        let bytes = input.peek(wanted)?;
        let whole = bytes.len() < wanted || bytes.len() >= ENOUGH;
        wanted = bytes.len() + 1;
        // Half a line could tell a lie.
        let end = if whole { bytes.len() } else { memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1) };
        match Format::of_content(bytes, end) {
            Some(format) => return Ok(format),
            None if whole => return Ok(Format::Csv),
            None => {}
        }
    }
}

#[cfg(feature = "parquet")]
fn open_parquet(input: Input) -> Result<Box<dyn RecordSource>> {
    Ok(Box::new(super::parquet::ParquetSource::open(input)?))
}

#[cfg(not(feature = "parquet"))]
fn open_parquet(input: Input) -> Result<Box<dyn RecordSource>> {
    Err(refuse(input.origin(), 0, None, "Parquet data", "another format (this build lacks the feature `parquet`)"))
}

#[cfg(feature = "arrow")]
fn open_arrow(input: Input) -> Result<Box<dyn RecordSource>> {
    Ok(Box::new(super::arrow::ArrowSource::open(input)?))
}

#[cfg(not(feature = "arrow"))]
fn open_arrow(input: Input) -> Result<Box<dyn RecordSource>> {
    Err(refuse(input.origin(), 0, None, "Arrow data", "another format (this build lacks the feature `arrow`)"))
}

#[cfg(test)]
mod tests {
    use super::super::Schema;
    use super::super::testing::{error_of, file_with, read_all, text_source};
    use super::*;

    fn labelled(source: &dyn RecordSource) -> bool {
        matches!(source.schema(), Schema::Labelled { .. })
    }

    #[test]
    fn content_tells_the_format_where_the_name_does_not() {
        for (text, expected) in [
            ("1,2\n3,4\n", Format::Csv),
            ("1 2 3\n", Format::Csv),
            ("a\n1\n2\n", Format::Csv),
            ("time,x\n12:30 1:05,2\n", Format::Csv),
            ("+1 1:0.5\n", Format::Libsvm),
            ("# about\n-1\n-1\n+1 3:2 4:1\n", Format::Libsvm),
            ("1 qid:3 1:2\n", Format::Libsvm),
            ("\n {\"a\":1}\n", Format::JsonLines),
            ("[1,\n2]\n", Format::JsonLines),
            ("PAR1....", Format::Parquet),
            ("ARROW1..", Format::ArrowIpc),
        ] {
            let mut input =
                Input::from_reader("test", Box::new(std::io::Cursor::new(text.as_bytes().to_vec()))).unwrap();
            assert_eq!(sniff(&mut input).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn the_extension_tells_the_format_under_gz_too() {
        for (name, expected) in [
            ("a.csv", Some(Format::Csv)),
            ("dir.csv/a.TSV.gz", Some(Format::Csv)),
            ("a.svmlight", Some(Format::Libsvm)),
            ("a.ndjson.gz", Some(Format::JsonLines)),
            ("a.parquet", Some(Format::Parquet)),
            ("a.feather", Some(Format::ArrowIpc)),
            ("a.txt", None),
            ("a.gz", None),
            ("a", None),
        ] {
            assert_eq!(Format::of_extension(Path::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn a_tsv_file_is_split_at_tabs_and_an_option_wins() {
        let (_file, path) = file_with(b"a,b\tc\n1\t2\n", ".tsv");
        let mut source = open(&path, &OpenOptions::default()).unwrap();
        assert_eq!(read_all(source.as_mut(), 10)[0].len(), 2);
        let (_file, path) = file_with(b"1 1:2\n", ".csv");
        let options = OpenOptions { format: Some(Format::Libsvm), ..OpenOptions::default() };
        assert!(labelled(open(&path, &options).unwrap().as_ref()));
    }

    #[test]
    fn options_that_cannot_apply_are_refused() {
        let header = OpenOptions { header: Some(true), ..OpenOptions::default() };
        let delimiter = OpenOptions { delimiter: Some(b';'), ..OpenOptions::default() };
        let quote = OpenOptions { delimiter: Some(b'"'), ..OpenOptions::default() };
        let format = OpenOptions { format: Some(Format::Csv), ..OpenOptions::default() };
        assert!(error_of(text_source("1 1:2\n", &header)).contains("header: found libsvm data"));
        assert!(error_of(text_source("{\"a\":1}\n", &delimiter)).contains("delimiter: found jsonl data"));
        assert!(error_of(text_source("1,2\n", &quote)).contains("delimiter: found '\"'"));
        assert!(error_of(open("synth:rings", &header)).contains("header"));
        assert!(error_of(open("synth:rings", &format)).contains("format"));
    }

    #[test]
    fn what_cannot_be_opened_is_named() {
        let none = OpenOptions::default();
        assert!(error_of(open("no/such/file.csv", &none)).contains("no/such/file.csv: cannot open"));
        let directory = tempfile::tempdir().unwrap();
        assert!(error_of(open(directory.path().to_str().unwrap(), &none)).contains("a directory"));
        assert!(error_of(text_source("", &none)).contains("found an empty file, expected at least one row"));
        let utf16 = open_reader("pipe", Box::new(&b"\xff\xfea\0,\0b\0"[..]), &none);
        assert!(error_of(utf16).contains("UTF-16"));
    }

    #[test]
    fn format_names_come_back() {
        for (format, name) in Format::NAMES {
            assert_eq!(name.parse::<Format>().unwrap(), format);
            assert_eq!(format.to_string(), name);
        }
        assert!("xlsx".parse::<Format>().is_err());
    }

    #[cfg(feature = "gzip")]
    mod gzip {
        use super::super::super::testing::assert_laws;
        use super::*;
        use flate2::write::GzEncoder;
        use std::io::Write;

        fn pack(bytes: &[u8]) -> Vec<u8> {
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }

        const TABLE: &[u8] = b"x,y\n1,2\n3,4\n5,red\n";

        #[test]
        fn gzip_is_found_by_content_whatever_the_name_says() {
            let plain = assert_laws(TABLE, ".csv.gz", &OpenOptions::default());
            assert_eq!(assert_laws(&pack(TABLE), ".csv", &OpenOptions::default()), plain);
            assert_eq!(assert_laws(&pack(TABLE), "", &OpenOptions::default()), plain);
            let sparse = b"1 1:2\n-1 2:3\n";
            let packed = pack(sparse);
            assert_eq!(
                assert_laws(&packed, ".svm", &OpenOptions::default()),
                assert_laws(sparse, ".svm", &OpenOptions::default())
            );
        }

        #[test]
        fn several_members_are_one_file() {
            let (first, second) = TABLE.split_at(7);
            let packed = [pack(first), pack(second)].concat();
            assert_eq!(
                assert_laws(&packed, ".csv.gz", &OpenOptions::default()),
                assert_laws(TABLE, ".csv", &OpenOptions::default())
            );
        }

        #[test]
        fn truncated_or_damaged_gzip_is_refused() {
            let packed = pack(&TABLE.repeat(1000));
            for end in [3, 15, packed.len() / 2, packed.len() - 9, packed.len() - 1] {
                let (_file, path) = file_with(&packed[..end], ".csv.gz");
                let options = OpenOptions { header: Some(true), ..OpenOptions::default() };
                let message = error_of(open(&path, &options));
                assert!(message.contains("gzip"), "cut at {end}: {message}");
            }
            let mut damaged = packed.clone();
            let checksum = damaged.len() - 6;
            damaged[checksum] ^= 1;
            let (_file, path) = file_with(&damaged, ".csv.gz");
            assert!(error_of(open(&path, &OpenOptions::default())).contains("gzip"));
        }
    }

    #[cfg(not(feature = "gzip"))]
    #[test]
    fn gzip_without_its_feature_is_refused() {
        let packed = open_reader("pipe", Box::new(&b"\x1f\x8b\x08\0"[..]), &OpenOptions::default());
        assert!(error_of(packed).contains("lacks the feature `gzip`"));
    }

    #[cfg(not(feature = "arrow"))]
    #[test]
    fn arrow_and_parquet_without_their_features_are_refused() {
        for (bytes, feature) in [(&b"ARROW1\0\0"[..], "`arrow`"), (b"PAR1\0\0\0\0", "`parquet`")] {
            let message = error_of(open_reader("pipe", Box::new(bytes), &OpenOptions::default()));
            assert!(message.contains(feature), "{message}");
        }
    }
}
