//! Outputs are never written over what is read, nor over each other.

use crate::support::{Folder, csv};

/// Data, a model of it, a checkpoint and a sketch.
fn with_files() -> Folder {
    let folder = Folder::new();
    folder.put("data.csv", csv(300, 1));
    folder.works("fit data.csv --method stream --budget 20 --model m.nys --checkpoint c.part -q");
    folder.works("sketch data.csv --method squeak --budget 20 --save s.nys -q");
    folder
}

#[test]
fn an_output_that_is_read_is_refused() {
    let folder = with_files();
    let stream = "fit data.csv --method stream --budget 20 --model";
    for (line, option, taken) in [
        ("fit data.csv --model data.csv", "model:", "DATA data.csv"),
        (&format!("{stream} x.nys --checkpoint data.csv")[..], "checkpoint:", "DATA data.csv"),
        (&format!("{stream} c.part --resume c.part")[..], "model:", "--resume c.part"),
        (&format!("{stream} x.nys --checkpoint c.part --like c.part")[..], "checkpoint:", "--like c.part"),
        ("predict m.nys data.csv --out data.csv", "out:", "DATA data.csv"),
        ("predict m.nys data.csv --out m.nys", "out:", "MODEL m.nys"),
        ("sketch data.csv --budget 9 --out data.csv", "out:", "DATA data.csv"),
        ("sketch data.csv --budget 9 --plot data.csv", "plot:", "DATA data.csv"),
        ("sketch data.csv --method squeak --save data.csv", "save:", "DATA data.csv"),
        ("sketch data.csv --resume s.nys --plot s.nys", "plot:", "--resume s.nys"),
        ("sketch data.csv --like s.nys --save s.nys", "save:", "--like s.nys"),
        ("evaluate data.csv --budget 20 --plot data.csv", "plot:", "DATA data.csv"),
        ("merge c.part c.part --out both.part --model c.part", "model:", "FILE c.part"),
    ] {
        folder.refuses(line, &[option, taken, "the same file"]);
    }
}

#[test]
fn two_outputs_in_one_file_are_refused() {
    let folder = with_files();
    for (line, option, taken) in [
        (
            "fit data.csv --method stream --model x.nys --checkpoint ./x.nys",
            "checkpoint: found ./x.nys",
            "--model x.nys",
        ),
        ("merge c.part c.part --out x.nys --model x.nys", "model: found x.nys", "--out x.nys"),
        ("sketch data.csv --budget 9 --out x --plot x", "plot: found x", "--out x"),
        ("sketch data.csv --method squeak --out x --save x", "save: found x", "--out x"),
    ] {
        folder.refuses(line, &[option, taken, "the same file"]);
    }
}

/// Whatever the path is written like, and before anything is read: the files here are no data and no model.
#[cfg(unix)]
#[test]
fn other_names_of_a_file_are_seen_through() {
    let folder = Folder::new();
    folder.put("data.csv", "not,a\ntable");
    std::os::unix::fs::symlink("data.csv", folder.path("link.csv")).unwrap();
    std::fs::create_dir(folder.path("inner")).unwrap();
    for out in ["./data.csv", "inner/../data.csv", "link.csv"] {
        folder.refuses(&format!("predict nothing.nys data.csv --out {out}"), &[out, "the same file as DATA data.csv"]);
        folder.refuses(&format!("fit data.csv --model {out}"), &[out, "the same file as DATA data.csv"]);
    }
}

#[test]
fn what_goes_on_may_take_its_own_place() {
    let folder = with_files();
    let line = "fit data.csv --method stream --budget 20 --model x.nys --checkpoint c.part";
    folder.works(&format!("{line} --resume c.part -q"));
    assert!(folder.bytes("x.nys") == folder.bytes("m.nys"));
    assert_eq!(folder.json("sketch data.csv --resume s.nys --save s.nys")["rows"], 600);
    assert_eq!(folder.json("merge s.nys s.nys --out s.nys")["rows"], 1200);
    assert_eq!(folder.json("inspect s.nys")["rows"], 1200);
    assert_eq!(folder.json("merge c.part c.part --out c.part --model both.nys")["rows"], 600);
    // Nothing is lost in what holds nothing.
    #[cfg(unix)]
    folder.works("sketch data.csv --budget 9 --out /dev/null --plot /dev/null -q");
}
