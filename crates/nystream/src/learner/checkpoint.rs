//! A pass that can be interrupted: everything it holds in a file, and going on from there with the same source.
//!
//! A checkpoint is a learner's file (kind `stream-learner`, see docs/format.md) with its preprocessor, how many records
//! were read, a fingerprint of the first of them and one of all. Going on reads the source from its beginning, compares the
//! fingerprints, passes over what was learnt, and continues: the model is that of an uninterrupted pass, bit for bit.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::fingerprint::Fingerprint;
use super::pass::{READ, Recent, StreamPass};
use super::recent::RecentErrors;
use super::streaming::{StreamingOptions, StreamingRidge};
use super::trail::Trail;
use crate::error::{Error, Result};
use crate::fit::Observer;
use crate::persist::Container;
use crate::preprocess::{Preprocessor, TableOptions};
use crate::source::{RecordBlock, RecordSource};

const KEY: &str = "pass";

#[derive(Serialize, Deserialize)]
struct Place {
    records: u64,
    head_records: u64,
    head_fingerprint: String,
    head_features: usize,
    streams: u64,
    table: TableOptions,
    /// Fingerprint of all records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
}

impl StreamPass {
    /// Writes a checkpoint: aside first, then renamed, so that a file that is there is whole.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.to_container()?.save(path)
    }

    /// The checkpoint.
    pub fn to_container(&self) -> Result<Container> {
        let mut file = self.learner.to_container()?;
        self.preprocessor.put_into(&mut file)?;
        let (head_records, head_fingerprint) = self.head.clone();
        let (records, head_features, streams) = (self.records, self.head_features, self.streams);
        let table = self.table.clone();
        let fingerprint = self.trail.map(|trail| trail.digits());
        let place = Place { records, head_records, head_fingerprint, head_features, streams, table, fingerprint };
        file.document[KEY] =
            serde_json::to_value(place).map_err(|_| Error::Internal("a checkpoint could not be written"))?;
        let Recent { awaited, outputs, classes } = &self.recent;
        file.put_f64("awaited_classes", &[awaited.len()], awaited.iter().copied().collect())?;
        file.put_f64("recent_outputs", &[outputs.len()], outputs.clone())?;
        file.put_f64("recent_classes", &[classes.len()], classes.clone())?;
        self.errors.put(&mut file)?;
        file.require_finite("the checkpoint")?;
        Ok(file)
    }

    /// Reads a checkpoint file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_container(Container::load(path)?)
    }

    /// Reads a checkpoint.
    pub fn from_container(mut file: Container) -> Result<Self> {
        let learner = StreamingRidge::take(&mut file)?;
        let preprocessor = Preprocessor::take_from(&mut file)?;
        let place: Place = serde_json::from_value(file.document[KEY].take())
            .map_err(|e| file.malformed(format!("document: {KEY}: {e}")))?;
        let trail = match place.fingerprint.as_deref().map(Trail::from_digits) {
            Some(None) => return Err(file.malformed("document: pass: a fingerprint that is not 32 hexadecimal digits")),
            Some(trail) => trail,
            None => None,
        };
        let (_, awaited) = file.take_finite("awaited_classes", 1)?;
        let (_, outputs) = file.take_finite("recent_outputs", 1)?;
        let (_, classes) = file.take_finite("recent_classes", 1)?;
        let recent = Recent { awaited: awaited.into(), outputs, classes };
        let errors = RecentErrors::from_file(&mut file, preprocessor.feature_count(), learner.outputs())?;
        let head = (place.head_records, place.head_fingerprint);
        let origin = file.origin().to_owned();
        file.finish()?;
        let mut pass = Self::from_parts((preprocessor, place.table), learner, place.records, head, recent);
        (pass.head_features, pass.streams, pass.errors) = (place.head_features, place.streams, errors);
        pass.trail = trail;
        pass.check(&origin)?;
        Ok(pass)
    }

    fn check(&self, origin: &str) -> Result<()> {
        let wrong = |reason: &str| Err(Error::Format { origin: origin.to_owned(), reason: reason.to_owned() });
        let outputs = self.codes.outputs();
        if self.learner.outputs() != outputs {
            return wrong("a learner with another number of outputs than its preprocessor has");
        }
        if self.learner.width().is_some_and(|width| width != self.preprocessor.feature_count()) {
            return wrong("a learner with another number of features than its preprocessor has");
        }
        if self.head_features > self.preprocessor.feature_count() || self.streams == 0 {
            return wrong("a pass with fewer features than its head, or of no stream");
        }
        let classes = self.preprocessor.labels().len() as f64;
        let is_class = |class: &f64| class.fract() == 0.0 && (0.0..classes).contains(class);
        let recent = &self.recent;
        if recent.outputs.len() != recent.classes.len() * outputs
            || !recent.classes.iter().chain(&recent.awaited).all(is_class)
        {
            return wrong("recent rows that are inconsistent");
        }
        Ok(())
    }

    /// Goes on from a checkpoint with the source it was made from, after checking that source and options are the same.
    pub fn resume(
        path: impl AsRef<Path>,
        source: &mut dyn RecordSource,
        table: &TableOptions,
        options: &StreamingOptions,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let path = path.as_ref();
        let mut pass = Self::from_container(Container::load(path)?)?;
        pass.learner.options().require_same(options).map_err(|e| e.as_in(path))?;
        pass.preprocessor.require_same_reading(&pass.table, table).map_err(|e| e.as_in(path))?;
        if pass.streams > 1 {
            return Err(Error::Incompatible {
                field: format!("number of streams in {}", path.display()),
                found: format!("{}, merged", pass.streams),
                expected: "one, to go on with; a new part can begin like this one".to_owned(),
            });
        }
        observer.stage("passing over what was learnt");
        let mut block = RecordBlock::default();
        let mut fingerprint = None;
        let mut trail = Trail::default();
        let mut seen = 0;
        let (head, expected) = &pass.head;
        while seen < pass.records {
            let until = if seen < *head { pass.records.min(*head) } else { pass.records };
            let ahead = until - seen;
            if !source.read(&mut block, READ.min(usize::try_from(ahead).unwrap_or(READ)))? {
                return Err(Error::Incompatible {
                    field: format!("number of rows of {}", source.origin()),
                    found: seen.to_string(),
                    expected: format!("at least the {} that {} has seen", pass.records, path.display()),
                });
            }
            seen += block.len() as u64;
            trail.add(&block);
            observer.rows(block.len() as u64, source.progress());
            if seen <= *head {
                let fingerprint = fingerprint.get_or_insert_with(|| Fingerprint::new(source.schema()));
                fingerprint.add(&block);
                if seen == *head && fingerprint.digits() != *expected {
                    return Err(Error::Incompatible {
                        field: format!("the first {head} rows of {}", source.origin()),
                        found: "other data".to_owned(),
                        expected: format!("those that {} was made from", path.display()),
                    });
                }
            }
        }
        // Files of before there were such fingerprints have none.
        if pass.trail.is_some_and(|expected| expected != trail) {
            return Err(Error::Incompatible {
                field: format!("the first {} rows of {}", pass.records, source.origin()),
                found: "other data".to_owned(),
                expected: "those that the checkpoint was made from".to_owned(),
            });
        }
        pass.trail = Some(trail);
        observer.stage("one pass: predict, then learn");
        Ok(pass)
    }
}
