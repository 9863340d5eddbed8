//! A database on a file system with faults, and the history of its states.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::merge_support::Append;
use rillbase_engine::vfs::{FaultVfs, SeededRandom, Vfs};
use rillbase_engine::wal;
use rillbase_engine::{
    Clock, Compression, Db, DbOptions, DbSnapshot, Durability, Keyspace, KeyspaceOptions,
    ManualClock, Result, Strategy, WriteBatch,
};

pub(crate) const DIR: &str = "/data/db";
const NAMES: [&str; 3] = ["leveled", "tiered", "lazy"];
const KEYS: u64 = 40;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;
type Expiring = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

/// The contents of the keyspaces: values, and when they expire.
#[derive(Debug, Clone, Default)]
pub(crate) struct State([Expiring; 3]);

impl State {
    /// The entries that are visible at a time.
    fn at(&self, time: u64) -> [Entries; 3] {
        self.0.each_ref().map(|entries| {
            let live = entries
                .iter()
                .filter(|(_, (_, expiry))| expiry.is_none_or(|at| at > time));
            live.map(|(key, (value, _))| (key.clone(), value.clone()))
                .collect()
        })
    }
}

/// The states of the database. Those from `durable` on are allowed after a power loss, those from
/// `done` on after a crash of the process.
#[derive(Debug)]
pub(crate) struct History {
    states: Vec<State>,
    pub(crate) durable: usize,
    pub(crate) done: usize,
}

impl History {
    pub(crate) fn new() -> Self {
        Self {
            states: vec![State::default()],
            durable: 0,
            done: 0,
        }
    }

    fn newest(&self) -> &State {
        self.states.last().unwrap()
    }

    /// Removes the states of the last step, which was rejected.
    pub(crate) fn take_back(&mut self, states: usize) {
        self.states.truncate(states);
    }

    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    pub(crate) fn acknowledge(&mut self, durability: Durability) {
        self.done = self.states.len() - 1;
        if durability == Durability::Sync {
            self.durable = self.done;
        }
    }

    /// Continues from the recovered state, which must be one of those from `oldest` on.
    pub(crate) fn resume(&mut self, found: &[Entries; 3], oldest: usize, time: u64, context: &str) {
        let allowed = self.states.get(oldest..).unwrap().iter().rev();
        let Some(state) = allowed.into_iter().find(|state| state.at(time) == *found) else {
            let newest = self.newest().at(time);
            panic!(
                "{context}: found {found:?}, the newest of {} is {newest:?}",
                self.states.len()
            );
        };
        *self = Self {
            states: vec![state.clone()],
            durable: 0,
            done: 0,
        };
    }

    pub(crate) fn expected(&self, time: u64) -> [Entries; 3] {
        self.newest().at(time)
    }
}

/// An open database. Dropping it without closing it simulates a crash of the process.
pub(crate) struct World {
    pub(crate) db: Db,
    spaces: [Keyspace; 3],
    vfs: FaultVfs,
    clock: Arc<ManualClock>,
    snapshots: Vec<(DbSnapshot, State)>,
}

impl World {
    pub(crate) fn open(vfs: &FaultVfs, clock: &Arc<ManualClock>) -> Result<Self> {
        Self::open_in(DIR, vfs, clock)
    }

    fn open_in(dir: &str, vfs: &FaultVfs, clock: &Arc<ManualClock>) -> Result<Self> {
        let db = Db::open(dir, options(vfs, clock))?;
        let spaces = NAMES.map(|name| db.keyspace(name).unwrap());
        Ok(Self {
            db,
            spaces,
            vfs: vfs.clone(),
            clock: Arc::clone(clock),
            snapshots: Vec::new(),
        })
    }

