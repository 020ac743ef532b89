//! How large a run is, and whether it is on the data that the table speaks of; and the words for that.

use std::path::{Path, PathBuf};

use nystream::{Error, Result};
use serde_json::{Value, json};

use super::data::{Checked, checked};
use super::file::{DataFile, Heading};
use crate::findings::Findings;
use crate::study::Settings;

/// How much of a table is run.
#[derive(Debug, Clone)]
pub(super) struct Limits {
    pub orders: u64,
    pub rows: Option<usize>,
    pub folder: PathBuf,
    usual: u64,
}

impl Limits {
    pub fn new(settings: &Settings, heading: &Heading) -> Result<Self> {
        let orders = settings.seeds_or(heading.permutations)?;
        let rows = settings.rows.map(|_| settings.rows_or(1000)).transpose()?;
        let Some(folder) = settings.data.clone() else {
            let found = "none".to_owned();
            return Err(Error::InvalidParam { name: "data", found, expected: "the folder of the real sets" });
        };
        Ok(Self { orders, rows, folder, usual: heading.permutations })
    }

    pub fn most_rows(&self) -> usize {
        self.rows.unwrap_or(usize::MAX)
    }

    /// Whether targets can be judged.
    pub fn whole(&self) -> bool {
        self.rows.is_none() && self.orders >= self.usual
    }

    /// Begins the report: where the table comes from, how much of it was run, how open questions were read.
    pub fn begin(&self, study: &'static str, heading: &Heading) -> Findings {
        let mut findings = Findings::new(study, heading.title.clone());
        let orders = match self.orders {
            orders if orders < self.usual => format!("{orders} orders (fewer than the usual {})", self.usual),
            orders => format!("{orders} orders"),
        };
        let rows = self.rows.map_or_else(String::new, |rows| format!(", cut to the first {rows} rows of each"));
        let judged = if self.whole() { "" } else { " Targets are not judged on so little." };
        findings.text(format!(
            "{} Means ± standard deviations over {orders}, seeds from {}{rows}. Runs share {} threads, and times are those \
             of single runs.{judged}",
            heading.source,
            heading.first_seed,
            rayon::current_num_threads(),
        ));
        heading.notes.iter().for_each(|note| findings.text(note));
        findings
    }

    /// Whether there is such a file, and says in the report if it is missing or another.
    pub fn usable(&self, data: &DataFile, findings: &mut Findings) -> Result<(bool, Value)> {
        usable(&self.folder, data, findings)
    }

    /// An error if nothing at all was there.
    pub fn require_any(&self, any: bool) -> Result<()> {
        if any {
            return Ok(());
        }
        let found = format!("none of the table's files in {}", self.folder.display());
        Err(Error::InvalidParam { name: "data", found, expected: "the folder of the real sets" })
    }

    pub fn numbers(&self) -> Value {
        json!({ "orders": self.orders, "usual_orders": self.usual, "rows": self.rows })
    }
}

fn usable(folder: &Path, data: &DataFile, findings: &mut Findings) -> Result<(bool, Value)> {
    let DataFile { file, sha256 } = data;
    let found = match checked(folder, data)? {
        Checked::Same => sha256.clone(),
        Checked::Missing => {
            findings.text(format!("**{file} is not there: its rows are left out.**"));
            return Ok((false, Value::Null));
        }
        Checked::Differs(found) => {
            findings.text(format!(
                "**{file} is not the file that the table was made with: its SHA-256 is {found}, expected {sha256}.**"
            ));
            found
        }
    };
    Ok((true, json!({ "file": file, "sha256": found, "expected_sha256": sha256 })))
}
