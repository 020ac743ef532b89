//! Options out of range, and places that cannot be written to.

use crate::support::{Folder, csv};

#[test]
fn numbers_out_of_range() {
    let folder = Folder::new();
    folder.put("data.csv", csv(30, 1));
    for (options, parts) in [
        ("--bandwidth 0", ["bandwidth", "'0'", "above 0"]),
        ("--bandwidth -1", ["bandwidth", "'-1'", "above 0"]),
        ("--bandwidth inf", ["bandwidth", "'inf'", "above 0"]),
        ("--bandwidth wide", ["bandwidth", "'wide'", "above 0"]),
        ("--ridge 0", ["ridge", "'0'", "above 0"]),
        ("--ridge -0.5", ["ridge", "'-0.5'", "above 0"]),
        ("--ridge nan", ["ridge", "'nan'", "above 0"]),
        ("--budget 0", ["budget", "0", "at least 1"]),
        ("--budget -3", ["budget", "-3", "invalid"]),
        ("--leverage-ridge 0", ["leverage-ridge", "0", "above 0"]),
        ("--dictionary batch-exact --leverage-ridge -2", ["leverage-ridge", "-2", "above 0"]),
        ("--sample 0", ["sample", "0", "at least 1"]),
        ("--threads 0", ["threads", "0", "1.."]),
        ("--kernel rbf", ["kernel", "'rbf'", "gaussian"]),
        ("--dictionary best", ["dictionary", "best", "rpcholesky"]),
        ("--scale log", ["scale", "log", "minmax"]),
        ("--missing guess", ["missing", "guess", "mean"]),
        ("--task ranking", ["task", "ranking", "regression"]),
        ("--format xls", ["format", "xls", "csv"]),
        ("--delimiter ab", ["delimiter", "ab", "one ASCII character"]),
        ("--header maybe", ["header", "maybe", "yes or no"]),
        ("--categorical sometimes", ["categorical", "sometimes", "one-hot"]),
        ("--kernel polynomial --degree 0", ["degree", "0", "expected"]),
        ("--kernel polynomial --kernel-scale 0", ["kernel-scale", "0", "above 0"]),
        ("--kernel polynomial --offset -1", ["offset", "-1", "expected"]),
        ("--seed minus", ["seed", "minus", "invalid"]),
    ] {
        folder.refuses(&format!("fit data.csv --model m.nys {options}"), &parts);
    }
}

#[test]
fn options_that_do_not_belong_together() {
    let folder = Folder::new();
    folder.put("data.csv", csv(30, 1));
    for (options, parts) in [
        ("--method exact --budget 3", ["budget", "--method exact", "--method two-pass"]),
        ("--method exact --dictionary uniform", ["dictionary", "--method exact", "--method two-pass"]),
        ("--method exact --sample 9", ["sample", "--method exact", "--method two-pass"]),
        ("--method exact --leverage-ridge 1", ["leverage-ridge", "--method exact", "--method two-pass"]),
        ("--max-memory 1GB", ["max-memory", "--method two-pass", "--method exact"]),
        ("--dictionary rpcholesky --leverage-ridge 1", ["leverage-ridge", "rpcholesky", "uniform"]),
        ("--degree 2", ["degree", "gaussian", "polynomial"]),
        ("--offset 2", ["offset", "gaussian", "polynomial"]),
        ("--kernel-scale 2", ["kernel-scale", "gaussian", "polynomial"]),
        ("--kernel linear --bandwidth 2", ["bandwidth", "linear", "no bandwidth"]),
        ("--modle m2.nys", ["--modle", "unexpected", "--help"]),
    ] {
        folder.refuses(&format!("fit data.csv --model m.nys {options}"), &parts);
    }
    folder.refuses("fit data.csv", &["--model", "required"]);
    folder.refuses("sketch data.csv --first-pass 3", &["first-pass", "two-pass-scores"]);
    folder.refuses("sketch data.csv --check --accuracy 1", &["accuracy", "below 1"]);
    folder.refuses("sketch data.csv --budget 0", &["budget", "at least 1"]);
    folder.refuses("sketch data.csv --leverage-ridge -1 --check", &["leverage-ridge", "above 0"]);
    folder.refuses("fit synth:moons --model m.nys", &["moons", "friedman"]);
    folder.refuses("fit synth:friedman?rows=5 --model m.nys", &["rows"]);
}

#[test]
fn names_with_a_letter_wrong_are_told_the_right_one() {
    let folder = Folder::new();
    folder.put("data.csv", "size,price\n1,2.5\n2,3\n4,7\n");
    for (line, hint) in [
        ("sketch data.csv --method sqeak", "'sqeak'; the nearest is 'squeak'"),
        ("fit data.csv --model m.nys --dictionary unifrom", "'unifrom'; the nearest is 'uniform'"),
        ("fit data.csv --model m.nys --kernel gausian", "'gausian'; the nearest is 'gaussian'"),
        ("fit data.csv --model m.nys --target prize", "no such column; the nearest is 'price'"),
        ("fit data.csv --model m.nys --kernel xyz", "'xyz', expected"),
        ("fit data.csv --model m.nys --target xyz", "no such column, expected"),
    ] {
        folder.refuses(line, &[hint]);
    }
}

#[test]
fn too_many_rows_for_an_exact_fit() {
    let folder = Folder::new();
    let parts = ["exact", "bytes", "allowed", "two-pass"];
    folder.refuses("fit synth:friedman?n=2000 --model m.nys --method exact --max-memory 1MB", &parts);
}

#[test]
fn places_that_cannot_be_written_to() {
    let folder = Folder::new();
    folder.put("data.csv", csv(30, 1));
    folder.works("fit data.csv --model m.nys -q");
    for place in ["no/such/folder/x", "data.csv/x", "."] {
        folder.refuses(&format!("fit data.csv --model {place}"), &[place, "cannot write"]);
        folder.refuses(&format!("predict m.nys data.csv --out {place}"), &[place, "cannot write"]);
        folder.refuses(&format!("sketch data.csv --budget 5 --out {place}"), &[place, "cannot write"]);
        folder.refuses(&format!("sketch data.csv --budget 5 --plot {place}"), &[place, "cannot write"]);
    }
    folder.refuses("demo --rows 1000 --budget 10 --out data.csv/x", &["data.csv/x", "cannot create"]);
}

/// The path is refused before the data is read: nobody waits for a fit that cannot be kept.
#[test]
fn unwritable_paths_are_found_out_first() {
    let folder = Folder::new();
    folder.refuses("fit nothing.csv --model no/such/folder/x", &["no/such/folder/x", "cannot write"]);
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk() {
    use crate::support::{Run, assert_refused};

    let folder = Folder::new();
    folder.put("data.csv", csv(30, 1));
    folder.works("fit data.csv --model m.nys -q");
    folder.refuses("fit data.csv --model /dev/full", &["/dev/full", "No space left"]);
    folder.refuses("predict m.nys data.csv --out /dev/full", &["/dev/full", "No space left"]);
    folder.refuses("sketch data.csv --budget 5 --out /dev/full", &["/dev/full", "No space left"]);
    for line in ["predict m.nys data.csv", "inspect m.nys", "score m.nys data.csv", "completions bash"] {
        let full = std::fs::File::create("/dev/full").unwrap();
        let run: Run = folder.command(line).stdout(full).output().unwrap().into();
        assert_refused(line, &run, &["standard output", "No space left"]);
    }
}
