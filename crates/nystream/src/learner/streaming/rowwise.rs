//! Single rows: an answer from all rows so far, and learning one row, without waiting for a block.
//!
//! Rows learnt singly wait with the others for a full block, which brings them into the sums; until then a row-by-row
//! learner ([`RowwiseRidge`]) that started from the sums follows them. It is made anew after every block, so its rounding
//! errors do not grow, and it is no part of what is saved: it follows from the sums and the rows that wait, to the bit. So
//! sums, choices and score are the same bits however rows were given.

use super::early::Ready;
use super::learner::{Phase, StreamingRidge};
use crate::error::{Error, Result};
use crate::model::OutputLimits;
use crate::rows::{Row, Rows, SparseRows};
use crate::solver::RowwiseRidge;

/// What answers for single rows: the learner that leads, with the rows that wait.
#[derive(Debug)]
pub(super) struct Live {
    /// Rows waiting that it has learnt.
    seen: usize,
    current: Current,
    /// What outputs are kept within, by the rows before and these.
    limits: OutputLimits,
}

#[derive(Debug)]
enum Current {
    /// Nothing is chosen yet: the mean predicts.
    Mean {
        mean: Vec<f64>,
        weight: f64,
    },
    Ridge(Box<RowwiseRidge>),
}

impl Live {
    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        match &self.current {
            Current::Mean { mean, .. } => 8 * mean.len(),
            Current::Ridge(learner) => learner.size_bytes(),
        }
    }
}

impl StreamingRidge {
    /// Outputs of a row from all rows given so far, those that wait for a full block included.
    pub fn predict_row(&mut self, row: Row, out: &mut [f64]) -> Result<()> {
        self.check_row(row, out.len())?;
        self.catch_up();
        let Some(live) = &mut self.live else { return Err(Error::Internal("nothing to answer with")) };
        match &mut live.current {
            Current::Ridge(learner) => learner.predict(row, out),
            Current::Mean { mean, .. } => out.copy_from_slice(mean),
        }
        live.limits.keep(out);
        Ok(())
    }

    /// Takes the next row; `predicted` gets its outputs from before. They are not given again by
    /// [`learn`](Self::learn) or [`flush`](Self::flush).
    pub fn learn_row(&mut self, row: Row, codes: &[f64], weight: f64, predicted: &mut [f64]) -> Result<()> {
        self.check_row(row, predicted.len())?;
        let offsets = [0, stored(row)];
        let rows = view(row, &offsets, self.width())?;
        self.check(rows, codes, Some(&[weight]))?;
        self.widen(rows.cols());
        self.pending.extend(rows, codes, &[weight]);
        self.pending.rows.widen(self.known_width);
        self.answered.push(true);
        self.catch_up_into(predicted);
        if self.pending.len() >= self.next_block() {
            // Rows of blocks among them have not been answered: the next `learn` or `flush` does.
            let mut owed = std::mem::take(&mut self.owed);
            let outcome = self.advance(0, self.next_block(), &mut Ready::default(), &mut owed);
            self.owed = owed;
            self.drop_pending(outcome?);
            // Now, for this row has waited for a block already: the next prediction is to be as quick as any.
            self.catch_up();
        }
        Ok(())
    }

    fn check_row(&self, row: Row, outputs: usize) -> Result<()> {
        if outputs != self.outputs {
            return Err(Error::Shape { what: "outputs", found: outputs, expected: self.outputs });
        }
        let values = match row {
            Row::Dense(values) => {
                if let Some(width) = self.width().filter(|width| *width != values.len()) {
                    return Err(Error::Shape { what: "features", found: values.len(), expected: width });
                }
                values
            }
            Row::Sparse { values, .. } => values,
        };
        match values.iter().find(|v| !v.is_finite()) {
            Some(v) => Err(Error::InvalidParam { name: "row", found: v.to_string(), expected: "finite numbers" }),
            None => Ok(()),
        }
    }

    /// Learns the rows that wait and were not seen yet.
    fn catch_up(&mut self) {
        if self.live.as_ref().is_none_or(|live| live.seen < self.pending.len()) {
            self.catch_up_into(&mut vec![0.0; self.outputs]);
        }
    }

