//! All tables can be read; toy runs on generated files of the tables' names.

use std::fmt::Write as _;

use nystream::learner::online::find;
use nystream::random::Generator;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::file::{FigureTable, KernelTable, OnlineTable, parsed};
use super::{FIGURES, ONLINE_MSE, TABLE_2, TABLE_3, TABLE_4, figures, kernels, online};
use crate::findings::Findings;
use crate::study::Settings;

/// Two classes by a circle, in LIBSVM's format.
fn rings(rows: usize, seed: u64) -> String {
    let mut rng = Generator::new(seed);
    let mut text = String::new();
    for _ in 0..rows {
        let (x, y) = (4.0 * rng.uniform() - 2.0, 4.0 * rng.uniform() - 2.0);
        let label = if x * x + y * y < 2.5 { "+1" } else { "-1" };
        let _ = writeln!(text, "{label} 1:{x:.5} 2:{y:.5}");
    }
    text
}

fn settings(folder: &TempDir, seeds: u64) -> Settings {
    Settings { seeds: Some(seeds), data: Some(folder.path().to_owned()), ..Settings::default() }
}

/// Everything but times, which differ from run to run.
fn timeless(findings: &Findings) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.remove("seconds");
                map.values_mut().for_each(strip);
            }
            Value::Array(list) => list.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut data = findings.data.clone();
    strip(&mut data);
    data
}

fn small_online() -> OnlineTable {
    let mut table: OnlineTable = parsed(TABLE_3).unwrap();
    table.sets.truncate(1);
    table.sets[0].budget = 20;
    table.sets[0].tune_share = 0.3;
    table.sets[0].variants.truncate(1);
    table.sets[0].data.file = "rings.libsvm".into();
    table.learners.retain(|contender| ["RBP", "SkeGD", "streaming ridge"].contains(&contender.title.as_str()));
    table
}

#[test]
fn every_table_can_be_read_and_speaks_of_what_there_is() {
    let online: Vec<OnlineTable> = [TABLE_3, TABLE_4, ONLINE_MSE].map(|text| parsed(text).unwrap()).into();
    for table in &online {
        for contender in &table.learners {
            let entry = find(&contender.learner).unwrap();
            let known = |name: &String| entry.options.iter().any(|option| option.name == name);
            assert!(contender.options.keys().all(known), "{contender:?}");
        }
        for set in &table.sets {
            assert_eq!(set.data.sha256.len(), 64);
            let titles: Vec<_> = table.learners.iter().map(|contender| &contender.title).collect();
            assert!(set.printed.keys().all(|title| titles.contains(&title)), "{}", set.name);
            assert!(!set.variants.is_empty() && set.tune_share > 0.0);
        }
    }
    // Eight sets with eight learners; two streams with seven.
    assert!(online[0].sets.len() == 8 && online[0].sets.iter().all(|set| set.printed.len() == 8));
    assert!(online[1].sets.len() == 2 && online[1].sets.iter().all(|set| set.printed.len() == 7));
    assert_eq!(online[0].sets[4].printed["SkeGD"].mean, 2.782);
    let kernels: KernelTable = parsed(TABLE_2).unwrap();
    assert!(kernels.sets.iter().all(|set| set.budgets.iter().all(|budget| budget.printed.len() == 2)));
    let figures: FigureTable = parsed(FIGURES).unwrap();
    assert!(figures.figures.iter().all(|figure| figure.curves.iter().any(|curve| curve.claimed)));
    assert!(parsed::<KernelTable>(TABLE_3).is_err());
}

