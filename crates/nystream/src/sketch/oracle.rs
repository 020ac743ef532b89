//! Naive references for the tests of this module, straight from the definitions.

use faer::Mat;

use super::dictionary::Dictionary;
use crate::kernel::Kernel;
use crate::linalg::SymmetricEigen;
use crate::random::Generator;
use crate::rows::{RowBlock, Rows};

/// Kernels of both families: of a distance and of an inner product.
pub(super) fn kernels() -> [Kernel; 3] {
    [Kernel::gaussian(1.5).unwrap(), Kernel::laplacian(2.0).unwrap(), Kernel::polynomial(2, 0.5, 1.0).unwrap()]
}

/// Standard normal rows.
pub(super) fn normal_rows(n: usize, cols: usize, seed: u64) -> RowBlock {
    let mut rng = Generator::new(seed);
    RowBlock::Dense { data: (0..n * cols).map(|_| rng.normal()).collect(), len: n, cols }
}

/// Most rows in one tight cluster, the rest in many small ones far away: high coherence.
pub(super) fn clustered_rows(n: usize, seed: u64) -> RowBlock {
    let mut rng = Generator::new(seed);
    let mut block = RowBlock::dense(2);
    for i in 0..n {
        let cluster = if i % 20 == 0 { 1 + (i / 20) % 15 } else { 0 };
        let (x, y) = ((cluster % 4) as f64 * 10.0, (cluster / 4) as f64 * 10.0);
        block.push(crate::rows::Row::Dense(&[x + 0.1 * rng.normal(), y + 0.1 * rng.normal()]));
    }
    block
}

/// K from pairs.
pub(super) fn gram(kernel: &Kernel, x: Rows, z: Rows) -> Mat<f64> {
    Mat::from_fn(x.len(), z.len(), |i, j| kernel.pair(x.row(i), z.row(j)))
}

/// A⁻¹ by eigenvalues, those below the noise left out.
pub(super) fn pseudo_inverse(a: &Mat<f64>) -> Mat<f64> {
    let eigen = SymmetricEigen::new(a.as_ref()).unwrap();
    let n = a.nrows();
    let cut = n as f64 * f64::EPSILON * eigen.values[n - 1];
    let scaled = Mat::from_fn(n, n, |i, j| match eigen.values[j] {
        value if value > cut => eigen.vectors[(i, j)] / value,
        _ => 0.0,
    });
    scaled * eigen.vectors.transpose()
}

/// K̃ of INK, Eq. 5.
pub(super) fn approximation(kernel: &Kernel, rows: Rows, dictionary: &Dictionary) -> Mat<f64> {
    let s = dictionary.weights();
    let atoms = dictionary.atoms().rows();
    let ks = gram(kernel, rows, atoms);
    let ks = Mat::from_fn(rows.len(), s.len(), |i, j| ks[(i, j)] * s[j]);
    let inner = gram(kernel, atoms, atoms);
    let inner = Mat::from_fn(s.len(), s.len(), |i, j| {
        s[i] * inner[(i, j)] * s[j] + if i == j { dictionary.leverage_ridge() } else { 0.0 }
    });
    &ks * pseudo_inverse(&inner) * ks.transpose()
}

/// Ridge leverage scores by INK, Eq. 10.
pub(super) fn leverage(k: &Mat<f64>, gamma: f64) -> Vec<f64> {
    let eigen = SymmetricEigen::new(k.as_ref()).unwrap();
    let n = k.nrows();
    let term = |i: usize, j: usize| eigen.values[j] / (eigen.values[j] + gamma) * eigen.vectors[(i, j)].powi(2);
    (0..n).map(|i| (0..n).map(|j| term(i, j)).sum()).collect()
}
