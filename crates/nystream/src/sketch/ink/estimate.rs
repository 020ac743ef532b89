//! INK-ESTIMATE's oracle: scores from the true stored columns, and the running effective dimension.
//!
//! INK, Sect. 4, Lemma 2 and 3, Eq. 12–14; Alg. 3 is Alg. 2 with this oracle. O(tm + m³) a row for m atoms after t rows,
//! where the paper has O(tm² + m³); holds the m columns of t numbers.
//!
//! **Sums in place of columns.** Let C = K_t S (t × m), G = CᵀC, V = SᵀK_tS + γI, so that K̃_t = C V⁻¹ Cᵀ, and let
//! A = K̃_t + aI with a = αγ, P = G + aV = LLᵀ. By Woodbury A⁻¹ = (I − C P⁻¹ Cᵀ)/a; and since AC = C V⁻¹ P,
//! A⁻¹C = C P⁻¹ V, so CᵀA⁻¹C = G P⁻¹ V = V − aVP⁻¹V and CᵀA⁻¹k̄ = V P⁻¹ h with h = Cᵀk̄. With y = L⁻¹h, Y = L⁻¹V and
//! c_i = C e_i/√b_i the true column of atom i, of which k_ii is an entry and V_ii/b_i = k_ii + γ/b_i:
//!
//! - N = k_{t+1} − k̄ᵀA⁻¹k̄ = k_{t+1} − (k̄ᵀk̄ − ‖y‖²)/a,
//! - k_ii − c_iᵀA⁻¹c_i = (a‖Y e_i‖² − γ)/b_i,
//! - c_iᵀA⁻¹k̄ = (Y e_i)ᵀy/√b_i.
//!
//! The border of K̄_{t+1} + aI has the Schur complement s = k_{t+1} + a − k̄ᵀA⁻¹k̄ = N + a, and Eq. 12 becomes
//! τ̃_{i,t+1} = (k_ii − c_iᵀA⁻¹c_i − (k(x_i, x_{t+1}) − c_iᵀA⁻¹k̄)²/s)/a, and for the new row, whose column is that of
//! K̄_{t+1} itself, τ̃_{t+1,t+1} = 1 − a/s = N/s. Of Eq. 14, the last term is ‖z‖² for z = (K̃_t + γI)⁻¹k̄ =
//! (k̄ − Cu)/γ, u = (G + γV)⁻¹h, so with G + γV = MMᵀ and w = M⁻¹h: γ²‖z‖² = k̄ᵀk̄ − ‖w‖² − γuᵀVu.
//!
//! G is kept for unweighted columns and scaled when used, because b changes. A row adds κκᵀ to it, κ its kernels with
//! the atoms; a column that enters adds a row and column of products Cᵀk̄, known by then. So the columns are read once a
//! row, for Cᵀk̄.
//!
//! **The first rows.** d̃_eff(γ)_0 = 0, exactly (the proof of Lemma 3 asks for no more); Eq. 12–14 with nothing stored
//! give τ̃ = k/(k + αγ) and d̃ = αk/(k + γ) after the first row, which is α times the truth.
//!
//! Departures from the paper: a step whose numbers cannot be right is answered without scores, so that probabilities
//! stay (see [`Oracle`]), and the new row is kept, so that the next step knows more. Such a step has N ≤ 0 or a negative
//! Eq. 14, either of which proves that K̃_t fails Eq. 11; or N below its rounding, or a matrix that needs jitter, where
//! γ is too small for double precision (sums square the condition number: below about 1e-7 λ_max(K)). d̃ then grows by
//! N′/(N′ + γ), N′ = k_{t+1} − κᵀ(K_ZZ + γI)⁻¹κ for the atoms Z, which bounds the true increase whatever K̃_t is: by
//! Eq. 16 that is at most ξ′/(ξ′ + γ), ξ′ = k_{t+1} − k̄ᵀ(K_t + γI)⁻¹k̄, and fewer rows explain less. (Eq. 14 for what it
//! is worth, or k/(k + γ), would let d̃ run away: probabilities fall, atoms are lost, more steps fail.) An atom whose
//! own score is not above rounding has none, likewise.
//! [`InkOracle::unreliable_steps`](super::InkOracle::unreliable_steps) counts all of these.

use faer::Mat;

use super::columns::Columns;
use super::options::InkOptions;
use super::oracle::{Estimate, Oracle, Step};
use super::shrink_expand::Atom;
use crate::error::Result;
use crate::linalg::{Cholesky, dot};
use crate::persist::Container;

/// Relative error of sums of products, with room for a few of them.
const ROUNDING: f64 = 16.0 * f64::EPSILON;

