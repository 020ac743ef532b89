//! Saving and loading trained models (kind `krr-model` of the container; see docs/format.md).
//!
//! Triangular factors are stored as their lower triangles, column by column. Everything that is
//! read is checked before it is used, so that a damaged or hostile file gives an error.

use std::path::Path;

use faer::Mat;
use serde::{Deserialize, Serialize};

use super::calibration::Calibration;
use super::kernel_model::KernelModel;
use super::limits::OutputLimits;
use super::trained::{Summary, TrainedModel};
use super::uncertainty::{ExactPosterior, NystromPosterior, Uncertainty};
use crate::error::Result;
use crate::kernel::{Centres, Kernel};
use crate::linalg::Cholesky;
use crate::persist::Container;
use crate::preprocess::Preprocessor;

const KIND: &str = "krr-model";
/// What messages call it.
const WHAT: &str = "the model";

#[derive(Serialize, Deserialize)]
struct Document {
    kernel: Kernel,
    calibration: Option<Calibration>,
    summary: Summary,
    features: usize,
    posterior: Option<PosteriorHeader>,
    #[serde(default = "OutputLimits::none")]
    limits: OutputLimits,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
enum PosteriorHeader {
    Nystrom { ridge: f64, rows: Option<f64>, unspanned_shares: Vec<f64> },
    Exact { ridge: f64, intercept: bool },
}

impl TrainedModel {
    /// Writes the model to a file: aside first, then renamed, so that no half-written file is ever seen.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.to_container()?.save(path)
    }

    /// The bytes of the model's file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.to_container()?.to_bytes()
    }

    /// Reads a model from a file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_container(Container::load(path)?)
    }

    /// Reads a model from bytes; `origin` names them in errors.
    pub fn from_bytes(origin: &str, bytes: &[u8]) -> Result<Self> {
        Self::from_container(Container::from_bytes(origin, bytes)?)
    }

    fn to_container(&self) -> Result<Container> {
        let regression = &self.regression;
        let (atoms, outputs) = (regression.centres().len(), regression.outputs());
        let document = Document {
            kernel: *regression.kernel(),
            calibration: self.calibration.clone(),
            summary: self.summary.clone(),
            features: regression.centres().rows().cols(),
            posterior: regression.uncertainty().map(|uncertainty| match uncertainty {
                Uncertainty::Nystrom(p) => {
                    let rows = p.constant.as_ref().map(|(_, rows)| *rows);
                    PosteriorHeader::Nystrom { ridge: p.ridge, rows, unspanned_shares: p.unspanned_shares.clone() }
                }
                Uncertainty::Exact(p) => PosteriorHeader::Exact { ridge: p.ridge, intercept: p.constant.is_some() },
            }),
            limits: regression.limits().clone(),
        };
        let document = serde_json::to_value(document)
            .map_err(|_| crate::Error::Internal("a model's description could not be written"))?;
        let mut file = Container::new(KIND, document);
        self.preprocessor.put_into(&mut file)?;
        file.put_rows("atom", regression.centres().rows())?;
        let coefficients = regression.coefficients().col_iter().flat_map(|c| c.iter().copied()).collect();
        file.put_f64("coefficients", &[outputs, atoms], coefficients)?;
        file.put_f64("intercepts", &[outputs], regression.intercepts().to_vec())?;
        match regression.uncertainty() {
            Some(Uncertainty::Nystrom(p)) => {
                file.put_f64("weights", &[atoms], p.weights.clone())?;
                file.put_lower("whitening", p.whitening.factor())?;
                file.put_lower("posterior", p.posterior.factor())?;
                if let Some((mean, _)) = &p.constant {
                    file.put_f64("mean_feature", &[atoms], mean.clone())?;
                }
                file.put_f64("noise_variances", &[outputs], p.noise_variances.clone())?;
            }
            Some(Uncertainty::Exact(p)) => {
                file.put_lower("posterior", p.factor.factor())?;
                if let Some(ones) = &p.constant {
                    file.put_f64("solved_ones", &[atoms], ones.clone())?;
                }
                file.put_f64("noise_variances", &[outputs], p.noise_variances.clone())?;
            }
            None => {}
        }
        file.require_readable::<Document>(WHAT)?;
        file.require_finite(WHAT)?;
        Ok(file)
    }

    /// Reads what is inside a file that has been opened.
    pub fn from_container(mut file: Container) -> Result<Self> {
        file.expect_kind(KIND)?;
        let preprocessor = Preprocessor::take_from(&mut file)?;
        let document: Document = file.document_as()?;
        let kernel = document.kernel.validated().map_err(|e| file.malformed(e.to_string()))?;
        let atoms = file.take_rows("atom", document.features)?;
        let centres = Centres::new(atoms.rows());
        let (shape, data) = file.take_finite("coefficients", 2)?;
        if shape[1] != atoms.len() {
            return Err(file.malformed(format!("coefficients for {} atoms, expected {}", shape[1], atoms.len())));
        }
        let coefficients = Mat::from_fn(shape[1], shape[0], |i, t| data[t * shape[1] + i]);
        let (_, intercepts) = file.take_finite("intercepts", 1)?;
        let uncertainty = match document.posterior {
            None => None,
            Some(header) => Some(take_uncertainty(&mut file, header, atoms.len())?),
        };
        let malformed = |e: crate::Error| file.malformed(e.to_string());
        let regression = KernelModel::new(kernel, centres, coefficients, intercepts, uncertainty).map_err(malformed)?;
        if !document.limits.fit(regression.outputs()) {
            return Err(file.malformed("limits that are not those of the outputs"));
        }
        let regression = regression.with_limits(document.limits)?;
        let model = Self::new(preprocessor, regression, document.calibration, document.summary).map_err(malformed)?;
        file.finish()?;
        Ok(model)
    }
}

