//! From a source to a model file and back: what a fit depends on, and what it must not depend on.

use nystream::error::Result;
use nystream::fit::{
    Bandwidth, Choice, FitOptions, KernelFamily, Silent, TargetCodes, choose, exact, first_pass, two_pass,
};
use nystream::kernel::Kernel;
use nystream::model::{Predictions, TrainedModel, Wanted};
use nystream::preprocess::{ColumnRef, Scale, TableOptions, TaskRequest};
use nystream::random::Generator;
use nystream::rows::{RowBlock, Rows, SparseRows};
use nystream::sketch::DictionaryMethod;
use nystream::solver::{Ridge, SolverOptions, median_bandwidth};
use nystream::source::{MemorySource, OpenOptions, RecordBlock, RecordSource, Schema, open};

/// A source that hands over fewer rows at a time than it is asked for.
struct Dribble {
    inner: Box<dyn RecordSource>,
    most: usize,
}

impl RecordSource for Dribble {
    fn origin(&self) -> &str {
        self.inner.origin()
    }
    fn schema(&self) -> &Schema {
        self.inner.schema()
    }
    fn read(&mut self, block: &mut RecordBlock, max_rows: usize) -> Result<bool> {
        self.inner.read(block, max_rows.min(self.most))
    }
    fn rereadable(&self) -> bool {
        true
    }
    fn rewind(&mut self) -> Result<()> {
        self.inner.rewind()
    }
    fn progress(&self) -> Option<f64> {
        self.inner.progress()
    }
}

fn synth(location: &str) -> Box<dyn RecordSource> {
    open(location, &OpenOptions::default()).unwrap()
}

fn predict(model: &TrainedModel, source: &mut dyn RecordSource) -> Predictions {
    source.rewind().unwrap();
    let mut block = RecordBlock::default();
    assert!(source.read(&mut block, usize::MAX).unwrap());
    let mut predictor = model.predictor(source.schema(), source.origin()).unwrap();
    let wanted = Wanted { targets: false, deviations: model.calibration().is_none() };
    predictor.predict(&block, wanted).unwrap().clone()
}

fn atoms(model: &TrainedModel) -> RowBlock {
    let rows = model.regression().centres().rows();
    let mut block = RowBlock::like(rows);
    block.extend(rows);
    block
}

fn fit(source: &mut dyn RecordSource, options: &FitOptions) -> TrainedModel {
    source.rewind().unwrap();
    two_pass(source, options, &mut Silent).unwrap()
}

fn fit_exact(source: &mut dyn RecordSource, options: &FitOptions) -> TrainedModel {
    source.rewind().unwrap();
    exact(source, options, &mut Silent).unwrap()
}

fn choice_of(location: &str, options: &FitOptions) -> Choice {
    let first = first_pass(synth(location).as_mut(), options, &mut Silent).unwrap();
    choose(options, &first.sample, &TargetCodes::of(&first.preprocessor)).unwrap()
}

fn fixed(budget: usize) -> FitOptions {
    FitOptions {
        budget,
        bandwidth: Bandwidth::Fixed(2.0),
        solver: SolverOptions { ridge: Ridge::Fixed(0.05), intercept: true },
        ..FitOptions::default()
    }
}

/// Rows x0, x1, x2 and two targets.
fn table(rows: usize, seed: u64) -> (Vec<f64>, Vec<String>) {
    let mut rng = Generator::new(seed);
    let mut data = Vec::new();
    for _ in 0..rows {
        let x: [f64; 3] = std::array::from_fn(|_| rng.normal());
        // Two thirds of the cells are zero, so that sparse rows are worth it.
        let x = [x[0], if rng.uniform() < 0.7 { 0.0 } else { x[1] }, if rng.uniform() < 0.9 { 0.0 } else { x[2] }];
        data.extend(x);
        data.extend([x[0].sin() + x[1] * x[2] + 0.1 * rng.normal(), 5.0 - x[0] * x[0] + 0.1 * rng.normal()]);
    }
    (data, ["x0", "x1", "x2", "y", "z"].map(str::to_owned).to_vec())
}

fn columns(names: &[&str]) -> Vec<ColumnRef> {
    names.iter().map(|&name| name.into()).collect()
}

fn assert_close(a: &[f64], b: &[f64], relative: f64) {
    assert_eq!(a.len(), b.len());
    let size = b.iter().fold(0.0f64, |size, x| size.max(x.abs()));
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= relative * size, "{x} {y}");
    }
}

