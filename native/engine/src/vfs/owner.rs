//! The owner of new files.
//!
//! What root creates gets the owner of its directory, so that a server that runs under an account
//! of its own can read what an administrator restored or repaired.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::Path;

const ROOT: u32 = 0;

/// Gives a new file or directory at `path` that root owns to the owner of its directory.
///
/// That owner may put a link at `path`: a file that is not empty, or is reached by a link, is not
/// new.
pub(super) fn inherit(file: &File, path: &Path) -> io::Result<()> {
    let opened = file.metadata()?;
    let named = fs::symlink_metadata(path)?;
    let is_new = (opened.dev(), opened.ino()) == (named.dev(), named.ino())
        && (opened.is_dir() || (opened.len() == 0 && opened.nlink() == 1));
    if opened.uid() != ROOT || !is_new {
        return Ok(());
    }
    let directory = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    let directory = fs::metadata(directory)?;
    if directory.uid() == ROOT {
        return Ok(());
    }
    fchown(file, Some(directory.uid()), Some(directory.gid()))
}
