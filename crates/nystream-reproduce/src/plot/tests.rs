use super::*;

fn chart(kind: Kind, points: Vec<(f64, f64)>) -> Chart {
    Chart { title: "T".into(), series: vec![Series::new("S", kind, points)], ..Chart::default() }
}

fn count(svg: &str, tag: &str) -> usize {
    svg.matches(tag).count()
}

/// Opening and closing tags match and nothing is written that is not a number.
fn check(svg: &str) {
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
    assert_eq!(count(svg, "<text"), count(svg, "</text>"), "{svg}");
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
fn each_kind_leaves_its_mark() {
    let points = vec![(0.0, 0.0), (1.0, 2.0), (2.0, 1.0)];
    let empty = chart(Kind::Points, vec![]).to_svg(800, 500);
    let dots = chart(Kind::Points, points.clone()).to_svg(800, 500);
    assert_eq!(count(&dots, "<circle"), count(&empty, "<circle") + 3);
    let bounds = vec![(-1.0, 1.0), (1.0, 3.0), (0.0, 2.0)];
    let band = chart(Kind::Band(bounds), points.clone()).to_svg(800, 500);
    assert_eq!(count(&band, "<polygon"), 1);
    let line = chart(Kind::Line, points.clone()).to_svg(800, 500);
    assert_eq!(count(&line, "#0072B2"), 2, "the line and its legend");
    let dashed = chart(Kind::Dashed, points).to_svg(800, 500);
    assert!(count(&dashed, "#0072B2") > 20);
    [empty, dots, band, line, dashed].iter().for_each(|svg| check(svg));
}

#[test]
fn nothing_to_show_is_said() {
    for chart in [Chart::default(), chart(Kind::Line, vec![]), chart(Kind::Line, vec![(f64::NAN, 1.0)])] {
        for (log_x, log_y) in [(false, false), (true, true)] {
            let svg = Chart { log_x, log_y, ..chart.clone() }.to_svg(800, 500);
            check(&svg);
            assert!(svg.contains("nothing to show"));
        }
    }
    check(&side_by_side(&[], 800, 500));
}

#[test]
fn what_cannot_be_drawn_is_dropped() {
    let good = vec![(1.0, 1.0), (10.0, 5.0), (100.0, 2.0)];
    let mut mixed = good.clone();
    mixed.insert(1, (f64::NAN, 1.0));
    mixed.insert(2, (2.0, f64::INFINITY));
    for kind in [Kind::Line, Kind::Points, Kind::Dashed] {
        assert_eq!(chart(kind.clone(), mixed.clone()).to_svg(800, 500), chart(kind, good.clone()).to_svg(800, 500));
    }
    mixed.push((0.0, 1.0));
    mixed.push((3.0, -1.0));
    let log = |points| Chart { log_x: true, log_y: true, ..chart(Kind::Line, points) }.to_svg(800, 500);
    assert_eq!(log(mixed), log(good));
}

#[test]
fn single_points_are_dots() {
    for kind in [Kind::Line, Kind::Dashed, Kind::Points, Kind::Band(vec![(1.0, 2.0)])] {
        for point in [(0.0, 0.0), (1.0, 1.0), (1e300, -1e300), (5e-324, 5e-324)] {
            let svg = chart(kind.clone(), vec![point]).to_svg(800, 500);
            check(&svg);
            assert!(count(&svg, "<circle") >= 1, "{kind:?} {point:?}");
        }
    }
}

#[test]
fn a_band_is_broken_where_a_bound_is_missing() {
    let points = (0..7).map(|i| (f64::from(i), 0.0)).collect();
    let bounds = (0..6).map(|i| (-1.0, if i == 2 { f64::INFINITY } else { 1.0 })).collect();
    let svg = chart(Kind::Band(bounds), points).to_svg(800, 500);
    check(&svg);
    assert_eq!(count(&svg, "<polygon"), 2);
}

#[test]
fn markup_and_control_characters_in_names_are_harmless() {
    let mut chart = chart(Kind::Line, vec![(0.0, 1.0), (1.0, 2.0)]);
    chart.title = "<script>&\u{0}\u{1b}[1m".into();
    let svg = chart.to_svg(800, 500);
    check(&svg);
    assert!(svg.contains("&lt;script&gt;&amp;"));
    assert!(!svg.contains('\u{0}') && !svg.contains('\u{1b}'));
}

#[test]
fn any_size_can_be_asked_for() {
    let chart = chart(Kind::Line, vec![(0.0, 1.0), (1.0, 2.0)]);
    for size in [(0, 0), (1, 10_000), (u32::MAX, u32::MAX)] {
        check(&chart.to_svg(size.0, size.1));
    }
    assert!(chart.to_svg(0, 0).starts_with("<svg width=\"240\" height=\"180\""));
    check(&side_by_side(&vec![chart; 60], 800, 500));
}

#[test]
fn two_charts_stand_side_by_side() {
    let left = Chart { title: "left one".into(), ..chart(Kind::Line, vec![(0.0, 0.0), (1.0, 1.0)]) };
    let right = Chart { title: "right one".into(), ..left.clone() };
    let svg = side_by_side(&[left, right], 1400, 500);
    check(&svg);
    let x_of = |title: &str| -> f64 {
        let tag = &svg[svg[..svg.find(title).unwrap()].rfind("<text").unwrap()..];
        tag["<text x=\"".len()..].split('"').next().unwrap().parse().unwrap()
    };
    assert_eq!(x_of("right one") - x_of("left one"), 700.0 * 8.0);
}

#[test]
fn small_multiples_fill_rows_and_groups_share_a_colour() {
    let one = |title: &str, group| {
        let dot = Series::new("name", Kind::Labelled, vec![(1.0, 1.0)]).in_group(group);
        Chart { title: title.into(), series: vec![dot], ..Chart::default() }
    };
    let svg = grid(&[one("first", 1), one("second", 9), one("third", 1)], 2, 400, 300);
    check(&svg);
    assert!(svg.starts_with("<svg width=\"800\" height=\"600\""), "{svg}");
    let at = |title: &str, axis: &str| -> f64 {
        let tag = &svg[svg[..svg.find(title).unwrap()].rfind("<text").unwrap()..];
        tag.split(&format!(" {axis}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
    };
    assert_eq!((at("second", "x") - at("first", "x"), at("second", "y")), (400.0 * 8.0, at("first", "y")));
    assert_eq!((at("third", "x"), at("third", "y") - at("first", "y")), (at("first", "x"), 300.0 * 8.0));
    // A dot and a name each.
    assert_eq!((count(&svg, "#D55E00"), count(&svg, "#707070")), (4, 2));
}

#[test]
fn learning_curves_have_references_across() {
    let chart = learning_curve("RMSE", &[("ours", vec![(10.0, 1.0), (1000.0, 0.5)])], &[("exact", 0.4)]);
    assert_eq!(chart.series[1].points, [(10.0, 0.4), (1000.0, 0.4)]);
    assert!(chart.log_x);
    check(&chart.to_svg(800, 500));
    assert!(learning_curve("RMSE", &[], &[("exact", 0.4)]).series[0].points.is_empty());
}

#[test]
fn fits_are_sorted_and_name_their_level() {
    let at = |x: f64| FitPoint { x, mean: x, lower: x - 1.0, upper: x + 2.0 };
    let chart = fit_band("x", "y", &[(0.0, 0.0)], &[at(2.0), at(1.0)], 0.9, Some(&[(2.0, 2.0), (1.0, 1.0)]));
    assert_eq!(chart.series[1].name, "fit and 90 % band");
    assert_eq!(chart.series[1].points, [(1.0, 1.0), (2.0, 2.0)]);
    assert_eq!(chart.series[1].kind, Kind::Band(vec![(0.0, 3.0), (1.0, 4.0)]));
    assert_eq!(chart.series[2].points[0].0, 1.0);
    let bare = fit_band("x", "y", &[], &[at(1.0)], 0.955, None);
    assert_eq!(bare.series.iter().map(|series| series.name.as_str()).collect::<Vec<_>>(), ["fit and 95.5 % band"]);
    check(&chart.to_svg(800, 500));
}

#[test]
fn leverage_profiles_descend_and_stay_short() {
    let scores: Vec<f64> = (1..=100_000).map(|i| 1.0 / f64::from(i)).rev().collect();
    let chart = leverage_profile(&scores);
    let points = &chart.series[0].points;
    assert!(points.len() <= 600 && points[0] == (1.0, 1.0) && points[points.len() - 1] == (1e5, 1e-5));
    assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 >= pair[1].1));
    assert!(chart.series[0].name.ends_with("12.09"), "{}", chart.series[0].name);
    assert_eq!(leverage_profile(&[0.5]).series[0].points, [(1.0, 0.5)]);
    check(&leverage_profile(&[]).to_svg(800, 500));
    check(&leverage_profile(&[f64::NAN, 0.0, 0.5]).to_svg(800, 500));
}
