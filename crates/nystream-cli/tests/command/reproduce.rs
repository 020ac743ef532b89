//! Studies from outside: by name, small, with and without files.

use crate::support::Folder;

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
fn mistakes_are_told_before_any_work() {
    let folder = Folder::new();
    folder.refuses("reproduce garantees --out report", &["'garantees'; the nearest is 'guarantees'"]);
    assert!(!folder.path("report").exists());
    folder.refuses("reproduce merge-tree --rows 10", &["rows", "at least 1000"]);
    folder.refuses("reproduce guarantees --seeds 0", &["seeds", "at least 1"]);
    folder.refuses("reproduce skegd-table-4 --permutations 0 --data .", &["seeds", "at least 1"]);
    folder.refuses("reproduce skegd-table-3 --permutations 1", &["data", "skegd-table-3"]);
    folder.refuses("reproduce skegd-table-3 --data .", &["none of the table's files"]);
}
