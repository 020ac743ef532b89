//! The head of a model file, read with suspicion.
//!
//! The `safetensors` crate writes our files, but does not read them: it adds sizes from the file
//! without looking for overflow, which panics where overflow is checked, it forgives names that
//! stand twice, and its parser may take many times the header's size in memory. Here every length
//! is checked before it is used, and nothing is allocated that the file's own bytes do not pay for,
//! within the limits below.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::tensor::TensorData;

/// The format this program writes, and the newest it reads.
pub const FORMAT_VERSION: u64 = 1;

/// What every file of ours begins with, after the eight bytes of the header's length.
pub(super) const PREFIX: &[u8] = br#"{"__metadata__":{"nystream":"{\"checksum\":\""#;
/// Where the checksum's digits stand.
pub(super) const CHECKSUM_AT: usize = LENGTH_BYTES + PREFIX.len();
/// SHA-256 in lower-case hexadecimal.
pub(super) const CHECKSUM_DIGITS: usize = 64;

/// A header names columns and settings; numbers belong in tensors.
pub(super) const MAX_HEADER_BYTES: usize = 16 << 20;
/// Bounds the memory of the parsed document, see [`document_weight`]: about 100 bytes for each.
pub(super) const MAX_DOCUMENT_WEIGHT: usize = 1 << 21;
pub(super) const MAX_TENSORS: usize = 1024;
pub(super) const MAX_RANK: usize = 8;

const LENGTH_BYTES: usize = 8;

/// The JSON document inside the metadata. The checksum stands first, so that its place is fixed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Envelope {
    pub checksum: String,
    pub format_version: u64,
    pub kind: String,
    pub written_by: String,
    pub document: Value,
}

/// Where a tensor stands among the data.
#[derive(Debug)]
pub(super) struct Entry {
    pub type_name: String,
    pub shape: Vec<usize>,
    /// Place in the whole file.
    pub bytes: std::ops::Range<usize>,
}

/// Reads and checks everything but the tensors' numbers: is it ours, its version, its checksum, its
/// layout, in this order. The error is the reason alone.
pub(super) fn read(file: &[u8]) -> Result<(Envelope, BTreeMap<String, Entry>), String> {
    let header = header_bytes(file)?;
    let header_end = LENGTH_BYTES + header.len();
    let RawHeader { document, tensors } = serde_json::from_slice(header).map_err(|e| format!("damaged header: {e}"))?;
    check_version(&document)?;
    check_checksum(file)?;
    let tensors = layout(tensors, header_end, file.len())?;
    if document_weight(&document) > MAX_DOCUMENT_WEIGHT {
        return Err("the document holds too many values".to_owned());
    }
    let envelope = serde_json::from_str(&document).map_err(|e| format!("damaged document: {e}"))?;
    Ok((envelope, tensors))
}

fn header_bytes(file: &[u8]) -> Result<&[u8], String> {
    let (length, rest) = file.split_first_chunk::<LENGTH_BYTES>().ok_or("shorter than eight bytes")?;
    let length = u64::from_le_bytes(*length);
    if !rest.starts_with(b"{") {
        return Err("not a safetensors file".to_owned());
    }
    if !rest.starts_with(PREFIX) {
        // A cut inside the prefix is a cut file of ours, most likely.
        return Err(if PREFIX.starts_with(rest) {
            "cut short".to_owned()
        } else {
            "a safetensors file perhaps, but not one written by nystream".to_owned()
        });
    }
    if length > MAX_HEADER_BYTES as u64 {
        return Err(format!("a header of {length} bytes, more than the {MAX_HEADER_BYTES} allowed"));
    }
    let length = length as usize;
    if length < PREFIX.len() + CHECKSUM_DIGITS {
        return Err(format!("a header of {length} bytes is too short to be one"));
    }
    rest.get(..length).ok_or_else(|| format!("cut short: a header of {length} bytes in a file of {}", file.len()))
}

fn check_version(document: &str) -> Result<(), String> {
    /// The least that every version must keep.
    #[derive(Deserialize)]
    struct Version {
        format_version: u64,
        #[serde(default)]
        written_by: String,
    }
    let Version { format_version: found, written_by } =
        serde_json::from_str(document).map_err(|e| format!("damaged document: {e}"))?;
    match found {
        FORMAT_VERSION => Ok(()),
        0 => Err("format version 0 does not exist".to_owned()),
        newer => Err(format!(
            "format version {newer}, written by {written_by:?}, is newer than version {FORMAT_VERSION}, the newest that \
             this program reads; use a newer nystream"
        )),
    }
}

