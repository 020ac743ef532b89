//! The exact oracle: α = β = 1, for study and tests.
//!
//! INK, Def. 1 and 2. It holds the kernel matrix K_t and (K_t + γI)⁻¹, which a new row borders in O(t²) (the formulas
//! of INK, Lemma 4 and 5). A γ that a budget has raised costs one factorisation, O(t³).
//!
//! Departures from the paper: ξ = k + γ − k̄ᵀ(K_t + γI)⁻¹k̄, never below γ in exact arithmetic, is not let below it.

use faer::Mat;

use super::options::InkOptions;
use super::oracle::{Estimate, Oracle, Step};
use super::shrink_expand::Atom;
use crate::error::{Error, Result};
use crate::linalg::{Cholesky, dot};
use crate::persist::Container;

/// The most rows; 2 GB at the end, 4 GB while γ is being raised.
const LIMIT: usize = 10_000;

/// Exact scores of all rows.
#[derive(Debug, Clone)]
pub struct ExactOracle {
    /// γ of the inverse.
    leverage_ridge: f64,
    kernels: Triangle,
    inverse: Triangle,
}

/// The lower triangle of a symmetric matrix, row after row: it grows at its end.
#[derive(Debug, Clone, Default, PartialEq)]
struct Triangle {
    rows: usize,
    data: Vec<f64>,
}

impl Triangle {
    fn row(&self, i: usize) -> &[f64] {
        &self.data[i * (i + 1) / 2..(i + 1) * (i + 2) / 2]
    }

    fn push(&mut self, row: impl IntoIterator<Item = f64>) {
        self.data.extend(row);
        self.rows += 1;
    }

    fn times(&self, vector: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.rows];
        for i in 0..self.rows {
            let row = self.row(i);
            let x = vector[i];
            out[i] += dot(&row[..i], &vector[..i]) + row[i] * x;
            out.iter_mut().zip(&row[..i]).for_each(|(out, r)| *out += r * x);
        }
        out
    }
}

impl ExactOracle {
    /// u = (K_t + γI)⁻¹k̄ and ξ (INK, Eq. 17).
    fn border(&self, step: &Step<'_>) -> (Vec<f64>, f64) {
        let u = self.inverse.times(step.kernels);
        let xi = step.energy + self.leverage_ridge - dot(&u, step.kernels);
        (u, xi.max(self.leverage_ridge))
    }

    fn rebuild(&mut self, leverage_ridge: f64) -> Result<()> {
        let n = self.kernels.rows;
        let ridge = |i: usize, j: usize| if i == j { leverage_ridge } else { 0.0 };
        let lower = |i: usize, j: usize| self.kernels.row(i.max(j))[i.min(j)];
        let matrix = Mat::from_fn(n, n, |i, j| lower(i, j) + ridge(i, j));
        let factor = Cholesky::new(matrix.as_ref(), "kernels plus leverage ridge")?;
        let mut inverse = Mat::identity(n, n);
        factor.solve_in_place(inverse.as_mut());
        self.inverse = Triangle::default();
        (0..n).for_each(|i| self.inverse.push((0..=i).map(|j| inverse[(i, j)])));
        self.leverage_ridge = leverage_ridge;
        Ok(())
    }
}

impl Oracle for ExactOracle {
    const METHOD: &'static str = "ink-oracle";

    fn new(options: &InkOptions) -> Self {
        let (kernels, inverse) = (Triangle::default(), Triangle::default());
        Self { leverage_ridge: options.leverage_ridge, kernels, inverse }
    }

    fn score_factor(&self) -> f64 {
        1.0
    }

    fn dimension_factor(&self, _spectral_ratio: f64) -> f64 {
        1.0
    }

    fn require_fits(rows: usize) -> Result<()> {
        if rows <= LIMIT {
            return Ok(());
        }
        let bytes = |n: usize| 8 * (n as u64).saturating_mul(n as u64);
        Err(Error::TooLarge {
            what: "the kernel matrix and its inverse for exact scores",
            needed_bytes: bytes(rows),
            allowed_bytes: bytes(LIMIT),
            advice: "give at most 10000 rows, or use ink-estimate or squeak",
        })
    }

    fn receive(&mut self, _step: &Step<'_>) {}

    fn estimate(&mut self, step: &Step<'_>, gamma: f64) -> Result<Estimate> {
        if gamma != self.leverage_ridge {
            self.rebuild(gamma)?;
        }
        // The inverse at t + 1 is that at t plus uuᵀ/ξ, bordered by −u/ξ and 1/ξ; τ = 1 − γ times its diagonal.
        let (u, xi) = self.border(step);
        let usable = |score: f64| (score > 0.0).then_some(score);
        let old = |i: usize| 1.0 - gamma * (self.inverse.row(i)[i] + u[i] * u[i] / xi);
        let t = self.inverse.rows;
        let new_score = 1.0 - gamma / xi;
        let effective_dim = (0..t).map(old).sum::<f64>() + new_score;
        let scores = step.atoms.iter().map(|atom| usable(old(atom.row))).collect();
        Ok(Estimate { scores, new_score: usable(new_score), effective_dim })
    }

    fn advance(&mut self, step: &Step<'_>, _kept: &[bool], _entered: bool) {
        let (u, xi) = self.border(step);
        for i in 0..self.inverse.rows {
            let scaled = u[i] / xi;
            let row = &mut self.inverse.data[i * (i + 1) / 2..(i + 1) * (i + 2) / 2];
            row.iter_mut().zip(&u).for_each(|(r, u)| *r += scaled * u);
        }
        self.inverse.push(u.iter().map(|u| -u / xi).chain([1.0 / xi]));
        self.kernels.push(step.kernels.iter().copied().chain([step.energy]));
    }

    fn size_bytes(&self) -> u64 {
        8 * (self.kernels.data.capacity() + self.inverse.data.capacity()) as u64
    }

    fn put(&self, file: &mut Container) -> Result<()> {
        let numbers = self.kernels.data.len();
        file.put_f64("kernels", &[numbers], self.kernels.data.clone())?;
        file.put_f64("inverse", &[numbers], self.inverse.data.clone())?;
        file.put_f64("inverse_ridge", &[1], vec![self.leverage_ridge])
    }

    fn take(file: &mut Container, options: &InkOptions, rows: usize, _atoms: &[Atom]) -> Result<Self> {
        let mut oracle = Self::new(options);
        let (_, ridge) = file.take_finite("inverse_ridge", 1)?;
        match ridge[..] {
            [ridge] if ridge > 0.0 => oracle.leverage_ridge = ridge,
            _ => return Err(file.malformed("inverse_ridge: expected one number above 0")),
        }
        let expected = rows.checked_mul(rows.saturating_add(1)).map(|twice| twice / 2);
        for (name, triangle) in [("kernels", &mut oracle.kernels), ("inverse", &mut oracle.inverse)] {
            let (_, data) = file.take_finite(name, 1)?;
            if Some(data.len()) != expected {
                let found = data.len();
                return Err(file.malformed(format!("{name}: {found} numbers, expected a triangle of {rows} rows")));
            }
            *triangle = Triangle { rows, data };
        }
        Ok(oracle)
    }
}
