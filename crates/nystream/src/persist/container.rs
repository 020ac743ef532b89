//! The model file in memory: a kind, a JSON document, and named arrays.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::atomic::write_atomically;
use super::header::{self, CHECKSUM_AT, CHECKSUM_DIGITS, Envelope, FORMAT_VERSION};
use super::tensor::{Tensor, TensorData};
use crate::error::{Error, Result};

/// A model file's content. Writers `put` arrays and [`save`](Self::save); readers
/// [`load`](Self::load), check the kind, `take` the arrays, and [`finish`](Self::finish).
#[derive(Debug, Clone, PartialEq)]
pub struct Container {
    /// What is inside, such as `krr-model`.
    pub kind: String,
    /// Settings and names. Finite numbers come back to the last bit; arrays belong in tensors.
    pub document: Value,
    tensors: BTreeMap<String, Tensor>,
    origin: String,
    written_by: String,
}

impl Container {
    /// A container of this kind with no arrays yet.
    pub fn new(kind: impl Into<String>, document: Value) -> Self {
        Self {
            kind: kind.into(),
            document,
            tensors: BTreeMap::new(),
            origin: "memory".to_owned(),
            written_by: concat!("nystream ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }

    /// The program that wrote the file, with its version.
    pub fn written_by(&self) -> &str {
        &self.written_by
    }

    /// The file this came from, for messages.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The arrays by name.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.tensors.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// An error that says what is wrong with this file.
    pub fn malformed(&self, reason: impl Into<String>) -> Error {
        Error::Format { origin: self.origin.clone(), reason: reason.into() }
    }

    // Writing

    /// Adds an array of doubles, row-major.
    pub fn put_f64(&mut self, name: &str, shape: &[usize], data: Vec<f64>) -> Result<()> {
        self.put(name, shape, TensorData::F64(data))
    }
    /// Adds an array of 32-bit counts or column numbers.
    pub fn put_u32(&mut self, name: &str, shape: &[usize], data: Vec<u32>) -> Result<()> {
        self.put(name, shape, TensorData::U32(data))
    }
    /// Adds an array of 64-bit counts, row numbers or offsets.
    pub fn put_u64(&mut self, name: &str, shape: &[usize], data: Vec<u64>) -> Result<()> {
        self.put(name, shape, TensorData::U64(data))
    }

    fn put(&mut self, name: &str, shape: &[usize], data: TensorData) -> Result<()> {
        let expected = shape.iter().copied().fold(1, usize::saturating_mul);
        if expected != data.len() {
            return Err(Error::Shape { what: "numbers of a tensor", found: data.len(), expected });
        }
        if shape.len() > header::MAX_RANK {
            return Err(Error::Shape { what: "tensor dimensions", found: shape.len(), expected: header::MAX_RANK });
        }
        if name == "__metadata__" || self.tensors.contains_key(name) {
            return Err(Error::Internal("a tensor's name is taken"));
        }
        self.tensors.insert(name.to_owned(), Tensor { shape: shape.to_vec(), data });
        Ok(())
    }

    /// The file's bytes. What is returned can be read back: the reader's limits hold here too.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let envelope = Envelope {
            checksum: "0".repeat(CHECKSUM_DIGITS),
            format_version: FORMAT_VERSION,
            kind: self.kind.clone(),
            written_by: self.written_by.clone(),
            document: self.document.clone(),
        };
        let json = serde_json::to_string(&envelope).map_err(|_| Error::Internal("the document is not JSON"))?;
        let advice = "use fewer features or categories";
        limit("the model's document (weight)", header::document_weight(&json), header::MAX_DOCUMENT_WEIGHT, advice)?;
        limit("the model's tensors (count)", self.tensors.len(), header::MAX_TENSORS, advice)?;

        let metadata = HashMap::from([("nystream".to_owned(), json)]);
        let mut file = safetensors::serialize(&self.tensors, Some(metadata))
            .map_err(|_| Error::Internal("the tensors do not make a safetensors file"))?;
        if !file[8..].starts_with(header::PREFIX) {
            return Err(Error::Internal("the checksum does not stand where it should"));
        }
        let header_len = u64::from_le_bytes(std::array::from_fn(|i| file[i])) as usize;
        limit("the model's header", header_len, header::MAX_HEADER_BYTES, advice)?;
        let widest = self.tensors.values().flat_map(|tensor| &tensor.shape).max().copied().unwrap_or(0);
        limit("a tensor's dimension", widest, file.len(), "leave empty arrays out")?;

        let digits = header::checksum(&file);
        file[CHECKSUM_AT..CHECKSUM_AT + CHECKSUM_DIGITS].copy_from_slice(digits.as_bytes());
        Ok(file)
    }

    /// Writes the file in one step: either all of it is there afterwards, or what was there before.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        write_atomically(path.as_ref(), &self.to_bytes()?)
    }

    /// Checks that every double is finite, for files whose readers take no others. `what` names the content in messages.
    pub fn require_finite(&self, what: &'static str) -> Result<()> {
        for (name, tensor) in &self.tensors {
            if let TensorData::F64(data) = &tensor.data
                && let Some(value) = data.iter().find(|v| !v.is_finite())
            {
                return Err(Error::NotFinite { what, place: format!("tensor '{name}'"), found: value.to_string() });
            }
        }
        Ok(())
    }

