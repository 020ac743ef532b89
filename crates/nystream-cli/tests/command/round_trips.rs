//! fit, inspect, score, predict, for every text format and kind of target.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::support::{Folder, cells, column, csv, numbers};

/// Root mean squared difference of predictions from the truth.
fn rmse(predicted: &[f64], truth: &[f64]) -> f64 {
    assert_eq!(predicted.len(), truth.len());
    (predicted.iter().zip(truth).map(|(p, t)| (p - t).powi(2)).sum::<f64>() / truth.len() as f64).sqrt()
}

/// Fits, scores and predicts; the score must be that of the predictions, and good.
fn regression(folder: &Folder, train: &str, test: &str, options: &str, truth: &[f64]) -> Vec<f64> {
    let report = folder.json(&format!("fit {train} --model m.nys --bandwidth 1.5 --ridge 0.01 {options}"));
    assert_eq!((&report["task"], &report["features"]), (&"regression".into(), &2.into()), "{report}");
    let reading = options.split(" --").filter(|o| o.contains("header") || o.contains("delimiter"));
    let reading: String = reading.map(|o| format!(" --{}", o.trim_start_matches("--"))).collect();
    let score = folder.json(&format!("score m.nys {test}{reading}"));
    let predicted = column(&folder.works(&format!("predict m.nys {test}{reading}")), 0);
    let error = rmse(&predicted, truth);
    assert!((score["rmse"].as_f64().unwrap() - error).abs() < 1e-9, "{score} {error}");
    assert!(error < 0.1 && score["r2"].as_f64().unwrap() > 0.95, "{score}");
    predicted
}

#[test]
fn one_table_in_many_formats_gives_one_model() {
    let folder = Folder::new();
    let (train, test) = (numbers(300, 1), numbers(100, 2));
    let truth: Vec<f64> = test.iter().map(|row| row[2]).collect();
    let write = |name: &str, line: &dyn Fn(&[f64; 3]) -> String, header: &str| {
        for (part, rows) in [("train", &train), ("test", &test)] {
            let lines: String = rows.iter().map(|row| line(row) + "\n").collect();
            folder.put(&format!("{part}.{name}"), format!("{header}{lines}"));
        }
    };
    let comma = |[a, b, y]: &[f64; 3]| format!("{a},{b},{y}");
    write("csv", &comma, "a,b,y\n");
    write("bare.csv", &comma, "");
    write("semicolon.csv", &|[a, b, y]| format!("{a};{b};{y}"), "a;b;y\n");
    write("tsv", &|[a, b, y]| format!("{a}\t{b}\t{y}"), "a\tb\ty\n");
    write("jsonl", &|[a, b, y]| format!("{{\"a\":{a},\"b\":{b},\"y\":{y}}}"), "");
    write("libsvm", &|[a, b, y]| format!("{y} 1:{a} 2:{b}"), "");
    for part in ["train", "test"] {
        let mut file = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        file.write_all(&folder.bytes(&format!("{part}.csv"))).unwrap();
        folder.put(&format!("{part}.csv.gz"), file.finish().unwrap());
    }
    let expected = regression(&folder, "train.csv", "test.csv", "", &truth);
    for (name, options) in [
        ("bare.csv", ""),
        ("bare.csv", "--header no"),
        ("semicolon.csv", "--delimiter ;"),
        ("tsv", ""),
        ("csv.gz", ""),
        ("jsonl", ""),
        ("libsvm", ""),
    ] {
        let predicted = regression(&folder, &format!("train.{name}"), &format!("test.{name}"), options, &truth);
        for (p, e) in predicted.iter().zip(&expected) {
            // Sparse rows are not centred, so that other digits are rounded.
            let tolerance = if name == "libsvm" { 1e-6 } else { 1e-12 };
            assert!((p - e).abs() < tolerance, "{name}: {p} {e}");
        }
    }
    // The target by number, from either end, and first instead of last.
    write("first.csv", &|[a, b, y]| format!("{y},{a},{b}"), "y,a,b\n");
    for target in ["y", "1", "-3"] {
        let options = format!("--target {target}");
        assert_eq!(regression(&folder, "train.first.csv", "test.first.csv", &options, &truth), expected, "{target}");
    }
    let report = folder.json("inspect m.nys");
    assert_eq!((&report["target"], &report["feature_names"]), (&"y".into(), &"a, b".into()), "{report}");
    // Predictions stay between these.
    let [low, high] = [0, 1].map(|end| report["outputs_within"][0][end].as_f64().unwrap());
    assert!(low < high && expected.iter().all(|p| (low..=high).contains(p)), "{report}");
}

