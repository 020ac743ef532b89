//! Arrow files: read like the others, and no noise from their decoder when they are damaged.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow_ipc::writer::FileWriter;

use crate::support::{Folder, assert_refused, csv, numbers};

fn bytes(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

#[test]
fn arrow_files_give_the_model_of_the_csv_file() {
    let folder = Folder::new();
    let rows = numbers(100, 1);
    let column = |j: usize| Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row[j]))) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("a", column(0)), ("b", column(1)), ("y", column(2))]).unwrap();
    folder.put("data.arrow", bytes(&batch));
    folder.put("data.csv", csv(100, 1));
    folder.works("fit data.arrow --model arrow.nys -q");
    folder.works("fit data.csv --model csv.nys -q");
    assert_eq!(folder.bytes("arrow.nys"), folder.bytes("csv.nys"));
    assert_eq!(folder.works("predict csv.nys data.arrow"), folder.works("predict csv.nys data.csv"));
}

/// The decoder panics on some damaged files. The library makes errors of that, and the command must show nothing else.
#[test]
fn damaged_arrow_files_give_one_line() {
    let folder = Folder::new();
    let text: ArrayRef = Arc::new(StringArray::from(vec!["one", "two", "one", "three"]));
    let batch = RecordBatch::try_from_iter([
        ("kind", text),
        ("y", Arc::new(Float64Array::from(vec![1.0, 2.0, 3.5, 4.0])) as ArrayRef),
    ]);
    let mut bytes = bytes(&batch.unwrap());
    let mut panics = 0;
    for at in (0..bytes.len()).step_by(3) {
        let old = bytes[at];
        bytes[at] ^= 0x81;
        folder.put("data.arrow", &bytes);
        let run = folder.run("fit data.arrow --model m.nys -q --categorical one-hot --task regression");
        if run.code != Some(0) {
            assert_refused(&format!("byte {at}"), &run, &["data.arrow"]);
            panics += usize::from(run.err.contains("a length or offset beyond the data"));
        }
        assert_eq!(run.out, "");
        bytes[at] = old;
    }
    assert!(panics > 0, "no damage made the decoder panic, so this test shows nothing");
}
