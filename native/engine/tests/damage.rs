//! Flipped bits and missing files of a whole database are detected and reported.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::crash_support::{DIR, History, World, work};
use rillbase_engine::vfs::{FaultVfs, SeededRandom, Vfs};
use rillbase_engine::{Clock, Error, ManualClock};

/// The files of a database, closed or not, and their contents.
struct Sample {
    clock: Arc<ManualClock>,
    history: History,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Sample {
    fn new(seed: u64) -> Self {
        let vfs = FaultVfs::new(seed);
        let clock = Arc::new(ManualClock::new(1000));
        let mut history = History::new();
        work(&vfs, &clock, &mut history, &mut SeededRandom::new(seed), 60).unwrap();
        let read = |(path, size): (PathBuf, u64)| {
            let mut bytes = vec![0; usize::try_from(size).unwrap()];
            let file = vfs.open_read(&path).unwrap();
            file.read_exact_at(0, &mut bytes).unwrap();
            (path, bytes)
        };
        let files = vfs.files().into_iter().map(read).collect();
        Self {
            clock,
            history,
            files,
        }
    }

    fn restored(&self) -> FaultVfs {
        let vfs = FaultVfs::new(1);
        vfs.create_dir_all(&Path::new(DIR).join("log")).unwrap();
        for (path, bytes) in &self.files {
            vfs.create_dir_all(path.parent().unwrap()).unwrap();
            vfs.create(path).unwrap().append(bytes).unwrap();
        }
        vfs
    }

    /// Checks that opening and reading everything returns all that was written, or an error that
    /// names a file.
    fn check(&self, vfs: &FaultVfs, damaged: &Path, context: &str) -> bool {
        let read = World::open(vfs, &self.clock).and_then(|world| world.read(None));
        match read {
            Ok(found) => {
                let expected = self.history.expected(self.clock.now());
                assert!(found == expected, "{context}: the answers are wrong");
                false
            }
            Err(Error::Corruption { file, .. }) => {
                // An unreadable manifest is reported by the file that points to it.
                let named = file == damaged || damaged.ends_with("CURRENT");
                assert!(named, "{context}: {} is named", file.display());
                true
            }
            Err(Error::Io { path, .. }) if path != damaged => {
                assert!(
                    damaged.ends_with("CURRENT"),
                    "{context}: {} fails",
                    path.display()
                );
                true
            }
            Err(other) => panic!("{context}: {other}"),
        }
    }
}

fn flips_are_found(seed: u64, step: usize) {
    let sample = Sample::new(seed);
    let mut tables = 0;
    for (path, bytes) in &sample.files {
        // Logs end with zeros that were written ahead, a manifest with a mark, and copies are not
        // read: none of them matters.
        let is_table = path.parent() == Some(Path::new(DIR))
            && path.extension().is_some_and(|kind| kind == "table");
        for offset in (0..bytes.len()).step_by(step) {
            let vfs = sample.restored();
            let bit = 1 << ((offset / step) % 8);
            vfs.damage(path, |bytes| bytes[offset] ^= bit).unwrap();
            let context = format!("seed {seed}, {} at {offset}", path.display());
            let noticed = sample.check(&vfs, path, &context);
            assert!(noticed || !is_table, "{context}: not noticed");
            tables += u32::from(is_table);
        }
    }
    assert!(tables > 0, "seed {seed} makes no table");
}

#[test]
fn a_flipped_bit_is_named_or_harmless() {
    flips_are_found(3, 23);
}

#[test]
#[ignore = "takes minutes: the long suite runs it"]
fn a_flipped_bit_at_every_byte_is_named_or_harmless() {
    (10..14).for_each(|seed| flips_are_found(seed, 1));
}

#[test]
fn a_missing_file_is_named_or_harmless() {
    let sample = Sample::new(5);
    for (path, _) in &sample.files {
        // Without `CURRENT` there is no database, and the newest file of a log may never have been.
        if path.ends_with("CURRENT") || path.extension().is_some_and(|kind| kind == "wal") {
            continue;
        }
        let vfs = sample.restored();
        vfs.remove(path).unwrap();
        let opened = World::open(&vfs, &sample.clock).and_then(|world| world.read(None));
        match opened {
            Ok(found) => assert!(found == sample.history.expected(sample.clock.now())),
            Err(error) => {
                let name = path.file_name().unwrap().to_str().unwrap();
                assert!(error.to_string().contains(name), "{name}: {error}");
            }
        }
    }
}
