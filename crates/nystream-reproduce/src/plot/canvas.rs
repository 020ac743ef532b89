//! Drawing in fractional pixels on the SVG backend of plotters, which itself counts in whole ones.

use plotters::backend::{DrawingBackend, SVGBackend};
use plotters::style::text_anchor::{self, Pos, VPos};
use plotters::style::{Color, FontStyle, FontTransform, IntoFont, RGBAColor, RGBColor, ShapeStyle, TextStyle};

/// Backend units in a pixel: curves are drawn this much finer than the page.
const FINE: f64 = 8.0;

/// Red, green, blue, and opacity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ink(pub (u8, u8, u8), pub f64);

/// Where a text hangs on its point, horizontally.
pub use text_anchor::HPos as Anchor;

/// How a text looks.
#[derive(Clone, Copy)]
pub struct Font {
    /// Height in pixels.
    pub size: f64,
    /// Heavy strokes.
    pub bold: bool,
    /// Written upwards.
    pub upwards: bool,
    /// Which end stands at the point.
    pub anchor: Anchor,
    /// Colour.
    pub ink: Ink,
}

/// An SVG document being drawn.
pub struct Canvas<'a>(SVGBackend<'a>);

type Point = (f64, f64);

impl Canvas<'_> {
    /// Calls `paint` with an empty page and returns the document.
    pub fn page(width: u32, height: u32, paint: impl FnOnce(&mut Canvas)) -> String {
        let (fine_width, fine_height) = (width * FINE as u32, height * FINE as u32);
        let mut text = String::new();
        let mut canvas = Canvas(SVGBackend::with_string(&mut text, (fine_width, fine_height)));
        paint(&mut canvas);
        drop(canvas); // closes the document
        let body = text.split_once('>').map_or("", |(_, body)| body);
        format!(
            "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {fine_width} {fine_height}\" \
             stroke-linejoin=\"round\" xmlns=\"http://www.w3.org/2000/svg\">{body}"
        )
    }

    /// A line through the points; nothing for fewer than two.
    pub fn line(&mut self, points: &[Point], width: f64, ink: Ink) {
        if points.len() > 1 {
            written(self.0.draw_path(thin(points), &stroke(ink, width)));
        }
    }

    /// A dashed line through the points.
    pub fn dashed(&mut self, points: &[Point], width: f64, ink: Ink) {
        for dash in dashes(points, 6.0, 4.0) {
            self.line(&dash, width, ink);
        }
    }

    /// A filled polygon.
    pub fn area(&mut self, points: &[Point], ink: Ink) {
        if points.len() > 2 {
            written(self.0.fill_polygon(thin(points), &stroke(ink, 0.0)));
        }
    }

    /// A filled circle.
    pub fn dot(&mut self, point: Point, radius: f64, ink: Ink) {
        written(self.0.draw_circle(fine(point), (radius * FINE).round() as u32, &stroke(ink, 0.0), true));
    }

    /// A filled rectangle between two corners.
    pub fn rectangle(&mut self, from: Point, to: Point, ink: Ink) {
        written(self.0.draw_rect(fine(from), fine(to), &stroke(ink, 0.0), true));
    }

    /// Text, vertically centred on the point.
    pub fn text(&mut self, text: &str, point: Point, font: Font) {
        let text: String = text.chars().map(|c| if legal(c) { c } else { ' ' }).collect();
        if !text.trim().is_empty() {
            written(self.0.draw_text(&text, &font.style(), fine(point)));
        }
    }
}

/// About how many pixels `text` is wide: the viewer's font is unknown.
pub fn text_width(text: &str, size: f64) -> f64 {
    unicode_width::UnicodeWidthStr::width(text) as f64 * size * 0.62
}

/// Drawing into memory has no way to fail; should plotters change its mind, the chart lacks a stroke.
fn written<E>(result: Result<(), E>) {
    debug_assert!(result.is_ok(), "drawing into memory failed");
}

