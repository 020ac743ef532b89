//! Sparse rows during the first pass.

use super::batch::{CodedBlock, prepare_sparse};
use super::columns::OddRows;
use super::options::{Missing, Scale, TableOptions};
use super::preprocessor::{Inputs, Preprocessor};
use super::scan::{LABEL_NAME, SQUARABLE, Tally};
use super::scan_targets::{TargetCell, TargetScan};
use super::statistics::SparseMoments;
use super::{all_finite, input_error, quoted};
use crate::error::{Error, Result};
use crate::rows::Rows;
use crate::source::{LABEL_COLUMN, OddCell, Oddity, RecordBlock};

/// The most sparse columns whose statistics are kept; without scaling or imputation there is no limit.
const MAX_COLUMNS: usize = 1 << 24;

/// Learns the width, and statistics if they will be needed.
#[derive(Debug, Clone)]
pub(super) struct SparseScan {
    width: usize,
    moments: Option<SparseMoments>,
}

/// What scaling and imputation need, one number a column; empty if not needed.
pub(super) struct SparseSummary {
    pub width: usize,
    pub scale: Vec<f64>,
    pub fill: Vec<f64>,
    pub constant: Vec<u32>,
}

impl SparseScan {
    pub fn new(width: usize, options: &TableOptions) -> Self {
        let needed = options.scale != Scale::None || options.missing == Missing::Mean;
        Self { width, moments: needed.then(SparseMoments::default) }
    }

    pub fn encode(
        &mut self,
        origin: &str,
        options: &TableOptions,
        targets: &mut TargetScan,
        tally: &mut Tally,
        block: &RecordBlock,
        out: &mut CodedBlock,
    ) -> Result<()> {
        let Rows::Sparse(rows) = block.cells.rows() else {
            return Err(Error::Internal("a labelled source must hand over sparse rows"));
        };
        if block.labels.len() != rows.len() {
            return Err(Error::Shape { what: "labels", found: block.labels.len(), expected: rows.len() });
        }
        prepare_sparse(&mut out.rows, self.width);
        let mut oddities = OddRows::new(&block.oddities);
        for i in 0..rows.len() {
            let row = block.first_row + i as u64;
            let odd = oddities.row(i);
            if options.missing == Missing::Drop && odd.iter().any(|oddity| oddity.cell == OddCell::Missing) {
                out.dropped.push(i);
                tally.dropped += 1;
                continue;
            }
            let (indices, values) = rows.row(i);
            check_entries(origin, row, odd, block, indices, values, options.missing == Missing::Mean)?;
            if let Some(&last) = indices.last() {
                self.grow(last as usize + 1)?;
            }
            let label = match odd.iter().find(|oddity| oddity.column == LABEL_COLUMN) {
                None => TargetCell::Number(block.labels[i]),
                Some(oddity) => match block.text(oddity.cell) {
                    Some(text) => TargetCell::Text(text),
                    None => return Err(input_error(origin, row, Some(LABEL_NAME), "no label", "a label")),
                },
            };
            let coded = targets.encode(origin, row, 0, label)?;
            targets.push(&[coded]);
            out.targets.push(coded);
            if let Some(moments) = &mut self.moments {
                for (&j, &v) in indices.iter().zip(values) {
                    moments.push(j as usize, v);
                }
            }
            out.rows.push(block.cells.rows().row(i));
            tally.rows += 1;
        }
        out.rows.set_cols(self.width);
        Ok(())
    }

    fn grow(&mut self, width: usize) -> Result<()> {
        check_width(width, self.moments.is_some(), 48)?;
        self.width = self.width.max(width);
        Ok(())
    }

