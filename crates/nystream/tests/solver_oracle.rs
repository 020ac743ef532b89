//! The solvers against slow, literal transcriptions of the equations (dense matrices, explicit inverses).

use faer::Mat;
use nystream::kernel::{Centres, Kernel};
use nystream::linalg::Cholesky;
use nystream::model::PredictWorkspace;
use nystream::random::Generator;
use nystream::rows::{RowBlock, Rows};
use nystream::sketch::Dictionary;
use nystream::solver::{NystromSums, Ridge, SolverOptions, Whitening, solve_exact};

const N: usize = 120;
const D: usize = 3;

struct Data {
    points: Vec<f64>,
    targets: Vec<f64>,
    outputs: usize,
}

impl Data {
    fn new(seed: u64, outputs: usize) -> Self {
        let mut rng = Generator::new(seed);
        let points: Vec<f64> = (0..N * D).map(|_| rng.normal()).collect();
        let targets = (0..N * outputs)
            .map(|i| {
                let x = &points[i / outputs * D..][..D];
                3.0 + (i % outputs) as f64 + (2.0 * x[0]).sin() * x[1] + 0.1 * rng.normal()
            })
            .collect();
        Self { points, targets, outputs }
    }
    fn rows(&self) -> Rows<'_> {
        Rows::dense(&self.points, N, D).unwrap()
    }
    fn target_matrix(&self) -> Mat<f64> {
        Mat::from_fn(N, self.outputs, |i, t| self.targets[i * self.outputs + t])
    }
}

fn kernel_matrix(kernel: &Kernel, a: Rows, b: Rows) -> Mat<f64> {
    Mat::from_fn(a.len(), b.len(), |i, j| kernel.pair(a.row(i), b.row(j)))
}

fn inverse(a: &Mat<f64>) -> Mat<f64> {
    let mut out = Mat::identity(a.nrows(), a.nrows());
    Cholesky::new(a.as_ref(), "oracle").unwrap().solve_in_place(out.as_mut());
    out
}

fn identity(n: usize, factor: f64) -> Mat<f64> {
    Mat::from_fn(n, n, |i, j| if i == j { factor } else { 0.0 })
}

/// Sums in blocks of this many rows, targets shifted by `shift`.
fn sums(kernel: &Kernel, data: &Data, dictionary: &Dictionary, block: usize) -> NystromSums {
    let centres = Centres::new(dictionary.atoms().rows());
    let mut sums = NystromSums::new(dictionary.len(), data.outputs);
    for start in (0..N).step_by(block) {
        let end = (start + block).min(N);
        let part = data.rows().slice(start, end);
        let mut kernels = Mat::zeros(end - start, centres.len());
        kernel.block(part, &centres, &mut Default::default(), kernels.as_mut());
        let energy = (0..part.len()).map(|i| kernel.diagonal(part.row(i))).sum();
        sums.add(kernels.as_mut(), data.target_matrix().subrows(start, end - start), energy);
    }
    sums
}

fn dictionary(data: &Data, every: usize, weight: f64, leverage_ridge: f64) -> Dictionary {
    let chosen: Vec<usize> = (0..N).step_by(every).collect();
    let weights = chosen.iter().map(|i| weight * (1.0 + 0.1 * (i % 7) as f64)).collect();
    let indices = chosen.iter().map(|&i| i as u64).collect();
    Dictionary::new(RowBlock::gather(data.rows(), &chosen), weights, indices, leverage_ridge).unwrap()
}

fn predictions(model: &nystream::model::KernelModel, rows: Rows) -> Vec<f64> {
    let mut out = Vec::new();
    model.predict(rows, &mut PredictWorkspace::default(), &mut out).unwrap();
    out
}

#[test]
fn exact_without_intercept_is_equation_3() {
    let data = Data::new(1, 2);
    for kernel in
        [Kernel::gaussian(1.2).unwrap(), Kernel::matern32(2.0).unwrap(), Kernel::polynomial(2, 0.5, 1.0).unwrap()]
    {
        let options = SolverOptions { ridge: Ridge::Fixed(0.3), intercept: false };
        let fit = solve_exact(&kernel, data.rows(), &data.targets, &options, u64::MAX).unwrap();
        let k = kernel_matrix(&kernel, data.rows(), data.rows());
        let w = inverse(&(&k + identity(N, 0.3))) * data.target_matrix();
        let scale = w.norm_max();
        assert!((fit.model.coefficients() - &w).norm_max() < 1e-9 * scale);
        let fitted = &k * &w;
        for (i, p) in predictions(&fit.model, data.rows()).iter().enumerate() {
            assert!((p - fitted[(i / 2, i % 2)]).abs() < 1e-8 * fitted.norm_max());
        }
    }
}

