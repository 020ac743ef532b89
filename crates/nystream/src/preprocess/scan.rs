//! The first pass over the records.

use super::batch::CodedBlock;
use super::binding::Layout;
use super::options::{Categorical, Missing, Scale, TableOptions};
use super::preprocessor::{ColumnKind, FirstPass, Inputs, Parts, Preprocessor};
use super::scan_sparse::SparseScan;
use super::scan_table::{Kind, TableScan};
use super::scan_targets::{TargetScan, TargetSummary};
use super::{input_error, quoted};
use crate::error::{Error, Result};
use crate::source::{RecordBlock, Schema};

/// What the label of a sparse row is called in messages.
pub(super) const LABEL_NAME: &str = "label";

/// What numbers must be like for their variance to be a number.
pub(super) const SQUARABLE: &str = "numbers that can be squared and summed";

/// Rows so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    pub rows: u64,
    pub dropped: u64,
}

#[derive(Debug, Clone)]
enum Shape {
    Table(Box<TableScan>),
    Sparse(SparseScan),
}

/// Reads records once and learns what a [`Preprocessor`] needs.
///
/// After an error the scan is of no further use.
#[derive(Debug, Clone)]
pub struct Scan {
    origin: String,
    options: TableOptions,
    shape: Shape,
    targets: TargetScan,
    tally: Tally,
    scratch: CodedBlock,
}

impl Scan {
    /// Plans the columns of a source. `origin` names the source in messages.
    pub fn new(schema: &Schema, origin: &str, options: TableOptions) -> Result<Self> {
        let (shape, names) = match schema {
            Schema::Table { names, named } => {
                let table = TableScan::new(names, *named, origin, &options)?;
                let targets = table.columns.target_names();
                (Shape::Table(Box::new(table)), targets)
            }
            Schema::Labelled { width } => {
                refuse_table_options(&options)?;
                (Shape::Sparse(SparseScan::new(*width, &options)), vec![LABEL_NAME.to_owned()])
            }
        };
        let targets = TargetScan::new(names, options.task)?;
        let (tally, scratch) = (Tally::default(), CodedBlock::default());
        Ok(Self { origin: origin.to_owned(), options, shape, targets, tally, scratch })
    }

    /// Learns from a block of records.
    pub fn observe(&mut self, block: &RecordBlock) -> Result<()> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let result = self.encode(block, &mut scratch);
        self.scratch = scratch;
        result
    }

    /// Learns from a block of records and writes their coded rows to `out`, whose memory is reused.
    pub fn encode(&mut self, block: &RecordBlock, out: &mut CodedBlock) -> Result<()> {
        out.first_row = block.first_row;
        out.targets.clear();
        out.dropped.clear();
        let Self { origin, options, targets, tally, .. } = self;
        match &mut self.shape {
            Shape::Table(table) => {
                table.encode(origin, options, targets, tally, block, out)?;
                super::weights::read(origin, &table.columns, block, &out.dropped, &mut out.weights)
            }
            Shape::Sparse(sparse) => sparse.encode(origin, options, targets, tally, block, out),
        }
    }

    /// Rows learnt from so far, without those left out.
    pub fn rows(&self) -> u64 {
        self.tally.rows
    }
    /// Rows left out so far because of missing cells.
    pub fn dropped_rows(&self) -> u64 {
        self.tally.dropped
    }
    /// Number of target columns.
    pub fn target_count(&self) -> usize {
        self.targets.names().len()
    }

    /// Ends the first pass.
    pub fn finish(self) -> Result<Preprocessor> {
        let Self { origin, options, shape, targets, tally, .. } = self;
        if tally.rows == 0 {
            let (found, expected) = match tally.dropped {
                0 => ("no rows".to_owned(), "at least one row"),
                dropped => (format!("missing values in all {dropped} rows"), "a row without missing values"),
            };
            return Err(input_error(&origin, 0, None, found, expected));
        }
        let target_names = targets.names().to_vec();
        let TargetSummary { task, class_counts, mean, variance, code } = targets.finish(&origin)?;
        let mut parts = Parts {
            rows: tally.rows,
            dropped: tally.dropped,
            missing: options.missing,
            scaling: options.scale,
            inputs: Inputs::Sparse { width: 0 },
            target_names,
            task,
            class_counts,
            target_mean: mean,
            target_variance: variance,
            shift: Vec::new(),
            scale: Vec::new(),
            fill: Vec::new(),
            constant: Vec::new(),
        };
        let mut levels = Vec::new();
        let mut layout = Layout::default();
        match shape {
            Shape::Sparse(sparse) => {
                let summary = sparse.finish(&origin, &options, tally.rows)?;
                parts.inputs = Inputs::Sparse { width: summary.width };
                (parts.scale, parts.fill, parts.constant) = (summary.scale, summary.fill, summary.constant);
            }
            Shape::Table(table) => {
                let mut kinds = Vec::with_capacity(table.kinds.len());
                let mut output = 0;
                for (j, kind) in table.kinds.iter().enumerate() {
                    let (kind, positions) = finish_column(&origin, &table, j, kind, output, &mut parts)?;
                    output += kind.width();
                    kinds.push(kind);
                    levels.push(positions);
                }
                layout = Layout::new(&kinds, |j| j);
                let (names, roles) = (table.columns.names, table.columns.roles);
                parts.inputs = Inputs::Table { named: table.named, names, roles, kinds };
            }
        }
        parts.check()?;
        Ok(Preprocessor { parts, first_pass: Some(FirstPass { levels, targets: code, layout }) })
    }
}