fn take_uncertainty(file: &mut Container, header: PosteriorHeader, atoms: usize) -> Result<Uncertainty> {
    let ridge = match header {
        PosteriorHeader::Nystrom { ridge, .. } | PosteriorHeader::Exact { ridge, .. } => ridge,
    };
    if !(ridge.is_finite() && ridge > 0.0) {
        return Err(file.malformed(format!("ridge {ridge}, expected a number above 0")));
    }
    let (_, noise_variances) = file.take_finite("noise_variances", 1)?;
    if noise_variances.iter().any(|v| *v < 0.0) {
        return Err(file.malformed("a negative noise variance"));
    }
    Ok(match header {
        PosteriorHeader::Nystrom { unspanned_shares, .. }
            if unspanned_shares.iter().any(|s| !(0.0..=1.0).contains(s)) =>
        {
            return Err(file.malformed("an unspanned share that is not from 0 to 1"));
        }
        PosteriorHeader::Nystrom { rows, unspanned_shares, .. } => Uncertainty::Nystrom(NystromPosterior {
            weights: file.take_finite("weights", 1)?.1,
            whitening: take_factor(file, "whitening", atoms)?,
            posterior: take_factor(file, "posterior", atoms)?,
            constant: match rows {
                Some(rows) if rows >= 1.0 => Some((file.take_finite("mean_feature", 1)?.1, rows)),
                Some(rows) => return Err(file.malformed(format!("{rows} rows, expected at least 1"))),
                None => None,
            },
            ridge,
            unspanned_shares,
            noise_variances,
        }),
        PosteriorHeader::Exact { intercept, .. } => Uncertainty::Exact(ExactPosterior {
            factor: take_factor(file, "posterior", atoms)?,
            constant: if intercept { Some(file.take_finite("solved_ones", 1)?.1) } else { None },
            ridge,
            noise_variances,
        }),
    })
}

fn take_factor(file: &mut Container, name: &str, n: usize) -> Result<Cholesky> {
    let factor = file.take_lower(name, n)?;
    if (0..n).any(|j| factor[(j, j)] <= 0.0) {
        return Err(file.malformed(format!("{name}: a pivot that is not above 0")));
    }
    Ok(Cholesky::from_factor(factor))
}
