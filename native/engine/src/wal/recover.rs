//! The contents of a directory of segments, determined by reading alone.
//!
//! The newest segment with a valid header names the previous one, and so on back to the floor.
//! Segments outside this chain are leftovers. Records are read in order until one is invalid.
//! Whether that is the end or damage follows from the records and headers themselves: each contains
//! a position that was known to be synced, and everything below the highest of them must exist.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::blocks;
use super::format::{
    BlockReference, Floor, HeaderFault, RecordKind, SEGMENT_HEADER_BYTES, SegmentHeader,
    SegmentIdentity, WalVersion, decode_floor, decode_references,
};
use super::scan::{Beyond, Raw, Scanner};
use super::segment::{number_of, path_of};
use super::spans::Spans;
use crate::error::{Error, Result};
use crate::vfs::{RandomRead, Vfs};

const HEADER_END: u64 = SEGMENT_HEADER_BYTES as u64;

/// An unsynced, incomplete end of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The segment that is truncated.
    pub file: PathBuf,
    /// The offset of the first invalid byte.
    pub offset: u64,
    /// Valid records after it. None of them was acknowledged as synced.
    pub records: u64,
}

/// The recovered state.
#[derive(Debug)]
pub(super) struct RecoveredLog {
    /// The segments that are needed, in order.
    pub(super) chain: Vec<SegmentHeader>,
    /// The numbers of unneeded files.
    pub(super) leftover: Vec<u64>,
    pub(super) spans: Spans,
    pub(super) floor: Floor,
    pub(super) next_index: u64,
    /// The position after the last valid record.
    pub(super) end: u64,
    /// The highest position known to be synced according to the log.
    pub(super) synced: u64,
    /// Whether the last record marks a clean close.
    pub(super) clean: bool,
    pub(super) cut: Option<TornTail>,
    /// The highest number of any file, needed or not.
    pub(super) highest: u64,
    /// The highest index that refers to each block file.
    pub(super) block_use: BTreeMap<u64, u64>,
    /// The records that refer to blocks.
    pub(super) referring: Vec<Referring>,
}

/// A record that refers to blocks.
#[derive(Debug)]
pub(super) struct Referring {
    pub(super) position: u64,
    index: u64,
    pub(super) blocks: Vec<BlockReference>,
}

/// Reads the log in `dir`.
pub(super) fn recover(vfs: &dyn Vfs, dir: &Path) -> Result<RecoveredLog> {
    let files = SegmentHeaders::open(vfs, dir)?;
    let recovered = RecoveryPass::new(&files, Damage::Rejected).run(u64::MAX)?;
    // Records of the unsynced tail may have reached the disk before the blocks they refer to.
    for record in &recovered.referring {
        if record.position >= recovered.synced && !blocks_are_sound(vfs, dir, record)? {
            return RecoveryPass::new(&files, Damage::Rejected).run(record.position);
        }
    }
    Ok(recovered)
}

/// Reads a damaged log as if it ended before the damage.
pub(super) fn recover_before_damage(vfs: &dyn Vfs, dir: &Path) -> Result<RecoveredLog> {
    let files = SegmentHeaders::open(vfs, dir)?;
    let recovered = RecoveryPass::new(&files, Damage::EndOfLog).run(u64::MAX)?;
    match first_unsound(vfs, dir, &recovered)? {
        Some(record) => RecoveryPass::new(&files, Damage::EndOfLog).run(record.position),
        None => Ok(recovered),
    }
}

/// The first record that refers to a block that cannot be read.
pub(super) fn first_unsound<'a>(
    vfs: &dyn Vfs,
    dir: &Path,
    recovered: &'a RecoveredLog,
) -> Result<Option<&'a Referring>> {
    for record in &recovered.referring {
        if !blocks_are_sound(vfs, dir, record)? {
            return Ok(Some(record));
        }
    }
    Ok(None)
}

