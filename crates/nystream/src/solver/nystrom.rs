//! Regularised Nyström ridge regression from sums over the rows.
//!
//! D. Calandriello, A. Lazaric, M. Valko: "Analysis of Nyström Method with Sequential Ridge Leverage
//! Score Sampling", UAI 2016, Eq. 5 and 6. With k = S k_Z(x), B = S K_ZZ S + γI = LLᵀ and features
//! φ(x) = L⁻¹k, the solution of Eq. 6 is f(x) = φ(x)ᵀθ with (Σφφᵀ + μI)θ = Σφy. Both sums follow from
//! Σkkᵀ and Σky, which one pass over the data gives in O(m²) memory; they add up over partitions.
//! The pass costs m² multiply-adds and m kernel evaluations a row.
//!
//! Departures from the paper:
//! - An unpenalised intercept is fitted (centred features and targets); switched off, it is Eq. 6.
//! - A dictionary without a leverage ridge (γ = 0) gets a nugget in its place, because Σkkᵀ carries
//!   rounding errors E that whitening divides by γ, while γ itself perturbs the problem like a
//!   change of γn/m in μ. The nugget makes the two equal: γ = √(‖E‖m/n), ‖E‖ ≈ 2ε‖Σkkᵀ‖_F/√m, and
//!   the ridge is kept ten times above their common size. Nugget and jitter are reported.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef};

use super::gcv::{GcvChoice, RidgePath};
use super::settings::{Ridge, SolverOptions};
use crate::error::{Error, Result};
use crate::kernel::{Centres, Kernel};
use crate::linalg::{Cholesky, GramSum, SymmetricEigen, parallelism};
use crate::model::{KernelModel, NystromPosterior, Uncertainty};
use crate::sketch::Dictionary;

/// Sums over rows of the kernels with m atoms: all that Nyström ridge regression needs of the data.
#[derive(Debug, Clone)]
pub struct NystromSums {
    gram: GramSum,
    kernel_sum: Vec<f64>,
    cross: Mat<f64>,
    target_sum: Vec<f64>,
    target_squares: Vec<f64>,
    energy: f64,
    rows: u64,
}

/// A solved problem.
#[derive(Debug, Clone)]
pub struct NystromFit {
    /// The model.
    pub model: KernelModel,
    /// Ridge, degrees of freedom and generalised cross-validation scores.
    pub choice: GcvChoice,
    /// γ in force: the dictionary's own, or the nugget in its place.
    pub leverage_ridge: f64,
    /// Added to the diagonal of S K_ZZ S + γI and of Σφφᵀ + μI by their factorisations.
    pub jitter: f64,
    /// Share of the kernel energy Σk(x,x) that the atoms span.
    pub captured: f64,
    /// Residual sum of squares of each target.
    pub residuals: Vec<f64>,
}

impl NystromSums {
    /// No rows yet, for this many atoms and targets.
    pub fn new(atoms: usize, targets: usize) -> Self {
        Self {
            gram: GramSum::new(atoms),
            kernel_sum: vec![0.0; atoms],
            cross: Mat::zeros(atoms, targets),
            target_sum: vec![0.0; targets],
            target_squares: vec![0.0; targets],
            energy: 0.0,
            rows: 0,
        }
    }

    /// Adds a block: its kernels with the atoms (rows × m), its targets (rows × targets), and its Σk(x,x).
    ///
    /// Targets far from zero should be shifted by about their mean, to keep their digits.
    pub fn add(&mut self, block: MatRef<'_, f64>, targets: MatRef<'_, f64>, energy: f64) {
        self.gram.add(block);
        let work = block.nrows() * block.ncols() * targets.ncols();
        matmul(self.cross.as_mut(), Accum::Add, block.transpose(), targets, 1.0, parallelism(work));
        for (sum, column) in self.kernel_sum.iter_mut().zip(block.col_iter()) {
            *sum += column.iter().sum::<f64>();
        }
        for (t, column) in targets.col_iter().enumerate() {
            self.target_sum[t] += column.iter().sum::<f64>();
            self.target_squares[t] += column.iter().map(|v| v * v).sum::<f64>();
        }
        self.energy += energy;
        self.rows += block.nrows() as u64;
    }