/// SHA-256 of the file with zeros in place of the checksum's own digits.
pub(super) fn checksum(file: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update(&file[..CHECKSUM_AT]);
    hash.update([b'0'; CHECKSUM_DIGITS]);
    hash.update(&file[CHECKSUM_AT + CHECKSUM_DIGITS..]);
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn check_checksum(file: &[u8]) -> Result<(), String> {
    let stated = &file[CHECKSUM_AT..CHECKSUM_AT + CHECKSUM_DIGITS];
    if stated == checksum(file).as_bytes() {
        Ok(())
    } else {
        Err("the checksum does not match: the file is damaged, cut short or altered".to_owned())
    }
}

fn layout(
    tensors: BTreeMap<String, RawEntry>,
    data_start: usize,
    file_len: usize,
) -> Result<BTreeMap<String, Entry>, String> {
    let mut spans: Vec<_> = tensors.iter().map(|(name, raw)| (raw.data_offsets, name)).collect();
    spans.sort_unstable();
    let mut next = 0;
    for ((start, end), name) in spans {
        if start != next || end < start {
            return Err(format!("tensor '{name}' stands at {start}..{end}, expected to start at {next}"));
        }
        next = end;
    }
    let data_len = (file_len - data_start) as u64;
    if next != data_len {
        return Err(format!("tensors of {next} bytes in all, but {data_len} bytes of data"));
    }
    // From here on every offset lies inside the file.
    tensors.into_iter().map(|(name, raw)| Ok((name.clone(), entry(&name, raw, data_start, file_len)?))).collect()
}

fn entry(name: &str, raw: RawEntry, data_start: usize, file_len: usize) -> Result<Entry, String> {
    let RawEntry { dtype: type_name, shape, data_offsets: (start, end) } = raw;
    let width = TensorData::width(&type_name)
        .ok_or_else(|| format!("tensor '{name}' is of type {type_name:?}, expected F64, U32 or U64"))?;
    if shape.len() > MAX_RANK {
        return Err(format!("tensor '{name}' has {} dimensions, at most {MAX_RANK} are allowed", shape.len()));
    }
    // An array with no numbers could still claim a huge dimension, which a reader might trust.
    if let Some(huge) = shape.iter().find(|&&dim| dim > file_len as u64) {
        return Err(format!("tensor '{name}' has a dimension of {huge}, more than the file's own size"));
    }
    let bytes = shape.iter().try_fold(width as u64, |product, &dim| product.checked_mul(dim));
    if bytes != Some(end - start) {
        return Err(format!("tensor '{name}' of shape {shape:?} does not fit its {} bytes", end - start));
    }
    let shape = shape.into_iter().map(|dim| dim as usize).collect();
    Ok(Entry { type_name, shape, bytes: data_start + start as usize..data_start + end as usize })
}

/// How much memory a JSON text will take when parsed, roughly in hundreds of bytes. A value of two
/// bytes takes 32, the smallest list 128, the smallest object 600; what stands inside strings is
/// counted too.
pub(super) fn document_weight(json: &str) -> usize {
    json.bytes().fold(0, |weight, byte| match byte {
        b',' => weight + 1,
        b'[' => weight + 4,
        b'{' => weight + 8,
        _ => weight,
    })
}

/// The safetensors header as it stands, before any number in it is believed.
struct RawHeader {
    document: String,
    tensors: BTreeMap<String, RawEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMetadata {
    nystream: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEntry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

impl<'de> Deserialize<'de> for RawHeader {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HeaderVisitor;
        impl<'de> Visitor<'de> for HeaderVisitor {
            type Value = RawHeader;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a safetensors header")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawHeader, A::Error> {
                let mut document = None;
                let mut tensors = BTreeMap::new();
                while let Some(name) = map.next_key::<String>()? {
                    let repeated = if name == "__metadata__" {
                        document.replace(map.next_value::<RawMetadata>()?.nystream).is_some()
                    } else {
                        tensors.insert(name, map.next_value::<RawEntry>()?).is_some()
                    };
                    if repeated {
                        return Err(A::Error::custom("a name stands twice"));
                    }
                    if tensors.len() > MAX_TENSORS {
                        return Err(A::Error::custom(format_args!("more than {MAX_TENSORS} tensors")));
                    }
                }
                Ok(RawHeader { document: document.ok_or_else(|| A::Error::missing_field("__metadata__"))?, tensors })
            }
        }
        deserializer.deserialize_map(HeaderVisitor)
    }
}
