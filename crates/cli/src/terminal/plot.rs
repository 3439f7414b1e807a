//! A line plot of braille dots: each character holds two columns and four rows of dots.

use std::fmt::Write;

use tacho_api::printable::printable;

/// Characters of the plot's area.
const WIDTH: usize = 72;
const HEIGHT: usize = 12;

/// Dots of a braille character by column and row, as bits from U+2800 (Unicode, Braille Patterns).
const DOTS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// A line: points in order of x. A value that is not finite leaves a gap.
pub struct Line<'a> {
    pub name: &'a str,
    pub points: Vec<(f64, f64)>,
}

/// One plot per line, all with the same span of x and y; `label_x` and `label_y` format the axes.
pub fn plot(lines: &[Line<'_>], label_x: impl Fn(f64) -> String, label_y: impl Fn(f64) -> String) -> String {
    let finite = || lines.iter().flat_map(|line| &line.points).filter(|(_, y)| y.is_finite());
    let Some((x, y)) = span(finite().map(|p| p.0)).zip(span(finite().map(|p| p.1))) else {
        return "nothing to plot\n".into();
    };
    let labels = [label_y(y.1), label_y(y.0)];
    let margin = labels.iter().map(|l| l.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for line in lines {
        let _ = writeln!(out, "{}", printable(line.name));
        let canvas = draw(line, x, y);
        for (row, cells) in canvas.chunks(WIDTH).enumerate() {
            let label = match row {
                0 => &*labels[0],
                r if r == HEIGHT - 1 => &*labels[1],
                _ => "",
            };
            let cells: String = cells.iter().filter_map(|bits| char::from_u32(0x2800 + bits)).collect();
            let _ = writeln!(out, "{label:>margin$} ┤{}", cells.trim_end_matches('\u{2800}'));
        }
        let (from, to) = (label_x(x.0), label_x(x.1));
        let gap = WIDTH.saturating_sub(from.chars().count() + to.chars().count());
        let _ = writeln!(out, "{:margin$}  {from}{}{to}", "", " ".repeat(gap.max(1)));
    }
    out
}

/// Least and greatest; widened when they are equal, so that there is a span.
fn span(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    match low <= high {
        true if low == high => Some((low - 0.5, high + 0.5)),
        true => Some((low, high)),
        false => None,
    }
}

fn draw(line: &Line<'_>, x: (f64, f64), y: (f64, f64)) -> Vec<u32> {
    let (columns, rows) = (WIDTH * 2, HEIGHT * 4);
    let place = |(px, py): (f64, f64)| (scale(px, x, columns), (rows - 1) - scale(py, y, rows));
    let mut canvas = vec![0; WIDTH * HEIGHT];
    let mut dot = |column: usize, row: usize| {
        canvas[row / 4 * WIDTH + column / 2] |= DOTS[column % 2][row % 4];
    };
    let mut last: Option<(usize, usize)> = None;
    for point in &line.points {
        if !point.1.is_finite() {
            last = None;
            continue;
        }
        let here = place(*point);
        let from = last.unwrap_or(here);
        let steps = from.0.abs_diff(here.0).max(from.1.abs_diff(here.1)).max(1);
        for step in 0..=steps {
            let between = |a: usize, b: usize| (a * (steps - step) + b * step + steps / 2) / steps;
            dot(between(from.0, here.0), between(from.1, here.1));
        }
        last = Some(here);
    }
    canvas
}

/// The dot of `v` among `dots` over the span.
fn scale(v: f64, (low, high): (f64, f64), dots: usize) -> usize {
    let share = ((v - low) / (high - low)).clamp(0.0, 1.0);
    // Between 0 and some hundred.
    (share * (dots - 1) as f64).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rising_line_goes_from_corner_to_corner() {
        let points = (0..=10).map(|i| (f64::from(i), f64::from(i))).collect();
        let text = plot(&[Line { name: "up", points }], |x| format!("{x}"), |y| format!("{y}"));
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows.len(), 1 + HEIGHT + 1);
        assert_eq!(rows[0], "up");
        assert!(rows[1].starts_with("10 ┤") && rows[1].chars().count() == 4 + WIDTH, "{text}");
        assert!(rows[HEIGHT].starts_with(" 0 ┤⣀"), "{text}");
        assert!(rows[HEIGHT + 1].starts_with("    0") && rows[HEIGHT + 1].ends_with("10"), "{text}");
    }

    #[test]
    fn nothing_and_one_value_are_no_special_case() {
        let nothing: &[Line<'_>] = &[Line { name: "n", points: vec![(0.0, f64::NAN)] }];
        assert_eq!(plot(nothing, |_| String::new(), |_| String::new()), "nothing to plot\n");
        let one = plot(&[Line { name: "o", points: vec![(5.0, 5.0)] }], |x| x.to_string(), |y| y.to_string());
        assert!(one.contains('⠈') || one.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c)), "{one}");
    }
}
