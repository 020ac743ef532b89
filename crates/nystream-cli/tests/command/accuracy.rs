//! Models fitted with the defaults are good, and their probabilities and deviations mean what they say.

use std::fmt::Write as _;

use crate::support::{Folder, Numbers, cells};

#[test]
fn friedman_comes_close_to_the_noise() {
    let folder = Folder::new();
    let fit = folder.json("fit synth:friedman?n=5000 --model m.nys --budget 500");
    let score = folder.json("score m.nys synth:friedman?n=4000&seed=9");
    let rmse = score["rmse"].as_f64().unwrap();
    // The noise has standard deviation 1, so nothing can do much better than that: 5 standard errors below.
    assert!(rmse < 1.15 && rmse > 1.0 - 5.0 / (2.0 * 4000f64).sqrt(), "{score}");
    let estimated = fit["estimated_rmse"].as_f64().unwrap();
    assert!((estimated / rmse - 1.0).abs() < 0.08, "{estimated} {rmse}");
    // Intervals of 90 %: four standard errors of a share of 4,000 are 1.9 %, the model's own error is the rest.
    assert!((score["coverage90"].as_f64().unwrap() - 0.9).abs() < 0.03, "{score}");
}

#[test]
fn rings_are_told_apart() {
    let folder = Folder::new();
    folder.works("fit synth:rings?n=2000 --model m.nys --budget 200 -q");
    let score = folder.json("score m.nys synth:rings?n=3000&seed=9");
    assert!(score["accuracy"].as_f64().unwrap() > 0.97, "{score}");
    assert!(score["log_loss"].as_f64().unwrap() < 0.1, "{score}");
}

/// Labels drawn with known probabilities.
fn drawn(rows: usize, seed: u64) -> (String, Vec<f64>) {
    let mut numbers = Numbers::new(seed);
    let (mut text, mut truth) = (String::from("a,b,y\n"), Vec::new());
    for _ in 0..rows {
        let (a, b) = (4.0 * numbers.next() - 2.0, 2.0 * numbers.next() - 1.0);
        let p = 1.0 / (1.0 + (-(2.0 * (1.5 * a).sin() + b)).exp());
        let label = if numbers.next() < p { "yes" } else { "no" };
        truth.push(p);
        writeln!(text, "{a},{b},{label}").unwrap();
    }
    (text, truth)
}

#[test]
fn probabilities_are_frequencies() {
    let (rows, folder) = (3000, Folder::new());
    folder.put("train.csv", drawn(rows, 1).0);
    let (test, truth) = drawn(rows, 2);
    folder.put("test.csv", &test);
    for method in ["--budget 200", "--method exact"] {
        let size = if method.contains("exact") { "few.csv" } else { "train.csv" };
        folder.put("few.csv", drawn(800, 1).0);
        let learnt = if size == "few.csv" { 800.0 } else { rows as f64 };
        folder.works(&format!("fit {size} --model m.nys -q {method}"));
        let out = folder.works("predict m.nys test.csv --probabilities");
        assert!(out.starts_with("label,probability_no,probability_yes\n"), "{out:.60}");
        let p: Vec<f64> = cells(&out).iter().map(|row| row[2].parse().unwrap()).collect();
        let happened: Vec<f64> = cells(&test).iter().map(|row| f64::from(u8::from(row[2] == "yes"))).collect();
        // In all, and among rows said to be unlikely, open and likely: means agree with frequencies within four standard
        // errors, of which the test has its share and the training rows have theirs.
        for range in [0.0..=1.0, 0.0..=0.3, 0.3..=0.7, 0.7..=1.0] {
            let group: Vec<usize> = (0..rows).filter(|&i| range.contains(&p[i])).collect();
            let count = group.len() as f64;
            assert!(count > 200.0, "{method} {range:?}: {count}");
            let mean = group.iter().map(|&i| p[i]).sum::<f64>() / count;
            let frequency = group.iter().map(|&i| happened[i]).sum::<f64>() / count;
            let variance = group.iter().map(|&i| truth[i] * (1.0 - truth[i])).sum::<f64>() / count;
            let error = (variance * (1.0 / count + rows as f64 / (count * learnt))).sqrt();
            assert!((mean - frequency).abs() < 4.0 * error, "{method} {range:?}: {mean} {frequency} {error}");
        }
        // And they come close to the probabilities that the labels were drawn with.
        let distance = p.iter().zip(&truth).map(|(p, t)| (p - t).abs()).sum::<f64>() / rows as f64;
        assert!(distance < 0.06, "{method}: {distance}");
    }
}

/// Labels that have nothing to do with the features: the answer is their frequency, whatever the scores.
#[test]
fn noise_gets_frequencies() {
    let folder = Folder::new();
    let mut numbers = Numbers::new(8);
    let mut text = String::from("a,b,c,y\n");
    for _ in 0..400 {
        let label = if numbers.next() < 0.5 { "heads" } else { "tails" };
        writeln!(text, "{},{},{},{label}", numbers.next(), numbers.next(), numbers.next()).unwrap();
    }
    folder.put("data.csv", text);
    for method in ["--budget 100", "--method exact"] {
        folder.works(&format!("fit data.csv --model m.nys -q {method}"));
        assert!(folder.json("inspect m.nys")["calibration_slope"].as_f64().unwrap() >= 0.0);
        let loss = folder.json("score m.nys data.csv")["log_loss"].as_f64().unwrap();
        // Guessing one half costs ln 2.
        assert!(loss < 0.7, "{method}: {loss}");
    }
}
