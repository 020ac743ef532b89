//! Laws of the streaming learner.

use super::{StreamingOptions, StreamingRidge};
use crate::error::Error;
use crate::fit::Bandwidth;
use crate::model::PredictWorkspace;
use crate::persist::Container;
use crate::random::Generator;
use crate::rows::{Row, RowBlock, Rows, SparseRows};
use crate::solver::Ridge;

pub(super) const COLS: usize = 3;

/// Rows with a smooth target, and codes of two outputs.
pub(super) fn stream(rows: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut rng = Generator::new(seed);
    let data: Vec<f64> = (0..rows * COLS).map(|_| rng.normal()).collect();
    let codes = data
        .chunks_exact(COLS)
        .flat_map(|x| [(2.0 * x[0]).sin() + x[1] * x[2], if x[0] + x[1] > 0.0 { 1.0 } else { -1.0 }])
        .map(|y| y + 0.1 * rng.normal())
        .collect();
    (data, codes)
}

pub(super) fn options(budget: usize) -> StreamingOptions {
    StreamingOptions { budget, seed: 5, ..StreamingOptions::default() }
}

/// Learns rows `start..end` in pieces of the given sizes, over and over.
pub(super) fn feed(
    learner: &mut StreamingRidge,
    data: &[f64],
    codes: &[f64],
    range: (usize, usize),
    sizes: &[usize],
) -> Vec<f64> {
    let mut out = Vec::new();
    let (outputs, (mut start, end)) = (learner.outputs(), range);
    for size in sizes.iter().cycle() {
        if start == end {
            return out;
        }
        let next = (start + size).min(end);
        let rows = Rows::dense(&data[start * COLS..next * COLS], next - start, COLS).unwrap();
        learner.learn(rows, &codes[outputs * start..outputs * next], None, &mut out).unwrap();
        start = next;
    }
    out
}

pub(super) fn bytes(learner: &StreamingRidge) -> Vec<u8> {
    learner.to_container().unwrap().to_bytes().unwrap()
}

#[test]
fn it_learns_and_keeps_to_its_budget() {
    let (data, codes) = stream(2000, 1);
    let mut learner = StreamingRidge::new(options(40), 2).unwrap();
    for start in (0..2000).step_by(50) {
        feed(&mut learner, &data, &codes, (start, start + 50), &[50]);
        assert!(learner.dictionary().is_none_or(|d| d.len() <= 40));
    }
    assert!(learner.score().rows() + learner.waiting() as u64 == 2000);
    let variance: f64 = (0..2)
        .map(|t| {
            let values = || codes.iter().skip(t).step_by(2);
            let mean = values().sum::<f64>() / 2000.0;
            values().map(|y| (y - mean).powi(2)).sum::<f64>() / 2000.0
        })
        .sum();
    let (all, recent) = (learner.score().mse(), learner.score().recent_mse());
    assert!(recent < 0.25 * variance && recent < all, "{recent} {all} {variance}");
}

#[test]
fn cutting_the_stream_does_not_matter() {
    let (data, codes) = stream(900, 2);
    let run = |sizes: &[usize]| {
        let mut learner = StreamingRidge::new(options(30), 2).unwrap();
        let mut out = feed(&mut learner, &data, &codes, (0, 900), sizes);
        learner.flush(&mut out).unwrap();
        (out, bytes(&learner))
    };
    let whole = run(&[900]);
    assert_eq!(whole.0.len(), 1800);
    assert_eq!(run(&[1]), whole);
    assert_eq!(run(&[7, 100, 1, 33]), whole);
}

