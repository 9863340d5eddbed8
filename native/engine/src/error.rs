//! Errors, grouped by what the caller does about them.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of operations on files.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation failed. Cloning is cheap: one failure may be returned to many waiting writers.
#[derive(Debug, Clone)]
pub enum Error {
    /// The operating system returned an error. The operation changed nothing that was acknowledged;
    /// the remedy depends on `source` (free space, fix permissions).
    Io {
        /// What was attempted, such as `"write"`.
        operation: &'static str,
        /// The affected file or directory.
        path: PathBuf,
        /// The offset in the file, in bytes, if applicable.
        offset: Option<u64>,
        /// The operating system's error.
        source: Arc<io::Error>,
    },
    /// Stored bytes differ from what was written. Only a backup or a replica helps.
    Corruption {
        /// The damaged file.
        file: PathBuf,
        /// The offset of the damage, in bytes.
        offset: u64,
        /// What is wrong there.
        detail: String,
    },
    /// The disk is full. The operation changed nothing and can be retried once there is space;
    /// reads continue meanwhile.
    Full {
        /// The write that lacked space.
        why: String,
    },
    /// An fsync failed earlier, so the contents of the disk are unknown. The database must be
    /// opened again.
    Poisoned {
        /// The failure that poisoned it.
        why: String,
    },
    /// It is open in another process, or elsewhere in this one.
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// Another writer was first. The transaction changed nothing and may be retried.
    Conflict {
        /// The conflicting key.
        what: String,
    },
    /// The log no longer has all changes that were requested. Read a snapshot, and the changes after
    /// it.
    ChangesTruncated,
    /// The database is being closed.
    Stopped,
    /// The request can never be satisfied.
    InvalidArgument {
        /// What was wrong with it.
        what: String,
    },
}

impl Error {
    /// A stable name of the error, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Full { .. } => "storage_full",
            Self::Io { .. } if self.is_full() => "storage_full",
            Self::Io { .. } => "io_error",
            Self::Corruption { .. } => "corruption",
            Self::Poisoned { .. } => "poisoned",
            Self::Locked { .. } => "locked",
            Self::Conflict { .. } => "conflict",
            Self::ChangesTruncated => "changes_truncated",
            Self::Stopped => "stopped",
            Self::InvalidArgument { .. } => "invalid_argument",
        }
    }

    /// A failed operation on a whole file or directory.
    pub fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            operation,
            path: path.to_owned(),
            offset: None,
            source: Arc::new(source),
        }
    }

    /// A failed operation at an offset of a file.
    pub fn io_at(operation: &'static str, path: &Path, offset: u64, source: io::Error) -> Self {
        Self::Io {
            operation,
            path: path.to_owned(),
            offset: Some(offset),
            source: Arc::new(source),
        }
    }

    /// Damage at an offset of a file.
    pub fn corruption(file: &Path, offset: u64, detail: impl Into<String>) -> Self {
        Self::Corruption {
            file: file.to_owned(),
            offset,
            detail: detail.into(),
        }
    }

    /// Whether a write failed because the disk, a quota or a limit left no space. A sync is never
    /// retried, whatever made it fail, so a failed sync does not count.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Full { .. } => true,
            Self::Io {
                operation, source, ..
            } => {
                *operation != "sync"
                    && matches!(
                        source.kind(),
                        io::ErrorKind::StorageFull
                            | io::ErrorKind::QuotaExceeded
                            | io::ErrorKind::FileTooLarge
                    )
            }
            _ => false,
        }
    }

    /// Whether the path does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io {
                operation,
                path,
                offset: Some(offset),
                source,
            } => write!(
                out,
                "{operation} failed at offset {offset} of {}: {source}",
                path.display()
            ),
            Self::Io {
                operation,
                path,
                offset: None,
                source,
            } => write!(out, "{operation} failed on {}: {source}", path.display()),
            Self::Corruption {
                file,
                offset,
                detail,
            } => write!(
                out,
                "{} is damaged at offset {offset}: {detail}",
                file.display()
            ),
            Self::Full { why } => write!(out, "the disk is full: {why}"),
            Self::Poisoned { why } => write!(
                out,
                "an earlier write may be lost, so writes are rejected until the database is opened again: {why}"
            ),
            Self::Locked { path } => {
                write!(out, "{} is locked: it is open elsewhere", path.display())
            }
            Self::Conflict { what } => write!(out, "conflict: {what}"),
            Self::ChangesTruncated => write!(
                out,
                "the log no longer has all of these changes; read a snapshot and the changes after it"
            ),
            Self::Stopped => write!(out, "the database is being closed"),
            Self::InvalidArgument { what } => write!(out, "invalid argument: {what}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source.as_ref()),
            _ => None,
        }
    }
}
