//! SkeGD against a literal dense transcription of Alg. 1, and what its options mean.

use faer::Mat;

use crate::kernel::Kernel;
use crate::learner::online::{Learner, LearnerSettings, Loss, Targets};
use crate::linalg::{Svd, SymmetricEigen};
use crate::random::Generator;
use crate::rows::{Row, RowBlock};
use crate::sketch::incremental::SparseTransform;

const ROWS: usize = 400;
const FEATURES: usize = 5;

fn stream(seed: u64) -> (Vec<Vec<f64>>, Vec<f64>) {
    let mut rng = Generator::new(seed);
    let rows: Vec<Vec<f64>> = (0..ROWS).map(|_| (0..FEATURES).map(|_| rng.normal()).collect()).collect();
    let noisy = |x: &Vec<f64>| if x[0] * x[1] + x[2] + 0.5 * rng.normal() > 0.0 { 1.0 } else { -1.0 };
    let targets = rows.iter().map(noisy).collect();
    (rows, targets)
}

/// Alg. 1 with every matrix formed whole. Sizes are such that decompositions are exact.
struct Literal {
    kernel: Kernel,
    budget: usize,
    sizes: [usize; 4], // s_p, s_m, k, d
    cycle: u64,
    step: f64,
    ridge: f64,
    project: bool,
    full: bool,
    loss: Loss,
    seed: u64,
    buffer: Vec<Vec<f64>>,
    alpha: Vec<f64>,
    /// The rows of K, once there is a sketch.
    entered: Vec<Vec<f64>>,
    samples: Vec<Vec<f64>>,
    q: Mat<f64>,
    w: Mat<f64>,
}

impl Literal {
    fn kappa(&self, x: &[f64], z: &[f64]) -> f64 {
        self.kernel.pair(Row::Dense(x), Row::Dense(z))
    }

    /// f of the buffer.
    fn kogd(&self, x: &[f64]) -> f64 {
        self.buffer.iter().zip(&self.alpha).map(|(z, a)| a * self.kappa(x, z)).sum()
    }

    /// φ(x) = (κ Q)ᵀ
    fn phi(&self, x: &[f64]) -> Mat<f64> {
        let row = Mat::from_fn(1, self.samples.len(), |_, j| self.kappa(x, &self.samples[j]));
        (&row * &self.q).transpose().to_owned()
    }

    fn sketched(&self, x: &[f64]) -> f64 {
        (self.w.transpose() * self.phi(x))[(0, 0)]
    }

    /// Q from S_p, S_m and K.
    fn compute_q(&mut self) {
        let [p, m, k, d] = self.sizes;
        let n = self.entered.len();
        let transform = SparseTransform::new(p, d, self.seed).unwrap();
        let mut s_p = Mat::<f64>::zeros(n, p);
        for i in 0..n {
            let mut row = Vec::new();
            transform.push_row(i as u64, &mut row);
            row.iter().for_each(|entry| s_p[(i, entry.column)] = entry.value);
        }
        let kernels = Mat::from_fn(n, n, |i, j| self.kappa(&self.entered[i], &self.entered[j]));
        let c_m = Mat::from_fn(n, m, |i, j| self.kappa(&self.entered[i], &self.samples[j]));
        let phi_pp = s_p.transpose() * &kernels * &s_p;
        let phi_pm = s_p.transpose() * &c_m;
        let eigen = SymmetricEigen::new(phi_pp.as_ref()).unwrap();
        let root = Mat::from_fn(p, k, |i, j| eigen.vectors[(i, p - 1 - j)] * eigen.values[p - 1 - j].max(0.0).sqrt());
        let svd = Svd::new(phi_pm.as_ref()).unwrap();
        let inverted = if self.full { svd.values.len() } else { k.min(svd.values.len()) };
        let mut q = Mat::<f64>::zeros(m, k);
        for l in 0..inverted {
            q += svd.right.subcols(l, 1)
                * (svd.left.subcols(l, 1).transpose() * &root)
                * faer::Scale(1.0 / svd.values[l]);
        }
        self.q = q;
    }

    /// The hypothesis in the new map, given its old values at x and at the samples.
    fn transfer(&mut self, x: &[f64], value: f64, at_samples: &[f64]) {
        if self.project {
            let features = Mat::from_fn(self.samples.len(), self.sizes[2], |i, j| self.phi(&self.samples[i])[(j, 0)]);
            let values = Mat::from_fn(at_samples.len(), 1, |i, _| at_samples[i]);
            self.w = Svd::new(features.as_ref()).unwrap().solve(values.as_ref());
        } else {
            let phi = self.phi(x);
            self.w = &phi * faer::Scale(value / phi.squared_norm_l2());
        }
    }

