//! A preprocessor as a part of a file: see docs/format.md.

use serde_json::Value;

use super::preprocessor::Preprocessor;
use crate::error::{Error, Result};
use crate::persist::Container;

const KEY: &str = "preprocessor";
/// Arrays with a number a feature: kept as tensors, for there may be a million of them.
const PER_FEATURE: [&str; 3] = ["shift", "scale", "fill"];

impl Preprocessor {
    /// Adds this to a file: the key `preprocessor` of its document, and the tensors `feature_shift`, `feature_scale`
    /// and `feature_fill`.
    pub fn put_into(&self, file: &mut Container) -> Result<()> {
        let mut written =
            serde_json::to_value(self).map_err(|_| Error::Internal("a preprocessor could not be written"))?;
        for name in PER_FEATURE {
            let numbers: Vec<f64> = serde_json::from_value(written[name].take())
                .map_err(|_| Error::Internal("a preprocessor without its numbers"))?;
            file.put_f64(&format!("feature_{name}"), &[numbers.len()], numbers)?;
        }
        match &mut file.document {
            Value::Object(document) => document.insert(KEY.to_owned(), written),
            _ => return Err(Error::Internal("a document that is no object")),
        };
        Ok(())
    }

    /// Takes out what [`put_into`](Self::put_into) added, and checks it.
    pub fn take_from(file: &mut Container) -> Result<Self> {
        let mut written = match file.document.as_object_mut().and_then(|document| document.remove(KEY)) {
            Some(written) => written,
            None => return Err(file.malformed("document: missing field `preprocessor`")),
        };
        for name in PER_FEATURE {
            let (_, numbers) = file.take_finite(&format!("feature_{name}"), 1)?;
            if let Some(place) = written.get_mut(name) {
                *place = numbers.into();
            }
        }
        serde_json::from_value(written).map_err(|e| file.malformed(format!("document: {e}")))
    }
}
