//! Loads the grid and measures it: `benchmarks/grid.py` starts this beside a running grid.
//!
//! Queries are registered in bulk by the grid's function, without a database. Then writes are
//! appended as a publisher appends them, at a steady rate, while another thread reads the
//! notification log. Latency is from before the write to the notification, by one clock.

use std::collections::HashMap;
use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rillbase_live::message::{
    AfterImage, Content, Definition, News, Notification, QueryHash, Request, StreamId, WriteEntry,
};
use rillbase_live::snapshot::Snapshot;
use rillbase_live::wire::{notification, request, write_entry};
use rillbase_nodes::resp::{Connection, Failure, Reply};
use rillbase_nodes::server::Server;
use rillbase_query::bson::{DocumentWriter, ValueRef};

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const COLLECTION: [u8; 16] = [7; 16];
const DOMAIN: i64 = 1_000_000_000;
/// The paper's matches a second, however many queries and writes there are.
const MATCHES_PER_S: f64 = 17.0;
/// Requests that may be unanswered: the request stream must not be trimmed before it is read.
const UNANSWERED: usize = 50_000;
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Range,
    Equality,
    Residual,
}

#[derive(Clone)]
struct Options {
    url: String,
    prefix: String,
    queries: usize,
    writes: u64,
    seconds: u64,
    partitions: u64,
    kind: Kind,
}

fn main() -> Fallible<()> {
    let options = options()?;
    let server = Server::parse(&options.url)?;
    let queries = Queries::make(&options);
    let mut reader = Reader::open(&server, &options)?;
    let began = Instant::now();
    register(&server, &options, &queries, &mut reader)?;
    let registered_s = began.elapsed().as_secs_f64();
    let (done, stop) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let reading = {
        let (done, stop) = (Arc::clone(&done), Arc::clone(&stop));
        thread::spawn(move || reader.measure(&done, &stop))
    };
    let sent = write(&server, &options, &queries)?;
    done.store(true, Ordering::Relaxed);
    let until = Instant::now() + PATIENCE;
    while !reading.is_finished() && Instant::now() < until {
        thread::sleep(Duration::from_millis(20));
    }
    stop.store(true, Ordering::Relaxed);
    let latencies = reading.join().map_err(|_| "the reader broke")??;
    report(&options, registered_s, &sent, latencies);
    Ok(())
}

fn options() -> Fallible<Options> {
    let mut given = HashMap::new();
    let mut arguments = env::args().skip(1);
    while let (Some(name), Some(value)) = (arguments.next(), arguments.next()) {
        given.insert(name, value);
    }
    let mut take = |name: &str| {
        given
            .remove(name)
            .ok_or_else(|| format!("{name} is missing"))
    };
    Ok(Options {
        url: take("--url")?,
        prefix: take("--prefix")?,
        queries: take("--queries")?.parse()?,
        writes: take("--writes")?.parse()?,
        seconds: take("--seconds")?.parse()?,
        partitions: take("--partitions")?.parse()?,
        kind: match take("--kind")?.as_str() {
            "range" => Kind::Range,
            "equality" => Kind::Equality,
            "residual" => Kind::Residual,
            other => return Err(format!("no such kind: {other}").into()),
        },
    })
}

/// The same numbers in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        i64::try_from((mixed ^ (mixed >> 31)) >> 1).unwrap_or(0) % bound
    }
}

/// Queries over the one number of a document that is unique.
struct Queries {
    kind: Kind,
    /// Where each query's values begin, in rising order.
    starts: Vec<i64>,
    width: i64,
}

