//! Which column of a table is a feature, a target, the weight, or ignored.

use serde::{Deserialize, Serialize};

use super::options::{ColumnRef, TableOptions};
use super::{input_error, listing};
use crate::error::{Result, nearest_hint};
use crate::source::{OddCell, Oddity};

/// What a column of a table is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Feature of this number, from 0, in table order.
    Feature(usize),
    /// Target of this number, from 0, in the order asked for.
    Target(usize),
    /// How much a row counts.
    Weight,
    /// Not used.
    Ignored,
}

/// The columns of a table with their roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Columns {
    /// Names of all columns.
    pub names: Vec<String>,
    /// Roles of all columns.
    pub roles: Vec<Role>,
    /// Where each feature stands, increasing.
    pub features: Vec<usize>,
    /// Where each target stands.
    pub targets: Vec<usize>,
    /// Where the weight stands, if there is one.
    pub weight: Option<usize>,
}

impl Columns {
    /// Gives every column its role, as the options say.
    pub fn plan(names: &[String], named: bool, origin: &str, options: &TableOptions) -> Result<Self> {
        let mut roles = vec![None; names.len()];
        if options.targets.is_empty() {
            let marked = names.iter().position(|name| named && name == "target");
            let Some(target) = marked.or(names.len().checked_sub(1)) else {
                return Err(input_error(origin, 0, None, "no columns", "at least one feature and one target column"));
            };
            roles[target] = Some(Role::Target(0));
        }
        for (k, target) in options.targets.iter().enumerate() {
            let at = find(target, names, origin)?;
            if roles[at].replace(Role::Target(k)).is_some() {
                return Err(input_error(origin, 0, Some(&names[at]), "a target named twice", "every target once"));
            }
        }
        for ignored in &options.ignore {
            let at = find(ignored, names, origin)?;
            if matches!(roles[at], Some(Role::Target(_))) {
                let found = "a target that is also ignored";
                return Err(input_error(origin, 0, Some(&names[at]), found, "one or the other"));
            }
            roles[at] = Some(Role::Ignored);
        }
        if let Some(weights) = &options.weights {
            let at = find(weights, names, origin)?;
            if let Some(role) = roles[at].replace(Role::Weight) {
                let other = if role == Role::Ignored { "is also ignored" } else { "is also a target" };
                let found = format!("a column of weights that {other}");
                return Err(input_error(origin, 0, Some(&names[at]), found, "one or the other"));
            }
        }
        let mut features = 0..;
        let roles = roles
            .into_iter()
            .map(|role| role.unwrap_or_else(|| Role::Feature(features.next().unwrap_or_default())))
            .collect();
        let columns = Self::new(names.to_vec(), roles);
        if columns.features.is_empty() {
            let found = "no feature column beside targets, weights and ignored columns";
            return Err(input_error(origin, 0, None, found, "at least one feature column"));
        }
        Ok(columns)
    }

    /// Columns of known roles.
    pub fn new(names: Vec<String>, roles: Vec<Role>) -> Self {
        let place = |wanted: fn(&Role) -> Option<usize>| {
            let mut places: Vec<(usize, usize)> =
                roles.iter().enumerate().filter_map(|(at, role)| Some((wanted(role)?, at))).collect();
            places.sort_unstable();
            places.into_iter().map(|(_, at)| at).collect::<Vec<_>>()
        };
        let features = place(|role| if let Role::Feature(j) = role { Some(*j) } else { None });
        let targets = place(|role| if let Role::Target(k) = role { Some(*k) } else { None });
        let weight = roles.iter().position(|role| *role == Role::Weight);
        Self { names, roles, features, targets, weight }
    }

    /// Names of the targets.
    pub fn target_names(&self) -> Vec<String> {
        self.targets.iter().map(|&at| self.names[at].clone()).collect()
    }

    /// Whether a cell is missing where it would be used.
    pub fn lacks(&self, oddity: &Oddity, need_targets: bool) -> bool {
        oddity.cell == OddCell::Missing
            && match self.roles.get(oddity.column) {
                Some(Role::Feature(_)) => true,
                Some(Role::Target(_)) => need_targets,
                _ => false,
            }
    }
}

/// Where the column is that the user means.
pub(super) fn find(column: &ColumnRef, names: &[String], origin: &str) -> Result<usize> {
    let text = column.0.as_str();
    let mut same = (0..names.len()).filter(|&at| names[at] == text);
    match (same.next(), same.next()) {
        (Some(at), None) => return Ok(at),
        (Some(_), Some(_)) => {
            return Err(input_error(origin, 0, Some(text), "several columns of this name", "the column's number"));
        }
        (None, _) => {}
    }
    let number = if text == "last" { -1 } else { text.parse::<i64>().unwrap_or(0) };
    let count = names.len() as i64;
    if (1..=count).contains(&number) {
        return Ok(number as usize - 1);
    }
    if (-count..=-1).contains(&number) {
        return Ok((count + number) as usize);
    }
    let expected = format!("one of the columns {}", listing(names));
    let found = format!("no such column{}", nearest_hint(text, names.iter().map(String::as_str)));
    Err(input_error(origin, 0, Some(text), found, expected))
}

/// Consecutive columns that are copied together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    /// First column to read.
    pub from: usize,
    /// First column to write.
    pub to: usize,
    /// How many.
    pub len: usize,
}

