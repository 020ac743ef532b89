//! `evaluate --learner`, and `learners`.

use std::fmt::Write as _;

use crate::support::{Folder, Numbers};

/// Two classes by a circle, as LIBSVM: sparse, half of each.
fn rings(rows: usize, seed: u64) -> String {
    let mut numbers = Numbers::new(seed);
    let mut text = String::new();
    for _ in 0..rows {
        let (x, y) = (4.0 * numbers.next() - 2.0, 4.0 * numbers.next() - 2.0);
        let _ = writeln!(text, "{} 1:{x:.5} 2:{y:.5}", if x * x + y * y < 2.5 { "+1" } else { "-1" });
    }
    text
}

/// The names of all learners, and of those that take numbers.
fn names(folder: &Folder) -> Vec<(String, bool)> {
    let table = folder.json("learners");
    let list = table["learners"].as_array().unwrap();
    let numbers = |entry: &serde_json::Value| entry["targets"].as_array().unwrap().contains(&"numbers".into());
    list.iter().map(|entry| (entry["name"].as_str().unwrap().to_owned(), numbers(entry))).collect()
}

#[test]
fn every_learner_learns_classes_and_those_that_can_learn_numbers() {
    let folder = Folder::new();
    folder.put("rings.libsvm", rings(1500, 1));
    for (name, numbers) in names(&folder) {
        // By its paper's shares a budget of 60 would leave skegd 9 points and 6 features, too few for a ring.
        let own = if name == "skegd" { "--sampled-share 0.5 --rank 15" } else { "" };
        let line = format!(
            "evaluate rings.libsvm --learner {name} --budget 60 --scale none --bandwidth 0.7 --shuffle 1 {own}"
        );
        let report = folder.json(&line);
        assert_eq!((&report["learner"], &report["rows"]), (&name.as_str().into(), &1500.into()), "{report}");
        // Always the same class would be wrong in about half of the rows.
        assert!(report["mistake_rate"].as_f64().unwrap() < 0.25, "{name}: {report}");
        assert!(report["atoms"].as_u64().unwrap() > 0 && report["bandwidth"] == 0.7, "{report}");
        let wave = format!("evaluate synth:waves?n=1500&seed=1 --learner {name} --budget 60");
        if numbers {
            let report = folder.json(&wave);
            assert!(report["mse"].as_f64().unwrap().is_finite() && report.get("mistake_rate").is_none(), "{report}");
        } else {
            folder.refuses(&wave, &[&name, "numbers", "nystream learners"]);
        }
    }
}

#[test]
fn permutations_give_the_same_on_any_number_of_threads() {
    let folder = Folder::new();
    folder.put("rings.libsvm", rings(600, 2));
    for name in ["rbp", "fogd", "bogd", "streaming-ridge"] {
        let line = format!("evaluate rings.libsvm --learner {name} --budget 20 --shuffle 3 --permutations 4");
        let (one, two) = (folder.json(&format!("{line} --threads 1")), folder.json(&format!("{line} --threads 2")));
        for key in ["mistake_rate", "bandwidth", "atoms", "undecided"] {
            assert_eq!(one[key], two[key], "{name} {key}");
        }
        assert!(one["mistake_rate"]["sd"].as_f64().unwrap() > 0.0 && one["permutations"] == 4, "{one}");
        let single = folder.json(&format!("evaluate rings.libsvm --learner {name} --budget 20 --shuffle 3"));
        assert!(single["mistake_rate"].is_f64() && single["recent_mistake_rate"].is_f64(), "{single}");
    }
}

#[test]
fn options_of_learners_are_taken_and_checked_by_their_names() {
    let folder = Folder::new();
    folder.put("rings.libsvm", rings(400, 3));
    let line = "evaluate rings.libsvm --budget 20 --shuffle 0";
    let usual = folder.json(&format!("{line} --learner kogd"));
    let small = folder.json(&format!("{line} --learner kogd --step-size 0.001 --loss logistic"));
    assert_ne!(usual["mistake_rate"], small["mistake_rate"]);
    assert_eq!(small["options"]["step-size"], "0.001");
    // The outputs of the first rows, before there is anything to go by.
    assert!(usual["undecided"].as_u64().unwrap() >= 1, "{usual}");
    folder.refuses(&format!("{line} --learner kogd --step-size -1"), &["kogd", "step-size", "'-1'", "above 0"]);
    folder.refuses(&format!("{line} --learner kogd --rank 3"), &["kogd", "'rank', expected", "step-size"]);
    folder.refuses(&format!("{line} --learner kogd --stepsize 3"), &["--stepsize", "step-size"]);
    folder.refuses(&format!("{line} --learner kodg"), &["'kodg'; the nearest is 'kogd'"]);
    folder.refuses(&format!("{line} --learner xyz"), &["'xyz', expected"]);
    folder.refuses(&format!("{line} --learner nogd --rank 21"), &["rank", "21", "20"]);
    folder.refuses(&format!("{line} --learner kogd --budget 0"), &["budget"]);
    folder.refuses(&format!("{line} --learner fogd --kernel linear"), &["kernel", "distance"]);
    folder.refuses(&format!("{line} --ridge much"), &["ridge", "'much'", "auto"]);
    // Before the data is read.
    folder.refuses("evaluate nowhere.csv --learner kogd --step-size x", &["step-size"]);
}

