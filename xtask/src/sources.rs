//! Rust source files as the checks see them: code without comments, strings and tests.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::run::Outcome;

/// A source file.
pub struct Source {
    /// Its path below the workspace's root, with forward slashes.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// Every Rust file below `folder`, in the order of their names.
pub fn read_all(root: &Path, folder: &str) -> Outcome<Vec<Source>> {
    let mut files = Vec::new();
    collect(&root.join(folder), &mut files).map_err(|e| format!("cannot list {folder}: {e}"))?;
    files.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        let path = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        Ok(Source { path, text })
    };
    files.into_iter().map(read).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Whether a file holds nothing but tests, by its name.
pub fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/") || path.contains("/benches/")
}

/// The file's own lines of code and comments: everything before its test module.
pub fn without_tests(text: &str) -> &str {
    // By habit the test module stands last; `mod tests;` in a folder's `mod.rs` does not end it.
    let marker = "#[cfg(test)]\nmod tests {";
    text.find(marker).map_or(text, |at| &text[..at])
}

/// The text with comments and the insides of strings and characters blanked, lines kept.
pub fn code_only(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let end = match bytes[i] {
            b'/' if bytes[i + 1..].starts_with(b"/") => line_end(bytes, i),
            b'/' if bytes[i + 1..].starts_with(b"*") => block_comment_end(bytes, i),
            b'"' => string_end(bytes, i + 1),
            b'r' if !previous_is_word(bytes, i) => raw_string_end(bytes, i).unwrap_or(i),
            b'\'' => char_end(bytes, i).unwrap_or(i),
            _ => i,
        };
        if end == i {
            out.push(bytes[i]);
            i += 1;
        } else {
            out.extend(bytes[i..end].iter().map(|&b| if b == b'\n' { b'\n' } else { b' ' }));
            i = end;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn line_end(bytes: &[u8], start: usize) -> usize {
    bytes[start..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |n| start + n)
}

fn block_comment_end(bytes: &[u8], start: usize) -> usize {
    let (mut depth, mut i) = (0, start);
    while i < bytes.len() {
        if bytes[i..].starts_with(b"/*") {
            (depth, i) = (depth + 1, i + 2);
        } else if bytes[i..].starts_with(b"*/") {
            (depth, i) = (depth - 1, i + 2);
            if depth == 0 {
                return i;
            }
        } else {
            i += 1;
        }
    }
    bytes.len()
}

/// The end of a string whose opening quote stands before `i`.
fn string_end(bytes: &[u8], mut i: usize) -> usize {
    while i < bytes.len() && bytes[i] != b'"' {
        i += if bytes[i] == b'\\' { 2 } else { 1 };
    }
    (i + 1).min(bytes.len())
}

fn raw_string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let hashes = bytes[start + 1..].iter().take_while(|&&b| b == b'#').count();
    let open = start + 1 + hashes;
    (bytes.get(open) == Some(&b'"')).then_some(())?;
    let close = [&b"\""[..], &b"#".repeat(hashes)].concat();
    let body = &bytes[open + 1..];
    let length = body.windows(close.len()).position(|w| w == close.as_slice());
    Some(length.map_or(bytes.len(), |n| open + 1 + n + close.len()))
}

/// The end of a character literal; `None` for a lifetime.
fn char_end(bytes: &[u8], start: usize) -> Option<usize> {
    if bytes.get(start + 1) == Some(&b'\\') {
        let close = bytes.get(start + 3..)?.iter().position(|&b| b == b'\'')?;
        return Some(start + 3 + close + 1);
    }
    // One character of up to four bytes, then the closing quote.
    let close = bytes.get(start + 2..)?.iter().take(4).position(|&b| b == b'\'')?;
    let one = std::str::from_utf8(&bytes[start + 1..start + 2 + close]).ok()?;
    (one.chars().count() == 1).then_some(start + close + 3)
}

fn previous_is_word(bytes: &[u8], i: usize) -> bool {
    // `br"…"` is a raw string too, but the `r` of an identifier is not.
    i > 0 && (bytes[i - 1].is_ascii_alphanumeric() || bytes[i - 1] == b'_') && bytes[i - 1] != b'b'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_blanked_and_code_is_kept() {
        let text = "a // crate::x\nb /* c /* d */ e */ f \"g \\\" h\" i r#\"j\"k\"# l 'm' 'n \"o\" '\\'' p '\\u{1F600}' q 'é' r";
        let code = code_only(text);
        let words: Vec<_> = code.split_whitespace().collect();
        assert_eq!(words, ["a", "b", "f", "i", "l", "'n", "p", "q", "r"]);
        assert_eq!(code.lines().count(), 2);
    }

    #[test]
    fn open_ends_do_not_panic() {
        for text in ["\"", "/*", "r#\"", "'", "'\\", "\"\\", "//", "r", "/"] {
            assert_eq!(code_only(text).len(), text.len());
        }
    }

    #[test]
    fn the_test_module_is_left_out() {
        assert_eq!(without_tests("code\n#[cfg(test)]\nmod tests {\n}\n"), "code\n");
        let declared = "#[cfg(test)]\nmod tests;\npub use x;\n";
        assert_eq!(without_tests(declared), declared);
        assert!(is_test_file("crates/nystream/src/persist/tests.rs"));
        assert!(!is_test_file("crates/nystream/src/persist/mod.rs"));
    }
}
