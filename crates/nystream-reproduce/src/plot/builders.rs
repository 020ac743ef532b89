//! The charts that several commands draw.

use nystream::fit::TracePoint;

use super::{Chart, Kind, Series};

/// Largest number of points in a leverage profile.
const PROFILE_POINTS: usize = 600;

/// A prediction at `x` with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FitPoint {
    /// Input.
    pub x: f64,
    /// Predicted value.
    pub mean: f64,
    /// Lower end of the interval.
    pub lower: f64,
    /// Upper end of the interval.
    pub upper: f64,
}

/// An error against the number of rows seen (logarithmic): one line for each named curve, a dashed
/// horizontal line for each named reference value.
pub fn learning_curve(error_name: &str, curves: &[(&str, Vec<(f64, f64)>)], references: &[(&str, f64)]) -> Chart {
    let mut series: Vec<Series> =
        curves.iter().map(|(name, points)| Series::new(*name, Kind::Line, points.clone())).collect();
    let rows = curves.iter().flat_map(|(_, points)| points).map(|point| point.0).filter(|x| x.is_finite() && *x > 0.0);
    let (first, last) = rows.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), x| (low.min(x), high.max(x)));
    for &(name, value) in references {
        let points = if first <= last { vec![(first, value), (last, value)] } else { Vec::new() };
        series.push(Series::new(name, Kind::Dashed, points));
    }
    Chart {
        title: "Learning curve".into(),
        x_label: "rows seen".into(),
        y_label: error_name.into(),
        log_x: true,
        log_y: false,
        series,
    }
}

/// A fitted curve with its band of probability `level` over the observed points, if there are any, and
/// the true curve where it is known. The order of `fitted` does not matter.
pub fn fit_band(
    x_name: &str,
    y_name: &str,
    observed: &[(f64, f64)],
    fitted: &[FitPoint],
    level: f64,
    truth: Option<&[(f64, f64)]>,
) -> Chart {
    let mut fitted = fitted.to_vec();
    fitted.sort_by(|a, b| a.x.total_cmp(&b.x));
    let line = fitted.iter().map(|point| (point.x, point.mean)).collect();
    let band = fitted.iter().map(|point| (point.lower, point.upper)).collect();
    let percent = (level * 1000.0).round() / 10.0;
    let mut series = Vec::new();
    if !observed.is_empty() {
        series.push(Series::new("observed", Kind::Points, observed.to_vec()));
    }
    series.push(Series::new(format!("fit and {percent} % band"), Kind::Band(band), line));
    if let Some(truth) = truth {
        let mut truth = truth.to_vec();
        truth.sort_by(|a, b| a.0.total_cmp(&b.0));
        series.push(Series::new("truth", Kind::Dashed, truth));
    }
    Chart { title: "Fit".into(), x_label: x_name.into(), y_label: y_name.into(), log_x: false, log_y: false, series }
}

/// Leverage scores from the largest to the smallest against their rank, both logarithmic; their sum,
/// the effective dimension, stands in the legend. The order of `scores` does not matter.
#[doc(alias = "d_eff")]
pub fn leverage_profile(scores: &[f64]) -> Chart {
    let mut scores: Vec<f64> = scores.iter().copied().filter(|score| score.is_finite()).collect();
    scores.sort_by(|a, b| b.total_cmp(a));
    let sum: f64 = scores.iter().sum();
    // Ranks evenly spaced on the logarithmic axis: a million scores need not be a million points.
    let mut ranks: Vec<usize> = (0..PROFILE_POINTS)
        .map(|i| (scores.len() as f64).powf(i as f64 / (PROFILE_POINTS - 1) as f64).round() as usize)
        .collect();
    ranks.dedup();
    let points = ranks.iter().filter_map(|&rank| Some((rank as f64, *scores.get(rank.checked_sub(1)?)?))).collect();
    let name = format!("leverage scores, effective dimension {}", crate::table::significant(sum, 4));
    Chart {
        title: "Leverage scores".into(),
        x_label: "rank".into(),
        y_label: "leverage score".into(),
        log_x: true,
        log_y: true,
        series: vec![Series::new(name, Kind::Line, points)],
    }
}

/// Atoms and effective dimension of a sequential dictionary over its stream; beside them the leverage ridge in force, if
/// it rose.
#[doc(alias = "d_eff")]
#[doc(alias = "γ")]
pub fn dictionary_growth(points: &[TracePoint]) -> Vec<Chart> {
    let line = |name: &str, value: fn(&TracePoint) -> f64| {
        let points = points.iter().map(|point| (point.rows as f64, value(point))).collect();
        Series::new(name, Kind::Line, points)
    };
    let chart = |title: &str, y_label: &str, log_y: bool, series: Vec<Series>| Chart {
        title: title.into(),
        x_label: "rows seen".into(),
        y_label: y_label.into(),
        log_x: false,
        log_y,
        series,
    };
    let sizes = vec![line("atoms", |p| p.atoms as f64), line("effective dimension", |p| p.effective_dim)];
    let mut charts = vec![chart("Dictionary over the stream", "number", false, sizes)];
    if points.iter().any(|point| point.leverage_ridge > points[0].leverage_ridge) {
        let ridge = vec![line("leverage ridge in force", |p| p.leverage_ridge)];
        charts.push(chart("Leverage ridge over the stream", "leverage ridge", true, ridge));
    }
    charts
}
