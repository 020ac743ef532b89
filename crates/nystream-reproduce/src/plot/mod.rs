//! Charts as SVG text: what to show is data ([`Chart`], [`Series`]), how it looks is decided here.
//!
//! Text is written as text in the viewer's sans-serif font, nothing is bundled. Colours are those of
//! Okabe and Ito, told apart by people with any kind of colour vision.
//!
//! ```text
//! let svg = plot::fit_band("x", "y", &observed, &fitted, 0.9, None).to_svg(800, 500);
//! let both = plot::side_by_side(&[curve, fit], 1400, 500);
//! ```

mod axis;
mod builders;
mod canvas;
mod draw;
mod labels;
#[cfg(test)]
mod tests;

pub use builders::{FitPoint, dictionary_growth, fit_band, learning_curve, leverage_profile};

/// A chart: labelled axes and the series on them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Chart {
    /// Shown above, in bold; may be empty.
    pub title: String,
    /// What the horizontal axis counts.
    pub x_label: String,
    /// What the vertical axis measures.
    pub y_label: String,
    /// Logarithmic horizontal axis: points with x ≤ 0 are dropped.
    pub log_x: bool,
    /// Logarithmic vertical axis: points with y ≤ 0 are dropped.
    pub log_y: bool,
    /// What is drawn; one legend entry for each that has a name.
    pub series: Vec<Series>,
}

/// One set of points and the way it is drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Shown in the legend, unless empty.
    pub name: String,
    /// In drawing order. Points that are not finite, or not positive on a logarithmic axis, are dropped.
    pub points: Vec<(f64, f64)>,
    /// Line, dots or band.
    pub kind: Kind,
    /// A group that shares a colour with others of its number; without one, the next colour.
    pub group: Option<usize>,
}

impl Series {
    /// A series of this kind.
    pub fn new(name: impl Into<String>, kind: Kind, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, kind, group: None }
    }

    /// The same in the colour of a group: blue, vermilion, green, purple, orange, sky blue, and grey from the seventh on.
    pub fn in_group(mut self, group: usize) -> Self {
        self.group = Some(group);
        self
    }
}

/// How a series is drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A line from point to point.
    Line,
    /// A dashed line from point to point.
    Dashed,
    /// Dots: grey where the chart also has lines, so that the data step back behind the curves.
    Points,
    /// Dots with the series' name written beside each, in place of a legend entry.
    Labelled,
    /// A line through the points on a shaded band. One `(lower, upper)` for each point; a point
    /// without one, or with a bound that cannot be drawn, keeps its place on the line only.
    Band(Vec<(f64, f64)>),
}

impl Chart {
    /// The chart as an SVG document of this size in pixels (at least 240 × 180).
    pub fn to_svg(&self, width: u32, height: u32) -> String {
        side_by_side(std::slice::from_ref(self), width, height)
    }
}

/// Charts in one row, in one SVG document of this size in pixels (at least 240 × 180 for each chart).
pub fn side_by_side(charts: &[Chart], width: u32, height: u32) -> String {
    draw::document(charts, charts.len(), width, height)
}

/// Small multiples: charts in rows of so many, each of this size in pixels (at least 240 × 180).
pub fn grid(charts: &[Chart], columns: usize, width: u32, height: u32) -> String {
    let columns = columns.clamp(1, charts.len().max(1));
    let rows = charts.len().div_ceil(columns).max(1);
    let all = |count: usize, one: u32, least: u32| one.max(least).saturating_mul(count.try_into().unwrap_or(u32::MAX));
    draw::document(charts, columns, all(columns, width, 240), all(rows, height, 180))
}
