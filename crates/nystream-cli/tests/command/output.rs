//! What is printed, and where.

use std::io::Read as _;
use std::process::Stdio;

use crate::support::{Folder, csv};

#[test]
fn json_has_the_keys_of_the_design() {
    let folder = Folder::new();
    folder.put("data.csv", csv(120, 1));
    let common = ["method", "rows", "budget", "atoms", "bandwidth", "effective_dim", "captured"];
    let measured = ["seconds_learn", "seconds_total", "peak_bytes"];
    let fit = folder.json("fit data.csv --model m.nys --budget 20");
    for key in common.iter().chain(&measured).chain(&["ridge"]) {
        assert!(fit.get(key).is_some(), "{key}: {fit}");
    }
    assert_eq!((&fit["method"], &fit["rows"], &fit["atoms"]), (&"two-pass".into(), &120.into(), &20.into()));
    let sketch = folder.json("sketch data.csv --budget 20 --check");
    for key in common.iter().chain(&measured).chain(&["bound_holds", "bound_ratio"]) {
        assert!(sketch.get(key).is_some(), "{key}: {sketch}");
    }
    assert!(sketch["bound_holds"].is_boolean());
    let inspect = folder.json("inspect m.nys");
    for key in common.iter().chain(&["ridge"]) {
        assert_eq!(inspect[key], fit[key], "{key}");
    }
    let score = folder.json("score m.nys data.csv");
    for key in ["rows", "rmse", "r2", "seconds_total"] {
        assert!(score[key].is_number(), "{key}: {score}");
    }
    assert_eq!(folder.json("fit data.csv --model e.nys --method exact")["method"], "exact");
}

#[test]
fn quiet_prints_nothing_but_what_was_asked_for() {
    let folder = Folder::new();
    folder.put("data.csv", csv(50, 1));
    for line in ["fit data.csv --model m.nys", "score m.nys data.csv", "inspect m.nys", "sketch data.csv --budget 5"] {
        assert!(!folder.works(line).is_empty());
        assert_eq!(folder.works(&format!("{line} --quiet")), "", "{line}");
        assert!(folder.works(&format!("{line} --quiet --json")).starts_with('{'), "{line}");
    }
    assert_eq!(folder.works("predict m.nys data.csv --quiet").lines().count(), 51);
    assert_eq!(folder.works("predict m.nys data.csv --quiet --out p.csv"), "");
}

#[test]
fn a_reader_that_stops_is_no_error() {
    let folder = Folder::new();
    folder.works("fit synth:friedman?n=500 --model m.nys --budget 10 -q");
    let mut child = folder
        .command("predict m.nys synth:friedman?n=50000")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut few = [0; 100];
    // Closed after this, like `| head` does.
    child.stdout.take().unwrap().read_exact(&mut few).unwrap();
    let end = child.wait_with_output().unwrap();
    assert_eq!((end.status.code(), String::from_utf8_lossy(&end.stderr).as_ref()), (Some(0), ""));
}

#[test]
fn completions_for_every_shell() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder.works(&format!("completions {shell}"));
        assert!(script.contains("nystream") && script.contains("leverage-ridge"), "{shell}");
    }
    folder.refuses("completions basic", &["basic", "bash"]);
}

#[test]
fn help_and_version_go_to_standard_output() {
    let folder = Folder::new();
    assert!(folder.works("--version").starts_with("nystream "));
    for command in ["", "fit", "predict", "score", "sketch", "merge", "inspect", "demo", "completions"] {
        assert!(folder.works(&format!("{command} --help")).contains("Usage: nystream"), "{command}");
    }
    assert_eq!(folder.run("").code, Some(2));
}

#[test]
fn demo_writes_a_picture_and_a_model() {
    let folder = Folder::new();
    let out = folder.works("demo --rows 3000 --budget 50 --out shown");
    for word in ["linear", "exact", "rmse", "friedman.nys", "demo.svg"] {
        assert!(out.contains(word), "{word}: {out}");
    }
    let picture = String::from_utf8(folder.bytes("shown/demo.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"), "{picture:.100}");
    assert!(picture.len() > 5000 && !picture.contains("NaN"));
    let score = folder.json("score shown/friedman.nys synth:friedman?n=2000&seed=77");
    // A linear model has 2.66; so few atoms cannot do much better.
    assert!(score["rmse"].as_f64().unwrap() < 2.5, "{score}");
    let mut files: Vec<_> =
        std::fs::read_dir(folder.path("shown")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["demo.svg", "friedman.nys"]);
}

#[test]
fn sketches_draw_their_scores() {
    let folder = Folder::new();
    folder.works("sketch synth:waves?n=300 --method batch-exact --budget 50 --plot scores.svg -q");
    let picture = String::from_utf8(folder.bytes("scores.svg")).unwrap();
    assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
    // Not only the methods that sample by scores can draw them.
    folder.works("sketch synth:waves?n=300 --method rpcholesky --budget 50 --plot chosen.svg -q");
    assert!(folder.path("chosen.svg").exists());
}
