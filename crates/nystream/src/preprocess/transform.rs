//! Turns records, or the coded rows of the first pass, into final rows and targets.

use super::batch::{Batch, CodedBlock, prepare_dense, prepare_sparse, truncate_dense};
use super::binding::{Binding, Layout, Shape};
use super::codes::Lookup;
use super::columns::{Columns, OddRows, Role};
use super::options::Missing;
use super::preprocessor::{ColumnKind, FirstPass, Inputs, Parts, Preprocessor, Task};
use super::scan::LABEL_NAME;
use super::scan_sparse::check_entries;
use super::scan_table::missing_target;
use super::scan_targets::{TargetCell, TargetCode};
use super::{all_finite, input_error, listing, quoted};
use crate::error::{Error, Result};
use crate::rows::{DenseRows, RowBlock, Rows, SparseRows};
use crate::source::{LABEL_COLUMN, OddCell, Oddity, RecordBlock};

impl Preprocessor {
    /// Turns a block of records into rows, and targets if they are needed, in `out`, whose memory is reused.
    ///
    /// The binding must come from this preprocessor. Without `need_targets`, targets are not looked at.
    pub fn transform(&self, binding: &Binding, block: &RecordBlock, out: &mut Batch, need_targets: bool) -> Result<()> {
        out.first_row = block.first_row;
        out.targets.clear();
        out.weights.clear();
        out.dropped.clear();
        if need_targets && !binding.has_targets() {
            let target = self.parts.target_names.first().map(String::as_str);
            return Err(input_error(&binding.origin, 0, target, "no such column", "the target, which is needed here"));
        }
        let task = BlockTask { parts: &self.parts, binding, block, need_targets };
        match (&binding.shape, block.cells.rows()) {
            (Shape::Table { columns, layout, levels }, Rows::Dense(records)) => {
                if layout.width() != self.feature_count() {
                    return Err(Error::Internal("a binding must be used with the preprocessor that made it"));
                }
                if !records.is_empty() && records.cols() != columns.names.len() {
                    let (found, expected) = (records.cols(), columns.names.len());
                    return Err(Error::Shape { what: "columns of a record block", found, expected });
                }
                task.table(columns, layout, levels, records, out)
            }
            (Shape::Sparse, Rows::Sparse(records)) => {
                if block.labels.len() != records.len() {
                    return Err(Error::Shape { what: "labels", found: block.labels.len(), expected: records.len() });
                }
                task.sparse(records, out)
            }
            _ => Err(Error::Internal("records must be dense or sparse as their schema says")),
        }
    }

    /// Turns coded rows of the first pass into what [`transform`](Self::transform) makes of their records.
    pub fn finish_coded(&self, coded: &CodedBlock, out: &mut Batch) -> Result<()> {
        let Some(first) = &self.first_pass else {
            return Err(Error::Internal("coded rows can be finished only by the preprocessor of the same first pass"));
        };
        out.first_row = coded.first_row;
        out.dropped.clone_from(&coded.dropped);
        out.weights.clone_from(&coded.weights);
        let targets = coded.len() * self.target_count();
        if coded.targets.len() != targets {
            return Err(Error::Shape { what: "coded targets", found: coded.targets.len(), expected: targets });
        }
        out.targets.clear();
        match &first.targets {
            TargetCode::Same => out.targets.extend_from_slice(&coded.targets),
            TargetCode::Values(lookup) => {
                for &value in &coded.targets {
                    out.targets.push(lookup.number(value).map(f64::from).ok_or(FOREIGN)?);
                }
            }
            TargetCode::Classes(classes) => {
                for &code in &coded.targets {
                    out.targets.push(classes.get(code as usize).copied().map(f64::from).ok_or(FOREIGN)?);
                }
            }
        }
        match (self.is_sparse(), coded.rows.rows()) {
            (true, Rows::Sparse(rows)) => self.finish_sparse(rows, &mut out.rows),
            (false, Rows::Dense(rows)) => self.finish_dense(first, rows, &mut out.rows),
            _ => Err(FOREIGN),
        }
    }

