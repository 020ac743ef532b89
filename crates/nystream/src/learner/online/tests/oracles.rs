//! Learners against literal transcriptions of their papers: slow, dense, with every kernel evaluated anew by its
//! definition.

use faer::Mat;

use super::stream::{BUDGET, outputs, settings, stream};
use crate::kernel::Kernel;
use crate::learner::online::Targets;
use crate::linalg::SymmetricEigen;
use crate::rows::{Row, Rows};

/// f(x) = Σ α_i k(x_i, x) over rows by their numbers.
struct Function<'a> {
    kernel: Kernel,
    rows: Rows<'a>,
    terms: Vec<(usize, f64)>,
}

impl Function<'_> {
    fn at(&self, x: Row) -> f64 {
        self.terms.iter().map(|&(i, alpha)| alpha * self.kernel.pair(self.rows.row(i), x)).sum()
    }

    fn matrix(&self) -> Mat<f64> {
        let at = |i: usize| self.rows.row(self.terms[i].0);
        Mat::from_fn(self.terms.len(), self.terms.len(), |i, j| self.kernel.pair(at(i), at(j)))
    }
}

/// Kernels that are not the same, and k(x, x) that is not 1.
fn kernels() -> [Kernel; 3] {
    [Kernel::gaussian(1.5).unwrap(), Kernel::laplacian(3.0).unwrap(), Kernel::polynomial(2, 0.1, 1.0).unwrap()]
}

/// Compares a learner's outputs with those of a transcription.
fn compare(name: &str, option: Option<(&str, f64)>, kernel: Kernel, expected: impl Fn(Rows, &[f64]) -> Vec<f64>) {
    for sparse in [false, true] {
        let mut settings = settings(Targets::Classes);
        settings.kernel = kernel;
        if let Some((option, value)) = option {
            settings = settings.with(option, value);
        }
        let (rows, targets) = stream(Targets::Classes, sparse);
        let expected = expected(rows.rows(), &targets);
        let found = outputs(name, settings, sparse);
        for (t, (found, expected)) in found.iter().zip(&expected).enumerate() {
            // Rounding of 1e-12 in kernel values, grown by inverses of condition up to 1e3.
            assert!((found - expected).abs() < 1e-8 * (1.0 + expected.abs()), "{name}, row {t}: {found} {expected}");
        }
    }
}

/// The self-tuned Forgetron: φ by bisection of its definition.
fn forgetron(kernel: Kernel, rows: Rows, targets: &[f64]) -> Vec<f64> {
    let mut f = Function { kernel, rows, terms: vec![] };
    let (mut mistakes, mut damage) = (0.0, 0.0);
    let mut out = Vec::new();
    for (t, &y) in targets.iter().enumerate() {
        let x = rows.row(t);
        out.push(f.at(x));
        if y * f.at(x) > 0.0 {
            continue;
        }
        mistakes += 1.0;
        f.terms.push((t, y));
        if f.terms.len() > BUDGET {
            let (r, alpha) = f.terms[0];
            let sigma = alpha.abs();
            let mu = targets[r] * f.at(rows.row(r));
            let own = kernel.pair(rows.row(r), rows.row(r));
            let psi = |phi: f64| (sigma * phi).powi(2) * own + 2.0 * sigma * phi * (1.0 - phi * mu);
            let fits = |phi: f64| damage + psi(phi) <= 15.0 / 32.0 * mistakes;
            let mut phi = 1.0;
            if !fits(phi) {
                // The damage grows from φ = 0 until it no longer fits.
                let (mut low, mut high) = (0.0, 1.0);
                for _ in 0..200 {
                    phi = 0.5 * (low + high);
                    if fits(phi) { low = phi } else { high = phi }
                }
                phi = low;
            }
            damage += psi(phi);
            f.terms.iter_mut().for_each(|(_, alpha)| *alpha *= phi);
            f.terms.remove(0);
        }
    }
    out
}

#[test]
fn the_forgetron_is_its_transcription() {
    for kernel in kernels() {
        compare("forgetron", None, kernel, |rows, targets| forgetron(kernel, rows, targets));
    }
}

