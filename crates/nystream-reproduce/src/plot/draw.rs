//! Lays a chart out and draws it: title, legend, axes, then bands, dots and lines in this order.

use super::axis::{Axis, drawable};
use super::canvas::{Anchor, Canvas, Font, Ink, text_width};
use super::labels::{self, Name, Rectangle};
use super::{Chart, Kind, Series};

const TEXT: Ink = Ink((0x22, 0x22, 0x22), 1.0);
const FAINT: Ink = Ink((0x66, 0x66, 0x66), 1.0);
const PAPER: Ink = Ink((0xff, 0xff, 0xff), 1.0);
const GRID: Ink = Ink((0xdd, 0xdd, 0xdd), 1.0);
const FINE_GRID: Ink = Ink((0xf2, 0xf2, 0xf2), 1.0);
const FRAME: Ink = Ink((0x88, 0x88, 0x88), 1.0);
const DATA: (u8, u8, u8) = (0x70, 0x70, 0x70);

/// Okabe and Ito's colours without black and yellow, the darker ones first.
const PALETTE: [(u8, u8, u8); 6] = [
    (0x00, 0x72, 0xb2),
    (0xd5, 0x5e, 0x00),
    (0x00, 0x9e, 0x73),
    (0xcc, 0x79, 0xa7),
    (0xe6, 0x9f, 0x00),
    (0x56, 0xb4, 0xe9),
];

const TITLE_SIZE: f64 = 16.0;
const LABEL_SIZE: f64 = 13.0;
const TICK_SIZE: f64 = 12.0;
const LEGEND_ROW: f64 = 19.0;
const SWATCH: f64 = 24.0;
const RIGHT_MARGIN: f64 = 22.0;

/// Left, top, right and bottom edge in pixels.
#[derive(Debug, Clone, Copy)]
struct Area {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

/// The charts in rows of so many.
pub fn document(charts: &[Chart], columns: usize, width: u32, height: u32) -> String {
    let columns = columns.clamp(1, 40);
    let rows = charts.len().div_ceil(columns).clamp(1, 40);
    let width = width.clamp(240 * columns as u32, 20_000);
    let height = height.clamp(180 * rows as u32, 20_000);
    Canvas::page(width, height, |canvas| {
        let (width, height) = (f64::from(width), f64::from(height));
        canvas.rectangle((0.0, 0.0), (width, height), PAPER);
        let (each, high) = (width / columns as f64, height / rows as f64);
        for (i, chart) in charts.iter().take(columns * rows).enumerate() {
            let (left, top) = (each * (i % columns) as f64, high * (i / columns) as f64);
            draw(chart, canvas, Area { left, top, right: left + each, bottom: top + high });
        }
    })
}

/// What can be drawn of a series, with its colour.
struct Visible<'a> {
    series: &'a Series,
    colour: (u8, u8, u8),
    points: Vec<(f64, f64)>,
    /// Runs of consecutive points that have both bounds: x, lower, upper.
    bands: Vec<Vec<(f64, f64, f64)>>,
}

