//! One of the sequential dictionaries, whichever a user or a file names.

use super::build::DictionaryMethod;
use super::dictionary::Dictionary;
use super::ink::{EstimateOracle, ExactOracle, InkOptions, InkOracle};
use super::sequential::{SequentialDictionary, SketchReport};
use super::squeak::{Squeak, SqueakOptions};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::persist::Container;
use crate::rows::Rows;

/// A sequential dictionary of any method.
pub enum AnySequential {
    /// `squeak`.
    Squeak(Box<Squeak>),
    /// `ink-estimate`.
    InkEstimate(Box<InkOracle<EstimateOracle>>),
    /// `ink-oracle`.
    InkOracle(Box<InkOracle<ExactOracle>>),
}

impl std::fmt::Debug for AnySequential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AnySequential").field(&self.method()).finish()
    }
}

impl AnySequential {
    /// An empty `squeak`.
    pub fn squeak(options: SqueakOptions) -> Result<Self> {
        Ok(Self::Squeak(Box::new(Squeak::new(options)?)))
    }
    /// An empty `ink-estimate`.
    pub fn ink_estimate(options: InkOptions) -> Result<Self> {
        Ok(Self::InkEstimate(Box::new(InkOracle::new(options)?)))
    }
    /// An empty `ink-oracle`.
    pub fn ink_oracle(options: InkOptions) -> Result<Self> {
        Ok(Self::InkOracle(Box::new(InkOracle::new(options)?)))
    }

    /// Reads what [`to_container`](SequentialDictionary::to_container) of any method wrote.
    pub fn from_container(file: Container) -> Result<Self> {
        file.expect_kind("sketch")?;
        let method = file.document.get("method").and_then(|method| method.as_str()).unwrap_or("nothing");
        Ok(match method {
            "squeak" => Self::Squeak(Box::new(Squeak::from_container(file)?)),
            "ink-estimate" => Self::InkEstimate(Box::new(InkOracle::from_container(file)?)),
            "ink-oracle" => Self::InkOracle(Box::new(InkOracle::from_container(file)?)),
            other => {
                let reason = format!("a sketch by {other:?}, expected squeak, ink-estimate or ink-oracle");
                return Err(file.malformed(reason));
            }
        })
    }

    /// Which one.
    pub fn dictionary_method(&self) -> DictionaryMethod {
        match self {
            Self::Squeak(_) => DictionaryMethod::Squeak,
            Self::InkEstimate(_) => DictionaryMethod::InkEstimate,
            Self::InkOracle(_) => DictionaryMethod::InkOracle,
        }
    }

    /// The settings of `squeak`; none for the others.
    pub fn squeak_options(&self) -> Option<&SqueakOptions> {
        match self {
            Self::Squeak(squeak) => Some(squeak.options()),
            _ => None,
        }
    }

    /// The settings of `ink-estimate` and `ink-oracle`; none for `squeak`.
    pub fn ink_options(&self) -> Option<&InkOptions> {
        match self {
            Self::Squeak(_) => None,
            Self::InkEstimate(ink) => Some(ink.options()),
            Self::InkOracle(ink) => Some(ink.options()),
        }
    }

    /// The most atoms, where that is limited in atoms.
    pub fn budget(&self) -> Option<usize> {
        match (self.squeak_options(), self.ink_options()) {
            (Some(options), _) => options.budget,
            (_, Some(options)) => options.budget,
            _ => None,
        }
    }

    /// Columns of the rows, and whether they are sparse; none before the first row.
    pub fn row_shape(&self) -> Option<(usize, bool)> {
        match self {
            Self::Squeak(squeak) => squeak.row_shape(),
            Self::InkEstimate(ink) => ink.row_shape(),
            Self::InkOracle(ink) => ink.row_shape(),
        }
    }

    /// Rows of the stream so far.
    pub fn rows(&self) -> u64 {
        match self {
            Self::Squeak(squeak) => squeak.rows_seen(),
            Self::InkEstimate(ink) => ink.rows() as u64,
            Self::InkOracle(ink) => ink.rows() as u64,
        }
    }

    /// Of all random choices.
    pub fn seed(&self) -> u64 {
        self.squeak_options().map(|o| o.seed).or(self.ink_options().map(|o| o.seed)).unwrap_or(0)
    }

    /// The most that any factorisation of SQUEAK had to add to γ; none for the others.
    pub fn jitter(&self) -> Option<f64> {
        match self {
            Self::Squeak(squeak) => Some(squeak.jitter()),
            _ => None,
        }
    }

    /// Rows at which INK had no usable score; none for SQUEAK.
    pub fn unreliable_steps(&self) -> Option<u64> {
        match self {
            Self::Squeak(_) => None,
            Self::InkEstimate(ink) => Some(ink.unreliable_steps()),
            Self::InkOracle(ink) => Some(ink.unreliable_steps()),
        }
    }

    /// An empty one with the same settings and this seed: for another part of the data.
    pub fn empty_like(&self, seed: u64) -> Result<Self> {
        match self {
            Self::Squeak(squeak) => Self::squeak(SqueakOptions { seed, ..squeak.options().clone() }),
            Self::InkEstimate(ink) => Self::ink_estimate(InkOptions { seed, ..ink.options().clone() }),
            Self::InkOracle(ink) => Self::ink_oracle(InkOptions { seed, ..ink.options().clone() }),
        }
    }

    /// One dictionary for the rows of both (see [`Squeak::merge`]); only `squeak` can.
    pub fn merge(self, other: Self) -> Result<Self> {
        match (self, other) {
            (Self::Squeak(a), Self::Squeak(b)) => Ok(Self::Squeak(Box::new(a.merge(*b)?))),
            (a, b) => {
                let found = if matches!(a, Self::Squeak(_)) { b.method() } else { a.method() };
                Err(Error::Incompatible {
                    field: "method".to_owned(),
                    found: found.to_owned(),
                    expected: "squeak, the only one that merges".to_owned(),
                })
            }
        }
    }

    fn inner(&self) -> &dyn SequentialDictionary {
        match self {
            Self::Squeak(squeak) => squeak.as_ref(),
            Self::InkEstimate(ink) => ink.as_ref(),
            Self::InkOracle(ink) => ink.as_ref(),
        }
    }

    fn inner_mut(&mut self) -> &mut dyn SequentialDictionary {
        match self {
            Self::Squeak(squeak) => squeak.as_mut(),
            Self::InkEstimate(ink) => ink.as_mut(),
            Self::InkOracle(ink) => ink.as_mut(),
        }
    }
}

impl SequentialDictionary for AnySequential {
    fn method(&self) -> &'static str {
        self.inner().method()
    }
    fn kernel(&self) -> &Kernel {
        self.inner().kernel()
    }
    fn insert(&mut self, rows: Rows) -> Result<()> {
        self.inner_mut().insert(rows)
    }
    fn flush(&mut self) -> Result<()> {
        self.inner_mut().flush()
    }
    fn dictionary(&self) -> Result<Dictionary> {
        self.inner().dictionary()
    }
    fn report(&self) -> Result<SketchReport> {
        self.inner().report()
    }
    fn to_container(&self) -> Result<Container> {
        self.inner().to_container()
    }
}