#[test]
fn threads_do_not_matter() {
    let (data, codes) = stream(700, 3);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut learner = StreamingRidge::new(options(60), 2).unwrap();
            let out = feed(&mut learner, &data, &codes, (0, 700), &[128]);
            (out, bytes(&learner))
        })
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn saved_and_loaded_it_goes_on_with_the_same_bits() {
    let (data, codes) = stream(1500, 4);
    let mut whole = StreamingRidge::new(options(25), 2).unwrap();
    let expected = feed(&mut whole, &data, &codes, (0, 1500), &[1500]);
    // In the head without and with a learner, in the bank, after it; with and without rows that wait.
    for cut in [3, 100, 300, 777, 1100, 1344] {
        let mut first = StreamingRidge::new(options(25), 2).unwrap();
        let mut out = feed(&mut first, &data, &codes, (0, cut), &[64]);
        let file = Container::from_bytes("test", &bytes(&first)).unwrap();
        let mut second = StreamingRidge::from_container(file).unwrap();
        assert_eq!(bytes(&second), bytes(&first), "cut at {cut}");
        out.extend(feed(&mut second, &data, &codes, (cut, 1500), &[99]));
        assert!(out == expected && bytes(&second) == bytes(&whole), "cut at {cut}");
    }
}

#[test]
fn damaged_files_are_refused() {
    let (data, codes) = stream(300, 4);
    let mut learner = StreamingRidge::new(options(10), 2).unwrap();
    feed(&mut learner, &data, &codes, (0, 290), &[290]);
    let good = learner.to_container().unwrap();
    let spoil = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut file = good.clone();
        change(&mut file.document);
        StreamingRidge::from_container(file).is_err()
    };
    assert!(!spoil(&|_| {}));
    assert!(spoil(&|d| d["outputs"] = 3.into()));
    assert!(spoil(&|d| d["features"] = 2.into()));
    assert!(spoil(&|d| d["head"] = serde_json::Value::Null) || spoil(&|d| d["bank"] = serde_json::Value::Null));
    assert!(spoil(&|d| d["options"]["budget"] = 0.into()));
    let mut other = good.clone();
    other.kind = "krr-model".to_owned();
    assert!(StreamingRidge::from_container(other).is_err());
}

#[test]
fn bad_rows_are_refused_and_change_nothing() {
    let (data, codes) = stream(50, 5);
    let mut learner = StreamingRidge::new(options(10), 2).unwrap();
    feed(&mut learner, &data, &codes, (0, 50), &[50]);
    let before = bytes(&learner);
    let mut out = Vec::new();
    let good = Rows::dense(&data[..COLS], 1, COLS).unwrap();
    let nan = [f64::NAN; COLS];
    let bad = Rows::dense(&nan, 1, COLS).unwrap();
    assert!(learner.learn(bad, &[0.0, 0.0], None, &mut out).is_err());
    assert!(learner.learn(good, &[f64::INFINITY, 0.0], None, &mut out).is_err());
    assert!(learner.learn(good, &[0.0], None, &mut out).is_err());
    assert!(learner.learn(good, &[0.0, 0.0], Some(&[0.0]), &mut out).is_err());
    assert!(learner.learn(Rows::dense(&data[..2], 1, 2).unwrap(), &[0.0, 0.0], None, &mut out).is_err());
    assert!(out.is_empty() && bytes(&learner) == before);
}

#[test]
fn predictions_are_those_of_the_model_of_the_rows_before() {
    let (data, codes) = stream(600, 6);
    let mut learner = StreamingRidge::new(options(20), 2).unwrap();
    // Beyond the bank, at the end of a block: the next row is predicted by the model as it stands.
    feed(&mut learner, &data, &codes, (0, 599), &[599]);
    let mut out = Vec::new();
    learner.flush(&mut out).unwrap();
    let model = learner.solve().unwrap().unwrap().model;
    let row = Rows::dense(&data[599 * COLS..], 1, COLS).unwrap();
    let mut expected = Vec::new();
    model.predict(row, &mut PredictWorkspace::default(), &mut expected).unwrap();
    out.clear();
    learner.learn(row, &codes[2 * 599..], None, &mut out).unwrap();
    learner.flush(&mut out).unwrap();
    // The intercept's prior is all that differs.
    assert!(out.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5), "{out:?} {expected:?}");
}

