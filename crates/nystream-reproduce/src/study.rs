//! The studies by name.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use nystream::error::nearest_hint;
use nystream::{Error, Result};

use crate::findings::Findings;
use crate::{drift, guarantees, merge_tree, one_pass, papers, streaming, when_it_pays};

/// What a person may set of every study.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Runs of everything random; the study's own number if none is given. The findings say how many there were.
    pub seeds: Option<u64>,
    /// The first of these seeds, 0 if none is given: what was found with some seeds can be tried on others. Not for tables of
    /// papers, whose files state their seeds.
    pub first_seed: Option<u64>,
    /// Rows of the largest stream; the study's own number if none is given.
    pub rows: Option<usize>,
    /// The folder of real data sets, for the studies that need one.
    pub data: Option<PathBuf>,
    /// A folder where the tables of papers keep finished runs, and take them from when they are run again.
    pub cells: Option<PathBuf>,
    /// Tables of papers begin no run after so many minutes each; the findings say what was left out.
    pub minutes: Option<u64>,
    /// Tables of learners have only the rows of these titles, or all rows if none is named.
    pub learners: Vec<String>,
}

impl Settings {
    /// The seeds, at least one.
    pub(crate) fn seeds_or(&self, usual: u64) -> Result<Seeds> {
        let count = at_least("seeds", self.seeds.unwrap_or(usual), 1, "at least 1")?;
        let first = self.first_seed.unwrap_or(0);
        if first.saturating_add(count) > Seeds::END {
            let found = format!("{first}, for {count} seeds");
            return Err(Error::InvalidParam { name: "first-seed", found, expected: "seeds up to a million" });
        }
        Ok(Seeds { first, count })
    }

    /// The number of rows, at least 1000.
    pub(crate) fn rows_or(&self, usual: usize) -> Result<usize> {
        at_least("rows", self.rows.unwrap_or(usual) as u64, 1000, "at least 1000").map(|rows| rows as usize)
    }

    /// The rows to which real sets are cut, if any; at least 1000.
    pub(crate) fn row_limit(&self) -> Result<Option<usize>> {
        self.rows.map(|rows| self.rows_or(rows)).transpose()
    }

    /// The folder of real sets, for studies that need one.
    pub(crate) fn data_folder(&self) -> Result<&Path> {
        self.data.as_deref().ok_or_else(|| Error::InvalidParam {
            name: "data",
            found: "none".to_owned(),
            expected: "the folder of the real sets",
        })
    }
}

/// Consecutive seeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seeds {
    pub first: u64,
    pub count: u64,
}

impl Seeds {
    /// Seeds are below this: studies put numbers of their own above it.
    pub const END: u64 = 1 << 20;

    pub fn each(self) -> Range<u64> {
        self.first..self.first + self.count
    }
}

/// "40 seeds", "1 seed", "40 seeds from 5000 on".
impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} seed{}", self.count, if self.count == 1 { "" } else { "s" })?;
        if self.first > 0 { write!(f, " from {} on", self.first) } else { Ok(()) }
    }
}

fn at_least(name: &'static str, value: u64, least: u64, expected: &'static str) -> Result<u64> {
    if value < least {
        return Err(Error::InvalidParam { name, found: value.to_string(), expected });
    }
    Ok(value)
}

/// Where a study's data come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Everything is generated.
    Nothing,
    /// Real sets from [`Settings::data`].
    RealData,
}

/// Runs a study. The second argument hears what it is busy with.
pub type RunStudy = fn(&Settings, &mut dyn FnMut(&str)) -> Result<Findings>;

/// An experiment.
#[derive(Debug, Clone, Copy)]
pub struct Study {
    /// What a person writes.
    pub name: &'static str,
    /// One line: what it shows.
    pub description: &'static str,
    /// Where its data come from.
    pub needs: Needs,
    /// How many minutes it takes at full size, roughly, on two quiet cores.
    pub minutes: u32,
    /// Runs it.
    pub run: RunStudy,
}

impl Study {
    /// Whether it is a table of learners, which [`Settings::learners`] can limit.
    pub fn has_learners(&self) -> bool {
        ["skegd-table-3", "skegd-table-4", "online-mse"].contains(&self.name)
    }

    /// Whether it is a table or figure of a paper, whose file states its seeds.
    pub fn is_of_a_paper(&self) -> bool {
        self.name.starts_with("skegd-") || self.name == "online-mse"
    }
}

