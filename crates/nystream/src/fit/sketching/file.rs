//! A sequential dictionary with what turns records into its rows, in a file of kind `sketch` (see docs/format.md).
//!
//! Everything that is read is checked, so that a damaged or hostile file gives an error.

use std::path::Path;

use serde_json::Value;

use super::stream::Feed;
use super::watch::Watch;
use crate::error::{Error, Result};
use crate::fit::observe::Observer;
use crate::persist::Container;
use crate::preprocess::Preprocessor;
use crate::sketch::{AnySequential, SequentialDictionary};
use crate::source::RecordSource;

const BANDWIDTH_BY: &str = "bandwidth_by";

/// A sequential dictionary of a source's rows that can go on, be merged, and be saved.
#[derive(Debug)]
pub struct SavedSketch {
    preprocessor: Preprocessor,
    sketch: AnySequential,
    bandwidth_by: Option<String>,
}

impl SavedSketch {
    /// Puts the parts together. Nothing of the targets is kept: the dictionary does not depend on them.
    pub(super) fn new(preprocessor: &Preprocessor, sketch: AnySequential, bandwidth_by: Option<&str>) -> Self {
        let preprocessor = preprocessor.of_features_alone();
        Self { preprocessor, sketch, bandwidth_by: bandwidth_by.map(str::to_owned) }
    }

    /// What turns records into rows.
    pub fn preprocessor(&self) -> &Preprocessor {
        &self.preprocessor
    }
    /// The dictionary.
    pub fn sketch(&self) -> &AnySequential {
        &self.sketch
    }
    /// How the bandwidth was found: `auto`, `median`, `alignment`, `fixed`; none for kernels without one.
    pub fn bandwidth_by(&self) -> Option<&str> {
        self.bandwidth_by.as_deref()
    }

    /// An empty one with the same preprocessing, kernel and settings, and this seed: for another part of the data.
    pub fn empty_like(&self, seed: u64) -> Result<Self> {
        let sketch = self.sketch.empty_like(seed)?;
        Ok(Self { preprocessor: self.preprocessor.clone(), sketch, bandwidth_by: self.bandwidth_by.clone() })
    }

    /// Goes on with every row of a source, which is read once, and returns their number. The dictionary is to the last
    /// bit what it would be if these rows had followed in the stream before.
    pub fn follow(
        &mut self,
        source: &mut dyn RecordSource,
        watch: &mut Watch,
        observer: &mut dyn Observer,
    ) -> Result<u64> {
        observer.stage(&format!("dictionary: {}", self.sketch.method()));
        Feed::new(&self.preprocessor).run(source, &mut self.sketch, watch, observer)
    }

    /// One sketch for the rows of both. Kernel, leverage ridge at the start, accuracy, failure probability and
    /// preprocessing must agree, and the method must be `squeak`; what does not is named.
    pub fn merge(self, other: Self) -> Result<Self> {
        // The method first: it says more than a setting that only one of them has.
        let squeaks = self.sketch.squeak_options().is_some() && other.sketch.squeak_options().is_some();
        if squeaks {
            self.preprocessor.require_same_rows(&other.preprocessor)?;
        }
        let sketch = self.sketch.merge(other.sketch)?;
        let wider = other.preprocessor.feature_count() > self.preprocessor.feature_count();
        let preprocessor = if wider { other.preprocessor } else { self.preprocessor };
        Ok(Self { preprocessor, sketch, bandwidth_by: self.bandwidth_by })
    }

    /// Writes the file: aside first, then renamed, so that no half-written file is ever seen.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.to_container()?.save(path)
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.to_container()?.to_bytes()
    }

    /// Reads a file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_container(Container::load(path)?)
    }

    /// Reads a file's bytes; `origin` names them in errors.
    pub fn from_bytes(origin: &str, bytes: &[u8]) -> Result<Self> {
        Self::from_container(Container::from_bytes(origin, bytes)?)
    }

    fn to_container(&self) -> Result<Container> {
        let mut file = self.sketch.to_container()?;
        self.preprocessor.put_into(&mut file)?;
        match &mut file.document {
            Value::Object(document) => {
                document.insert(BANDWIDTH_BY.to_owned(), self.bandwidth_by.clone().map_or(Value::Null, Value::from))
            }
            _ => return Err(Error::Internal("a document that is no object")),
        };
        Ok(file)
    }

    /// Reads what is inside a file that has been opened.
    pub fn from_container(mut file: Container) -> Result<Self> {
        file.expect_kind("sketch")?;
        let preprocessor = Preprocessor::take_from(&mut file)?;
        let bandwidth_by = match file.document.as_object_mut().and_then(|document| document.remove(BANDWIDTH_BY)) {
            Some(Value::String(by)) => Some(by),
            Some(Value::Null) => None,
            _ => return Err(file.malformed("document: bandwidth_by is neither text nor null")),
        };
        let origin = file.origin().to_owned();
        let sketch = AnySequential::from_container(file)?;
        if let Some((cols, sparse)) = sketch.row_shape() {
            let width = preprocessor.feature_count();
            let fits = if sparse { cols <= width } else { cols == width };
            if sparse != preprocessor.is_sparse() || !fits {
                let reason =
                    format!("rows of {cols} columns, which the preprocessor for {width} features does not make");
                return Err(Error::Format { origin, reason });
            }
        }
        Ok(Self { preprocessor, sketch, bandwidth_by })
    }
}
