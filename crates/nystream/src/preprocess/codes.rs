//! Names for labels and levels, and numbers for names.
//!
//! A label or level may be written as text or as a number; it has one name either way (`1`, `+1` and
//! `1.0` are all `1`), so that files of different formats agree.

use std::collections::HashMap;

/// The name of a number: shortest decimal form that reads back as the same number.
pub(super) fn number_name(value: f64) -> String {
    let value = value + 0.0; // Negative zero is zero.
    if value == 0.0 || (1e-5..1e16).contains(&value.abs()) { value.to_string() } else { format!("{value:e}") }
}

/// Positions of `names` in their final order: numerically if all are numbers, else as text.
pub(super) fn sorted_order(names: &[String]) -> Vec<usize> {
    let numbers: Option<Vec<f64>> =
        names.iter().map(|name| name.parse::<f64>().ok().filter(|number| number.is_finite())).collect();
    let mut order: Vec<usize> = (0..names.len()).collect();
    match numbers {
        Some(numbers) => {
            order.sort_by(|&a, &b| numbers[a].total_cmp(&numbers[b]).then_with(|| names[a].cmp(&names[b])));
        }
        None => order.sort_by(|&a, &b| names[a].cmp(&names[b])),
    }
    order
}

/// Learns names and numbers them by first appearance.
#[derive(Debug, Clone)]
pub(super) struct Codes {
    names: Vec<String>,
    counts: Vec<u64>,
    by_text: HashMap<String, u32>,
    by_number: HashMap<u64, u32>,
    limit: usize,
    listed: bool,
}

impl Codes {
    /// Learns up to `limit` names.
    pub fn learning(limit: usize) -> Self {
        Self {
            names: Vec::new(),
            counts: Vec::new(),
            by_text: HashMap::new(),
            by_number: HashMap::new(),
            limit,
            listed: false,
        }
    }

    /// Knows these names, all different, and learns no other.
    pub fn listed(names: &[String]) -> Self {
        let by_text = names.iter().zip(0..).map(|(name, code)| (name.clone(), code)).collect();
        Self {
            names: names.to_vec(),
            counts: vec![0; names.len()],
            by_text,
            by_number: HashMap::new(),
            limit: names.len(),
            listed: true,
        }
    }

    /// Counts `text` and gives its code; `None` if it is new and cannot be learnt.
    pub fn text(&mut self, text: &str) -> Option<u32> {
        let code = match self.by_text.get(text) {
            Some(&code) => code,
            None if self.names.len() < self.limit => {
                let code = self.names.len() as u32;
                self.names.push(text.to_owned());
                self.counts.push(0);
                self.by_text.insert(text.to_owned(), code);
                code
            }
            None => return None,
        };
        self.counts[code as usize] += 1;
        Some(code)
    }

    /// Counts the name of a finite number and gives its code; `None` if it is new and cannot be learnt.
    pub fn number(&mut self, value: f64) -> Option<u32> {
        let bits = (value + 0.0).to_bits();
        if let Some(&code) = self.by_number.get(&bits) {
            self.counts[code as usize] += 1;
            return Some(code);
        }
        let code = self.text(&number_name(value))?;
        self.by_number.insert(bits, code);
        Some(code)
    }

    /// Names by code.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether the names were given rather than learnt.
    pub fn is_listed(&self) -> bool {
        self.listed
    }

    /// Names and counts in final order (sorted, or as listed), and the final position of each code.
    pub fn finish(self) -> (Vec<String>, Vec<u64>, Vec<u32>) {
        let order = if self.listed { (0..self.names.len()).collect() } else { sorted_order(&self.names) };
        let mut positions = vec![0; order.len()];
        for (position, &code) in (0..).zip(&order) {
            positions[code] = position;
        }
        let names = order.iter().map(|&code| self.names[code].clone()).collect();
        let counts = order.iter().map(|&code| self.counts[code]).collect();
        (names, counts, positions)
    }
}

/// Finds the position of a known name, written as text or as a number.
#[derive(Debug, Clone)]
pub(super) struct Lookup {
    by_text: HashMap<String, u32>,
    /// Names that are names of numbers, by number.
    by_number: Vec<(f64, u32)>,
}

impl Lookup {
    pub fn new(names: &[String]) -> Self {
        let mut by_number: Vec<(f64, u32)> = names
            .iter()
            .zip(0..)
            .filter_map(|(name, position)| {
                let number = name.parse::<f64>().ok().filter(|number| number.is_finite())?;
                (number_name(number) == *name).then_some((number + 0.0, position))
            })
            .collect();
        by_number.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { by_text: names.iter().zip(0..).map(|(name, i)| (name.clone(), i)).collect(), by_number }
    }

    pub fn text(&self, text: &str) -> Option<u32> {
        self.by_text.get(text).copied()
    }

    pub fn number(&self, value: f64) -> Option<u32> {
        let value = value + 0.0;
        self.by_number.binary_search_by(|(number, _)| number.total_cmp(&value)).ok().map(|at| self.by_number[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn numbers_have_one_name() {
        for (value, name) in [
            (1.0, "1"),
            (-0.0, "0"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (1e300, "1e300"),
            (1e-9, "1e-9"),
            (1e15, "1000000000000000"),
        ] {
            assert_eq!(number_name(value), name);
            assert_eq!(name.parse::<f64>().unwrap(), value);
        }
    }

    #[test]
    fn text_and_number_share_a_code() {
        let mut codes = Codes::learning(3);
        assert_eq!(codes.text("b"), Some(0));
        assert_eq!(codes.number(2.0), Some(1));
        assert_eq!(codes.text("2"), Some(1));
        assert_eq!(codes.number(-0.0), Some(2));
        assert_eq!(codes.number(0.0), Some(2));
        assert_eq!(codes.text("full"), None);
        let (names, counts, positions) = codes.finish();
        assert_eq!(names, owned(&["0", "2", "b"]));
        assert_eq!(counts, [2, 2, 1]);
        assert_eq!(positions, [2, 1, 0]);
    }

    #[test]
    fn numbers_sort_as_numbers_only_if_all_are() {
        assert_eq!(sorted_order(&owned(&["10", "9", "-1"])), [2, 1, 0]);
        assert_eq!(sorted_order(&owned(&["9", "10", "x"])), [1, 0, 2]);
        assert_eq!(sorted_order(&owned(&["inf", "10", "9"])), [1, 2, 0]);
    }

    #[test]
    fn lookup_finds_both_spellings() {
        let lookup = Lookup::new(&owned(&["red", "10", "9", "1e400", "1.0"]));
        assert_eq!(lookup.text("red"), Some(0));
        assert_eq!(lookup.number(10.0), Some(1));
        assert_eq!(lookup.text("9"), Some(2));
        assert_eq!(lookup.number(1.0), None); // its name would be "1"
        assert_eq!(lookup.number(f64::INFINITY), None);
        assert_eq!(lookup.text("blue"), None);
    }

    #[test]
    fn listed_names_are_kept_in_order_and_closed() {
        let mut codes = Codes::listed(&owned(&["s", "m", "3"]));
        assert_eq!(codes.text("m"), Some(1));
        assert_eq!(codes.number(3.0), Some(2));
        assert_eq!(codes.text("xl"), None);
        assert_eq!(codes.finish().0, owned(&["s", "m", "3"]));
    }
}
