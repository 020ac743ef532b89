//! Passes over parts of the data: begun like another, and merged.
//!
//! Rows mean the same to two learners only if preprocessing made them alike. Scales learnt on different first rows differ,
//! and then sums cannot be added: merging refuses it by the name of the feature. So parts that are to be merged either begin
//! like one that was there before ([`StreamPass::begin_like`]: its columns, scaling, kernel and atoms; their sums add
//! exactly), or use no scaling and a fixed bandwidth (each with atoms of its own, chosen anew from both when they merge).
//! The number subtracted from targets may differ: sums can be counted from another one exactly.

use super::fingerprint::Fingerprint;
use super::pass::{READ, Recent, StreamPass};
use super::streaming::StreamingOptions;
use crate::error::{Error, Result};
use crate::fit::{Observer, TargetCodes};
use crate::rows::Rows;
use crate::source::{RecordBlock, RecordSource};

impl StreamPass {
    /// Streams behind it: more than one if passes were merged.
    pub fn streams(&self) -> u64 {
        self.streams
    }

    /// Begins a pass over another part of the data with the preprocessing, kernel and atoms of one that has chosen them.
    pub fn begin_like(
        &self,
        source: &mut dyn RecordSource,
        options: &StreamingOptions,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        self.learner.options().require_same(options)?;
        let Some(learner) = self.learner.like()? else {
            return Err(Error::InvalidParam {
                name: "like",
                found: format!("a learner of {} rows that has not settled on its atoms", self.learner.rows()),
                expected: "one that has learnt at least five times its budget",
            });
        };
        observer.stage("one pass: predict, then learn");
        let mut block = RecordBlock::default();
        let more = source.read(&mut block, READ)?;
        let mut fingerprint = Fingerprint::new(source.schema());
        if more {
            fingerprint.add(&block);
        }
        let records = block.len() as u64;
        let head = (records, fingerprint.digits());
        let made = (self.preprocessor.clone(), self.table.clone());
        let mut pass = Self::from_parts(made, learner, 0, head, Recent::default());
        if more {
            pass.block = block;
            pass.bind(source)?;
            pass.learn_block()?;
            observer.rows(records, source.progress());
        }
        Ok(pass)
    }

    /// Adds what a pass over other rows has learnt. Both must have made rows alike: equal scaling (see
    /// [`begin_like`](Self::begin_like)) or none, and the same kernel with its bandwidth.
    pub fn merge(mut self, mut other: Self) -> Result<Self> {
        if self.preprocessor.is_sparse() && other.preprocessor.is_sparse() {
            let width = self.preprocessor.feature_count().max(other.preprocessor.feature_count());
            self.preprocessor.widen(width)?;
            other.preprocessor.widen(width)?;
            self.errors.widen(width);
            other.errors.widen(width);
        }
        self.preprocessor.require_same_rows(&other.preprocessor)?;
        self.require_same_targets(&other)?;
        self.flush()?;
        other.flush()?;
        if let (TargetCodes::Numbers { shift: mine }, TargetCodes::Numbers { shift: theirs }) =
            (&self.codes, &other.codes)
            && mine != theirs
        {
            let by: Vec<f64> = theirs.iter().zip(mine).map(|(theirs, mine)| theirs - mine).collect();
            other.learner.shift_codes(&by)?;
        }
        self.learner = self.learner.merge(other.learner)?;
        self.records += other.records;
        self.streams += other.streams;
        // Records of both are those of no source.
        self.trail = None;
        let width = self.codes.outputs();
        self.recent.outputs.extend(other.recent.outputs);
        self.recent.classes.extend(other.recent.classes);
        self.recent.shorten(width);
        self.errors.merge(other.errors, width);
        Ok(self)
    }

