//! How much a report covers, as its first line says it: so that a smaller one does not take its place unasked.

use std::path::Path;

use nystream::Error;

/// The beginning of a report's first line.
const WRITTEN_BY: &str = "Written by `nystream reproduce";

/// What a call of `nystream reproduce` covers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Extent {
    pub studies: Vec<String>,
    /// Titles of rows, or none for all rows.
    pub learners: Vec<String>,
    pub seeds: Option<u64>,
    pub first_seed: Option<u64>,
    pub rows: Option<usize>,
    pub minutes: Option<u64>,
    pub data: bool,
}

impl Extent {
    /// The first line of a report.
    pub fn line(&self) -> String {
        let mut line = WRITTEN_BY.to_owned();
        self.studies.iter().for_each(|study| line += &format!(" {study}"));
        self.learners.iter().for_each(|title| line += &format!(" --learner '{title}'"));
        let counts = [
            ("seeds", self.seeds),
            ("first-seed", self.first_seed),
            ("rows", self.rows.map(|rows| rows as u64)),
            ("minutes", self.minutes),
        ];
        for (name, count) in counts {
            count.iter().for_each(|count| line += &format!(" --{name} {count}"));
        }
        if self.data {
            line += " --data FOLDER";
        }
        line + " --out FOLDER`."
    }

    /// What the first line of a report says, if it is one of this command.
    fn read(line: &str) -> Option<Self> {
        let words = line.strip_prefix(WRITTEN_BY)?.strip_suffix("`.")?;
        let (mut extent, mut words) = (Self::default(), split(words).into_iter());
        while let Some(word) = words.next() {
            match word.strip_prefix("--") {
                None => extent.studies.push(word),
                Some("learner") => extent.learners.push(words.next()?),
                Some("seeds") => extent.seeds = Some(words.next()?.parse().ok()?),
                Some("first-seed") => extent.first_seed = Some(words.next()?.parse().ok()?),
                Some("rows") => extent.rows = Some(words.next()?.parse().ok()?),
                Some("minutes") => extent.minutes = Some(words.next()?.parse().ok()?),
                Some("data") => extent.data = words.next().is_some(),
                Some(_) => drop(words.next()),
            }
        }
        Some(extent)
    }

    /// What of `other` would be missing here, in words.
    fn lacks(&self, other: &Self) -> Option<String> {
        if let Some(study) = other.studies.iter().find(|study| !self.studies.contains(study)) {
            return Some(format!("the study {study}"));
        }
        if !self.learners.is_empty() {
            if other.learners.is_empty() {
                return Some("all rows of its tables".to_owned());
            }
            if let Some(title) = other.learners.iter().find(|title| !self.learners.contains(title)) {
                return Some(format!("the row {title}"));
            }
        }
        if self.rows.is_some_and(|rows| other.rows.is_none_or(|theirs| theirs > rows)) {
            return Some("more rows of data".to_owned());
        }
        if self.first_seed != other.first_seed {
            return Some("other seeds".to_owned());
        }
        let fewer = self.seeds.zip(other.seeds).is_some_and(|(ours, theirs)| ours < theirs);
        fewer.then(|| "more seeds".to_owned())
    }

    /// An error if there is a report in the folder that has more than this one will have.
    pub fn may_replace(&self, folder: &Path) -> Result<(), Error> {
        let path = folder.join("report.md");
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(Error::io(&path, "read", e)),
        };
        let more = match text.lines().next().and_then(Self::read) {
            Some(there) => self.lacks(&there),
            None => Some("what another program or a person wrote".to_owned()),
        };
        more.map_or(Ok(()), |more| {
            let found = format!("{}, which has {more}", path.display());
            Err(Error::InvalidParam { name: "out", found, expected: "another folder, or --replace" })
        })
    }
}

/// Words between spaces, or between apostrophes.
fn split(text: &str) -> Vec<String> {
    let parts = text.split('\'').enumerate();
    let words = parts.flat_map(|(i, part)| if i % 2 == 1 { vec![part] } else { part.split_whitespace().collect() });
    words.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(studies: &[&str], learners: &[&str]) -> Extent {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Extent { studies: owned(studies), learners: owned(learners), ..Extent::default() }
    }

    #[test]
    fn a_first_line_says_all_of_it() {
        let whole = Extent {
            seeds: Some(3),
            first_seed: Some(7),
            rows: Some(2000),
            minutes: Some(0),
            data: true,
            ..extent(&["a", "b-c"], &["SkeGD, larger map", "RBP"])
        };
        for extent in [whole, extent(&["a"], &[])] {
            assert_eq!(Extent::read(&extent.line()), Some(extent));
        }
        assert_eq!(Extent::read("# Notes"), None);
    }

    #[test]
    fn less_of_anything_is_less() {
        let all = extent(&["a", "b"], &[]);
        assert_eq!(all.lacks(&extent(&["b"], &["x"])), None);
        assert_eq!(extent(&["b"], &[]).lacks(&all).unwrap(), "the study a");
        assert_eq!(extent(&["a", "b"], &["x"]).lacks(&all).unwrap(), "all rows of its tables");
        assert_eq!(extent(&["a"], &["x"]).lacks(&extent(&["a"], &["y", "x"])).unwrap(), "the row y");
        let with = |seeds, rows| Extent { seeds, rows, ..all.clone() };
        assert_eq!(with(Some(5), None).lacks(&with(Some(6), None)).unwrap(), "more seeds");
        assert_eq!(with(None, Some(5)).lacks(&with(None, None)).unwrap(), "more rows of data");
        assert_eq!(with(None, Some(5)).lacks(&with(None, Some(6))).unwrap(), "more rows of data");
        let elsewhere = Extent { first_seed: Some(9), ..all.clone() };
        assert_eq!(elsewhere.lacks(&all).unwrap(), "other seeds");
        assert_eq!(with(Some(6), Some(6)).lacks(&with(Some(5), Some(5))), None);
    }
}
