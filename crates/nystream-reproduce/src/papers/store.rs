//! Finished runs in files, so that a study that was broken off goes on where it stopped.
//!
//! A cell of a table (a set under one reading, a learner with its options) is one file: what it is about, what was tuned,
//! and its runs by order. It is written anew, aside and then renamed, whenever a run ends. A cell is taken only if it is
//! about exactly what is asked for; the number of orders is not part of that, so more can be added later.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nystream::persist::write_atomically;
use nystream::{Error, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// To be raised when the same settings give other results than before: older cells are then left alone.
const RESULTS: u32 = 1;

/// A folder of cells, or none: then nothing is kept.
#[derive(Debug)]
pub(super) struct Store {
    folder: Option<PathBuf>,
    study: String,
    taken: AtomicUsize,
    made: AtomicUsize,
    asked: Mutex<BTreeSet<PathBuf>>,
}

/// One cell.
#[derive(Debug)]
pub(super) struct Record<'a> {
    store: &'a Store,
    path: Option<PathBuf>,
    content: Mutex<Content>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    about: Value,
    tuning: Option<Value>,
    runs: BTreeMap<u64, Value>,
}

impl Store {
    pub fn new(folder: Option<&Path>, study: &str) -> Result<Self> {
        if let Some(folder) = folder {
            std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, "create", e))?;
        }
        let (taken, made, asked) = Default::default();
        Ok(Self { folder: folder.map(Path::to_owned), study: study.to_owned(), taken, made, asked })
    }

    /// The cell that is about this: as it was left, or empty.
    pub fn record(&self, about: Value) -> Record<'_> {
        let about = json!({ "results": RESULTS, "version": env!("CARGO_PKG_VERSION"), "settings": about });
        let name =
            Sha256::digest(about.to_string()).iter().take(10).map(|byte| format!("{byte:02x}")).collect::<String>();
        let path = self.folder.as_ref().map(|folder| folder.join(format!("{}-{name}.json", self.study)));
        let mut content = Content { about, tuning: None, runs: BTreeMap::new() };
        if let Some(path) = &path
            && let Ok(text) = std::fs::read(path)
            && let Ok(found) = serde_json::from_slice::<Content>(&text)
            && found.about == content.about
        {
            content = found;
            let _ = locked(&self.asked).insert(path.clone());
        }
        Record { store: self, path, content: Mutex::new(content) }
    }

    /// What was taken, and what was left alone; nothing if there is no folder.
    pub fn remark(&self) -> Result<Option<String>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let (taken, made) = (self.taken.load(Ordering::Relaxed), self.made.load(Ordering::Relaxed));
        let mut text = format!("{taken} of {} runs were taken from an earlier time", taken + made);
        let list = std::fs::read_dir(folder).map_err(|e| Error::io(folder, "read", e))?;
        let prefix = format!("{}-", self.study);
        let own = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix));
        let asked = locked(&self.asked);
        let others = list.filter_map(|entry| Some(entry.ok()?.path())).filter(own).filter(|path| !asked.contains(path));
        match others.count() {
            0 => {}
            others => {
                text += &format!("; {others} cells in its folder are of other settings or data and were left alone")
            }
        }
        Ok(Some(text))
    }
}

impl Record<'_> {
    /// What tuning came to.
    pub fn tuning<T: DeserializeOwned>(&self) -> Option<T> {
        let value = locked(&self.content).tuning.clone()?;
        serde_json::from_value(value).ok()
    }

    pub fn keep_tuning(&self, tuning: &impl Serialize) -> Result<()> {
        self.changed(|content| content.tuning = Some(valued(tuning)))
    }

    /// The run of an order, if it is there.
    pub fn run<T: DeserializeOwned>(&self, order: u64) -> Option<T> {
        let value = locked(&self.content).runs.get(&order).cloned()?;
        let run = serde_json::from_value(value).ok()?;
        self.store.taken.fetch_add(1, Ordering::Relaxed);
        Some(run)
    }

    pub fn keep_run(&self, order: u64, run: &impl Serialize) -> Result<()> {
        self.store.made.fetch_add(1, Ordering::Relaxed);
        self.changed(|content| _ = content.runs.insert(order, valued(run)))
    }

    fn changed(&self, change: impl FnOnce(&mut Content)) -> Result<()> {
        let mut content = locked(&self.content);
        change(&mut content);
        let Some(path) = &self.path else { return Ok(()) };
        let _ = locked(&self.store.asked).insert(path.clone());
        let text = serde_json::to_vec(&*content).map_err(|_| Error::Internal("a cell that cannot be written"))?;
        write_atomically(path, &text)
    }
}

/// What cannot be written comes back as nothing, and is then run again.
fn valued(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

/// A run that panicked has left nothing half done here.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_come_back_only_for_the_same_settings() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(Some(folder.path()), "toy").unwrap();
        let record = store.record(json!({ "budget": 10 }));
        assert_eq!(record.run::<f64>(0), None);
        record.keep_tuning(&"1e-3").unwrap();
        record.keep_run(3, &0.1_f64).unwrap();

        let again = Store::new(Some(folder.path()), "toy").unwrap();
        let same = again.record(json!({ "budget": 10 }));
        assert_eq!((same.tuning::<String>(), same.run::<f64>(3)), (Some("1e-3".to_owned()), Some(0.1)));
        assert_eq!((same.run::<f64>(2), same.run::<String>(3)), (None, None));
        let other = again.record(json!({ "budget": 20 }));
        assert_eq!((other.tuning::<String>(), other.run::<f64>(3)), (None, None));
        other.keep_run(0, &1.0).unwrap();
        assert!(again.remark().unwrap().unwrap().starts_with("1 of 2 runs were taken"));

        // One that nobody asks for, and one that was damaged.
        let third = Store::new(Some(folder.path()), "toy").unwrap();
        std::fs::write(same.path.as_ref().unwrap(), "{").unwrap();
        assert_eq!(third.record(json!({ "budget": 10 })).run::<f64>(3), None);
        let remark = third.remark().unwrap().unwrap();
        assert!(
            remark.contains("0 of 0 runs") && remark.contains("2 cells in its folder are of other settings"),
            "{remark}"
        );
    }

    #[test]
    fn without_a_folder_nothing_is_kept() {
        let store = Store::new(None, "toy").unwrap();
        store.record(json!(1)).keep_run(0, &0.5).unwrap();
        assert_eq!((store.record(json!(1)).run::<f64>(0), store.remark().unwrap()), (None, None));
    }
}