#[test]
fn bandwidths_come_from_alignment_median_or_as_given() {
    let folder = Folder::new();
    folder.put("rings.libsvm", rings(400, 4));
    let of = |how: &str| {
        let line = format!("evaluate rings.libsvm --learner kogd --scale none --shuffle 0 {how}");
        folder.json(&line)["bandwidth"].as_f64().unwrap()
    };
    let grid = of("--bandwidth alignment").log2() * 2.0;
    assert!((grid - grid.round()).abs() < 1e-9 && (-10.0..=14.0).contains(&grid), "{grid}");
    assert_eq!(of("--bandwidth auto"), of("--bandwidth alignment"));
    assert_ne!(of("--bandwidth median"), of("--bandwidth alignment"));
    assert_eq!(of("--bandwidth 0.3"), 0.3);
}

#[test]
fn more_classes_than_two_are_for_learners_that_take_them() {
    let folder = Folder::new();
    let mut text = "x,target\n".to_owned();
    (0..600).for_each(|i| _ = writeln!(text, "{},{}", i % 17, ["a", "b", "c"][i % 17 % 3]));
    folder.put("three.csv", text);
    folder.refuses("evaluate three.csv --learner rbp", &["3 classes", "streaming-ridge"]);
    assert!(folder.json("evaluate three.csv --budget 20")["mistake_rate"].as_f64().unwrap() < 0.5);
}

#[test]
fn the_table_is_printed() {
    let folder = Folder::new();
    let table = folder.works("learners");
    for (name, _) in names(&folder) {
        assert!(table.contains(&name), "{name} is not in: {table}");
        let full = folder.works(&format!("learners {name}"));
        assert!(full.starts_with(&format!("{name}: ")), "{full}");
    }
    let kogd = folder.works("learners kogd");
    assert!(kogd.contains("Kivinen") && kogd.contains("--step-size") && kogd.contains('η'), "{kogd}");
    folder.refuses("learners projectrom", &["'projectrom'; the nearest is 'projectron'"]);
    let json = folder.json("learners nogd");
    assert_eq!(json["learners"][0]["options"][3]["name"], "rank");
}

#[test]
fn tuning_reports_all_it_tried_and_what_it_chose_is_run() {
    let folder = Folder::new();
    folder.put("rings.libsvm", rings(500, 5));
    let line = "evaluate rings.libsvm --budget 20 --bandwidth 0.7 --shuffle 0 --learner kogd";
    let report = folder.json(&format!("{line} --tune 0.4"));
    let tuned = &report["tuned"];
    assert_eq!((&tuned["rows"], tuned["tried"].as_array().unwrap().len()), (&200.into(), 36), "{report}");
    let options = format!(
        "--step-size {} --regularization {}",
        tuned["chosen"]["step-size"].as_str().unwrap(),
        tuned["chosen"]["regularization"].as_str().unwrap()
    );
    assert_eq!(folder.json(&format!("{line} {options}"))["mistake_rate"], report["mistake_rate"]);
    assert_eq!(folder.json(&format!("{line} --tune 0.4 --threads 1"))["tuned"], *tuned);
    assert!(folder.works(&format!("{line} --tune 0.4")).contains("(best of 36 on 200 rows)"));
    // Before the data is read.
    folder.refuses("evaluate nowhere.csv --learner kogd --tune 1.5", &["tune", "1.5", "at most 1"]);
    folder.refuses("evaluate nowhere.csv --tune 0.5", &["tune", "streaming-ridge", "nothing to tune"]);
    folder.refuses(&format!("evaluate nowhere.csv --learner kogd --tune 0.5 {options}"), &["nothing to tune"]);
}