impl Queries {
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "a width needs no more digits"
    )]
    fn make(options: &Options) -> Self {
        let mut random = Random(1);
        let per_query = MATCHES_PER_S / (options.writes as f64 * options.queries as f64);
        let width = match options.kind {
            Kind::Range => ((DOMAIN as f64 * per_query) as i64).max(1),
            Kind::Equality => 1,
            // One document in so many matches each query.
            Kind::Residual => ((1.0 / per_query) as i64).max(2),
        };
        let bound = match options.kind {
            Kind::Range => DOMAIN - width,
            Kind::Equality => (1.0 / per_query) as i64,
            Kind::Residual => width,
        };
        let mut starts: Vec<i64> = (0..options.queries).map(|_| random.below(bound)).collect();
        starts.sort_unstable();
        Self {
            kind: options.kind,
            starts,
            width,
        }
    }

    /// A document's number.
    fn draw(&self, random: &mut Random) -> i64 {
        match self.kind {
            Kind::Range | Kind::Residual => random.below(DOMAIN),
            Kind::Equality => random.below(self.starts.last().copied().unwrap_or(0) + 1),
        }
    }

    /// How many queries a number matches.
    fn matching(&self, number: i64) -> usize {
        let among = |first: i64, last: i64| {
            let below = |bound: i64| self.starts.partition_point(|&start| start < bound);
            below(last + 1) - below(first)
        };
        match self.kind {
            Kind::Range => among(number - self.width + 1, number),
            Kind::Equality => among(number, number),
            Kind::Residual => among(number % self.width, number % self.width),
        }
    }

    fn filter(&self, start: i64) -> Vec<u8> {
        let mut condition = DocumentWriter::new();
        match self.kind {
            Kind::Range => {
                condition.append("$gte", ValueRef::Int64(start));
                condition.append("$lt", ValueRef::Int64(start + self.width));
            }
            Kind::Equality => condition.append("$eq", ValueRef::Int64(start)),
            Kind::Residual => {
                let mut pair = DocumentWriter::new();
                pair.append("0", ValueRef::Int64(self.width));
                pair.append("1", ValueRef::Int64(start));
                condition.append_raw("$mod", rillbase_query::bson::Kind::Array, &pair.finish());
            }
        }
        let mut filter = DocumentWriter::new();
        filter.append_raw(
            "random",
            rillbase_query::bson::Kind::Document,
            &condition.finish(),
        );
        filter.finish()
    }

    fn definition(&self, number: usize, start: i64) -> Definition {
        let mut hash = [0; 16];
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        if let Some(front) = hash.first_chunk_mut::<8>() {
            *front = number.to_be_bytes();
        }
        Definition {
            hash: QueryHash(hash),
            activation: 0,
            tenant: tenant(number),
            collection: COLLECTION,
            rules_version: 0,
            filter: self.filter(start).into(),
            sort: Arc::default(),
            offset: 0,
            limit: None,
            sorted: false,
            slack: 0,
        }
    }
}

/// Many tenants, so that none reaches its quota.
fn tenant(number: u64) -> [u8; 16] {
    let mut tenant = [0; 16];
    if let Some(front) = tenant.first_chunk_mut::<8>() {
        *front = (number / 500).to_be_bytes();
    }
    tenant
}

fn register(
    server: &Server,
    options: &Options,
    queries: &Queries,
    reader: &mut Reader,
) -> Fallible<()> {
    let mut connection = Connection::open(server)?;
    let partitions = usize::try_from(options.partitions)?;
    let snapshot = Snapshot {
        xmin: 1,
        xmax: 1,
        running: Vec::new(),
    };
    for (batch, starts) in queries.starts.chunks(500).enumerate() {
        let positions = ends(&mut connection, options)?;
        for (number, &start) in starts.iter().enumerate() {
            let query = queries.definition(batch * 500 + number, start);
            let (hash, definition) = (query.hash.0, request::encode_definition(&query));
            let asked = request::encode(&Request::Register {
                query,
                positions: positions.clone(),
                snapshot: snapshot.clone(),
                rows: Vec::new(),
                complete: true,
                renewal: false,
            });
            let function: &[u8] = b"rillbase_grid_1_register";
            let prefix = options.prefix.as_bytes();
            connection.queue(&[
                b"FCALL",
                function,
                b"1",
                prefix,
                b"1",
                b"0",
                b"load",
                &hash,
                &definition,
                &asked,
            ]);
        }
        connection.flush()?;
        for _ in starts {
            connection.reply()?.accepted()?;
        }
        let sent = (batch + 1) * 500;
        while reader.active + reader.refused + UNANSWERED * partitions < sent * partitions {
            reader.read(100)?;
        }
    }
    while reader.active + reader.refused < options.queries * partitions {
        reader.read(100)?;
    }
    if reader.refused > 0 {
        return Err(format!("{} registrations were refused", reader.refused).into());
    }
    Ok(())
}

