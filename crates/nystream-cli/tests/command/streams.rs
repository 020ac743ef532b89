//! `fit --method stream`: one reading, checkpoints, crashes; `evaluate`.

use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{Folder, Numbers, assert_refused, column, csv};

#[test]
fn a_stream_from_standard_input_becomes_a_model() {
    let folder = Folder::new();
    let text = csv(3000, 1);
    folder.put("test.csv", csv(500, 2));
    let run = folder.run_with("fit - --method stream --model m.nys --budget 50 --json", &text);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((&report["rows"], &report["method"], &report["budget"]), (&3000.into(), &"stream".into(), &50.into()));
    assert!(report["atoms"].as_u64().unwrap() <= 50);
    // The variance of y is about 1.1; a good part of it is learnt on the way, nearly all in the end.
    assert!(report["mse"].as_f64().unwrap() < 0.2, "{report}");
    let score = folder.json("score m.nys test.csv");
    assert!(score["rmse"].as_f64().unwrap() < 0.2, "{score}");
}

#[test]
fn a_resumed_stream_gives_the_same_file() {
    let folder = Folder::new();
    folder.put("a.csv", csv(30_000, 1));
    let line = "fit a.csv --method stream --budget 30 --seed 3";
    folder.works(&format!("{line} --model whole.nys --checkpoint part.nys --every 10000"));
    folder.works(&format!("{line} --model again.nys --resume part.nys"));
    assert!(folder.bytes("whole.nys") == folder.bytes("again.nys"));
    // What was found out may be asked for, and columns called by other names.
    for option in ["--target y", "--target 3", "--target last", "--task regression"] {
        folder.works(&format!("{line} --model again.nys --resume part.nys {option}"));
        assert!(folder.bytes("whole.nys") == folder.bytes("again.nys"), "{option}");
    }
    // Other options and other data are refused by name.
    let resume = "--method stream --model x.nys --resume part.nys";
    folder.refuses(&format!("fit a.csv {resume} --budget 31 --seed 3"), &["budget", "31", "30 as in part.nys"]);
    folder.refuses(&format!("fit a.csv {resume} --budget 30 --seed 4"), &["seed"]);
    for (option, said) in [
        ("--kernel laplacian", "kernel differs: found laplacian, expected gaussian as in part.nys"),
        ("--bandwidth 2", "bandwidth differs: found 2, expected auto as in part.nys"),
        ("--ridge 0.5", "ridge differs: found 0.5, expected auto as in part.nys"),
        ("--half-life 100", "half-life differs: found 100, expected none as in part.nys"),
        ("--reopen off", "reopen differs: found off, expected auto as in part.nys"),
        ("--loss squared", "loss differs: found squared, expected auto as in part.nys"),
    ] {
        for how in ["resume", "like"] {
            let line = format!("fit a.csv --method stream --model x.nys --{how} part.nys --budget 30 --seed 3");
            folder.refuses(&format!("{line} {option}"), &[said]);
        }
    }
    folder
        .refuses(&format!("fit a.csv {resume} --budget 30 --seed 3 --scale minmax"), &["scale", "minmax", "standard"]);
    folder.refuses(&format!("fit a.csv {resume} --budget 30 --seed 3 --target x"), &["target", "found x, expected y"]);
    folder.refuses(&format!("fit a.csv {resume} --budget 30 --seed 3 --target 1"), &["target", "found 1, expected y"]);
    folder.refuses(&format!("fit a.csv {resume} --budget 30 --seed 3 --ignore a"), &["ignore", "found a"]);
    folder
        .refuses(&format!("fit a.csv {resume} --budget 30 --seed 3 --task classification"), &["task", "expected auto"]);
    folder.refuses(&format!("fit a.csv {resume} --budget 30 --seed 3 --missing drop"), &["missing", "drop"]);
    folder.put("b.csv", csv(30_000, 2));
    folder.refuses(&format!("fit b.csv {resume} --budget 30 --seed 3"), &["b.csv", "other data", "part.nys"]);
    folder.put("short.csv", csv(30_000, 1).lines().take(9000).map(|l| format!("{l}\n")).collect::<String>());
    folder.refuses(&format!("fit short.csv {resume} --budget 30 --seed 3"), &["short.csv", "rows", "part.nys"]);
    folder.refuses("fit a.csv --method stream --model x.nys --resume whole.nys", &["whole.nys"]);
}

