//! Laws of the head's fits, of limits of outputs, of targets that do not vary and of several with other units.

use super::tests::{COLS, bytes, feed, options, stream};
use super::{StreamingOptions, StreamingRidge};
use crate::fit::{Bandwidth, KernelFamily};
use crate::kernel::Kernel;
use crate::model::PredictWorkspace;
use crate::random::Generator;
use crate::rows::{Row, Rows};

/// Rows by the thousand have the fits of the head made side by side, before their turn.
#[test]
fn fits_made_before_their_turn_are_those_made_in_turn() {
    let (data, numbers) = stream(2600, 31);
    let first = |of: &dyn Fn(usize) -> f64| (0..2600).map(of).collect::<Vec<f64>>();
    let number = |i: usize| numbers[2 * i];
    let one_in = |n: usize| first(&|i| if number(i) > 0.0 && i % n == 0 { 1.0 } else { -1.0 });
    let usual = options(110);
    let cases: [(&str, StreamingOptions, Vec<f64>); 6] = [
        ("numbers", usual.clone(), first(&number)),
        ("all candidates", options(40), first(&number)),
        ("two classes", usual.clone(), one_in(1)),
        ("a rare class, whose head is longer", usual.clone(), one_in(40)),
        (
            "targets that begin to vary after the first head",
            options(60),
            first(&|i| if i < 700 { 2.0 } else { number(i) }),
        ),
        ("fading", StreamingOptions { half_life: Some(300.0), ..usual }, first(&number)),
    ];
    for (name, options, codes) in cases {
        let run = |sizes: &[usize]| {
            let mut learner = StreamingRidge::new(options.clone(), 1).unwrap();
            let mut out = feed(&mut learner, &data, &codes, (0, 2600), sizes);
            learner.flush(&mut out).unwrap();
            (out, bytes(&learner))
        };
        let at_once = run(&[2600]);
        assert!(at_once == run(&[1]), "{name}: one by one");
        assert!(at_once == run(&[7, 600, 90]), "{name}: in pieces");
    }
}

#[test]
fn what_goes_wrong_with_a_fit_made_before_its_turn_is_told_in_its_turn() {
    let (data, numbers) = stream(1200, 32);
    let codes: Vec<f64> = numbers.chunks_exact(2).map(|codes| codes[0]).collect();
    // Kernels as usual, all 0, and too large to be squared and summed.
    let learn = |scale: f64, sizes: &[usize]| {
        let data: Vec<f64> = data.iter().map(|x| scale * x).collect();
        let options = StreamingOptions { kernel: KernelFamily::of(Kernel::Linear), ..options(110) };
        let mut learner = StreamingRidge::new(options, 1).unwrap();
        let (mut out, mut start) = (Vec::new(), 0);
        for size in sizes.iter().cycle() {
            let end = (start + size).min(1200);
            let rows = Rows::dense(&data[start * COLS..end * COLS], end - start, COLS).unwrap();
            if let Err(error) = learner.learn(rows, &codes[start..end], None, &mut out) {
                return (out.len(), learner.rows(), error.to_string());
            }
            start = end;
            if start == 1200 {
                break;
            }
        }
        (out.len(), learner.rows(), String::new())
    };
    for scale in [1.0, 1e-170, 1e150] {
        assert_eq!(learn(scale, &[1200]), learn(scale, &[1]), "{scale}");
    }
}

/// A row far from all others, where a function that grows is thought to have grown on.
fn with_a_far_row() -> (Vec<f64>, Vec<f64>) {
    let (mut data, _) = stream(1500, 33);
    let codes = data.chunks_exact(COLS).map(|x| x[0] * x[1]).collect();
    data[1400 * COLS..1401 * COLS].copy_from_slice(&[9.0, 9.0, 0.0]);
    (data, codes)
}

#[test]
fn outputs_stay_near_the_targets_seen() {
    let (data, codes) = with_a_far_row();
    let options = StreamingOptions { bandwidth: Bandwidth::Fixed(6.0), ..options(60) };
    let mut learner = StreamingRidge::new(options.clone(), 1).unwrap();
    let mut out = feed(&mut learner, &data, &codes, (0, 1400), &[1400]);
    learner.flush(&mut out).unwrap();
    let (low, high) = codes[..1400].iter().fold((f64::MAX, f64::MIN), |(a, b), &y| (a.min(y), b.max(y)));
    let (range, far) = (high - low, Rows::dense(&data[1400 * COLS..1401 * COLS], 1, COLS).unwrap());
    // By itself it would be predicted more than a range away.
    let mut solved = learner.solve().unwrap().unwrap().model;
    let mut predicted = Vec::new();
    solved.predict(far, &mut PredictWorkspace::default(), &mut predicted).unwrap();
    let at_the_end = |y: f64| (y - (high + 0.1 * range)).abs() < 1e-12;
    assert!(at_the_end(predicted[0]), "{predicted:?}");
    solved = solved.with_limits(crate::model::OutputLimits::none()).unwrap();
    solved.predict(far, &mut PredictWorkspace::default(), &mut predicted).unwrap();
    assert!(predicted[0] > high + range, "{predicted:?} {low} {high}");
    // Saved, singly, and as a block, the same; afterwards the limits are those of this row too.
    let mut again = StreamingRidge::from_container(learner.to_container().unwrap()).unwrap();
    let (mut single, mut asked) = ([0.0], [0.0]);
    let row = Row::Dense(&data[1400 * COLS..1401 * COLS]);
    again.predict_row(row, &mut asked).unwrap();
    again.learn_row(row, &[codes[1400]], 1.0, &mut single).unwrap();
    let mut block = feed(&mut learner, &data, &codes, (1400, 1401), &[1]);
    learner.flush(&mut block).unwrap();
    assert!(at_the_end(single[0]) && asked == single && block == single, "{single:?} {block:?}");
    again.flush(&mut Vec::new()).unwrap();
    assert_eq!(bytes(&again), bytes(&learner));
    // A linear kernel is to go on where no rows have been.
    let (kernel, bandwidth) = (KernelFamily::of(Kernel::Linear), Bandwidth::Auto);
    let linear = StreamingOptions { kernel, bandwidth, ..options };
    let mut learner = StreamingRidge::new(linear, 1).unwrap();
    let line: Vec<f64> = data.chunks_exact(COLS).map(|x| x[0] + x[1]).collect();
    let mut out = feed(&mut learner, &data, &line, (0, 1401), &[1401]);
    learner.flush(&mut out).unwrap();
    assert!((out[1400] - 18.0).abs() < 0.1, "{}", out[1400]);
}

