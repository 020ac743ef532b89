//! The two Nyström maps that the sketch is measured against.

use faer::Mat;

use super::FeatureMap;
use crate::error::{Error, Result};
use crate::kernel::{Centres, Kernel, KernelWorkspace};
use crate::linalg::{Svd, SymmetricEigen, product};
use crate::rows::{RowBlock, Rows};
use crate::sketch::matrix::{checked_diagonal, require_exact_fits};

/// The incremental Nyström map (INys): with W = VΛVᵀ the kernel matrix of the starting rows, Q = V_k Λ_k^(−½). Fixed once
/// built; the name is that of the SkeGD paper.
///
/// J. Lu, S. C. H. Hoi, J. Wang, P. Zhao and Z.-Y. Liu, "Large scale online kernel learning", JMLR 17, 2016, section 3.3.
/// Departures from the paper: eigenvalues that are rounding alone give a feature of zeros, where it divides by them.
#[doc(alias = "INys")]
pub fn incremental_nystrom(kernel: Kernel, rows: Rows, rank: usize) -> Result<FeatureMap> {
    let n = checked_diagonal(&kernel, rows)?.len();
    require_rank(rank, n)?;
    require_exact_fits("the incremental Nyström map", n, 3)?;
    let eigen = SymmetricEigen::new(kernel.matrix(rows).as_ref())?;
    let least = eigen.values[n - 1] * n as f64 * f64::EPSILON;
    let weights = Mat::from_fn(n, rank, |i, j| {
        let value = eigen.values[n - 1 - j];
        if value > least { eigen.vectors[(i, n - 1 - j)] / value.sqrt() } else { 0.0 }
    });
    FeatureMap::new(kernel, Centres::new(rows), weights)
}

/// The modified Nyström map, also called the prototype model: C = K P for the `sampled` rows, F_mod = C†K(C†)ᵀ, the best
/// there is for these points in the Frobenius norm, of rank k. Needs the kernel matrix of all rows.
///
/// S. Wang and Z. Zhang, "Improving CUR matrix decomposition and the Nyström approximation via adaptive sampling", JMLR
/// 14, 2013; SkeGD, section 2.1. With C = UΣVᵀ and UᵀKU = EΛEᵀ it is Q = VΣ⁻¹EΛ^½; the k largest of Λ give the best
/// approximation of rank k of C F_mod Cᵀ (the papers have no k here).
#[doc(alias = "prototype model")]
#[doc(alias = "F_mod")]
pub fn modified_nystrom(kernel: Kernel, rows: Rows, sampled: &[usize], rank: usize) -> Result<FeatureMap> {
    let n = checked_diagonal(&kernel, rows)?.len();
    if sampled.is_empty() || sampled.iter().any(|&i| i >= n) {
        let found = sampled.iter().max().map_or("none".to_owned(), |i| format!("row {i}"));
        return Err(Error::InvalidParam { name: "sampled", found, expected: "rows that there are, counted from 0" });
    }
    require_rank(rank, sampled.len())?;
    require_exact_fits("the modified Nyström map", n, 2)?;
    let centres = Centres::new(RowBlock::gather(rows, sampled).rows());
    let mut columns = Mat::zeros(n, sampled.len());
    kernel.block(rows, &centres, &mut KernelWorkspace::default(), columns.as_mut());
    let svd = Svd::new(columns.as_ref())?;
    let r = svd.numerical_rank();
    let left = svd.left.subcols(0, r);
    let inner = product(left.transpose(), product(kernel.matrix(rows).as_ref(), left).as_ref());
    let eigen = SymmetricEigen::new(inner.as_ref())?;
    let kept = Mat::from_fn(r, rank, |i, j| match j < r {
        true => eigen.vectors[(i, r - 1 - j)] * eigen.values[r - 1 - j].max(0.0).sqrt() / svd.values[i],
        false => 0.0,
    });
    FeatureMap::new(kernel, centres, product(svd.right.subcols(0, r), kept.as_ref()))
}

fn require_rank(rank: usize, points: usize) -> Result<()> {
    if (1..=points).contains(&rank) {
        return Ok(());
    }
    let expected = "a whole number from 1 to the number of points";
    Err(Error::InvalidParam { name: "rank", found: rank.to_string(), expected })
}
