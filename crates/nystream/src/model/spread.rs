//! Standard deviations that keep their word: fitted to errors of predictions of rows that the model had not seen.
//!
//! The formula of [`uncertainty`](super::uncertainty) is right if the function is drawn from the prior. It seldom is: the
//! noise variance, estimated from the residuals of the Nyström fit, already holds much of what the atoms leave out, so that
//! adding (σ²/μ)(k(x,x) − ‖φ‖²) counts it twice (seen: 90 % intervals that cover 98 %). So two numbers a target are fitted to errors
//! e of rows predicted before they were learnt, or as if they had not been:
//!
//! - what share s of the last term counts: the one of most likelihood, errors being N(0, σ²v), v = 1 + inside + s outside;
//! - σ, so that nine in ten |e|/√v are below 1.645 σ. Errors with long tails would ask for a larger σ by
//!   their mean square, and the interval would then be too wide.

use faer::Mat;
use rayon::prelude::*;

use super::kernel_model::KernelModel;
use super::uncertainty::Uncertainty;
use crate::error::{Error, Result};
use crate::kernel::KernelWorkspace;
use crate::linalg::on_a_share;
use crate::rows::Rows;

/// Fewer rows say too little of how wide a 90 % interval is.
const FEWEST: usize = 100;
/// With more, the share inside varies by less than a hundredth.
const MOST: usize = 1024;
/// Rows whose variances are computed at once, on one thread: what is in between stays in the cache.
const PART: usize = 128;
/// Shares tried.
const SHARES: [f64; 9] = [0.0, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 0.6, 1.0];
/// Of the errors, so many are to lie in the interval.
const INSIDE: f64 = 0.9;
/// Half of a normal variable's 90 % interval, in standard deviations.
const NORMAL: f64 = 1.644_853_626_951_472_2;

impl KernelModel {
    /// Fits standard deviations to honest errors (rows × targets) of the first of these rows, at most 1,024. Nothing changes
    /// for fewer than 100 rows, or without a posterior.
    pub fn fit_spread(&mut self, rows: Rows, errors: &[f64]) -> Result<()> {
        let outputs = self.outputs();
        if errors.len() != rows.len() * outputs {
            return Err(Error::Shape { what: "errors", found: errors.len(), expected: rows.len() * outputs });
        }
        let Some(uncertainty) = self.uncertainty() else { return Ok(()) };
        if rows.len() < FEWEST {
            return Ok(());
        }
        let rows = rows.slice(0, rows.len().min(MOST));
        let parts: Vec<usize> = (0..rows.len()).step_by(PART).collect();
        let parts: Vec<_> = parts
            .into_par_iter()
            .with_max_len(1)
            .map(|from| {
                let part = rows.slice(from, rows.len().min(from + PART));
                on_a_share(usize::MAX, || self.variance_parts(uncertainty, part))
            })
            .collect();
        let inside: Vec<f64> = parts.iter().flat_map(|(inside, _)| inside).copied().collect();
        let outside: Vec<f64> = parts.iter().flat_map(|(_, outside)| outside).copied().collect();
        let (mut shares, mut variances) = (Vec::new(), Vec::new());
        for t in 0..outputs {
            let squares: Vec<f64> = (0..rows.len()).map(|i| errors[i * outputs + t].powi(2)).collect();
            let ratios = |share: f64| {
                let factors = inside.iter().zip(&outside).map(move |(a, b)| a + share * b);
                squares.iter().zip(factors).map(|(square, factor)| (square / factor, factor))
            };
            let mut best = (f64::INFINITY, 0.0);
            for share in SHARES {
                let value = misfit(ratios(share));
                if value < best.0 {
                    best = (value, share);
                }
            }
            let mut sorted: Vec<f64> = ratios(best.1).map(|(ratio, _)| ratio).collect();
            sorted.sort_by(f64::total_cmp);
            let place = ((INSIDE * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1;
            shares.push(best.1);
            variances.push(sorted[place] / (NORMAL * NORMAL));
        }
        self.set_spread(shares, variances);
        Ok(())
    }

    /// Of every row, over σ²: what the atoms span and the noise, and what they do not span.
    fn variance_parts(&self, uncertainty: &Uncertainty, rows: Rows) -> (Vec<f64>, Vec<f64>) {
        let mut block = Mat::zeros(rows.len(), self.centres().len());
        self.kernel().block(rows, self.centres(), &mut KernelWorkspace::default(), block.as_mut());
        let diagonal: Vec<f64> = (0..rows.len()).map(|i| self.kernel().diagonal(rows.row(i))).collect();
        match uncertainty {
            Uncertainty::Nystrom(posterior) => posterior.variance_parts(block.as_ref(), &diagonal),
            Uncertainty::Exact(posterior) => {
                (posterior.variance_factors(block.as_ref(), &diagonal), vec![0.0; rows.len()])
            }
        }
    }
}

/// −2 log likelihood of errors given as e²/v and v, with the best σ², but for a constant.
fn misfit(ratios: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (mut count, mut sum, mut logarithms) = (0.0, 0.0, 0.0);
    for (ratio, factor) in ratios {
        count += 1.0;
        sum += ratio;
        logarithms += factor.ln();
    }
    count * (sum / count).max(f64::MIN_POSITIVE).ln() + logarithms
}