#[test]
fn exact_left_out_predictions_equal_refits_without_the_row() {
    let data = Data::new(2, 1);
    let kernel = Kernel::gaussian(1.0).unwrap();
    for intercept in [false, true] {
        let options = SolverOptions { ridge: Ridge::Fixed(0.5), intercept };
        let fit = solve_exact(&kernel, data.rows(), &data.targets, &options, u64::MAX).unwrap();
        for out in [0, 17, N - 1] {
            let rest: Vec<usize> = (0..N).filter(|&i| i != out).collect();
            let rows = RowBlock::gather(data.rows(), &rest);
            let targets: Vec<f64> = rest.iter().map(|&i| data.targets[i]).collect();
            let refit = solve_exact(&kernel, rows.rows(), &targets, &options, u64::MAX).unwrap();
            let left = predictions(&refit.model, data.rows().slice(out, out + 1))[0];
            assert!((fit.left_out[out] - left).abs() < 1e-9, "{} {left}", fit.left_out[out]);
        }
    }
}

#[test]
fn nystrom_without_intercept_is_equations_5_and_6() {
    let data = Data::new(3, 2);
    let kernel = Kernel::gaussian(1.3).unwrap();
    let (gamma, mu) = (0.7, 0.2);
    let dictionary = dictionary(&data, 4, 1.5, gamma);
    let options = SolverOptions { ridge: Ridge::Fixed(mu), intercept: false };
    let fit = sums(&kernel, &data, &dictionary, 50).solve(&kernel, &dictionary, &options).unwrap();
    // Eq. 5: K̃ = K S (SᵀKS + γI)⁻¹ SᵀK, Eq. 6: w̃ = (K̃ + μI)⁻¹y, fitted values K̃w̃.
    let s = dictionary.weights();
    let ks = {
        let k = kernel_matrix(&kernel, data.rows(), dictionary.atoms().rows());
        Mat::from_fn(N, s.len(), |i, j| k[(i, j)] * s[j])
    };
    let sks = {
        let k = kernel_matrix(&kernel, dictionary.atoms().rows(), dictionary.atoms().rows());
        Mat::from_fn(s.len(), s.len(), |i, j| s[i] * k[(i, j)] * s[j])
    };
    let approximation = &ks * inverse(&(sks + identity(s.len(), gamma))) * ks.transpose();
    let w = inverse(&(&approximation + identity(N, mu))) * data.target_matrix();
    let fitted = &approximation * &w;
    for (i, p) in predictions(&fit.model, data.rows()).iter().enumerate() {
        assert!((p - fitted[(i / 2, i % 2)]).abs() < 1e-9, "{p} {}", fitted[(i / 2, i % 2)]);
    }
    let trace: f64 = (0..N).map(|i| approximation[(i, i)]).sum();
    assert!((fit.captured - trace / N as f64).abs() < 1e-10);
    let hat = &approximation * inverse(&(&approximation + identity(N, mu)));
    let freedom: f64 = (0..N).map(|i| hat[(i, i)]).sum();
    assert!((fit.choice.degrees_of_freedom - freedom).abs() < 1e-8);
    let rss: f64 = (0..N).map(|i| (fitted[(i, 1)] - data.targets[2 * i + 1]).powi(2)).sum();
    assert!((fit.residuals[1] / rss - 1.0).abs() < 1e-8);
}

