//! Entries with a time and a place in their value, and options under which they are stored.

use std::sync::Arc;

use crate::database_support::open_entries;
use rillbase_engine::vfs::{MemoryVfs, Vfs};
use rillbase_engine::{
    CompactionPlan, Db, DbOptions, DbSnapshot, Extractor, Keyspace, KeyspaceOptions, KeyspaceShape,
    ManualClock, Merge, Ranked, RankedEntry, Separation, Strategy, TableLayout, TableShape,
    TableVersion, ZoneMap,
};

/// The value with a time and a place.
pub(crate) fn value_of(time: u64, [x, y]: [f64; 2]) -> Vec<u8> {
    let mut value = time.to_le_bytes().to_vec();
    value.extend_from_slice(&x.to_le_bytes());
    value.extend_from_slice(&y.to_le_bytes());
    value
}

/// The number at an offset, if the value is long enough.
fn number(value: &[u8], offset: usize) -> Option<u64> {
    let bytes = value.get(offset..offset + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().unwrap()))
}

/// The place in a value, if it has one.
pub(crate) fn place_of(value: &[u8]) -> Option<[f64; 2]> {
    let side = |offset| number(value, offset).map(f64::from_bits);
    Some([side(8)?, side(16)?])
}

/// The number of values of the attribute.
pub(crate) const GROUPS: u8 = 5;

/// The value of the attribute of an entry with a time.
pub(crate) fn group_of(value: &[u8]) -> Option<u8> {
    let time = number(value, 0)?;
    u8::try_from(time % u64::from(GROUPS)).ok()
}

/// Extracts times and groups, places, or neither, depending on the length of a value.
#[derive(Debug)]
pub(crate) struct TimeAndPlace;

impl Extractor for TimeAndPlace {
    fn name(&self) -> &'static str {
        "time_and_place"
    }

    fn is_listed(&self) -> bool {
        true
    }

    fn extract(&self, _key: &[u8], value: &[u8], about: &mut ZoneMap) {
        if let Some(time) = number(value, 0) {
            about.add_time(time);
        }
        if let Some(group) = group_of(value) {
            about.add_indexed(1, &[group]);
        }
        if let Some([x, y]) = place_of(value) {
            about.add_rectangle([x, y, x, y]);
        }
    }
}

/// Another extractor, whose zones lead elsewhere.
#[derive(Debug)]
pub(crate) struct TimeZero;

impl Extractor for TimeZero {
    fn name(&self) -> &'static str {
        "time_zero"
    }

    fn is_listed(&self) -> bool {
        true
    }

    fn extract(&self, _key: &[u8], _value: &[u8], about: &mut ZoneMap) {
        about.add_time(0);
    }
}

/// Adds times.
#[derive(Debug)]
pub(crate) struct SumOfTimes;

impl Merge for SumOfTimes {
    fn name(&self) -> &'static str {
        "sum_of_times"
    }

    fn full(&self, _key: &[u8], below: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8> {
        let times = below.iter().chain(operands);
        let sum: u64 = times.filter_map(|time| number(time, 0)).sum();
        sum.to_le_bytes().to_vec()
    }

    fn partial(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(self.full(key, None, operands))
    }
}

/// The number of parts of a level.
const PARTS: u8 = 4;

/// Tables are separated by the time of their entries.
#[derive(Debug)]
struct TimeParts;

impl TableLayout for TimeParts {
    fn name(&self) -> &'static str {
        "time_parts"
    }

    fn separation(&self) -> Separation {
        Separation::Zones
    }

    fn requires_attributes(&self) -> bool {
        true
    }

    fn choose(&self, shape: &KeyspaceShape<'_>) -> Option<CompactionPlan> {
        if shape.runs(0).count() >= 3 {
            let tables = shape.runs(0).flat_map(|run| run.tables());
            return Some(CompactionPlan::merge(tables, 1));
        }
        (0..PARTS).find_map(|part| {
            let of = |level: usize| {
                let runs = shape.runs(level);
                runs.filter(move |run| run.part() == Some(part))
            };
            if of(1).count() < 3 {
                return None;
            }
            let tables = of(1).chain(of(2)).flat_map(|run| run.tables());
            let tables: Vec<TableShape<'_>> = tables.collect();
            Some(CompactionPlan::merge(tables, 2))
        })
    }

    fn part_of(&self, zone: &ZoneMap, _level: usize) -> u8 {
        let time = zone.times().map_or(0, |(first, _)| first);
        u8::try_from(time % u64::from(PARTS)).unwrap()
    }
}

/// How the entries of a keyspace are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    Leveled,
    SizeTiered,
    LazyLeveled,
    TimeWindow,
    /// Tables are separated by zone.
    Parts,
    /// With operands.
    Merged,
    /// With operands that are folded in memory.
    Accumulating,
}