/// Every study, in the order in which they run when none is named.
pub const STUDIES: [Study; 11] = [
    Study {
        name: "guarantees",
        description: "SQUEAK and INK against the exact kernel matrix: how often Eq. 11 holds, the error, the size",
        needs: Needs::Nothing,
        minutes: guarantees::MINUTES,
        run: guarantees::run,
    },
    Study {
        name: "when-it-pays",
        description: "dictionaries of equal size on clustered, heavy-tailed and low-coherence data",
        needs: Needs::Nothing,
        minutes: when_it_pays::MINUTES,
        run: when_it_pays::run,
    },
    Study {
        name: "merge-tree",
        description: "SQUEAK on 1, 2, 8 and 64 partitions of a million rows: size, error, time",
        needs: Needs::Nothing,
        minutes: merge_tree::MINUTES,
        run: merge_tree::run,
    },
    Study {
        name: "streaming",
        description: "the streaming learner on the real sets of the literature, defaults only, test-then-train",
        needs: Needs::RealData,
        minutes: streaming::MINUTES,
        run: streaming::run,
    },
    Study {
        name: "one-pass",
        description: "one pass beside two with as many atoms: test errors and coverage of intervals on five real sets",
        needs: Needs::RealData,
        minutes: one_pass::MINUTES,
        run: one_pass::run,
    },
    Study {
        name: "drift",
        description: "streams in their own order: forgetting, reopening, and the previous target as a prediction",
        needs: Needs::RealData,
        minutes: drift::MINUTES,
        run: drift::run,
    },
    Study {
        name: "skegd-table-2",
        description: "kernel approximation by IRS and INys beside Table 2 of the SkeGD paper",
        needs: Needs::RealData,
        minutes: 2,
        run: papers::skegd_table_2,
    },
    Study {
        name: "skegd-table-3",
        description: "mistakes and times of eight learners and the streaming ridge beside Table 3 of the SkeGD paper",
        needs: Needs::RealData,
        minutes: 120,
        run: papers::skegd_table_3,
    },
    Study {
        name: "skegd-table-4",
        description: "adversarial streams beside Table 4 of the SkeGD paper",
        needs: Needs::RealData,
        minutes: 5,
        run: papers::skegd_table_4,
    },
    Study {
        name: "skegd-figures",
        description: "mistakes and times against B, τ and d, as in Figures 2 and 3 of the SkeGD paper",
        needs: Needs::RealData,
        minutes: 60,
        run: papers::skegd_figures,
    },
    Study {
        name: "online-mse",
        description: "online mean squared error of NONS-ALD and the streaming ridge beside the printed ones",
        needs: Needs::RealData,
        minutes: 5,
        run: papers::online_mse,
    },
];

/// The study of this name, or an error that names the nearest.
pub fn find(name: &str) -> Result<&'static Study> {
    STUDIES.iter().find(|study| study.name == name).ok_or_else(|| {
        let hint = nearest_hint(name, STUDIES.iter().map(|study| study.name));
        Error::InvalidParam { name: "study", found: format!("'{name}'{hint}"), expected: "a name that --list shows" }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_study_is_refused_with_the_nearest_name() {
        for (written, nearest) in
            [("garantees", "guarantees"), ("mergetree", "merge-tree"), ("when-pays", "when-it-pays")]
        {
            let message = find(written).unwrap_err().to_string();
            assert!(message.contains(&format!("'{written}'; the nearest is '{nearest}'")), "{message}");
        }
        for study in &STUDIES {
            assert_eq!(find(study.name).unwrap().name, study.name);
        }
    }

    #[test]
    fn too_few_seeds_and_rows_are_refused() {
        let settings = Settings { seeds: Some(0), rows: Some(10), ..Settings::default() };
        for study in &STUDIES {
            assert!((study.run)(&settings, &mut |_| {}).is_err(), "{}", study.name);
        }
    }

    #[test]
    fn seeds_begin_where_they_are_told_to_and_end_below_those_of_the_studies() {
        let with = |first_seed, seeds| Settings { seeds: Some(seeds), first_seed, ..Settings::default() };
        let seeds = with(Some(5), 3).seeds_or(9).unwrap();
        assert_eq!((seeds.each(), seeds.to_string().as_str()), (5..8, "3 seeds from 5 on"));
        assert_eq!(with(None, 1).seeds_or(9).unwrap().to_string(), "1 seed");
        assert!(with(Some(Seeds::END - 2), 2).seeds_or(9).is_ok());
        for first in [Seeds::END - 1, u64::MAX] {
            let error = with(Some(first), 2).seeds_or(9).unwrap_err().to_string();
            assert!(error.contains("first-seed") && error.contains(&first.to_string()), "{error}");
        }
    }
}