/// Joins single moves `(from, to)` into runs.
pub(super) fn runs(moves: impl Iterator<Item = (usize, usize)>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (from, to) in moves {
        match runs.last_mut() {
            Some(run) if run.from + run.len == from && run.to + run.len == to => run.len += 1,
            _ => runs.push(Run { from, to, len: 1 }),
        }
    }
    runs
}

/// Hands out the oddities of a block row by row.
pub(super) struct OddRows<'a> {
    rest: &'a [Oddity],
}

impl<'a> OddRows<'a> {
    pub fn new(oddities: &'a [Oddity]) -> Self {
        Self { rest: oddities }
    }
    /// The oddities of `row`; rows are asked for in increasing order.
    pub fn row(&mut self, row: usize) -> &'a [Oddity] {
        let count = self.rest.iter().take_while(|oddity| oddity.row == row).count();
        let (these, rest) = self.rest.split_at(count);
        self.rest = rest;
        these
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &str) -> Vec<String> {
        list.split(',').map(str::to_owned).collect()
    }

    fn options(targets: &[&str], ignore: &[&str]) -> TableOptions {
        TableOptions {
            targets: targets.iter().map(|&t| t.into()).collect(),
            ignore: ignore.iter().map(|&t| t.into()).collect(),
            ..TableOptions::default()
        }
    }

    #[test]
    fn targets_by_name_number_and_default() {
        let targets = |list: &str, named, given: &[&str]| {
            Columns::plan(&names(list), named, "t", &options(given, &[])).map(|columns| columns.targets)
        };
        assert_eq!(targets("a,target,b", true, &[]).unwrap(), [1]);
        assert_eq!(targets("a,target,b", false, &[]).unwrap(), [2]);
        assert_eq!(targets("a,b,c", true, &[]).unwrap(), [2]);
        assert_eq!(targets("a,b,c", true, &["c", "1"]).unwrap(), [2, 0]);
        assert_eq!(targets("a,b,c", true, &["-3"]).unwrap(), [0]);
        assert_eq!(targets("a,b,c", true, &["last"]).unwrap(), [2]);
        assert_eq!(targets("last,b,1", true, &["last", "1"]).unwrap(), [0, 2]);
        for wrong in ["0", "4", "-4", "d", "", "1.5"] {
            assert!(targets("a,b,c", true, &[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn roles_follow_the_options() {
        let columns = Columns::plan(&names("id,a,y,b"), true, "t", &options(&["y"], &["id"])).unwrap();
        assert_eq!(columns.roles, [Role::Ignored, Role::Feature(0), Role::Target(0), Role::Feature(1)]);
        assert_eq!((columns.features.as_slice(), columns.targets.as_slice()), (&[1, 3][..], &[2][..]));
    }

    #[test]
    fn weights_are_found_like_targets_and_are_no_features() {
        let plan = |weights: &str, targets: &[&str], ignore: &[&str]| {
            let options = TableOptions { weights: Some(weights.into()), ..options(targets, ignore) };
            Columns::plan(&names("a,w,y"), true, "t.csv", &options)
        };
        for weights in ["w", "2", "-2"] {
            let columns = plan(weights, &[], &[]).unwrap();
            assert_eq!((columns.weight, &columns.features[..], &columns.targets[..]), (Some(1), &[0][..], &[2][..]));
        }
        let message = |weights: &str, ignore: &[&str]| plan(weights, &[], ignore).unwrap_err().to_string();
        assert!(message("last", &[]).contains("column 'y': found a column of weights that is also a target"));
        assert!(message("w", &["w"]).contains("column 'w': found a column of weights that is also ignored"));
        assert!(message("v", &[]).contains("column 'v': found no such column"));
    }

    #[test]
    fn impossible_plans_are_refused() {
        let message = |list: &str, targets: &[&str], ignore: &[&str]| {
            Columns::plan(&names(list), true, "t.csv", &options(targets, ignore)).unwrap_err().to_string()
        };
        assert_eq!(
            message("a,b,c,d,e,f,g,h,i,j,k", &["price"], &[]),
            "t.csv: column 'price': found no such column, expected one of the columns 'a', 'b', 'c', 'd', 'e', 'f', 'g', \
             'h', 'i', 'j', ... (11 in all)"
        );
        assert_eq!(
            message("a,b", &["a"], &["1"]),
            "t.csv: column 'a': found a target that is also ignored, expected one or the other"
        );
        assert!(message("a,b", &["a", "1"], &[]).contains("a target named twice"));
        assert!(message("a,a,b", &["a"], &[]).contains("several columns of this name"));
        assert!(message("a,b", &["a"], &["b"]).contains("no feature column"));
        assert!(message("a", &[], &[]).contains("no feature column"));
        assert!(Columns::plan(&[], true, "t", &options(&[], &[])).unwrap_err().to_string().contains("no columns"));
    }

    #[test]
    fn moves_join_into_runs() {
        let found = runs([(0, 0), (1, 1), (3, 2), (4, 4)].into_iter());
        assert_eq!(
            found,
            [Run { from: 0, to: 0, len: 2 }, Run { from: 3, to: 2, len: 1 }, Run { from: 4, to: 4, len: 1 }]
        );
    }
}
