//! Draws a scatter plot as SVG 1.1: two logarithmic axes, points in series, a line through the best points.
//!
//! The SVG has attributes and no styles, so that it looks the same in all viewers and pages.

use std::fmt::Write;

/// The points of one colour.
pub struct Series<'a> {
    pub name: &'a str,
    pub points: Vec<Point>,
}

pub struct Point {
    pub x: f64,
    pub y: f64,
    /// The tooltip.
    pub title: String,
}

pub struct Scatter<'a> {
    pub title: &'a str,
    pub x_label: &'a str,
    pub y_label: &'a str,
    pub series: Vec<Series<'a>>,
    /// Points of the line, in order.
    pub line: Vec<(f64, f64)>,
    /// The point with a ring around it, and its label.
    pub chosen: Option<((f64, f64), &'a str)>,
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 540.0;
/// Left, right, top and bottom of the area in which points are drawn.
const AREA: (f64, f64, f64, f64) = (80.0, 690.0, 50.0, 480.0);
/// Okabe and Ito's palette for colour-blind readers ("Color Universal Design", 2008).
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/// Converts values to positions.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn new(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (low, high) = values
            .filter(|value| value.is_finite() && *value > 0.0)
            .fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = if low > high { (1.0, 10.0) } else { (low / 1.15, high * 1.15) };
        Self { low: low.ln(), high: high.ln(), from, to }
    }

    fn place(&self, value: f64) -> f64 {
        let share = (value.max(f64::MIN_POSITIVE).ln() - self.low) / (self.high - self.low);
        self.from + share * (self.to - self.from)
    }

    /// The ticks of the axis: 1, 2 and 5 times each power of ten.
    fn ticks(&self) -> Vec<f64> {
        let (low, high) = (self.low.exp(), self.high.exp());
        let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let all = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)));
        all.filter(|tick| (low..=high).contains(tick)).collect()
    }
}

impl Scatter<'_> {
    pub fn render(&self) -> String {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let x = Axis::new(points().map(|point| point.x), AREA.0, AREA.1);
        let y = Axis::new(points().map(|point| point.y), AREA.3, AREA.2);
        let mut out = String::new();
        put(
            &mut out,
            format_args!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
             viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
            ),
        );
        text(&mut out, (AREA.0, 28.0), "start", 16, self.title);
        self.axes(&mut out, &x, &y);
        let line: Vec<String> =
            self.line.iter().map(|(px, py)| format!("{:.1},{:.1}", x.place(*px), y.place(*py))).collect();
        put(
            &mut out,
            format_args!(
                "<polyline points=\"{}\" fill=\"none\" stroke=\"#999999\" stroke-dasharray=\"4 3\"/>\n",
                line.join(" ")
            ),
        );
        for (nth, series) in self.series.iter().enumerate() {
            let colour = COLOURS[nth % COLOURS.len()];
            for point in &series.points {
                put(
                    &mut out,
                    format_args!(
                        "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{colour}\" fill-opacity=\"0.8\"><title>{}</title>\
                     </circle>\n",
                        x.place(point.x),
                        y.place(point.y),
                        escape(&point.title)
                    ),
                );
            }
            let at = 70.0 + 20.0 * nth as f64;
            put(
                &mut out,
                format_args!("<circle cx=\"710\" cy=\"{:.1}\" r=\"4\" fill=\"{colour}\"/>\n", at - 4.0),
            );
            text(&mut out, (722.0, at), "start", 12, series.name);
        }
        if let Some(((px, py), name)) = self.chosen {
            let (px, py) = (x.place(px), y.place(py));
            put(
                &mut out,
                format_args!(
                    "<circle cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"9\" fill=\"none\" stroke=\"#000000\" stroke-width=\"2\"/>\n"
                ),
            );
            // The label is on the side of the point that has enough space.
            let (beside, anchor) =
                if px > AREA.1 - 160.0 { (px - 14.0, "end") } else { (px + 14.0, "start") };
            text(&mut out, (beside, py - 10.0), anchor, 12, name);
        }
        out.push_str("</svg>\n");
        out
    }

    fn axes(&self, out: &mut String, x: &Axis, y: &Axis) {
        let (left, right, top, bottom) = AREA;
        for tick in x.ticks() {
            let at = x.place(tick);
            put(
                out,
                format_args!(
                    "<line x1=\"{at:.1}\" y1=\"{top}\" x2=\"{at:.1}\" y2=\"{bottom}\" stroke=\"#eeeeee\"/>\n"
                ),
            );
            text(out, (at, bottom + 18.0), "middle", 12, &tick_text(tick));
        }
        for tick in y.ticks() {
            let at = y.place(tick);
            put(
                out,
                format_args!(
                    "<line x1=\"{left}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\" stroke=\"#eeeeee\"/>\n"
                ),
            );
            text(out, (left - 8.0, at + 4.0), "end", 12, &tick_text(tick));
        }
        put(
            out,
            format_args!("<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#333333\"/>\n"),
        );
        text(out, ((left + right) / 2.0, bottom + 44.0), "middle", 13, self.x_label);
        let middle = (top + bottom) / 2.0;
        put(
            out,
            format_args!(
                "<text x=\"20\" y=\"{middle}\" font-size=\"13\" text-anchor=\"middle\" transform=\"rotate(-90 20 {middle})\">{}\
             </text>\n",
                escape(self.y_label)
            ),
        );
    }
}

fn put(out: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(what);
}

fn text(out: &mut String, (x, y): (f64, f64), anchor: &str, size: u32, text: &str) {
    put(
        out,
        format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{}</text>\n",
            escape(text)
        ),
    );
}

fn tick_text(value: f64) -> String {
    if (1e-3..1e6).contains(&value) {
        format!("{}", (value * 1e6).round() / 1e6)
    } else {
        format!("{value:e}")
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_drawn_within_the_area_and_texts_are_escaped() {
        let point = |x, y| Point { x, y, title: "a<b & \"c\"".into() };
        let series = vec![
            Series { name: "zstd", points: vec![point(1.0, 0.1), point(100.0, 2.0)] },
            Series { name: "none", points: vec![point(10.0, 8.0)] },
        ];
        let scatter = Scatter {
            title: "t",
            x_label: "x",
            y_label: "y",
            series,
            line: vec![(1.0, 8.0), (100.0, 0.1)],
            chosen: Some(((100.0, 2.0), "best")),
        };
        let svg = scatter.render();
        assert_eq!(svg.matches("<title>a&lt;b &amp; &quot;c&quot;</title>").count(), 3);
        for circle in svg.split("<circle cx=\"").skip(1).filter(|c| c.contains("fill-opacity")) {
            let x: f64 = circle.split('"').next().unwrap().parse().unwrap();
            let y: f64 = circle.split("cy=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
            assert!((AREA.0..=AREA.1).contains(&x) && (AREA.2..=AREA.3).contains(&y), "{x} {y}");
        }
        assert!(
            svg.contains("text-anchor=\"end\" font-size=\"12\">best</text>"),
            "the label is not to the left of a point near the right edge"
        );
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn ticks_are_round() {
        let axis = Axis::new([0.7, 30.0].into_iter(), 0.0, 1.0);
        assert_eq!(axis.ticks(), [1.0, 2.0, 5.0, 10.0, 20.0]);
        assert_eq!(tick_text(0.2), "0.2");
        assert_eq!(Axis::new(std::iter::empty(), 0.0, 1.0).ticks(), [1.0, 2.0, 5.0, 10.0]);
    }
}
