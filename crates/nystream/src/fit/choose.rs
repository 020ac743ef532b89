//! The bandwidth, from the sample of the first pass.
//!
//! `auto` starts at the median heuristic and climbs: the sample is split, a Nyström model of every
//! bandwidth tried is fitted to one part (ridge by generalised cross-validation) and judged by its
//! squared error on the other. Steps of a factor 2 lead downhill, then steps of √2 and 2^¼ refine.
//! Not in the papers; the median heuristic alone is often off by a factor of 2 to 8.

use faer::Mat;

use super::codes::TargetCodes;
use super::options::{Bandwidth, FitOptions};
use super::summing::Summing;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::model::PredictWorkspace;
use crate::preprocess::Batch;
use crate::rows::{RowBlock, Rows};
use crate::sketch::Dictionary;
use crate::solver::{Ridge, SolverOptions, alignment_bandwidth, median_bandwidth};

/// Most rows a trial learns from, and is judged on.
const TRAIN: usize = 8000;
const JUDGE: usize = 2000;
/// Most atoms of a trial.
const ATOMS: usize = 600;
/// Rows a kernel block holds in a trial.
const BLOCK: usize = 1024;
/// Bandwidths further than this factor from the median are not tried.
const REACH: f64 = 64.0;

/// A kernel with its bandwidth, and how that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct BandwidthChoice {
    /// The kernel.
    pub kernel: Kernel,
    /// `auto`, `median`, `alignment`, `fixed`, or none for kernels without a bandwidth.
    pub by: Option<&'static str>,
    /// Bandwidths tried with their error on held-out rows, relative to predicting the mean.
    pub tried: Vec<(f64, f64)>,
}

/// Finds the bandwidth as the options say. The sample must be in random order.
pub fn choose_bandwidth(options: &FitOptions, sample: &Batch, codes: &TargetCodes) -> Result<BandwidthChoice> {
    let rows = sample.rows.rows();
    let fixed = |bandwidth, by| {
        Ok(BandwidthChoice { kernel: options.kernel.with_bandwidth(bandwidth)?, by: Some(by), tried: Vec::new() })
    };
    if !options.kernel.has_bandwidth() {
        return Ok(BandwidthChoice { kernel: options.kernel.with_bandwidth(1.0)?, by: None, tried: Vec::new() });
    }
    match options.bandwidth {
        Bandwidth::Fixed(value) => fixed(value, "fixed"),
        Bandwidth::Median => fixed(median_bandwidth(rows), "median"),
        Bandwidth::Alignment => {
            let mut coded = Mat::new();
            codes.encode(&sample.targets, &mut coded);
            let row_major: Vec<f64> =
                (0..coded.nrows()).flat_map(|i| coded.row(i).iter().copied().collect::<Vec<_>>()).collect();
            let kernel = options.kernel.with_bandwidth(1.0)?;
            fixed(alignment_bandwidth(&kernel, rows, &row_major, codes.outputs())?.0, "alignment")
        }
        Bandwidth::Auto => climb(options, sample, codes),
    }
}

fn climb(options: &FitOptions, sample: &Batch, codes: &TargetCodes) -> Result<BandwidthChoice> {
    let median = median_bandwidth(sample.rows.rows());
    let mut search = Search { trial: Trial::new(options, sample, codes), options, tried: Vec::new() };
    // Too few rows to hold any out: the median it is.
    if search.trial.judged() < 20 {
        let kernel = options.kernel.with_bandwidth(median)?;
        return Ok(BandwidthChoice { kernel, by: Some("median"), tried: Vec::new() });
    }
    let mut best = (median, search.error(median)?);
    for step in [2.0, 2f64.sqrt(), 2f64.powf(0.25)] {
        for direction in [1.0 / step, step] {
            let mut moved = false;
            loop {
                let bandwidth = best.0 * direction;
                if !(median / REACH..=median * REACH).contains(&bandwidth) {
                    break;
                }
                let error = search.error(bandwidth)?;
                if error >= best.1 {
                    break;
                }
                (best, moved) = ((bandwidth, error), true);
            }
            if moved {
                break;
            }
        }
    }
    let kernel = options.kernel.with_bandwidth(best.0)?;
    Ok(BandwidthChoice { kernel, by: Some("auto"), tried: search.tried })
}

struct Search<'a> {
    trial: Trial,
    options: &'a FitOptions,
    tried: Vec<(f64, f64)>,
}

impl Search<'_> {
    fn error(&mut self, bandwidth: f64) -> Result<f64> {
        let known = self.tried.iter().find(|(b, _)| (b / bandwidth - 1.0).abs() < 1e-9);
        if let Some(&(_, error)) = known {
            return Ok(error);
        }
        let error = self.trial.error(&self.options.kernel.with_bandwidth(bandwidth)?)?;
        self.tried.push((bandwidth, error));
        Ok(error)
    }
}

/// The split sample on which bandwidths are compared.
struct Trial {
    learn: RowBlock,
    learn_codes: Mat<f64>,
    judge: RowBlock,
    judge_codes: Mat<f64>,
    atoms: usize,
}

impl Trial {
    fn new(options: &FitOptions, sample: &Batch, codes: &TargetCodes) -> Self {
        let rows = sample.rows.rows();
        let judged = (rows.len() / 5).min(JUDGE);
        let learnt = (rows.len() - judged).min(TRAIN);
        let part = |rows: Rows| {
            let mut block = RowBlock::like(rows);
            block.extend(rows);
            block
        };
        let mut coded = Mat::new();
        codes.encode(&sample.targets, &mut coded);
        Self {
            judge: part(rows.slice(0, judged)),
            judge_codes: coded.subrows(0, judged).to_owned(),
            learn: part(rows.slice(judged, judged + learnt)),
            learn_codes: coded.subrows(judged, learnt).to_owned(),
            atoms: options.budget.min(ATOMS).min(learnt),
        }
    }

    fn judged(&self) -> usize {
        self.judge.len()
    }

    /// Squared error on the held-out rows, relative to that of the mean, averaged over outputs.
    fn error(&self, kernel: &Kernel) -> Result<f64> {
        // The sample is in random order, so its first rows are a uniform dictionary.
        let chosen: Vec<usize> = (0..self.atoms).collect();
        let atoms = RowBlock::gather(self.learn.rows(), &chosen);
        let dictionary = Dictionary::new(atoms, vec![1.0; self.atoms], (0..self.atoms as u64).collect(), 0.0)?;
        let outputs = self.learn_codes.ncols();
        let mut summing = Summing::new(*kernel, &dictionary, outputs);
        for start in (0..self.learn.len()).step_by(BLOCK) {
            let part = self.learn.rows().slice(start, (start + BLOCK).min(self.learn.len()));
            summing.add(part, self.learn_codes.subrows(start, part.len()));
        }
        let settings = SolverOptions { ridge: Ridge::Auto, intercept: true };
        let fit = summing.sums().solve(kernel, &dictionary, &settings)?;
        let mut values = Vec::new();
        fit.model.predict(self.judge.rows(), &mut PredictWorkspace::default(), &mut values)?;
        let mut total = 0.0;
        for t in 0..outputs {
            let truth = self.judge_codes.col(t);
            let mean = truth.iter().sum::<f64>() / truth.nrows() as f64;
            let spread: f64 = truth.iter().map(|y| (y - mean).powi(2)).sum();
            let missed: f64 = truth.iter().enumerate().map(|(i, y)| (y - values[i * outputs + t]).powi(2)).sum();
            total += if spread > 0.0 { missed / spread } else { 0.0 };
        }
        Ok(total / outputs as f64)
    }
}
