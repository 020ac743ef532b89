//! Bytes of a file or a pipe, unpacked if they are gzip, cut into records in one reused buffer.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::refuse;
use crate::error::{Error, Result};

/// How much is read at a time.
const CHUNK: usize = 256 * 1024;

/// The longest record. A file without line ends, or a quote never closed, must not be pulled into memory whole.
const LONGEST_RECORD: usize = 256 * 1024 * 1024;

/// A buffered stream of unpacked bytes.
pub(super) struct Input {
    origin: String,
    /// Where to open it again; `None` for pipes and readers.
    path: Option<PathBuf>,
    /// Bytes in the file as stored.
    stored_bytes: Option<u64>,
    decoder: Decoder,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Where the record handed out last is, without its line end.
    last: Range<usize>,
    finished: bool,
}

enum Decoder {
    Plain(Counted),
    #[cfg(feature = "gzip")]
    Gzip(Box<flate2::read::MultiGzDecoder<Counted>>),
}

/// A reader that knows how much it has handed out, with its first bytes put back.
struct Counted {
    head: io::Cursor<Vec<u8>>,
    inner: Box<dyn Read + Send>,
    count: u64,
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut got = self.head.read(out)?;
        if got == 0 {
            got = self.inner.read(out)?;
        }
        self.count += got as u64;
        Ok(got)
    }
}

impl Input {
    /// Opens a file. Anything but a regular file (a named pipe, say) can be read only once.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::io(path, "open", e))?;
        let metadata = file.metadata().map_err(|e| Error::io(path, "open", e))?;
        if metadata.is_dir() {
            return Err(refuse(&path.to_string_lossy(), 0, None, "a directory", "a file"));
        }
        let mut input = Self::from_reader(&path.to_string_lossy(), Box::new(file))?;
        if metadata.is_file() {
            input.path = Some(path.to_owned());
            input.stored_bytes = Some(metadata.len());
        }
        Ok(input)
    }

    /// Takes a reader, which can be read only once.
    pub fn from_reader(origin: &str, reader: Box<dyn Read + Send>) -> Result<Self> {
        let mut input = Self {
            origin: origin.to_owned(),
            path: None,
            stored_bytes: None,
            decoder: Decoder::Plain(Counted { head: io::Cursor::default(), inner: Box::new(io::empty()), count: 0 }),
            buffer: Vec::new(),
            start: 0,
            end: 0,
            last: 0..0,
            finished: false,
        };
        input.restart(reader)?;
        Ok(input)
    }

    fn restart(&mut self, mut reader: Box<dyn Read + Send>) -> Result<()> {
        let mut head = Vec::with_capacity(2);
        (&mut reader).take(2).read_to_end(&mut head).map_err(|e| Error::io(&self.origin, "read", e))?;
        let packed = head == [0x1f, 0x8b];
        let counted = Counted { head: io::Cursor::new(head), inner: reader, count: 0 };
        self.decoder = if packed { self.unpack(counted)? } else { Decoder::Plain(counted) };
        (self.start, self.end, self.last, self.finished) = (0, 0, 0..0, false);
        if self.peek(3)?.starts_with(b"\xef\xbb\xbf") {
            self.start += 3;
        }
        Ok(())
    }

    #[cfg(feature = "gzip")]
    fn unpack(&self, counted: Counted) -> Result<Decoder> {
        Ok(Decoder::Gzip(Box::new(flate2::read::MultiGzDecoder::new(counted))))
    }

    #[cfg(not(feature = "gzip"))]
    fn unpack(&self, _: Counted) -> Result<Decoder> {
        Err(refuse(&self.origin, 0, None, "gzip data", "plain data (this build lacks the feature `gzip`)"))
    }

    /// How messages name it.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The regular file behind it, unless its bytes are packed.
    #[cfg(feature = "arrow")]
    pub fn plain_path(&self) -> Option<&Path> {
        if matches!(self.decoder, Decoder::Plain(_)) { self.path.as_deref() } else { None }
    }

    /// Whether [`rewind`](Self::rewind) works.
    pub fn rereadable(&self) -> bool {
        self.path.is_some()
    }

    /// The same input from the first byte, apart from this one.
    #[cfg(feature = "arrow")]
    pub fn reopen(&self) -> Result<Self> {
        Self::open(self.path_to_reopen()?)
    }

    fn path_to_reopen(&self) -> Result<&Path> {
        self.path.as_deref().ok_or_else(|| {
            refuse(&self.origin, 0, None, "a stream that can be read only once", "a file, to read it again")
        })
    }

    /// Starts again from the first byte.
    pub fn rewind(&mut self) -> Result<()> {
        let path = self.path_to_reopen()?;
        let file = File::open(path).map_err(|e| Error::io(path, "open", e))?;
        self.restart(Box::new(file))
    }

    /// The share of the stored bytes that has been used.
    pub fn progress(&self) -> Option<f64> {
        let total = self.stored_bytes? as f64;
        let used = match &self.decoder {
            Decoder::Plain(counted) => counted.count.saturating_sub((self.end - self.start) as u64),
            #[cfg(feature = "gzip")]
            Decoder::Gzip(decoder) => decoder.get_ref().count,
        };
        Some(if total > 0.0 { (used as f64 / total).min(1.0) } else { 1.0 })
    }

    /// The next bytes, at least `wanted` of them unless the input ends before; nothing is used up.
    pub fn peek(&mut self, wanted: usize) -> Result<&[u8]> {
        while self.end - self.start < wanted && self.fill()? {}
        Ok(&self.buffer[self.start..self.end])
    }

    /// The bytes at hand; there may be none, or only part of a record.
    pub fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Uses up `length` of the bytes at hand.
    pub fn consume(&mut self, length: usize) {
        self.last = self.start..self.start + length;
        self.start += length;
    }

    /// The next line, without its end.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>> {
        self.next_record(|bytes, from| memchr::memchr(b'\n', &bytes[from..]).map(|at| from + at))
    }

    /// The next record, without the line end (`\n` or `\r\n`) that closes it; `None` at the end of the input.
    ///
    /// `find_end` gets the bytes at hand and how many of them it has seen before; it returns where the closing `\n` is.
    pub fn next_record(&mut self, mut find_end: impl FnMut(&[u8], usize) -> Option<usize>) -> Result<Option<&[u8]>> {
        let mut seen = 0;
        let (length, closed) = loop {
            let bytes = &self.buffer[self.start..self.end];
            if seen < bytes.len()
                && let Some(length) = find_end(bytes, seen)
            {
                break (length, 1);
            }
            seen = bytes.len();
            if seen > LONGEST_RECORD {
                let found = format!("a line of more than {LONGEST_RECORD} bytes");
                return Err(refuse(
                    &self.origin,
                    0,
                    None,
                    found,
                    "shorter lines (is it a text file, are quotes closed?)",
                ));
            }
            if !self.fill()? {
                if seen == 0 {
                    return Ok(None);
                }
                break (seen, 0);
            }
        };
        let mut end = self.start + length;
        if self.buffer[self.start..end].ends_with(b"\r") {
            end -= 1;
        }
        self.last = self.start..end;
        self.start += length + closed;
        Ok(Some(self.last_record()))
    }

    /// The record handed out last, once more.
    pub fn last_record(&self) -> &[u8] {
        &self.buffer[self.last.clone()]
    }

    /// Puts back the record handed out last, before anything else is read.
    pub fn unread(&mut self) {
        self.start = self.last.start;
    }

    /// Reads more behind the bytes at hand; false at the end of the input.
    fn fill(&mut self) -> Result<bool> {
        if self.finished {
            return Ok(false);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            (self.start, self.last) = (0, 0..0);
        }
        if self.buffer.len() - self.end < CHUNK / 2 {
            let size = (self.buffer.len() * 2).max(CHUNK);
            self.buffer.resize(size, 0);
        }
        let got = self.decode()?;
        self.finished = got == 0;
        self.end += got;
        Ok(got > 0)
    }

    fn decode(&mut self) -> Result<usize> {
        let room = &mut self.buffer[self.end..];
        loop {
            let result = match &mut self.decoder {
                Decoder::Plain(counted) => counted.read(room),
                #[cfg(feature = "gzip")]
                Decoder::Gzip(decoder) => decoder.read(room),
            };
            match result {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // What the system did not say, the decoder did.
                #[cfg(feature = "gzip")]
                Err(e) if e.raw_os_error().is_none() && matches!(self.decoder, Decoder::Gzip(_)) => {
                    let found = format!("damaged or truncated gzip data ({e})");
                    return Err(refuse(&self.origin, 0, None, found, "a complete gzip file"));
                }
                result => return result.map_err(|e| Error::io(&self.origin, "read", e)),
            }
        }
    }
}