#[test]
fn a_table_stands_beside_the_printed_values_and_says_what_differs() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("rings.libsvm"), rings(600, 1)).unwrap();
    let mut table = small_online();
    let findings = online::run("toy", &table, &settings(&folder, 2), &mut |_| {}).unwrap();
    let text = findings.to_markdown();
    for words in [
        "2 orders (fewer than the usual 20)",
        "rings.libsvm is not the file that the table was made with",
        "38.924 ± 1.754",
        "tuned on 0.3 of the rows",
        "not judged",
        "| streaming ridge |",
    ] {
        assert!(text.contains(words), "'{words}' is not in: {text}");
    }
    let learners = findings.data["sets"][0]["variants"][0]["learners"].as_array().unwrap();
    for learner in learners {
        let errors = learner["runs"]["errors"].as_array().unwrap();
        let mean = (errors[0].as_f64().unwrap() + errors[1].as_f64().unwrap()) / 2.0;
        // Always the same class would be wrong in almost half of the rows.
        assert!(mean < 0.45, "{learner}");
        if let Some(printed) = learner["printed"]["mean"].as_f64() {
            assert!((learner["difference"].as_f64().unwrap() - (100.0 * mean - printed)).abs() < 1e-9);
        }
    }
    assert_eq!(learners[1]["runs"]["tuning"]["tried"].as_array().unwrap().len(), 36);
    assert_eq!(learners[1]["runs"]["tuning"]["rows"], 180);
    let svg = &findings.figures().next().unwrap().svg;
    assert!(["RBP", "SkeGD", "streaming ridge"].iter().all(|name| svg.contains(name)));

    // Threads change nothing but the time.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let alone = pool.install(|| online::run("toy", &table, &settings(&folder, 2), &mut |_| {})).unwrap();
    assert_eq!(timeless(&alone), timeless(&findings));

    // The right checksum, and as many orders as the table asks for: judged.
    let content = std::fs::read(folder.path().join("rings.libsvm")).unwrap();
    table.sets[0].data.sha256 = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
    table.heading.permutations = 2;
    let findings = online::run("toy", &table, &settings(&folder, 2), &mut |_| {}).unwrap();
    let text = findings.to_markdown();
    assert!(!text.contains("is not the file") && !text.contains("not judged"), "{text}");
    assert_eq!(findings.all_verdicts().count(), 2);
}

#[test]
fn some_rows_of_a_table_can_be_run_alone_and_are_judged_apart() {
    let folder = TempDir::new().unwrap();
    let content = rings(500, 8);
    std::fs::write(folder.path().join("rings.libsvm"), &content).unwrap();
    let mut table = small_online();
    table.learners = parsed::<OnlineTable>(TABLE_3).unwrap().learners;
    table.heading.permutations = 1;
    table.sets[0].data.sha256 = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
    let titles = ["SkeGD, larger map", "SkeGD"].map(str::to_owned);
    for (count, titles) in [(1, &titles[..1]), (2, &titles[..])] {
        let limited = Settings { learners: titles.to_vec(), ..settings(&folder, 1) };
        let findings = online::run("toy", &table, &limited, &mut |_| {}).unwrap();
        let learners = findings.data["sets"][0]["variants"][0]["learners"].as_array().unwrap();
        assert_eq!((learners.len(), findings.all_verdicts().count()), (count, count));
        // The printed values of SkeGD stand beside both.
        assert!(learners.iter().all(|learner| learner["printed"]["mean"] == 27.932), "{learners:?}");
        // s_m = B/2
        assert_eq!(learners[count - 1]["runs"]["atoms"][0], 10);
        assert!(findings.to_markdown().contains("Only these rows of the table: SkeGD, larger map"));
        assert!(findings.all_verdicts().all(|verdict| verdict.met.is_some()));
    }
    let unknown = Settings { learners: vec!["SkeGD, large map".into()], ..settings(&folder, 1) };
    let message = online::run("toy", &table, &unknown, &mut |_| {}).unwrap_err().to_string();
    assert!(message.contains("the nearest is 'SkeGD, larger map'"), "{message}");
}