/// Where the write streams end.
fn ends(connection: &mut Connection, options: &Options) -> Fallible<Vec<StreamId>> {
    let partitions = options.partitions.to_string();
    let command: [&[u8]; 7] = [
        b"FCALL",
        b"rillbase_grid_1_ends",
        b"1",
        options.prefix.as_bytes(),
        b"1",
        partitions.as_bytes(),
        b"0",
    ];
    let answer = connection.call(&command)?.list()?;
    let ends = answer.into_iter().nth(1).unwrap_or(Reply::Nil).list()?;
    ends.into_iter()
        .map(|end| {
            let text = String::from_utf8(end.bytes()?)?;
            let (ms, number) = text.split_once('-').ok_or("an id was expected")?;
            Ok(StreamId {
                ms: ms.parse()?,
                number: number.parse()?,
            })
        })
        .collect()
}

/// Reads the notification log.
struct Reader {
    connection: Connection,
    log: String,
    after: String,
    active: usize,
    refused: usize,
    latencies_us: Vec<u64>,
}

impl Reader {
    fn open(server: &Server, options: &Options) -> Result<Self, Failure> {
        Ok(Self {
            connection: Connection::open(server)?,
            log: format!("{}:1:log:0", options.prefix),
            after: "0-0".into(),
            active: 0,
            refused: 0,
            latencies_us: Vec::new(),
        })
    }

