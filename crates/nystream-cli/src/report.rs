//! What a command found out: names and values in order, printed for people or as JSON.

use crate::table::{Align, Table, bytes, clean, count, duration, significant};
use serde_json::Value;
use std::io::{self, Write};
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

/// Significant digits of a number for people; JSON has them all.
pub const DIGITS: usize = 5;

/// Names and values in the order in which they were put.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    key: String,
    value: Content,
    shown: Shown,
}

#[derive(Debug, Clone, PartialEq)]
enum Content {
    Value(Value),
    List(Vec<Report>),
}

#[derive(Debug, Clone, PartialEq)]
enum Shown {
    AsIs,
    Text(String),
}

impl Report {
    /// A report without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value; one with the same key is replaced where it stands. Numbers that are not finite,
    /// and `None`, become null.
    pub fn put(&mut self, key: &str, value: impl Into<Value>) -> &mut Self {
        self.insert(key, Content::Value(value.into()), Shown::AsIs)
    }

    /// Adds a value that people see written as `shown`: with a unit, for instance.
    pub fn put_as(&mut self, key: &str, value: impl Into<Value>, shown: impl Into<String>) -> &mut Self {
        self.insert(key, Content::Value(value.into()), Shown::Text(shown.into()))
    }

    /// Adds a length of time: seconds in JSON.
    pub fn put_seconds(&mut self, key: &str, time: Duration) -> &mut Self {
        self.put_as(key, time.as_secs_f64(), duration(time))
    }

    /// Adds an amount of memory: bytes in JSON, null where it is not known.
    pub fn put_bytes(&mut self, key: &str, amount: impl Into<Option<u64>>) -> &mut Self {
        let amount = amount.into();
        self.put_as(key, amount, amount.map_or_else(|| text(&Value::Null), bytes))
    }

    /// Adds a list of reports: a JSON array of objects, a table with one row for each for people.
    pub fn put_list(&mut self, key: &str, reports: Vec<Report>) -> &mut Self {
        self.insert(key, Content::List(reports), Shown::AsIs)
    }

    fn insert(&mut self, key: &str, value: Content, shown: Shown) -> &mut Self {
        let entry = Entry { key: key.to_string(), value, shown };
        match self.entries.iter_mut().find(|old| old.key == key) {
            Some(old) => *old = entry,
            None => self.entries.push(entry),
        }
        self
    }

    /// Prints the report, as one line of JSON or for people.
    pub fn write(&self, out: &mut dyn Write, json: bool) -> io::Result<()> {
        if json { writeln!(out, "{}", self.to_json()) } else { write!(out, "{}", self.to_text()) }
    }

    /// One JSON object on one line, without a line break at its end.
    pub fn to_json(&self) -> String {
        // serde_json's own map would sort the keys.
        let pair = |entry: &Entry| {
            let value = match &entry.value {
                Content::Value(value) => value.to_string(),
                Content::List(list) => {
                    format!("[{}]", list.iter().map(Report::to_json).collect::<Vec<_>>().join(","))
                }
            };
            format!("{}:{value}", Value::from(entry.key.as_str()))
        };
        format!("{{{}}}", self.entries.iter().map(pair).collect::<Vec<_>>().join(","))
    }

    /// Aligned lines of name and value, each ended by a line break.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let lines = self.entries.iter().filter(|entry| matches!(entry.value, Content::Value(_)));
        let width = lines.map(|entry| name(&entry.key).width()).max().unwrap_or(0);
        for entry in self.entries.iter() {
            let name = name(&entry.key);
            let block = match &entry.value {
                Content::Value(_) => {
                    let space = " ".repeat(width.saturating_sub(name.width()));
                    out.push_str(format!("{name}{space}  {}", entry.cell()).trim_end());
                    out.push('\n');
                    continue;
                }
                Content::List(list) => table(list).to_string(),
            };
            out.push_str(&format!("{name}\n"));
            for line in block.lines() {
                out.push_str(&format!("  {line}\n"));
            }
        }
        out
    }
}

impl Entry {
    fn cell(&self) -> String {
        match (&self.shown, &self.value) {
            (Shown::Text(text), _) => clean(text),
            (_, Content::Value(value)) => text(value),
            (_, Content::List(list)) => format!("{} entries", list.len()),
        }
    }

    fn numeric(&self) -> bool {
        matches!(&self.value, Content::Value(Value::Number(_) | Value::Null))
    }
}

/// `train_seconds` is written "train seconds".
fn name(key: &str) -> String {
    clean(key).replace('_', " ")
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "–".into(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.into(),
        Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(whole), _, _) => count(whole),
            (_, Some(negative), _) => format!("-{}", count(negative.unsigned_abs())),
            (_, _, Some(real)) => significant(real, DIGITS),
            _ => number.to_string(),
        },
        Value::String(text) => clean(text),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        Value::Object(pairs) => {
            pairs.iter().map(|(key, value)| format!("{} {}", name(key), text(value))).collect::<Vec<_>>().join(", ")
        }
    }
}

