//! What the user may say about the columns of a table.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A column as the user writes it: its name; else its number, from 1, or from the end if negative; else `last`.
///
/// A name that exists in the table always wins over the other readings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnRef(pub String);

impl From<&str> for ColumnRef {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl FromStr for ColumnRef {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        if text.is_empty() {
            return Err(Error::InvalidParam {
                name: "column",
                found: "nothing".to_owned(),
                expected: "a column's name or number",
            });
        }
        Ok(text.into())
    }
}

impl fmt::Display for ColumnRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What to do with text in a feature column.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Categorical {
    /// An error that names the cell.
    #[default]
    Refuse,
    /// Columns that begin with text become one zero-one column a level; levels are learnt on the first pass.
    OneHot,
    /// The named columns become one zero-one column for each level listed; other columns hold numbers.
    Levels(BTreeMap<String, Vec<String>>),
}

impl FromStr for Categorical {
    type Err = Error;
    /// `refuse`, `one-hot`, or lists of levels: `COLUMN=LEVEL,LEVEL;COLUMN=LEVEL,LEVEL`.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = || Error::InvalidParam {
            name: "categorical",
            found: text.to_owned(),
            expected: "refuse, one-hot, or levels written COLUMN=LEVEL,LEVEL;COLUMN=LEVEL,LEVEL",
        };
        match text {
            "refuse" => return Ok(Self::Refuse),
            "one-hot" => return Ok(Self::OneHot),
            _ => {}
        }
        let mut lists = BTreeMap::new();
        for part in text.split(';') {
            let (column, levels) = part.split_once('=').ok_or_else(wrong)?;
            let levels: Vec<String> = levels.split(',').map(str::to_owned).collect();
            let empty = column.is_empty() || levels.iter().any(String::is_empty);
            if empty || lists.insert(column.to_owned(), levels).is_some() {
                return Err(wrong());
            }
        }
        Ok(Self::Levels(lists))
    }
}

impl fmt::Display for Categorical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refuse => f.write_str("refuse"),
            Self::OneHot => f.write_str("one-hot"),
            Self::Levels(lists) => {
                let parts: Vec<_> = lists.iter().map(|(name, levels)| format!("{name}={}", levels.join(","))).collect();
                f.write_str(&parts.join(";"))
            }
        }
    }
}

/// An option that is one of a few words.
macro_rules! word_option {
    ($(#[$doc:meta])* $type:ident, $param:literal, $expected:literal,
     { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        pub enum $type { $($(#[$variant_doc])* $variant),+ }

        impl FromStr for $type {
            type Err = Error;
            fn from_str(text: &str) -> Result<Self> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(Error::InvalidParam { name: $param, found: text.to_owned(), expected: $expected }),
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $word),+ })
            }
        }
    };
}

word_option! {
    /// What to do with missing cells.
    Missing, "missing", "refuse, mean or drop", {
        /// An error that names the cell.
        #[default]
        Refuse = "refuse",
        /// A feature becomes the mean of its column over the rows that have it; a missing target stays an error.
        Mean = "mean",
        /// The row is left out.
        Drop = "drop",
    }
}

word_option! {
    /// Whether targets are numbers or classes.
    TaskRequest, "task", "auto, regression or classification", {
        /// Classification for text labels and for exactly two different numbers, else regression.
        #[default]
        Auto = "auto",
        /// Targets are numbers.
        Regression = "regression",
        /// Targets are classes, even if they are written as numbers.
        Classification = "classification",
    }
}

word_option! {
    /// How number columns are scaled. One-hot columns never are.
    Scale, "scale", "none, minmax, standard or running", {
        /// Left as they are.
        #[default]
        None = "none",
        /// To [-1, 1]. Sparse columns are divided by their largest absolute value.
        MinMax = "minmax",
        /// Mean 0, standard deviation 1 (of the population). Sparse columns are divided by their standard
        /// deviation, zeros included, and not centred.
        Standard = "standard",
        /// As standard, by the first rows of a stream alone: for one pass. A stream that is fitted has no others to go by, so
        /// that standard means the same there.
        Running = "running",
    }
}

/// How to read a table as features and targets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TableOptions {
    /// Target columns. If empty: the column named `target`, else the last one.
    pub targets: Vec<ColumnRef>,
    /// Columns that are neither features nor targets.
    pub ignore: Vec<ColumnRef>,
    /// A column that says how much each row counts; none: all count the same. Only streams weigh rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<ColumnRef>,
    /// Text in feature columns.
    pub categorical: Categorical,
    /// Missing cells.
    pub missing: Missing,
    /// Numbers or classes.
    pub task: TaskRequest,
    /// Scaling of features.
    pub scale: Scale,
}

impl TableOptions {
    /// What each option says, by the name a user knows it by.
    fn words(&self) -> [(&'static str, String); 7] {
        let list = |columns: &[ColumnRef]| match columns {
            [] => "none named".to_owned(),
            columns => columns.iter().map(|column| &column.0[..]).collect::<Vec<_>>().join(","),
        };
        [
            ("target", list(&self.targets)),
            ("ignore", list(&self.ignore)),
            ("weights", list(self.weights.as_slice())),
            ("categorical", self.categorical.to_string()),
            ("missing", self.missing.to_string()),
            ("task", self.task.to_string()),
            ("scale", self.scale.to_string()),
        ]
    }

    /// Refuses other options than these, by name.
    pub fn require_same(&self, other: &Self) -> Result<()> {
        for ((field, expected), (_, found)) in self.words().into_iter().zip(other.words()) {
            if found != expected {
                return Err(Error::Incompatible { field: field.to_owned(), found, expected });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_written() {
        for word in ["none", "minmax", "standard", "running"] {
            assert_eq!(word.parse::<Scale>().unwrap().to_string(), word);
        }
        for word in ["refuse", "mean", "drop"] {
            assert_eq!(word.parse::<Missing>().unwrap().to_string(), word);
        }
        for word in ["auto", "regression", "classification"] {
            assert_eq!(word.parse::<TaskRequest>().unwrap().to_string(), word);
        }
        let found = "Standard".parse::<Scale>().unwrap_err().to_string();
        assert_eq!(found, "scale: found Standard, expected none, minmax, standard or running");
        assert!("".parse::<ColumnRef>().is_err());
    }

    #[test]
    fn other_options_are_refused_by_name() {
        let mine = TableOptions { targets: vec!["price".into()], scale: Scale::Standard, ..TableOptions::default() };
        assert!(mine.require_same(&mine).is_ok());
        let others = [
            (
                TableOptions { targets: vec!["size".into()], ..mine.clone() },
                "target differs: found size, expected price",
            ),
            (
                TableOptions { weights: Some("size".into()), ..mine.clone() },
                "weights differs: found size, expected none named",
            ),
            (TableOptions { scale: Scale::MinMax, ..mine.clone() }, "scale differs: found minmax, expected standard"),
            (TableOptions { missing: Missing::Drop, ..mine.clone() }, "missing differs: found drop, expected refuse"),
        ];
        for (other, words) in others {
            let message = mine.require_same(&other).unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
        assert!(mine.require_same(&TableOptions::default()).is_err());
    }

    #[test]
    fn levels_are_read_and_written() {
        for word in ["refuse", "one-hot", "color=red,green", "color=red,green;size=1,2,3"] {
            assert_eq!(word.parse::<Categorical>().unwrap().to_string(), word);
        }
        for wrong in ["onehot", "color=", "=red", "color=red,,blue", "color=red;color=blue", "color=red;"] {
            assert!(wrong.parse::<Categorical>().is_err(), "{wrong}");
        }
    }
}