    fn finish_dense(&self, first: &FirstPass, rows: DenseRows, out: &mut RowBlock) -> Result<()> {
        let (parts, layout) = (&self.parts, &first.layout);
        let (width, columns) = (layout.width(), first.levels.len());
        if rows.cols() != columns && !rows.is_empty() {
            return Err(Error::Shape { what: "columns of coded rows", found: rows.cols(), expected: columns });
        }
        let data = prepare_dense(out, rows.len(), width);
        for i in 0..rows.len() {
            let (from, to) = (rows.row(i), &mut data[i * width..(i + 1) * width]);
            parts.write_numbers(layout, from, to);
            for place in &layout.categories {
                let to = &mut to[place.to..place.to + place.len];
                to.fill(0.0);
                let code = from[place.from];
                if !code.is_nan() {
                    let level = *first.levels[place.feature].get(code as usize).ok_or(FOREIGN)?;
                    to[level as usize] = 1.0;
                }
            }
            if !all_finite(from) {
                for j in (0..columns).filter(|&j| from[j].is_nan()) {
                    parts.write_missing(layout, j, to)?;
                }
                if !all_finite(to) {
                    return Err(FOREIGN);
                }
            }
        }
        Ok(())
    }

    fn finish_sparse(&self, rows: SparseRows, out: &mut RowBlock) -> Result<()> {
        prepare_sparse(out, self.feature_count());
        for i in 0..rows.len() {
            let (indices, values) = rows.row(i);
            if indices.iter().any(|&j| j as usize >= self.feature_count()) {
                return Err(FOREIGN);
            }
            if self.parts.push_sparse(indices, values, out).is_some() {
                return Err(FOREIGN);
            }
        }
        Ok(())
    }
}

/// Coded rows that no first pass of this preprocessor wrote.
const FOREIGN: Error = Error::Internal("coded rows must come from the first pass of the same preprocessor");

/// What numbers must be like to stay finite when scaled.
const COMPARABLE: &str = "a number of about the size of those in training";

/// One block to transform.
struct BlockTask<'a> {
    parts: &'a Parts,
    binding: &'a Binding,
    block: &'a RecordBlock,
    need_targets: bool,
}

