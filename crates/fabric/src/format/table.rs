//! Tables as text: aligned columns.

use std::fmt;

/// A table of text: the first column flush left, the others flush right.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with a heading for every column.
    pub fn new<const N: usize>(heading: [&str; N]) -> Self {
        Self { rows: vec![heading.map(str::to_owned).to_vec()] }
    }

    /// Appends a row; short rows leave the rest empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut lines = Vec::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let gap = if column == 0 { "" } else { "  " };
                let cell = if column == 0 { format!("{cell:<width$}") } else { format!("{gap}{cell:>width$}") };
                line.push_str(&cell);
            }
            lines.push(line.trim_end().to_owned());
        }
        f.write_str(&lines.join("\n"))
    }
}

/// A load or demand: whole numbers as they are, others to a tenth, or to two digits where that is nothing.
pub fn amount(amount: f64) -> String {
    match amount {
        _ if amount.fract() == 0.0 => format!("{amount:.0}"),
        _ if amount.abs() >= 0.1 => format!("{amount:.1}"),
        _ => format!("{amount:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_as_short_as_they_can_be() {
        for (number, text) in
            [(8.0, "8"), (0.0, "0"), (1234.56, "1234.6"), (0.000123, "1.2e-4"), (1e18, "1000000000000000000")]
        {
            assert_eq!(amount(number), text);
        }
    }

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(["name", "n"]);
        table.row(["a".to_owned(), "10".to_owned()]);
        table.row(["longer".to_owned()]);
        assert_eq!(table.to_string(), "name     n\na       10\nlonger");
    }
}
