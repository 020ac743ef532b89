//! What learners have in common in their files: numbers, support sets, generators. All of it comes back to the last bit.

use serde_json::Value;

use super::settings::LearnerSettings;
use crate::error::{Error, Result};
use crate::kernel::SupportSet;
use crate::persist::Container;
use crate::random::Generator;
use crate::rows::RowBlock;

/// Parts of learners' files.
pub(super) trait State {
    /// Adds numbers: a vector, or a few scalars in an order of the learner's own.
    fn put_numbers(&mut self, name: &str, numbers: &[f64]) -> Result<()>;
    /// Takes out as many finite numbers.
    fn take_numbers(&mut self, name: &str, count: usize) -> Result<Vec<f64>>;
    /// Takes out finite numbers, as many as there are.
    fn take_some_numbers(&mut self, name: &str) -> Result<Vec<f64>>;
    /// Adds counts.
    fn put_counts(&mut self, name: &str, counts: &[u64]) -> Result<()>;
    /// Takes out `N` counts.
    fn take_counts<const N: usize>(&mut self, name: &str) -> Result<[u64; N]>;
    /// Adds the centres of a support set.
    fn put_support(&mut self, name: &str, support: &SupportSet) -> Result<()>;
    /// Takes out a support set of at most `most` centres.
    fn take_support(&mut self, name: &str, settings: &LearnerSettings, most: usize) -> Result<SupportSet>;
    /// Adds a generator with its position.
    fn put_generator(&mut self, name: &str, generator: &Generator) -> Result<()>;
    /// Takes out a generator.
    fn take_generator(&mut self, name: &str) -> Result<Generator>;
}

impl State for Container {
    fn put_numbers(&mut self, name: &str, numbers: &[f64]) -> Result<()> {
        self.put_f64(name, &[numbers.len()], numbers.to_vec())
    }

    fn take_numbers(&mut self, name: &str, count: usize) -> Result<Vec<f64>> {
        let numbers = self.take_some_numbers(name)?;
        if numbers.len() != count {
            return Err(self.malformed(format!("{name}: {} numbers, expected {count}", numbers.len())));
        }
        Ok(numbers)
    }

    fn take_some_numbers(&mut self, name: &str) -> Result<Vec<f64>> {
        Ok(self.take_finite(name, 1)?.1)
    }

    fn put_counts(&mut self, name: &str, counts: &[u64]) -> Result<()> {
        self.put_u64(name, &[counts.len()], counts.to_vec())
    }

    fn take_counts<const N: usize>(&mut self, name: &str) -> Result<[u64; N]> {
        let (_, counts) = self.take_u64(name, 1)?;
        let found = counts.len();
        counts.try_into().map_err(|_| self.malformed(format!("{name}: {found} counts, expected {N}")))
    }

    fn put_support(&mut self, name: &str, support: &SupportSet) -> Result<()> {
        // Without rows there is nothing to be dense or sparse.
        let rows = if support.is_empty() { RowBlock::sparse(support.features()) } else { support.rows() };
        self.put_rows(name, rows.rows())
    }

    fn take_support(&mut self, name: &str, settings: &LearnerSettings, most: usize) -> Result<SupportSet> {
        let rows = self.take_rows(name, settings.features)?;
        if rows.len() > most {
            return Err(self.malformed(format!("{name}: {} rows, expected {most} at most", rows.len())));
        }
        let mut support = SupportSet::new(&settings.kernel, settings.features, most);
        (0..rows.len()).for_each(|i| support.push(rows.rows().row(i)));
        Ok(support)
    }

    fn put_generator(&mut self, name: &str, generator: &Generator) -> Result<()> {
        let value =
            serde_json::to_value(generator).map_err(|_| Error::Internal("a generator that is not plain data"))?;
        match self.document.as_object_mut() {
            Some(document) => document.insert(format!("generator_{name}"), value),
            None => return Err(Error::Internal("a learner's document is not an object")),
        };
        Ok(())
    }

    fn take_generator(&mut self, name: &str) -> Result<Generator> {
        let value = self.document.get(format!("generator_{name}")).cloned().unwrap_or(Value::Null);
        serde_json::from_value(value).map_err(|e| self.malformed(format!("generator '{name}': {e}")))
    }
}
