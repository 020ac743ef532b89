//! The container: round trips, and every way of being wrong that a file can have.

use std::fs;

use proptest::prelude::*;
use serde_json::json;

use super::header::{CHECKSUM_AT, CHECKSUM_DIGITS, MAX_HEADER_BYTES, PREFIX, checksum};
use super::*;
use crate::error::Error;

fn sample() -> Container {
    let document = json!({"features": ["größe", "a \"quoted\" name", "[,{"], "rows": 12});
    let mut container = Container::new("sample", document);
    container.put_f64("atoms", &[2, 3], vec![1.0, -0.0, f64::MIN_POSITIVE, 0.1, f64::MAX, 3.0]).unwrap();
    container.put_u32("columns", &[3], vec![0, 7, u32::MAX]).unwrap();
    container.put_u64("rows", &[1, 1], vec![u64::MAX]).unwrap();
    container.put_f64("empty", &[0, 4], vec![]).unwrap();
    container
}

fn reason(bytes: &[u8]) -> String {
    match Container::from_bytes("the file", bytes) {
        Err(Error::Format { origin, reason }) => {
            assert_eq!(origin, "the file");
            reason
        }
        other => panic!("expected a format error, found {other:?}"),
    }
}

/// A file with this header and data, whose checksum is right.
fn forged(header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(data);
    let digits = checksum(&file);
    file[CHECKSUM_AT..CHECKSUM_AT + CHECKSUM_DIGITS].copy_from_slice(digits.as_bytes());
    file
}

/// A header with this rest of the envelope and these tensors.
fn header(envelope: &str, tensors: &str) -> String {
    let zeros = "0".repeat(CHECKSUM_DIGITS);
    let escaped = envelope.replace('"', "\\\"");
    format!("{}{zeros}\\\"{escaped}}}\"}}{tensors}}}", str::from_utf8(PREFIX).unwrap())
}

const ENVELOPE: &str = r#","format_version":1,"kind":"sample","written_by":"a test","document":{}"#;

fn with_tensors(tensors: &str, data: &[u8]) -> Vec<u8> {
    forged(&header(ENVELOPE, tensors), data)
}

#[test]
fn what_is_written_is_read_back() {
    let container = sample();
    let bytes = container.to_bytes().unwrap();
    let mut copy = Container::from_bytes("memory", &bytes).unwrap();
    assert_eq!(copy, container);
    assert_eq!(copy.written_by(), concat!("nystream ", env!("CARGO_PKG_VERSION")));
    assert_eq!(copy.to_bytes().unwrap(), bytes);

    let (shape, atoms) = copy.take_finite("atoms", 2).unwrap();
    assert_eq!(shape, [2, 3]);
    assert_eq!(atoms[1].to_bits(), (-0.0f64).to_bits());
    assert_eq!(copy.take_u32("columns", 1).unwrap(), (vec![3], vec![0, 7, u32::MAX]));
    assert_eq!(copy.take_u64("rows", 2).unwrap(), (vec![1, 1], vec![u64::MAX]));
    assert!(copy.has("empty"));
    assert_eq!(copy.take_f64("empty", 2).unwrap(), (vec![0, 4], vec![]));
    copy.finish().unwrap();
}

#[test]
fn numbers_that_nobody_reads_back_are_noticed() {
    let mut container = Container::new("test", serde_json::json!({ "size": 1.0 }));
    container.put_f64("sums", &[2], vec![1.0, 2.0]).unwrap();
    #[derive(serde::Deserialize)]
    struct Document {
        #[expect(dead_code, reason = "only its type matters")]
        size: f64,
    }
    container.require_finite("it").unwrap();
    container.require_readable::<Document>("it").unwrap();
    container.put_f64("more", &[1], vec![f64::NAN]).unwrap();
    container.document = serde_json::json!({ "size": f64::INFINITY });
    let message = container.require_finite("it").unwrap_err().to_string();
    assert_eq!(message, "it cannot be saved: tensor 'more': found NaN, expected finite numbers");
    assert!(container.require_readable::<Document>("it").unwrap_err().to_string().contains("null"));
}

#[test]
fn other_readers_of_safetensors_read_it_too() {
    let bytes = sample().to_bytes().unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let columns = tensors.tensor("columns").unwrap();
    assert_eq!((columns.shape(), columns.data().len()), (&[3][..], 12));
}