#[test]
fn rows_can_be_limited_and_missing_files_are_said() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("rings.libsvm"), rings(1200, 2)).unwrap();
    let mut table = small_online();
    table.learners.truncate(1);
    let mut absent = table.sets[0].clone();
    absent.data.file = "absent.libsvm".into();
    table.sets.push(absent);
    let limited = Settings { rows: Some(1000), ..settings(&folder, 1) };
    let findings = online::run("toy", &table, &limited, &mut |_| {}).unwrap();
    let text = findings.to_markdown();
    assert!(text.contains("cut to the first 1000 rows") && text.contains("absent.libsvm is not there"), "{text}");
    assert_eq!(findings.data["sets"].as_array().unwrap().len(), 1);
    assert_eq!(findings.data["sets"][0]["variants"][0]["rows"], 1000);
    table.sets.remove(0);
    let message = online::run("toy", &table, &limited, &mut |_| {}).unwrap_err().to_string();
    assert!(message.contains("none of the table's files"), "{message}");
    assert!(online::run("toy", &table, &Settings::default(), &mut |_| {}).is_err());
}

#[test]
fn adversarial_streams_are_run_tuned_on_either() {
    let folder = TempDir::new().unwrap();
    let mut table: OnlineTable = parsed(TABLE_4).unwrap();
    table.sets.truncate(1);
    table.sets[0].variants.truncate(2);
    table.sets[0].budget = 20;
    table.sets[0].adversarial = Some(super::file::Adversarial { blocks: 40, rounds: 10 });
    table.learners.retain(|contender| contender.title.starts_with("NOGD") || contender.title.contains("0.1)"));
    table.sets[0].data.file = "rings.libsvm".into();
    std::fs::write(folder.path().join("rings.libsvm"), rings(100, 3)).unwrap();
    let findings = online::run("toy", &table, &settings(&folder, 2), &mut |_| {}).unwrap();
    let variants = findings.data["sets"][0]["variants"].as_array().unwrap();
    assert!(variants.iter().all(|variant| variant["rows"] == 400), "{variants:?}");
    let rows = |variant: usize| variants[variant]["learners"][0]["runs"]["tuning"]["rows"].as_u64().unwrap();
    assert_eq!((rows(0), rows(1)), (400, 100));
    assert!(findings.to_markdown().contains("tuned on the set that the stream is made of"));
}

#[test]
fn a_learner_that_fails_stays_in_the_table_with_the_reason() {
    let folder = TempDir::new().unwrap();
    let mut rng = Generator::new(5);
    let mut text = "x,target\n".to_owned();
    (0..300).for_each(|_| _ = writeln!(text, "{},{}", rng.uniform(), rng.uniform()));
    std::fs::write(folder.path().join("line.csv"), text).unwrap();
    let mut table: OnlineTable = parsed(ONLINE_MSE).unwrap();
    table.sets.truncate(1);
    table.sets[0].data.file = "line.csv".into();
    table.learners[0].learner = "kogd".into();
    // Steps far too long for the squared loss.
    table.learners[0].options =
        [("step-size", "1e6"), ("regularization", "0")].map(|(name, value)| (name.into(), value.into())).into();
    let findings = online::run("toy", &table, &settings(&folder, 1), &mut |_| {}).unwrap();
    let text = findings.to_markdown();
    assert!(text.contains("NONS-ALD has no result: learner kogd") && text.contains("diverge"), "{text}");
    let learners = &findings.data["sets"][0]["variants"][0]["learners"];
    assert!(learners[0]["runs"]["failed"].is_string() && learners[2]["mean"].as_f64().unwrap() < 0.2, "{learners}");
}

