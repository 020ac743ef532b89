//! Options of learners: what there is, with defaults and ranges, and what was chosen.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{Error, Result, nearest_hint};

/// One option of a learner.
#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    /// The name a user writes.
    pub name: &'static str,
    /// The paper's symbol, or nothing.
    pub symbol: &'static str,
    /// What it is.
    pub meaning: &'static str,
    /// Which values it takes.
    pub kind: OptionKind,
    /// What it is if it is not given.
    pub default: Default,
    /// A value that must make a difference: the laws try it.
    pub trial: Trial,
}

/// Which values an option takes.
#[derive(Debug, Clone, Copy)]
pub enum OptionKind {
    /// A finite number above 0.
    Positive,
    /// A finite number, 0 or more.
    NonNegative,
    /// A number above 0 and below 1.
    Fraction,
    /// A number from 0 to 1.
    Share,
    /// This word, or a finite number above 0.
    PositiveOr(&'static str),
    /// This word, or a finite number.
    NumberOr(&'static str),
    /// A whole number of at least this.
    Count(u64),
    /// One of these words.
    Word(&'static [&'static str]),
}

/// What an option is if it is not given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Default {
    /// This number.
    Number(f64),
    /// This word.
    Word(&'static str),
    /// Worked out by the learner from its settings, as this says.
    Derived(&'static str),
}

/// A value unlike the default, and other options under which the difference shows.
#[derive(Debug, Clone, Copy)]
pub struct Trial {
    /// The value.
    pub value: &'static str,
    /// Other options, in both runs that are compared.
    pub with: &'static [(&'static str, &'static str)],
}

impl Trial {
    /// This value shows by itself.
    pub const fn of(value: &'static str) -> Self {
        Self { value, with: &[] }
    }
}

impl fmt::Display for OptionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Positive => f.write_str("a number above 0"),
            Self::NonNegative => f.write_str("a number, 0 or more"),
            Self::Fraction => f.write_str("a number above 0 and below 1"),
            Self::Share => f.write_str("a number from 0 to 1"),
            Self::PositiveOr(word) => write!(f, "{word} or a number above 0"),
            Self::NumberOr(word) => write!(f, "{word} or a number"),
            Self::Count(least) => write!(f, "a whole number, {least} or more"),
            Self::Word(words) => f.write_str(&one_of(words)),
        }
    }
}

impl fmt::Display for Default {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Word(word) | Self::Derived(word) => f.write_str(word),
        }
    }
}

fn one_of(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

impl OptionKind {
    fn takes(&self, text: &str) -> bool {
        let number = || text.parse::<f64>().unwrap_or(f64::NAN);
        match self {
            Self::Positive => number().is_finite() && number() > 0.0,
            Self::NonNegative => number().is_finite() && number() >= 0.0,
            Self::Fraction => number() > 0.0 && number() < 1.0,
            Self::Share => (0.0..=1.0).contains(&number()),
            Self::PositiveOr(word) => text == *word || Self::Positive.takes(text),
            Self::NumberOr(word) => text == *word || text.parse::<f64>().is_ok_and(f64::is_finite),
            Self::Count(least) => text.parse::<u64>().is_ok_and(|count| count >= *least),
            Self::Word(words) => words.contains(&text),
        }
    }
}

/// The options that were chosen for a learner, checked.
#[derive(Debug, Clone, Copy)]
pub struct Chosen<'a> {
    learner: &'static str,
    specs: &'static [OptionSpec],
    given: &'a BTreeMap<String, String>,
}

impl<'a> Chosen<'a> {
    /// Checks names and values.
    pub(super) fn new(
        learner: &'static str,
        specs: &'static [OptionSpec],
        given: &'a BTreeMap<String, String>,
    ) -> Result<Self> {
        let chosen = Self { learner, specs, given };
        for (name, value) in given {
            let Some(spec) = specs.iter().find(|spec| spec.name == name) else {
                let hint = nearest_hint(name, specs.iter().map(|spec| spec.name));
                let expected = match specs {
                    [] => "no options".to_owned(),
                    specs => one_of(&specs.iter().map(|spec| spec.name).collect::<Vec<_>>()),
                };
                let found = format!("the unknown option '{name}'{hint}");
                return Err(Error::InvalidOption { learner, name: "options", found, expected });
            };
            if !spec.kind.takes(value) {
                return Err(chosen.refused(spec.name, format!("'{value}'"), spec.kind.to_string()));
            }
        }
        Ok(chosen)
    }

    /// An error about one of the options.
    pub fn refused(&self, name: &'static str, found: impl Into<String>, expected: impl Into<String>) -> Error {
        Error::InvalidOption { learner: self.learner, name, found: found.into(), expected: expected.into() }
    }

    /// A number: as given, or its default.
    pub fn number(&self, name: &str) -> Result<f64> {
        self.given_number(name)?.ok_or(Error::Internal("an option without a default was asked for as if it had one"))
    }

    /// A number: as given, or its default, or nothing if the learner has to work it out.
    pub fn given_number(&self, name: &str) -> Result<Option<f64>> {
        let spec = self.spec(name)?;
        match (self.given.get(name), spec.default) {
            (Some(text), _) => text.parse().map(Some).map_err(|_| Error::Internal("an option that is not a number")),
            (None, Default::Number(number)) => Ok(Some(number)),
            (None, _) => Ok(None),
        }
    }

    /// A count: as given, or its default, or nothing if the learner has to work it out.
    pub fn count(&self, name: &str) -> Result<Option<usize>> {
        let spec = self.spec(name)?;
        match (self.given.get(name), spec.default) {
            (Some(text), _) => text.parse().map(Some).map_err(|_| Error::Internal("an option that is not a count")),
            (None, Default::Number(number)) => Ok(Some(number as usize)),
            (None, _) => Ok(None),
        }
    }

    /// A word: as given, or its default, or nothing if the learner has to choose.
    pub fn word(&self, name: &str) -> Result<Option<&'a str>> {
        let spec = self.spec(name)?;
        Ok(match (self.given.get(name), spec.default) {
            (Some(text), _) => Some(text),
            (None, Default::Word(word)) => Some(word),
            (None, _) => None,
        })
    }

    fn spec(&self, name: &str) -> Result<&'static OptionSpec> {
        let missing = Error::Internal("an option that the learner's table does not have");
        self.specs.iter().find(|spec| spec.name == name).ok_or(missing)
    }
}