#[test]
fn neither_block_size_nor_threads_change_a_fit() {
    for location in ["synth:friedman?n=900", "synth:rings?n=700"] {
        let options = FitOptions { budget: 40, sample: Some(300), ..FitOptions::default() };
        let expected = fit(synth(location).as_mut(), &options);
        let bytes = expected.to_bytes().unwrap();
        for threads in [1, 2, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let model = pool.install(|| fit(synth(location).as_mut(), &options));
            assert!(model.to_bytes().unwrap() == bytes, "{location}: {threads} threads");
        }
        for most in [1, 13, 256] {
            let mut source = Dribble { inner: synth(location), most };
            let model = fit(&mut source, &options);
            // Sums are added up in another order, so the last digits may differ; sample and atoms may not.
            assert_eq!(model.summary().rows, expected.summary().rows);
            assert_eq!(atoms(&model), atoms(&expected), "{location}: {most}");
            let (a, b) = (predict(&model, synth(location).as_mut()), predict(&expected, synth(location).as_mut()));
            assert_close(&a.values, &b.values, 1e-4);
            assert_close(&a.probabilities, &b.probabilities, 1e-3);
        }
    }
}

#[test]
fn enough_atoms_make_it_exact() {
    let location = "synth:friedman?n=300";
    for family in [
        Kernel::gaussian(1.0).unwrap(),
        Kernel::laplacian(1.0).unwrap(),
        Kernel::matern32(1.0).unwrap(),
        Kernel::matern52(1.0).unwrap(),
    ] {
        for dictionary in [DictionaryMethod::RpCholesky, DictionaryMethod::Uniform] {
            for intercept in [true, false] {
                let solver = SolverOptions { ridge: Ridge::Fixed(0.05), intercept };
                let options =
                    FitOptions { kernel: KernelFamily::of(family), dictionary: Some(dictionary), solver, ..fixed(400) };
                let nystrom = predict(&fit(synth(location).as_mut(), &options), synth(location).as_mut());
                let all = predict(&fit_exact(synth(location).as_mut(), &options), synth(location).as_mut());
                assert_close(&nystrom.values, &all.values, 1e-3);
                assert_close(&nystrom.deviations, &all.deviations, 1e-3);
            }
        }
    }
}

#[test]
fn enough_atoms_make_classes_exact() {
    let location = "synth:rings?n=300";
    let options = FitOptions { bandwidth: Bandwidth::Fixed(0.7), ..fixed(400) };
    let nystrom = predict(&fit(synth(location).as_mut(), &options), synth(location).as_mut());
    let all = predict(&fit_exact(synth(location).as_mut(), &options), synth(location).as_mut());
    assert_eq!(nystrom.values, all.values);
    assert_close(&nystrom.probabilities, &all.probabilities, 1e-2);
}

#[test]
fn many_classes_are_told_apart() {
    let mut rng = Generator::new(3);
    let mut data = Vec::new();
    for i in 0..600 {
        let class = i % 5;
        let angle = f64::from(class) * 1.2566;
        data.extend([angle.cos() + 0.2 * rng.normal(), angle.sin() + 0.2 * rng.normal(), f64::from(class * 10)]);
    }
    let mut source = MemorySource::table(["a", "b", "class"].map(str::to_owned).to_vec(), data).unwrap();
    let table = TableOptions { task: TaskRequest::Classification, scale: Scale::Standard, ..TableOptions::default() };
    let options = FitOptions { table, budget: 60, ..FitOptions::default() };
    for model in [fit(&mut source, &options), fit_exact(&mut source, &options)] {
        assert_eq!(model.labels(), ["0", "10", "20", "30", "40"]);
        assert_eq!(model.regression().outputs(), 5);
        let out = predict(&model, &mut source);
        let right = out.values.iter().enumerate().filter(|(i, value)| **value == (i % 5) as f64).count();
        assert!(right > 580, "{right}");
        for p in out.probabilities.chunks_exact(5) {
            assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12 && p.iter().all(|p| (0.0..=1.0).contains(p)));
        }
    }
}

#[test]
fn several_targets_are_fitted_as_each_alone() {
    let (data, names) = table(250, 4);
    let mut source = MemorySource::table(names, data).unwrap();
    let with = |targets: &[&str], ignore: &[&str]| {
        let table = TableOptions {
            targets: columns(targets),
            ignore: columns(ignore),
            task: TaskRequest::Regression,
            scale: Scale::Standard,
            ..TableOptions::default()
        };
        FitOptions { table, ..fixed(60) }
    };
    for exactly in [false, true] {
        let mut run = |options: &FitOptions| {
            let model = if exactly { fit_exact(&mut source, options) } else { fit(&mut source, options) };
            predict(&model, &mut source)
        };
        let both = run(&with(&["y", "z"], &[]));
        for (t, alone) in [run(&with(&["y"], &["z"])), run(&with(&["z"], &["y"]))].iter().enumerate() {
            let pick = |numbers: &[f64]| numbers.iter().skip(t).step_by(2).copied().collect::<Vec<_>>();
            assert_close(&pick(&both.values), &alone.values, 1e-9);
            assert_close(&pick(&both.deviations), &alone.deviations, 1e-9);
        }
    }
}

