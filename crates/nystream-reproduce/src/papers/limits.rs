//! How large a run is, and whether it is on the data that the table speaks of; and the words for that.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nystream::{Error, Result};
use serde_json::{Value, json};

use super::data::{Checked, checked};
use super::file::{DataFile, Heading};
use super::store::Store;
use crate::findings::Findings;
use crate::study::Settings;

/// How much of a table is run.
#[derive(Debug)]
pub(super) struct Limits {
    pub orders: u64,
    pub rows: Option<usize>,
    pub folder: PathBuf,
    pub store: Store,
    usual: u64,
    deadline: Option<Instant>,
}

impl Limits {
    pub fn new(study: &str, settings: &Settings, heading: &Heading) -> Result<Self> {
        let orders = settings.seeds_or(heading.permutations)?.count;
        let rows = settings.rows.map(|_| settings.rows_or(1000)).transpose()?;
        let Some(folder) = settings.data.clone() else {
            let found = "none".to_owned();
            return Err(Error::InvalidParam { name: "data", found, expected: "the folder of the real sets" });
        };
        let store = Store::new(settings.cells.as_deref(), study)?;
        let deadline = settings
            .minutes
            .and_then(|minutes| Instant::now().checked_add(Duration::from_secs(minutes.saturating_mul(60))));
        Ok(Self { orders, rows, folder, store, usual: heading.permutations, deadline })
    }

    pub fn most_rows(&self) -> usize {
        self.rows.unwrap_or(usize::MAX)
    }

    /// Whether another run may begin.
    pub fn open(&self) -> bool {
        self.deadline.is_none_or(|deadline| Instant::now() < deadline)
    }

    /// Whether targets can be judged.
    pub fn whole(&self) -> bool {
        self.rows.is_none() && self.orders >= self.usual
    }

    /// Whether a cell with so many orders can be judged.
    pub fn enough(&self, orders: u64) -> bool {
        self.whole() && orders >= self.usual
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
            "{} Means ± standard deviations over {orders}, seeds from {}{rows}. Runs share {} threads; times are those \
             of single runs, for learners of the fastest.{judged}",
            heading.source,
            heading.first_seed,
            rayon::current_num_threads(),
        ));
        heading.notes.iter().for_each(|note| findings.text(note));
        findings
    }

    /// Says in the report if some cells have fewer orders than were asked for.
    pub fn say_if_fewer(&self, orders: impl Iterator<Item = u64>, findings: &mut Findings) {
        let orders: Vec<u64> = orders.collect();
        let (least, most) = (orders.iter().min().unwrap_or(&0), orders.iter().max().unwrap_or(&0));
        if *least < self.orders {
            let between = if least == most { least.to_string() } else { format!("{least} to {most}") };
            findings.text(format!("**Limited in time: {between} orders instead of {}.**", self.orders));
        }
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