#[test]
fn with_every_row_an_atom_nystrom_equals_exact_in_prediction_and_deviation() {
    let data = Data::new(4, 1);
    let kernel = Kernel::matern52(1.5).unwrap();
    let chosen: Vec<usize> = (0..N).collect();
    let all = RowBlock::gather(data.rows(), &chosen);
    let dictionary = Dictionary::new(all, vec![1.0; N], (0..N as u64).collect(), 0.0).unwrap();
    for intercept in [false, true] {
        for ridge in [Ridge::Fixed(0.1), Ridge::Auto] {
            let options = SolverOptions { ridge, intercept };
            let nystrom = sums(&kernel, &data, &dictionary, 32).solve(&kernel, &dictionary, &options).unwrap();
            let exact = solve_exact(&kernel, data.rows(), &data.targets, &options, u64::MAX).unwrap();
            assert!(
                (nystrom.choice.ridge / exact.choice.ridge - 1.0).abs() < 1e-3,
                "{} {}",
                nystrom.choice.ridge,
                exact.choice.ridge
            );
            let mut rng = Generator::new(5);
            let fresh: Vec<f64> = (0..40 * D).map(|_| 1.5 * rng.normal()).collect();
            let rows = Rows::dense(&fresh, 40, D).unwrap();
            let mut work = PredictWorkspace::default();
            let (mut a, mut b, mut sa, mut sb) = (vec![], vec![], vec![], vec![]);
            nystrom.model.predict_with_std(rows, &mut work, &mut a, &mut sa).unwrap();
            exact.model.predict_with_std(rows, &mut work, &mut b, &mut sb).unwrap();
            for i in 0..40 {
                assert!((a[i] - b[i]).abs() < 1e-3, "{intercept} {ridge:?}: {} {}", a[i], b[i]);
                assert!((sa[i] / sb[i] - 1.0).abs() < 1e-3, "{intercept} {ridge:?}: {} {}", sa[i], sb[i]);
            }
            assert!((nystrom.choice.degrees_of_freedom - exact.choice.degrees_of_freedom).abs() < 0.05);
        }
    }
}

#[test]
fn exact_deviation_is_the_gaussian_process_posterior() {
    let data = Data::new(6, 1);
    let kernel = Kernel::gaussian(1.0).unwrap();
    let mu = 0.4;
    let options = SolverOptions { ridge: Ridge::Fixed(mu), intercept: false };
    let fit = solve_exact(&kernel, data.rows(), &data.targets, &options, u64::MAX).unwrap();
    let noise = fit.model.uncertainty().unwrap().noise_variances()[0];
    let rows = Rows::dense(&[0.1, 0.2, -0.4, 9.0, 9.0, 9.0], 2, 3).unwrap();
    let (mut mean, mut deviation) = (vec![], vec![]);
    fit.model.predict_with_std(rows, &mut PredictWorkspace::default(), &mut mean, &mut deviation).unwrap();
    let a = inverse(&(kernel_matrix(&kernel, data.rows(), data.rows()) + identity(N, mu)));
    for i in 0..2 {
        let k = kernel_matrix(&kernel, data.rows(), rows.slice(i, i + 1));
        let explained = (k.transpose() * &a * &k)[(0, 0)];
        let variance = noise * (1.0 + (1.0 - explained) / mu);
        assert!((deviation[i].powi(2) / variance - 1.0).abs() < 1e-9);
    }
    assert!(deviation[1] > 1.5 * deviation[0], "far away must be less sure");
}

#[test]
fn a_constant_shift_of_the_target_moves_only_the_intercept() {
    let mut data = Data::new(7, 1);
    let kernel = Kernel::gaussian(1.0).unwrap();
    let dictionary = dictionary(&data, 5, 1.0, 0.0);
    let options = SolverOptions::default();
    let before = sums(&kernel, &data, &dictionary, 64).solve(&kernel, &dictionary, &options).unwrap();
    data.targets.iter_mut().for_each(|y| *y += 1000.0);
    let after = sums(&kernel, &data, &dictionary, 64).solve(&kernel, &dictionary, &options).unwrap();
    let moved = predictions(&after.model, data.rows());
    for (a, b) in predictions(&before.model, data.rows()).iter().zip(&moved) {
        assert!((b - a - 1000.0).abs() < 1e-5, "{a} {b}");
    }
}

