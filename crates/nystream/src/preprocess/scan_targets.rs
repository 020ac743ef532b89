//! Targets during the first pass: numbers, or labels that are being learnt.

use super::codes::{Codes, Lookup, number_name};
use super::options::TaskRequest;
use super::preprocessor::Task;
use super::statistics::Moments;
use super::{MAX_CLASSES, input_error, quoted};
use crate::error::{Error, Result};

/// How targets are written into coded rows.
#[derive(Debug, Clone)]
enum Coding {
    /// The first target decides.
    Undecided,
    /// As numbers; the first three different values are counted if they may turn out to be two classes.
    Numbers { distinct: Option<Vec<(f64, u64)>> },
    /// As numbers of labels.
    Labels(Codes),
}

/// How coded targets become final ones.
#[derive(Debug, Clone)]
pub(super) enum TargetCode {
    /// They are final.
    Same,
    /// Numbers that stand for classes.
    Values(Lookup),
    /// The class of each label number.
    Classes(Vec<u32>),
}

/// What was learnt about the targets.
pub(super) struct TargetSummary {
    pub task: Task,
    pub class_counts: Vec<u64>,
    pub mean: Vec<f64>,
    pub variance: Vec<f64>,
    pub code: TargetCode,
}

/// Learns the task, the labels and the targets' statistics.
#[derive(Debug, Clone)]
pub(super) struct TargetScan {
    names: Vec<String>,
    request: TaskRequest,
    coding: Coding,
    moments: Moments,
}

/// A target cell that is not missing.
#[derive(Debug, Clone, Copy)]
pub(super) enum TargetCell<'a> {
    Number(f64),
    Text(&'a str),
}

impl TargetScan {
    pub fn new(names: Vec<String>, request: TaskRequest) -> Result<Self> {
        let several = names.len() > 1;
        let coding = match request {
            TaskRequest::Classification if several => {
                return Err(Error::InvalidParam {
                    name: "task",
                    found: format!("classification with {} target columns", names.len()),
                    expected: "one target column, or regression",
                });
            }
            TaskRequest::Classification => Coding::Labels(Codes::learning(MAX_CLASSES)),
            TaskRequest::Auto if !several => Coding::Undecided,
            _ => Coding::Numbers { distinct: None },
        };
        Ok(Self { moments: Moments::new(names.len()), names, request, coding })
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Learns target `k` of a row and gives its coded form.
    pub fn encode(&mut self, origin: &str, row: u64, k: usize, cell: TargetCell) -> Result<f64> {
        if let TargetCell::Number(value) = cell
            && !value.is_finite()
        {
            return Err(input_error(origin, row, Some(&self.names[k]), value.to_string(), "a finite number"));
        }
        if matches!(self.coding, Coding::Undecided) {
            self.coding = match cell {
                TargetCell::Number(_) => Coding::Numbers { distinct: Some(Vec::new()) },
                TargetCell::Text(_) => Coding::Labels(Codes::learning(MAX_CLASSES)),
            };
        }
        match (&mut self.coding, cell) {
            (Coding::Numbers { distinct }, TargetCell::Number(value)) => {
                if let Some(values) = distinct {
                    count_distinct(values, value);
                    if values.len() > 2 {
                        *distinct = None;
                    }
                }
                Ok(value)
            }
            (Coding::Labels(codes), cell) => {
                let code = match cell {
                    TargetCell::Number(value) => codes.number(value),
                    TargetCell::Text(text) => codes.text(text),
                };
                code.map(f64::from).ok_or_else(|| {
                    let found = format!("label number {}", MAX_CLASSES + 1);
                    let expected = format!("at most {MAX_CLASSES} different labels (or --task regression)");
                    input_error(origin, row, Some(&self.names[k]), found, expected)
                })
            }
            (_, TargetCell::Text(text)) => {
                let expected = match self.request {
                    TaskRequest::Auto if self.names.len() == 1 => {
                        "a number, as in the rows before (or --task classification)"
                    }
                    _ => "a number, for regression",
                };
                Err(input_error(origin, row, Some(&self.names[k]), quoted(text), expected))
            }
            (Coding::Undecided, _) => Err(Error::Internal("the first target must decide how targets are coded")),
        }
    }

    /// Takes the coded targets of a finished row into the statistics.
    pub fn push(&mut self, coded: &[f64]) {
        self.moments.push(coded);
    }

    /// Decides the task, after at least one row.
    pub fn finish(self, origin: &str) -> Result<TargetSummary> {
        let rows = self.moments.count(0);
        let target = Some(self.names[0].as_str());
        match self.coding {
            Coding::Labels(codes) => {
                let (labels, class_counts, positions) = codes.finish();
                if labels.len() < 2 {
                    let found = format!("the one class '{}' in all {rows} rows", labels.concat());
                    return Err(input_error(origin, 0, target, found, "at least two classes"));
                }
                Ok(TargetSummary::classes(labels, class_counts, TargetCode::Classes(positions)))
            }
            Coding::Numbers { distinct: Some(mut values) } => {
                values.sort_by(|a, b| a.0.total_cmp(&b.0));
                let labels: Vec<String> = values.iter().map(|(value, _)| number_name(*value)).collect();
                if labels.len() < 2 {
                    let found = format!("the same value {} in all {rows} rows", labels.concat());
                    let expected = "at least two different targets (or --task regression)";
                    return Err(input_error(origin, 0, target, found, expected));
                }
                let counts = values.iter().map(|(_, count)| *count).collect();
                let code = TargetCode::Values(Lookup::new(&labels));
                Ok(TargetSummary::classes(labels, counts, code))
            }
            Coding::Numbers { distinct: None } | Coding::Undecided => {
                let targets = self.names.len();
                let mean: Vec<f64> = (0..targets).map(|k| self.moments.mean(k)).collect();
                let variance: Vec<f64> = (0..targets).map(|k| self.moments.variance(k)).collect();
                if let Some(k) = (0..targets).find(|&k| !variance[k].is_finite()) {
                    let found = format!("numbers from {:e} to {:e}", self.moments.min(k), self.moments.max(k));
                    return Err(input_error(origin, 0, Some(&self.names[k]), found, super::scan::SQUARABLE));
                }
                let task = Task::Regression { targets };
                Ok(TargetSummary { task, class_counts: Vec::new(), mean, variance, code: TargetCode::Same })
            }
        }
    }
}

impl TargetSummary {
    fn classes(labels: Vec<String>, class_counts: Vec<u64>, code: TargetCode) -> Self {
        Self { task: Task::Classification { labels }, class_counts, mean: Vec::new(), variance: Vec::new(), code }
    }
}

fn count_distinct(values: &mut Vec<(f64, u64)>, value: f64) {
    match values.iter_mut().find(|(known, _)| *known == value) {
        Some((_, count)) => *count += 1,
        None => values.push((value, 1)),
    }
}