    /// Adds the sums of other rows with the same atoms.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        if self.target_sum.len() != other.target_sum.len() {
            let (found, expected) = (other.target_sum.len(), self.target_sum.len());
            return Err(Error::Shape { what: "targets", found, expected });
        }
        self.gram.merge(&other.gram)?;
        self.cross += &other.cross;
        let add = |mine: &mut Vec<f64>, theirs: &[f64]| mine.iter_mut().zip(theirs).for_each(|(a, b)| *a += b);
        add(&mut self.kernel_sum, &other.kernel_sum);
        add(&mut self.target_sum, &other.target_sum);
        add(&mut self.target_squares, &other.target_squares);
        self.energy += other.energy;
        self.rows += other.rows;
        Ok(())
    }

    /// Number of rows summed.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Solves for every target.
    pub fn solve(&self, kernel: &Kernel, dictionary: &Dictionary, options: &SolverOptions) -> Result<NystromFit> {
        let (atoms, targets) = (dictionary.len(), self.target_sum.len());
        if atoms != self.gram.dim() {
            return Err(Error::Shape { what: "dictionary atoms", found: atoms, expected: self.gram.dim() });
        }
        if self.rows == 0 {
            return Err(Error::InvalidParam { name: "rows", found: "0".to_owned(), expected: "at least one row" });
        }
        let ridge = options.ridge.validated()?;
        let centres = Centres::new(dictionary.atoms().rows());
        let n = self.rows as f64;
        let weights = dictionary.weights();

        // S Σkkᵀ S and the factor of S K_ZZ S + γI.
        let mut gram = self.gram.to_matrix();
        scale_both_sides(&mut gram, weights);
        let noise = 2.0 * f64::EPSILON * gram.norm_l2() / (atoms as f64).sqrt();
        let nugget = (noise * atoms as f64 / n).sqrt();
        let leverage_ridge = if dictionary.leverage_ridge() > 0.0 { dictionary.leverage_ridge() } else { nugget };
        let mut overlap = kernel_matrix(kernel, &centres, dictionary);
        scale_both_sides(&mut overlap, weights);
        for i in 0..atoms {
            overlap[(i, i)] += leverage_ridge;
        }
        let whitening = Cholesky::new(overlap.as_ref(), "kernels between atoms")?;

        // Σφφᵀ = L⁻¹ (S Σkkᵀ S) L⁻ᵀ, Σφ, Σφy.
        whitening.forward_in_place(gram.as_mut());
        gram = gram.transpose().to_owned();
        whitening.forward_in_place(gram.as_mut());
        let captured = (0..atoms).map(|i| gram[(i, i)]).sum::<f64>() / self.energy;
        let mut mean = Mat::from_fn(atoms, 1, |i, _| weights[i] * self.kernel_sum[i] / n);
        whitening.forward_in_place(mean.as_mut());
        let mut cross = Mat::from_fn(atoms, targets, |i, t| weights[i] * self.cross[(i, t)]);
        for t in 0..targets {
            whitening.forward_in_place(cross.as_mut().subcols_mut(t, 1));
        }
        let mut squares = self.target_squares.clone();
        if options.intercept {
            for j in 0..atoms {
                for i in j..atoms {
                    gram[(i, j)] -= n * mean[(i, 0)] * mean[(j, 0)];
                }
            }
            for t in 0..targets {
                let sum = self.target_sum[t];
                (0..atoms).for_each(|i| cross[(i, t)] -= mean[(i, 0)] * sum);
                squares[t] = (squares[t] - sum * sum / n).max(0.0);
            }
        }

        let floor = 10.0 * noise / leverage_ridge.max(f64::MIN_POSITIVE);
        let choice = match ridge {
            Ridge::Auto => {
                let eigen = SymmetricEigen::new(gram.as_ref())?;
                let projected = eigen.vectors.transpose() * &cross;
                let projections = (0..targets).map(|t| projected.col(t).iter().copied().collect()).collect();
                let path = RidgePath::from_projections(
                    eigen.values,
                    projections,
                    squares.clone(),
                    self.rows,
                    options.intercept,
                    floor,
                );
                Some(path.choose()?)
            }
            Ridge::Fixed(_) => None,
        };
        let ridge = match (ridge, &choice) {
            (Ridge::Fixed(value), _) => value,
            (Ridge::Auto, Some(choice)) => choice.ridge,
            (Ridge::Auto, None) => return Err(Error::Internal("no ridge was chosen")),
        };

        // (Σφφᵀ + μI) θ = Σφy.
        for i in 0..atoms {
            gram[(i, i)] += ridge;
        }
        let posterior = Cholesky::new(gram.as_ref(), "regularised feature sums")?;
        let mut theta = cross.clone();
        for t in 0..targets {
            posterior.solve_in_place(theta.as_mut().subcols_mut(t, 1));
        }
        let slope_freedom = match &choice {
            Some(choice) => choice.degrees_of_freedom,
            None => {
                let trace: f64 = posterior.inverse_diagonal().iter().sum();
                atoms as f64 - ridge * trace + f64::from(u8::from(options.intercept))
            }
        };
        let free = (n - slope_freedom).max(1.0);
        let residuals: Vec<f64> = (0..targets)
            .map(|t| {
                // Σφφᵀθ = Σφy − μθ, so RSS = Σy² − θᵀΣφy − μ‖θ‖².
                let (column, right) = (theta.col(t), cross.col(t));
                let fitted: f64 = column.iter().zip(right.iter()).map(|(a, b)| a * b).sum();
                let rss = squares[t] - fitted - ridge * column.squared_norm_l2();
                rss.max(squares[t] * f64::EPSILON)
            })
            .collect();
        let choice = choice.unwrap_or_else(|| GcvChoice {
            ridge,
            degrees_of_freedom: slope_freedom,
            scores: residuals.iter().map(|rss| n * rss / (free * free)).collect(),
        });

        let mut intercepts = vec![0.0; targets];
        if options.intercept {
            for t in 0..targets {
                let shift: f64 = mean.col(0).iter().zip(theta.col(t).iter()).map(|(a, b)| a * b).sum();
                intercepts[t] = self.target_sum[t] / n - shift;
            }
        }
        // β = S L⁻ᵀ θ.
        let mut coefficients = theta;
        for t in 0..targets {
            whitening.backward_in_place(coefficients.as_mut().subcols_mut(t, 1));
            (0..atoms).for_each(|i| coefficients[(i, t)] *= weights[i]);
        }
        let jitter = whitening.jitter().max(posterior.jitter());
        let uncertainty = Uncertainty::Nystrom(NystromPosterior {
            weights: weights.to_vec(),
            whitening,
            posterior,
            constant: options.intercept.then(|| (mean.col(0).iter().copied().collect(), n)),
            ridge,
            noise_variances: residuals.iter().map(|rss| rss / free).collect(),
        });
        let model = KernelModel::new(*kernel, centres, coefficients, intercepts, Some(uncertainty))?;
        Ok(NystromFit { model, choice, leverage_ridge, jitter, captured: captured.clamp(0.0, 1.0), residuals })
    }
}

fn scale_both_sides(matrix: &mut Mat<f64>, weights: &[f64]) {
    if weights.iter().all(|&w| w == 1.0) {
        return;
    }
    for (j, column) in matrix.as_mut().col_iter_mut().enumerate() {
        column.iter_mut().zip(weights).for_each(|(v, w)| *v *= w * weights[j]);
    }
}

fn kernel_matrix(kernel: &Kernel, centres: &Centres, dictionary: &Dictionary) -> Mat<f64> {
    let mut matrix = Mat::zeros(centres.len(), centres.len());
    kernel.block(dictionary.atoms().rows(), centres, &mut Default::default(), matrix.as_mut());
    matrix
}