#[test]
fn standard_input_with_the_exact_method() {
    let folder = Folder::new();
    let text = csv(150, 1);
    folder.put("data.csv", &text);
    let run = folder.run_with("fit - --model piped.nys --method exact --json", &text);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    folder.works("fit data.csv --model read.nys --method exact -q");
    assert_eq!(folder.bytes("piped.nys"), folder.bytes("read.nys"));
    let predicted = folder.run_with("predict piped.nys -", &text);
    assert_eq!(predicted.out, folder.works("predict piped.nys data.csv"));
    assert_eq!(predicted.code, Some(0));
}

#[test]
fn two_classes_in_libsvm() {
    let folder = Folder::new();
    let mut text = String::new();
    for [a, b, _] in numbers(400, 3) {
        let side = if a * a + 0.1 * b > 1.5 { "+1" } else { "-1" };
        writeln!(text, "{side} 1:{a} 4:{b}").unwrap();
    }
    folder.put("data.libsvm", text);
    let report = folder.json("fit data.libsvm --model m.nys");
    assert_eq!(report["task"], "classification of 2 classes", "{report}");
    let score = folder.json("score m.nys data.libsvm");
    assert!(score["accuracy"].as_f64().unwrap() > 0.97, "{score}");
    let sum = score["accuracy"].as_f64().unwrap() + score["mistake_rate"].as_f64().unwrap();
    assert!((sum - 1.0).abs() < 1e-12, "{score}");
    let out = folder.works("predict m.nys data.libsvm");
    assert!(cells(&out).iter().all(|row| ["1", "-1"].contains(&row[0])), "{out}");
    let inside = folder.json("inspect m.nys");
    // Outputs of classes say how sure they are: they have no limits.
    assert!(inside["sparse"] == true && inside.get("outputs_within").is_none(), "{inside}");
}