impl BlockTask<'_> {
    fn table(
        &self,
        columns: &Columns,
        layout: &Layout,
        levels: &[Option<Lookup>],
        records: DenseRows,
        out: &mut Batch,
    ) -> Result<()> {
        let width = layout.width();
        let drop = self.parts.missing == Missing::Drop;
        let data = prepare_dense(&mut out.rows, records.len(), width);
        let mut oddities = OddRows::new(&self.block.oddities);
        let mut kept = 0;
        for i in 0..records.len() {
            let (cells, odd) = (records.row(i), oddities.row(i));
            if drop && odd.iter().any(|oddity| columns.lacks(oddity, self.need_targets)) {
                out.dropped.push(i);
                continue;
            }
            let to = &mut data[kept * width..(kept + 1) * width];
            self.parts.write_numbers(layout, cells, to);
            if !(layout.categories.is_empty() && odd.is_empty()) {
                self.odd_features(i, columns, layout, levels, cells, odd, to)?;
            }
            if !all_finite(to) {
                return Err(self.not_finite(i, columns, cells, odd));
            }
            if self.need_targets {
                for &at in &columns.targets {
                    let cell = odd.iter().find(|oddity| oddity.column == at).map(|oddity| oddity.cell);
                    out.targets.push(self.target(i, &columns.names[at], cells[at], cell)?);
                }
            }
            kept += 1;
        }
        truncate_dense(&mut out.rows, kept);
        Ok(())
    }

    /// Categories, and missing cells.
    #[expect(clippy::too_many_arguments, reason = "a row, the columns' plan, and where it goes")]
    fn odd_features(
        &self,
        i: usize,
        columns: &Columns,
        layout: &Layout,
        levels: &[Option<Lookup>],
        cells: &[f64],
        odd: &[Oddity],
        to: &mut [f64],
    ) -> Result<()> {
        let mut unread = 0usize;
        for place in &layout.categories {
            to[place.to..place.to + place.len].fill(0.0);
            let value = cells[place.from];
            if value.is_nan() {
                unread += 1;
                continue;
            }
            let level = levels[place.feature].as_ref().and_then(|lookup| lookup.number(value));
            let wrong = || self.unknown_level(i, columns, place.from, value.to_string());
            to[place.to + level.ok_or_else(wrong)? as usize] = 1.0;
        }
        for oddity in odd {
            let Some(&Role::Feature(j)) = columns.roles.get(oddity.column) else { continue };
            unread -= usize::from(levels[j].is_some() && unread > 0);
            match (self.block.text(oddity.cell), &levels[j]) {
                (Some(text), Some(lookup)) => {
                    let wrong = || self.unknown_level(i, columns, oddity.column, quoted(text));
                    to[layout.output(j).start + lookup.text(text).ok_or_else(wrong)? as usize] = 1.0;
                }
                (Some(text), None) => {
                    return Err(self.error(i, &columns.names[oddity.column], quoted(text), "a number, as in training"));
                }
                (None, _) if self.parts.missing == Missing::Mean => self.parts.write_missing(layout, j, to)?,
                (None, _) => {
                    let expected = "a number (or training with --missing mean|drop)";
                    return Err(self.error(i, &columns.names[oddity.column], "a missing value", expected));
                }
            }
        }
        if unread > 0 { Err(self.not_finite(i, columns, cells, odd)) } else { Ok(()) }
    }

    fn sparse(&self, records: SparseRows, out: &mut Batch) -> Result<()> {
        let width = self.parts.feature_count();
        prepare_sparse(&mut out.rows, width);
        let mut oddities = OddRows::new(&self.block.oddities);
        let missing = self.parts.missing;
        for i in 0..records.len() {
            let odd = oddities.row(i);
            let used = |oddity: &&Oddity| self.need_targets || oddity.column != LABEL_COLUMN;
            if missing == Missing::Drop && odd.iter().filter(used).any(|oddity| oddity.cell == OddCell::Missing) {
                out.dropped.push(i);
                continue;
            }
            let (indices, values) = records.row(i);
            if let Some(&last) = indices.last().filter(|&&last| last as usize >= width) {
                let expected = format!("features up to {width}, as in training");
                let found = "a feature that was not in the training data";
                return Err(self.error(i, &(u64::from(last) + 1).to_string(), found, expected));
            }
            let row = self.block.first_row + i as u64;
            check_entries(&self.binding.origin, row, odd, self.block, indices, values, missing == Missing::Mean)?;
            if let Some(entry) = self.parts.push_sparse(indices, values, &mut out.rows) {
                let name = (u64::from(indices[entry]) + 1).to_string();
                return Err(self.error(i, &name, values[entry].to_string(), COMPARABLE));
            }
            if self.need_targets {
                let cell = odd.iter().find(|oddity| oddity.column == LABEL_COLUMN).map(|oddity| oddity.cell);
                out.targets.push(self.target(i, LABEL_NAME, self.block.labels[i], cell)?);
            }
        }
        Ok(())
    }

    /// A target as a number, or as the index of its class.
    fn target(&self, i: usize, name: &str, value: f64, odd: Option<OddCell>) -> Result<f64> {
        let cell = match odd {
            None if !value.is_finite() => return Err(self.error(i, name, value.to_string(), "a finite number")),
            None => TargetCell::Number(value),
            Some(cell) => match self.block.text(cell) {
                Some(text) => TargetCell::Text(text),
                None => {
                    return Err(missing_target(&self.binding.origin, self.block.first_row + i as u64, name));
                }
            },
        };
        match (&self.parts.task, cell) {
            (Task::Regression { .. }, TargetCell::Number(value)) => Ok(value),
            (Task::Regression { .. }, TargetCell::Text(text)) => {
                Err(self.error(i, name, quoted(text), "a number, for regression"))
            }
            (Task::Classification { labels }, cell) => {
                let (class, found) = match cell {
                    TargetCell::Number(value) => (self.binding.labels.number(value), value.to_string()),
                    TargetCell::Text(text) => (self.binding.labels.text(text), quoted(text)),
                };
                class
                    .map(f64::from)
                    .ok_or_else(|| self.error(i, name, found, format!("one of the labels {}", listing(labels))))
            }
        }
    }

    fn error(&self, i: usize, column: &str, found: impl Into<String>, expected: impl Into<String>) -> Error {
        input_error(&self.binding.origin, self.block.first_row + i as u64, Some(column), found, expected)
    }

    fn unknown_level(&self, i: usize, columns: &Columns, at: usize, found: String) -> Error {
        let levels: &[String] = match (&self.parts.inputs, columns.roles[at]) {
            (Inputs::Table { kinds, .. }, Role::Feature(j)) => match &kinds[j] {
                ColumnKind::Category { levels } => levels,
                ColumnKind::Number => &[],
            },
            _ => &[],
        };
        self.error(i, &columns.names[at], found, format!("one of the levels {}", listing(levels)))
    }

    /// Finds the cell that is to blame for a row that is not finite.
    fn not_finite(&self, i: usize, columns: &Columns, cells: &[f64], odd: &[Oddity]) -> Error {
        let unmarked = |at: &usize| !cells[*at].is_finite() && !odd.iter().any(|oddity| oddity.column == *at);
        if let Some(at) = columns.features.iter().copied().find(unmarked) {
            return self.error(i, &columns.names[at], cells[at].to_string(), "a finite number");
        }
        let largest = columns.features.iter().copied().max_by(|&a, &b| cells[a].abs().total_cmp(&cells[b].abs()));
        let at = largest.unwrap_or_default();
        self.error(i, &columns.names[at], cells[at].to_string(), COMPARABLE)
    }
}