    fn read(&mut self, block_ms: u64) -> Result<(), Failure> {
        let block = block_ms.to_string();
        let (log, after) = (self.log.clone(), self.after.clone());
        let command: [&[u8]; 8] = [
            b"XREAD",
            b"COUNT",
            b"1000",
            b"BLOCK",
            block.as_bytes(),
            b"STREAMS",
            log.as_bytes(),
            after.as_bytes(),
        ];
        let streams = self.connection.call(&command)?.list()?;
        let now_us = now_us();
        for stream in streams {
            let mut parts = stream.list()?.into_iter().skip(1);
            for entry in parts.next().unwrap_or(Reply::Nil).list()? {
                let mut parts = entry.list()?.into_iter();
                let id = parts.next().unwrap_or(Reply::Nil).bytes()?;
                self.after = String::from_utf8_lossy(&id).into_owned();
                let mut fields = parts
                    .next()
                    .unwrap_or(Reply::Nil)
                    .list()?
                    .into_iter()
                    .skip(1);
                let body = fields.next().unwrap_or(Reply::Nil).bytes()?;
                if let Ok(found) = notification::decode(&body) {
                    self.take(&found, now_us);
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, found: &Notification, now_us: u64) {
        match &found.news {
            News::Active { .. } => self.active += 1,
            News::Failed { .. } | News::TooOld { .. } => self.refused += 1,
            News::Match {
                image,
                added,
                changed,
                removed,
            } => {
                let written_us = u64::try_from(image.written_us).unwrap_or(0);
                let latency_us = now_us.saturating_sub(written_us);
                for _ in 0..added.len() + changed.len() + removed.len() {
                    self.latencies_us.push(latency_us);
                }
            }
            _ => {}
        }
    }

    /// Reads on until told to stop, or a second after the last write.
    fn measure(mut self, done: &AtomicBool, stop: &AtomicBool) -> Fallible<Vec<u64>> {
        self.latencies_us.clear();
        let mut quiet = 0;
        while !stop.load(Ordering::Relaxed) && quiet < 20 {
            let before = self.latencies_us.len();
            self.read(50)?;
            let over = done.load(Ordering::Relaxed) && self.latencies_us.len() == before;
            quiet = if over { quiet + 1 } else { 0 };
        }
        Ok(self.latencies_us)
    }
}

struct Sent {
    writes: u64,
    expected: usize,
    seconds: f64,
}

/// Appends writes at a steady rate. What is due since the last look leaves together.
fn write(server: &Server, options: &Options, queries: &Queries) -> Fallible<Sent> {
    let mut connection = Connection::open(server)?;
    let mut random = Random(2);
    let total = options.writes * options.seconds;
    let (began, mut sent, mut expected) = (Instant::now(), 0, 0);
    while sent < total {
        let passed_us = u64::try_from(began.elapsed().as_micros())?;
        let due = (passed_us * options.writes / 1_000_000).min(total);
        if due == sent {
            thread::sleep(Duration::from_micros(200));
            continue;
        }
        let until = due.min(sent + 500);
        let count = until - sent;
        for number in sent..until {
            let value = queries.draw(&mut random);
            expected += queries.matching(value);
            queue_write(&mut connection, options, number, value);
        }
        connection.flush()?;
        for _ in 0..count {
            let mut answer = connection.reply()?.list()?.into_iter();
            if answer.next().unwrap_or(Reply::Nil).bytes()? != b"ok" {
                return Err("a write was refused".into());
            }
        }
        sent = until;
    }
    Ok(Sent {
        writes: sent,
        expected,
        seconds: began.elapsed().as_secs_f64(),
    })
}

fn queue_write(connection: &mut Connection, options: &Options, number: u64, value: i64) {
    let id = format!("document {number}");
    let key = id.as_bytes().to_vec();
    let now = now_us();
    let image = AfterImage {
        xid: 1_000 + number,
        tenant: [1; 16],
        collection: COLLECTION,
        version: 1,
        rules_version: 0,
        created_ms: 0,
        written_us: i64::try_from(now).unwrap_or(0),
        key: key.into(),
        content: Content::Document(document(&id, value).into()),
        parts: Arc::default(),
    };
    let (entry, _) = write_entry::encode(&WriteEntry::Image(image));
    let (stamp, hash) = (now.to_string(), number.to_string());
    let prefix = options.prefix.as_bytes();
    let function: &[u8] = b"rillbase_events_1_append";
    connection.queue(&[
        b"FCALL",
        function,
        b"1",
        prefix,
        stamp.as_bytes(),
        b"",
        b"",
        b"1",
        hash.as_bytes(),
        &entry,
    ]);
}

/// The paper's document: five strings of ten characters, five integers.
fn document(id: &str, value: i64) -> Vec<u8> {
    let mut document = DocumentWriter::with_capacity(256);
    document.append("_id", ValueRef::String(id));
    for name in ["a", "b", "c", "d", "e"] {
        document.append(name, ValueRef::String("0123456789"));
    }
    for (name, number) in [("v", 1), ("w", 22), ("x", 333), ("y", 4_444)] {
        document.append(name, ValueRef::Int64(number));
    }
    document.append("random", ValueRef::Int64(value));
    document.finish()
}

fn now_us() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(0)
}

#[allow(clippy::print_stdout, reason = "it is what this program is for")]
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures for people"
)]
fn report(options: &Options, registered_s: f64, sent: &Sent, mut latencies_us: Vec<u64>) {
    latencies_us.sort_unstable();
    let ms = |share: f64| {
        let place = (share * latencies_us.len() as f64) as usize;
        let last = latencies_us.len().saturating_sub(1);
        latencies_us
            .get(place.min(last))
            .map_or(0.0, |&us| us as f64 / 1_000.0)
    };
    let total: u64 = latencies_us.iter().sum();
    let average_ms = total as f64 / 1_000.0 / latencies_us.len().max(1) as f64;
    println!(
        "{{\"registered_per_s\":{:.0},\"writes_per_s\":{:.1},\"expected\":{},\"delivered\":{},\
         \"average_ms\":{average_ms:.3},\"p50_ms\":{:.3},\"p90_ms\":{:.3},\"p99_ms\":{:.3},\
         \"max_ms\":{:.3}}}",
        options.queries as f64 / registered_s,
        sent.writes as f64 / sent.seconds,
        sent.expected,
        latencies_us.len(),
        ms(0.5),
        ms(0.9),
        ms(0.99),
        ms(1.0),
    );
}
