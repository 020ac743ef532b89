//! Exact kernel ridge regression: (K + μI)w = y (INK, Eq. 3), in O(n³) time and O(n²) memory.
//!
//! Departures from the paper: an unpenalised intercept b is fitted, (K + μI)w + b1 = y, 1ᵀw = 0;
//! switched off, it is Eq. 3.

use faer::Mat;

use super::gcv::{GcvChoice, RidgePath};
use super::settings::{Ridge, SolverOptions};
use crate::error::{Error, Result};
use crate::kernel::{Centres, Kernel};
use crate::linalg::Cholesky;
use crate::model::{ExactPosterior, KernelModel, Uncertainty};
use crate::rows::Rows;

/// A solved problem.
#[derive(Debug, Clone)]
pub struct ExactFit {
    /// The model; every row is a centre.
    pub model: KernelModel,
    /// Ridge, degrees of freedom and generalised cross-validation scores.
    pub choice: GcvChoice,
    /// Added to the diagonal of K + μI by its factorisation.
    pub jitter: f64,
    /// Residual sum of squares of each target.
    pub residuals: Vec<f64>,
    /// Leave-one-out predictions, row-major: rows × targets.
    pub left_out: Vec<f64>,
}

/// Solves for every target (row-major: rows × targets), holding at most `allowed_bytes`.
pub fn solve_exact(
    kernel: &Kernel,
    rows: Rows,
    targets: &[f64],
    options: &SolverOptions,
    allowed_bytes: u64,
) -> Result<ExactFit> {
    let n = rows.len();
    if n == 0 {
        return Err(Error::InvalidParam { name: "rows", found: "0".to_owned(), expected: "at least one row" });
    }
    let outputs = targets.len() / n;
    if outputs * n != targets.len() || outputs == 0 {
        return Err(Error::Shape { what: "targets", found: targets.len(), expected: n });
    }
    check_exact_memory(n as u64, allowed_bytes)?;
    let ridge = options.ridge.validated()?;
    let centres = Centres::new(rows);
    let mut matrix = Mat::zeros(n, n);
    kernel.block(rows, &centres, &mut Default::default(), matrix.as_mut());

    let means: Vec<f64> = (0..outputs)
        .map(|t| if options.intercept { (0..n).map(|i| targets[i * outputs + t]).sum::<f64>() / n as f64 } else { 0.0 })
        .collect();
    let centred = Mat::from_fn(n, outputs, |i, t| targets[i * outputs + t] - means[t]);

    let ridge = match ridge {
        Ridge::Fixed(value) => value,
        Ridge::Auto => choose_ridge(&matrix, &centred, options.intercept)?,
    };
    for i in 0..n {
        matrix[(i, i)] += ridge;
    }
    let factor = Cholesky::new(matrix.as_ref(), "kernels between rows")?;
    drop(matrix);

    let mut weights = centred.clone();
    for t in 0..outputs {
        factor.solve_in_place(weights.as_mut().subcols_mut(t, 1));
    }
    let mut intercepts = means;
    // The constant by elimination: u = A⁻¹1, b = 1ᵀA⁻¹y / 1ᵀu, w = A⁻¹y − bu.
    let constant = options.intercept.then(|| {
        let mut ones = Mat::from_fn(n, 1, |_, _| 1.0);
        factor.solve_in_place(ones.as_mut());
        ones.col(0).iter().copied().collect::<Vec<f64>>()
    });
    let mut inverse_diagonal = factor.inverse_diagonal();
    if let Some(ones) = &constant {
        let total: f64 = ones.iter().sum();
        for t in 0..outputs {
            let shift = weights.col(t).iter().sum::<f64>() / total;
            (0..n).for_each(|i| weights[(i, t)] -= shift * ones[i]);
            intercepts[t] += shift;
        }
        inverse_diagonal.iter_mut().zip(ones).for_each(|(d, u)| *d -= u * u / total);
    }

    // Residuals are μw; left-out ones w_i/[C]_ii, C the inverse of the bordered system.
    let trace: f64 = inverse_diagonal.iter().sum();
    let degrees_of_freedom = n as f64 - ridge * trace;
    let free = (n as f64 - degrees_of_freedom).max(f64::MIN_POSITIVE);
    let residuals: Vec<f64> = (0..outputs).map(|t| ridge * ridge * weights.col(t).squared_norm_l2()).collect();
    let mut left_out = Vec::with_capacity(n * outputs);
    for i in 0..n {
        for t in 0..outputs {
            let missed = if inverse_diagonal[i] > 0.0 { weights[(i, t)] / inverse_diagonal[i] } else { 0.0 };
            left_out.push(targets[i * outputs + t] - missed);
        }
    }
    let choice = GcvChoice {
        ridge,
        degrees_of_freedom,
        scores: residuals.iter().map(|rss| n as f64 * rss / (free * free)).collect(),
    };
    let noise_variances = residuals.iter().map(|rss| rss / free).collect();
    let jitter = factor.jitter();
    let uncertainty = Uncertainty::Exact(ExactPosterior { factor, constant, ridge, noise_variances });
    let model = KernelModel::new(*kernel, centres, weights, intercepts, Some(uncertainty))?;
    Ok(ExactFit { model, choice, jitter, residuals, left_out })
}

/// Refuses a number of rows whose n × n matrices (the kernel matrix, its factor, and the factor's inverse) do not fit.
pub fn check_exact_memory(rows: u64, allowed_bytes: u64) -> Result<()> {
    let needed_bytes = rows.saturating_mul(rows).saturating_mul(8 * 3);
    if needed_bytes > allowed_bytes {
        let advice = "use the two-pass method, which needs memory for its budget only";
        return Err(Error::TooLarge { what: "exact kernel ridge regression", needed_bytes, allowed_bytes, advice });
    }
    Ok(())
}

fn choose_ridge(matrix: &Mat<f64>, targets: &Mat<f64>, intercept: bool) -> Result<f64> {
    let n = matrix.nrows();
    let mut centred = matrix.clone();
    let mut constant = 0.0;
    if intercept {
        // Ridge with a free constant is ridge on centred features: K ← HKH.
        let means: Vec<f64> = (0..n).map(|j| matrix.col(j).iter().sum::<f64>() / n as f64).collect();
        let grand = means.iter().sum::<f64>() / n as f64;
        constant = grand.abs() * n as f64;
        for j in 0..n {
            for i in 0..n {
                centred[(i, j)] += grand - means[i] - means[j];
            }
        }
    }
    // What is factored later is K + μI, constant part and all: its rounding errors are what the ridge must exceed.
    let largest = centred.norm_l2();
    let scale = largest.max(constant);
    let floor = 10.0 * f64::EPSILON * n as f64 * scale;
    if largest <= floor {
        // Rows that are all alike leave nothing to choose: the constant is the answer, and this ridge gives it.
        return Ok(if scale > 0.0 { scale } else { 1.0 });
    }
    if intercept {
        let share = largest / n as f64;
        centred.as_mut().col_iter_mut().for_each(|column| column.iter_mut().for_each(|value| *value += share));
    }
    let path = RidgePath::from_kernels(&centred, targets.clone(), intercept.then_some(largest), floor);
    Ok(path.choose()?.ridge)
}
