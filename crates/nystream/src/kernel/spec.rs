//! The kernels, their parameters, and the value of one pair.
//!
//! Distances are Euclidean throughout: the Laplacian here is exp(−‖x − z‖₂/σ), the Matérn kernel of
//! order 1/2, as in Falkon; scikit-learn's `laplacian_kernel` takes the sum of absolute differences
//! instead.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::rows::Row;

/// A positive definite kernel with valid parameters. Build one with the constructors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "name")]
pub enum Kernel {
    /// exp(−‖x − z‖² / 2σ²)
    #[doc(alias = "rbf")]
    Gaussian {
        /// σ
        bandwidth: f64,
    },
    /// exp(−‖x − z‖ / σ)
    Laplacian {
        /// σ
        bandwidth: f64,
    },
    /// (1 + √3 r) exp(−√3 r), r = ‖x − z‖ / σ
    Matern32 {
        /// σ
        bandwidth: f64,
    },
    /// (1 + √5 r + 5r²/3) exp(−√5 r), r = ‖x − z‖ / σ
    Matern52 {
        /// σ
        bandwidth: f64,
    },
    /// (scale ⟨x, z⟩ + offset)^degree
    Polynomial {
        /// The power, at least 1.
        degree: u32,
        /// Factor of the inner product, above 0.
        scale: f64,
        /// Added constant, at least 0 (a negative one is not positive definite).
        offset: f64,
    },
    /// ⟨x, z⟩
    Linear,
}

impl Kernel {
    /// Gaussian kernel of this bandwidth.
    pub fn gaussian(bandwidth: f64) -> Result<Self> {
        Ok(Self::Gaussian { bandwidth: Error::require_positive("bandwidth", bandwidth)? })
    }
    /// Laplacian kernel of this bandwidth.
    pub fn laplacian(bandwidth: f64) -> Result<Self> {
        Ok(Self::Laplacian { bandwidth: Error::require_positive("bandwidth", bandwidth)? })
    }
    /// Matérn 3/2 kernel of this bandwidth.
    pub fn matern32(bandwidth: f64) -> Result<Self> {
        Ok(Self::Matern32 { bandwidth: Error::require_positive("bandwidth", bandwidth)? })
    }
    /// Matérn 5/2 kernel of this bandwidth.
    pub fn matern52(bandwidth: f64) -> Result<Self> {
        Ok(Self::Matern52 { bandwidth: Error::require_positive("bandwidth", bandwidth)? })
    }
    /// Polynomial kernel.
    pub fn polynomial(degree: u32, scale: f64, offset: f64) -> Result<Self> {
        if degree == 0 || degree > 32 {
            return Err(Error::InvalidParam { name: "degree", found: degree.to_string(), expected: "1 to 32" });
        }
        if !(offset.is_finite() && offset >= 0.0) {
            let found = offset.to_string();
            return Err(Error::InvalidParam { name: "offset", found, expected: "a finite number, at least 0" });
        }
        Ok(Self::Polynomial { degree, scale: Error::require_positive("scale", scale)?, offset })
    }

    /// The same kernel with valid parameters, or what is wrong with them (for kernels that come from a file).
    pub fn validated(self) -> Result<Self> {
        match self {
            Self::Gaussian { bandwidth } => Self::gaussian(bandwidth),
            Self::Laplacian { bandwidth } => Self::laplacian(bandwidth),
            Self::Matern32 { bandwidth } => Self::matern32(bandwidth),
            Self::Matern52 { bandwidth } => Self::matern52(bandwidth),
            Self::Polynomial { degree, scale, offset } => Self::polynomial(degree, scale, offset),
            Self::Linear => Ok(self),
        }
    }

