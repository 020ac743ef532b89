//! Writing a file so that nobody ever sees half of it.
//!
//! The bytes go to a temporary file in the same directory, are flushed to the disk, and take the
//! target's name in one rename. Whatever fails before that, the temporary is removed and the old
//! file stays. A process that is killed may leave a `.nystream-*.tmp` behind, never a broken target.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};

/// A file being written, which appears under its name only on [`commit`](Self::commit). Dropping it
/// instead leaves no trace.
#[derive(Debug)]
pub struct AtomicFile {
    writer: BufWriter<File>,
    /// What is to be replaced, symbolic links followed.
    target: PathBuf,
    /// Removed on drop. `None` for devices and pipes, which are written to directly.
    temporary: Option<PathBuf>,
}

impl AtomicFile {
    /// Starts writing what is to stand at `path`.
    ///
    /// Devices and pipes (`/dev/null`, `/dev/stdout`) cannot be replaced and are written to directly.
    pub fn create(path: &Path) -> Result<Self> {
        Self::open(path).map_err(|e| Error::io(path, "write", e))
    }

    fn open(path: &Path) -> io::Result<Self> {
        // Fails where nothing stands yet; then the name itself is the target.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut permissions = None;
        if let Ok(about) = fs::metadata(&target) {
            // A rename would also replace a file that the user may not write: ask the system first.
            let existing = OpenOptions::new().write(true).open(&target)?;
            if !about.is_file() {
                return Ok(Self { writer: BufWriter::new(existing), target, temporary: None });
            }
            permissions = Some(about.permissions());
        } else if target.file_name().is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file name"));
        }
        let (temporary, file) = create_beside(&target)?;
        let new = Self { writer: BufWriter::new(file), target, temporary: Some(temporary) };
        if let Some(permissions) = permissions {
            new.writer.get_ref().set_permissions(permissions)?;
        }
        Ok(new)
    }

    /// Puts the file in place.
    pub fn commit(mut self) -> Result<()> {
        self.put_in_place().map_err(|e| Error::io(&self.target, "write", e))
    }

    fn put_in_place(&mut self) -> io::Result<()> {
        self.writer.flush()?;
        let Some(temporary) = &self.temporary else { return Ok(()) };
        self.writer.get_ref().sync_all()?;
        fs::rename(temporary, &self.target)?;
        self.temporary = None;
        // The rename itself reaches the disk with its directory. Some file systems refuse to sync
        // one; the file is complete in any case.
        if let Ok(directory) = File::open(directory_of(&self.target)) {
            directory.sync_all().ok();
        }
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.writer.write(buf)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // There is nobody left to tell of a failure here.
            fs::remove_file(temporary).ok();
        }
    }
}

/// Writes `bytes` to `path` in one step.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    write_atomically_with(path, |out| out.write_all(bytes).map_err(|e| Error::io(path, "write", e)))
}

/// Writes to `path`, in one step, whatever `write` produces; nothing if it fails.
pub fn write_atomically_with<T, E: From<Error>>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<T, E> {
    let mut file = AtomicFile::create(path)?;
    let value = write(&mut file)?;
    file.commit()?;
    Ok(value)
}

fn directory_of(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn create_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let mut attempts = 0;
    loop {
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = directory_of(target).join(format!(".nystream-{}-{count}.tmp", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            // Left by a killed process of the same number, or another machine's on a shared disk.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && attempts < 100 => attempts += 1,
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::tempdir;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let directory = tempdir().unwrap();
        let path = directory.path().join("model");
        write_atomically(&path, b"first").unwrap();
        write_atomically(&path, b"second, longer").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second, longer");
        assert_eq!(names(directory.path()), ["model"]);
    }

    #[test]
    fn a_failing_writer_leaves_the_old_file_and_nothing_else() {
        let directory = tempdir().unwrap();
        let path = directory.path().join("model");
        write_atomically(&path, b"old").unwrap();
        let failure = write_atomically_with(&path, |out| {
            out.write_all(&[7; 100_000]).unwrap();
            Err::<(), _>(Error::io(&path, "write", io::Error::from(io::ErrorKind::StorageFull)))
        });
        assert!(failure.unwrap_err().to_string().contains("cannot write"));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(directory.path()), ["model"]);
    }

    #[test]
    fn an_uncommitted_file_leaves_no_trace() {
        let directory = tempdir().unwrap();
        let mut file = AtomicFile::create(&directory.path().join("model")).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert!(names(directory.path()).is_empty());
    }

    #[test]
    fn places_that_cannot_hold_the_file_are_refused() {
        let directory = tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, b"a file").unwrap();
        for path in [directory.path().join("missing/model"), file.join("model"), directory.path().to_owned()] {
            let error = write_atomically(&path, b"x").unwrap_err().to_string();
            assert!(error.starts_with(&path.display().to_string()), "{error}");
        }
        assert!(write_atomically(Path::new(""), b"x").is_err());
        assert_eq!(names(directory.path()), ["file"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_unwritable_directory_and_a_full_device_are_refused() {
        // /proc takes no files even from the superuser, whom ordinary permissions do not stop.
        assert!(write_atomically(Path::new("/proc/nystream-model"), b"x").is_err());
        let error = write_atomically(Path::new("/dev/full"), b"x").unwrap_err().to_string();
        assert!(error.starts_with("/dev/full: cannot write"), "{error}");
        write_atomically(Path::new("/dev/null"), b"x").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_permissions_kept() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempdir().unwrap();
        let (real, link) = (directory.path().join("real"), directory.path().join("link"));
        fs::write(&real, b"old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&real, &link).unwrap();
        write_atomically(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    }
}