    /// [`catch_up`](Self::catch_up); `predicted` gets what was predicted of the last of them.
    fn catch_up_into(&mut self, predicted: &mut [f64]) {
        let live = match &mut self.live {
            Some(live) => live,
            None => {
                let current = match (&self.phase, self.leader()) {
                    (_, Some(leader)) => Current::Ridge(Box::new(leader.rowwise())),
                    (Phase::Head { mean, weight, .. }, None) => Current::Mean { mean: mean.clone(), weight: *weight },
                    (Phase::Stream { .. }, None) => Current::Mean { mean: vec![0.0; self.outputs], weight: 0.0 },
                };
                self.live.insert(Live { seen: 0, current, limits: self.limits.clone() })
            }
        };
        let (decay, outputs) = (self.options.decay(), self.outputs);
        for i in live.seen..self.pending.len() {
            let (weight, codes) = (self.pending.weights[i], &self.pending.codes[i * outputs..(i + 1) * outputs]);
            match &mut live.current {
                // As in a block: until it ends all is larger by a factor, and the ridge is not faded.
                Current::Ridge(learner) => {
                    let grown = if decay < 1.0 { weight / decay.powf((i + 1) as f64) } else { weight };
                    learner.learn(self.pending.rows.rows().row(i), codes, grown, predicted);
                }
                Current::Mean { mean, weight: total } => {
                    predicted.copy_from_slice(mean);
                    follow_mean(mean, total, codes, weight, decay);
                }
            }
            live.limits.keep(predicted);
            live.limits.take(codes);
        }
        live.seen = self.pending.len();
    }
}

/// Takes one more row into a mean that forgets.
pub(super) fn follow_mean(mean: &mut [f64], total: &mut f64, codes: &[f64], weight: f64, decay: f64) {
    *total = decay * *total + weight;
    for (mean, code) in mean.iter_mut().zip(codes) {
        *mean += weight / *total * (code - *mean);
    }
}

/// Values that a row stores.
fn stored(row: Row) -> usize {
    match row {
        Row::Dense(values) | Row::Sparse { values, .. } => values.len(),
    }
}