/// Adds what column `j` becomes to `parts`; gives its kind and the final position of each level code.
fn finish_column(
    origin: &str,
    table: &TableScan,
    j: usize,
    kind: &Kind,
    output: usize,
    parts: &mut Parts,
) -> Result<(ColumnKind, Vec<u32>)> {
    let name = Some(table.columns.names[table.columns.features[j]].as_str());
    let moments = &table.moments;
    let observed = moments.count(j);
    if observed == 0 {
        return Err(input_error(origin, 0, name, "missing in every row", "at least one value"));
    }
    if let Kind::Category(codes) = kind {
        let (levels, counts, positions) = codes.clone().finish();
        for (level, &count) in counts.iter().enumerate() {
            let constant = count == 0 || count == observed;
            parts.push_output(output + level, 0.0, 1.0, count as f64 / observed as f64, constant);
        }
        return Ok((ColumnKind::Category { levels }, positions));
    }
    let (mean, variance, constant) = (moments.mean(j), moments.variance(j), moments.is_constant(j));
    if !variance.is_finite() {
        let found = format!("numbers from {:e} to {:e}", moments.min(j), moments.max(j));
        return Err(input_error(origin, 0, name, found, SQUARABLE));
    }
    let (shift, scale) = match parts.scaling {
        Scale::None => (0.0, 1.0),
        Scale::Standard | Scale::Running => (mean, variance.sqrt()),
        Scale::MinMax => {
            let (min, max) = (moments.min(j), moments.max(j));
            let middle = min + (max - min) / 2.0;
            // The larger half, so that rounding cannot lead outside [-1, 1].
            (middle, (max - middle).max(middle - min))
        }
    };
    parts.push_output(output, shift, if constant { 1.0 } else { scale }, mean, constant);
    Ok((ColumnKind::Number, Vec::new()))
}

impl Parts {
    fn push_output(&mut self, output: usize, shift: f64, scale: f64, mean: f64, constant: bool) {
        if self.scaling != Scale::None {
            self.shift.push(shift);
            self.scale.push(scale);
        }
        if self.missing == Missing::Mean {
            self.fill.push(mean);
        }
        if constant {
            self.constant.push(output as u32);
        }
    }
}

/// Sparse rows have no named columns, so options about columns would do nothing.
fn refuse_table_options(options: &TableOptions) -> Result<()> {
    let refuse = |name, found: String| {
        let expected = "nothing: the columns of a sparse (LIBSVM) source are one label and numbered features";
        Err(Error::InvalidParam { name, found, expected })
    };
    if let Some(target) = options.targets.iter().find(|target| target.0 != LABEL_NAME) {
        return refuse("target", quoted(&target.0));
    }
    if let Some(ignored) = options.ignore.first() {
        return refuse("ignore", quoted(&ignored.0));
    }
    if let Some(weights) = &options.weights {
        return refuse("weights", quoted(&weights.0));
    }
    if matches!(options.categorical, Categorical::Levels(_)) {
        return refuse("categorical", options.categorical.to_string());
    }
    Ok(())
}
