//! What is noted down while rows pass: how the dictionary grew, and the rows themselves if there are few.

use crate::error::{Error, Result};
use crate::rows::{RowBlock, Rows};
use crate::sketch::SequentialDictionary;

/// Points of a trace, at most; half of them after it was thinned out.
const MOST_POINTS: usize = 256;
/// Rows between the first points.
const FIRST_STRIDE: u64 = 16;
/// Rows kept, at most: what the exact check takes.
const MOST_KEPT: usize = 3000;

/// A dictionary at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TracePoint {
    /// Rows of the stream so far.
    pub rows: u64,
    /// Different atoms.
    pub atoms: usize,
    /// Estimate of the effective dimension.
    #[doc(alias = "d_eff")]
    pub effective_dim: f64,
    /// γ in force.
    #[doc(alias = "γ")]
    pub leverage_ridge: f64,
}

/// A dictionary over the stream: at most 256 points, evenly spaced but for the last, however long the stream is.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    points: Vec<TracePoint>,
    stride: u64,
}

impl Default for Trace {
    fn default() -> Self {
        Self { points: Vec::new(), stride: FIRST_STRIDE }
    }
}

impl Trace {
    /// The points so far, in the order of the stream.
    pub fn points(&self) -> &[TracePoint] {
        &self.points
    }

    /// Rows until the next point is due, after `rows` rows.
    fn due_in(&self, rows: u64) -> u64 {
        self.stride - rows % self.stride
    }

    fn note(&mut self, sketch: &dyn SequentialDictionary) -> Result<()> {
        let report = sketch.report()?;
        if self.points.last().is_some_and(|last| last.rows == report.rows) {
            return Ok(());
        }
        let (rows, atoms) = (report.rows, report.atoms);
        let (effective_dim, leverage_ridge) = (report.effective_dim, report.leverage_ridge);
        self.points.push(TracePoint { rows, atoms, effective_dim, leverage_ridge });
        if self.points.len() >= MOST_POINTS {
            self.stride *= 2;
            self.points.retain(|point| point.rows % self.stride == 0);
        }
        Ok(())
    }
}

/// What is to be noted down; by default nothing.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    trace: Option<Trace>,
    kept: Option<RowBlock>,
    keep: bool,
}

impl Watch {
    /// With a trace, if `trace`; with all rows, if `keep`, which must then be 3,000 at most.
    pub fn new(trace: bool, keep: bool) -> Self {
        Self { trace: trace.then(Trace::default), kept: None, keep }
    }

    /// The trace, if there was to be one.
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    /// The rows, if they were to be kept and there were any.
    pub fn kept(&self) -> Option<&RowBlock> {
        self.kept.as_ref()
    }

    /// Passes rows on to the dictionary, after which it has seen `seen` and the rows.
    pub(super) fn pass(&mut self, sketch: &mut dyn SequentialDictionary, seen: u64, rows: Rows) -> Result<()> {
        if self.keep {
            let kept = self.kept.get_or_insert_with(|| RowBlock::like(rows));
            if kept.len() + rows.len() > MOST_KEPT {
                let bytes = |n: usize| 40 * (n as u64).saturating_mul(n as u64);
                return Err(Error::TooLarge {
                    what: "the check against the exact kernel matrix",
                    needed_bytes: bytes(kept.len() + rows.len()),
                    allowed_bytes: bytes(MOST_KEPT),
                    advice: "check at most 3000 rows",
                });
            }
            if rows.cols() > kept.cols() && kept.is_sparse() {
                kept.set_cols(rows.cols());
            }
            kept.extend(rows);
        }
        let Some(trace) = &mut self.trace else { return sketch.insert(rows) };
        let mut at = 0;
        while at < rows.len() {
            let step = trace.due_in(seen + at as u64).min((rows.len() - at) as u64) as usize;
            sketch.insert(rows.slice(at, at + step))?;
            at += step;
            if (seen + at as u64).is_multiple_of(trace.stride) {
                trace.note(sketch)?;
            }
        }
        Ok(())
    }

    /// The stream has ended.
    pub(super) fn finish(&mut self, sketch: &dyn SequentialDictionary) -> Result<()> {
        self.trace.as_mut().map_or(Ok(()), |trace| trace.note(sketch))
    }
}