    /// Everything that can be read, by scans; point reads must agree.
    pub(crate) fn read(&self, snapshot: Option<&DbSnapshot>) -> Result<[Entries; 3]> {
        let mut all = [Entries::new(), Entries::new(), Entries::new()];
        for (space, entries) in self.spaces.iter().zip(&mut all) {
            let (lower, upper) = (Bound::Unbounded, Bound::Unbounded);
            let mut scan = self.db.scan(space, lower, upper, snapshot)?;
            scan.first()?;
            while scan.is_valid() {
                entries.insert(scan.key().to_vec(), scan.value().to_vec());
                scan.advance()?;
            }
            let keys: Vec<Vec<u8>> = (0..KEYS).map(key).collect();
            let asked = keys.iter().map(Vec::as_slice);
            let values = self.db.multi_get(space, asked, snapshot)?;
            for (key, value) in keys.iter().zip(values) {
                assert_eq!(value.as_deref(), entries.get(key).map(Vec::as_slice));
            }
        }
        Ok(all)
    }

    fn check_snapshots(&self) -> Result<()> {
        for (snapshot, state) in &self.snapshots {
            assert!(
                self.read(Some(snapshot))? == state.at(snapshot.time()),
                "a snapshot changed"
            );
        }
        Ok(())
    }

    /// Runs a random operation, whose possible results are added to the history first.
    pub(crate) fn step(&mut self, history: &mut History, random: &mut SeededRandom) -> Result<()> {
        match random.below(22) {
            0..12 => self.write(history, random)?,
            12 => {
                self.db.sync()?;
                history.acknowledge(Durability::Sync);
            }
            13 => self.db.flush()?,
            14 => self.db.compact(&self.spaces[random.up_to(2)])?,
            15 => self.db.compact_due(&self.spaces[random.up_to(2)])?,
            16 => self.clock.advance(random.below(20)),
            17 => self
                .snapshots
                .push((self.db.snapshot(), history.newest().clone())),
            18 => self.snapshots.clear(),
            19 => self.bulk_load(history, random)?,
            20 => self.copy(history, random)?,
            _ => self.check_snapshots()?,
        }
        Ok(())
    }

    /// Loads many entries at once, bypassing the log.
    fn bulk_load(&self, history: &mut History, random: &mut SeededRandom) -> Result<()> {
        let mut state = history.newest().clone();
        let at = random.up_to(2);
        let keys = (0..KEYS)
            .filter(|_| random.one_in(3))
            .map(key)
            .collect::<Vec<_>>();
        let entries: Vec<_> = keys.into_iter().map(|key| (key, value(random))).collect();
        for (key, value) in entries.clone() {
            state.0[at].insert(key, (value, None));
        }
        history.states.push(state);
        self.db.bulk_load(&self.spaces[at], entries)?;
        history.acknowledge(Durability::Sync);
        Ok(())
    }

    /// Checks that a checkpoint or a backup has the same contents as the database.
    fn copy(&self, history: &History, random: &mut SeededRandom) -> Result<()> {
        let to = format!("/data/copy-{:x}", random.any());
        if random.one_in(2) {
            self.db.checkpoint(&to)?;
        } else {
            self.db.backup(&to, &mut |_, _| ())?;
        }
        let copy = Self::open_in(&to, &self.vfs, &self.clock)?;
        let expected = history.newest().at(self.clock.now());
        assert!(
            copy.read(None)? == expected,
            "the copy holds something else"
        );
        Ok(())
    }

    fn write(&self, history: &mut History, random: &mut SeededRandom) -> Result<()> {
        let now = self.clock.now();
        let mut state = history.newest().clone();
        let mut batch = WriteBatch::new();
        for _ in 0..=random.below(5) {
            let at = random.up_to(2);
            let (space, entries) = (&self.spaces[at], &mut state.0[at]);
            let (key, value) = (key(random.below(KEYS)), value(random));
            match random.below(8) {
                0 | 1 if at == 1 => {
                    batch.merge(space, &key, &value);
                    entries.entry(key).or_default().0.extend(value);
                }
                0 if at == 0 => {
                    let expiry = now + random.below(30);
                    batch.put_expiring(space, &key, &value, expiry);
                    entries.insert(key, (value, Some(expiry)));
                }
                2 => {
                    batch.delete(space, &key);
                    entries.remove(&key);
                }
                3 => {
                    let end = self::key(random.below(KEYS));
                    batch.delete_range(space, &key, &end);
                    entries.retain(|inside, _| *inside < key || *inside >= end);
                }
                _ => {
                    batch.put(space, &key, &value);
                    entries.insert(key, (value, None));
                }
            }
        }
        history.states.push(state);
        let durability = if random.one_in(3) {
            Durability::Sync
        } else {
            Durability::Buffered
        };
        self.db.write(batch, durability)?;
        history.acknowledge(durability);
        Ok(())
    }
}