#[test]
fn sparse_rows_and_constant_targets_are_learnt() {
    let mut learner = StreamingRidge::new(options(8), 1).unwrap();
    let mut out = Vec::new();
    for i in 0..1200u32 {
        let (offsets, indices, values) = ([0, 2], [i % 7, 7 + i % 3], [1.0, 0.5]);
        let rows = Rows::Sparse(SparseRows::new(&offsets, &indices, &values, 10).unwrap());
        // Nothing to learn for longer than the head is.
        let code = if i < 600 { 1.0 } else { f64::from(i % 7) };
        learner.learn(rows, &[code], None, &mut out).unwrap();
    }
    learner.flush(&mut out).unwrap();
    assert_eq!(out.len(), 1200);
    assert!((out[599] - 1.0).abs() < 1e-9);
    let late: f64 = (1100..1200).map(|i| (out[i] - (i % 7) as f64).powi(2)).sum::<f64>() / 100.0;
    // Half of all rows said 1, so more than noise is left; the mean alone would leave 4.
    assert!(late < 2.0, "{late}");
}

#[test]
fn forgetting_follows_a_change() {
    let mut rng = Generator::new(9);
    let data: Vec<f64> = (0..4000).map(|_| rng.normal()).collect();
    let run = |half_life: Option<f64>| {
        let mut learner = StreamingRidge::new(StreamingOptions { half_life, ..options(20) }, 1).unwrap();
        let mut out = Vec::new();
        for (i, x) in data.iter().enumerate() {
            let code = if i < 2000 { x.sin() } else { -x.sin() };
            learner.learn(Rows::dense(&[*x], 1, 1).unwrap(), &[code], None, &mut out).unwrap();
        }
        learner.score().recent_mse()
    };
    let (kept, forgotten) = (run(None), run(Some(200.0)));
    assert!(forgotten < 0.1 * kept, "{forgotten} {kept}");
}

#[test]
fn weights_are_repetitions() {
    let (data, codes) = stream(400, 7);
    let fixed = StreamingOptions { bandwidth: Bandwidth::Fixed(1.5), ridge: Ridge::Fixed(0.5), ..options(15) };
    let mut heavy = StreamingRidge::new(fixed.clone(), 2).unwrap();
    let mut light = StreamingRidge::new(fixed, 2).unwrap();
    let rows = Rows::dense(&data, 400, COLS).unwrap();
    let mut out = Vec::new();
    heavy.learn(rows, &codes, Some(&vec![4.0; 400]), &mut out).unwrap();
    light.learn(rows, &codes, None, &mut out).unwrap();
    heavy.flush(&mut out).unwrap();
    light.flush(&mut out).unwrap();
    let (heavy, light) = (heavy.solve().unwrap().unwrap(), light.solve().unwrap().unwrap());
    assert!(heavy.residuals[0] > 3.0 * light.residuals[0]);
}

#[test]
fn parts_of_a_common_start_merge_exactly() {
    for half_life in [None, Some(150.0)] {
        merge_parts_of_a_common_start(&StreamingOptions { half_life, ..options(20) });
    }
}

fn merge_parts_of_a_common_start(options: &StreamingOptions) {
    let (data, codes) = stream(1600, 8);
    let mut start = StreamingRidge::new(options.clone(), 2).unwrap();
    feed(&mut start, &data, &codes, (0, 700), &[700]);
    let empty = start.like().unwrap().unwrap();
    let mut parts: Vec<StreamingRidge> =
        (0..2).map(|_| StreamingRidge::from_container(empty.to_container().unwrap()).unwrap()).collect();
    feed(&mut parts[0], &data, &codes, (700, 1200), &[500]);
    feed(&mut parts[1], &data, &codes, (1200, 1600), &[400]);
    let mut whole = StreamingRidge::from_container(empty.to_container().unwrap()).unwrap();
    feed(&mut whole, &data, &codes, (700, 1600), &[900]);
    whole.flush(&mut Vec::new()).unwrap();
    let second = parts.pop().unwrap();
    let merged = parts.pop().unwrap().merge(second).unwrap();
    assert_eq!((merged.rows(), merged.score().rows()), (900, 900));
    assert!(merged.status().unwrap().last_change.is_none());
    // Rows of the first part have faded by as many as came after them.
    let (merged_weight, weight) = [&merged, &whole].map(|l| l.leader().unwrap().sums().seen()).into();
    assert!((merged_weight / weight - 1.0_f64).abs() < 1e-9, "{merged_weight} {weight}");
    let row = Rows::dense(&data[..COLS], 1, COLS).unwrap();
    let predict = |learner: &StreamingRidge| {
        let mut values = Vec::new();
        let options = crate::solver::SolverOptions { ridge: Ridge::Fixed(0.1), intercept: true };
        let leader = learner.leader().unwrap();
        let fit = leader.sums().solve(leader.kernel(), leader.dictionary(), &options).unwrap();
        fit.model.predict(row, &mut PredictWorkspace::default(), &mut values).unwrap();
        values
    };
    let (a, b) = (predict(&merged), predict(&whole));
    // Where rows fade, sums are multiplied again and again, and few rows are left in them.
    let tolerance = if options.half_life.is_some() { 1e-6 } else { 1e-8 };
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < tolerance), "{a:?} {b:?}");
}

