//! What a study found: text, tables, figures and verdicts in order, and the numbers behind them.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::table::Table;

/// A target and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What was asked for.
    pub target: String,
    /// What was found.
    pub found: String,
    /// Whether the target is met; `None` where this run is too small to say.
    pub met: Option<bool>,
}

impl Verdict {
    /// A target that this run can judge.
    pub fn new(target: impl Into<String>, found: impl Into<String>, met: bool) -> Self {
        Self { target: target.into(), found: found.into(), met: Some(met) }
    }

    /// "met", "MISSED" or "not judged".
    pub fn word(&self) -> &'static str {
        match self.met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "not judged",
        }
    }
}

/// A picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its file's name without the ending.
    pub name: String,
    /// What it shows.
    pub caption: String,
    /// The picture as SVG.
    pub svg: String,
}

/// A piece of the report.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// A heading below the study's own.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// A table.
    Table(Table),
    /// A figure.
    Figure(Figure),
    /// Targets.
    Verdicts(Vec<Verdict>),
}

/// What a study found.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// The name of the study.
    pub study: &'static str,
    /// The heading.
    pub title: String,
    /// The report in order.
    pub parts: Vec<Part>,
    /// The numbers, for programs.
    pub data: Value,
    /// What holds of this run alone and is no part of the report: what was taken from an earlier one.
    pub remark: Option<String>,
}

impl Findings {
    pub(crate) fn new(study: &'static str, title: impl Into<String>) -> Self {
        Self { study, title: title.into(), parts: Vec::new(), data: Value::Null, remark: None }
    }

    pub(crate) fn heading(&mut self, text: impl Into<String>) {
        self.parts.push(Part::Heading(text.into()));
    }

    pub(crate) fn text(&mut self, text: impl Into<String>) {
        self.parts.push(Part::Text(text.into()));
    }

    pub(crate) fn table(&mut self, table: Table) {
        self.parts.push(Part::Table(table));
    }

    pub(crate) fn figure(&mut self, name: &str, caption: impl Into<String>, svg: String) {
        self.parts.push(Part::Figure(Figure { name: name.to_owned(), caption: caption.into(), svg }));
    }

    pub(crate) fn verdicts(&mut self, verdicts: Vec<Verdict>) {
        self.parts.push(Part::Verdicts(verdicts));
    }

    /// The figures, in order.
    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.parts.iter().filter_map(|part| if let Part::Figure(figure) = part { Some(figure) } else { None })
    }

    /// Every verdict, in order.
    pub fn all_verdicts(&self) -> impl Iterator<Item = &Verdict> {
        self.parts.iter().filter_map(|part| if let Part::Verdicts(list) = part { Some(list) } else { None }).flatten()
    }

    /// The report as Markdown, figures as links to `name.svg` beside it.
    pub fn to_markdown(&self) -> String {
        let mut out = format!("# {}\n", self.title);
        for part in &self.parts {
            // Writing to a string cannot fail.
            let _ = match part {
                Part::Heading(text) => writeln!(out, "\n## {text}"),
                Part::Text(text) => writeln!(out, "\n{text}"),
                Part::Table(table) => write!(out, "\n{}", table.to_markdown()),
                Part::Figure(figure) => writeln!(out, "\n![{}]({}.svg)", figure.caption, figure.name),
                Part::Verdicts(list) => write!(out, "\n{}", verdict_lines(list)),
            };
        }
        out
    }

    /// The numbers with the verdicts.
    pub fn to_json(&self) -> Value {
        let verdict = |v: &Verdict| json!({ "target": v.target, "found": v.found, "met": v.met });
        let verdicts: Vec<Value> = self.all_verdicts().map(verdict).collect();
        json!({ "study": self.study, "verdicts": verdicts, "data": self.data })
    }
}

fn verdict_lines(list: &[Verdict]) -> String {
    list.iter().map(|v| format!("- **{}**: {} – {}\n", v.word(), v.target, v.found)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Align;

    #[test]
    fn a_report_has_everything_in_order() {
        let mut findings = Findings::new("guarantees", "Title");
        findings.heading("Part");
        findings.text("Words.");
        let mut table = Table::new(&[("a", Align::Left)]);
        table.row(["1"]);
        findings.table(table);
        findings.figure("picture", "what it shows", "<svg></svg>".into());
        findings.verdicts(vec![
            Verdict::new("below 1", "0.5", true),
            Verdict { target: "x".into(), found: "y".into(), met: None },
        ]);
        let expected = "# Title\n\n## Part\n\nWords.\n\n| a |\n| - |\n| 1 |\n\n![what it shows](picture.svg)\n\n\
                        - **met**: below 1 – 0.5\n- **not judged**: x – y\n";
        assert_eq!(findings.to_markdown(), expected);
        assert_eq!(findings.to_json()["verdicts"][0]["met"], true);
        assert_eq!(findings.figures().count(), 1);
    }
}
