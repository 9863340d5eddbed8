//! One lease of a partition: rebuild, then read, handle and append until something ends it.
//!
//! A lease term has one token and one machine. Whatever leaves the machine's state or the log in
//! doubt (a broken connection, a panic, another holder's lease) ends the term; the next one has
//! another token and starts with a rebuild.
//!
//! A rebuild may take longer than the server retains what is written meanwhile, so the term reads
//! ahead during it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rillbase_live::message::{FencingToken, StreamId};
use rillbase_live::node::NodeOutput;
use rillbase_live::wire::{notification, request};

use crate::control::{Control, stop_without_parent};
use crate::error::ValkeyError;
use crate::layer::{Layer, LeaseCall, NodeSettings, RoundTrip, RoundTripResult, ValkeyEntry};
use crate::machine::{Machine, MachineInput};
use crate::pending::PendingNotifications;
use crate::prefetch::Prefetch;
use crate::report::{CpuShare, NodeState, thread_cpu_us};
use crate::rows::{CopyReader, DocumentReadError, DocumentSource, RebuildScope};

/// The requested duration of a lease.
pub const LEASE_MS: u64 = 2_000;
const RENEWAL: Duration = Duration::from_millis(500);
/// Computing the figures of the index takes longer with more queries, and writes wait meanwhile. At
/// this interval, fewer than one write in a thousand waits.
const FIGURES_INTERVAL: Duration = Duration::from_secs(2);
const LOOK_SHARE: u32 = 1_000;
/// How long a read waits for entries; the machine receives `Idle` at least this often.
const BLOCK_MS: u64 = 50;
/// Pending notifications are appended at the latest when they have this many bytes.
const PENDING_BYTES: usize = 4 << 20;
const LONGEST_PAUSE: Duration = Duration::from_millis(10);
/// How often the machine may panic on an input before that is quarantined.
const MAX_PANICS: u32 = 2;
const MAX_SUSPECTS: usize = 10_000;

/// Why a lease term ended.
#[derive(Debug)]
pub enum TermEnd {
    /// The node was stopped.
    Stopped,
    /// The partition has another holder.
    Fenced,
    /// The event layer failed.
    Unavailable(ValkeyError),
    /// The documents could not be read.
    ReadFailed(DocumentReadError),
}

impl From<ValkeyError> for TermEnd {
    fn from(failure: ValkeyError) -> Self {
        Self::Unavailable(failure)
    }
}

impl From<DocumentReadError> for TermEnd {
    fn from(unread: DocumentReadError) -> Self {
        Self::ReadFailed(unread)
    }
}

/// The input that the machine was handling when it panicked, and how often it did.
#[derive(Debug, Default)]
pub struct Suspects {
    current: Option<Suspect>,
    broke: HashMap<Suspect, u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Suspect {
    Entry(StreamId),
    Request(StreamId),
    Row([u8; 16], Arc<[u8]>),
}

impl Suspects {
    /// Records that the machine panicked on the current input.
    pub fn record_panic(&mut self) {
        if self.broke.len() >= MAX_SUSPECTS {
            self.broke.clear();
        }
        if let Some(suspect) = self.current.take() {
            *self.broke.entry(suspect).or_default() += 1;
        }
    }

    /// Records the next input; returns whether it must not be handled.
    fn handling(&mut self, suspect: Suspect) -> bool {
        let guilty = self
            .broke
            .get(&suspect)
            .is_some_and(|&times| times >= MAX_PANICS);
        self.current = Some(suspect);
        guilty
    }
}

/// Valkey's time, extrapolated since it was last read.
#[derive(Debug, Clone, Copy)]
struct ServerClock {
    base_us: u64,
    since: Instant,
}

impl ServerClock {
    fn now_us(&self) -> u64 {
        let passed = u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.base_us.saturating_add(passed)
    }
}

/// A lease term. See the module.
pub struct LeaseTerm<'a, M> {
    settings: &'a NodeSettings,
    write_partition: u16,
    holder: &'a str,
    token: FencingToken,
    layer: &'a mut Layer,
    documents: &'a mut dyn DocumentSource,
    suspects: &'a mut Suspects,
    control: &'a Control,
    machine: M,
    clock: ServerClock,
    renewed: Instant,
    look_due: Instant,
    busy: CpuShare,
    outputs: Vec<NodeOutput>,
    /// Encoded notifications that are not in the log yet.
    pending: PendingNotifications,
    rebuild: bool,
    /// What was read during the last rebuild and has not been handled.
    ahead: Option<Prefetch>,
    /// The node's own stream and the request stream, with their read positions.
    streams: [(String, StreamId); 2],
    /// The number of the last entry read from its own stream.
    number: u64,
    request_number: u64,
}