/// Runs operations on a database whose disk is full from time to time. Writes that are rejected for
/// lack of space have no effect, reads continue, and writes succeed again once there is space.
/// Returns the number of rejections.
pub(crate) fn work_in_little_room(
    world: &mut World,
    history: &mut History,
    random: &mut SeededRandom,
) -> Result<usize> {
    let mut refused = 0;
    for _ in 0..4 {
        let (full, until) = (random.below(12), 12 + random.below(12));
        for step in 0..40 {
            if step == full {
                world.vfs.fill_up();
            }
            if step == until {
                world.vfs.clear();
            }
            let before = history.len();
            match world.step(history, random) {
                Err(error) if error.code() == "storage_full" => {
                    assert!((full..until).contains(&step), "refused in vain: {error}");
                    history.take_back(before);
                    refused += 1;
                }
                stepped => stepped?,
            }
            assert!(
                world.read(None)? == history.expected(world.clock.now()),
                "what was refused is there, or more than that is gone"
            );
        }
    }
    Ok(refused)
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number:03}").into_bytes()
}

fn value(random: &mut SeededRandom) -> Vec<u8> {
    let fill = u8::try_from(random.below(256)).unwrap();
    vec![fill; random.up_to(60)]
}

fn options(vfs: &FaultVfs, clock: &Arc<ManualClock>) -> DbOptions {
    let small = |strategy, compression| KeyspaceOptions {
        strategy,
        compression: vec![compression],
        memtable_bytes: 2000,
        block_bytes: 300,
        table_bytes: 1500,
        base_bytes: 3000,
        compact_at_runs: 3,
        ..KeyspaceOptions::default()
    };
    let tiered = KeyspaceOptions {
        merge: Some(Arc::new(Append)),
        ..small(Strategy::SizeTiered { runs: 3 }, Compression::None)
    };
    let options = DbOptions {
        vfs: Arc::new(vfs.clone()) as Arc<dyn Vfs>,
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        background_threads: 0,
        // In every other opening, the log has records that are in tables.
        retained_log_bytes: if clock.now().is_multiple_of(2) {
            10_000
        } else {
            0
        },
        log: wal::WalOptions {
            segment_bytes: 3000,
            preallocate_bytes: 1000,
            ..wal::WalOptions::default()
        },
        ..DbOptions::default()
    };
    options
        .keyspace(
            NAMES[0],
            small(Strategy::Leveled { fanout: 3 }, Compression::Lz4),
        )
        .keyspace(NAMES[1], tiered)
        .keyspace(
            NAMES[2],
            small(Strategy::LazyLeveled { runs: 3 }, Compression::Zstd(1)),
        )
}

/// Runs operations on a database until one fails or `steps` are done; occasionally reopens it.
pub(crate) fn work(
    vfs: &FaultVfs,
    clock: &Arc<ManualClock>,
    history: &mut History,
    random: &mut SeededRandom,
    steps: u64,
) -> Result<()> {
    let mut world = World::open(vfs, clock)?;
    for _ in 0..steps {
        if random.one_in(25) {
            let World { db, snapshots, .. } = world;
            drop(snapshots);
            if random.one_in(2) {
                db.close()?;
            } else {
                drop(db);
            }
            world = World::open(vfs, clock)?;
            // Everything that opening recovered is durable.
            history.acknowledge(Durability::Sync);
            assert!(
                world.read(None)? == history.expected(clock.now()),
                "reopening lost something"
            );
        }
        world.step(history, random)?;
    }
    world.check_snapshots()?;
    assert!(
        world.read(None)? == history.expected(clock.now()),
        "the answers are wrong"
    );
    let World { db, snapshots, .. } = world;
    drop(snapshots);
    db.close()
}