    /// Checks that the document can be read as the type that its reader expects. JSON has no infinity and no NaN: both are
    /// written as null, which is no number to a reader.
    pub fn require_readable<T: DeserializeOwned>(&self, what: &'static str) -> Result<()> {
        match T::deserialize(&self.document) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::NotFinite { what, place: "document".to_owned(), found: error.to_string() }),
        }
    }

    // Reading

    /// Reads a file's bytes, which may come from anyone. `origin` names them in messages.
    pub fn from_bytes(origin: impl Into<String>, bytes: &[u8]) -> Result<Self> {
        let origin = origin.into();
        let read = || {
            let (envelope, entries) = header::read(bytes)?;
            let mut tensors = BTreeMap::new();
            for (name, entry) in entries {
                let data = TensorData::decode(&entry.type_name, &bytes[entry.bytes])
                    .ok_or_else(|| format!("tensor '{name}' is of type {:?}", entry.type_name))?;
                tensors.insert(name, Tensor { shape: entry.shape, data });
            }
            Ok((envelope, tensors))
        };
        match read() {
            Ok((Envelope { kind, document, written_by, .. }, tensors)) => {
                Ok(Self { kind, document, tensors, origin, written_by })
            }
            Err(reason) => Err(Error::Format { origin, reason }),
        }
    }

    /// Reads a file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let about = fs::metadata(path).map_err(|e| Error::io(path, "read", e))?;
        let origin = path.display().to_string();
        if !about.is_file() {
            // A device may never end.
            return Err(Error::Format { origin, reason: "not a regular file".to_owned() });
        }
        let bytes = fs::read(path).map_err(|e| Error::io(path, "read", e))?;
        Self::from_bytes(origin, &bytes)
    }

    /// Checks the kind.
    pub fn expect_kind(&self, kind: &str) -> Result<()> {
        if self.kind == kind {
            Ok(())
        } else {
            Err(self.malformed(format!("it holds a {:?}, expected a {kind:?}", self.kind)))
        }
    }

    /// The document as a type of the reader's.
    pub fn document_as<T: DeserializeOwned>(&self) -> Result<T> {
        T::deserialize(&self.document).map_err(|e| self.malformed(format!("document: {e}")))
    }

    /// Whether there is an array of this name (for optional parts).
    pub fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Takes out doubles with their shape, which has `rank` dimensions. Any bits may stand in them.
    pub fn take_f64(&mut self, name: &str, rank: usize) -> Result<(Vec<usize>, Vec<f64>)> {
        match self.take(name, rank)? {
            Tensor { shape, data: TensorData::F64(data) } => Ok((shape, data)),
            other => Err(self.wrong_type(name, &other, "F64")),
        }
    }
    /// Takes out doubles, none of which may be infinite or NaN.
    pub fn take_finite(&mut self, name: &str, rank: usize) -> Result<(Vec<usize>, Vec<f64>)> {
        let (shape, data) = self.take_f64(name, rank)?;
        match data.iter().position(|v| !v.is_finite()) {
            None => Ok((shape, data)),
            Some(i) => {
                Err(self.malformed(format!("tensor '{name}': found {} at {i}, expected finite numbers", data[i])))
            }
        }
    }
    /// Takes out 32-bit counts or column numbers with their shape.
    pub fn take_u32(&mut self, name: &str, rank: usize) -> Result<(Vec<usize>, Vec<u32>)> {
        match self.take(name, rank)? {
            Tensor { shape, data: TensorData::U32(data) } => Ok((shape, data)),
            other => Err(self.wrong_type(name, &other, "U32")),
        }
    }
    /// Takes out 64-bit counts, row numbers or offsets with their shape.
    pub fn take_u64(&mut self, name: &str, rank: usize) -> Result<(Vec<usize>, Vec<u64>)> {
        match self.take(name, rank)? {
            Tensor { shape, data: TensorData::U64(data) } => Ok((shape, data)),
            other => Err(self.wrong_type(name, &other, "U64")),
        }
    }

    /// Checks that no array was left over: a file with parts that nobody reads is not what it seems.
    pub fn finish(self) -> Result<()> {
        match self.tensors.keys().next() {
            None => Ok(()),
            Some(name) => Err(self.malformed(format!("tensor '{name}' does not belong in a {:?}", self.kind))),
        }
    }

    fn take(&mut self, name: &str, rank: usize) -> Result<Tensor> {
        let tensor = self.tensors.remove(name).ok_or_else(|| self.malformed(format!("tensor '{name}' is missing")))?;
        if tensor.shape.len() == rank {
            Ok(tensor)
        } else {
            Err(self.malformed(format!("tensor '{name}' has shape {:?}, expected {rank} dimensions", tensor.shape)))
        }
    }

    fn wrong_type(&self, name: &str, found: &Tensor, expected: &str) -> Error {
        self.malformed(format!("tensor '{name}' is of type {}, expected {expected}", found.data.type_name()))
    }
}

fn limit(what: &'static str, needed: usize, allowed: usize, advice: &'static str) -> Result<()> {
    if needed <= allowed {
        return Ok(());
    }
    Err(Error::TooLarge { what, needed_bytes: needed as u64, allowed_bytes: allowed as u64, advice })
}
