//! Standard deviation of a prediction.
//!
//! The model is a Gaussian process f ~ GP(c, (σ²/μ) k) observed with noise σ², c an unknown constant
//! with a flat prior if there is an intercept. With features φ(x) = L⁻¹ S k_Z(x), LLᵀ = S K_ZZ S + γI,
//! the variance of a new observation at x is
//!
//! σ² (1 + 1/n + (φ − φ̄)ᵀ (Σ(φ − φ̄)(φ − φ̄)ᵀ + μI)⁻¹ (φ − φ̄)) + (σ²/μ)(k(x,x) − ‖φ‖²)
//!
//! (without an intercept: no 1/n, φ̄ = 0). The last term is what the atoms do not span. With every
//! point an atom this is the exact posterior, for which the n × n factor is used directly:
//!
//! σ² (1 + (k(x,x) − kᵀA⁻¹k + (1 − 1ᵀA⁻¹k)²/1ᵀA⁻¹1)/μ),  A = K + μI.

use faer::{Mat, MatRef};

use crate::error::{Error, Result};
use crate::linalg::Cholesky;

/// What standard deviations are computed from.
#[derive(Debug, Clone)]
pub enum Uncertainty {
    /// Of a Nyström model.
    Nystrom(NystromPosterior),
    /// Of an exact model.
    Exact(ExactPosterior),
}

/// Posterior of a Nyström model.
#[derive(Debug, Clone)]
pub struct NystromPosterior {
    /// S.
    pub weights: Vec<f64>,
    /// Factor of S K_ZZ S + γI.
    pub whitening: Cholesky,
    /// Factor of Σφφᵀ + μI (centred, if there is an intercept).
    pub posterior: Cholesky,
    /// Mean feature and number of rows, if there is an intercept.
    pub constant: Option<(Vec<f64>, f64)>,
    /// μ.
    pub ridge: f64,
    /// What share of the last term counts for each target; 1 unless it was fitted (see
    /// [`KernelModel::fit_spread`](super::KernelModel)).
    pub unspanned_shares: Vec<f64>,
    /// σ² of each target.
    pub noise_variances: Vec<f64>,
}

/// Posterior of an exact model.
#[derive(Debug, Clone)]
pub struct ExactPosterior {
    /// Factor of A = K + μI.
    pub factor: Cholesky,
    /// A⁻¹1, if there is an intercept.
    pub constant: Option<Vec<f64>>,
    /// μ.
    pub ridge: f64,
    /// σ² of each target.
    pub noise_variances: Vec<f64>,
}

impl Uncertainty {
    /// σ² of each target.
    pub fn noise_variances(&self) -> &[f64] {
        match self {
            Self::Nystrom(posterior) => &posterior.noise_variances,
            Self::Exact(posterior) => &posterior.noise_variances,
        }
    }

    pub(super) fn check(&self, atoms: usize, outputs: usize) -> Result<()> {
        let sizes = match self {
            Self::Nystrom(p) => vec![
                ("dictionary weights", p.weights.len()),
                ("whitening factor", p.whitening.dim()),
                ("posterior factor", p.posterior.dim()),
                ("mean feature", p.constant.as_ref().map_or(atoms, |(mean, _)| mean.len())),
            ],
            Self::Exact(p) => vec![
                ("posterior factor", p.factor.dim()),
                ("solved constant", p.constant.as_ref().map_or(atoms, Vec::len)),
            ],
        };
        for (what, found) in sizes {
            if found != atoms {
                return Err(Error::Shape { what, found, expected: atoms });
            }
        }
        if let Self::Nystrom(NystromPosterior { unspanned_shares: shares, .. }) = self
            && shares.len() != outputs
        {
            return Err(Error::Shape { what: "unspanned shares", found: shares.len(), expected: outputs });
        }
        if self.noise_variances().len() != outputs {
            return Err(Error::Shape {
                what: "noise variances",
                found: self.noise_variances().len(),
                expected: outputs,
            });
        }
        Ok(())
    }

    /// Appends the standard deviations of a block of rows, rows × targets, given its kernel block and k(x,x).
    pub(super) fn deviations(&self, block: MatRef<'_, f64>, diagonal: &[f64], out: &mut Vec<f64>) {
        match self {
            Self::Nystrom(posterior) => {
                let (inside, outside) = posterior.variance_parts(block, diagonal);
                for (inside, outside) in inside.into_iter().zip(outside) {
                    let targets = posterior.noise_variances.iter().zip(&posterior.unspanned_shares);
                    out.extend(targets.map(|(noise, share)| (noise * (inside + share * outside)).sqrt()));
                }
            }
            Self::Exact(posterior) => {
                for factor in posterior.variance_factors(block, diagonal) {
                    out.extend(posterior.noise_variances.iter().map(|noise| (noise * factor).sqrt()));
                }
            }
        }
    }
}

fn squared_columns(matrix: &Mat<f64>) -> Vec<f64> {
    matrix.col_iter().map(|column| column.iter().map(|v| v * v).sum()).collect()
}

impl NystromPosterior {
    /// For rows that were learnt from, how much each pulls its own prediction: h with ŷ = h y + …, given their
    /// kernel block. The prediction without the row itself is then (ŷ − h y)/(1 − h).
    pub fn leverages(&self, block: MatRef<'_, f64>) -> Vec<f64> {
        self.leverages_and_spans(block).0
    }

    fn leverages_and_spans(&self, block: MatRef<'_, f64>) -> (Vec<f64>, Vec<f64>) {
        let mut features = Mat::from_fn(block.ncols(), block.nrows(), |j, i| self.weights[j] * block[(i, j)]);
        self.whitening.forward_in_place(features.as_mut());
        let spanned = squared_columns(&features);
        let mut constant_part = 0.0;
        if let Some((mean, rows)) = &self.constant {
            constant_part = 1.0 / rows;
            for column in features.as_mut().col_iter_mut() {
                column.iter_mut().zip(mean).for_each(|(v, m)| *v -= m);
            }
        }
        self.posterior.forward_in_place(features.as_mut());
        let leverages = squared_columns(&features).into_iter().map(|inside| inside + constant_part).collect();
        (leverages, spanned)
    }

    /// Over σ², what the atoms span and the noise, and what they do not span, whatever share of it counts.
    pub(super) fn variance_parts(&self, block: MatRef<'_, f64>, diagonal: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (leverages, spanned) = self.leverages_and_spans(block);
        // Rounding may leave the unspanned part a hair below zero.
        let unspanned = diagonal.iter().zip(&spanned).map(|(k, s)| (k - s).max(0.0) / self.ridge);
        (leverages.into_iter().map(|inside| 1.0 + inside).collect(), unspanned.collect())
    }
}

impl ExactPosterior {
    pub(super) fn variance_factors(&self, block: MatRef<'_, f64>, diagonal: &[f64]) -> Vec<f64> {
        let mut solved = block.transpose().to_owned();
        let constant: Vec<f64> = match &self.constant {
            Some(ones) => {
                let total: f64 = ones.iter().sum();
                let miss =
                    |column: faer::ColRef<'_, f64>| 1.0 - column.iter().zip(ones).map(|(k, u)| k * u).sum::<f64>();
                solved.col_iter().map(|column| miss(column).powi(2) / total).collect()
            }
            None => vec![0.0; diagonal.len()],
        };
        self.factor.forward_in_place(solved.as_mut());
        let explained = squared_columns(&solved);
        (0..diagonal.len()).map(|i| 1.0 + ((diagonal[i] - explained[i]).max(0.0) + constant[i]) / self.ridge).collect()
    }
}
