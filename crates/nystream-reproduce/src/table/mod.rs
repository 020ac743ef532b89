//! Plain-text tables for people, and the numbers in them.

mod number;

pub use number::{bytes, count, duration, significant};
use std::fmt;
use unicode_width::UnicodeWidthStr;

/// To which side the cells of a column are pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// A table with named columns. `to_string()` is for terminals, [`Table::to_markdown`] for documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: &[(&str, Align)]) -> Self {
        Self { columns: columns.iter().map(|&(name, align)| (clean(name), align)).collect(), rows: Vec::new() }
    }

    /// Adds a row. Cells that are missing stay empty; more cells than columns add columns without a name.
    pub fn row<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) -> &mut Self {
        let row: Vec<String> = cells.into_iter().map(|cell| clean(&cell.into())).collect();
        while self.columns.len() < row.len() {
            self.columns.push((String::new(), Align::Left));
        }
        self.rows.push(row);
        self
    }

    /// The table in Markdown, padded so that it can be read as it is.
    pub fn to_markdown(&self) -> String {
        let widths = self.widths();
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let escaped = |cells: Vec<String>| cells.into_iter().map(|cell| cell.replace('|', "\\|")).collect();
        let mut out = line(escaped(self.padded(None, &widths)));
        let rule = self.columns.iter().zip(&widths).map(|((_, align), &width)| match align {
            Align::Left => "-".repeat(width.max(1)),
            Align::Right => format!("{}:", "-".repeat(width.saturating_sub(1).max(1))),
        });
        out += &line(rule.collect());
        self.rows.iter().for_each(|row| out += &line(escaped(self.padded(Some(row), &widths))));
        out
    }

    fn widths(&self) -> Vec<usize> {
        let width = |(column, (name, _)): (usize, &(String, Align))| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.width()).max().unwrap_or(0).max(name.width())
        };
        self.columns.iter().enumerate().map(width).collect()
    }

    /// The cells of a row (of the header without one), filled up to the widths of their columns.
    fn padded(&self, row: Option<&Vec<String>>, widths: &[usize]) -> Vec<String> {
        let cell = |(column, (name, align)): (usize, &(String, Align))| {
            let text = match row {
                Some(row) => row.get(column).map_or("", String::as_str),
                None => name,
            };
            let space = " ".repeat(widths[column].saturating_sub(text.width()));
            match align {
                Align::Left => format!("{text}{space}"),
                Align::Right => format!("{space}{text}"),
            }
        };
        self.columns.iter().enumerate().map(cell).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        writeln!(out, "{}", self.padded(None, &widths).join("  ").trim_end())?;
        let rule: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
        writeln!(out, "{}", rule.join("  "))?;
        for row in &self.rows {
            writeln!(out, "{}", self.padded(Some(row), &widths).join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// Cells come from files too: line breaks and escape codes must not reach the terminal.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new(&[("method", Align::Left), ("RMSE", Align::Right)]);
        table.row(["squeak", "0.5"]).row(["größe 表", "12.25"]).row(["short"]);
        table
    }

    #[test]
    fn columns_line_up() {
        let expected = "\
method     RMSE
────────  ─────
squeak      0.5
größe 表  12.25
short
";
        assert_eq!(sample().to_string(), expected);
    }

    #[test]
    fn markdown_marks_the_side_and_keeps_bars_apart() {
        let expected = "\
| method   |  RMSE |
| -------- | ----: |
| squeak   |   0.5 |
| größe 表 | 12.25 |
| short    |       |
";
        assert_eq!(sample().to_markdown(), expected);
        let mut table = Table::new(&[("a", Align::Right)]);
        table.row(["|K|"]);
        assert_eq!(table.to_markdown(), "|   a |\n| --: |\n| \\|K\\| |\n");
    }

    #[test]
    fn long_rows_lose_nothing_and_control_characters_go() {
        let mut table = Table::new(&[("a", Align::Left)]);
        table.row(["1\n2", "\u{1b}[31m"]);
        assert_eq!(table.to_string(), "a\n───  ─────\n1 2   [31m\n");
        assert_eq!(Table::new(&[]).to_string(), "\n\n");
    }
}