#[test]
fn kernel_tables_and_figures_run_small() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("rings.libsvm"), rings(400, 4)).unwrap();
    let mut table: KernelTable = parsed(TABLE_2).unwrap();
    table.sets.truncate(1);
    table.sets[0].variants.truncate(1);
    table.sets[0].data.file = "rings.libsvm".into();
    table.sets[0].budgets[0].budget = 20;
    table.sets[0].budgets[1].budget = 40;
    let findings = kernels::run("toy", &table, &settings(&folder, 2), &mut |_| {}).unwrap();
    let cells = findings.data["sets"][0]["variants"][0]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2 * table.methods.len());
    for (small, large) in cells.iter().zip(&cells[table.methods.len()..]) {
        let error = |cell: &Value| cell["mean"].as_f64().unwrap();
        assert!(error(large) < error(small) && error(small) < 1.0, "{small} {large}");
        assert_eq!(small["method"], large["method"]);
    }
    assert!(findings.to_markdown().contains("0.078 ± 0.012"));

    let mut figure: FigureTable = parsed(FIGURES).unwrap();
    figure.figures.remove(1);
    for spec in &mut figure.figures {
        spec.data.file = "rings.libsvm".into();
        spec.values = if spec.x == "budget" { vec![10.0, 40.0] } else { vec![1.0, 3.0] };
        spec.curves.truncate(1);
        spec.curves[0].budget = 30;
        spec.tune_share = 0.5;
    }
    let findings = figures::run("toy", &figure, &settings(&folder, 1), &mut |_| {}).unwrap();
    assert_eq!((findings.figures().count(), findings.all_verdicts().count()), (2, 2));
    let point = |figure: usize, point: usize| &findings.data["figures"][figure]["curves"][0]["points"][point];
    // s_m = B/2 atoms; and the number of blocks is used.
    assert_eq!((&point(0, 0)["runs"]["atoms"][0], &point(0, 1)["runs"]["atoms"][0]), (&5.into(), &20.into()));
    assert_ne!(point(1, 0)["mean"], point(1, 1)["mean"]);
}

#[test]
fn a_run_that_is_broken_off_and_resumed_reports_the_same() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("rings.libsvm"), rings(400, 6)).unwrap();
    let mut table = small_online();
    table.sets[0].tune_share = 0.2;
    let unbroken = online::run("toy", &table, &settings(&folder, 3), &mut |_| {}).unwrap();
    assert_eq!(unbroken.remark, None);

    let kept = |seeds| Settings { cells: Some(folder.path().join("cells")), ..settings(&folder, seeds) };
    // The first learner with two orders, then a crash before the second begins.
    let crash = std::panic::catch_unwind(|| {
        online::run("toy", &table, &kept(2), &mut |stage| assert!(!stage.contains("SkeGD"), "a crash, on purpose"))
    });
    assert!(crash.is_err());
    // No time for anything else: what is there is shown.
    let limited = Settings { minutes: Some(0), ..kept(3) };
    let findings = online::run("toy", &table, &limited, &mut |_| {}).unwrap();
    let text = findings.to_markdown();
    assert!(text.contains("Limited in time: 0 to 2 orders instead of 3") && text.contains("not run"), "{text}");
    assert!(findings.remark.unwrap().starts_with("2 of 2 runs were taken"));

    let resumed = online::run("toy", &table, &kept(3), &mut |_| {}).unwrap();
    assert!(resumed.remark.as_ref().unwrap().starts_with("2 of 9 runs were taken"), "{:?}", resumed.remark);
    assert_eq!(timeless(&resumed), timeless(&unbroken));
    assert_eq!(resumed.all_verdicts().collect::<Vec<_>>(), unbroken.all_verdicts().collect::<Vec<_>>());
    // Once more: nothing is left to do, and even the times are the same.
    let again = online::run("toy", &table, &kept(3), &mut |_| {}).unwrap();
    assert!(again.remark.unwrap().starts_with("9 of 9 runs were taken"));
    assert_eq!(again.parts, resumed.parts);

    // Another budget, or other data: other cells, and the report says so.
    table.sets[0].budget = 25;
    let other = online::run("toy", &table, &kept(1), &mut |_| {}).unwrap();
    let remark = other.remark.unwrap();
    assert!(remark.starts_with("0 of 3 runs") && remark.contains("3 cells in its folder are of other"), "{remark}");
    std::fs::write(folder.path().join("rings.libsvm"), rings(400, 7)).unwrap();
    let other = online::run("toy", &table, &kept(1), &mut |_| {}).unwrap();
    assert!(other.remark.unwrap().starts_with("0 of 3 runs"));
}