/// One row for each report; the columns are their keys in the order of first appearance.
fn table(list: &[Report]) -> Table {
    let mut keys: Vec<(&str, bool)> = Vec::new();
    for entry in list.iter().flat_map(|report| &report.entries) {
        match keys.iter_mut().find(|(key, _)| *key == entry.key) {
            Some((_, numeric)) => *numeric &= entry.numeric(),
            None => keys.push((&entry.key, entry.numeric())),
        }
    }
    let names: Vec<(String, Align)> =
        keys.iter().map(|&(key, numeric)| (name(key), if numeric { Align::Right } else { Align::Left })).collect();
    let mut table = Table::new(&names.iter().map(|(name, align)| (name.as_str(), *align)).collect::<Vec<_>>());
    for report in list {
        let cell = |&(key, _): &(&str, bool)| {
            report.entries.iter().find(|entry| entry.key == key).map_or_else(String::new, Entry::cell)
        };
        table.row(keys.iter().map(cell));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Report {
        let mut report = Report::new();
        report.put("rows", 1_000_000u64).put("learner", "squeak").put_as("train_seconds", 2.5, "2.50 s");
        report.put("sizes", vec![10, 2000]).put("converged", true).put("offset", -12_345).put("r2", f64::NAN);
        report
    }

    #[test]
    fn json_keeps_the_order_on_one_line() {
        let expected = concat!(
            r#"{"rows":1000000,"learner":"squeak","train_seconds":2.5,"sizes":[10,2000],"#,
            r#""converged":true,"offset":-12345,"r2":null}"#
        );
        assert_eq!(sample().to_json(), expected);
        assert_eq!(Report::new().to_json(), "{}");
    }

    #[test]
    fn people_get_aligned_lines() {
        let expected = "\
rows           1,000,000
learner        squeak
train seconds  2.50 s
sizes          10, 2,000
converged      yes
offset         -12,345
r2             –
";
        assert_eq!(sample().to_text(), expected);
        assert_eq!(Report::new().to_text(), "");
    }

    #[test]
    fn what_is_not_finite_is_null() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut report = Report::new();
            report.put("one", value).put("list", vec![value, 1.0]).put("maybe", None::<f64>);
            assert_eq!(report.to_json(), r#"{"one":null,"list":[null,1.0],"maybe":null}"#);
        }
    }

    #[test]
    fn times_and_sizes_have_units_for_people() {
        let mut report = Report::new();
        report.put_seconds("time", Duration::from_millis(90_500));
        report.put_bytes("model_bytes", 1536).put_bytes("peak_bytes", None);
        assert_eq!(report.to_json(), r#"{"time":90.5,"model_bytes":1536,"peak_bytes":null}"#);
        assert_eq!(report.to_text(), "time         1 min 31 s\nmodel bytes  1.50 KiB\npeak bytes   –\n");
    }

    #[test]
    fn the_same_key_is_replaced_in_place() {
        let mut report = Report::new();
        report.put("a", 1).put("b", 2).put("a", 3);
        assert_eq!(report.to_json(), r#"{"a":3,"b":2}"#);
    }

    #[test]
    fn lists_are_arrays_and_tables() {
        let row = |method: &str, rmse: f64| {
            let mut row = Report::new();
            row.put("method", method).put("rmse", rmse);
            row
        };
        let mut second = row("uniform", f64::NAN);
        second.put("note", "worse");
        let mut report = Report::new();
        report.put_list("methods", vec![row("squeak", 0.5), second]);
        assert_eq!(
            report.to_json(),
            r#"{"methods":[{"method":"squeak","rmse":0.5},{"method":"uniform","rmse":null,"note":"worse"}]}"#
        );
        let expected = "\
methods
  method      rmse  note
  ───────  ───────  ─────
  squeak   0.50000
  uniform        –  worse
";
        assert_eq!(report.to_text(), expected);
    }

    #[test]
    fn names_and_texts_from_files_stay_on_their_line() {
        let mut report = Report::new();
        report.put("na\"me\n", "a\nb\u{1b}");
        assert_eq!(report.to_json(), r#"{"na\"me\n":"a\nb\u001b"}"#);
        assert_eq!(report.to_text(), "na\"me   a b\n");
        let parsed: Value = serde_json::from_str(&report.to_json()).unwrap();
        assert_eq!(parsed["na\"me\n"], "a\nb\u{1b}");
    }

    #[test]
    fn writes_either_form() {
        for json in [true, false] {
            let mut out = Vec::new();
            sample().write(&mut out, json).unwrap();
            let expected = if json { sample().to_json() + "\n" } else { sample().to_text() };
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