#[test]
fn parts_with_atoms_of_their_own_merge_within_the_budget_and_stay_good() {
    let (data, codes) = stream(3000, 10);
    let fixed = StreamingOptions { bandwidth: Bandwidth::Fixed(2.0), ..options(60) };
    let part = |range: (usize, usize), seed: u64| {
        let mut learner = StreamingRidge::new(StreamingOptions { seed, ..fixed.clone() }, 2).unwrap();
        feed(&mut learner, &data, &codes, range, &[500]);
        learner
    };
    let merged = part((0, 1200), 1).merge(part((1200, 2400), 2)).unwrap();
    assert!(merged.dictionary().unwrap().len() <= 60);
    let status = merged.status().unwrap();
    let change = status.last_change.unwrap();
    assert!(status.changes == 1 && change.rows == 2400 && change.new_atoms > 0, "{status:?}");
    assert!(change.lost < 0.2 && change.captured_after > 0.5, "{change:?}");
    let test = RowBlock::gather(Rows::dense(&data, 3000, COLS).unwrap(), &(2400..3000).collect::<Vec<_>>());
    let error = |learner: &StreamingRidge| {
        let mut values = Vec::new();
        let model = learner.solve().unwrap().unwrap().model;
        model.predict(test.rows(), &mut PredictWorkspace::default(), &mut values).unwrap();
        values.iter().zip(&codes[4800..]).map(|(a, b)| (a - b).powi(2)).sum::<f64>()
    };
    let mut whole = part((0, 2400), 1);
    whole.flush(&mut Vec::new()).unwrap();
    let half = part((0, 1200), 1);
    let (merged, whole, half) = (error(&merged), error(&whole), error(&half));
    assert!(merged < 1.5 * whole, "merged {merged}, whole {whole}, half {half}");
}

#[test]
fn incompatible_learners_are_refused_by_name() {
    let (data, codes) = stream(700, 11);
    let part = |options: StreamingOptions| {
        let mut learner = StreamingRidge::new(options, 2).unwrap();
        feed(&mut learner, &data, &codes, (0, 700), &[700]);
        learner
    };
    let fixed = |bandwidth: f64| StreamingOptions { bandwidth: Bandwidth::Fixed(bandwidth), ..options(20) };
    let refused = |a: StreamingOptions, b: StreamingOptions| match part(a).merge(part(b)) {
        Err(Error::Incompatible { field, .. }) => field,
        other => panic!("{:?}", other.map(|_| ())),
    };
    assert_eq!(refused(fixed(1.0), fixed(2.0)), "bandwidth");
    assert_eq!(refused(fixed(1.0), StreamingOptions { budget: 21, ..fixed(1.0) }), "budget");
    assert_eq!(refused(fixed(1.0), StreamingOptions { half_life: Some(9.0), ..fixed(1.0) }), "half-life");
}

