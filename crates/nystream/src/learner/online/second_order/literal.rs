//! The algorithms as their authors write them, dense and slow: every matrix built and inverted anew. Oracles only.

use faer::{Mat, Scale};

use crate::kernel::Kernel;
use crate::linalg::{Cholesky, SymmetricEigen};
use crate::random::Generator;
use crate::rows::Row;

/// What the loss adds to the gradient: its derivative at an output, for a target.
pub(super) type Slope = fn(f64, f64) -> f64;

fn inverse(matrix: &Mat<f64>) -> Mat<f64> {
    let mut out = Mat::identity(matrix.nrows(), matrix.ncols());
    Cholesky::new(matrix.as_ref(), "a matrix of the oracle").unwrap().solve_in_place(out.as_mut());
    out
}

fn column(values: impl IntoIterator<Item = f64>) -> Mat<f64> {
    let values: Vec<f64> = values.into_iter().collect();
    Mat::from_fn(values.len(), 1, |i, _| values[i])
}

fn inner(a: &Mat<f64>, b: &Mat<f64>) -> f64 {
    (a.transpose() * b)[(0, 0)]
}

/// φ̃ = Σ⁻¹Uᵀk_Z(x) over the eigenvalues that are not 0.
struct Eigenmap {
    kernel: Kernel,
    atoms: Vec<Vec<f64>>,
    /// Σ⁻¹Uᵀ
    map: Mat<f64>,
}

impl Eigenmap {
    fn new(kernel: Kernel, atoms: Vec<Vec<f64>>) -> Self {
        let n = atoms.len();
        if n == 0 {
            return Self { kernel, atoms, map: Mat::zeros(0, 0) };
        }
        let gram = Mat::from_fn(n, n, |i, j| kernel.pair(Row::Dense(&atoms[i]), Row::Dense(&atoms[j])));
        let eigen = SymmetricEigen::new(gram.as_ref()).unwrap();
        let largest = eigen.values.last().copied().unwrap_or(0.0);
        let kept: Vec<usize> = (0..n).filter(|&i| eigen.values[i] > 1e-11 * largest).collect();
        let map = Mat::from_fn(kept.len(), n, |i, j| eigen.vectors[(j, kept[i])] / eigen.values[kept[i]].sqrt());
        Self { kernel, atoms, map }
    }

    fn features(&self, x: &[f64]) -> Mat<f64> {
        &self.map * column(self.atoms.iter().map(|z| self.kernel.pair(Row::Dense(x), Row::Dense(z))))
    }

    /// What carries features over this dictionary into those over a larger one: Σ⁻¹Uᵀ K_new,old U_old Σ_old⁻¹.
    fn carry_to(&self, larger: &Self) -> Mat<f64> {
        let cross = Mat::from_fn(larger.atoms.len(), self.atoms.len(), |i, j| {
            self.kernel.pair(Row::Dense(&larger.atoms[i]), Row::Dense(&self.atoms[j]))
        });
        &larger.map * cross * self.map.transpose()
    }
}

/// PROS-N-KONS (Alg. 1) and KORS (Alg. 2) of Calandriello et al. 2017; with `restart` false, CON-KONS.
pub(super) struct LiteralKons {
    pub kernel: Kernel,
    pub restart: bool,
    pub slope: Slope,
    pub bound: f64,
    pub alpha: f64,
    pub sigma: f64,
    pub gamma: f64,
    pub epsilon: f64,
    pub beta: f64,
    pub budget: usize,
}

impl LiteralKons {
    /// The output of every round, and the number of atoms in the end.
    pub(super) fn run(&self, rows: &[(Vec<f64>, f64)], seed: u64) -> (Vec<f64>, usize) {
        let mut draws = Generator::new(seed);
        let mut dictionary: Vec<(Vec<f64>, f64)> = Vec::new();
        let mut embedding = Eigenmap::new(self.kernel, vec![]);
        let (mut a, mut w, mut g) = (Mat::<f64>::zeros(0, 0), Mat::<f64>::zeros(0, 1), Mat::<f64>::zeros(0, 1));
        let mut changed = false;
        let mut outputs = Vec::new();
        for (x, y) in rows {
            if changed {
                let larger = Eigenmap::new(self.kernel, dictionary.iter().map(|(z, _)| z.clone()).collect());
                let dim = larger.map.nrows();
                let ridge = Scale(self.alpha) * Mat::<f64>::identity(dim, dim);
                if self.restart {
                    (a, w) = (ridge, Mat::zeros(dim, 1));
                } else {
                    let q = embedding.carry_to(&larger);
                    let v = &w - inverse(&a) * &g;
                    a = &q * (&a - Scale(self.alpha) * Mat::<f64>::identity(a.nrows(), a.nrows())) * q.transpose()
                        + ridge;
                    w = q * v;
                }
                embedding = larger;
            } else {
                w = &w - inverse(&a) * &g;
            }
            let phi = embedding.features(x);
            if !(changed && self.restart) {
                let direction = inverse(&a) * &phi;
                let z = inner(&phi, &w);
                let h = z.signum() * (z.abs() - self.bound).max(0.0);
                if h != 0.0 {
                    w -= Scale(h / inner(&phi, &direction)) * &direction;
                }
            }
            let output = inner(&phi, &w);
            outputs.push(output);
            g = Scale((self.slope)(output, *y)) * &phi;
            a += Scale(self.sigma / 2.0) * (&g * g.transpose());
            changed = dictionary.len() < self.budget && self.admits(&mut dictionary, x, &mut draws);
        }
        (outputs, dictionary.len())
    }