    /// One round, t counted from 1: lines 3 to 25.
    fn round(&mut self, t: u64, x: &[f64], y: f64) -> f64 {
        if self.entered.is_empty() {
            let f = self.kogd(x);
            if self.buffer.len() < self.budget {
                self.alpha.iter_mut().for_each(|a| *a *= 1.0 - self.step * self.ridge);
                if self.loss.value(f, y) != 0.0 {
                    self.buffer.push(x.to_vec());
                    self.alpha.push(-self.step * self.loss.derivative(f, y));
                }
            } else {
                self.entered = self.buffer.clone();
                let chosen = Generator::with_stream(self.seed, u64::MAX).choose(self.budget, self.sizes[1]);
                self.samples = chosen.iter().map(|&i| self.buffer[i].clone()).collect();
                self.compute_q();
                let at_samples: Vec<f64> = self.samples.iter().map(|z| self.kogd(z)).collect();
                self.transfer(x, f, &at_samples);
            }
            return f;
        }
        let f = self.sketched(x);
        if self.cycle == 1 || t % self.cycle == 1 {
            let at_samples: Vec<f64> = self.samples.iter().map(|z| self.sketched(z)).collect();
            self.entered.push(x.to_vec());
            self.compute_q();
            self.transfer(x, f, &at_samples);
        }
        let phi = self.phi(x);
        let slope = self.loss.derivative(self.sketched(x), y);
        self.w = &self.w * faer::Scale(1.0 - self.step * self.ridge) - &phi * faer::Scale(self.step * slope);
        f
    }
}

#[test]
fn every_output_equals_that_of_the_literal_algorithm() {
    // (s_p, s_m, k, d), ρ, project, full, loss
    let cases = [
        ([16, 12, 6, 4], 25, false, false, "hinge"),
        ([15, 9, 6, 4], 7, false, false, "logistic"),
        ([15, 9, 6, 4], 1, true, false, "hinge"),
        ([18, 8, 8, 1], 3, true, true, "squared"),
        ([14, 6, 5, 3], 40, true, false, "hinge"),
        ([14, 5, 4, 5], 50, false, true, "hinge"),
    ];
    for (case, (sizes, cycle, project, full, loss)) in cases.into_iter().enumerate() {
        let (rows, targets) = stream(case as u64);
        let kernel = Kernel::gaussian(2.0).unwrap();
        let mut settings = LearnerSettings::new(kernel, FEATURES, Targets::Classes)
            .with("sketch-size", sizes[0])
            .with("sampled", sizes[1])
            .with("rank", sizes[2])
            .with("blocks", sizes[3])
            .with("update-cycle", cycle)
            .with("transfer", if project { "project" } else { "anchor" })
            .with("pseudo-inverse", if full { "full" } else { "leading" })
            .with("loss", loss)
            .with("history", ROWS)
            .with("step-size", 0.3)
            .with("regularization", 0.05);
        (settings.budget, settings.seed) = (30, 11);
        let mut learner = Learner::new("skegd", settings).unwrap();
        let mut literal = Literal {
            kernel,
            budget: 30,
            sizes,
            cycle,
            step: 0.3,
            ridge: 0.05,
            project,
            full,
            loss: loss.parse().unwrap(),
            seed: 11,
            buffer: Vec::new(),
            alpha: Vec::new(),
            entered: Vec::new(),
            samples: Vec::new(),
            q: Mat::new(),
            w: Mat::new(),
        };
        // As many rounds as the dense matrices allow in little time.
        let rounds = if cycle < 5 { 150 } else { ROWS };
        for (i, (x, y)) in rows.iter().zip(&targets).take(rounds).enumerate() {
            let expected = literal.round(i as u64 + 1, x, *y);
            let found = learner.learn(Row::Dense(x), *y).unwrap();
            let off = (found - expected).abs();
            assert!(off < 1e-9 * expected.abs().max(1.0), "case {case}, row {i}: {found}, {expected}");
        }
        assert!(literal.entered.len() > 30, "case {case} came to its second stage and updated");
        assert_eq!(learner.atoms(), sizes[1]);
    }
}

fn outputs(settings: LearnerSettings) -> Vec<f64> {
    let (rows, targets) = stream(1);
    let rows = RowBlock::Dense { data: rows.concat(), len: ROWS, cols: FEATURES };
    let mut learner = Learner::new("skegd", settings).unwrap();
    let mut out = Vec::new();
    learner.learn_all(rows.rows(), &targets, &mut out).unwrap();
    out
}

fn settings() -> LearnerSettings {
    let mut settings = LearnerSettings::new(Kernel::gaussian(2.0).unwrap(), FEATURES, Targets::Classes);
    (settings.budget, settings.seed, settings.expected_rows) = (40, 3, Some(ROWS as u64));
    settings
}