/// The estimators of INK, Sect. 4.
#[derive(Debug, Clone)]
pub struct EstimateOracle {
    accuracy: f64,
    /// The true columns k_i of the atoms.
    columns: Columns,
    /// Their products with each other.
    gram: Mat<f64>,
    /// Of this step: the products of the columns with k̄, and k̄ᵀk̄.
    products: Vec<f64>,
    squared_norm: f64,
}

/// k̄ᵀA⁻¹k̄ and the rest of a step's numbers, at one γ.
struct Parts {
    /// N, and what rounding may have done to it.
    unexplained: f64,
    noise: f64,
    /// γ‖z‖².
    second_order: f64,
    /// Y and y; none without atoms.
    solved: Option<(Mat<f64>, Mat<f64>)>,
}

impl EstimateOracle {
    /// α = (2 − ε)/(1 − ε).
    fn alpha(&self) -> f64 {
        (2.0 - self.accuracy) / (1.0 - self.accuracy)
    }

    /// None where a matrix cannot be factored as it is.
    fn parts(&self, step: &Step<'_>, gamma: f64) -> Option<Parts> {
        let m = step.atoms.len();
        let a = self.alpha() * gamma;
        let norm = self.squared_norm;
        if m == 0 {
            let (unexplained, noise) = (step.energy - norm / a, ROUNDING * norm / a);
            return Some(Parts { unexplained, noise, second_order: norm / gamma, solved: None });
        }
        let s: Vec<f64> = step.atoms.iter().map(Atom::weight).collect();
        let ridge = |i: usize, j: usize| if i == j { gamma } else { 0.0 };
        let v = Mat::from_fn(m, m, |i, j| s[i] * step.atom_kernels[(i, j)] * s[j] + ridge(i, j));
        let factor = |ridge: f64| {
            let matrix = Mat::from_fn(m, m, |i, j| s[i] * self.gram[(i, j)] * s[j] + ridge * v[(i, j)]);
            Cholesky::new(matrix.as_ref(), "products of stored columns").ok().filter(|factor| factor.jitter() == 0.0)
        };
        let (l, second) = (factor(a)?, factor(gamma)?);
        let largest = |i: usize| s[i] * self.gram[(i, i)].max(0.0).sqrt() + (a * v[(i, i)]).sqrt();
        let scales: Vec<f64> = (0..m).map(largest).collect();
        let mut h = Mat::from_fn(m, 1, |i, _| s[i] * self.products[i]);

        let mut w = h.clone();
        second.forward_in_place(w.as_mut());
        let mut u = w.clone();
        second.backward_in_place(u.as_mut());
        let u = column(&u);
        let uvu: f64 = (0..m).map(|j| u[j] * dot(v.col_as_slice(j), u)).sum();
        let second_order = ((norm - squared(&w) - gamma * uvu) / gamma).max(0.0);

        l.forward_in_place(h.as_mut());
        let unexplained = step.energy - (norm - squared(&h)) / a;
        // Entries of P are off by rounding's share of √(P_ii P_jj), which moves hᵀP⁻¹h by (Σ|P⁻¹h|_i √P_ii)² times that.
        let mut solution = h.clone();
        l.backward_in_place(solution.as_mut());
        let moved: f64 = column(&solution).iter().zip(&scales).map(|(u, scale)| u.abs() * scale).sum();
        let noise = ROUNDING * (norm + moved * moved) / a;
        let mut y = v;
        l.forward_in_place(y.as_mut());
        Some(Parts { unexplained, noise, second_order, solved: Some((y, h)) })
    }
}

impl Oracle for EstimateOracle {
    const METHOD: &'static str = "ink-estimate";

    fn new(options: &InkOptions) -> Self {
        let columns = Columns::default();
        Self { accuracy: options.accuracy, columns, gram: Mat::new(), products: Vec::new(), squared_norm: 0.0 }
    }

    fn score_factor(&self) -> f64 {
        self.alpha()
    }

    fn dimension_factor(&self, spectral_ratio: f64) -> f64 {
        self.alpha().powi(2) * (1.0 + spectral_ratio)
    }

    fn receive(&mut self, step: &Step<'_>) {
        self.products = self.columns.products(step.kernels);
        self.squared_norm = dot(step.kernels, step.kernels);
    }