/// K⁻¹ k by eigenvalues.
fn solve(matrix: &Mat<f64>, right: &[f64]) -> Vec<f64> {
    if right.is_empty() {
        return vec![];
    }
    let eigen = SymmetricEigen::new(matrix.as_ref()).unwrap();
    let n = right.len();
    let mut out = vec![0.0; n];
    for (j, value) in eigen.values.iter().enumerate() {
        let along: f64 = (0..n).map(|i| eigen.vectors[(i, j)] * right[i]).sum();
        (0..n).for_each(|i| out[i] += along / value * eigen.vectors[(i, j)]);
    }
    out
}

/// Projectron, and Projectron++ if there is a competitor's norm.
fn projectron(kernel: Kernel, error: f64, competitor: Option<f64>, rows: Rows, targets: &[f64]) -> Vec<f64> {
    let mut f = Function { kernel, rows, terms: vec![] };
    let mut out = Vec::new();
    for (t, &y) in targets.iter().enumerate() {
        let x = rows.row(t);
        let value = f.at(x);
        out.push(value);
        let mistake = y * value <= 0.0;
        if !(mistake || competitor.is_some() && y * value < 1.0) {
            continue;
        }
        // P k(x, ·) = Σ d_i k(x_i, ·) with d = K⁻¹ k; δ = P k(x, ·) − k(x, ·).
        let k: Vec<f64> = f.terms.iter().map(|&(i, _)| kernel.pair(rows.row(i), x)).collect();
        let matrix = f.matrix();
        let d = solve(&matrix, &k);
        let n = d.len();
        let quadratic: f64 = (0..n).map(|i| (0..n).map(|j| d[i] * matrix[(i, j)] * d[j]).sum::<f64>()).sum();
        let cross: f64 = (0..n).map(|i| d[i] * k[i]).sum();
        let delta = (quadratic - 2.0 * cross + kernel.pair(x, x)).max(0.0).sqrt();
        let step = match (mistake, competitor) {
            (true, _) if delta > error && n < BUDGET => {
                f.terms.push((t, y));
                continue;
            }
            (true, _) => 1.0,
            (false, Some(competitor)) => {
                let loss = 1.0 - y * value;
                let kept = loss - competitor * delta;
                if kept <= 0.0 {
                    continue;
                }
                (loss / quadratic).min(2.0 * kept / quadratic).min(1.0)
            }
            (false, None) => continue,
        };
        f.terms.iter_mut().zip(&d).for_each(|((_, alpha), d)| *alpha += y * step * d);
    }
    out
}

#[test]
fn the_projectron_is_its_transcription() {
    let kernel = kernels()[0];
    compare("projectron", None, kernel, |rows, targets| projectron(kernel, 0.0, None, rows, targets));
    let option = Some(("projection-error", 0.6));
    compare("projectron", option, kernels()[1], |rows, targets| projectron(kernels()[1], 0.6, None, rows, targets));
}

#[test]
fn projectron_plus_plus_is_its_transcription() {
    let usual = 0.25 * ((BUDGET as f64 + 1.0) / (BUDGET as f64 + 1.0).ln()).sqrt();
    for kernel in &kernels()[..2] {
        compare("projectron++", None, *kernel, |rows, targets| projectron(*kernel, 0.0, Some(usual), rows, targets));
        let option = Some(("competitor-norm", 0.3));
        compare("projectron++", option, *kernel, |rows, targets| projectron(*kernel, 0.0, Some(0.3), rows, targets));
    }
}

/// BPA-S by the search over all rows that the paper describes.
fn bpa_s(kernel: Kernel, c: f64, rows: Rows, targets: &[f64]) -> Vec<f64> {
    let mut f = Function { kernel, rows, terms: vec![] };
    let mut out = Vec::new();
    for (t, &y) in targets.iter().enumerate() {
        let x = rows.row(t);
        let value = f.at(x);
        out.push(value);
        let (loss, own) = ((1.0 - y * value).max(0.0), kernel.pair(x, x));
        if loss == 0.0 {
            continue;
        }
        let tau = c.min(loss / own);
        if f.terms.len() < BUDGET {
            f.terms.push((t, y * tau));
            continue;
        }
        let objective = |&(i, alpha): &(usize, f64)| {
            let k = kernel.pair(rows.row(i), x);
            let beta = alpha * k / own + tau * y;
            let moved =
                alpha * alpha * kernel.pair(rows.row(i), rows.row(i)) + beta * beta * own - 2.0 * alpha * beta * k;
            let after = value - alpha * k + beta * own;
            (0.5 * moved + c * (1.0 - y * after).max(0.0), beta)
        };
        let scores: Vec<_> = f.terms.iter().map(objective).collect();
        let best = (0..BUDGET).min_by(|&i, &j| scores[i].0.total_cmp(&scores[j].0)).unwrap();
        f.terms[best] = (t, scores[best].1);
    }
    out
}