    fn require_same_targets(&self, other: &Self) -> Result<()> {
        let (mine, theirs) = (&self.preprocessor, &other.preprocessor);
        let task = |pass: &Self| if pass.is_classification() { "classes" } else { "numbers" }.to_owned();
        let fields = [
            ("targets", mine.target_names().join(", "), theirs.target_names().join(", ")),
            ("kind of targets", task(self), task(other)),
            ("labels", mine.labels().join(", "), theirs.labels().join(", ")),
        ];
        match fields.into_iter().find(|(_, mine, theirs)| mine != theirs) {
            Some((field, expected, found)) => Err(Error::Incompatible { field: field.to_owned(), found, expected }),
            None => Ok(()),
        }
    }

    /// Takes in columns of sparse rows that were not seen before.
    pub(super) fn widen(&mut self) -> Result<()> {
        if let (true, Rows::Sparse(rows)) = (self.preprocessor.is_sparse(), self.block.cells.rows()) {
            let last = (0..rows.len()).filter_map(|i| rows.row(i).0.last()).max();
            let width = last.map_or(0, |last| *last as usize + 1);
            if width > self.preprocessor.feature_count() {
                self.preprocessor.widen(width)?;
                self.learner.widen(width);
                self.errors.widen(width);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::{Bandwidth, Silent};
    use crate::preprocess::{Scale, TableOptions};
    use crate::solver::Ridge;
    use crate::source::{OpenOptions, open};

    fn options() -> StreamingOptions {
        StreamingOptions {
            budget: 40,
            bandwidth: Bandwidth::Fixed(2.0),
            ridge: Ridge::Fixed(0.1),
            ..StreamingOptions::default()
        }
    }

    fn source(rows: usize, seed: u64) -> Box<dyn RecordSource> {
        open(&format!("synth:friedman?n={rows}&seed={seed}"), &OpenOptions::default()).unwrap()
    }

    fn finish(pass: &mut StreamPass, source: &mut dyn RecordSource) {
        while pass.advance(source).unwrap() > 0 {}
    }

    fn table(scale: Scale) -> TableOptions {
        TableOptions { scale, ..TableOptions::default() }
    }

    fn pass(scale: Scale, rows: usize, seed: u64) -> StreamPass {
        let mut source = source(rows, seed);
        let mut pass = StreamPass::begin(source.as_mut(), table(scale), options(), &mut Silent).unwrap();
        finish(&mut pass, source.as_mut());
        pass
    }

    fn predictions(pass: StreamPass) -> Vec<f64> {
        let model = pass.finish().unwrap();
        let mut source = source(50, 99);
        let mut block = RecordBlock::default();
        source.read(&mut block, 50).unwrap();
        let mut predictor = model.predictor(source.schema(), source.origin()).unwrap();
        predictor.predict(&block, crate::model::Wanted::default()).unwrap().values.clone()
    }

    #[test]
    fn a_part_begun_like_another_merges_to_what_one_pass_finds() {
        let first = pass(Scale::Standard, 9000, 1);
        let mut second_source = source(7000, 2);
        let mut second = first.begin_like(second_source.as_mut(), &options(), &mut Silent).unwrap();
        finish(&mut second, second_source.as_mut());
        let mut whole = pass(Scale::Standard, 9000, 1);
        finish(&mut whole, source(7000, 2).as_mut());
        let merged = first.merge(second).unwrap();
        assert_eq!((merged.records(), merged.learner().rows(), merged.streams), (16_000, 16_000, 2));
        // A merged pass has no source of its own to go on with.
        let file = tempfile::NamedTempFile::new().unwrap();
        merged.save(file.path()).unwrap();
        let resume =
            |scale| StreamPass::resume(file.path(), source(9000, 1).as_mut(), &table(scale), &options(), &mut Silent);
        assert!(resume(Scale::Standard).unwrap_err().to_string().contains("merged"));
        let other = resume(Scale::MinMax).unwrap_err().to_string();
        assert!(other.contains("scale") && other.contains("minmax") && other.contains("standard"), "{other}");
        for (a, b) in predictions(StreamPass::load(file.path()).unwrap()).iter().zip(predictions(whole)) {
            assert!((a - b).abs() < 1e-7, "{a} {b}");
        }
    }

    #[test]
    fn a_row_of_weight_two_is_the_row_given_twice() {
        let numbers = |rows: usize, seed: u64| {
            let mut rng = crate::random::Generator::new(seed);
            (0..rows).map(move |_| [rng.normal(), rng.normal()]).collect::<Vec<_>>()
        };
        // Columns x, w, z, y; each row as many times as the function says, with the weight that it says.
        let source = |rows: &[[f64; 2]], copies: fn(usize) -> (usize, f64)| {
            let mut data = Vec::new();
            for (i, [x, z]) in rows.iter().enumerate() {
                let (times, weight) = copies(i);
                (0..times).for_each(|_| data.extend([*x, weight, *z, (2.0 * x).sin() + z]));
            }
            let names = ["x", "w", "z", "y"].map(str::to_owned).to_vec();
            crate::source::MemorySource::table(names, data).unwrap()
        };
        // In two columns a kernel of the usual width is near to singular: rounding errors would be all there is to see.
        let narrow = StreamingOptions { bandwidth: Bandwidth::Fixed(0.5), ..options() };
        let weighed = TableOptions { weights: Some("w".into()), ..table(Scale::Standard) };
        let first =
            StreamPass::begin(&mut source(&numbers(500, 1), |_| (1, 1.0)), weighed, narrow.clone(), &mut Silent);
        let first = first.unwrap();
        // The weight is no feature.
        assert_eq!(first.preprocessor().feature_names(), ["x", "z"]);
        let rows = numbers(1000, 2);
        let learnt = |copies| {
            let mut source = source(&rows, copies);
            let mut pass = first.begin_like(&mut source, &narrow, &mut Silent).unwrap();
            finish(&mut pass, &mut source);
            let model = pass.finish().unwrap();
            let mut test =
                crate::source::MemorySource::table(["x", "z"].map(str::to_owned).to_vec(), numbers(50, 3).concat())
                    .unwrap();
            let mut block = RecordBlock::default();
            test.read(&mut block, 50).unwrap();
            // Data to predict needs no weights.
            let mut predictor = model.predictor(test.schema(), test.origin()).unwrap();
            predictor.predict(&block, crate::model::Wanted::default()).unwrap().values.clone()
        };
        let apart = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let once = learnt(|_| (1, 1.0));
        let heavy = learnt(|i| (1, if i % 3 == 0 { 2.0 } else { 1.0 }));
        let twice = learnt(|i| (if i % 3 == 0 { 2 } else { 1 }, 1.0));
        assert!(apart(&heavy, &twice) < 1e-8, "{}", apart(&heavy, &twice));
        assert!(apart(&heavy, &once) > 1e-5, "{}", apart(&heavy, &once));
    }

    #[test]
    fn parts_with_targets_counted_from_different_means_merge() {
        let (a, b) = (pass(Scale::None, 3000, 3), pass(Scale::None, 3000, 4));
        assert_ne!(a.codes, b.codes);
        let merged = predictions(a.merge(b).unwrap());
        let whole = predictions(pass(Scale::None, 6000, 3));
        let apart = |a: &[f64]| (a.iter().zip(&whole).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / 50.0).sqrt();
        // Targets have a standard deviation of 5; atoms and noise (1) differ.
        assert!(apart(&merged) < 1.0, "{}", apart(&merged));
    }

    #[test]
    fn what_does_not_belong_together_is_refused_by_name() {
        let scaled = pass(Scale::Standard, 3000, 1).merge(pass(Scale::Standard, 3000, 2)).unwrap_err().to_string();
        assert!(scaled.contains("of feature"), "{scaled}");
        let kinds = pass(Scale::Standard, 3000, 1).merge(pass(Scale::None, 3000, 1)).unwrap_err().to_string();
        assert!(kinds.contains("scale"), "{kinds}");
        let early = pass(Scale::None, 100, 1).begin_like(source(50, 1).as_mut(), &options(), &mut Silent);
        assert!(early.unwrap_err().to_string().contains("settled"));
        let other = StreamingOptions { budget: 41, ..options() };
        let refused = pass(Scale::None, 3000, 1).begin_like(source(50, 1).as_mut(), &other, &mut Silent);
        assert!(refused.unwrap_err().to_string().contains("budget"));
    }
}
