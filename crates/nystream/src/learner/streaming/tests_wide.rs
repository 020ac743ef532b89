//! Laws of the streaming learner with so many atoms that rows go to the factor itself.

use super::tests::{COLS, bytes, feed, stream};
use super::{Reopen, StreamingOptions, StreamingRidge};
use crate::fit::Bandwidth;
use crate::model::PredictWorkspace;
use crate::persist::Container;
use crate::rows::{Row, Rows};
use crate::solver::Ridge;

/// Atoms, with which a head has 2,500 rows and a block 264.
const ATOMS: usize = 500;
const ROWS: usize = 5200;

fn options() -> StreamingOptions {
    StreamingOptions {
        bandwidth: Bandwidth::Fixed(1.0),
        ridge: Ridge::Fixed(0.1),
        reopen: Reopen::Off,
        budget: ATOMS,
        seed: 5,
        ..StreamingOptions::default()
    }
}

fn saved_and_loaded(learner: &StreamingRidge) -> StreamingRidge {
    StreamingRidge::from_container(Container::from_bytes("test", &bytes(learner)).unwrap()).unwrap()
}

/// A learner at the end of its head.
fn begun(data: &[f64], codes: &[f64]) -> StreamingRidge {
    let mut learner = StreamingRidge::new(options(), 2).unwrap();
    feed(&mut learner, data, codes, (0, 2500), &[2500]);
    learner
}

#[test]
fn looked_at_saved_and_loaded_it_goes_on_with_the_same_bits() {
    let (data, codes) = stream(ROWS, 4);
    let start = begun(&data, &codes);
    let mut whole = saved_and_loaded(&start);
    let expected = feed(&mut whole, &data, &codes, (2500, ROWS), &[ROWS]);
    // In the midst of a block, and at its end.
    for cut in [2900, 2500 + 4 * 264] {
        let mut first = saved_and_loaded(&start);
        let mut out = feed(&mut first, &data, &codes, (2500, cut), &[64]);
        let mut second = saved_and_loaded(&first);
        assert!(bytes(&second) == bytes(&first), "cut at {cut}");
        let (status, model) = (second.status().unwrap(), second.solve().unwrap().unwrap().model);
        assert!(status.effective_dim.unwrap() > 10.0 && model.centres().len() == ATOMS);
        out.extend(feed(&mut second, &data, &codes, (cut, ROWS), &[999]));
        assert!(out == expected && bytes(&second) == bytes(&whole), "cut at {cut}");
    }
}

#[test]
fn single_rows_are_predicted_as_in_blocks() {
    let (data, codes) = stream(3300, 4);
    let start = begun(&data, &codes);
    let (mut blocks, mut single) = (saved_and_loaded(&start), saved_and_loaded(&start));
    let mut expected = feed(&mut blocks, &data, &codes, (2500, 3300), &[800]);
    blocks.flush(&mut expected).unwrap();
    for (i, expected) in (2500..3300).zip(expected.chunks_exact(2)) {
        let mut found = [0.0; 2];
        let row = Row::Dense(&data[i * COLS..(i + 1) * COLS]);
        single.learn_row(row, &codes[2 * i..2 * i + 2], 1.0, &mut found).unwrap();
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{i}: {found:?} {expected:?}");
    }
    single.flush(&mut Vec::new()).unwrap();
    assert!(bytes(&single) == bytes(&blocks));
}

/// What one learnt from all rows, or parts of them from the same start, merged.
#[test]
fn parts_of_a_common_start_merge_to_what_one_learnt() {
    let (data, codes) = stream(ROWS, 8);
    let empty = begun(&data, &codes).like().unwrap().unwrap();
    let part = |range: (usize, usize)| {
        let mut part = saved_and_loaded(&empty);
        feed(&mut part, &data, &codes, range, &[700]);
        part
    };
    let merged = part((2500, 3900)).merge(part((3900, ROWS))).unwrap();
    // Merging with nothing: how sums are kept is chosen anew then too, and with it γ.
    let whole = part((2500, ROWS)).merge(saved_and_loaded(&empty)).unwrap();
    assert_eq!(merged.rows(), whole.rows());
    let predicted = |learner: &StreamingRidge| {
        let mut values = Vec::new();
        let model = learner.solve().unwrap().unwrap().model;
        let rows = Rows::dense(&data[..300 * COLS], 300, COLS).unwrap();
        model.predict(rows, &mut PredictWorkspace::default(), &mut values).unwrap();
        values
    };
    for (found, expected) in predicted(&merged).iter().zip(&predicted(&whole)) {
        assert!((found - expected).abs() < 1e-8, "{found} {expected}");
    }
}

#[test]
fn a_factor_that_no_rows_can_have_is_refused() {
    let (data, codes) = stream(3100, 4);
    let mut learner = begun(&data, &codes);
    feed(&mut learner, &data, &codes, (2500, 3100), &[600]);
    let good = learner.to_container().unwrap();
    let name = |end: &str| good.tensors().find(|(name, _)| name.ends_with(end)).unwrap().0.to_owned();
    let [lower, values, jitter] = ["_factor", "_factor_values", "_factor_jitter"].map(name);
    let width = ATOMS + 1;
    let refused = |change: &dyn Fn(&mut Container)| {
        let mut file = good.clone();
        change(&mut file);
        StreamingRidge::from_container(file).is_err()
    };
    let set = |file: &mut Container, row: usize, value: f64| {
        let mut matrix = file.take_lower(&lower, width).unwrap();
        matrix[(row, row)] = value;
        file.put_lower(&lower, matrix.as_ref()).unwrap();
    };
    assert!(!refused(&|file| set(file, 3, 1.0)));
    assert!(refused(&|file| set(file, 3, 0.0)));
    assert!(refused(&|file| set(file, ATOMS, -1.0)));
    assert!(refused(&|file| {
        file.take_f64(&jitter, 1).unwrap();
        file.put_f64(&jitter, &[1], vec![-1e-9]).unwrap();
    }));
    assert!(refused(&|file| {
        let (_, numbers) = file.take_f64(&values, 2).unwrap();
        file.put_f64(&values, &[1, 2 * width], numbers).unwrap();
    }));
}