impl Variant {
    pub(crate) const ALL: [Self; 7] = [
        Self::Leveled,
        Self::SizeTiered,
        Self::LazyLeveled,
        Self::TimeWindow,
        Self::Parts,
        Self::Merged,
        Self::Accumulating,
    ];

    pub(crate) fn has_merge(self) -> bool {
        matches!(self, Self::Merged | Self::Accumulating)
    }

    /// Options with small blocks and tables.
    pub(crate) fn options(self) -> KeyspaceOptions {
        let strategy = match self {
            Self::SizeTiered => Strategy::SizeTiered { runs: 3 },
            Self::LazyLeveled => Strategy::LazyLeveled { runs: 3 },
            Self::TimeWindow => Strategy::TimeWindow {
                window: 16,
                runs: 3,
            },
            _ => Strategy::Leveled { fanout: 3 },
        };
        let parts = || Arc::new(TimeParts) as Arc<dyn TableLayout>;
        let merge = || Arc::new(SumOfTimes) as Arc<dyn Merge>;
        KeyspaceOptions {
            strategy,
            layout: (self == Self::Parts).then(parts),
            merge: self.has_merge().then(merge),
            accumulates: self == Self::Accumulating,
            extractor: Some(Arc::new(TimeAndPlace)),
            memtable_bytes: 6000,
            block_bytes: 200,
            table_bytes: 900,
            base_bytes: 3000,
            compact_at_runs: 3,
            restart_interval: 4,
            ..KeyspaceOptions::default()
        }
    }
}

/// All entries that are returned.
pub(crate) fn all_of<S: Ord, F>(mut ranked: Ranked<'_, S, F>) -> Vec<RankedEntry<S>>
where
    F: Fn(&ZoneMap) -> Option<S>,
{
    std::iter::from_fn(|| ranked.next().unwrap()).collect()
}

/// A database in memory with one keyspace.
pub(crate) struct World {
    vfs: Arc<dyn Vfs>,
    pub(crate) clock: Arc<ManualClock>,
    cache_bytes: usize,
    /// The version of tables that are written after the next reopening.
    pub(crate) version: TableVersion,
    db: Option<Db>,
    pub(crate) entries: Keyspace,
}

fn open(
    vfs: &Arc<dyn Vfs>,
    clock: &Arc<ManualClock>,
    cache_bytes: usize,
    version: TableVersion,
    options: KeyspaceOptions,
) -> (Db, Keyspace) {
    let database = DbOptions {
        cache_bytes,
        table_cache_bytes: cache_bytes,
        table_version: version,
        ..DbOptions::default()
    };
    open_entries(vfs, clock, database, options)
}

impl World {
    pub(crate) fn new(options: KeyspaceOptions) -> Self {
        Self::on(Arc::new(MemoryVfs::new()), 1 << 20, options)
    }

    pub(crate) fn on(vfs: Arc<dyn Vfs>, cache_bytes: usize, options: KeyspaceOptions) -> Self {
        let clock = Arc::new(ManualClock::new(1000));
        let version = TableVersion::default();
        let (db, entries) = open(&vfs, &clock, cache_bytes, version, options);
        Self {
            vfs,
            clock,
            cache_bytes,
            version,
            db: Some(db),
            entries,
        }
    }

    pub(crate) fn reopen(&mut self, options: KeyspaceOptions) {
        if let Some(db) = self.db.take() {
            db.close().unwrap();
        }
        let (db, entries) = open(
            &self.vfs,
            &self.clock,
            self.cache_bytes,
            self.version,
            options,
        );
        (self.db, self.entries) = (Some(db), entries);
    }

    pub(crate) fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    /// All entries in the order of a rank.
    pub(crate) fn ranked<S: Ord>(
        &self,
        snapshot: Option<&DbSnapshot>,
        rank: impl Fn(&ZoneMap) -> Option<S>,
    ) -> Vec<RankedEntry<S>> {
        all_of(self.db().ranked(&self.entries, snapshot, rank).unwrap())
    }

    /// The same keys, values and ranks from a scan.
    pub(crate) fn scanned<S: Ord>(
        &self,
        snapshot: &DbSnapshot,
        rank: impl Fn(&ZoneMap) -> Option<S>,
    ) -> Vec<(S, Vec<u8>, Vec<u8>)> {
        let scan = self.db().scan_prefix(&self.entries, b"", Some(snapshot));
        let (mut scan, mut entries) = (scan.unwrap(), Vec::new());
        scan.first().unwrap();
        while scan.is_valid() {
            let mut zone = ZoneMap::default();
            TimeAndPlace.extract(scan.key(), scan.value(), &mut zone);
            if let Some(rank) = rank(&zone) {
                entries.push((rank, scan.key().to_vec(), scan.value().to_vec()));
            }
            scan.advance().unwrap();
        }
        entries.sort();
        entries
    }
}