    fn admits(&self, dictionary: &mut Vec<(Vec<f64>, f64)>, x: &[f64], draws: &mut Generator) -> bool {
        let k = |a: &[f64], b: &[f64]| self.kernel.pair(Row::Dense(a), Row::Dense(b));
        dictionary.push((x.to_vec(), 1.0));
        let n = dictionary.len();
        let sks = Mat::from_fn(n, n, |i, j| {
            let ridge = if i == j { self.gamma } else { 0.0 };
            dictionary[i].1 * dictionary[j].1 * k(&dictionary[i].0, &dictionary[j].0) + ridge
        });
        let sk = column(dictionary.iter().map(|(z, s)| s * k(z, x)));
        let score = (1.0 + self.epsilon) / self.gamma * (k(x, x) - inner(&sk, &(inverse(&sks) * &sk)));
        let probability = (self.beta * score).min(1.0);
        let admitted = draws.uniform() < probability;
        if admitted {
            dictionary[n - 1].1 = 1.0 / probability.sqrt();
        } else {
            dictionary.pop();
        }
        admitted
    }
}

/// NONS-ALD of Li and Liao 2023.
pub(super) struct LiteralNons {
    pub kernel: Kernel,
    pub slope: Slope,
    pub bound: f64,
    pub mu: f64,
    pub eta: f64,
    pub threshold: f64,
    pub budget: usize,
}

impl LiteralNons {
    /// The output of every round, and the number of atoms in the end.
    pub(super) fn run(&self, rows: &[(Vec<f64>, f64)]) -> (Vec<f64>, usize) {
        let mut embedding = Eigenmap::new(self.kernel, vec![]);
        let (mut a, mut v) = (Mat::<f64>::zeros(0, 0), Mat::<f64>::zeros(0, 1));
        let mut outputs = Vec::new();
        for (x, y) in rows {
            let phi = embedding.features(x);
            let direction = inverse(&a) * &phi;
            let z = inner(&phi, &v);
            let h = z.signum() * (z.abs() - self.bound).max(0.0);
            if h != 0.0 {
                v -= Scale(h / inner(&phi, &direction)) * &direction;
            }
            let left = self.kernel.diagonal(Row::Dense(x)) - inner(&phi, &phi);
            if left > self.threshold && embedding.atoms.len() < self.budget {
                let mut atoms = embedding.atoms.clone();
                atoms.push(x.clone());
                let larger = Eigenmap::new(self.kernel, atoms);
                let q = embedding.carry_to(&larger);
                let (old, new) = (a.nrows(), larger.map.nrows());
                a = &q * (&a - Scale(self.mu) * Mat::<f64>::identity(old, old)) * q.transpose()
                    + Scale(self.mu) * Mat::<f64>::identity(new, new);
                v = q * v;
                embedding = larger;
            }
            let phi = embedding.features(x);
            let output = inner(&phi, &v);
            outputs.push(output);
            let g = Scale((self.slope)(output, *y)) * &phi;
            a += Scale(self.eta) * (&g * g.transpose());
            v -= inverse(&a) * &g;
        }
        (outputs, embedding.atoms.len())
    }
}

/// Kernel recursive least squares, Table 1 of Engel, Mannor and Meir 2004, which ends its dictionary at `budget`.
pub(super) fn literal_krls(kernel: Kernel, nu: f64, budget: usize, rows: &[(Vec<f64>, f64)]) -> (Vec<f64>, usize) {
    let mut atoms: Vec<Vec<f64>> = Vec::new();
    let (mut k_inverse, mut p, mut alpha) = (Mat::<f64>::zeros(0, 0), Mat::<f64>::zeros(0, 0), Mat::<f64>::zeros(0, 1));
    let mut outputs = Vec::new();
    for (x, y) in rows {
        let k = column(atoms.iter().map(|z| kernel.pair(Row::Dense(x), Row::Dense(z))));
        let a = &k_inverse * &k;
        let delta = kernel.diagonal(Row::Dense(x)) - inner(&k, &a);
        let output = inner(&k, &alpha);
        outputs.push(output);
        let error = y - output;
        let m = atoms.len();
        if delta > nu && m < budget {
            let entry = |i: usize| if i < m { a[(i, 0)] } else { -1.0 };
            k_inverse = Mat::from_fn(m + 1, m + 1, |i, j| {
                entry(i) * entry(j) / delta + if i < m && j < m { k_inverse[(i, j)] } else { 0.0 }
            });
            p = Mat::from_fn(m + 1, m + 1, |i, j| match (i < m, j < m) {
                (true, true) => p[(i, j)],
                (false, false) => 1.0,
                _ => 0.0,
            });
            alpha =
                Mat::from_fn(
                    m + 1,
                    1,
                    |i, _| {
                        if i < m { alpha[(i, 0)] - a[(i, 0)] / delta * error } else { error / delta }
                    },
                );
            atoms.push(x.clone());
        } else {
            let pa = &p * &a;
            let q = Scale(1.0 / (1.0 + inner(&a, &pa))) * &pa;
            p -= &q * pa.transpose();
            alpha += Scale(error) * (&k_inverse * &q);
        }
    }
    (outputs, atoms.len())
}