#[test]
fn shares_are_counts_and_defaults_are_the_papers() {
    // ⌊0.1 · (400 − 40)⌋ = 36; s_p = 30, s_m = 0.2 · 30 = 6, k = 4, d = 4, θ = 0.3: ρ = 108.
    assert_eq!(outputs(settings().with("update-cycle-share", 0.1)), outputs(settings().with("update-cycle", 36)));
    assert_eq!(outputs(settings().with("sampled-share", 0.5)), outputs(settings().with("sampled", 15)));
    // ⌊0.29 · 40⌋ = 11.
    assert_eq!(outputs(settings().with("rank-share", 0.29)), outputs(settings().with("rank", 11)));
    assert_ne!(outputs(settings().with("rank-share", 0.3)), outputs(settings().with("rank", 11)));
    for share in [0.1, 0.4, 0.7] {
        let rank = (share * 40.0_f64).round() as usize;
        assert_eq!(outputs(settings().with("rank-share", share)), outputs(settings().with("rank", rank)), "{share}");
    }
    assert_eq!(outputs(settings().with("rank-share", 0.1)), outputs(settings()));
    assert_eq!(outputs(settings().with("rank-share", 0.001)), outputs(settings().with("rank", 1)));
    let written_out = settings()
        .with("sketch-size", 30)
        .with("sampled", 6)
        .with("rank", 4)
        .with("blocks", 4)
        .with("update-cycle", 108)
        .with("history", 44);
    assert_eq!(outputs(settings()), outputs(written_out));
}

#[test]
fn the_next_update_is_the_next_round_that_the_remainder_names() {
    for cycle in 1..8 {
        for rounds in 0..30 {
            let expected = (rounds + 1..).find(|t| t % cycle == 1 % cycle).unwrap();
            assert_eq!(super::due_after(rounds, cycle), expected, "{rounds} {cycle}");
        }
    }
}

#[test]
fn until_the_buffer_is_full_it_is_kernel_online_gradient_descent() {
    let (rows, targets) = stream(1);
    let mut plain = Learner::new("kogd", settings()).unwrap();
    let mut learner = Learner::new("skegd", settings()).unwrap();
    for (x, y) in rows.iter().zip(&targets) {
        let full = plain.atoms() == 40;
        let (a, b) = (plain.learn(Row::Dense(x), *y).unwrap(), learner.learn(Row::Dense(x), *y).unwrap());
        assert_eq!(a, b);
        // The round of lines 9 to 12 is the last whose output comes from the buffer.
        if full {
            assert_eq!(learner.atoms(), 6);
            return;
        }
    }
    panic!("the buffer was never full");
}

#[test]
fn memory_stays_the_same_however_long_the_stream() {
    let mut settings = settings().with("update-cycle", 3).with("history", 50);
    settings.expected_rows = None;
    let (rows, targets) = stream(1);
    let mut learner = Learner::new("skegd", settings).unwrap();
    let mut bytes = Vec::new();
    for round in 0..5 {
        for (x, y) in rows.iter().zip(&targets) {
            learner.learn(Row::Dense(x), *y).unwrap();
        }
        // All 50 rows are held by the end of the first time round.
        bytes.push(learner.size_bytes());
        assert_eq!(bytes[round], bytes[0]);
    }
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let refused = |settings: LearnerSettings, words: &[&str]| {
        let message = Learner::new("skegd", settings).unwrap_err().to_string();
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    };
    refused(settings().with("update-cycle", 3).with("update-cycle-share", 0.1), &["update-cycle-share", "only one"]);
    refused(settings().with("sampled", 3).with("sampled-share", 0.1), &["sampled-share", "only one"]);
    refused(settings().with("sampled", 41), &["sampled", "41", "the budget, 40"]);
    refused(settings().with("rank", 3).with("rank-share", 0.1), &["rank-share", "only one"]);
    refused(settings().with("rank-share", 0.9), &["rank-share", "0.9", "36", "the sketch size, 30"]);
    refused(settings().with("rank", 31), &["rank", "31", "the sketch size, 30"]);
    refused(settings().with("blocks", 31), &["blocks", "31", "the sketch size, 30"]);
    refused(settings().with("history", 39), &["history", "39", "the budget, 40"]);
    refused(settings().with("sketch-size", u32::MAX), &["skegd", "smaller sketch-size"]);
    refused(settings().with("regularization", 10.0), &["regularization", "below 1"]);
    let mut unknown = settings().with("update-cycle-share", 0.1);
    unknown.expected_rows = None;
    refused(unknown, &["update-cycle-share", "length is known"]);
}

#[test]
fn a_row_that_no_sample_sees_leaves_a_hypothesis_of_zero() {
    let mut settings = settings().with("update-cycle", 1);
    settings.kernel = Kernel::gaussian(0.5).unwrap();
    let (rows, targets) = stream(1);
    let mut learner = Learner::new("skegd", settings).unwrap();
    for (x, y) in rows.iter().zip(&targets).take(100) {
        learner.learn(Row::Dense(x), *y).unwrap();
    }
    assert_eq!(learner.learn(Row::Dense(&[1e3; FEATURES]), 1.0).unwrap(), 0.0);
    assert_eq!(learner.predict(Row::Dense(&rows[0])).unwrap(), 0.0);
}
