//! Where the names of dots go: beside them if there is room, else somewhat farther off with a thin line to the dot.

type Point = (f64, f64);

/// A dot and the width of its name.
#[derive(Debug, Clone, Copy)]
pub struct Name {
    pub dot: Point,
    pub width: f64,
}

/// Where a name stands: text from this point on, or up to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spot {
    pub at: Point,
    pub leftwards: bool,
    /// The end of the line from the dot, if the name is not right beside it.
    pub leader: Option<Point>,
}

/// A rectangle in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rectangle {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Rectangle {
    fn meets(&self, other: &Rectangle) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }

    fn holds(&self, other: &Rectangle) -> bool {
        self.left <= other.left && other.right <= self.right && self.top <= other.top && other.bottom <= self.bottom
    }

    /// Whether a line passes through, looked at every few pixels.
    fn crossed(&self, from: Point, to: Point) -> bool {
        let steps = ((to.0 - from.0).hypot(to.1 - from.1) / 3.0).ceil().max(1.0);
        (0..=steps as usize).map(|i| i as f64 / steps).any(|share| {
            let (x, y) = (from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1));
            self.left < x && x < self.right && self.top < y && y < self.bottom
        })
    }
}

/// Half the width of a dot with some air.
const DOT: f64 = 5.0;
/// From a dot to its name.
const GAP: f64 = 9.0;

/// One spot for each name, by turns, each as near as the dots and names placed before allow.
pub fn spots(names: &[Name], size: f64, room: Rectangle) -> Vec<Spot> {
    let around =
        |(x, y): Point, reach: f64| Rectangle { left: x - reach, top: y - reach, right: x + reach, bottom: y + reach };
    let dots: Vec<Rectangle> = names.iter().map(|name| around(name.dot, DOT)).collect();
    let mut taken: Vec<Rectangle> = Vec::new();
    let mut lines: Vec<(Point, Point)> = Vec::new();
    let mut spots = Vec::new();
    for (own, name) in names.iter().enumerate() {
        let (x, y) = name.dot;
        let others = || dots.iter().enumerate().filter(|(i, _)| *i != own).map(|(_, dot)| dot);
        let shifts = (0..=12).flat_map(|step| [-1.0, 1.0].map(|sign| sign * f64::from(step) * size * 0.75));
        let gaps = [GAP, 2.5 * GAP, 5.0 * GAP, 8.0 * GAP];
        let tries = shifts.flat_map(|shift| gaps.map(|gap| (shift, gap)));
        let tries = tries.flat_map(|(shift, gap)| [false, true].map(|leftwards| (shift, gap, leftwards)));
        let spot = |(shift, gap, leftwards): (f64, f64, bool)| {
            let at = (if leftwards { x - gap } else { x + gap }, y + shift);
            let left = if leftwards { at.0 - name.width } else { at.0 };
            let place = Rectangle { left, top: at.1 - 0.5 * size, right: left + name.width, bottom: at.1 + 0.5 * size };
            let away = gap > GAP || f64::abs(shift) > 0.8 * size;
            let end = (if leftwards { at.0 + 2.0 } else { at.0 - 2.0 }, at.1);
            (place, Spot { at, leftwards, leader: away.then_some(end) }, f64::abs(shift) + 0.7 * (gap - GAP))
        };
        let apart = |place: &Rectangle| room.holds(place) && !taken.iter().chain(&dots).any(|there| there.meets(place));
        let uncrossed = |place: &Rectangle, spot: &Spot| {
            let clear = |end: Point| !taken.iter().chain(others()).any(|there| there.crossed(name.dot, end));
            !lines.iter().any(|line| place.crossed(line.0, line.1)) && spot.leader.is_none_or(clear)
        };
        let mut near: Vec<(Rectangle, Spot, f64)> = tries.map(spot).collect();
        near.sort_by(|a, b| a.2.total_cmp(&b.2));
        let apart: Vec<_> = near.into_iter().filter(|(place, _, _)| apart(place)).collect();
        // Lines across names are better than names across names. With no room anywhere, on the dot's right side all the
        // same, or on its left at the edge.
        let best = apart.iter().find(|(place, spot, _)| uncrossed(place, spot)).or(apart.first()).copied();
        let (place, spot, _) = best.unwrap_or_else(|| spot((0.0, GAP, x + GAP + name.width > room.right)));
        taken.push(place);
        lines.extend(spot.leader.map(|end| (name.dot, end)));
        spots.push(spot);
    }
    spots
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Rectangle = Rectangle { left: 0.0, top: 0.0, right: 400.0, bottom: 300.0 };

    fn place(name: &Name, spot: &Spot) -> Rectangle {
        let left = if spot.leftwards { spot.at.0 - name.width } else { spot.at.0 };
        Rectangle { left, top: spot.at.1 - 6.0, right: left + name.width, bottom: spot.at.1 + 6.0 }
    }

    #[test]
    fn a_lonely_name_is_right_beside_its_dot_and_turns_at_the_edge() {
        let spots =
            spots(&[Name { dot: (100.0, 50.0), width: 40.0 }, Name { dot: (390.0, 150.0), width: 40.0 }], 12.0, ROOM);
        assert_eq!(spots[0], Spot { at: (109.0, 50.0), leftwards: false, leader: None });
        assert_eq!(spots[1], Spot { at: (381.0, 150.0), leftwards: true, leader: None });
    }

    #[test]
    fn names_of_a_crowd_do_not_lie_on_each_other() {
        let dot = |i: usize| (150.0 + 3.0 * (i % 4) as f64, 140.0 + 3.0 * i as f64);
        let names: Vec<Name> = (0..16).map(|i| Name { dot: dot(i), width: 60.0 }).collect();
        let spots = spots(&names, 12.0, ROOM);
        let places: Vec<Rectangle> = names.iter().zip(&spots).map(|(name, spot)| place(name, spot)).collect();
        for (i, one) in places.iter().enumerate() {
            assert!(ROOM.holds(one), "{one:?}");
            assert!(places[..i].iter().all(|other| !one.meets(other)), "{i}: {places:?}");
        }
        assert!(spots.iter().any(|spot| spot.leader.is_some()));
    }
}
