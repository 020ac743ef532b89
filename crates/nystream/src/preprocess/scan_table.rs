//! Rows of a table during the first pass.

use super::all_finite;
use super::batch::{CodedBlock, prepare_dense, truncate_dense};
use super::codes::Codes;
use super::columns::{Columns, OddRows, Role, Run, find, runs};
use super::options::{Categorical, ColumnRef, Missing, TableOptions};
use super::scan::Tally;
use super::scan_targets::{TargetCell, TargetScan};
use super::statistics::Moments;
use super::{MAX_CLASSES, input_error, listing, quoted};
use crate::error::{Error, Result};
use crate::rows::Rows;
use crate::source::{Oddity, RecordBlock};

/// What a feature column holds.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// Nothing seen yet but missing cells.
    Undecided,
    Number,
    Category(Codes),
}

/// Learns kinds, levels and statistics of the columns.
#[derive(Debug, Clone)]
pub(super) struct TableScan {
    pub columns: Columns,
    pub named: bool,
    pub kinds: Vec<Kind>,
    pub moments: Moments,
    runs: Vec<Run>,
    undecided: Vec<usize>,
    categories: Vec<usize>,
}

impl TableScan {
    pub fn new(names: &[String], named: bool, origin: &str, options: &TableOptions) -> Result<Self> {
        let columns = Columns::plan(names, named, origin, options)?;
        let features = columns.features.len();
        let mut kinds: Vec<Kind> = (0..features).map(|_| Kind::Number).collect();
        let mut undecided = Vec::new();
        match &options.categorical {
            Categorical::Refuse => {}
            Categorical::OneHot => {
                kinds.fill(Kind::Undecided);
                undecided.extend(0..features);
            }
            Categorical::Levels(lists) => {
                for (name, levels) in lists {
                    let at = find(&ColumnRef(name.clone()), names, origin)?;
                    let Role::Feature(j) = columns.roles[at] else {
                        let found = "levels for a column that is no feature";
                        return Err(input_error(origin, 0, Some(name), found, "levels of feature columns only"));
                    };
                    check_levels(origin, name, levels)?;
                    kinds[j] = Kind::Category(Codes::listed(levels));
                }
            }
        }
        let categories = (0..features).filter(|&j| matches!(kinds[j], Kind::Category(_))).collect();
        let runs = runs(columns.features.iter().enumerate().map(|(to, &from)| (from, to)));
        Ok(Self { columns, named, kinds, moments: Moments::new(features), runs, undecided, categories })
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
        let Rows::Dense(records) = block.cells.rows() else {
            return Err(Error::Internal("a table must hand over dense rows"));
        };
        if !records.is_empty() && records.cols() != self.columns.names.len() {
            let expected = self.columns.names.len();
            return Err(Error::Shape { what: "columns of a record block", found: records.cols(), expected });
        }
        let width = self.columns.features.len();
        let data = prepare_dense(&mut out.rows, records.len(), width);
        let mut oddities = OddRows::new(&block.oddities);
        let mut kept = 0;
        for i in 0..records.len() {
            let (row, cells, odd) = (block.first_row + i as u64, records.row(i), oddities.row(i));
            if options.missing == Missing::Drop && odd.iter().any(|oddity| self.columns.lacks(oddity, true)) {
                out.dropped.push(i);
                tally.dropped += 1;
                continue;
            }
            let coded = &mut data[kept * width..(kept + 1) * width];
            self.encode_row(origin, row, options, cells, odd, block, coded)?;
            for (k, &at) in self.columns.targets.iter().enumerate() {
                let target = match odd.iter().find(|oddity| oddity.column == at) {
                    None => TargetCell::Number(cells[at]),
                    Some(oddity) => match block.text(oddity.cell) {
                        Some(text) => TargetCell::Text(text),
                        None => return Err(missing_target(origin, row, &self.columns.names[at])),
                    },
                };
                out.targets.push(targets.encode(origin, row, k, target)?);
            }
            targets.push(&out.targets[out.targets.len() - self.columns.targets.len()..]);
            tally.rows += 1;
            kept += 1;
        }
        truncate_dense(&mut out.rows, kept);
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "a row, where it stands, and what to do with it")]
    fn encode_row(
        &mut self,
        origin: &str,
        row: u64,
        options: &TableOptions,
        cells: &[f64],
        odd: &[Oddity],
        block: &RecordBlock,
        out: &mut [f64],
    ) -> Result<()> {
        if !self.undecided.is_empty() {
            self.decide(cells, odd, block);
        }
        for run in &self.runs {
            out[run.to..run.to + run.len].copy_from_slice(&cells[run.from..run.from + run.len]);
        }
        for oddity in odd {
            let Some(&Role::Feature(j)) = self.columns.roles.get(oddity.column) else { continue };
            let name = self.columns.names[oddity.column].as_str();
            match (block.text(oddity.cell), &mut self.kinds[j]) {
                (Some(text), Kind::Category(codes)) => {
                    let code = codes.text(text);
                    out[j] = code.map(f64::from).ok_or_else(|| level_error(origin, row, name, &quoted(text), codes))?;
                }
                (Some(text), _) => {
                    let expected = match options.categorical {
                        Categorical::Refuse => "a number (or --categorical one-hot)",
                        Categorical::OneHot => {
                            "a number, as in the rows before (or all levels, --categorical COLUMN=LEVEL,LEVEL)"
                        }
                        Categorical::Levels(_) => "a number (or this column's levels in --categorical)",
                    };
                    return Err(input_error(origin, row, Some(name), quoted(text), expected));
                }
                (None, _) if options.missing == Missing::Mean => out[j] = f64::NAN,
                (None, _) => {
                    let expected = "a number (or --missing mean|drop)";
                    return Err(input_error(origin, row, Some(name), "a missing value", expected));
                }
            }
        }
        // A number in a category column is the level of that name. Odd cells hold NaN.
        for &j in &self.categories {
            let at = self.columns.features[j];
            let value = cells[at];
            if let (true, Kind::Category(codes)) = (value.is_finite(), &mut self.kinds[j]) {
                let code = codes.number(value);
                let wrong = || level_error(origin, row, &self.columns.names[at], &value.to_string(), codes);
                out[j] = code.map(f64::from).ok_or_else(wrong)?;
            }
        }
        if all_finite(out) {
            self.moments.push(out);
            return Ok(());
        }
        for (value, &at) in out.iter().zip(&self.columns.features).filter(|(value, _)| !value.is_finite()) {
            if value.is_infinite() || !odd.iter().any(|oddity| oddity.column == at) {
                let name = Some(self.columns.names[at].as_str());
                return Err(input_error(origin, row, name, value.to_string(), "a finite number"));
            }
        }
        self.moments.push_with_missing(out);
        Ok(())
    }

    /// Lets the first cell that is not missing decide what its column holds.
    fn decide(&mut self, cells: &[f64], odd: &[Oddity], block: &RecordBlock) {
        let Self { columns, kinds, undecided, categories, .. } = self;
        undecided.retain(|&j| {
            let at = columns.features[j];
            match odd.iter().find(|oddity| oddity.column == at) {
                Some(oddity) if block.text(oddity.cell).is_none() => return true,
                Some(_) => {
                    kinds[j] = Kind::Category(Codes::learning(MAX_CLASSES));
                    categories.push(j);
                }
                None if cells[at].is_nan() => return true, // refused with its place further on
                None => kinds[j] = Kind::Number,
            }
            false
        });
    }
}

/// A row without its target.
pub(super) fn missing_target(origin: &str, row: u64, name: &str) -> Error {
    input_error(origin, row, Some(name), "a missing target", "a target (or --missing drop)")
}

fn level_error(origin: &str, row: u64, name: &str, found: &str, codes: &Codes) -> Error {
    let expected = if codes.is_listed() {
        format!("one of the levels {}", listing(codes.names()))
    } else {
        format!("at most {MAX_CLASSES} different levels in a column (or leave the column out, --ignore)")
    };
    input_error(origin, row, Some(name), found, expected)
}

fn check_levels(origin: &str, name: &str, levels: &[String]) -> Result<()> {
    let expected = format!("1 to {MAX_CLASSES} different levels");
    if levels.is_empty() || levels.len() > MAX_CLASSES {
        return Err(input_error(origin, 0, Some(name), format!("{} levels listed", levels.len()), expected));
    }
    let mut sorted: Vec<&String> = levels.iter().collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            let found = format!("the level {} listed twice", quoted(pair[0]));
            Err(input_error(origin, 0, Some(name), found, expected))
        }
        None => Ok(()),
    }
}