fn draw(chart: &Chart, canvas: &mut Canvas, area: Area) {
    let all = visible(chart);
    let mut top = area.top + 14.0;
    if !chart.title.is_empty() {
        let font = Font { size: TITLE_SIZE, bold: true, upwards: false, anchor: Anchor::Left, ink: TEXT };
        canvas.text(&chart.title, (area.left + 16.0, top + TITLE_SIZE / 2.0), font);
        top += TITLE_SIZE + 10.0;
    }
    top = legend(canvas, &all, Area { left: area.left + 16.0, top, right: area.right - 16.0, ..area });
    let bottom = area.bottom - if chart.x_label.is_empty() { 32.0 } else { 52.0 };

    let y_values = all.iter().flat_map(|one| {
        let bounds = one.bands.iter().flatten().flat_map(|&(_, lower, upper)| [lower, upper]);
        one.points.iter().map(|point| point.1).chain(bounds)
    });
    let y_count = ((bottom - top) / 42.0) as usize;
    let y = Axis::over(y_values, chart.log_y, 0.05, y_count);
    let widest = y.ticks.iter().map(|(_, text)| text_width(text, TICK_SIZE)).fold(0.0, f64::max);
    let y_label = if chart.y_label.is_empty() { 0.0 } else { 24.0 };
    let inner = Area { left: area.left + 16.0 + y_label + widest + 8.0, top, right: area.right - RIGHT_MARGIN, bottom };

    let x = x_axis(&all, chart.log_x, inner.right - inner.left);

    axes(canvas, chart, inner, area, &x, &y);
    let place = |horizontal: f64, vertical: f64| {
        let left = inner.left + x.place(horizontal) * (inner.right - inner.left);
        (left, inner.bottom - y.place(vertical) * (inner.bottom - inner.top))
    };
    for one in &all {
        for run in &one.bands {
            let upper = run.iter().map(|&(x, _, upper)| place(x, upper));
            let lower = run.iter().rev().map(|&(x, lower, _)| place(x, lower));
            canvas.area(&upper.chain(lower).collect::<Vec<_>>(), Ink(one.colour, 0.2));
        }
    }
    // Dots first: the curves lie on the data.
    let (dots, lines): (Vec<&Visible>, Vec<&Visible>) = all.iter().partition(|one| one.series.kind == Kind::Points);
    for one in dots.into_iter().chain(lines) {
        let path: Vec<_> = one.points.iter().map(|&(x, y)| place(x, y)).collect();
        match one.series.kind {
            Kind::Points => path.iter().for_each(|&point| canvas.dot(point, 2.25, Ink(one.colour, 0.55))),
            Kind::Labelled => path.iter().for_each(|&point| canvas.dot(point, 4.0, Ink(one.colour, 1.0))),
            // One point makes no line, but it is not nothing.
            _ if path.len() == 1 => canvas.dot(path[0], 3.5, Ink(one.colour, 1.0)),
            Kind::Dashed => canvas.dashed(&path, 1.75, Ink(one.colour, 1.0)),
            Kind::Line | Kind::Band(_) => canvas.line(&path, 2.0, Ink(one.colour, 1.0)),
        }
    }
    labels(canvas, &all, inner, place);
    if all.iter().all(|one| one.points.is_empty()) {
        let middle = ((inner.left + inner.right) / 2.0, (inner.top + inner.bottom) / 2.0);
        let font = Font { size: LABEL_SIZE, bold: false, upwards: false, anchor: Anchor::Center, ink: FAINT };
        canvas.text("nothing to show", middle, font);
    }
}

/// Names beside their dots.
fn labels(canvas: &mut Canvas, all: &[Visible], inner: Area, place: impl Fn(f64, f64) -> (f64, f64)) {
    let mut names = Vec::new();
    for one in all.iter().filter(|one| one.series.kind == Kind::Labelled) {
        let width = text_width(&one.series.name, TICK_SIZE);
        names.extend(one.points.iter().map(|&(x, y)| (one, Name { dot: place(x, y), width })));
    }
    let room = Rectangle {
        left: inner.left + 3.0,
        top: inner.top - 6.0,
        right: inner.right + RIGHT_MARGIN - 4.0,
        bottom: inner.bottom - 3.0,
    };
    let spots = labels::spots(&names.iter().map(|(_, name)| *name).collect::<Vec<_>>(), TICK_SIZE, room);
    for ((one, name), spot) in names.iter().zip(spots) {
        if let Some(end) = spot.leader {
            canvas.line(&[name.dot, end], 0.75, Ink(one.colour, 0.6));
        }
        let anchor = if spot.leftwards { Anchor::Right } else { Anchor::Left };
        let font = Font { size: TICK_SIZE, bold: false, upwards: false, anchor, ink: Ink(one.colour, 1.0) };
        canvas.text(&one.series.name, spot.at, font);
    }
}

/// As many ticks as there is room for their labels.
fn x_axis(all: &[Visible], log: bool, width: f64) -> Axis {
    let axis = |count| Axis::over(all.iter().flat_map(|one| &one.points).map(|point| point.0), log, 0.02, count);
    let crowded = |axis: &Axis| {
        let span = |(value, text): &(f64, String)| {
            let centre = label_centre(axis.place(*value) * width, text, width + RIGHT_MARGIN);
            let half = text_width(text, TICK_SIZE) / 2.0;
            (centre - half, centre + half)
        };
        axis.ticks.windows(2).any(|pair| span(&pair[1]).0 - span(&pair[0]).1 < 12.0)
    };
    let counts = (3..=(width / 60.0) as usize).rev();
    counts.map(axis).find(|axis| !crowded(axis)).unwrap_or_else(|| axis(2))
}

/// The middle of a label under `place`, moved so that it ends on this side of `edge`.
fn label_centre(place: f64, text: &str, edge: f64) -> f64 {
    place.min(edge - 2.0 - text_width(text, TICK_SIZE) / 2.0)
}