impl Parts {
    /// Number columns of a row: shifted, scaled, or copied.
    fn write_numbers(&self, layout: &Layout, from: &[f64], to: &mut [f64]) {
        for run in &layout.runs {
            let from = &from[run.from..run.from + run.len];
            let span = run.to..run.to + run.len;
            if self.scale.is_empty() {
                to[span].copy_from_slice(from);
                continue;
            }
            let (shift, scale) = (&self.shift[span.clone()], &self.scale[span.clone()]);
            for (((to, x), shift), scale) in to[span].iter_mut().zip(from).zip(shift).zip(scale) {
                *to = (x - shift) / scale;
            }
        }
    }

    /// What stands for a missing cell of feature column `j`.
    fn write_missing(&self, layout: &Layout, j: usize, to: &mut [f64]) -> Result<()> {
        if self.fill.is_empty() {
            return Err(FOREIGN);
        }
        for output in layout.output(j) {
            let mean = self.fill[output];
            to[output] = if self.scale.is_empty() { mean } else { (mean - self.shift[output]) / self.scale[output] };
        }
        Ok(())
    }

    /// Appends a sparse row: missing cells filled, then scaled. Gives the first entry that is not finite then.
    fn push_sparse(&self, indices: &[u32], row: &[f64], out: &mut RowBlock) -> Option<usize> {
        let RowBlock::Sparse { offsets, indices: columns, values, .. } = out else { return Some(0) };
        let start = values.len();
        columns.extend_from_slice(indices);
        values.extend_from_slice(row);
        offsets.push(values.len());
        let row = &mut values[start..];
        if !self.fill.is_empty() {
            for (&j, v) in indices.iter().zip(row.iter_mut()).filter(|(_, v)| v.is_nan()) {
                *v = self.fill[j as usize];
            }
        }
        if !self.scale.is_empty() {
            for (&j, v) in indices.iter().zip(row.iter_mut()) {
                *v /= self.scale[j as usize];
            }
        }
        if all_finite(row) { None } else { row.iter().position(|v| !v.is_finite()) }
    }
}
