//! The system's figures about this process and about files.

use std::path::Path;

use crate::store::Result;

/// The suffixes of files that hold data rather than a log.
const DATA: [&str; 4] = ["table", "sst", "ldb", "mdb"];
/// The system counts time in hundredths of a second.
const TICKS_A_SECOND: f64 = 100.0;

/// Bytes that all threads have passed to the system for writing, logs included.
pub(crate) fn written_bytes() -> Result<u64> {
    counted("wchar: ")
}

/// The number of read calls of all threads: one for each block that was not in the store's cache,
/// unless it maps files into memory.
pub(crate) fn read_calls() -> Result<u64> {
    counted("syscr: ")
}

fn counted(name: &str) -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/io")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    Ok(line
        .ok_or("the system does not count bytes read and written")?
        .parse()?)
}

/// The CPU time of all threads, in seconds.
pub(crate) fn processor_seconds() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    // The name of the program is in parentheses and may contain anything.
    let behind = text.rsplit(')').next().unwrap_or_default();
    let ticks = behind.split_whitespace().skip(11).take(2);
    let mut sum = 0.0;
    for field in ticks {
        sum += field.parse::<f64>()?;
    }
    Ok(sum / TICKS_A_SECOND)
}

/// The size of tables; logs, which are preallocated, do not count.
pub(crate) fn data_bytes(dir: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let mut sum = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        let meta = entry.metadata()?;
        if meta.is_dir() {
            sum += data_bytes(&path)?;
        }
        let suffix = path.extension().and_then(|suffix| suffix.to_str());
        if suffix.is_some_and(|suffix| DATA.contains(&suffix)) {
            sum += meta.blocks() * 512;
        }
    }
    Ok(sum)
}