/// Kills the process at random moments, at least 50 times, and resumes from whatever checkpoint is there.
#[test]
fn killed_at_random_moments_it_ends_with_the_same_model() {
    let folder = Folder::new();
    folder.put("a.csv", csv(60_000, 1));
    let line = "fit a.csv --method stream --budget 20 --model m.nys --quiet";
    let started = Instant::now();
    folder.works(line);
    let usual = started.elapsed();
    let expected = folder.bytes("m.nys");
    let mut numbers = Numbers::new(5);
    let (mut kills, mut resumed) = (0, 0);
    while kills < 50 {
        std::fs::remove_file(folder.path("m.nys")).ok();
        std::fs::remove_file(folder.path("part.nys")).ok();
        // Kills until a run comes to its end by itself; each gets up to twice the usual time.
        loop {
            let resume = folder.path("part.nys").exists();
            resumed += usize::from(resume);
            let more = if resume { " --resume part.nys" } else { "" };
            let mut child = folder
                .command(&format!("{line} --checkpoint part.nys --every 5000{more}"))
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            sleep(Duration::from_secs_f64(usual.as_secs_f64() * numbers.next() * 1.2));
            // SIGKILL, unless it has ended.
            let ended = child.try_wait().unwrap();
            if ended.is_none() {
                child.kill().unwrap();
            }
            let output = child.wait_with_output().unwrap();
            if output.status.success() {
                break;
            }
            assert!(ended.is_none(), "{}", String::from_utf8_lossy(&output.stderr));
            kills += 1;
        }
        assert!(folder.bytes("m.nys") == expected, "after {kills} kills, {resumed} of them resumed");
    }
    assert!(resumed > 5, "{resumed} of {kills} were resumed");
}

#[test]
fn options_of_streams_belong_to_streams() {
    let folder = Folder::new();
    folder.put("a.csv", csv(50, 1));
    folder.refuses("fit a.csv --model m.nys --half-life 5", &["half-life", "stream"]);
    folder.refuses("fit a.csv --model m.nys --resume x.nys", &["resume", "stream"]);
    folder.refuses("fit a.csv --model m.nys --method stream --sample 9", &["sample"]);
    folder.refuses("fit a.csv --model m.nys --method stream --half-life 0", &["half-life"]);
    folder.refuses("fit a.csv --model m.nys --method stream --every 5", &["--checkpoint"]);
    folder.refuses("fit a.csv --model m.nys --method stream --budget 0", &["budget"]);
    let run = folder.run_with("fit - --method stream --model m.nys", "a,y\n1,2\n3,4\n5,7\n");
    assert_refused("fit -", &run, &["at least 8 rows"]);
    folder.put("few.csv", "a,y\n1,2\n3,4\n5,7\n");
    folder.refuses("fit few.csv --method stream --model m.nys", &["few.csv", "3 rows", "at least 8"]);
    folder.refuses("evaluate few.csv --scale running", &["few.csv", "3 rows", "at least 8"]);
}

#[test]
fn evaluate_reports_errors_of_every_order() {
    let folder = Folder::new();
    let line = "evaluate synth:rings?n=1500 --budget 40";
    let one = folder.json(&format!("{line} --plot e.svg"));
    assert_eq!((&one["learner"], &one["rows"]), (&"streaming-ridge".into(), &1500.into()));
    assert!(one["mistake_rate"].as_f64().unwrap() < 0.3, "{one}");
    assert!(String::from_utf8(folder.bytes("e.svg")).unwrap().starts_with("<svg"));
    let many = folder.json(&format!("{line} --shuffle 1 --permutations 3"));
    assert!(many["mistake_rate"]["sd"].as_f64().unwrap() > 0.0, "{many}");
    let same = folder.json(&format!("{line} --shuffle 1 --permutations 3 --threads 1"));
    assert_eq!(many["mistake_rate"], same["mistake_rate"]);
    for option in ["--half-life 100", "--ridge 3", "--bandwidth 9", "--shuffle 3", "--seed 4", "--scale none"] {
        let other = folder.json(&format!("{line} {option}"));
        let shown = |report: &serde_json::Value| {
            [&report["mistake_rate"], &report["recent_mistake_rate"], &report["ridge"]].map(ToString::to_string)
        };
        assert_ne!(shown(&other), shown(&one), "{option}");
    }
    let mse = folder.json("evaluate synth:friedman?n=800 --budget 30");
    assert!(mse["mse"].as_f64().unwrap() > 0.5, "{mse}");
    folder.refuses("evaluate synth:rings --learner nothing", &["'nothing'", "nystream learners"]);
    folder.refuses("evaluate synth:rings --budget 0", &["budget"]);
}

