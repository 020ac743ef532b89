//! Arrays as they stand in a model file: little-endian, row-major.

use std::borrow::Cow;

use safetensors::tensor::{Dtype, View};

/// A named array's shape and numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Sizes, outermost first; the numbers are row-major.
    pub shape: Vec<usize>,
    /// The numbers.
    pub data: TensorData,
}

/// The numbers of a [`Tensor`].
#[derive(Debug, Clone, PartialEq)]
pub enum TensorData {
    /// Double precision.
    F64(Vec<f64>),
    /// Small counts and column numbers.
    U32(Vec<u32>),
    /// Large counts, row numbers and offsets.
    U64(Vec<u64>),
}

impl TensorData {
    /// How many numbers there are.
    pub fn len(&self) -> usize {
        match self {
            Self::F64(data) => data.len(),
            Self::U32(data) => data.len(),
            Self::U64(data) => data.len(),
        }
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The type's name in the file.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::F64(_) => "F64",
            Self::U32(_) => "U32",
            Self::U64(_) => "U64",
        }
    }
    /// Bytes of one number of the named type; `None` for a type that models do not use.
    pub(super) fn width(type_name: &str) -> Option<usize> {
        match type_name {
            "F64" | "U64" => Some(8),
            "U32" => Some(4),
            _ => None,
        }
    }
    /// Reads numbers of the named type; `None` for a type that models do not use.
    pub(super) fn decode(type_name: &str, bytes: &[u8]) -> Option<Self> {
        fn numbers<const W: usize, T>(bytes: &[u8], read: fn([u8; W]) -> T) -> Vec<T> {
            bytes.as_chunks().0.iter().map(|&chunk| read(chunk)).collect()
        }
        match type_name {
            "F64" => Some(Self::F64(numbers(bytes, f64::from_le_bytes))),
            "U32" => Some(Self::U32(numbers(bytes, u32::from_le_bytes))),
            "U64" => Some(Self::U64(numbers(bytes, u64::from_le_bytes))),
            _ => None,
        }
    }
}

impl View for &Tensor {
    fn dtype(&self) -> Dtype {
        match self.data {
            TensorData::F64(_) => Dtype::F64,
            TensorData::U32(_) => Dtype::U32,
            TensorData::U64(_) => Dtype::U64,
        }
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Owned(match &self.data {
            TensorData::F64(data) => data.iter().flat_map(|v| v.to_le_bytes()).collect(),
            TensorData::U32(data) => data.iter().flat_map(|v| v.to_le_bytes()).collect(),
            TensorData::U64(data) => data.iter().flat_map(|v| v.to_le_bytes()).collect(),
        })
    }
    fn data_len(&self) -> usize {
        self.data.len() * TensorData::width(self.data.type_name()).unwrap_or(0)
    }
}