impl<'a, M: Machine> LeaseTerm<'a, M> {
    /// Starts a term with a token that was just granted.
    pub fn new(
        (settings, write_partition): (&'a NodeSettings, u16),
        (holder, token): (&'a str, FencingToken),
        layer: &'a mut Layer,
        documents: &'a mut dyn DocumentSource,
        suspects: &'a mut Suspects,
        control: &'a Control,
    ) -> Result<Self, ValkeyError> {
        let clock = ServerClock {
            base_us: layer.time_us()?,
            since: Instant::now(),
        };
        let requests = format!("requests:{}", settings.query_partition);
        let streams = [
            M::stream(settings, write_partition),
            settings.stream(&requests),
        ];
        Ok(Self {
            machine: M::new(settings, write_partition, token),
            streams: streams.map(|name| (name, StreamId::default())),
            settings,
            write_partition,
            holder,
            token,
            layer,
            documents,
            suspects,
            control,
            clock,
            renewed: Instant::now(),
            look_due: Instant::now(),
            busy: CpuShare::begin(Instant::now(), thread_cpu_us()),
            outputs: Vec::new(),
            pending: PendingNotifications::default(),
            rebuild: true,
            ahead: None,
            number: 0,
            request_number: 0,
        })
    }

    /// Runs until the term ends, for example because the parent process has ended.
    pub fn run(&mut self, parent: u32) -> TermEnd {
        loop {
            self.control.step();
            stop_without_parent(parent, self.control);
            let done = if self.rebuild {
                self.rebuild()
            } else {
                self.turn()
            };
            if let Err(ended) = done {
                return ended;
            }
            if self.control.stopped() {
                return TermEnd::Stopped;
            }
        }
    }

    /// One pass over the documents of the partition.
    fn rebuild(&mut self) -> Result<(), TermEnd> {
        let began = Instant::now();
        self.control.change(|figures| {
            figures.state = NodeState::Rebuilding;
            figures.rebuilds += 1;
        });
        self.rebuild = false;
        self.ahead = None;
        self.pass_to_machine(MachineInput::Start);
        self.flush()?;
        let beginning = self.layer.begin(M::reads_writes(self.write_partition))?;
        let [(_, own), (_, requests)] = &mut self.streams;
        *own = M::position(&beginning);
        self.number = M::number(&beginning);
        *requests = beginning.requests;
        self.request_number = beginning.request_number;
        self.ahead = Some(Prefetch::new(self.streams.clone()));
        let scope = self.read_queries()?;
        let opened = self.documents.open(&scope)?;
        self.pass_to_machine(MachineInput::Begin(beginning, opened));
        let left_out = self.read_rows()?;
        self.pass_to_machine(MachineInput::End);
        while self.machine.is_rebuilding() {
            self.flush()?;
            self.pass_to_machine(MachineInput::End);
        }
        for collection in left_out {
            self.pass_to_machine(MachineInput::RowLeftOut(collection));
        }
        self.flush()?;
        let elapsed_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.update_figures();
        self.control.change(|figures| {
            figures.state = NodeState::Running;
            figures.rebuild_us = elapsed_us;
        });
        self.flush_with_renewal()
    }

    /// Passes all queries; returns which documents they need.
    fn read_queries(&mut self) -> Result<RebuildScope, TermEnd> {
        let mut scope = M::rebuild_scope(self.settings, self.write_partition);
        let mut cursor = Some(b"0".to_vec());
        while let Some(from) = cursor {
            let page = self.layer.registry_page(&from)?;
            cursor = page.next;
            self.control
                .change(|figures| figures.quarantined += page.unreadable);
            for definition in &page.definitions {
                M::add_collections(definition, &mut scope.collections);
            }
            self.pass_to_machine(MachineInput::Queries(page.definitions));
            self.catch_up()?;
        }
        Ok(scope)
    }

    /// Passes all rows; returns the collections of those that were omitted.
    fn read_rows(&mut self) -> Result<Vec<[u8; 16]>, TermEnd> {
        let (mut reader, mut rows, mut left_out) = (CopyReader::default(), Vec::new(), Vec::new());
        while let Some(block) = self.documents.next_block()? {
            self.control.step();
            reader.push(&block, &mut rows)?;
            for (collection, row) in rows.drain(..) {
                if self
                    .suspects
                    .handling(Suspect::Row(collection, Arc::clone(&row.key)))
                {
                    left_out.push(collection);
                    self.control.change(|figures| figures.quarantined += 1);
                } else {
                    self.pass_to_machine(MachineInput::Row(collection, row));
                }
            }
            self.suspects.current = None;
            self.catch_up()?;
        }
        reader.finish()?;
        left_out.sort_unstable();
        left_out.dedup();
        Ok(left_out)
    }

    /// Appends pending notifications, reads entries and handles them.
    fn turn(&mut self) -> Result<(), TermEnd> {
        while self.pending.is_more_than_a_batch() {
            if !self.exchange(None)?.appended {
                break;
            }
        }
        let (read, all_read) = self.next_entries()?;
        let mut entries = read.into_iter();
        let own = entries.next().unwrap_or_default();
        for request in entries.next().unwrap_or_default() {
            self.take_request(&request);
        }
        for entry in &own {
            // What follows an entry that requires a rebuild is read again after it.
            if self.rebuild {
                break;
            }
            self.take_entry(entry);
        }
        if all_read && !self.rebuild {
            self.pass_to_machine(MachineInput::Idle);
        }
        if let Some(last) = own.last() {
            let lag_us = self
                .clock
                .now_us()
                .saturating_sub(last.id.ms.saturating_mul(1_000));
            self.control.change(|figures| figures.lag_us = lag_us);
        }
        // The machine's notifications are sent with the next read, before it.
        Ok(())
    }

    /// The next entries of both streams, and whether there were no more.
    fn next_entries(&mut self) -> Result<(Vec<Vec<ValkeyEntry>>, bool), TermEnd> {
        if let Some(ahead) = &mut self.ahead {
            if let Some(entries) = ahead.next() {
                self.exchange(None)?;
                return Ok((entries, false));
            }
            self.ahead = None;
        }
        let streams = std::mem::take(&mut self.streams);
        let done = self.exchange(Some((&streams, BLOCK_MS)));
        self.streams = streams;
        let done = done?;
        Ok((done.entries, done.all_read))
    }

    fn take_entry(&mut self, entry: &ValkeyEntry) {
        let [(_, own), _] = &mut self.streams;
        *own = entry.id;
        self.number += 1;
        // Entries were trimmed before they were read.
        self.rebuild = entry
            .number
            .map_or(M::NUMBERED, |number| number != self.number);
        if self.rebuild {
            return;
        }
        let step = if self.suspects.handling(Suspect::Entry(entry.id)) {
            self.control.change(|figures| figures.quarantined += 1);
            MachineInput::Quarantined(entry)
        } else {
            MachineInput::Entry(entry)
        };
        if !self.pass_to_machine(step) {
            self.control.change(|figures| figures.quarantined += 1);
            self.pass_to_machine(MachineInput::Quarantined(entry));
        }
        self.suspects.current = None;
        self.control.change(|figures| figures.entries += 1);
    }

    fn take_request(&mut self, entry: &ValkeyEntry) {
        let [_, (_, requests)] = &mut self.streams;
        *requests = entry.id;
        self.request_number += 1;
        if entry.number != Some(self.request_number) {
            // Entries were trimmed before they were read.
            self.rebuild = true;
        }
        if self.rebuild {
            return;
        }
        if self.suspects.handling(Suspect::Request(entry.id)) {
            self.control.change(|figures| figures.quarantined += 1);
        } else if let Ok(request) = request::decode(&entry.body) {
            self.pass_to_machine(MachineInput::Request(entry.id, request));
        } else {
            self.control.change(|figures| figures.quarantined += 1);
        }
        self.suspects.current = None;
        self.control.change(|figures| figures.requests += 1);
    }

    /// Passes an input to the machine and keeps its notifications; returns whether the input could
    /// be decoded.
    fn pass_to_machine(&mut self, step: MachineInput<'_>) -> bool {
        let mut outputs = std::mem::take(&mut self.outputs);
        let read = self.machine.handle(step, self.clock.now_us(), &mut outputs);
        for output in outputs.drain(..) {
            match output {
                NodeOutput::Notify(notifications) => {
                    let bytes = notification::encode(&notifications);
                    self.pending.push(bytes);
                }
                NodeOutput::Rebuild(_) => self.rebuild = true,
            }
        }
        self.outputs = outputs;
        read.is_ok()
    }

    /// Appends until nothing is pending.
    fn flush(&mut self) -> Result<(), TermEnd> {
        while !self.pending.is_empty() {
            self.append()?;
        }
        Ok(())
    }

    /// During a rebuild: renews the lease, appends and reads ahead, as far as these are due.
    fn catch_up(&mut self) -> Result<(), TermEnd> {
        if self.pending.bytes >= PENDING_BYTES || self.renewed.elapsed() >= RENEWAL {
            self.flush()?;
        }
        while self.ahead.as_ref().is_some_and(Prefetch::is_due) {
            self.append()?;
        }
        Ok(())
    }

    /// Appends one batch and reads ahead, if that is due. The server's other callers get as much of
    /// its time.
    fn append(&mut self) -> Result<(), TermEnd> {
        self.control.step();
        let began = Instant::now();
        let ahead = self.ahead.take_if(|ahead| ahead.is_due());
        let reads = ahead.as_ref().map(|ahead| (ahead.streams.as_slice(), 1));
        let done = self.exchange(reads)?;
        if let Some(mut ahead) = ahead {
            ahead.add(done);
            self.ahead = Some(ahead);
        }
        if self.control.stopped() {
            return Err(TermEnd::Stopped);
        }
        if !self.pending.is_empty() {
            std::thread::sleep(began.elapsed().min(LONGEST_PAUSE));
        }
        Ok(())
    }

    fn flush_with_renewal(&mut self) -> Result<(), TermEnd> {
        let due = self.renewed.checked_sub(RENEWAL);
        self.renewed = due.unwrap_or(self.renewed);
        self.exchange(None).map(|_| ())
    }

    /// One round trip. While the server does not accept pending notifications, nothing is read.
    fn exchange(
        &mut self,
        reads: Option<(&[(String, StreamId)], u64)>,
    ) -> Result<RoundTripResult, TermEnd> {
        let due = self.renewed.elapsed() >= RENEWAL;
        if due && Instant::now() >= self.look_due {
            self.update_figures();
        }
        let report = if due {
            self.control.json()
        } else {
            String::new()
        };
        let renewal = LeaseCall {
            holder: self.holder,
            ttl_ms: LEASE_MS,
            report: &report,
        };
        let batch = self.pending.batch();
        let has_pending = !batch.is_empty();
        let done = self.layer.exchange(&RoundTrip {
            notifications: has_pending.then_some((self.token, batch)),
            renewal: due.then_some(renewal),
            reads: reads.filter(|_| self.pending.bytes < PENDING_BYTES),
        })?;
        if done.fenced {
            return Err(TermEnd::Fenced);
        }
        if due {
            self.renewed = Instant::now();
        }
        if done.appended {
            let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
            self.control
                .change(|figures| figures.notifications += count);
            let appended = batch.len();
            self.pending.remove(appended);
        } else if has_pending {
            std::thread::sleep(Duration::from_millis(BLOCK_MS));
        }
        Ok(done)
    }

    fn update_figures(&mut self) {
        let began = Instant::now();
        let machine = &self.machine;
        let cpu_us = thread_cpu_us();
        let busy_ppm = self.busy.sample(began, cpu_us);
        self.control.change(|figures| {
            machine.figures(figures);
            figures.cpu_us = cpu_us;
            figures.busy_ppm = busy_ppm.or(figures.busy_ppm);
        });
        self.look_due = Instant::now() + FIGURES_INTERVAL.max(began.elapsed() * LOOK_SHARE);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn entry(number: u64) -> Suspect {
        Suspect::Entry(StreamId { ms: 1, number })
    }

    /// A term that handles all entries in order, and panics on the third unless that is
    /// quarantined.
    fn live(suspects: &mut Suspects) -> Vec<u64> {
        let mut left_out = Vec::new();
        for number in 1..=5 {
            if suspects.handling(entry(number)) {
                left_out.push(number);
            } else {
                assert!(number != 3, "the machine panics");
            }
            suspects.current = None;
        }
        left_out
    }

    #[test]
    fn inputs_that_panic_twice_are_skipped_and_no_others() {
        let mut suspects = Suspects::default();
        for _ in 0..MAX_PANICS {
            assert!(catch_unwind(AssertUnwindSafe(|| live(&mut suspects))).is_err());
            suspects.record_panic();
        }
        assert_eq!(live(&mut suspects), [3]);
        assert_eq!(live(&mut suspects), [3]);
    }

    #[test]
    fn a_term_that_ends_between_two_inputs_suspects_neither() {
        let mut suspects = Suspects::default();
        for _ in 0..=MAX_PANICS {
            suspects.handling(entry(1));
            suspects.current = None;
            suspects.record_panic();
        }
        assert!(!suspects.handling(entry(1)));
    }
}