#[test]
fn sparse_rows_predict_what_dense_ones_do() {
    let (data, _) = table(300, 5);
    let (mut dense, mut labels) = (Vec::new(), Vec::new());
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in data.chunks_exact(5) {
        dense.extend_from_slice(&row[..4]);
        labels.push(row[3]);
        for (j, &x) in row[..3].iter().enumerate().filter(|(_, x)| **x != 0.0) {
            indices.push(j as u32);
            values.push(x);
        }
        offsets.push(indices.len());
    }
    let rows = SparseRows::new(&offsets, &indices, &values, 3).unwrap();
    let mut sparse = MemorySource::labelled(rows, labels).unwrap();
    let mut dense = MemorySource::table(["a", "b", "c", "y"].map(str::to_owned).to_vec(), dense).unwrap();
    for scale in [Scale::None, Scale::Standard] {
        for dictionary in DictionaryMethod::BATCH {
            let table = TableOptions { scale, task: TaskRequest::Regression, ..TableOptions::default() };
            let options = FitOptions { table, dictionary: Some(dictionary), ..fixed(50) };
            let a = predict(&fit(&mut sparse, &options), &mut sparse);
            let b = predict(&fit(&mut dense, &options), &mut dense);
            assert_close(&a.values, &b.values, 1e-6);
            assert_close(&a.deviations, &b.deviations, 1e-6);
        }
    }
}

/// A model of every shape: numbers, classes, exact, sparse, without deviations.
fn models() -> Vec<TrainedModel> {
    let small = FitOptions { budget: 12, sample: Some(80), ..FitOptions::default() };
    let numbers = fit(synth("synth:friedman?n=120").as_mut(), &small);
    let weighted = FitOptions { dictionary: Some(DictionaryMethod::BatchExact), ..small.clone() };
    let polynomial = FitOptions { kernel: KernelFamily::of(Kernel::polynomial(3, 0.7, 1.3).unwrap()), ..small.clone() };
    let rows = SparseRows::new(&[0, 1, 1, 3, 4], &[0, 2, 900, 1], &[1.0, -2.5, 3.0, 0.1], 1000).unwrap();
    let mut sparse = MemorySource::labelled(rows, vec![0.5, 1.25, 2.0, -3.0]).unwrap();
    vec![
        numbers.clone().without_uncertainty(),
        numbers,
        fit(synth("synth:rings?n=120").as_mut(), &small),
        fit(synth("synth:friedman?n=120").as_mut(), &weighted),
        fit(synth("synth:friedman?n=120").as_mut(), &polynomial),
        fit_exact(synth("synth:friedman?n=30").as_mut(), &small),
        fit(&mut sparse, &small),
    ]
}

#[test]
fn files_come_back_to_the_last_bit() {
    for model in models() {
        let bytes = model.to_bytes().unwrap();
        let loaded = TrainedModel::from_bytes("memory", &bytes).unwrap();
        assert!(loaded.to_bytes().unwrap() == bytes);
        assert_eq!(loaded.summary(), model.summary());
        if !model.preprocessor().is_sparse() {
            let location =
                if model.calibration().is_some() { "synth:rings?n=50&seed=3" } else { "synth:friedman?n=50&seed=3" };
            let mut source = synth(location);
            let with_std = model.regression().uncertainty().is_some();
            if with_std {
                let (a, b) = (predict(&model, source.as_mut()), predict(&loaded, source.as_mut()));
                assert_eq!((a.values, a.deviations, a.probabilities), (b.values, b.deviations, b.probabilities));
            }
        }
    }
}

#[test]
fn damaged_files_are_always_refused() {
    let refused = |bytes: &[u8], what: &str| {
        let result = std::panic::catch_unwind(|| TrainedModel::from_bytes("damaged.nys", bytes).map(|_| ()));
        let error = result.unwrap_or_else(|_| panic!("{what}: panic")).expect_err(what);
        assert!(error.to_string().contains("damaged.nys"), "{what}: {error}");
    };
    for (number, model) in models().iter().enumerate() {
        let mut bytes = model.to_bytes().unwrap();
        // Every bit of the beginning, then one bit of every few bytes.
        let step = bytes.len().div_ceil(700);
        for at in (0..200).chain((200..bytes.len()).step_by(step)) {
            for bit in if at < 120 { 0..8 } else { at as u32 % 8..at as u32 % 8 + 1 } {
                bytes[at] ^= 1 << bit;
                refused(&bytes, &format!("model {number}, byte {at}, bit {bit}"));
                bytes[at] ^= 1 << bit;
            }
        }
        for length in (0..bytes.len()).step_by(step).chain([bytes.len() - 1]) {
            refused(&bytes[..length], &format!("model {number}, {length} bytes"));
        }
        bytes.push(0);
        refused(&bytes, &format!("model {number}, a byte more"));
    }
}