fn fine((x, y): Point) -> (i32, i32) {
    ((x * FINE).round() as i32, (y * FINE).round() as i32)
}

/// In backend units, without points that fall on the one before: long series stay short documents.
fn thin(points: &[Point]) -> Vec<(i32, i32)> {
    let mut points: Vec<_> = points.iter().copied().map(fine).collect();
    points.dedup();
    points
}

/// Characters that XML 1.0 allows, line breaks aside.
fn legal(c: char) -> bool {
    !c.is_control() && c != '\u{fffe}' && c != '\u{ffff}'
}

/// Cuts a path into dashes of length `on` with gaps of length `off`.
fn dashes(points: &[Point], on: f64, off: f64) -> Vec<Vec<Point>> {
    let mut all = Vec::new();
    let mut dash: Vec<Point> = points.first().copied().into_iter().collect();
    let (mut drawing, mut left) = (true, on);
    for pair in points.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let length = (x1 - x0).hypot(y1 - y0);
        let mut walked = 0.0;
        while length - walked > left {
            walked += left;
            let point = (x0 + (x1 - x0) * walked / length, y0 + (y1 - y0) * walked / length);
            dash.push(point);
            if drawing {
                all.push(std::mem::take(&mut dash));
            } else {
                dash = vec![point];
            }
            drawing = !drawing;
            left = if drawing { on } else { off };
        }
        left -= length - walked;
        dash.push((x1, y1));
    }
    if drawing && dash.len() > 1 {
        all.push(dash);
    }
    all
}

fn stroke(ink: Ink, width: f64) -> ShapeStyle {
    ShapeStyle { color: ink.colour(), filled: true, stroke_width: (width * FINE).round() as u32 }
}

impl Ink {
    fn colour(self) -> RGBAColor {
        let (red, green, blue) = self.0;
        RGBColor(red, green, blue).mix(self.1)
    }
}

impl Font {
    fn style(self) -> TextStyle<'static> {
        let size = self.size * FINE * 1.24; // the backend divides by this
        let style = if self.bold { FontStyle::Bold } else { FontStyle::Normal };
        let turned = if self.upwards { FontTransform::Rotate270 } else { FontTransform::None };
        let font = ("sans-serif", size).into_font().style(style).transform(turned);
        let pos = Pos::new(self.anchor, VPos::Center);
        TextStyle { color: self.ink.colour().to_backend_color(), pos, ..TextStyle::from(font) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_go_on_around_corners() {
        let path = [(0.0, 0.0), (8.0, 0.0), (8.0, 8.0)];
        let cut = dashes(&path, 6.0, 4.0);
        assert_eq!(cut, vec![vec![(0.0, 0.0), (6.0, 0.0)], vec![(8.0, 2.0), (8.0, 8.0)]]);
        assert!(dashes(&[], 6.0, 4.0).is_empty());
        assert!(dashes(&[(1.0, 1.0)], 6.0, 4.0).is_empty());
    }

    #[test]
    fn gaps_do_not_leak_into_dashes() {
        let path: Vec<Point> = (0..100).map(|i| (f64::from(i), 0.0)).collect();
        for dash in dashes(&path, 6.0, 4.0) {
            let length = dash[dash.len() - 1].0 - dash[0].0;
            assert!(length <= 6.0 + 1e-9, "{dash:?}");
        }
    }

    #[test]
    fn page_counts_in_pixels_and_draws_finer() {
        let svg = Canvas::page(300, 200, |canvas| canvas.line(&[(0.0, 0.0), (1.5, 2.0)], 1.0, Ink((0, 0, 0), 1.0)));
        assert!(svg.starts_with("<svg width=\"300\" height=\"200\" viewBox=\"0 0 2400 1600\""), "{svg}");
        assert!(svg.contains("points=\"0,0 12,16 \""), "{svg}");
        assert!(svg.trim_end().ends_with("</svg>"), "{svg}");
    }
}
