//! Trials on the sample of the first pass: one part to learn from, one to be judged on.

use faer::Mat;

use super::codes::TargetCodes;
use super::summing::Summing;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::model::PredictWorkspace;
use crate::preprocess::Batch;
use crate::rows::Rows;
use crate::sketch::{Dictionary, DictionaryMethod, DictionaryOptions, build};
use crate::solver::{Ridge, SolverOptions};

/// Share of the sample that trials are judged on: one row in this many.
const JUDGED_SHARE: usize = 5;
/// Most rows they are judged on.
const MOST_JUDGED: usize = 2500;
/// Rows a kernel block holds.
const BLOCK: usize = 1024;

/// How large a trial is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    /// Most atoms.
    pub atoms: usize,
    /// Most rows learnt from.
    pub rows: usize,
}

/// What a trial found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Verdict {
    /// Squared error on the judged rows, relative to that of their mean, averaged over outputs.
    pub error: f64,
    /// μ, by generalised cross-validation.
    pub ridge: f64,
    /// Rows it was fitted to.
    pub rows: usize,
}

/// The sample, split.
pub(super) struct Trial<'a> {
    learn: Rows<'a>,
    judge: Rows<'a>,
    learn_codes: Mat<f64>,
    judge_codes: Mat<f64>,
    seed: u64,
    leverage_ridge: Option<f64>,
}

impl<'a> Trial<'a> {
    /// Splits the sample, which must be in random order.
    pub fn new(sample: &'a Batch, codes: &TargetCodes, seed: u64, leverage_ridge: Option<f64>) -> Self {
        let rows = sample.rows.rows();
        let judged = (rows.len() / JUDGED_SHARE).min(MOST_JUDGED);
        let mut coded = Mat::new();
        codes.encode(&sample.targets, &mut coded);
        Self {
            judge: rows.slice(0, judged),
            judge_codes: coded.subrows(0, judged).to_owned(),
            learn: rows.slice(judged, rows.len()),
            learn_codes: coded.subrows(judged, rows.len() - judged).to_owned(),
            seed,
            leverage_ridge,
        }
    }

    /// Number of rows that trials are judged on.
    pub fn judged(&self) -> usize {
        self.judge.len()
    }

    /// Fits a Nyström model to the one part and judges it on the other.
    pub fn run(&self, kernel: &Kernel, method: DictionaryMethod, size: Size) -> Result<Verdict> {
        let learn = self.learn.slice(0, self.learn.len().min(size.rows));
        let options = DictionaryOptions {
            leverage_ridge: self.leverage_ridge,
            seed: self.seed,
            ..DictionaryOptions::new(size.atoms)
        };
        let (dictionary, _): (Dictionary, _) = build(method, kernel, learn, &options)?;
        let outputs = self.learn_codes.ncols();
        let mut summing = Summing::new(*kernel, &dictionary, outputs, true)?;
        for start in (0..learn.len()).step_by(BLOCK) {
            let part = learn.slice(start, (start + BLOCK).min(learn.len()));
            summing.add(part, self.learn_codes.subrows(start, part.len()));
        }
        let settings = SolverOptions { ridge: Ridge::Auto, intercept: true };
        let fit = summing.sums().solve(kernel, &dictionary, &settings)?;
        let mut values = Vec::new();
        fit.model.predict(self.judge, &mut PredictWorkspace::default(), &mut values)?;
        let mut error = 0.0;
        for t in 0..outputs {
            let truth = self.judge_codes.col(t);
            let mean = truth.iter().sum::<f64>() / truth.nrows() as f64;
            let spread: f64 = truth.iter().map(|y| (y - mean).powi(2)).sum();
            let missed: f64 = truth.iter().enumerate().map(|(i, y)| (y - values[i * outputs + t]).powi(2)).sum();
            error += if spread > 0.0 { missed / spread / outputs as f64 } else { 0.0 };
        }
        Ok(Verdict { error, ridge: fit.choice.ridge, rows: learn.len() })
    }
}
