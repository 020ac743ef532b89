//! Markdown tables that can also be read as they are, and the numbers in them.

use std::fmt;

/// A table with named columns.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: &[&str]) -> Self {
        Self { rows: vec![columns.iter().map(|&name| name.to_owned()).collect()] }
    }

    /// Adds a row, one cell a column.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows[0].len();
        let width = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(3);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (i, row) in self.rows.iter().enumerate() {
            // The first column is words, the others are numbers and verdicts.
            write!(out, "| {:<1$} |", row[0], widths[0])?;
            for column in 1..columns {
                write!(out, " {:>1$} |", row[column], widths[column])?;
            }
            writeln!(out)?;
            if i == 0 {
                write!(out, "| {} |", "-".repeat(widths[0]))?;
                for width in &widths[1..] {
                    write!(out, " {}: |", "-".repeat(width - 1))?;
                }
                writeln!(out)?;
            }
        }
        Ok(())
    }
}

/// What became of a target.
pub fn verdict(met: bool) -> String {
    if met { "met" } else { "MISSED" }.to_owned()
}

/// A duration in the unit that suits it.
pub fn seconds(value: f64) -> String {
    match value {
        v if v < 0.1 => format!("{:.3} ms", v * 1e3),
        v if v < 100.0 => format!("{v:.2} s"),
        v => format!("{v:.0} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&["d", "ratio"]);
        table.row(["8".to_owned(), "4.25".to_owned()]);
        table.row(["σ² = 300".to_owned(), "1.5".to_owned()]);
        let expected = "\
| d        | ratio |
| -------- | ----: |
| 8        |  4.25 |
| σ² = 300 |   1.5 |
";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    fn durations_choose_their_unit() {
        assert_eq!([0.0012345, 1.5, 1234.5].map(seconds), ["1.234 ms", "1.50 s", "1234 s"]);
    }
}
