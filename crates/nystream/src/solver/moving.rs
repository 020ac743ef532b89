//! Sums moved from one dictionary to another, without the rows.
//!
//! What the old atoms span of a row is known from its features φ = L⁻¹ S k_Z(x): its kernels with the new atoms are
//! k_new(x) ≈ Φ_old(Z_new) φ(x), Φ_old(Z_new) being the features of the new atoms. So Σkkᵀ, Σk and Σky of the new atoms
//! follow from the old sums by matrix products. What the old atoms did not span of the rows is lost: a new atom far from
//! all old ones starts as if no row had ever been near it.

use std::sync::Arc;

use faer::Mat;

use super::nystrom::NystromSums;
use super::whitening::{Whitening, scale_both_sides};
use crate::error::{Error, Result};
use crate::kernel::{Centres, Kernel, KernelWorkspace};
use crate::linalg::{GramSum, mirror_lower};
use crate::sketch::Dictionary;

/// The sums that `to` would have, as far as those of `from` tell; of features if `precise`, else of kernels.
pub fn move_sums(
    kernel: &Kernel,
    sums: &NystromSums,
    from: &Dictionary,
    to: &Dictionary,
    precise: bool,
) -> Result<NystromSums> {
    if sums.gram.dim() != from.len() {
        return Err(Error::Shape { what: "atoms of the sums", found: sums.gram.dim(), expected: from.len() });
    }
    if sums.levelling.is_some() {
        let features = sums.to_features_of(Whitening::new(kernel, from, None)?)?;
        return move_sums(kernel, &features, from, to, precise);
    }
    let mut inherited_floor = sums.inherited_floor;
    let (old, new, outputs) = (from.len(), to.len(), sums.target_sum.len());
    let whitening = match &sums.whitening {
        Some(whitening) => Whitening::clone(whitening),
        None => Whitening::new(kernel, from, None)?,
    };
    // Σφφᵀ, first its lower triangle, and Σφ beside Σφy.
    let mut gram = sums.gram.to_lower();
    let mut beside =
        Mat::from_fn(
            old,
            outputs + 1,
            |i, t| if t < outputs { sums.cross[i * outputs + t] } else { sums.feature_sum[i] },
        );
    if sums.whitening.is_none() {
        let weights = from.weights();
        scale_both_sides(&mut gram, weights);
        if precise {
            inherited_floor += sums.rounding_of(&gram, 1.0, Some(whitening.leverage_ridge)).ridge_floor;
        }
        whitening.factor.both_sides_in_place(gram.as_mut());
        for t in 0..=outputs {
            (0..old).for_each(|i| beside[(i, t)] *= weights[i]);
            whitening.factor.forward_in_place(beside.as_mut().subcols_mut(t, 1));
        }
    }
    mirror_lower(gram.as_mut());
    // T: rows are the features of the new atoms, so that k_new ≈ T φ.
    let mut transfer = Mat::zeros(new, old);
    let centres = Centres::new(from.atoms().rows());
    kernel.block(to.atoms().rows(), &centres, &mut KernelWorkspace::default(), transfer.as_mut());
    whitening.apply(transfer.as_mut());
    let new_whitening = if precise { Some(Whitening::new(kernel, to, None)?) } else { None };
    if let Some(new_whitening) = &new_whitening {
        // φ_new = L⁻¹ S k_new.
        new_whitening.whiten_columns(transfer.as_mut());
    }
    let gram = &transfer * gram * transfer.transpose();
    let beside = &transfer * beside;
    Ok(NystromSums {
        whitening: new_whitening.map(Arc::new),
        levelling: None,
        gram: GramSum::from_matrix(gram.as_ref()),
        feature_sum: beside.col(outputs).iter().copied().collect(),
        cross: (0..new * outputs).map(|i| beside[(i / outputs, i % outputs)]).collect(),
        target_sum: sums.target_sum.clone(),
        target_squares: sums.target_squares.clone(),
        energy: sums.energy,
        weight: sums.weight,
        rows: sums.rows,
        passed: sums.passed,
        inherited_floor,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;
    use crate::rows::{RowBlock, Rows};

    fn sums_of(kernel: &Kernel, rows: Rows, targets: &Mat<f64>, atoms: &Dictionary, precise: bool) -> NystromSums {
        let mut sums = if precise {
            NystromSums::whitened(Whitening::new(kernel, atoms, None).unwrap(), 1)
        } else {
            NystromSums::new(atoms.len(), 1)
        };
        let mut block = Mat::zeros(rows.len(), atoms.len());
        let centres = Centres::new(atoms.atoms().rows());
        kernel.block(rows, &centres, &mut KernelWorkspace::default(), block.as_mut());
        sums.add(block.as_mut(), targets.as_ref(), rows.len() as f64);
        sums
    }

    /// Atoms that the old ones contain lose nothing but what γ blurs; the order does not matter.
    #[test]
    fn atoms_within_the_old_ones_keep_their_sums() {
        let mut rng = Generator::new(2);
        let data: Vec<f64> = (0..400).map(|_| rng.normal()).collect();
        let rows = Rows::dense(&data, 200, 2).unwrap();
        let targets = Mat::from_fn(200, 1, |i, _| data[2 * i] - data[2 * i + 1]);
        let kernel = Kernel::gaussian(1.0).unwrap();
        let choose = |chosen: &[usize]| {
            let indices = chosen.iter().map(|&i| i as u64).collect();
            Dictionary::new(RowBlock::gather(rows, chosen), vec![1.0; chosen.len()], indices, 1e-10).unwrap()
        };
        let (from, to) = (choose(&[0, 10, 20, 30, 40, 50]), choose(&[50, 10, 30, 40]));
        for (precise_from, precise_to) in [(false, false), (true, false), (false, true), (true, true)] {
            let old = sums_of(&kernel, rows, &targets, &from, precise_from);
            let moved = move_sums(&kernel, &old, &from, &to, precise_to).unwrap();
            let fresh = sums_of(&kernel, rows, &targets, &to, precise_to);
            assert!((moved.gram.to_matrix() - fresh.gram.to_matrix()).norm_max() < 1e-6);
            assert!(moved.cross.iter().zip(&fresh.cross).all(|(a, b)| (a - b).abs() < 1e-6));
            assert!(moved.feature_sum.iter().zip(&fresh.feature_sum).all(|(a, b)| (a - b).abs() < 1e-6));
            assert_eq!((moved.weight, moved.rows, moved.energy), (fresh.weight, fresh.rows, fresh.energy));
        }
    }

    /// A new atom that the old ones do not see has seen no row.
    #[test]
    fn what_the_old_atoms_did_not_span_is_lost() {
        let data = [0.0, 0.1, 100.0];
        let rows = Rows::dense(&data, 3, 1).unwrap();
        let targets = Mat::from_fn(3, 1, |_, _| 1.0);
        let kernel = Kernel::gaussian(1.0).unwrap();
        let atom = |i: usize| Dictionary::new(RowBlock::gather(rows, &[i]), vec![1.0], vec![0], 1e-10).unwrap();
        let old = sums_of(&kernel, rows, &targets, &atom(0), false);
        let moved = move_sums(&kernel, &old, &atom(0), &atom(2), false).unwrap();
        assert!(moved.gram.to_matrix()[(0, 0)].abs() < 1e-12 && moved.cross[0].abs() < 1e-12);
        assert_eq!(moved.rows, 3);
    }
}
