//! Prints tables with aligned columns: names left, numbers right.

use std::fmt;

use tacho_api::printable::printable;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

pub struct Table<const N: usize> {
    head: [(&'static str, Align); N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub fn new(head: [(&'static str, Align); N]) -> Self {
        Self { head, rows: Vec::new() }
    }

    /// Adds a row. Control characters in cells are escaped, so that every cell is one line.
    pub fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| printable(&cell)));
    }
}

impl<const N: usize> fmt::Display for Table<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widest = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.chain([self.head[column].0.chars().count()]).max().unwrap_or(0)
        };
        let widths: [usize; N] = std::array::from_fn(widest);
        let head = self.head.map(|(name, _)| name.to_owned());
        for row in [&head].into_iter().chain(&self.rows) {
            let mut line = String::new();
            for ((cell, width), (_, align)) in row.iter().zip(widths).zip(self.head) {
                let blanks = " ".repeat(width - cell.chars().count());
                let (before, behind) = if align == Align::Right { (&*blanks, "") } else { ("", &*blanks) };
                line.push_str(&format!("{before}{cell}{behind}  "));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new([("NAME", Align::Left), ("CALLS", Align::Right)]);
        table.row(["größe".into(), "7".into()]);
        table.row(["a".into(), "1,234,567".into()]);
        assert_eq!(table.to_string(), "NAME       CALLS\ngröße          7\na      1,234,567\n");
        table.row(["b\x1b[2J\nc".into(), "8".into()]);
        let shown = table.to_string();
        assert!(shown.ends_with("\nb\\u{1b}[2J\\nc          8\n"), "{shown}");
    }
}
