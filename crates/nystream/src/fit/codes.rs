//! Targets as the solvers see them: numbers, or ±1 codes of classes.
//!
//! Two classes have one code (−1 for the first, +1 for the second); more have one each (+1 for its
//! own class, −1 for the others). Numbers are shifted by their mean, so that sums keep their digits.

use faer::Mat;

use crate::preprocess::{Preprocessor, Task};

/// How targets become numbers to regress on.
#[derive(Debug, Clone, PartialEq)]
pub enum TargetCodes {
    /// Numbers, minus these.
    Numbers {
        /// What is subtracted from each target.
        shift: Vec<f64>,
    },
    /// Codes of this many classes.
    Classes {
        /// Number of classes, at least 2.
        count: usize,
    },
}

impl TargetCodes {
    /// The codes for the task that a preprocessor found.
    pub fn of(preprocessor: &Preprocessor) -> Self {
        match preprocessor.task() {
            Task::Regression { .. } => Self::Numbers { shift: preprocessor.target_mean().to_vec() },
            Task::Classification { labels } => Self::Classes { count: labels.len() },
        }
    }

    /// Numbers to regress on, a row.
    pub fn outputs(&self) -> usize {
        match self {
            Self::Numbers { shift } => shift.len(),
            Self::Classes { count: 2 } => 1,
            Self::Classes { count } => *count,
        }
    }

    /// What is to be added to a prediction of each output.
    pub fn shift(&self) -> Vec<f64> {
        match self {
            Self::Numbers { shift } => shift.clone(),
            Self::Classes { .. } => vec![0.0; self.outputs()],
        }
    }

    /// Writes the codes of a batch's targets (row-major) into `out`, rows × outputs.
    pub fn encode(&self, targets: &[f64], out: &mut Mat<f64>) {
        let outputs = self.outputs();
        match self {
            Self::Numbers { shift } => {
                out.resize_with(targets.len() / outputs, outputs, |_, _| 0.0);
                for (i, row) in targets.chunks_exact(outputs).enumerate() {
                    row.iter().zip(shift).enumerate().for_each(|(t, (y, s))| out[(i, t)] = y - s);
                }
            }
            Self::Classes { .. } => {
                out.resize_with(targets.len(), outputs, |_, _| 0.0);
                for (i, &class) in targets.iter().enumerate() {
                    for t in 0..outputs {
                        // The single code of two classes stands for the second one.
                        let own = if outputs == 1 { 1.0 } else { t as f64 };
                        out[(i, t)] = if class == own { 1.0 } else { -1.0 };
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_two_and_three_classes_and_of_numbers() {
        let mut out = Mat::new();
        TargetCodes::Classes { count: 2 }.encode(&[0.0, 1.0], &mut out);
        assert_eq!((out.nrows(), out.ncols(), out[(0, 0)], out[(1, 0)]), (2, 1, -1.0, 1.0));
        TargetCodes::Classes { count: 3 }.encode(&[2.0], &mut out);
        assert_eq!((out[(0, 0)], out[(0, 1)], out[(0, 2)]), (-1.0, -1.0, 1.0));
        let numbers = TargetCodes::Numbers { shift: vec![1.0, 2.0] };
        numbers.encode(&[5.0, 6.0, 7.0, 8.0], &mut out);
        assert_eq!((out.nrows(), out[(1, 0)], out[(1, 1)]), (2, 6.0, 6.0));
    }
}
