//! A learner of the table with its settings: checks what comes in, saves and loads.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::entry::{LearnerEntry, Make, OnlineLearner};
use super::options::Chosen;
use super::settings::{LearnerSettings, Targets};
use super::table;
use crate::error::{Error, Result};
use crate::persist::Container;
use crate::rows::{Row, Rows};

/// The kind of a learner's file.
pub const KIND: &str = "online-learner";

/// A learner by name, with its settings, and its state.
#[derive(Debug)]
pub struct Learner {
    entry: &'static LearnerEntry,
    settings: LearnerSettings,
    inner: Box<dyn OnlineLearner>,
    /// Rows learnt.
    rows: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Document {
    learner: String,
    rows: u64,
    settings: LearnerSettings,
}

impl Learner {
    /// A learner that knows nothing yet.
    pub fn new(name: &str, settings: LearnerSettings) -> Result<Self> {
        let entry = table::find(name)?;
        let chosen = check(entry, &settings)?;
        let inner = match &entry.make {
            Make::Rows { build, .. } => build(&settings, &chosen)?,
            Make::Blocks => return Err(by_blocks(entry)),
        };
        Ok(Self { entry, settings, inner, rows: 0 })
    }

    /// The output for a row: its sign is the class, or it is the number. Changes nothing that can be seen.
    pub fn predict(&mut self, row: Row) -> Result<f64> {
        self.check_row(row)?;
        Ok(self.inner.predict(row))
    }

    /// Takes a row with its target; returns the output predicted before learning it. After an error nothing is learnt,
    /// but for a learner that has diverged: then it is of no more use.
    pub fn learn(&mut self, row: Row, target: f64) -> Result<f64> {
        self.check_row(row)?;
        let fits = match self.settings.targets {
            Targets::Classes => target == 1.0 || target == -1.0,
            Targets::Numbers => target.is_finite(),
        };
        if !fits {
            let expected = match self.settings.targets {
                Targets::Classes => "1 or -1",
                Targets::Numbers => "a finite number",
            };
            return Err(self.input(None, target.to_string(), expected));
        }
        let output = self.inner.learn(row, target)?;
        if !output.is_finite() {
            return Err(self.input(
                None,
                format!("an output of {output}"),
                "a learner that does not diverge (smaller steps)",
            ));
        }
        self.rows += 1;
        Ok(output)
    }

    /// Takes rows with their targets in turn, and appends the outputs predicted before.
    pub fn learn_all(&mut self, rows: Rows, targets: &[f64], out: &mut Vec<f64>) -> Result<()> {
        if targets.len() != rows.len() {
            return Err(Error::Shape { what: "targets", found: targets.len(), expected: rows.len() });
        }
        for (i, target) in targets.iter().enumerate() {
            out.push(self.learn(rows.row(i), *target)?);
        }
        Ok(())
    }

    fn check_row(&self, row: Row) -> Result<()> {
        let width = self.settings.features;
        let values = match row {
            Row::Dense(values) if values.len() == width => values,
            Row::Dense(values) => return Err(Error::Shape { what: "features", found: values.len(), expected: width }),
            Row::Sparse { indices, values } => {
                if indices.len() != values.len() {
                    return Err(Error::Shape { what: "row values", found: values.len(), expected: indices.len() });
                }
                let last = indices.last().map_or(0, |&k| k as usize + 1);
                if last > width {
                    return Err(Error::Shape { what: "features", found: last, expected: width });
                }
                // To the end, without branches: rows are in order almost always.
                let rest = indices.get(1..).unwrap_or_default();
                if indices.iter().zip(rest).fold(false, |out_of_order, (a, b)| out_of_order | (a >= b)) {
                    return Err(self.input(None, "columns out of order".to_owned(), "increasing columns"));
                }
                values
            }
        };
        if values.iter().fold(true, |finite, value| finite & value.is_finite()) {
            return Ok(());
        }
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(()),
            Some(i) => {
                let column = if let Row::Sparse { indices, .. } = row { indices[i] as usize } else { i };
                Err(self.input(Some((column + 1).to_string()), values[i].to_string(), "a finite number"))
            }
        }
    }

    fn input(&self, column: Option<String>, found: String, expected: &str) -> Error {
        let origin = format!("learner {}", self.entry.name);
        Error::Input { origin, row: self.rows + 1, column, found, expected: expected.to_owned() }
    }

    /// Its line in the table.
    pub fn entry(&self) -> &'static LearnerEntry {
        self.entry
    }

    /// What it was made from.
    pub fn settings(&self) -> &LearnerSettings {
        &self.settings
    }

    /// Rows learnt.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Rows kept; random features, for learners that keep no rows.
    pub fn atoms(&self) -> usize {
        self.inner.atoms()
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.inner.size_bytes()
    }

    /// The learner as a file's content.
    pub fn to_container(&self) -> Result<Container> {
        let name = self.entry.name.to_owned();
        let document = Document { learner: name, rows: self.rows, settings: self.settings.clone() };
        let document =
            serde_json::to_value(document).map_err(|_| Error::Internal("settings that are not plain data"))?;
        let mut container = Container::new(KIND, document);
        self.inner.save(&mut container)?;
        Ok(container)
    }

    /// Reads a learner back; it goes on as the one that was saved would have.
    pub fn from_container(mut container: Container) -> Result<Self> {
        container.expect_kind(KIND)?;
        let Document { learner, rows, settings } = container.document_as()?;
        let entry = table::find(&learner).map_err(|e| container.malformed(e.to_string()))?;
        let chosen = check(entry, &settings).map_err(|e| container.malformed(e.to_string()))?;
        let inner = match &entry.make {
            Make::Rows { load, .. } => load(&settings, &chosen, &mut container)?,
            Make::Blocks => return Err(container.malformed(by_blocks(entry).to_string())),
        };
        container.finish()?;
        Ok(Self { entry, settings, inner, rows })
    }

    /// Writes a file in one step.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.to_container()?.save(path)
    }

    /// Reads a file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_container(Container::load(path)?)
    }
}

/// Checks what can be checked before any row is seen; the options as they were chosen.
pub fn check<'a>(entry: &'static LearnerEntry, settings: &'a LearnerSettings) -> Result<Chosen<'a>> {
    settings.kernel.validated()?;
    if settings.budget == 0 {
        return Err(Error::InvalidParam { name: "budget", found: "0".to_owned(), expected: "at least 1" });
    }
    if !entry.targets.contains(&settings.targets) {
        return Err(Error::InvalidParam {
            name: "learner",
            found: format!("{} for targets that are {}", entry.name, settings.targets),
            expected: "a learner that takes such targets (see `nystream learners`)",
        });
    }
    Chosen::new(entry.name, entry.options, &settings.options)
}

fn by_blocks(entry: &LearnerEntry) -> Error {
    Error::InvalidParam {
        name: "learner",
        found: format!("{}, which learns by blocks", entry.name),
        expected: "a learner of one row at a time",
    }
}
