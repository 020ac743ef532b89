//! `fit --method stream`: one reading, checkpoints, crashes; `evaluate`.

use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{Folder, Numbers, assert_refused, csv};

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
    // Other options and other data are refused by name.
    let resume = "--method stream --model x.nys --resume part.nys";
    folder.refuses(&format!("fit a.csv {resume} --budget 31 --seed 3"), &["budget", "31", "30"]);
    folder.refuses(&format!("fit a.csv {resume} --budget 30 --seed 4"), &["seed"]);
    folder.put("b.csv", csv(30_000, 2));
    folder.refuses(&format!("fit b.csv {resume} --budget 30 --seed 3"), &["b.csv", "other data"]);
    folder.put("short.csv", csv(30_000, 1).lines().take(9000).map(|l| format!("{l}\n")).collect::<String>());
    folder.refuses(&format!("fit short.csv {resume} --budget 30 --seed 3"), &["short.csv", "rows"]);
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
    folder.refuses("fit a.csv --model m.nys --method stream --checkpoint c.nys", &["--every"]);
    folder.refuses("fit a.csv --model m.nys --method stream --budget 0", &["budget"]);
    let run = folder.run_with("fit - --method stream --model m.nys", "a,y\n1,2\n3,4\n5,7\n");
    assert_refused("fit -", &run, &["at least 8 rows"]);
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
