//! Laws of changing atoms.

use super::tests::{COLS, bytes, feed, options, stream};
use super::{Reopen, StreamingOptions, StreamingRidge};
use crate::fit::Bandwidth;
use crate::persist::Container;

/// Rows of which all from `moved` on come from a region of their own, with the same function there.
fn moving(rows: usize, moved: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let (mut data, codes) = stream(rows, seed);
    data[moved * COLS..].iter_mut().for_each(|v| *v += 12.0);
    (data, codes)
}

fn run(options: &StreamingOptions, data: &[f64], codes: &[f64]) -> (StreamingRidge, Vec<f64>) {
    let mut learner = StreamingRidge::new(options.clone(), 2).unwrap();
    let mut out = feed(&mut learner, data, codes, (0, codes.len() / 2), &[500]);
    learner.flush(&mut out).unwrap();
    (learner, out)
}

fn squared(out: &[f64], codes: &[f64], range: std::ops::Range<usize>) -> f64 {
    let span = 2 * range.start..2 * range.end;
    out[span.clone()].iter().zip(&codes[span]).map(|(p, y)| (p - y).powi(2)).sum::<f64>() / range.len() as f64
}

#[test]
fn rows_of_one_distribution_keep_their_atoms() {
    for seed in 1..=4 {
        let (data, codes) = stream(8000, seed);
        let (learner, out) = run(&StreamingOptions { seed, ..options(40) }, &data, &codes);
        let status = learner.status().unwrap();
        assert_eq!(status.changes, 0, "{status:?}");
        // It has looked: the window is as well spanned as all rows were, the head's included, which atoms know better.
        let (recent, all) = (status.recent_captured.unwrap(), status.captured.unwrap());
        assert!((recent - all).abs() < 0.05, "{recent} {all}");
        let (_, without) = run(&StreamingOptions { seed, reopen: Reopen::Off, ..options(40) }, &data, &codes);
        assert_eq!(out, without);
    }
}

#[test]
fn a_new_region_gets_atoms_and_is_learnt() {
    let (data, codes) = moving(9000, 5000, 3);
    let (with, out) = run(&options(60), &data, &codes);
    let (without, plain) = run(&StreamingOptions { reopen: Reopen::Off, ..options(60) }, &data, &codes);
    let status = with.status().unwrap();
    let change = status.last_change.unwrap();
    assert!((1..=4).contains(&status.changes) && status.atoms <= 60, "{status:?}");
    assert!(change.rows > 5000 && change.new_atoms > 0, "{change:?}");
    assert!(change.captured_after > change.captured_before && (0.0..1.0).contains(&change.lost), "{change:?}");
    assert_eq!(without.status().unwrap().changes, 0);
    assert_eq!(squared(&out, &codes, 0..5000), squared(&plain, &codes, 0..5000));
    // Old atoms are zero in the new region: there the intercept answers, and the variance of the targets is left. With
    // atoms of its own, about half of the budget, it is learnt nearly as the old one was: 0.17 of the former and 1.8 times
    // the latter were found.
    let (found, left) = (squared(&out, &codes, 8000..9000), squared(&plain, &codes, 8000..9000));
    let old = squared(&out, &codes, 4000..5000);
    assert!(found < 0.25 * left && found < 2.5 * old, "{found} {left} {old}");
}

#[test]
fn a_learner_saved_around_a_change_goes_on_with_the_same_bits() {
    let (data, codes) = moving(4200, 2500, 5);
    let mut whole = StreamingRidge::new(options(30), 2).unwrap();
    feed(&mut whole, &data, &codes, (0, 4200), &[4200]);
    let changed = whole.status().unwrap().last_change.unwrap().rows as usize;
    // In the bank, with a window of reference; with a part of a window; before and after the change.
    for cut in [600, 1700, changed - 10, changed + 300] {
        let mut first = StreamingRidge::new(options(30), 2).unwrap();
        feed(&mut first, &data, &codes, (0, cut), &[77]);
        let file = Container::from_bytes("test", &bytes(&first)).unwrap();
        let mut second = StreamingRidge::from_container(file).unwrap();
        feed(&mut second, &data, &codes, (cut, 4200), &[131]);
        assert!(bytes(&second) == bytes(&whole), "cut at {cut}");
    }
}

/// Rows sorted by their first column come from somewhere new all the time. Before new atoms were held where old rows had been,
/// squared errors were 20 and 280 times those without new atoms.
#[test]
fn sorted_rows_are_not_forgotten_when_atoms_change() {
    let mut changes = 0;
    for seed in 1..=2 {
        let (mut data, mut codes) = stream(6000, seed);
        for (i, (x, y)) in data.chunks_exact_mut(COLS).zip(codes.chunks_exact_mut(2)).enumerate() {
            let before = x[0];
            x[0] = 0.01 * i as f64;
            (y[0], y[1]) = (y[0] - (2.0 * before).sin() + x[0].sin(), x[0].cos());
        }
        let errors = |reopen: Reopen| {
            let (mut learner, out) = run(&StreamingOptions { reopen, seed, ..options(40) }, &data, &codes);
            let (mut learnt, mut row) = (Vec::new(), [0.0; 2]);
            for x in data.chunks_exact(COLS) {
                learner.predict_row(crate::rows::Row::Dense(x), &mut row).unwrap();
                learnt.extend_from_slice(&row);
            }
            (learner.status().unwrap().changes, squared(&out, &codes, 0..6000), squared(&learnt, &codes, 0..6000))
        };
        let (with, without) = (errors(Reopen::Auto), errors(Reopen::Off));
        changes += with.0;
        assert!(with.1 < 1.5 * without.1 && with.2 < 1.5 * without.2, "{seed}: {with:?} {without:?}");
    }
    assert!(changes > 0, "atoms never changed: the test shows nothing");
}

/// Atoms for a few hundred rows that come from elsewhere for once would be taken from where thousands are.
#[test]
fn an_excursion_does_not_take_the_atoms_of_all_other_rows() {
    let (mut data, codes) = stream(12_000, 4);
    data[8000 * COLS..8400 * COLS].iter_mut().for_each(|v| *v += 12.0);
    // Narrow: what one atom spans, no other does.
    let narrow = StreamingOptions { bandwidth: Bandwidth::Fixed(1.0), ..options(20) };
    let (with, out) = run(&narrow, &data, &codes);
    let status = with.status().unwrap();
    assert_eq!(status.changes, 0, "{status:?}");
    let (_, without) = run(&StreamingOptions { reopen: Reopen::Off, ..narrow }, &data, &codes);
    assert_eq!(out, without);
}
