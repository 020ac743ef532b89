//! Studies from outside: by name, small, with and without files.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::support::{Folder, numbers};

#[test]
fn studies_are_listed_for_people_and_programs() {
    let folder = Folder::new();
    let text = folder.works("reproduce --list");
    for name in ["guarantees", "when-it-pays", "merge-tree", "streaming", "one-pass", "drift"] {
        assert!(text.contains(name), "{text}");
    }
    let list = folder.json("reproduce --list");
    assert_eq!(list["studies"].as_array().unwrap().len(), text.lines().count() - 2, "{list}");
}

#[test]
fn a_study_prints_and_writes_only_where_it_is_told() {
    let folder = Folder::new();
    let printed = folder.works("reproduce merge-tree --rows 1000 --seeds 1");
    assert!(printed.contains("# Merging partitions") && printed.contains("not judged"), "{printed}");
    assert!(!folder.path("report").exists());
    let report = folder.json("reproduce merge-tree --rows 1000 --seeds 1 --out report");
    assert_eq!(report["studies"][0]["data"]["rows"], 1000, "{report}");
    let written = String::from_utf8(folder.bytes("report/report.md")).unwrap();
    assert!(written.contains("nystream reproduce merge-tree --seeds 1 --rows 1000 --out FOLDER"), "{written}");
    let numbers: serde_json::Value = serde_json::from_slice(&folder.bytes("report/report.json")).unwrap();
    assert_eq!(numbers["studies"][0]["study"], "merge-tree");
}

#[test]
fn a_report_is_not_replaced_by_a_smaller_one_unasked() {
    let folder = Folder::new();
    folder.works("reproduce merge-tree --rows 2000 --seeds 1 --out report");
    let before = folder.bytes("report/report.md");
    let others = "reproduce merge-tree --rows 2000 --seeds 1 --first-seed 9 --out report";
    folder.refuses(others, &["report.md", "other seeds", "--replace"]);
    let smaller = "reproduce merge-tree --rows 1000 --seeds 1 --out report";
    folder.refuses(smaller, &["report.md", "more rows of data", "--replace"]);
    folder.refuses("reproduce when-it-pays --out report", &["report.md", "the study merge-tree", "--replace"]);
    assert_eq!(folder.bytes("report/report.md"), before);
    folder.works(&format!("{smaller} --replace"));
    assert_ne!(folder.bytes("report/report.md"), before);
    // As much or more takes its place as before.
    folder.works("reproduce merge-tree --rows 1500 --seeds 1 --out report");
    // Notes of a person are no report.
    folder.put("report/report.md", "# Notes\n");
    folder.refuses("reproduce merge-tree --rows 1500 --seeds 1 --out report", &["report.md", "--replace"]);
    assert_eq!(folder.bytes("report/report.md"), b"# Notes\n");
}

#[test]
fn mistakes_are_told_before_any_work() {
    let folder = Folder::new();
    folder.refuses("reproduce garantees --out report", &["'garantees'; the nearest is 'guarantees'"]);
    assert!(!folder.path("report").exists());
    folder.refuses("reproduce merge-tree --rows 10", &["rows", "at least 1000"]);
    folder.refuses("reproduce guarantees --seeds 0", &["seeds", "at least 1"]);
    folder.refuses("reproduce skegd-table-4 --permutations 0 --data .", &["seeds", "at least 1"]);
    folder.refuses("reproduce skegd-table-3 --permutations 1", &["data", "skegd-table-3"]);
    folder.refuses("reproduce skegd-table-3 --data .", &["none of the table's files"]);
    folder.refuses("reproduce skegd-table-3 --data . --learner SkeG", &["learner", "'SkeG'; the nearest is 'SkeGD'"]);
    folder.refuses("reproduce skegd-table-2 --data . --first-seed 3", &["first-seed", "skegd-table-2", "its seeds"]);
    folder.refuses("reproduce merge-tree --first-seed 1048576", &["first-seed", "1048576"]);
    folder.refuses("reproduce merge-tree --learner SkeGD", &["learner", "merge-tree", "tables of learners"]);
}

#[test]
fn tables_of_papers_go_on_where_they_were_broken_off() {
    let folder = Folder::new();
    let mut lines = String::new();
    // Far enough apart that no rule chooses one of the bandwidths that the table names: every cell is one of its own.
    for [x, y, _] in numbers(300, 1).iter().map(|row| row.map(|x| 10.0 * x)) {
        lines += &format!("{} 1:{x} 2:{y}\n", if x * y > 0.0 { "+1" } else { "-1" });
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(lines.as_bytes()).unwrap();
    folder.put("german.numer_scale.libsvm.gz", packed.finish().unwrap());

    let limited = folder.works("reproduce skegd-table-2 --data . --permutations 1 --minutes 0 --out report");
    assert!(limited.contains("Limited in time: 0 orders instead of 1"), "{limited}");
    assert!(limited.contains(" 0 of 0 runs were taken"), "{limited}");
    // Five methods, two budgets, five readings.
    let first = folder.works("reproduce skegd-table-2 --data . --permutations 1 --out report");
    assert!(first.contains(" 0 of 50 runs were taken") && !first.contains("Limited in time"), "{first}");
    let again = folder.works("reproduce skegd-table-2 --data . --permutations 2 --out report");
    assert!(again.contains(" 50 of 100 runs were taken"), "{again}");
    // Other rows, other cells.
    let other = folder.works("reproduce skegd-table-2 --data . --permutations 1 --rows 1000 --replace --out report");
    assert!(
        other.contains(" 0 of 50 runs") && other.contains("50 cells in its folder are of other settings"),
        "{other}"
    );
}