fn blocks_are_sound(vfs: &dyn Vfs, dir: &Path, record: &Referring) -> Result<bool> {
    for block in &record.blocks {
        match blocks::read(vfs, dir, block) {
            Ok(_) => {}
            Err(Error::Corruption { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// The segments in a directory, and their headers.
struct SegmentHeaders<'a> {
    dir: &'a Path,
    list: BTreeMap<u64, (Box<dyn RandomRead>, Option<SegmentHeader>)>,
}

impl<'a> SegmentHeaders<'a> {
    fn open(vfs: &dyn Vfs, dir: &'a Path) -> Result<Self> {
        let mut list = BTreeMap::new();
        for number in vfs.list(dir)?.iter().filter_map(|name| number_of(name)) {
            let file = vfs.open_read(&path_of(dir, number))?;
            let mut bytes = [0; SEGMENT_HEADER_BYTES];
            let read = file.read_at(0, &mut bytes)?;
            let header = SegmentHeader::decode(bytes.get(..read).unwrap_or(&[]), number);
            if let Err(HeaderFault::Version(version)) = header {
                let detail = format!("unknown format version {version}");
                return Err(Error::corruption(file.path(), 4, detail));
            }
            list.insert(number, (file, header.ok()));
        }
        Ok(Self { dir, list })
    }

    fn header(&self, number: u64) -> Option<SegmentHeader> {
        self.list.get(&number)?.1
    }

    fn scanner(&self, header: &SegmentHeader, limit: u64) -> Result<Scanner<'_>> {
        let Some((file, _)) = self.list.get(&header.number) else {
            return Err(self.missing(header.number));
        };
        Ok(Scanner::new(&**file, header.identity(), HEADER_END, limit))
    }

    fn missing(&self, number: u64) -> Error {
        let path = path_of(self.dir, number);
        let detail = if self.list.contains_key(&number) {
            "the header is damaged"
        } else {
            "the segment is missing"
        };
        Error::corruption(&path, 0, detail)
    }

    /// The highest floor in a header or a record, whether or not the log is valid up to there.
    fn highest_floor(&self) -> Result<Floor> {
        let mut floor = Floor {
            index: 1,
            segment: 1,
        };
        for (_, header) in self.list.values() {
            let Some(header) = header else { continue };
            floor = floor.max(header.floor);
            let mut scanner = self.scanner(header, u64::MAX)?;
            while let Ok(Some(record)) = scanner.next() {
                if record.kind == RecordKind::Floor
                    && let Some(recorded) = decode_floor(record.body)
                {
                    floor = floor.max(recorded);
                }
            }
        }
        Ok(floor)
    }

    /// The newest chain that reaches back to `floor`: those behind a segment that is missing or
    /// whose header is damaged do not.
    fn chain_to(&self, floor: Floor) -> Result<Vec<SegmentHeader>> {
        let mut limit = u64::MAX;
        loop {
            let mut older = self.list.range(..limit).rev();
            let Some(newest) = older.find_map(|(_, (_, header))| *header) else {
                return Ok(Vec::new());
            };
            match self.chain(newest) {
                Err(Error::Corruption { .. }) => limit = newest.number,
                Err(error) => return Err(error),
                Ok(chain) => match chain.first() {
                    Some(first) if first.number > floor.segment => limit = first.number,
                    _ => return Ok(chain),
                },
            }
        }
    }

    /// The newest segment. Newer files with an invalid header were never used: a header is durable
    /// before the first record is written.
    fn newest(&self) -> Result<(Option<SegmentHeader>, Option<TornTail>)> {
        let mut cut = None;
        for (number, (file, header)) in self.list.iter().rev() {
            if header.is_some() {
                return Ok((*header, cut));
            }
            for version in WalVersion::ALL {
                let identity = SegmentIdentity {
                    version,
                    segment: *number,
                    base: 0,
                };
                let scanner = Scanner::new(&**file, identity, HEADER_END, u64::MAX);
                if scanner.beyond()?.records > 0 {
                    return Err(self.missing(*number));
                }
            }
            cut = Some(TornTail {
                file: file.path().to_owned(),
                offset: 0,
                records: 0,
            });
        }
        Ok((None, cut))
    }

    /// The newest segment and those before it, in order, as far back as they are valid.
    fn chain(&self, newest: SegmentHeader) -> Result<Vec<SegmentHeader>> {
        let mut chain = vec![newest];
        let mut at = newest;
        let mut floor = newest.floor;
        while at.number > floor.segment && at.previous != 0 {
            let Some(previous) = self.header(at.previous) else {
                break;
            };
            if previous.number >= at.number || previous.base > at.base {
                let path = path_of(self.dir, at.number);
                let detail = "it does not follow the previous segment";
                return Err(Error::corruption(&path, 0, detail));
            }
            floor = floor.max(previous.floor);
            chain.push(previous);
            at = previous;
        }
        chain.reverse();
        Ok(chain)
    }
}

/// What damage means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    /// The log cannot be opened.
    Rejected,
    /// The log ends there.
    EndOfLog,
}

/// One pass over the chain.
struct RecoveryPass<'a> {
    files: &'a SegmentHeaders<'a>,
    damage: Damage,
    recovered: RecoveredLog,
}

impl<'a> RecoveryPass<'a> {
    fn new(files: &'a SegmentHeaders<'a>, damage: Damage) -> Self {
        let recovered = RecoveredLog {
            chain: Vec::new(),
            leftover: Vec::new(),
            spans: Spans::default(),
            floor: Floor {
                index: 1,
                segment: 1,
            },
            next_index: 1,
            end: 0,
            synced: 0,
            clean: false,
            cut: None,
            highest: files.list.keys().next_back().copied().unwrap_or(0),
            block_use: BTreeMap::new(),
            referring: Vec::new(),
        };
        Self {
            files,
            damage,
            recovered,
        }
    }

    /// Reads all records below the position `stop`.
    fn run(mut self, stop: u64) -> Result<RecoveredLog> {
        let chain = match self.damage {
            Damage::Rejected => {
                let (newest, cut) = self.files.newest()?;
                self.recovered.cut = cut;
                newest.map_or(Ok(Vec::new()), |newest| self.files.chain(newest))?
            }
            Damage::EndOfLog => {
                self.recovered.floor = self.files.highest_floor()?;
                self.files.chain_to(self.recovered.floor)?
            }
        };
        if chain.is_empty() && self.damage == Damage::Rejected {
            self.recovered.leftover = self.files.list.keys().copied().collect();
            return Ok(self.recovered);
        }
        self.begin(&chain);
        let mut kept = 0;
        for (index, header) in chain.iter().enumerate() {
            let next = chain.get(index + 1);
            kept = index + 1;
            let whole = match self.segment(header, next, stop) {
                Err(Error::Corruption { .. }) if self.damage == Damage::EndOfLog => false,
                read => read?,
            };
            if !whole {
                self.stopped(header, chain.get(index + 1..).unwrap_or(&[]))?;
                break;
            }
        }
        self.recovered.chain = chain;
        self.recovered.chain.truncate(kept);
        self.finish()
    }

    fn begin(&mut self, chain: &[SegmentHeader]) {
        if let Some(first) = chain.first() {
            self.recovered.next_index = first.first_index;
            self.recovered.end = first.base.saturating_add(HEADER_END);
        }
        for header in chain {
            self.recovered.floor = self.recovered.floor.max(header.floor);
            self.recovered.synced = self.recovered.synced.max(header.synced);
        }
    }

    /// Reads a segment and returns whether it continues in the next one.
    fn segment(
        &mut self,
        header: &SegmentHeader,
        next: Option<&SegmentHeader>,
        stop: u64,
    ) -> Result<bool> {
        if header.first_index != self.recovered.next_index {
            return Err(self.out_of_order(header, 0, header.first_index));
        }
        let end = next.map_or(stop, |next| next.base.min(stop));
        let limit = end.saturating_sub(header.base);
        let mut scanner = self.files.scanner(header, limit)?;
        self.recovered.end = header.base.saturating_add(HEADER_END);
        self.recovered.clean = false;
        let mut closed_at = 0;
        while let Some(record) = scanner.next()? {
            closed_at = record.start;
            let end = record.end;
            self.record(header, &record)?;
            self.recovered.end = header.base.saturating_add(end);
        }
        if next.is_none() && self.recovered.clean {
            // The log continues in place of the mark, which need not have been synced.
            self.recovered.end = header.base.saturating_add(closed_at);
        }
        Ok(next.is_some_and(|next| next.base == self.recovered.end))
    }

    fn record(&mut self, header: &SegmentHeader, record: &Raw<'_>) -> Result<()> {
        let path = || path_of(self.files.dir, header.number);
        let misshapen = || Error::corruption(&path(), record.start, "the record is malformed");
        let expected = self.recovered.next_index;
        // In version 2 only those that drop others have an index.
        let index = match record.kind {
            RecordKind::Truncate => record.truncates_from().ok_or_else(misshapen)?,
            _ => record.index.unwrap_or(expected),
        };
        if index > expected || (record.kind != RecordKind::Truncate && index != expected) {
            return Err(self.out_of_order(header, record.start, index));
        }
        let recovered = &mut self.recovered;
        recovered.synced = recovered.synced.max(record.synced);
        recovered.clean = record.kind == RecordKind::Close;
        match record.kind {
            RecordKind::Close => {}
            RecordKind::Floor => {
                let floor = decode_floor(record.body).ok_or_else(misshapen)?;
                recovered.floor = recovered.floor.max(floor);
            }
            RecordKind::Truncate => {
                recovered.spans.truncate_from(index);
                recovered.referring.retain(|old| old.index < index);
                recovered.next_index = index;
            }
            RecordKind::Data | RecordKind::Referring => {
                if record.kind == RecordKind::Referring {
                    let (blocks, _) = decode_references(record.body).ok_or_else(misshapen)?;
                    recovered.referring.push(Referring {
                        position: header.base.saturating_add(record.start),
                        index,
                        blocks,
                    });
                }
                let spans = &mut recovered.spans;
                spans.add(index, header.identity(), record.start, record.end);
                recovered.next_index = expected.saturating_add(1);
            }
        }
        Ok(())
    }

    fn out_of_order(&self, header: &SegmentHeader, offset: u64, index: u64) -> Error {
        let path = path_of(self.files.dir, header.number);
        let expected = self.recovered.next_index;
        let detail = format!("found record {index} instead of {expected}");
        Error::corruption(&path, offset, detail)
    }

    /// Decides whether the position where reading stopped is the end of the log, an unsynced tail
    /// or damage.
    fn stopped(&mut self, header: &SegmentHeader, later: &[SegmentHeader]) -> Result<()> {
        let offset = self.recovered.end.saturating_sub(header.base);
        let file = path_of(self.files.dir, header.number);
        if self.recovered.clean && later.is_empty() {
            return Ok(());
        }
        let mut scanner = self.files.scanner(header, u64::MAX)?;
        scanner.skip_to(offset);
        let ends = scanner.at_end_mark()? && later.is_empty();
        let mut beyond = scanner.beyond()?;
        for header in later {
            let more = self.files.scanner(header, u64::MAX)?.beyond()?;
            beyond = Beyond {
                records: beyond.records + more.records,
                synced: beyond.synced.max(more.synced),
            };
        }
        self.recovered.synced = self.recovered.synced.max(beyond.synced);
        if self.damage == Damage::EndOfLog {
            self.recovered.synced = self.recovered.end;
        }
        if self.recovered.synced > self.recovered.end {
            let detail = "there is no valid record here, but the log was synced beyond";
            return Err(Error::corruption(&file, offset, detail));
        }
        self.recovered.clean = false;
        if !ends || beyond.records > 0 {
            self.recovered.cut = Some(TornTail {
                file,
                offset,
                records: beyond.records,
            });
        }
        Ok(())
    }

    /// Omits what is below the floor; everything from its segment on must exist.
    fn finish(mut self) -> Result<RecoveredLog> {
        let recovered = &mut self.recovered;
        let floor = recovered.floor;
        if self.damage == Damage::EndOfLog {
            let newest = recovered.chain.last().map_or(0, |last| last.number);
            if newest < floor.segment || recovered.next_index < floor.index {
                // Nothing above the floor can be read.
                recovered.chain.clear();
                recovered.spans = Spans::default();
                recovered.referring.clear();
                recovered.next_index = floor.index;
                recovered.end = 0;
                recovered.synced = 0;
                recovered.leftover = self.files.list.keys().copied().collect();
                return Ok(self.recovered);
            }
        }
        if let Some(first) = recovered
            .chain
            .first()
            .filter(|first| first.number > floor.segment)
        {
            return Err(self.files.missing(first.previous));
        }
        recovered
            .chain
            .retain(|header| header.number >= floor.segment);
        if recovered.chain.is_empty() || floor.index > recovered.next_index {
            return Err(self.files.missing(floor.segment));
        }
        recovered.spans.drop_before(floor.index);
        recovered
            .referring
            .retain(|record| record.index >= floor.index);
        for record in &recovered.referring {
            for block in &record.blocks {
                recovered.block_use.insert(block.file, record.index);
            }
        }
        let needed = |number: &u64| {
            recovered
                .chain
                .iter()
                .any(|header| header.number == *number)
        };
        let numbers = self.files.list.keys().copied();
        recovered.leftover = numbers.filter(|number| !needed(number)).collect();
        Ok(self.recovered)
    }
}
