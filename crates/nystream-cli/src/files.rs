//! Files that a command reads and writes: none is written over another.

use std::fs;
use std::path::{Path, PathBuf};

use nystream::Error;

/// The files of a command, each with the option or argument that names it.
#[derive(Debug, Default)]
pub struct Files<'a> {
    read: Vec<(&'static str, &'a Path)>,
    written: Vec<(&'static str, &'a Path)>,
    replaced: Vec<(&'static str, &'static str)>,
}

impl<'a> Files<'a> {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }

    /// The data. Standard input and generators are no files.
    pub fn data(mut self, location: &'a str) -> Self {
        if location != "-" && !location.starts_with("synth:") {
            self.read.push(("DATA", Path::new(location)));
        }
        self
    }

    /// A file that is read, if it is given.
    pub fn reads(mut self, name: &'static str, path: Option<&'a PathBuf>) -> Self {
        self.read.extend(path.map(|path| (name, path.as_path())));
        self
    }

    /// A file that is written, if it is given; its option is written without dashes, as in other errors.
    pub fn writes(mut self, option: &'static str, path: Option<&'a PathBuf>) -> Self {
        self.written.extend(path.map(|path| (option, path.as_path())));
        self
    }

    /// An output that may take the place of an input, which is done with before.
    pub fn may_replace(mut self, option: &'static str, read: &'static str) -> Self {
        self.replaced.push((option, read));
        self
    }

    /// Refuses an output that is also an input, or another output.
    pub fn require_apart(&self) -> Result<(), Error> {
        for (i, &(option, path)) in self.written.iter().enumerate() {
            let Some(place) = place(path) else { continue };
            let replaced = |name: &'static str| self.replaced.contains(&(option, name));
            let read =
                self.read.iter().filter(|(name, _)| !replaced(name)).map(|(name, path)| (name.to_string(), path));
            let written = self.written[..i].iter().map(|(name, path)| (format!("--{name}"), path));
            for (other, taken) in read.chain(written) {
                if self::place(taken).as_ref() == Some(&place) {
                    let found = format!("{}, the same file as {other} {}", path.display(), taken.display());
                    return Err(Error::InvalidParam { name: option, found, expected: "a file of its own" });
                }
            }
        }
        Ok(())
    }
}

/// Where a file stands or will stand, links followed. None for devices, pipes and folders, which are not replaced, and for
/// folders that do not exist, in which nothing can be written.
fn place(path: &Path) -> Option<PathBuf> {
    match fs::metadata(path) {
        Ok(about) if !about.is_file() => None,
        Ok(_) => fs::canonicalize(path).ok(),
        Err(_) => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            Some(fs::canonicalize(folder).ok()?.join(path.file_name()?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_missing_folders_have_no_place() {
        assert_eq!(place(Path::new("no/such/folder/x")), None);
        assert_eq!(place(Path::new(".")), None);
        assert!(place(Path::new("x")).is_some() && place(Path::new("x")) == place(Path::new("./x")));
        let null = PathBuf::from("/dev/null");
        assert!(Files::new().writes("out", Some(&null)).writes("plot", Some(&null)).require_apart().is_ok());
    }

    #[test]
    fn generators_and_standard_input_are_no_files() {
        for location in ["-", "synth:rings"] {
            let out = PathBuf::from(location);
            assert!(Files::new().data(location).writes("out", Some(&out)).require_apart().is_ok());
        }
    }
}