#[test]
fn limits_of_merged_learners_are_those_of_all_rows() {
    let (data, codes) = with_a_far_row();
    let options = StreamingOptions { bandwidth: Bandwidth::Fixed(6.0), ..options(60) };
    let learnt = |from: usize, to: usize, raise: f64| {
        let mut learner = StreamingRidge::new(options.clone(), 1).unwrap();
        let raised: Vec<f64> = codes.iter().map(|y| y + raise).collect();
        feed(&mut learner, &data, &raised, (from, to), &[200]);
        learner
    };
    let (a, b) = (learnt(0, 700, 0.0), learnt(700, 1400, 5.0));
    let mut expected = a.limits.clone();
    codes[..1400].iter().enumerate().for_each(|(i, y)| expected.take(&[y + if i < 700 { 0.0 } else { 5.0 }]));
    assert_eq!(a.merge(b).unwrap().limits, expected);
}

#[test]
fn targets_that_never_differ_are_a_constant_and_those_that_just_began_to_are_no_model_yet() {
    let (data, _) = stream(1300, 34);
    // Before the first choice, after some, and when rows have been forgotten.
    for count in [8, 100, 1300] {
        let mut learner = StreamingRidge::new(options(30), 1).unwrap();
        let codes = vec![2.5; 1300];
        let mut out = feed(&mut learner, &data, &codes, (0, count), &[50]);
        learner.flush(&mut out).unwrap();
        let model = learner.solve().unwrap().unwrap().model;
        let rows = Rows::dense(&data[..COLS * 20], 20, COLS).unwrap();
        let mut predicted = Vec::new();
        model.predict(rows, &mut PredictWorkspace::default(), &mut predicted).unwrap();
        assert!(predicted.iter().all(|p| (p - 2.5).abs() < 1e-12), "{count}: {predicted:?}");
        // It is for whoever asked: the learner goes on as if nobody had.
        let same = bytes(&learner);
        assert!(learner.solve().unwrap().is_some() && bytes(&learner) == same);
        let row = Row::Dense(&data[..COLS]);
        learner.learn_row(row, &[9.0], 1.0, &mut [0.0]).unwrap();
        learner.flush(&mut out).unwrap();
        assert!(learner.solve().unwrap().is_none(), "{count}");
    }
    let mut learner = StreamingRidge::new(options(30), 1).unwrap();
    let mut out = feed(&mut learner, &data, &[2.5; 7], (0, 7), &[7]);
    learner.flush(&mut out).unwrap();
    assert!(learner.solve().unwrap().is_none());
}

/// One target is wiggly and one smooth: which bandwidth serves both must not depend on the smooth one's unit.
#[test]
fn units_of_targets_do_not_matter() {
    let (data, _) = stream(2600, 35);
    let mut rng = Generator::new(36);
    let noise: Vec<f64> = (0..5200).map(|_| rng.normal()).collect();
    let learnt = |unit: f64| {
        let rows = data.chunks_exact(COLS).zip(noise.chunks_exact(2));
        let codes: Vec<f64> = rows
            .flat_map(|(x, noise)| [(3.0 * x[0]).sin() * x[1] + 0.1 * noise[0], unit * (x[0] - x[2] + 0.1 * noise[1])])
            .collect();
        let mut learner = StreamingRidge::new(options(60), 2).unwrap();
        let mut out = feed(&mut learner, &data, &codes, (0, 2600), &[2600]);
        learner.flush(&mut out).unwrap();
        let each: Vec<f64> = learner.score().of_each_number().map(|(all, _)| all).collect();
        (learner.kernel().copied().unwrap(), each)
    };
    let (kernel, each) = learnt(1.0);
    for unit in [1024.0, 1.0 / 1024.0] {
        let (same, scaled) = learnt(unit);
        assert_eq!(same, kernel, "{unit}");
        let apart = [scaled[0] / each[0], scaled[1] / (unit * unit * each[1])];
        assert!(apart.iter().all(|ratio| (ratio - 1.0).abs() < 1e-3), "{unit}: {apart:?}");
    }
}