#[test]
fn targets_can_be_counted_from_elsewhere() {
    let (data, codes) = stream(900, 12);
    let far: Vec<f64> = codes.chunks_exact(2).flat_map(|y| [y[0] + 3.0, y[1] - 7.0]).collect();
    let fixed = StreamingOptions { bandwidth: Bandwidth::Fixed(1.5), ridge: Ridge::Fixed(0.5), ..options(30) };
    let row = Rows::dense(&data[..COLS], 1, COLS).unwrap();
    // With rows that wait in the head, and after it.
    for end in [101, 870] {
        let (mut here, mut there) =
            (StreamingRidge::new(fixed.clone(), 2).unwrap(), StreamingRidge::new(fixed.clone(), 2).unwrap());
        feed(&mut here, &data, &codes, (0, end), &[end]);
        feed(&mut there, &data, &far, (0, end), &[end]);
        here.shift_codes(&[3.0, -7.0]).unwrap();
        let answers = |learner: &mut StreamingRidge| {
            let mut values = [0.0; 2];
            learner.predict_row(row.row(0), &mut values).unwrap();
            values
        };
        let (a, b) = (answers(&mut here), answers(&mut there));
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-8), "{a:?} {b:?}");
    }
}

/// Rows of features 0..4, of which all from `late` on may also have features 4..7; sparse, as wide as they reach or as told.
#[test]
fn sparse_rows_become_wider() {
    let mut rng = Generator::new(13);
    let rows: Vec<(Vec<u32>, Vec<f64>)> = (0..1500)
        .map(|i| {
            let width = if i < 900 { 4 } else { 7 };
            let indices: Vec<u32> = (0..width).filter(|_| rng.bernoulli(0.6)).collect();
            let values = indices.iter().map(|_| rng.normal()).collect();
            (indices, values)
        })
        .collect();
    // With noise, so that ridges are not so small that rounding errors show: rows of 4 columns are evaluated as dense ones,
    // of 7 as sparse ones.
    let noise: Vec<f64> = rows.iter().map(|_| 0.3 * rng.normal()).collect();
    let signal = |i: usize| rows[i].0.iter().zip(&rows[i].1).map(|(j, v)| f64::from(j + 1) * v).sum::<f64>().sin();
    let code = |i: usize| signal(i) + noise[i];
    let give = |learner: &mut StreamingRidge, range: std::ops::Range<usize>, told: usize, out: &mut Vec<f64>| {
        for i in range {
            let (indices, values) = &rows[i];
            let reach = indices.last().map_or(1, |last| *last as usize + 1);
            let offsets = [0, indices.len()];
            let view = SparseRows::new(&offsets, indices, values, reach.max(told)).unwrap();
            learner.learn(Rows::Sparse(view), &[code(i)], None, out).unwrap();
        }
    };
    let (mut narrow, mut wide) = (Vec::new(), Vec::new());
    let mut growing = StreamingRidge::new(options(30), 1).unwrap();
    give(&mut growing, 0..1500, 0, &mut narrow);
    let mut told = StreamingRidge::new(options(30), 1).unwrap();
    give(&mut told, 0..1500, 7, &mut wide);
    assert_eq!((growing.width(), told.width()), (Some(7), Some(7)));
    let apart = narrow.iter().zip(&wide).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(apart < 1e-8, "{apart}");
    // Saved before and after rows became wider.
    for cut in [700, 1000] {
        let mut first = StreamingRidge::new(options(30), 1).unwrap();
        let mut out = Vec::new();
        give(&mut first, 0..cut, 0, &mut out);
        let file = Container::from_bytes("test", &bytes(&first)).unwrap();
        let mut second = StreamingRidge::from_container(file).unwrap();
        give(&mut second, cut..1500, 0, &mut out);
        assert!(out == narrow && bytes(&second) == bytes(&growing), "cut at {cut}");
    }
    // Single rows reach as far as they reach.
    let mut single = StreamingRidge::new(options(30), 1).unwrap();
    for (i, (indices, values)) in rows.iter().enumerate() {
        let mut predicted = [0.0];
        single.learn_row(Row::Sparse { indices, values }, &[code(i)], 1.0, &mut predicted).unwrap();
        assert!(narrow.get(i).is_none_or(|expected| (expected - predicted[0]).abs() < 1e-8));
    }
    assert_eq!(single.width(), Some(7));
    let dense = Rows::dense(&[0.0; 8], 1, 8).unwrap();
    assert!(growing.learn(dense, &[0.0], None, &mut Vec::new()).is_err());
}