    pub fn finish(self, origin: &str, options: &TableOptions, rows: u64) -> Result<SparseSummary> {
        let width = self.width;
        if width == 0 {
            return Err(input_error(origin, 0, None, "rows without a single feature", "at least one feature"));
        }
        let mut summary = SparseSummary { width, scale: Vec::new(), fill: Vec::new(), constant: Vec::new() };
        let Some(moments) = self.moments else { return Ok(summary) };
        for j in 0..width {
            let (mean, variance) = moments.mean_and_variance(j, rows);
            let name = || (j + 1).to_string();
            if !variance.is_finite() {
                let found = format!("numbers up to {}", moments.max_abs(j));
                return Err(input_error(origin, 0, Some(&name()), found, SQUARABLE));
            }
            if options.missing == Missing::Mean {
                if moments.cells(j, rows) == 0 {
                    return Err(input_error(origin, 0, Some(&name()), "missing in every row", "at least one number"));
                }
                summary.fill.push(mean);
            }
            let deviation = variance.sqrt();
            // Without centring, dividing by a deviation that is mere rounding would make a huge number.
            let constant = deviation < f64::MIN_POSITIVE || deviation <= 1e-12 * mean.abs();
            if constant && moments.occurs(j) {
                summary.constant.push(j as u32);
            }
            match options.scale {
                Scale::None => {}
                Scale::Standard | Scale::Running => summary.scale.push(if constant { 1.0 } else { deviation }),
                Scale::MinMax => {
                    let largest = moments.max_abs(j);
                    summary.scale.push(if largest < f64::MIN_POSITIVE { 1.0 } else { largest });
                }
            }
        }
        Ok(summary)
    }
}

/// Refuses more columns than statistics of so many bytes each are kept of.
fn check_width(width: usize, statistics: bool, bytes: u64) -> Result<()> {
    if statistics && width > MAX_COLUMNS {
        return Err(Error::TooLarge {
            what: "scaling or imputing sparse columns",
            needed_bytes: width as u64 * bytes,
            allowed_bytes: MAX_COLUMNS as u64 * bytes,
            advice: "use --scale none and no --missing mean",
        });
    }
    Ok(())
}

impl Preprocessor {
    /// Takes in sparse columns up to this width that the first pass did not see. They are treated as those below its width
    /// that never occurred: not scaled, and 0 where a cell is missing.
    pub fn widen(&mut self, width: usize) -> Result<()> {
        let parts = &mut self.parts;
        let Inputs::Sparse { width: known } = &mut parts.inputs else {
            return Err(Error::Internal("only sparse rows become wider"));
        };
        if width > *known {
            check_width(width, !(parts.scale.is_empty() && parts.fill.is_empty()), 16)?;
            *known = width;
            let grow = |values: &mut Vec<f64>, value: f64| {
                if !values.is_empty() {
                    values.resize(width, value);
                }
            };
            grow(&mut parts.scale, 1.0);
            grow(&mut parts.fill, 0.0);
        }
        Ok(())
    }
}

/// Refuses text and infinity, and missing cells unless they will be filled.
pub(super) fn check_entries(
    origin: &str,
    row: u64,
    odd: &[Oddity],
    block: &RecordBlock,
    indices: &[u32],
    values: &[f64],
    filled: bool,
) -> Result<()> {
    let mut missing = 0;
    for oddity in odd.iter().filter(|oddity| oddity.column != LABEL_COLUMN) {
        let column = (oddity.column + 1).to_string();
        match block.text(oddity.cell) {
            Some(text) => return Err(input_error(origin, row, Some(&column), quoted(text), "a number")),
            None if filled => missing += 1,
            None => {
                let expected = "a number (or --missing mean|drop)";
                return Err(input_error(origin, row, Some(&column), "a missing value", expected));
            }
        }
    }
    if missing == 0 && all_finite(values) {
        return Ok(());
    }
    for (&j, value) in indices.iter().zip(values).filter(|(_, value)| !value.is_finite()) {
        if value.is_infinite() || !odd.iter().any(|oddity| oddity.column == j as usize) {
            let column = (j as usize + 1).to_string();
            return Err(input_error(origin, row, Some(&column), value.to_string(), "a finite number"));
        }
    }
    Ok(())
}