#[test]
fn the_order_of_putting_does_not_change_the_bytes() {
    let mut a = Container::new("k", json!({"x": 1, "y": 2}));
    let mut b = Container::new("k", json!({"x": 1, "y": 2}));
    a.put_f64("one", &[1], vec![1.0]).unwrap();
    a.put_f64("two", &[1], vec![2.0]).unwrap();
    b.put_f64("two", &[1], vec![2.0]).unwrap();
    b.put_f64("one", &[1], vec![1.0]).unwrap();
    assert_eq!(a.to_bytes().unwrap(), b.to_bytes().unwrap());
}

#[test]
fn the_checksum_stands_where_the_documentation_says() {
    assert_eq!(CHECKSUM_AT, 53);
    let bytes = sample().to_bytes().unwrap();
    assert!(bytes[53..117].iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')));
    assert_eq!(&bytes[117..119], b"\\\"");
}

#[test]
fn every_flipped_bit_is_noticed() {
    let mut bytes = sample().to_bytes().unwrap();
    for i in 0..bytes.len() * 8 {
        bytes[i / 8] ^= 1 << (i % 8);
        reason(&bytes);
        bytes[i / 8] ^= 1 << (i % 8);
    }
    Container::from_bytes("unharmed", &bytes).unwrap();
}

#[test]
fn every_truncation_and_every_addition_is_noticed() {
    let mut bytes = sample().to_bytes().unwrap();
    for len in 0..bytes.len() {
        reason(&bytes[..len]);
    }
    for extra in [0, b' ', b'0'] {
        bytes.push(extra);
        reason(&bytes);
    }
}

#[test]
fn strangers_are_told_apart() {
    assert_eq!(reason(b""), "shorter than eight bytes");
    assert_eq!(reason(b"x,y,target\n1,2,3\n"), "not a safetensors file");
    let stranger = safetensors::serialize([("t", &sample().tensors().next().unwrap().1.clone())], None).unwrap();
    assert!(reason(&stranger).contains("not one written by nystream"));
    assert!(reason(&sample().to_bytes().unwrap()[..30]).contains("cut short"));
}

#[test]
fn a_newer_version_is_named_even_when_all_else_differs() {
    let envelope = r#","format_version":2,"written_by":"nystream 9.0","more":[1]"#;
    // Neither the checksum nor a type of a later version stands in the way of the message.
    let mut bytes = forged(&header(envelope, r#","t":{"dtype":"F8","shape":[1],"data_offsets":[0,1]}"#), b"x");
    bytes[CHECKSUM_AT] ^= 1;
    let reason_newer = reason(&bytes);
    for part in ["format version 2", "nystream 9.0", "newer"] {
        assert!(reason_newer.contains(part), "{reason_newer}");
    }
    assert!(reason(&forged(&header(r#","format_version":0"#, ""), b"")).contains("version 0"));
}

#[test]
fn forged_files_that_are_right_are_accepted() {
    // Shows that the refusals below are not refusals of the forger's own mistakes.
    let entry = r#","t":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}"#;
    let mut file = Container::from_bytes("forged", &with_tensors(entry, &1.5f64.to_le_bytes())).unwrap();
    assert_eq!(file.take_finite("t", 1).unwrap(), (vec![1], vec![1.5]));
}

#[test]
fn hostile_layouts_are_refused() {
    let entry = |name: &str, dtype: &str, shape: &str, offsets: &str| {
        format!(r#","{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}"#)
    };
    let word = [0; 8];
    let cases = [
        (entry("t", "F64", "[2]", "[0,8]"), "does not fit"),
        (entry("t", "F64", "[1]", "[0,16]"), "16 bytes in all"),
        (entry("t", "F64", "[1]", "[8,16]"), "expected to start at 0"),
        (entry("t", "F64", "[1]", "[8,0]"), "expected to start at 0"),
        (entry("t", "F64", "[1]", "[0,18446744073709551615]"), "bytes in all"),
        (entry("t", "F64", "[4294967296,4294967296,0]", "[0,8]"), "more than the file's own size"),
        (entry("t", "F64", "[1,1,1,1,1,1,1,1,1]", "[0,8]"), "9 dimensions"),
        (entry("t", "BF16", "[4]", "[0,8]"), "expected F64, U32 or U64"),
        (entry("t", "F64", "[-1]", "[0,8]"), "damaged header"),
        (entry("t", "F64", "[1.0]", "[0,8]"), "damaged header"),
        (entry("t", "F64", "[18446744073709551616]", "[0,8]"), "damaged header"),
        (entry("t", "F64", "[1]", "[0,8,9]"), "damaged header"),
        (r#","t":{"dtype":"F64","shape":[1],"data_offsets":[0,8],"more":1}"#.to_owned(), "damaged header"),
        (r#","t":{"dtype":"F64","shape":[1]}"#.to_owned(), "damaged header"),
        (r#","__metadata__":{"nystream":"{}"}"#.to_owned(), "twice"),
        (entry("t", "F64", "[1]", "[0,8]").repeat(2), "twice"),
        (entry("a", "F64", "[1]", "[0,8]") + &entry("b", "F64", "[1]", "[0,8]"), "expected to start at 8"),
        (entry("a", "U32", "[1]", "[0,4]") + &entry("b", "F64", "[1]", "[3,8]"), "expected to start at 4"),
        (String::new(), "0 bytes in all"),
    ];
    for (tensors, expected) in cases {
        let found = reason(&with_tensors(&tensors, &word));
        assert!(found.contains(expected), "{tensors}: {found}");
    }
}

#[test]
fn lengths_that_overflow_together_are_refused() {
    // Nine tensors, each possible by itself, that end eight bytes before 2^64.
    let giant = (1u64 << 61) - 8;
    let mut tensors = String::new();
    let mut start = 0u64;
    for i in 0..8 {
        let end = start + giant;
        tensors += &format!(r#","t{i}":{{"dtype":"F64","shape":[{}],"data_offsets":[{start},{end}]}}"#, giant / 8);
        start = end;
    }
    tensors += &format!(r#","t8":{{"dtype":"F64","shape":[7],"data_offsets":[{start},{}]}}"#, u64::MAX - 7);
    let bytes = with_tensors(&tensors, &[0; 8]);
    assert!(reason(&bytes).contains("18446744073709551608 bytes in all"));
}

#[test]
fn hostile_headers_are_refused() {
    let good = with_tensors("", b"");
    for length in [0, 1, 115, good.len() as u64, MAX_HEADER_BYTES as u64 + 1, u64::MAX, u64::MAX - 7, 1 << 63] {
        let mut bytes = good.clone();
        bytes[..8].copy_from_slice(&length.to_le_bytes());
        assert!(reason(&bytes).contains("header"), "{length}");
    }
    let deep = format!(r#","format_version":1,"kind":"k","written_by":"w","document":{}"#, "[".repeat(100_000));
    assert!(reason(&forged(&header(&deep, ""), b"")).contains("damaged document"));
    for (value, count) in [(",0", 1 << 21), (",[0]", 1 << 19), (",{\"\":0}", 1 << 18)] {
        let values = value.repeat(count);
        let many = format!(r#","format_version":1,"kind":"k","written_by":"w","document":[0{values}]"#);
        assert!(reason(&forged(&header(&many, ""), b"")).contains("too many values"));
    }
    let crowd: String =
        (0..2000).map(|i| format!(r#","t{i}":{{"dtype":"F64","shape":[0],"data_offsets":[0,0]}}"#)).collect();
    assert!(reason(&with_tensors(&crowd, b"")).contains("more than 1024 tensors"));

    let mut text = header(ENVELOPE, "").into_bytes();
    let at = text.windows(6).position(|w| w == b"sample").unwrap();
    text[at] = 0xff;
    let mut file = (text.len() as u64).to_le_bytes().to_vec();
    file.extend(text);
    assert!(reason(&file).contains("damaged header"));
}

#[test]
fn missing_and_strange_keys_are_refused() {
    let full = ENVELOPE;
    for part in [r#","format_version":1"#, r#","kind":"sample""#, r#","written_by":"a test""#, r#","document":{}"#] {
        assert!(full.contains(part));
        let found = reason(&forged(&header(&full.replace(part, ""), ""), b""));
        assert!(found.contains("missing field"), "{part}: {found}");
    }
    for part in [r#","more":1"#, r#","kind":"twice""#] {
        let found = reason(&forged(&header(&format!("{full}{part}"), ""), b""));
        assert!(found.contains("damaged document"), "{part}: {found}");
    }
    let found = reason(&forged(&header(&full.replace(":1,", ":\"1\","), ""), b""));
    assert!(found.contains("damaged document"), "{found}");
}

#[test]
fn takers_check_what_they_take() {
    let mut container = sample();
    container.put_f64("bad", &[2], vec![0.0, f64::NAN]).unwrap();
    let text = |error: Error| error.to_string();
    assert!(text(container.clone().take_u32("atoms", 2).unwrap_err()).contains("type F64, expected U32"));
    assert!(text(container.clone().take_u64("atoms", 2).unwrap_err()).contains("type F64, expected U64"));
    assert!(text(container.clone().take_f64("columns", 1).unwrap_err()).contains("type U32, expected F64"));
    assert!(text(container.clone().take_f64("atoms", 1).unwrap_err()).contains("expected 1 dimensions"));
    assert!(text(container.clone().take_f64("nothing", 1).unwrap_err()).contains("missing"));
    assert!(text(container.clone().take_finite("bad", 1).unwrap_err()).contains("found NaN at 1"));
    assert!(text(container.expect_kind("model").unwrap_err()).contains("\"sample\""));
    assert!(text(container.document_as::<Vec<u8>>().unwrap_err()).contains("document"));
    assert!(text(container.finish().unwrap_err()).contains("does not belong"));
}

#[test]
fn writers_cannot_write_what_readers_refuse() {
    let mut container = Container::new("k", json!(null));
    assert!(matches!(container.put_f64("t", &[2], vec![1.0]), Err(Error::Shape { .. })));
    assert!(matches!(container.put_f64("t", &[usize::MAX, 2], vec![]), Err(Error::Shape { .. })));
    assert!(matches!(container.put_f64("t", &[1; 9], vec![1.0]), Err(Error::Shape { .. })));
    assert!(matches!(container.put_f64("__metadata__", &[0], vec![]), Err(Error::Internal(_))));
    container.put_f64("t", &[0, 1 << 40], vec![]).unwrap();
    assert!(matches!(container.put_f64("t", &[0], vec![]), Err(Error::Internal(_))));
    assert!(matches!(container.to_bytes(), Err(Error::TooLarge { .. })));
    let long = Container::new("k", json!("x".repeat(MAX_HEADER_BYTES)));
    assert!(matches!(long.to_bytes(), Err(Error::TooLarge { .. })));
    let many = Container::new("k", json!(vec![0; 1 << 21]));
    assert!(matches!(many.to_bytes(), Err(Error::TooLarge { .. })));
}

#[test]
fn files_are_saved_and_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("m.nys");
    sample().save(&path).unwrap();
    let loaded = Container::load(&path).unwrap();
    assert_eq!(loaded.origin(), path.display().to_string());
    assert_eq!(loaded.to_bytes().unwrap(), sample().to_bytes().unwrap());

    // What cannot be written leaves the old model as it was.
    let before = fs::read(&path).unwrap();
    Container::new("k", json!("x".repeat(MAX_HEADER_BYTES))).save(&path).unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), before);

    assert!(matches!(Container::load(directory.path()), Err(Error::Format { .. })));
    assert!(matches!(Container::load(directory.path().join("none")), Err(Error::Io { .. })));
}

proptest! {
    #[test]
    fn random_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Container::from_bytes("random", &bytes).is_err());
    }

    #[test]
    fn random_ends_after_a_true_beginning_are_refused(
        length in 0u64..400,
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        let mut file = length.to_le_bytes().to_vec();
        file.extend(PREFIX);
        file.extend(bytes);
        prop_assert!(Container::from_bytes("random", &file).is_err());
    }

    #[test]
    fn random_edits_with_a_right_checksum_do_not_panic(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut file = sample().to_bytes().unwrap();
        for (place, byte) in edits {
            let place = place.index(file.len());
            file[place] = byte;
        }
        let digits = checksum(&file);
        file[CHECKSUM_AT..CHECKSUM_AT + CHECKSUM_DIGITS].copy_from_slice(digits.as_bytes());
        if let Ok(container) = Container::from_bytes("edited", &file) {
            prop_assert!(container.tensors().all(|(_, t)| t.data.len() == t.shape.iter().product::<usize>()));
        }
    }

    #[test]
    fn numbers_of_the_document_survive(number in proptest::num::f64::NORMAL) {
        // Holds only with the `float_roundtrip` feature of serde_json; without it one in five is off by a bit.
        let container = Container::new("k", json!({"bandwidth": number}));
        let copy = Container::from_bytes("k", &container.to_bytes().unwrap()).unwrap();
        prop_assert_eq!(copy.document["bandwidth"].as_f64().map(f64::to_bits), Some(number.to_bits()));
    }

    #[test]
    fn any_numbers_survive(data in proptest::collection::vec(any::<u64>(), 0..50)) {
        let mut container = Container::new("k", json!({}));
        container.put_f64("t", &[data.len()], data.iter().map(|&bits| f64::from_bits(bits)).collect()).unwrap();
        let mut copy = Container::from_bytes("k", &container.to_bytes().unwrap()).unwrap();
        let (_, back) = copy.take_f64("t", 1).unwrap();
        prop_assert_eq!(back.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), data);
    }
}
