//! Saving a [`Squeak`] and going on from it (kind `sketch`, method `squeak`; see docs/format.md).
//!
//! Kernel values and the lazy schedule's factor are stored, not computed anew: their last bits depend on what stood
//! beside them when they were computed, and going on must give the same bits.

use serde::{Deserialize, Serialize};

use super::Squeak;
use super::atoms::{Atoms, Standing};
use super::options::{MOST_ROWS, SqueakOptions};
use crate::error::{Error, Result};
use crate::persist::Container;
use crate::random::Generator;
use crate::rows::RowBlock;

const KIND: &str = "sketch";
const METHOD: &str = "squeak";

#[derive(Serialize, Deserialize)]
struct Document {
    method: String,
    options: SqueakOptions,
    leverage_ridge: f64,
    features: usize,
    rows: u64,
    energy: f64,
    residual: f64,
    /// None before the first row.
    least_oversampling: Option<u64>,
    rescored_atoms: usize,
    merged: bool,
    jitter: f64,
    factor: Option<FactorHeader>,
    generator: Generator,
}

#[derive(Serialize, Deserialize)]
struct FactorHeader {
    ridge: f64,
    jitter: f64,
}

pub(super) fn write(squeak: &Squeak) -> Result<Container> {
    let atoms = &squeak.atoms;
    let factor = squeak.scorer.factor();
    let document = Document {
        method: METHOD.to_owned(),
        options: squeak.options.clone(),
        leverage_ridge: squeak.leverage_ridge,
        features: squeak.pending.cols(),
        rows: squeak.learnt,
        energy: squeak.energy,
        residual: squeak.residual,
        least_oversampling: Some(squeak.least_oversampling).filter(|&least| least < u64::MAX),
        rescored_atoms: squeak.rescored_atoms,
        merged: squeak.merged,
        jitter: squeak.scorer.largest_jitter(),
        factor: factor.map(|(_, ridge, jitter)| FactorHeader { ridge, jitter }),
        generator: squeak.rng.clone(),
    };
    let document =
        serde_json::to_value(document).map_err(|_| Error::Internal("a sketch's description could not be written"))?;
    let mut file = Container::new(KIND, document);
    file.put_rows("atom", atoms.rows().rows())?;
    file.put_rows("pending_row", squeak.pending.rows())?;
    let n = atoms.len();
    let standing = atoms.standing();
    file.put_u64("row_numbers", &[n], standing.iter().map(|point| point.number).collect())?;
    file.put_f64("probabilities", &[n], standing.iter().map(|point| point.probability).collect())?;
    file.put_u64("copies", &[n], standing.iter().map(|point| point.copies).collect())?;
    file.put_u64("trials", &[n], standing.iter().map(|point| point.trials).collect())?;
    file.put_lower("kernels", atoms.kernels())?;
    if let Some((lower, ..)) = factor {
        file.put_lower("factor", lower)?;
    }
    Ok(file)
}

impl Squeak {
    /// Reads what [`to_container`](crate::sketch::SequentialDictionary::to_container) wrote, and checks all of it.
    pub fn from_container(mut file: Container) -> Result<Self> {
        file.expect_kind(KIND)?;
        let document: Document = file.document_as()?;
        if document.method != METHOD {
            return Err(file.malformed(format!("a sketch by '{}', expected '{METHOD}'", document.method)));
        }
        let mut squeak = Self::new(document.options).map_err(|e| file.malformed(e.to_string()))?;
        require_number(&file, "leverage_ridge", document.leverage_ridge, squeak.options.leverage_ridge)?;
        require_number(&file, "energy", document.energy, 0.0)?;
        require_number(&file, "residual", document.residual, 0.0)?;
        require_number(&file, "jitter", document.jitter, 0.0)?;

        let rows = file.take_rows("atom", document.features)?;
        let pending = file.take_rows("pending_row", document.features)?;
        let standing = take_standing(&mut file, rows.len())?;
        if pending.is_sparse() != rows.is_sparse() || pending.len() >= squeak.options.schedule.block() {
            return Err(file.malformed("rows that wait, of another kind than the atoms or more than a block"));
        }
        let numbers = standing.iter().map(|point| point.number);
        if document.rows > MOST_ROWS
            || !numbers.is_sorted_by(|a, b| a < b)
            || standing.last().is_some_and(|p| p.number >= document.rows)
        {
            return Err(file.malformed(format!("row numbers that do not increase within {} rows", document.rows)));
        }
        if document.least_oversampling.is_some_and(|least| least == 0)
            || document.least_oversampling.is_some() != (document.rows > 0)
        {
            return Err(file.malformed("an oversampling that does not fit the number of rows"));
        }
        let kernels = file.take_lower("kernels", rows.len())?;
        squeak.spare = RowBlock::like(rows.rows());
        squeak.atoms = Atoms::from_parts(rows, standing, kernels);
        if squeak.atoms.len() > squeak.allowed_atoms() {
            return Err(file.malformed(format!("{} atoms, more than the budget", squeak.atoms.len())));
        }
        squeak.pending = pending;
        squeak.leverage_ridge = document.leverage_ridge;
        squeak.learnt = document.rows;
        (squeak.energy, squeak.residual) = (document.energy, document.residual);
        squeak.least_oversampling = document.least_oversampling.unwrap_or(u64::MAX);
        squeak.rescored_atoms = document.rescored_atoms;
        squeak.merged = document.merged;
        squeak.rng = document.generator;
        squeak.scorer.set_largest_jitter(document.jitter);
        if let Some(FactorHeader { ridge, jitter }) = document.factor {
            require_number(&file, "factor ridge", ridge, squeak.options.leverage_ridge)?;
            require_number(&file, "factor jitter", jitter, 0.0)?;
            let factor = file.take_lower("factor", squeak.atoms.len())?;
            if (0..factor.nrows()).any(|j| factor[(j, j)] <= 0.0) {
                return Err(file.malformed("factor: a pivot that is not above 0"));
            }
            squeak.scorer.set_factor(&squeak.atoms, &factor, ridge, jitter);
        }
        file.finish()?;
        Ok(squeak)
    }
}

fn take_standing(file: &mut Container, atoms: usize) -> Result<Vec<Standing>> {
    let (_, numbers) = file.take_u64("row_numbers", 1)?;
    let (_, probabilities) = file.take_finite("probabilities", 1)?;
    let (_, copies) = file.take_u64("copies", 1)?;
    let (_, trials) = file.take_u64("trials", 1)?;
    if [numbers.len(), probabilities.len(), copies.len(), trials.len()] != [atoms; 4] {
        return Err(file.malformed(format!("numbers of the atoms that are not {atoms} each")));
    }
    let standing: Vec<Standing> = (0..atoms)
        .map(|i| Standing { number: numbers[i], probability: probabilities[i], copies: copies[i], trials: trials[i] })
        .collect();
    let fine = |point: &Standing| {
        point.probability > 0.0
            && point.probability <= 1.0
            && (1..=point.trials).contains(&point.copies)
            && point.trials <= 1 << 32
    };
    match standing.iter().position(|point| !fine(point)) {
        None => Ok(standing),
        Some(i) => Err(file.malformed(format!(
            "atom {i} with probability {} and {} of {} copies",
            probabilities[i], copies[i], trials[i]
        ))),
    }
}

fn require_number(file: &Container, name: &str, found: f64, least: f64) -> Result<()> {
    if found.is_finite() && found >= least {
        return Ok(());
    }
    Err(file.malformed(format!("{name}: found {found}, expected a number of at least {least}")))
}