/// For decoders that take a reader.
#[cfg(feature = "arrow")]
impl Read for Input {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.start == self.end && !self.fill().map_err(io::Error::other)? {
            return Ok(0);
        }
        let length = out.len().min(self.end - self.start);
        out[..length].copy_from_slice(&self.buffer[self.start..self.start + length]);
        self.start += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out one byte at a time.
    struct Trickle(io::Cursor<Vec<u8>>);

    impl Read for Trickle {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let length = out.len().min(1);
            self.0.read(&mut out[..length])
        }
    }

    #[test]
    fn lines_are_the_same_however_the_bytes_arrive() {
        let text = b"\xef\xbb\xbfone\r\ntwo\n\nlast".to_vec();
        for reader in
            [Box::new(io::Cursor::new(text.clone())) as Box<dyn Read + Send>, Box::new(Trickle(io::Cursor::new(text)))]
        {
            let mut input = Input::from_reader("test", reader).unwrap();
            let mut lines = Vec::new();
            while let Some(line) = input.next_line().unwrap() {
                lines.push(String::from_utf8(line.to_vec()).unwrap());
            }
            assert_eq!(lines, ["one", "two", "", "last"]);
        }
    }

    #[test]
    fn an_unread_line_comes_again_and_a_pipe_cannot_rewind() {
        let mut input = Input::from_reader("test", Box::new(io::Cursor::new(b"a\nb\n".to_vec()))).unwrap();
        assert_eq!(input.next_line().unwrap(), Some(&b"a"[..]));
        input.unread();
        assert_eq!(input.next_line().unwrap(), Some(&b"a"[..]));
        assert!(!input.rereadable());
        assert!(input.rewind().is_err());
    }

    #[test]
    fn lines_longer_than_the_buffer_are_whole() {
        let long = vec![b'x'; 3 * CHUNK + 7];
        let text = [&b"short\n"[..], &long, b"\nend"].concat();
        let mut input = Input::from_reader("test", Box::new(io::Cursor::new(text))).unwrap();
        assert_eq!(input.next_line().unwrap().unwrap().len(), 5);
        assert_eq!(input.next_line().unwrap().unwrap(), &long[..]);
        assert_eq!(input.next_line().unwrap(), Some(&b"end"[..]));
        assert_eq!(input.next_line().unwrap(), None);
    }
}
