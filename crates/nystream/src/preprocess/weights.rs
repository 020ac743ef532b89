//! Weights of rows: a column of their own, which is read only where rows are learnt.

use super::batch::Batch;
use super::binding::{Binding, Shape};
use super::columns::{Columns, Role};
use super::preprocessor::{Inputs, Preprocessor};
use super::{input_error, quoted};
use crate::error::{Error, Result};
use crate::rows::Rows;
use crate::source::RecordBlock;

/// Reads the weights of a block's rows but those left out, if there is a column of weights.
pub(super) fn read(
    origin: &str,
    columns: &Columns,
    block: &RecordBlock,
    dropped: &[usize],
    out: &mut Vec<f64>,
) -> Result<()> {
    out.clear();
    let Some(at) = columns.weight else { return Ok(()) };
    let Rows::Dense(records) = block.cells.rows() else {
        return Err(Error::Internal("a table must hand over dense rows"));
    };
    let mut dropped = dropped.iter().copied().peekable();
    for i in 0..records.len() {
        if dropped.next_if_eq(&i).is_some() {
            continue;
        }
        let weight = records.row(i)[at];
        // Odd cells hold NaN.
        if !(weight.is_finite() && weight > 0.0) {
            let odd = block.oddities.iter().find(|oddity| oddity.row == i && oddity.column == at);
            let found = match odd.map(|oddity| block.text(oddity.cell)) {
                None => weight.to_string(),
                Some(None) => "a missing weight".to_owned(),
                Some(Some(text)) => quoted(text),
            };
            let (row, name) = (block.first_row + i as u64, Some(columns.names[at].as_str()));
            return Err(input_error(origin, row, name, found, "a weight, a finite number above 0"));
        }
        out.push(weight);
    }
    Ok(())
}

impl Preprocessor {
    /// Name of the column of weights, if there is one.
    pub fn weight_name(&self) -> Option<&str> {
        let Inputs::Table { names, roles, .. } = &self.parts.inputs else { return None };
        roles.iter().position(|role| *role == Role::Weight).map(|at| names[at].as_str())
    }

    /// Adds the weights of a block's rows to what [`transform`](Self::transform) made of it; nothing without a column of
    /// weights.
    pub fn weigh(&self, binding: &Binding, block: &RecordBlock, out: &mut Batch) -> Result<()> {
        let Some(name) = self.weight_name() else { return Ok(()) };
        match &binding.shape {
            Shape::Table { columns, .. } if columns.weight.is_some() => {
                let Batch { dropped, weights, .. } = out;
                read(&binding.origin, columns, block, dropped, weights)
            }
            _ => {
                let expected = "the weights, which are needed here";
                Err(input_error(&binding.origin, 0, Some(name), "no such column", expected))
            }
        }
    }
}
