//! Sums moved from one dictionary to another, without the rows.
//!
//! What the old atoms span of a row is known from its features φ = L⁻¹ S k_Z(x): its kernels with the new atoms are
//! k_new(x) ≈ Φ_old(Z_new) φ(x), Φ_old(Z_new) being the features of the new atoms. So Σkkᵀ, Σk and Σky of the new atoms
//! follow from the old sums by matrix products. What the old atoms did not span of the rows is lost: a new atom far from
//! all old ones starts as if no row had ever been near it.
//!
//! That is wrong where rows had been near it, and dangerous: nothing then holds the new atom's coefficient, and what later rows
//! make of it is added to predictions of the old ones (seen: predictions a hundred times as large as any target). So some of
//! the old rows are asked. With ψ(x) = k_new(x) − Φ_old(Z_new) φ(x), what a row has in the new atoms beyond what the old ones
//! span of it, Σψψᵀ is added: the sums of rows of which nothing but their features is known to have been there, as if their
//! targets had nothing to do with ψ.
//!
//! The ridge itself may hold them too little: one that lets coefficients be large, because they cancel each other among the old
//! atoms, lets the first few rows near a new atom ask for anything. So the directions that only the new atoms have are penalised
//! by more ([`Guard::prior`]).

use std::sync::Arc;

use faer::{Mat, MatRef, Scale};

use super::nystrom::NystromSums;
use super::whitening::{Whitening, scale_both_sides};
use crate::error::{Error, Result};
use crate::kernel::{Centres, Kernel, KernelWorkspace};
use crate::linalg::{GramSum, mirror_lower};
use crate::rows::Rows;
use crate::sketch::Dictionary;

/// Some of the rows that were summed, and what each counts for beside the others.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// At least one.
    pub rows: Rows<'a>,
    /// One a row, their sum above 0.
    pub weights: &'a [f64],
}

/// What holds the coefficients of new atoms besides the ridge.
#[derive(Debug, Clone, Copy, Default)]
pub struct Guard<'a> {
    /// Some of the rows that were summed.
    pub sample: Option<Sample<'a>>,
    /// The penalty of directions that the old atoms do not have, besides the ridge.
    pub prior: f64,
}

/// Share of k(z,z) below which what is left of a new atom is rounding.
const SPANNED: f64 = 1e-8;