#[test]
fn parts_of_a_stream_are_merged() {
    let folder = Folder::new();
    for (name, seed) in [("a", 1), ("b", 2)] {
        folder.put(&format!("{name}.csv"), csv(2000, seed));
    }
    folder.put("test.csv", csv(500, 3));
    let fit = "--method stream --budget 30 --quiet";
    folder.works(&format!("fit a.csv {fit} --model a.nys --checkpoint a.part"));
    folder.works(&format!("fit b.csv {fit} --model b.nys --checkpoint b.part --like a.part"));
    let report = folder.json("merge a.part b.part --out c.part --model c.nys");
    assert_eq!((&report["rows"], &report["merged"]), (&4000.into(), &2.into()), "{report}");
    assert!(report["bytes_held"].as_u64().unwrap() > 0 && report["captured"].as_f64().unwrap() > 0.5, "{report}");
    let rmse = |model: &str| folder.json(&format!("score {model} test.csv"))["rmse"].as_f64().unwrap();
    let (merged, alone) = (rmse("c.nys"), rmse("a.nys"));
    assert!(merged < 1.05 * alone, "{merged} {alone}");
    assert_eq!(folder.json("inspect c.part")["rows"], 4000);
    // What differs is named, with the files; nothing is written.
    folder.works(&format!("fit b.csv {fit} --model d.nys --checkpoint d.part"));
    folder.refuses("merge a.part d.part --out x.part", &["feature", "a.part", "d.part"]);
    assert!(!folder.path("x.part").exists());
    folder.refuses("merge a.part a.nys --out x.part", &["a.nys"]);
    folder.refuses(&format!("fit b.csv {fit} --model x.nys --like a.part --scale none"), &["scale", "--like"]);
    folder.refuses("fit b.csv --method stream --budget 31 --model x.nys --like a.part", &["budget", "31", "30"]);
    folder.refuses("fit b.csv --model x.nys --like a.part", &["like", "stream"]);
}

#[test]
fn features_that_first_come_late_make_rows_wider() {
    let folder = Folder::new();
    let mut numbers = Numbers::new(8);
    let mut text = String::new();
    for i in 0..9000 {
        let (a, b, c) = (numbers.next(), numbers.next(), numbers.next());
        let late = if i > 6000 { format!(" 9:{c}") } else { String::new() };
        let y = (3.0 * a).sin() + b + if i > 6000 { c } else { 0.0 };
        text.push_str(&format!("{y} 1:{a} 2:{b}{late}\n"));
    }
    folder.put("a.libsvm", &text);
    let line = "fit a.libsvm --method stream --budget 40 --model m.nys";
    let report = folder.json(&format!("{line} --checkpoint a.part --every 5000"));
    assert_eq!((&report["features"], &report["late_features"]), (&9.into(), &7.into()), "{report}");
    folder.works("score m.nys a.libsvm");
    let whole = folder.bytes("m.nys");
    folder.works(&format!("{line} --resume a.part"));
    assert!(folder.bytes("m.nys") == whole);
}

#[test]
fn atoms_follow_rows_to_a_new_region() {
    let folder = Folder::new();
    let mut numbers = Numbers::new(9);
    let mut text = String::from("x,y,target\n");
    for i in 0..9000 {
        let away = if i < 5000 { 0.0 } else { 30.0 };
        let (x, y) = (6.0 * numbers.next(), 6.0 * numbers.next());
        text.push_str(&format!("{},{},{}\n", x + away, y + away, x.sin() + (2.0 * y).cos()));
    }
    folder.put("a.csv", &text);
    let line = "evaluate a.csv --budget 50 --scale none";
    let (on, off) = (folder.json(line), folder.json(&format!("{line} --reopen off")));
    assert!(on["atom_changes"].as_u64().unwrap() > 0 && off["atom_changes"] == 0, "{on} {off}");
    assert!(on["last_atom_change"]["captured_after"].as_f64() > on["last_atom_change"]["captured_before"].as_f64());
    let recent = |report: &serde_json::Value| report["recent_mse"].as_f64().unwrap();
    // Without atoms in reach the mean answers: the variance, about 1, is left.
    assert!(recent(&on) < 0.25 * recent(&off), "{on} {off}");
    folder.refuses("evaluate a.csv --reopen never", &["reopen", "auto"]);
    folder.refuses("fit a.csv --model x.nys --reopen off", &["reopen", "stream"]);
}

