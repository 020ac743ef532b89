//! `fit` with every kind of dictionary.

use crate::support::Folder;

#[test]
fn every_dictionary_fits() {
    let folder = Folder::new();
    for method in ["uniform", "batch-exact", "two-pass-scores", "rpcholesky", "squeak", "ink-estimate", "ink-oracle"] {
        let options = "--budget 40 --sample 500 --bandwidth 5 --dictionary";
        let report = folder.json(&format!("fit synth:friedman?n=1500 --model m.nys {options} {method}"));
        assert_eq!((&report["dictionary"], &report["rows"]), (&method.into(), &1500.into()), "{report}");
        let atoms = report["atoms"].as_u64().unwrap();
        assert!((10..=40).contains(&atoms), "{report}");
        let score = folder.json("score m.nys synth:friedman?n=1000&seed=5");
        // A linear model has 2.66, the mean 4.98.
        assert!(score["rmse"].as_f64().unwrap() < 2.66, "{method}: {score}");
        let sequential = method == "squeak" || method.starts_with("ink");
        assert_eq!(report.get("dictionary_leverage_ridge").is_some(), sequential, "{report}");
        let inside = folder.json("inspect m.nys");
        assert_eq!(inside.get("dictionary_leverage_ridge"), report.get("dictionary_leverage_ridge"));
    }
    folder.refuses("fit synth:friedman?n=100 --model x.nys --dictionary ink", &["ink", "ink-estimate", "squeak"]);
}

#[test]
fn the_budget_is_filled_and_a_large_ridge_noted() {
    let folder = Folder::new();
    let line = "fit synth:waves?n=3000 --model m.nys --budget 60 --bandwidth 1 --dictionary squeak";
    let full = folder.json(line);
    assert!(full["atoms"].as_u64().unwrap() > 40 && full.get("note").is_none(), "{full}");
    let sparse = folder.json(&format!("{line} --leverage-ridge 500"));
    assert!(sparse["atoms"].as_u64() < full["atoms"].as_u64(), "{sparse}");
    assert!(sparse["note"].as_str().unwrap().contains("smaller one"), "{sparse}");
    assert!(sparse["dictionary_leverage_ridge"].as_f64().unwrap() >= 500.0, "{sparse}");
}

#[test]
fn squeak_looks_at_all_rows_and_the_others_at_the_sample() {
    let folder = Folder::new();
    // One row far away, which hardly any sample of 50 has: only who reads all rows finds it.
    let row =
        |i: u32| if i == 1500 { "90,500\n".to_owned() } else { format!("{},{}\n", f64::from(i % 83) / 83.0, i % 83) };
    let rows: String = (0..2000).map(row).collect();
    folder.put("data.csv", format!("a,y\n{rows}"));
    let options = "--scale none --bandwidth 0.3 --ridge 0.001 --no-intercept --budget 20 --sample 50";
    folder.put("far.csv", "a\n90\n");
    let far = |dictionary: &str| {
        folder.works(&format!("fit data.csv --model m.nys -q {options} --dictionary {dictionary}"));
        crate::support::column(&folder.works("predict m.nys far.csv"), 0)[0]
    };
    // Far from all atoms and without an intercept the prediction is 0.
    assert!((far("squeak") - 500.0).abs() < 20.0, "{}", far("squeak"));
    assert!((far("rpcholesky") - 500.0).abs() > 300.0, "{}", far("rpcholesky"));
}