    /// The name a user writes.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Gaussian { .. } => "gaussian",
            Self::Laplacian { .. } => "laplacian",
            Self::Matern32 { .. } => "matern32",
            Self::Matern52 { .. } => "matern52",
            Self::Polynomial { .. } => "polynomial",
            Self::Linear => "linear",
        }
    }

    /// σ, for the kernels of a distance.
    pub fn bandwidth(&self) -> Option<f64> {
        match *self {
            Self::Gaussian { bandwidth }
            | Self::Laplacian { bandwidth }
            | Self::Matern32 { bandwidth }
            | Self::Matern52 { bandwidth } => Some(bandwidth),
            Self::Polynomial { .. } | Self::Linear => None,
        }
    }

    /// The same kind of kernel with another bandwidth; unchanged if it has none.
    pub fn with_bandwidth(&self, bandwidth: f64) -> Result<Self> {
        match self {
            Self::Gaussian { .. } => Self::gaussian(bandwidth),
            Self::Laplacian { .. } => Self::laplacian(bandwidth),
            Self::Matern32 { .. } => Self::matern32(bandwidth),
            Self::Matern52 { .. } => Self::matern52(bandwidth),
            Self::Polynomial { .. } | Self::Linear => Ok(*self),
        }
    }

    /// k(x, z).
    pub fn pair(&self, x: Row, z: Row) -> f64 {
        if self.bandwidth().is_some() {
            self.of_squared_distance(squared_distance(x, z))
        } else {
            self.of_dot(dot(x, z))
        }
    }

    /// k(x, x).
    pub fn diagonal(&self, x: Row) -> f64 {
        if self.bandwidth().is_some() { 1.0 } else { self.of_dot(x.squared_norm()) }
    }

    pub(super) fn of_squared_distance(&self, squared: f64) -> f64 {
        match *self {
            Self::Gaussian { bandwidth } => {
                // Bandwidths beyond 1e±154 have no square: equal points must still give 1, far ones 0.
                let twice_variance = (2.0 * bandwidth * bandwidth).clamp(f64::MIN_POSITIVE, f64::MAX);
                (-squared / twice_variance).exp()
            }
            Self::Laplacian { bandwidth } => (-squared.sqrt() / bandwidth).exp(),
            Self::Matern32 { bandwidth } => {
                let r = (3.0 * squared).sqrt() / bandwidth;
                if r > 800.0 { 0.0 } else { (1.0 + r) * (-r).exp() }
            }
            Self::Matern52 { bandwidth } => {
                let r = (5.0 * squared).sqrt() / bandwidth;
                if r > 800.0 { 0.0 } else { (1.0 + r + r * r / 3.0) * (-r).exp() }
            }
            Self::Polynomial { .. } | Self::Linear => unreachable!("not a kernel of a distance"),
        }
    }

    pub(super) fn of_dot(&self, dot: f64) -> f64 {
        match *self {
            Self::Polynomial { degree, scale, offset } => (scale * dot + offset).powi(degree as i32),
            _ => dot,
        }
    }
}

/// Calls `visit(x_j, z_j)` for every column where either row may be non-zero.
fn zip_columns(x: Row, z: Row, mut visit: impl FnMut(f64, f64)) {
    match (x, z) {
        (Row::Dense(x), Row::Dense(z)) => x.iter().zip(z).for_each(|(&a, &b)| visit(a, b)),
        (Row::Dense(x), Row::Sparse { indices, values }) => zip_dense_sparse(x, indices, values, visit),
        (Row::Sparse { indices, values }, Row::Dense(z)) => zip_dense_sparse(z, indices, values, |b, a| visit(a, b)),
        (Row::Sparse { indices: xi, values: xv }, Row::Sparse { indices: zi, values: zv }) => {
            let (mut a, mut b) = (0, 0);
            while a < xi.len() || b < zi.len() {
                let i = xi.get(a).copied().unwrap_or(u32::MAX);
                let j = zi.get(b).copied().unwrap_or(u32::MAX);
                visit(if i <= j { xv[a] } else { 0.0 }, if j <= i { zv[b] } else { 0.0 });
                a += usize::from(i <= j);
                b += usize::from(j <= i);
            }
        }
    }
}

fn zip_dense_sparse(dense: &[f64], indices: &[u32], values: &[f64], mut visit: impl FnMut(f64, f64)) {
    let mut next = 0;
    for (j, &a) in dense.iter().enumerate() {
        let hit = indices.get(next).is_some_and(|&i| i as usize == j);
        visit(a, if hit { values[next] } else { 0.0 });
        next += usize::from(hit);
    }
}

pub(crate) fn squared_distance(x: Row, z: Row) -> f64 {
    let mut sum = 0.0;
    zip_columns(x, z, |a, b| sum += (a - b) * (a - b));
    sum
}

pub(super) fn dot(x: Row, z: Row) -> f64 {
    let mut sum = 0.0;
    zip_columns(x, z, |a, b| sum += a * b);
    sum
}
