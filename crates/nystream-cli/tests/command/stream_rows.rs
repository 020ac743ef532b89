//! `fit --method stream`: what rows a stream takes, and from which it goes on.

use crate::support::{Folder, csv};

/// A CSV text with another line in place of row `row` (from 1).
fn with_row(text: &str, row: usize, line: &str) -> String {
    text.lines().enumerate().map(|(i, old)| format!("{}\n", if i == row { line } else { old })).collect()
}

#[test]
fn late_rows_too_large_to_learn_are_refused_by_their_place() {
    let folder = Folder::new();
    let text = csv(9000, 1);
    folder.put("good.csv", &text);
    let fit = "--method stream --budget 30";
    folder.works(&format!("fit good.csv {fit} --model m.nys --checkpoint c.part --every 4096"));
    let summed = "squared and summed";
    for (row, line, column, found) in [
        (8500, "1,2,1e300", "'y'", "1e300"),
        (8999, "1,2,-1e101", "'y'", "-1e101"),
        (8500, "1,-1e250,3", "'b'", "-1.00e250"),
    ] {
        folder.put("bad.csv", with_row(&text, row, line));
        let place = format!("row {row}");
        let parts = ["bad.csv", &place[..], column, found, summed];
        folder.refuses(&format!("fit bad.csv {fit} --model m.nys --checkpoint c.part"), &parts);
        folder.refuses("evaluate bad.csv --budget 30 --scale running --plot e.svg", &parts);
    }
    // Kernels of inner products overflow earlier.
    folder.put("bad.csv", with_row(&text, 8500, "1e60,2,3"));
    let parts = ["bad.csv", "row 8500", "'a'", "1e60", "kernel"];
    for kernel in ["linear", "polynomial"] {
        let line = format!("fit bad.csv {fit} --scale none --kernel {kernel} --model m.nys --checkpoint c.part");
        folder.refuses(&line, &parts);
    }
    folder.put("bad.libsvm", {
        let mut rows: String = (0..6000).map(|i| format!("{} 1:{} 2:{}\n", i % 7, i % 5, i % 11)).collect();
        rows.push_str("1 1:1 2:1e200\n");
        rows
    });
    let line = format!("fit bad.libsvm {fit} --task regression --model m.nys");
    folder.refuses(&line, &["bad.libsvm", "row 6001", "'2'", "about 1.00e200", summed]);
    // What was there before is as good as it was.
    folder.works("predict m.nys good.csv");
    folder.works("inspect c.part");
}