#[test]
fn bpa_s_is_its_transcription() {
    for kernel in kernels() {
        compare("bpa-s", None, kernel, |rows, targets| bpa_s(kernel, 1.0, rows, targets));
    }
}

/// NOGD with w and z(x) themselves.
fn nogd(kernel: Kernel, rank: usize, rows: Rows, targets: &[f64]) -> Vec<f64> {
    let mut f = Function { kernel, rows, terms: vec![] };
    let mut linear: Option<(Mat<f64>, Vec<f64>)> = None;
    let mut out = Vec::new();
    for (t, &y) in targets.iter().enumerate() {
        let x = rows.row(t);
        let k: Vec<f64> = f.terms.iter().map(|&(i, _)| kernel.pair(rows.row(i), x)).collect();
        if let Some((map, w)) = &mut linear {
            let z: Vec<f64> = (0..rank).map(|i| (0..BUDGET).map(|j| map[(i, j)] * k[j]).sum()).collect();
            let value: f64 = z.iter().zip(w.iter()).map(|(z, w)| z * w).sum();
            out.push(value);
            if y * value < 1.0 {
                w.iter_mut().zip(&z).for_each(|(w, z)| *w += 0.2 * y * z);
            }
            continue;
        }
        out.push(f.at(x));
        if y * f.at(x) < 1.0 {
            f.terms.push((t, 0.2 * y));
        }
        if f.terms.len() == BUDGET {
            let eigen = SymmetricEigen::new(f.matrix().as_ref()).unwrap();
            let of = |i: usize| BUDGET - 1 - i;
            let map = Mat::from_fn(rank, BUDGET, |i, j| eigen.vectors[(j, of(i))] / eigen.values[of(i)].sqrt());
            // w = α pinv(M), pinv(M) = V D^½.
            let along = |i: usize| (0..BUDGET).map(|j| eigen.vectors[(j, of(i))] * f.terms[j].1).sum::<f64>();
            linear = Some((map, (0..rank).map(|i| along(i) * eigen.values[of(i)].sqrt()).collect()));
        }
    }
    out
}

#[test]
fn nogd_is_its_transcription() {
    for kernel in kernels() {
        compare("nogd", None, kernel, |rows, targets| nogd(kernel, BUDGET / 10, rows, targets));
        compare("nogd", Some(("rank", 7.0)), kernel, |rows, targets| nogd(kernel, 7, rows, targets));
    }
}

/// NORMA with every coefficient multiplied every round, and rows in the order of their age.
#[test]
fn kogd_is_its_transcription() {
    let transcribed = |kernel: Kernel, lambda: f64, rows: Rows, targets: &[f64]| {
        let mut f = Function { kernel, rows, terms: vec![] };
        let mut out = Vec::new();
        for (t, &y) in targets.iter().enumerate() {
            let value = f.at(rows.row(t));
            out.push(value);
            f.terms.iter_mut().for_each(|(_, alpha)| *alpha *= 1.0 - 0.2 * lambda);
            if y * value < 1.0 {
                f.terms.push((t, 0.2 * y));
                if f.terms.len() > BUDGET {
                    f.terms.remove(0);
                }
            }
        }
        out
    };
    // With λ = 4 the factor kept apart is multiplied in after some 140 rounds.
    for lambda in [0.01, 4.0] {
        let option = Some(("regularization", lambda));
        compare("kogd", option, kernels()[0], |rows, y| transcribed(kernels()[0], lambda, rows, y));
    }
}