#[test]
fn running_scale_goes_by_the_first_rows_alone() {
    let folder = Folder::new();
    let text = csv(4000, 1);
    folder.put("a.csv", &text);
    // One pass, from standard input too, with the errors of a streamed fit.
    let fitted = folder.json("fit a.csv --method stream --model m.nys --budget 40");
    let streamed = folder.json("evaluate a.csv --scale running --budget 40 --plot e.svg");
    assert_eq!((&streamed["mse"], &streamed["rows"]), (&fitted["mse"], &4000.into()));
    assert!(String::from_utf8(folder.bytes("e.svg")).unwrap().contains("<svg"));
    let piped = folder.run_with("evaluate - --scale running --budget 40 --json", &text);
    let piped: serde_json::Value = serde_json::from_str(&piped.out).unwrap();
    assert_eq!(piped["mse"], streamed["mse"]);
    // Shuffled orders hold the rows in memory and go by their own first rows; so do learners of single rows.
    for line in ["--shuffle 1 --permutations 2", "--learner kogd --shuffle 1", "--learner nogd"] {
        let standard = folder.json(&format!("evaluate a.csv --budget 40 {line}"));
        let running = folder.json(&format!("evaluate a.csv --budget 40 {line} --scale running"));
        assert_ne!(running["mse"], standard["mse"], "{line}");
    }
    folder.refuses("fit a.csv --model m.nys --scale running", &["scale", "running", "more than once"]);
}

#[test]
fn two_classes_are_learnt_within_their_margin_unless_asked_otherwise() {
    let folder = Folder::new();
    let text = csv(4000, 1);
    let targets = column(&text, 2);
    let mean = targets.iter().sum::<f64>() / 4000.0;
    let class = |(row, y): (&str, &f64)| {
        let (features, _) = row.rsplit_once(',').unwrap();
        format!("{features},{}\n", if *y > mean { "yes" } else { "no" })
    };
    let rows: String = text.lines().skip(1).zip(&targets).map(class).collect();
    folder.put("a.csv", format!("a,b,y\n{rows}"));
    let line = "fit a.csv --method stream --budget 30 --model";
    let (auto, squared) = (folder.json(&format!("{line} m.nys")), folder.json(&format!("{line} s.nys --loss squared")));
    assert_eq!((&auto["loss"], &squared["loss"]), (&"squared-hinge".into(), &"squared".into()));
    assert!(auto["passed_over"].as_f64().unwrap() > 0.3 && squared["passed_over"] == 0.0, "{auto}");
    assert!(auto["mistake_rate"].as_f64() <= squared["mistake_rate"].as_f64(), "{auto} {squared}");
    let fixed = folder.json(&format!("{line} h.nys --loss squared-hinge"));
    assert_eq!(fixed["mistake_rate"], auto["mistake_rate"]);
    folder.refuses(&format!("{line} x.nys --loss hinge"), &["loss", "squared-hinge"]);
    folder.refuses("fit a.csv --model x.nys --loss squared", &["loss", "stream"]);
    folder.put("b.csv", csv(500, 1));
    folder.refuses("fit b.csv --method stream --model x.nys --loss squared-hinge", &["squared hinge", "-1 or 1"]);
}

#[test]
fn each_of_several_targets_has_its_error() {
    let folder = Folder::new();
    let mut numbers = Numbers::new(11);
    let mut text = String::from("a,b,low,high\n");
    for _ in 0..1500 {
        let (a, b) = (numbers.next(), numbers.next());
        text.push_str(&format!("{a},{b},{},{}\n", (6.0 * a).sin() + 0.05 * numbers.next(), 1e3 * (a - b)));
    }
    folder.put("a.csv", &text);
    let targets = "--target low --target high --budget 40";
    let fit = folder.json(&format!("fit a.csv {targets} --method stream --model m.nys --checkpoint a.part"));
    let evaluated = folder.json(&format!("evaluate a.csv {targets} --scale running"));
    let mean = folder.json(&format!("evaluate a.csv {targets} --shuffle 1 --permutations 2"));
    for report in [&fit, &evaluated, &folder.json("inspect a.part"), &mean] {
        let mse = |value: &serde_json::Value| value["mean"].as_f64().or(value.as_f64()).unwrap();
        let each = report["targets"].as_array().unwrap();
        assert_eq!(each.iter().map(|line| &line["target"]).collect::<Vec<_>>(), ["low", "high"], "{report}");
        let [low, high] = [mse(&each[0]["mse"]), mse(&each[1]["mse"])];
        assert!((low + high - mse(&report["mse"])).abs() < 1e-6 * high && low < 0.2 && high > 1.0, "{report}");
    }
    assert_eq!(fit["targets"], evaluated["targets"]);
    assert!(fit["targets"][0]["recent_mse"].as_f64() < fit["targets"][0]["mse"].as_f64(), "{fit}");
    // One target has no list.
    assert!(folder.json("evaluate a.csv --target low --ignore high --budget 40").get("targets").is_none());
}