#[test]
fn the_bandwidth_stays_in_its_range_and_is_always_the_same() {
    for location in ["synth:friedman?n=400", "synth:waves?n=400", "synth:rings?n=400", "synth:adversarial?n=400"] {
        for seed in [0, 7] {
            let auto = FitOptions { budget: 30, seed, ..FitOptions::default() };
            let choice = choice_of(location, &auto);
            assert_eq!(choice, choice_of(location, &auto));
            let model = fit(synth(location).as_mut(), &auto);
            let bandwidth = choice.kernel.bandwidth().unwrap();
            assert_eq!(model.regression().kernel().bandwidth(), Some(bandwidth));
            let median = FitOptions { bandwidth: Bandwidth::Median, ..auto };
            let middle = choice_of(location, &median).kernel.bandwidth().unwrap();
            for tried in choice.tried.iter().map(|(bandwidth, _)| *bandwidth).chain([bandwidth]) {
                assert!((middle / 64.0..=middle * 64.0).contains(&tried), "{location}: {tried} {middle}");
            }
            // It is the best of those tried.
            let least = choice.tried.iter().map(|(_, error)| *error).fold(f64::INFINITY, f64::min);
            let chosen = choice.tried.iter().find(|(tried, _)| *tried == bandwidth).unwrap();
            assert_eq!(chosen.1, least, "{location}");
            let alignment = FitOptions { bandwidth: Bandwidth::Alignment, ..median };
            let aligned = choice_of(location, &alignment).kernel.bandwidth().unwrap();
            let step: f64 = 2.0 * aligned.log2();
            assert!(
                (step - step.round()).abs() < 1e-9 && (2f64.powi(-5)..=2f64.powi(7)).contains(&aligned),
                "{aligned}"
            );
        }
    }
    // Rows that are all alike have no median distance: still a number above 0.
    let alike = vec![2.0; 30];
    let rows = Rows::dense(&alike, 10, 3).unwrap();
    assert!(median_bandwidth(rows) > 0.0 && median_bandwidth(rows).is_finite());
}

/// A row far from all others, where a function that grows is thought to have grown on.
#[test]
fn outputs_of_far_rows_stay_near_the_targets_seen() {
    let mut rng = Generator::new(12);
    let targets = |x: [f64; 2]| [x[0] * x[1], 100.0 + x[0]];
    let data: Vec<f64> = (0..400)
        .flat_map(|_| {
            let x: [f64; 2] = std::array::from_fn(|_| rng.normal());
            x.into_iter().chain(targets(x))
        })
        .collect();
    let names = ["a", "b", "y", "z"].map(str::to_owned).to_vec();
    let mut source = MemorySource::table(names.clone(), data.clone()).unwrap();
    let mut far = MemorySource::table(names, vec![9.0, 9.0, 0.0, 0.0]).unwrap();
    let table = TableOptions {
        targets: columns(&["y", "z"]),
        task: TaskRequest::Regression,
        scale: Scale::None,
        ..TableOptions::default()
    };
    let wide = FitOptions { table, bandwidth: Bandwidth::Fixed(6.0), ..fixed(60) };
    let linear =
        FitOptions { kernel: KernelFamily::of(Kernel::Linear), bandwidth: Bandwidth::Auto, budget: 3, ..wide.clone() };
    for method in [fit, fit_exact] {
        let model = method(&mut source, &wide);
        let seen = || data.chunks_exact(4).map(|row| row[2]);
        let (low, high) = (seen().fold(f64::INFINITY, f64::min), seen().fold(f64::NEG_INFINITY, f64::max));
        let predicted = predict(&model, &mut far).values;
        assert!((predicted[0] - (high + 0.1 * (high - low))).abs() < 1e-9, "{predicted:?} {low} {high}");
        assert!((96.0..105.0).contains(&predicted[1]), "{predicted:?}");
        // Saved, the same.
        let loaded = TrainedModel::from_bytes("saved", &model.to_bytes().unwrap()).unwrap();
        assert_eq!(predict(&loaded, &mut far).values, predict(&model, &mut far).values);
        // A linear kernel is to go on where no rows have been.
        assert!((predict(&method(&mut source, &linear), &mut far).values[1] - 109.0).abs() < 0.1);
    }
}