/// The sums that `to` would have, as far as those of `from` and a sample of their rows tell; of features if `precise`, else of
/// kernels.
pub fn move_sums(
    kernel: &Kernel,
    sums: &NystromSums,
    from: &Dictionary,
    to: &Dictionary,
    guard: Guard,
    precise: bool,
) -> Result<NystromSums> {
    if sums.gram.dim() != from.len() {
        return Err(Error::Shape { what: "atoms of the sums", found: sums.gram.dim(), expected: from.len() });
    }
    if sums.levelling.is_some() {
        let features = sums.to_features_of(Whitening::new(kernel, from, None)?)?;
        return move_sums(kernel, &features, from, to, guard, precise);
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
    let mut unspanned = guard.sample.map(|sample| unspanned(kernel, &whitening, (from, to), transfer.as_ref(), sample));
    let mut beyond = (guard.prior > 0.0).then(|| beyond(kernel, to, transfer.as_ref()));
    if let Some(new_whitening) = &new_whitening {
        // φ_new = L⁻¹ S k_new.
        new_whitening.whiten_columns(transfer.as_mut());
        unspanned.iter_mut().for_each(|rows| new_whitening.apply(rows.as_mut()));
        if let Some(matrix) = &mut beyond {
            new_whitening.whiten_columns(matrix.as_mut());
            new_whitening.apply(matrix.as_mut());
        }
    }
    let mut gram = &transfer * gram * transfer.transpose();
    if let Some(rows) = unspanned {
        gram += rows.transpose() * &rows * Scale(sums.weight);
    }
    if let Some(matrix) = beyond {
        gram += matrix * Scale(guard.prior);
    }
    let beside = &transfer * beside;
    Ok(NystromSums {
        whitening: new_whitening.map(Arc::new),
        levelling: None,
        gram: GramSum::from_matrix(gram.as_ref()).into(),
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

/// What the old atoms do not span of the new ones: K_ZZ − ΦΦᵀ of the new atoms Z, Φ their features, which are `transfer`.
fn beyond(kernel: &Kernel, to: &Dictionary, transfer: MatRef<'_, f64>) -> Mat<f64> {
    let atoms = to.atoms().rows();
    let mut left = kernel.matrix(atoms) - transfer * transfer.transpose();
    // Of atoms that stay nothing is left but rounding errors.
    let stays: Vec<bool> = (0..to.len()).map(|i| left[(i, i)] <= SPANNED * kernel.diagonal(atoms.row(i))).collect();
    for (j, column) in left.as_mut().col_iter_mut().enumerate() {
        column.iter_mut().zip(&stays).for_each(|(value, row)| *value = if *row || stays[j] { 0.0 } else { *value });
    }
    left
}

/// ψ of every row of a sample, times the root of its share of the weights.
fn unspanned(
    kernel: &Kernel,
    whitening: &Whitening,
    (from, to): (&Dictionary, &Dictionary),
    transfer: MatRef<'_, f64>,
    sample: Sample,
) -> Mat<f64> {
    let kernels = |dictionary: &Dictionary| {
        let mut block = Mat::zeros(sample.rows.len(), dictionary.len());
        let centres = Centres::new(dictionary.atoms().rows());
        kernel.block(sample.rows, &centres, &mut KernelWorkspace::default(), block.as_mut());
        block
    };
    let mut features = kernels(from);
    whitening.apply(features.as_mut());
    let mut rows = kernels(to) - features * transfer.transpose();
    let total: f64 = sample.weights.iter().sum();
    for column in rows.as_mut().col_iter_mut() {
        column.iter_mut().zip(sample.weights).for_each(|(value, weight)| *value *= (weight / total).sqrt());
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;
    use crate::rows::RowBlock;

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
            let moved = move_sums(&kernel, &old, &from, &to, Guard::default(), precise_to).unwrap();
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
        let moved = move_sums(&kernel, &old, &atom(0), &atom(2), Guard::default(), false).unwrap();
        assert!(moved.gram.to_matrix()[(0, 0)].abs() < 1e-12 && moved.cross[0].abs() < 1e-12);
        assert_eq!(moved.rows, 3);
    }

    /// Where all rows are asked, the diagonal of the sums is right but for the products of ψ with what the old atoms span.
    #[test]
    fn rows_that_are_asked_hold_new_atoms_where_old_rows_were() {
        let mut rng = Generator::new(5);
        let data: Vec<f64> = (0..300).map(|_| 2.0 * rng.normal()).collect();
        let rows = Rows::dense(&data, 300, 1).unwrap();
        let targets = Mat::from_fn(300, 1, |i, _| data[i].sin());
        let kernel = Kernel::gaussian(0.4).unwrap();
        let choose = |chosen: &[usize]| {
            let indices = chosen.iter().map(|&i| i as u64).collect();
            Dictionary::new(RowBlock::gather(rows, chosen), vec![1.0; chosen.len()], indices, 1e-10).unwrap()
        };
        let (from, to) = (choose(&[0, 1, 2, 3]), choose(&[0, 1, 4, 5, 6]));
        for (precise_from, precise_to) in [(false, false), (true, false), (false, true), (true, true)] {
            let old = sums_of(&kernel, rows, &targets, &from, precise_from);
            let fresh = sums_of(&kernel, rows, &targets, &to, precise_to).gram.to_matrix();
            let total = |sums: &Mat<f64>| (0..5).map(|i| sums[(i, i)]).sum::<f64>();
            let trace = |sums: &Mat<f64>| total(sums) / total(&fresh);
            let moved = |sample| {
                let guard = Guard { sample, prior: 0.0 };
                move_sums(&kernel, &old, &from, &to, guard, precise_to).unwrap()
            };
            let alone = trace(&moved(None).gram.to_matrix());
            let all = trace(&moved(Some(Sample { rows, weights: &[0.3; 300] })).gram.to_matrix());
            let few = Sample { rows: rows.slice(0, 60), weights: &[1.0; 60] };
            let some = trace(&moved(Some(few)).gram.to_matrix());
            assert!((0.9..1.1).contains(&all) && (0.75..1.25).contains(&some), "{all} {some}");
            assert!(all > alone + 0.05, "{alone} {all}");
            // ψ of the rows far from everything is 0: what they are asked changes nothing.
            let far = Rows::dense(&[1e3, 2e3], 2, 1).unwrap();
            let unmoved = moved(Some(Sample { rows: far, weights: &[1.0, 1.0] }));
            assert_eq!(unmoved.gram.to_matrix(), moved(None).gram.to_matrix());
        }
    }

    /// Of an atom that the old ones half span, the other half is penalised; atoms that stay are not.
    #[test]
    fn directions_that_are_new_are_penalised_by_the_prior() {
        let data = [0.0, 1.0, 9.0, 10.0];
        let rows = Rows::dense(&data, 4, 1).unwrap();
        let targets = Mat::from_fn(4, 1, |i, _| i as f64);
        let kernel = Kernel::gaussian(1.0).unwrap();
        let choose = |chosen: &[usize]| {
            let indices = chosen.iter().map(|&i| i as u64).collect();
            Dictionary::new(RowBlock::gather(rows, chosen), vec![1.0; chosen.len()], indices, 1e-12).unwrap()
        };
        let (from, to) = (choose(&[0, 2]), choose(&[0, 1, 3]));
        for precise in [false, true] {
            let old = sums_of(&kernel, rows, &targets, &from, precise);
            let moved = |prior| move_sums(&kernel, &old, &from, &to, Guard { sample: None, prior }, precise).unwrap();
            let added = moved(0.3).gram.to_matrix() - moved(0.0).gram.to_matrix();
            // k = exp(−d²/2): atoms 1 and 3 are at distance 1 from an old one, which spans k² = 1/e of them.
            let left = if precise { 1.0 } else { 1.0 - (-1f64).exp() };
            for (i, j) in (0..3).flat_map(|i| (0..3).map(move |j| (i, j))) {
                let expected = if i == j && i > 0 { 0.3 * left } else { 0.0 };
                // In features atom 3 has lost the direction of the old atom beside it, which is gone.
                let expected = if precise && i == 2 && j == 2 { 0.3 * (1.0 - (-1f64).exp()) } else { expected };
                assert!((added[(i, j)] - expected).abs() < 1e-9, "{precise} {i} {j}: {}", added[(i, j)]);
            }
        }
    }
}