/// Smooth functions of few columns, whose kernels are badly conditioned and whose best ridges come close to rounding.
#[test]
fn smooth_targets_of_two_columns_are_learnt_and_solved() {
    for (noise, budget) in [(0.2, 40), (0.02, 60), (0.0, 40)] {
        for seed in 0..4 {
            let mut rng = Generator::new(seed);
            let mut learner = StreamingRidge::new(StreamingOptions { budget, seed, ..options(budget) }, 1).unwrap();
            let data: Vec<f64> = (0..2 * 2600).map(|_| rng.normal()).collect();
            let codes: Vec<f64> =
                data.chunks_exact(2).map(|x| (2.0 * x[0]).sin() + x[1] + noise * rng.normal()).collect();
            let mut out = Vec::new();
            learner.learn(Rows::dense(&data, 2600, 2).unwrap(), &codes, None, &mut out).unwrap();
            learner.flush(&mut out).unwrap();
            let fit = learner.solve().unwrap().unwrap();
            let late: f64 = out[1600..].iter().zip(&codes[1600..]).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / 1000.0;
            // 40 atoms in the plane leave out less than 0.002 of this function's variance; noise has its own.
            assert!(late < 1.2 * noise * noise + 0.002, "noise {noise}, seed {seed}: {late}");
            assert!(fit.choice.ridge < 1e3 * learner.ridge().unwrap());
        }
    }
}

#[test]
fn half_of_the_bank_goes_whenever_the_rows_have_doubled_and_all_but_one_at_its_end() {
    let (data, codes) = stream(1100, 8);
    let mut learner = StreamingRidge::new(options(25), 2).unwrap();
    let mut sizes = Vec::new();
    for start in 0..1100 {
        feed(&mut learner, &data, &codes, (start, start + 1), &[1]);
        let document = learner.to_container().unwrap().document;
        let members = document["bank"]["members"].as_array().map_or(0, Vec::len);
        if start + 1 > 256 && sizes.last() != Some(&members) {
            sizes.push(members);
        }
    }
    // Several, fewer and fewer, then one; the doubling leaves at most half.
    assert!(sizes[0] > 2 && sizes.is_sorted_by(|a, b| a > b) && sizes.last() == Some(&1), "{sizes:?}");
    assert!(sizes.windows(2).any(|pair| pair[1] <= pair[0].div_ceil(2)), "{sizes:?}");
}

#[test]
fn numbers_too_large_to_square_are_refused_before_anything_is_learnt() {
    let (data, codes) = stream(300, 31);
    let mut learner = StreamingRidge::new(options(20), 2).unwrap();
    feed(&mut learner, &data, &codes, (0, 300), &[300]);
    let before = bytes(&learner);
    let refused = |learner: &mut StreamingRidge, row: [f64; COLS], codes: [f64; 2], weight: f64| {
        let rows = Rows::dense(&row, 1, COLS).unwrap();
        learner.learn(rows, &codes, Some(&[weight]), &mut Vec::new()).unwrap_err().to_string()
    };
    assert!(refused(&mut learner, [1.0; COLS], [0.0, 1e300], 1.0).contains("target: found 1"));
    assert!(refused(&mut learner, [1.0; COLS], [0.0; 2], 1e300).contains("weight: found 1"));
    assert!(refused(&mut learner, [1.0, -1e200, 1.0], [0.0; 2], 1.0).contains("row: found -1"));
    assert!(bytes(&learner) == before);
}

#[test]
fn numbers_that_overflowed_are_not_saved() {
    let (data, codes) = stream(30, 32);
    let learner = || {
        let mut learner = StreamingRidge::new(options(20), 2).unwrap();
        feed(&mut learner, &data, &codes, (0, 30), &[30]);
        learner
    };
    let message = |learner: &StreamingRidge| learner.to_container().unwrap_err().to_string();
    let mut overflowed = learner();
    overflowed.pending.codes[0] = f64::INFINITY;
    let tensor = message(&overflowed);
    assert!(
        tensor.contains("cannot be saved") && tensor.contains("pending_codes") && tensor.contains("inf"),
        "{tensor}"
    );
    // In JSON infinity becomes null, which is no number.
    let mut overflowed = learner();
    overflowed.owed = vec![f64::INFINITY, 0.0];
    let document = message(&overflowed);
    assert!(document.contains("cannot be saved") && document.contains("null"), "{document}");
}
