//! Files that outlive a run: the model container and atomic writing.
//!
//! A [`Container`] is a safetensors file with one JSON document in its metadata: `docs/format.md`
//! describes it byte by byte. It is versioned, covered to the last bit by a checksum, and safe to
//! load from strangers. Same content, same bytes.
//!
//! ```
//! use nystream::persist::Container;
//!
//! let mut container = Container::new("example", serde_json::json!({"note": "two numbers"}));
//! container.put_f64("numbers", &[2], vec![1.5, -0.0])?;
//! let bytes = container.to_bytes()?;
//!
//! let mut copy = Container::from_bytes("memory", &bytes)?;
//! copy.expect_kind("example")?;
//! assert_eq!(copy.take_finite("numbers", 1)?, (vec![2], vec![1.5, -0.0]));
//! # Ok::<(), nystream::Error>(())
//! ```

mod atomic;
mod container;
mod header;
mod rows;
mod tensor;
#[cfg(test)]
mod tests;

pub use atomic::{AtomicFile, write_atomically, write_atomically_with};
pub use container::Container;
pub use header::FORMAT_VERSION;
pub use tensor::{Tensor, TensorData};
