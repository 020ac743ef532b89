//! f(x) = Σ_i α_i k(z_i, x): what most learners here keep.

use super::settings::LearnerSettings;
use super::state::State;
use crate::error::Result;
use crate::kernel::SupportSet;
use crate::persist::Container;
use crate::rows::Row;

/// A weighted sum of kernels at rows that were kept.
#[derive(Debug, Clone)]
pub(super) struct Expansion {
    pub support: SupportSet,
    /// α
    pub coefficients: Vec<f64>,
    /// Kernels of the row that was looked at last.
    pub kernels: Vec<f64>,
}

impl Expansion {
    /// The function 0.
    pub fn new(settings: &LearnerSettings) -> Self {
        let support = SupportSet::new(&settings.kernel, settings.features, settings.budget);
        Self { support, coefficients: Vec::new(), kernels: Vec::new() }
    }

    /// f(x); leaves k(z_i, x) in `kernels`.
    pub fn output(&mut self, row: Row) -> f64 {
        self.support.weighted(row, &self.coefficients, &mut self.kernels)
    }

    pub fn len(&self) -> usize {
        self.coefficients.len()
    }

    pub fn push(&mut self, row: Row, coefficient: f64) {
        self.support.push(row);
        self.coefficients.push(coefficient);
        self.kernels.push(0.0);
    }

    pub fn replace(&mut self, i: usize, row: Row, coefficient: f64) {
        self.support.replace(i, row);
        self.coefficients[i] = coefficient;
    }

    pub fn scale(&mut self, factor: f64) {
        self.coefficients.iter_mut().for_each(|c| *c *= factor);
    }

    pub fn size_bytes(&self) -> usize {
        self.support.size_bytes() + (self.coefficients.capacity() + self.kernels.capacity()) * 8
    }

    pub fn put(&self, file: &mut Container) -> Result<()> {
        file.put_support("support", &self.support)?;
        file.put_numbers("coefficients", &self.coefficients)
    }

    pub fn take(file: &mut Container, settings: &LearnerSettings) -> Result<Self> {
        let support = file.take_support("support", settings, settings.budget)?;
        let coefficients = file.take_numbers("coefficients", support.len())?;
        let kernels = vec![0.0; support.len()];
        Ok(Self { support, coefficients, kernels })
    }
}