#[test]
fn many_classes_with_text_labels() {
    let folder = Folder::new();
    let mut text = String::from("a,b,kind\n");
    for [a, b, _] in numbers(400, 4) {
        let kind = if b > 6.0 {
            "\"high, dry\""
        } else if a > 0.0 {
            "right"
        } else {
            "left"
        };
        writeln!(text, "{a},{b},{kind}").unwrap();
    }
    folder.put("data.csv", text);
    folder.works("fit data.csv --model m.nys -q");
    let score = folder.json("score m.nys data.csv");
    assert!(score["accuracy"].as_f64().unwrap() > 0.95, "{score}");
    let out = folder.works("predict m.nys data.csv --probabilities");
    let (header, rows) = out.split_once('\n').unwrap();
    for label in ["left", "right", "\"probability_high, dry\""] {
        assert!(header.contains(label), "{header}");
    }
    assert!(rows.contains("\"high, dry\","));
    for line in rows.lines() {
        let line = line.replace("\"high, dry\"", "high");
        let p: Vec<f64> = line.split(',').skip(1).map(|cell| cell.parse().unwrap()).collect();
        assert_eq!(p.len(), 3);
        assert!(p.iter().all(|p| (0.0..=1.0).contains(p)) && (p.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{line}");
    }
    // Predictions go to a file, too, the same.
    let report = folder.json("predict m.nys data.csv --probabilities --out p.csv");
    assert_eq!(report["rows"], 400);
    assert_eq!(folder.bytes("p.csv"), out.as_bytes());
}

#[test]
fn several_targets_are_as_good_as_one_at_a_time() {
    let folder = Folder::new();
    let mut text = String::from("a,b,y,z\n");
    for [a, b, y] in numbers(250, 5) {
        writeln!(text, "{a},{b},{y},{}", a * a - 0.3 * b).unwrap();
    }
    folder.put("data.csv", text);
    let settings = "--bandwidth 1.5 --ridge 0.01 -q";
    folder.works(&format!("fit data.csv --model both.nys --target y --target z {settings}"));
    folder.works(&format!("fit data.csv --model y.nys --target y --ignore z {settings}"));
    folder.works(&format!("fit data.csv --model z.nys --target z --ignore y {settings}"));
    let both = folder.works("predict both.nys data.csv --std");
    assert!(both.starts_with("y,z,std_y,std_z\n"), "{both}");
    for (target, at) in [("y", 0), ("z", 1)] {
        let alone = folder.works(&format!("predict {target}.nys data.csv --std"));
        for (index, own) in [(at, 0), (at + 2, 1)] {
            for (x, y) in column(&both, index).iter().zip(column(&alone, own)) {
                assert!((x - y).abs() < 1e-8, "{target}: {x} {y}");
            }
        }
    }
    let score = folder.json("score both.nys data.csv");
    let (y, z) = (&score["targets"][0], &score["targets"][1]);
    assert_eq!((&y["target"], &z["target"]), (&"y".into(), &"z".into()));
    assert!(y["r2"].as_f64().unwrap() > 0.9 && z["rmse"].as_f64().unwrap() < 0.2, "{score}");
}

#[test]
fn categories_learnt_or_listed() {
    let folder = Folder::new();
    let mut text = String::from("a,colour,y\n");
    for (i, [a, _, _]) in numbers(200, 6).iter().enumerate() {
        let (colour, value) = [("red", 1.0), ("blue", -2.0), ("green", 4.0)][i % 3];
        writeln!(text, "{a},{colour},{}", a + value).unwrap();
    }
    folder.put("data.csv", text);
    let report = folder.json("fit data.csv --model m.nys --categorical one-hot");
    assert_eq!(report["features"], 4, "{report}");
    assert!(folder.json("score m.nys data.csv")["rmse"].as_f64().unwrap() < 0.1);
    assert_eq!(folder.json("inspect m.nys")["categorical"], "colour");
    let learnt = folder.works("predict m.nys data.csv");
    folder.works("fit data.csv --model listed.nys -q --categorical colour=blue,green,red");
    let listed = folder.works("predict listed.nys data.csv");
    for (x, y) in column(&learnt, 0).iter().zip(column(&listed, 0)) {
        assert!((x - y).abs() < 1e-6, "{x} {y}");
    }
    folder.put("other.csv", "a,colour\n1,mauve\n");
    folder.refuses("predict m.nys other.csv", &["other.csv", "row 1", "column 'colour'", "mauve"]);
    let parts = ["data.csv", "column 'colour'", "red"];
    folder.refuses("fit data.csv --model n.nys --categorical colour=blue,green", &parts);
}

#[test]
fn missing_cells_filled_or_dropped() {
    let folder = Folder::new();
    let mut text = String::from("a,b,y\n");
    for (i, [a, b, y]) in numbers(200, 7).iter().enumerate() {
        if i % 10 == 3 {
            writeln!(text, "{a},,{y}").unwrap();
        } else {
            writeln!(text, "{a},{b},{y}").unwrap();
        }
    }
    folder.put("data.csv", text);
    let mean = folder.json("fit data.csv --model mean.nys --missing mean");
    assert_eq!((&mean["rows"], mean.get("rows_dropped")), (&200.into(), None), "{mean}");
    assert_eq!(folder.works("predict mean.nys data.csv").lines().count(), 201);
    let drop = folder.json("fit data.csv --model drop.nys --missing drop");
    assert_eq!((&drop["rows"], &drop["rows_dropped"]), (&180.into(), &20.into()), "{drop}");
    let out = folder.works("predict drop.nys data.csv");
    assert!(out.starts_with("row,y\n1,"), "{out}");
    let rows: Vec<usize> = cells(&out).iter().map(|row| row[0].parse().unwrap()).collect();
    assert_eq!(rows, (1..=200).filter(|row| row % 10 != 4).collect::<Vec<_>>());
    assert_eq!(folder.json("score drop.nys data.csv")["rows"], 180);
}