    fn estimate(&mut self, step: &Step<'_>, gamma: f64) -> Result<Estimate> {
        let m = step.atoms.len();
        let (alpha, a) = (self.alpha(), self.alpha() * gamma);
        let usable = |parts: &Parts| {
            let numerator = parts.unexplained - (1.0 - self.accuracy).powi(2) / 4.0 * parts.second_order;
            (parts.unexplained > parts.noise && numerator >= 0.0).then_some(numerator)
        };
        let parts = self.parts(step, gamma);
        let Some((parts, numerator)) = parts.and_then(|parts| usable(&parts).map(|n| (parts, n))) else {
            let effective_dim = step.effective_dim + safe_increase(step, gamma);
            return Ok(Estimate { scores: vec![None; m], new_score: None, effective_dim });
        };

        let n = parts.unexplained;
        let s = n + a;
        // Eq. 13 and 14.
        let effective_dim = step.effective_dim + alpha * numerator / (n + gamma);
        let mut scores = Vec::with_capacity(m);
        if let Some((solved, y)) = &parts.solved {
            let y = column(y);
            for (i, (atom, kappa)) in step.atoms.iter().zip(step.kernels_with_atoms()).enumerate() {
                let (b, y_i) = (atom.inflation as f64, solved.col_as_slice(i));
                let residual = kappa - dot(y_i, y) / b.sqrt();
                // Eq. 12.
                let score = ((a * dot(y_i, y_i) - gamma) / b - residual * residual / s) / a;
                let least = ROUNDING * (step.atom_kernels[(i, i)] + gamma / b) / a;
                scores.push((score.is_finite() && score > least).then_some(score));
            }
        }
        Ok(Estimate { scores, new_score: Some(n / s), effective_dim })
    }

    fn advance(&mut self, step: &Step<'_>, kept: &[bool], entered: bool) {
        let old: Vec<usize> = (0..kept.len()).filter(|&i| kept[i]).collect();
        let kappa: Vec<f64> = old.iter().map(|&i| step.kernels[step.atoms[i].row]).collect();
        let (m, k) = (old.len(), step.energy);
        self.gram = Mat::from_fn(m + usize::from(entered), m + usize::from(entered), |i, j| match (i < m, j < m) {
            (true, true) => self.gram[(old[i], old[j])] + kappa[i] * kappa[j],
            (true, false) => self.products[old[i]] + kappa[i] * k,
            (false, true) => self.products[old[j]] + kappa[j] * k,
            (false, false) => self.squared_norm + k * k,
        });
        if m < kept.len() {
            self.columns.retain(kept);
        }
        self.columns.grow(&kappa);
        if entered {
            self.columns.push(step.kernels.iter().copied().chain([k]));
        }
    }

    fn size_bytes(&self) -> u64 {
        let m = self.columns.len() as u64;
        self.columns.size_bytes() + 8 * m * (m + 1)
    }

    fn put(&self, file: &mut Container) -> Result<()> {
        let m = self.columns.len();
        let rows = if m == 0 { 0 } else { self.columns.column(0).count() };
        file.put_f64("columns", &[m, rows], (0..m).flat_map(|j| self.columns.column(j)).collect())?;
        let lower = (0..m).flat_map(|j| (j..m).map(move |i| self.gram[(i, j)]));
        file.put_f64("column_products", &[m * (m + 1) / 2], lower.collect())
    }

    fn take(file: &mut Container, options: &InkOptions, rows: usize, atoms: &[Atom]) -> Result<Self> {
        let m = atoms.len();
        let (shape, data) = file.take_finite("columns", 2)?;
        if shape != [m, if m == 0 { 0 } else { rows }] {
            return Err(file.malformed(format!("columns of shape {shape:?}, expected {m} of {rows} numbers")));
        }
        let mut oracle = Self::new(options);
        data.chunks(rows.max(1)).for_each(|column| oracle.columns.push(column.iter().copied()));
        let (_, lower) = file.take_finite("column_products", 1)?;
        oracle.gram = super::file::symmetric(&lower, m).ok_or_else(|| {
            file.malformed(format!("column_products: {} numbers, expected a triangle of {m} rows", lower.len()))
        })?;
        Ok(oracle)
    }
}

/// N′/(N′ + γ): what d_eff cannot rise by more than, from the atoms alone; k/(k + γ) at worst.
fn safe_increase(step: &Step<'_>, gamma: f64) -> f64 {
    let m = step.atoms.len();
    let ridge = |i: usize, j: usize| if i == j { gamma } else { 0.0 };
    let inner = Mat::from_fn(m, m, |i, j| step.atom_kernels[(i, j)] + ridge(i, j));
    let mut kappa = Mat::from_fn(m, 1, |i, _| step.kernels[step.atoms[i].row]);
    let explained = match Cholesky::new(inner.as_ref(), "the atoms' kernels") {
        Ok(factor) if m > 0 => {
            factor.forward_in_place(kappa.as_mut());
            squared(&kappa)
        }
        _ => 0.0,
    };
    let left = (step.energy - explained).clamp(0.0, step.energy);
    left / (left + gamma)
}

fn column(matrix: &Mat<f64>) -> &[f64] {
    matrix.col_as_slice(0)
}

fn squared(matrix: &Mat<f64>) -> f64 {
    dot(column(matrix), column(matrix))
}