fn visible(chart: &Chart) -> Vec<Visible<'_>> {
    let curves = chart.series.iter().any(|series| series.kind != Kind::Points);
    let mut next = 0;
    let mut all = Vec::new();
    for series in &chart.series {
        let colour = if let Some(group) = series.group {
            PALETTE.get(group).copied().unwrap_or(DATA)
        } else if curves && series.kind == Kind::Points {
            DATA
        } else {
            next += 1;
            PALETTE[(next - 1) % PALETTE.len()]
        };
        let fits = |&(x, y): &(f64, f64)| drawable(x, chart.log_x) && drawable(y, chart.log_y);
        let points = series.points.iter().copied().filter(fits).collect();
        let mut bands = vec![Vec::new()];
        if let Kind::Band(bounds) = &series.kind {
            for (point, &(lower, upper)) in series.points.iter().zip(bounds) {
                if fits(point) && drawable(lower, chart.log_y) && drawable(upper, chart.log_y) {
                    bands.last_mut().into_iter().for_each(|run| run.push((point.0, lower, upper)));
                } else {
                    bands.push(Vec::new());
                }
            }
        }
        all.push(Visible { series, colour, points, bands });
    }
    all
}

/// Draws the legend in as many rows as it takes and returns the top of what follows.
fn legend(canvas: &mut Canvas, all: &[Visible], area: Area) -> f64 {
    let (mut left, mut top) = (area.left, area.top);
    let mut any = false;
    for one in all.iter().filter(|one| !one.series.name.is_empty() && one.series.kind != Kind::Labelled) {
        let width = SWATCH + 6.0 + text_width(&one.series.name, TICK_SIZE);
        if any && left + width > area.right {
            (left, top) = (area.left, top + LEGEND_ROW);
        }
        any = true;
        let middle = top + LEGEND_ROW / 2.0;
        let stroke = [(left, middle), (left + SWATCH, middle)];
        match one.series.kind {
            Kind::Line => canvas.line(&stroke, 2.0, Ink(one.colour, 1.0)),
            Kind::Dashed => canvas.dashed(&stroke, 1.75, Ink(one.colour, 1.0)),
            Kind::Points | Kind::Labelled => canvas.dot((left + SWATCH / 2.0, middle), 3.0, Ink(one.colour, 0.8)),
            Kind::Band(_) => {
                let corners = ((left, middle - 6.0), (left + SWATCH, middle + 6.0));
                canvas.rectangle(corners.0, corners.1, Ink(one.colour, 0.2));
                canvas.line(&stroke, 2.0, Ink(one.colour, 1.0));
            }
        }
        let font = Font { size: TICK_SIZE, bold: false, upwards: false, anchor: Anchor::Left, ink: TEXT };
        canvas.text(&one.series.name, (left + SWATCH + 6.0, middle), font);
        left += width + 20.0;
    }
    if any { top + LEGEND_ROW + 10.0 } else { top }
}

fn axes(canvas: &mut Canvas, chart: &Chart, inner: Area, outer: Area, x: &Axis, y: &Axis) {
    let (width, height) = (inner.right - inner.left, inner.bottom - inner.top);
    let column = |value: f64| inner.left + x.place(value) * width;
    let row = |value: f64| inner.bottom - y.place(value) * height;
    for &value in &x.fine {
        canvas.line(&[(column(value), inner.top), (column(value), inner.bottom)], 1.0, FINE_GRID);
    }
    for &value in &y.fine {
        canvas.line(&[(inner.left, row(value)), (inner.right, row(value))], 1.0, FINE_GRID);
    }
    let font = Font { size: TICK_SIZE, bold: false, upwards: false, anchor: Anchor::Center, ink: TEXT };
    for (value, text) in &x.ticks {
        canvas.line(&[(column(*value), inner.top), (column(*value), inner.bottom + 4.0)], 1.0, GRID);
        let centre = label_centre(column(*value), text, outer.right);
        canvas.text(text, (centre, inner.bottom + 14.0), font);
    }
    for (value, text) in &y.ticks {
        canvas.line(&[(inner.left - 4.0, row(*value)), (inner.right, row(*value))], 1.0, GRID);
        canvas.text(text, (inner.left - 8.0, row(*value)), Font { anchor: Anchor::Right, ..font });
    }
    let frame = [(inner.left, inner.top), (inner.left, inner.bottom), (inner.right, inner.bottom)];
    canvas.line(&frame, 1.0, FRAME);
    let font = Font { size: LABEL_SIZE, ..font };
    canvas.text(&chart.x_label, (inner.left + width / 2.0, inner.bottom + 36.0), font);
    let middle = inner.top + height / 2.0;
    canvas.text(&chart.y_label, (outer.left + 18.0, middle), Font { upwards: true, ..font });
}
