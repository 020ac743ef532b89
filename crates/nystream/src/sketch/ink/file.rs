//! Saving and resuming INK dictionaries (kind `sketch` of the container; see docs/format.md).
//!
//! Everything that is read is checked before it is used: a damaged or hostile file gives an error, or at worst a
//! dictionary with other numbers in it, never a panic or an endless loop.

use faer::Mat;
use serde::{Deserialize, Serialize};

use super::history::History;
use super::ink_oracle::{InkOracle, State};
use super::options::{InkOptions, MAX_COUNT};
use super::oracle::Oracle;
use super::shrink_expand::Atom;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::persist::Container;
use crate::random::Generator;

const KIND: &str = "sketch";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    method: String,
    kernel: Kernel,
    leverage_ridge: f64,
    accuracy: f64,
    failure_prob: f64,
    oversampling: u64,
    budget: Option<usize>,
    seed: u64,
    /// Columns of the rows; none before the first row.
    features: Option<usize>,
    state: State,
    rng: Generator,
}

pub(super) fn write<O: Oracle>(ink: &InkOracle<O>) -> Result<Container> {
    let InkOptions { kernel, leverage_ridge, accuracy, failure_prob, oversampling, budget, seed } = ink.options.clone();
    let document = Document {
        method: O::METHOD.to_owned(),
        kernel,
        leverage_ridge,
        accuracy,
        failure_prob,
        oversampling,
        budget,
        seed,
        features: ink.history.as_ref().map(History::cols),
        state: ink.state.clone(),
        rng: ink.rng.clone(),
    };
    let document =
        serde_json::to_value(document).map_err(|_| Error::Internal("a sketch's description could not be written"))?;
    let mut file = Container::new(KIND, document);
    if let Some(history) = &ink.history {
        file.put_rows("row", history.gather(0..history.len()).rows())?;
    }
    let m = ink.atoms.len();
    file.put_u64("atom_rows", &[m], ink.atoms.iter().map(|atom| atom.row as u64).collect())?;
    file.put_f64("probabilities", &[m], ink.atoms.iter().map(|atom| atom.probability).collect())?;
    file.put_u64("inflations", &[m], ink.atoms.iter().map(|atom| atom.inflation).collect())?;
    let lower: Vec<f64> = (0..m).flat_map(|j| (j..m).map(move |i| ink.atom_kernels[(i, j)])).collect();
    file.put_f64("atom_kernels", &[lower.len()], lower)?;
    ink.oracle.put(&mut file)?;
    Ok(file)
}

impl<O: Oracle> InkOracle<O> {
    /// Resumes from what [`to_container`](super::super::SequentialDictionary::to_container) wrote.
    pub fn from_container(mut file: Container) -> Result<Self> {
        file.expect_kind(KIND)?;
        // The method first: another one has other keys.
        let method = file.document.get("method").and_then(|method| method.as_str()).unwrap_or("nothing");
        if method != O::METHOD {
            return Err(file.malformed(format!("a sketch of {method:?}, expected {:?}", O::METHOD)));
        }
        let document: Document = file.document_as()?;
        let Document { kernel, leverage_ridge, accuracy, failure_prob, oversampling, budget, seed, .. } = document;
        let options = InkOptions { kernel, leverage_ridge, accuracy, failure_prob, oversampling, budget, seed };
        let options = options.validated().map_err(|e| file.malformed(e.to_string()))?;
        let state = document.state;
        let amounts = [state.effective_dim, state.energy];
        if !(state.leverage_ridge.is_finite() && state.leverage_ridge >= options.leverage_ridge)
            || amounts.iter().any(|v| !(v.is_finite() && *v >= 0.0))
        {
            return Err(file.malformed("running numbers that cannot be"));
        }
        let history = match document.features {
            Some(features) => {
                let rows = file.take_rows("row", features)?;
                let mut history = History::new(rows.rows());
                (0..rows.len()).for_each(|i| history.push(rows.rows().row(i)));
                Some(history)
            }
            None => None,
        };
        let rows = history.as_ref().map_or(0, History::len);
        O::require_fits(rows).map_err(|e| file.malformed(e.to_string()))?;
        let atoms = take_atoms(&mut file, rows, options.budget)?;
        let (_, lower) = file.take_finite("atom_kernels", 1)?;
        let atom_kernels = symmetric(&lower, atoms.len()).ok_or_else(|| {
            file.malformed(format!("atom_kernels: {} numbers for {} atoms", lower.len(), atoms.len()))
        })?;
        let oracle = O::take(&mut file, &options, rows, &atoms)?;
        file.finish()?;
        Ok(Self { options, oracle, state, history, atoms, atom_kernels, rng: document.rng })
    }
}

fn take_atoms(file: &mut Container, rows: usize, budget: Option<usize>) -> Result<Vec<Atom>> {
    let (_, numbers) = file.take_u64("atom_rows", 1)?;
    let (_, probabilities) = file.take_finite("probabilities", 1)?;
    let (_, inflations) = file.take_u64("inflations", 1)?;
    if probabilities.len() != numbers.len() || inflations.len() != numbers.len() {
        let (p, b) = (probabilities.len(), inflations.len());
        return Err(file.malformed(format!("{} atoms with {p} probabilities and {b} inflations", numbers.len())));
    }
    if numbers.windows(2).any(|pair| pair[0] >= pair[1]) || numbers.last().is_some_and(|&last| last >= rows as u64) {
        return Err(file.malformed(format!("atom_rows: expected increasing numbers below {rows}")));
    }
    if probabilities.iter().any(|p| !(*p > 0.0 && *p <= 1.0)) {
        return Err(file.malformed("probabilities: expected numbers above 0, at most 1"));
    }
    // Their sum is reported.
    let total = inflations.iter().try_fold(0u64, |sum, &b| sum.checked_add(b));
    if total.is_none() || inflations.iter().any(|&b| b == 0 || b > MAX_COUNT) {
        return Err(file.malformed("inflations: expected 1 to 2^53"));
    }
    if budget.is_some_and(|budget| numbers.len() > budget) {
        return Err(file.malformed(format!("{} atoms, more than the budget", numbers.len())));
    }
    let parts = numbers.iter().zip(probabilities).zip(inflations);
    Ok(parts.map(|((&row, probability), inflation)| Atom { row: row as usize, probability, inflation }).collect())
}

/// The symmetric matrix of n rows whose lower triangle, column by column, this is; none if it has another size.
pub(super) fn symmetric(lower: &[f64], n: usize) -> Option<Mat<f64>> {
    let expected = n.checked_add(1).and_then(|next| next.checked_mul(n)).map(|twice| twice / 2);
    if expected != Some(lower.len()) {
        return None;
    }
    let mut matrix = Mat::zeros(n, n);
    let mut next = lower.iter();
    for j in 0..n {
        for i in j..n {
            let value = next.next().copied().unwrap_or(0.0);
            matrix[(i, j)] = value;
            matrix[(j, i)] = value;
        }
    }
    Some(matrix)
}