#[test]
fn merged_sums_equal_sums_over_everything() {
    let data = Data::new(8, 1);
    let kernel = Kernel::gaussian(1.0).unwrap();
    let dictionary = dictionary(&data, 6, 1.0, 0.0);
    let whole = sums(&kernel, &data, &dictionary, N);
    let mut parts: Option<NystromSums> = None;
    for start in [0, 40, 80] {
        let slice = Data {
            points: data.points[start * D..(start + 40) * D].to_vec(),
            targets: data.targets[start..start + 40].to_vec(),
            outputs: 1,
        };
        let centres = Centres::new(dictionary.atoms().rows());
        let rows = Rows::dense(&slice.points, 40, D).unwrap();
        let mut block = Mat::zeros(40, centres.len());
        kernel.block(rows, &centres, &mut Default::default(), block.as_mut());
        let mut part = NystromSums::new(dictionary.len(), 1);
        part.add(block.as_mut(), Mat::from_fn(40, 1, |i, _| slice.targets[i]).as_ref(), 40.0);
        match &mut parts {
            Some(sum) => sum.merge(&part).unwrap(),
            None => parts = Some(part),
        }
    }
    let options = SolverOptions::default();
    let a = whole.solve(&kernel, &dictionary, &options).unwrap();
    let b = parts.unwrap().solve(&kernel, &dictionary, &options).unwrap();
    let (a, b) = (predictions(&a.model, data.rows()), predictions(&b.model, data.rows()));
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-6));
    assert!(NystromSums::new(3, 1).merge(&NystromSums::new(4, 1)).is_err());
}

#[test]
fn summed_features_give_what_summed_kernels_give_and_allow_a_smaller_ridge() {
    let data = Data::new(11, 2);
    let kernel = Kernel::gaussian(1.5).unwrap();
    for dictionary in [dictionary(&data, 4, 1.5, 0.3), dictionary(&data, 4, 1.0, 0.0)] {
        let centres = Centres::new(dictionary.atoms().rows());
        let mut precise = NystromSums::whitened(Whitening::new(&kernel, &dictionary, None).unwrap(), 2);
        for start in (0..N).step_by(50) {
            let part = data.rows().slice(start, (start + 50).min(N));
            let mut block = Mat::zeros(part.len(), centres.len());
            kernel.block(part, &centres, &mut Default::default(), block.as_mut());
            precise.add(block.as_mut(), data.target_matrix().subrows(start, part.len()), part.len() as f64);
        }
        let options = SolverOptions { ridge: Ridge::Fixed(0.05), intercept: true };
        let plain = sums(&kernel, &data, &dictionary, 50);
        assert!(plain.clone().merge(&precise).is_err());
        let (a, b) = (plain.solve(&kernel, &dictionary, &options), precise.solve(&kernel, &dictionary, &options));
        let (a, b) = (a.unwrap(), b.unwrap());
        assert!(b.ridge_floor < 1e-3 * a.ridge_floor || dictionary.leverage_ridge() > 0.0);
        // The nugget acts like a change of γn/m in the ridge: relative to it, times the size of the targets.
        let change = (a.leverage_ridge - b.leverage_ridge).abs() * N as f64 / dictionary.len() as f64 / 0.05;
        let tolerance = 10.0 * change + 1e-9;
        assert!(tolerance < 1e-3);
        for (a, b) in predictions(&a.model, data.rows()).iter().zip(&predictions(&b.model, data.rows())) {
            assert!((a - b).abs() < tolerance, "{a} {b} {tolerance}");
        }
    }
}

#[test]
fn duplicate_atoms_and_constant_targets_are_handled() {
    let data = Data::new(9, 1);
    let kernel = Kernel::gaussian(1.0).unwrap();
    let chosen = [0, 0, 0, 5, 5, 9];
    let twice =
        Dictionary::new(RowBlock::gather(data.rows(), &chosen), vec![1.0; 6], vec![0, 0, 0, 5, 5, 9], 0.0).unwrap();
    let fit = sums(&kernel, &data, &twice, 64).solve(&kernel, &twice, &SolverOptions::default()).unwrap();
    assert!(predictions(&fit.model, data.rows()).iter().all(|p| p.is_finite()));
    let flat = Data { targets: vec![4.0; N], ..Data::new(9, 1) };
    let fit = sums(&kernel, &flat, &twice, 64).solve(&kernel, &twice, &SolverOptions::default()).unwrap();
    assert!(predictions(&fit.model, data.rows()).iter().all(|p| (p - 4.0).abs() < 1e-6));
}

#[test]
fn exact_refuses_what_does_not_fit_in_memory() {
    let data = Data::new(10, 1);
    let kernel = Kernel::gaussian(1.0).unwrap();
    let refused = solve_exact(&kernel, data.rows(), &data.targets, &SolverOptions::default(), 1000);
    assert!(matches!(refused, Err(nystream::Error::TooLarge { .. })));
}
