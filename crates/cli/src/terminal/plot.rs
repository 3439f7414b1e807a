//! Draws a line plot with braille characters. Each character has two columns and four rows of dots.

use std::fmt::Write;

use tacho_api::printable::printable;

/// Size of the plot's area in characters. The height is odd, because the middle row has a label.
const WIDTH: usize = 72;
const HEIGHT: usize = 13;

/// The bit of each dot of a braille character, by column and row. The bits are added to U+2800 (Unicode, Braille Patterns).
const DOTS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// A line: points in the order of x. A value that is not finite leaves a gap.
pub struct Line<'a> {
    pub name: &'a str,
    pub points: Vec<(f64, f64)>,
}

/// Draws one plot per line. All plots have the same range of x and y. `label_x` and `label_y` format the labels of the axes.
pub fn plot(lines: &[Line<'_>], label_x: impl Fn(f64) -> String, label_y: impl Fn(f64) -> String) -> String {
    let finite = || lines.iter().flat_map(|line| &line.points).filter(|(_, y)| y.is_finite());
    let Some((x, y)) = span(finite().map(|p| p.0)).zip(span(finite().map(|p| p.1))) else {
        return "nothing to plot\n".into();
    };
    let middle = |(low, high): (f64, f64)| low / 2.0 + high / 2.0;
    let labels = [label_y(y.1), label_y(middle(y)), label_y(y.0)];
    let margin = labels.iter().map(|l| l.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for line in lines {
        let _ = writeln!(out, "{}", printable(line.name));
        let canvas = draw(line, x, y);
        for (row, cells) in canvas.chunks(WIDTH).enumerate() {
            let label = match row {
                0 => &*labels[0],
                r if r == HEIGHT / 2 => &*labels[1],
                r if r == HEIGHT - 1 => &*labels[2],
                _ => "",
            };
            let cells: String = cells.iter().filter_map(|bits| char::from_u32(0x2800 + bits)).collect();
            let _ = writeln!(out, "{label:>margin$} ┤{}", cells.trim_end_matches('\u{2800}'));
        }
        let [from, mid, to] = [x.0, middle(x), x.1].map(&label_x);
        let _ = writeln!(out, "{:margin$}  {}", "", spread(&from, &mid, &to));
    }
    out
}

/// Places labels at the start, the middle and the end of the area. The middle label is omitted if there is no space for it.
fn spread(from: &str, mid: &str, to: &str) -> String {
    let [from_width, mid_width, to_width] = [from, mid, to].map(|label| label.chars().count());
    let before_mid = (WIDTH / 2).saturating_sub(from_width + mid_width / 2);
    let before_to = WIDTH.saturating_sub(from_width + before_mid + mid_width + to_width);
    if before_mid < 2 || before_to < 2 {
        let gap = WIDTH.saturating_sub(from_width + to_width).max(1);
        return format!("{from}{}{to}", " ".repeat(gap));
    }
    format!("{from}{}{mid}{}{to}", " ".repeat(before_mid), " ".repeat(before_to))
}

/// Formats Unix seconds as UTC for the axis of a plot over `span_s` seconds. Plots of a day or longer show the date, too.
pub fn clock(span_s: f64) -> impl Fn(f64) -> String {
    let format = if span_s >= 86_400.0 { "%Y-%m-%d %H:%MZ" } else { "%H:%M:%SZ" };
    move |seconds| {
        let at = jiff::Timestamp::from_millisecond((seconds * 1e3) as i64).unwrap_or_default();
        at.strftime(format).to_string()
    }
}

/// The minimum and the maximum, or a wider range if they are equal.
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

/// The position of `v` in the range, from 0 to `dots - 1`.
fn scale(v: f64, (low, high): (f64, f64), dots: usize) -> usize {
    let share = ((v - low) / (high - low)).clamp(0.0, 1.0);
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
    fn axes_have_labels_at_their_ends_and_middles() {
        let points = vec![(0.0, 2.0), (7_200.0, 4.0)];
        let text = plot(&[Line { name: "up", points }], clock(7_200.0), |y| format!("{y}"));
        let rows: Vec<&str> = text.lines().collect();
        let labels: Vec<&str> = rows[1..=HEIGHT].iter().filter_map(|row| row.split(' ').next()).collect();
        let mut expect = vec![""; HEIGHT];
        (expect[0], expect[HEIGHT / 2], expect[HEIGHT - 1]) = ("4", "3", "2");
        assert_eq!(labels, expect, "{text}");
        let times = rows[HEIGHT + 1];
        assert_eq!(times.split_whitespace().collect::<Vec<_>>(), ["00:00:00Z", "01:00:00Z", "02:00:00Z"]);
        assert_eq!(times.chars().count(), 3 + WIDTH, "{text}");
        assert_eq!(clock(86_400.0)(86_400.0), "1970-01-02 00:00Z");
        let long = "x".repeat(30);
        assert_eq!(
            spread(&long, &long, &long).split_whitespace().count(),
            2,
            "a label without space must be omitted"
        );
    }

    #[test]
    fn an_empty_plot_is_stated_and_a_single_point_is_drawn() {
        let nothing: &[Line<'_>] = &[Line { name: "n", points: vec![(0.0, f64::NAN)] }];
        assert_eq!(plot(nothing, |_| String::new(), |_| String::new()), "nothing to plot\n");
        let one = plot(&[Line { name: "o", points: vec![(5.0, 5.0)] }], |x| x.to_string(), |y| y.to_string());
        assert!(one.contains('⠈') || one.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c)), "{one}");
    }
}