/// One row as a set of rows. A sparse one does not tell its width: it is what was known, or as far as the row reaches.
fn view<'a>(row: Row<'a>, offsets: &'a [usize; 2], known: Option<usize>) -> Result<Rows<'a>> {
    match row {
        Row::Dense(values) => Rows::dense(values, 1, values.len()),
        Row::Sparse { indices, values } => {
            let reach = indices.last().map_or(0, |last| *last as usize + 1);
            SparseRows::new(offsets, indices, values, reach.max(known.unwrap_or(0))).map(Rows::Sparse)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{COLS, bytes, feed, options, stream};
    use super::super::{StreamingOptions, StreamingRidge};
    use super::*;
    use crate::fit::Bandwidth;
    use crate::persist::Container;

    fn row(data: &[f64], i: usize) -> Row<'_> {
        Row::Dense(&data[i * COLS..(i + 1) * COLS])
    }

    /// Rows of `range`, one after the other.
    fn singly(learner: &mut StreamingRidge, data: &[f64], codes: &[f64], range: std::ops::Range<usize>) -> Vec<f64> {
        let mut out = Vec::new();
        for i in range {
            let mut predicted = [0.0; 2];
            learner.learn_row(row(data, i), &codes[2 * i..2 * i + 2], 1.0, &mut predicted).unwrap();
            out.extend(predicted);
        }
        out
    }

    fn assert_close(a: &[f64], b: &[f64]) {
        assert_eq!(a.len(), b.len());
        for (i, (a, b)) in a.iter().zip(b).enumerate() {
            assert!((a - b).abs() < 1e-9, "number {i}: {a} {b}");
        }
    }

    #[test]
    fn single_rows_blocks_and_both_give_the_same() {
        let (data, codes) = stream(1300, 4);
        for half_life in [None, Some(90.0)] {
            let options = StreamingOptions { half_life, ..options(25) };
            let make = || StreamingRidge::new(options.clone(), 2).unwrap();
            let mut blocks = make();
            let mut expected = feed(&mut blocks, &data, &codes, (0, 1300), &[100]);
            let mut single = make();
            assert_close(&singly(&mut single, &data, &codes, 0..expected.len() / 2), &expected);
            singly(&mut single, &data, &codes, expected.len() / 2..1300);
            let mut nothing = Vec::new();
            single.flush(&mut nothing).unwrap();
            assert!(nothing.is_empty());
            blocks.flush(&mut expected).unwrap();
            assert_eq!(bytes(&single), bytes(&blocks));
            // Pieces in turn: those learnt as blocks come out of `learn`, each once, in their order.
            let (mut mixed, mut start) = (make(), 0);
            let (mut late, mut late_expected) = (Vec::new(), Vec::new());
            for size in [3, 40, 5, 100, 1, 7].into_iter().cycle() {
                let end = (start + size).min(1300);
                if size % 2 == 0 {
                    late.extend(feed(&mut mixed, &data, &codes, (start, end), &[33]));
                    late_expected.extend_from_slice(&expected[2 * start..2 * end]);
                } else {
                    let now = singly(&mut mixed, &data, &codes, start..end);
                    assert_close(&now, &expected[2 * start..2 * end]);
                }
                start = end;
                if end == 1300 {
                    break;
                }
            }
            mixed.flush(&mut late).unwrap();
            assert_eq!(bytes(&mixed), bytes(&blocks));
            assert_close(&late, &late_expected);
        }
    }

    #[test]
    fn saved_between_single_rows_it_goes_on_with_the_same_bits() {
        let (data, codes) = stream(900, 6);
        let mut whole = StreamingRidge::new(options(25), 2).unwrap();
        let expected = singly(&mut whole, &data, &codes, 0..900);
        for cut in [3, 77, 300, 700] {
            let mut first = StreamingRidge::new(options(25), 2).unwrap();
            singly(&mut first, &data, &codes, 0..cut);
            let file = Container::from_bytes("test", &bytes(&first)).unwrap();
            let mut second = StreamingRidge::from_container(file).unwrap();
            assert!(singly(&mut second, &data, &codes, cut..900) == expected[2 * cut..], "cut at {cut}");
            assert_eq!(bytes(&second), bytes(&whole));
        }
    }

    #[test]
    fn predicting_changes_nothing_and_is_what_learning_finds() {
        let (data, codes) = stream(700, 7);
        let mut learner = StreamingRidge::new(options(25), 2).unwrap();
        let (mut asked, mut found) = ([0.0; 2], [0.0; 2]);
        for i in 0..700 {
            let before = (i % 50 == 0).then(|| bytes(&learner));
            learner.predict_row(row(&data, i), &mut asked).unwrap();
            assert!(before.is_none_or(|before| before == bytes(&learner)));
            learner.learn_row(row(&data, i), &codes[2 * i..2 * i + 2], 1.0, &mut found).unwrap();
            assert_eq!(asked, found);
        }
        let before = bytes(&learner);
        assert!(learner.predict_row(Row::Dense(&[1.0]), &mut asked).is_err());
        assert!(learner.predict_row(row(&data, 0), &mut [0.0]).is_err());
        assert!(learner.predict_row(Row::Dense(&[f64::NAN; COLS]), &mut asked).is_err());
        assert!(learner.learn_row(row(&data, 0), &[1.0], 1.0, &mut found).is_err());
        assert!(learner.learn_row(row(&data, 0), &[1.0, f64::INFINITY], 1.0, &mut found).is_err());
        assert!(learner.learn_row(row(&data, 0), &[1.0, 1.0], 0.0, &mut found).is_err());
        assert_eq!(bytes(&learner), before);
    }

    /// Atoms that nearly depend on each other: kernel matrices of condition 1e12 and above, targets without noise.
    #[test]
    fn bad_conditioning_is_no_worse_than_in_blocks() {
        let (data, _) = stream(800, 8);
        let codes: Vec<f64> = data.chunks_exact(COLS).flat_map(|x| [(0.3 * x[0]).sin(), x[1]]).collect();
        let wide = StreamingOptions { bandwidth: Bandwidth::Fixed(30.0), ..options(60) };
        let mut blocks = StreamingRidge::new(wide.clone(), 2).unwrap();
        let expected = feed(&mut blocks, &data, &codes, (0, 800), &[800]);
        let mut single = StreamingRidge::new(wide, 2).unwrap();
        let found = singly(&mut single, &data, &codes, 0..expected.len() / 2);
        // Kernels carry relative errors near ε, which the coefficients multiply; a factor of 100 for sums over 60 atoms and
        // for the solves.
        let model = blocks.solve().unwrap().unwrap().model;
        let largest = model.coefficients().col_iter().map(|c| c.iter().map(|v| v.abs()).sum()).fold(0.0, f64::max);
        assert!(largest > 1e6, "{largest}");
        for (a, b) in found.iter().zip(&expected).skip(200) {
            assert!((a - b).abs() < 100.0 * f64::EPSILON * largest, "{a} {b} {largest}");
        }
    }
}
