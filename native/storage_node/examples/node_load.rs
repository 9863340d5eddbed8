//! Loads a storage node, or another server with the same protocol, with pipelined commands; or
//! publishes through the store directly, without a node.
//!
//! ```text
//! node_load --address 127.0.0.1:6390 [--user NAME] --token TOKEN --command ping|publish|mixed|writes
//!     [--connections 4] [--pipeline 64] [--seconds 3]
//! node_load --embedded DIR --durability sync|buffered --command publish|mixed [--connections 4]
//!     [--pipeline 1] [--seconds 3]
//! ```
//!
//! `publish` publishes 140 bytes of data under one of 250,000 ids of the topic `load`. `mixed` does
//! so every fourth time, and otherwise subscribes from ten seconds ago until ten seconds from now.
//! `writes` alternates between publishing, adding an event to the aggregate `calls`, and setting a
//! value. Embedded, each connection is a thread, and `--pipeline` operations form a batch. The last
//! line is JSON: the rate, and the median and the 99th percentile of the latency of a pipeline.
#![allow(clippy::cast_precision_loss, reason = "rates are for people")]

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use rillbase_engine::{Db, DbOptions, Durability};
use rillbase_pubsub::{
    DeweyId, DualDb, Ids, PublicationRecord, StoreOptions, SubscriptionRecord, TopicOperation,
    TopicPlace, TopicSpec, TopicStore, keyspace_options,
};
use rillbase_query::ejson;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const PLACES: u64 = 250_000;
const REACH_MS: u64 = 10_000;
const LIFE_MS: u64 = 20_000;

/// The repeated command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    Ping,
    Publish,
    Mixed,
    Writes,
}

impl Command {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "ping" => Some(Self::Ping),
            "publish" => Some(Self::Publish),
            "mixed" => Some(Self::Mixed),
            "writes" => Some(Self::Writes),
            _ => None,
        }
    }

    fn publishes(self, number: u64) -> bool {
        match self {
            Self::Publish => true,
            Self::Writes => number.is_multiple_of(3),
            Self::Mixed | Self::Ping => number.is_multiple_of(4),
        }
    }
}

/// A pseudorandom id, the same in each run.
fn place(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % PLACES
}

fn data() -> String {
    format!("{{\"text\":\"{}\"}}", "x".repeat(110))
}

fn request(out: &mut Vec<u8>, words: &[&str]) {
    // Writing to a vector does not fail.
    let _ = write!(out, "*{}\r\n", words.len());
    for word in words {
        let _ = write!(out, "${}\r\n{word}\r\n", word.len());
    }
}

fn add(out: &mut Vec<u8>, command: Command, (number, data): (u64, &str)) {
    let place = place(number).to_string();
    match command {
        Command::Ping => request(out, &["PING"]),
        _ if command.publishes(number) => {
            request(
                out,
                &[
                    "RB.PUB", "load", "ID", &place, "UNTIL", "+20s", "DATA", data,
                ],
            );
        }
        Command::Writes if number % 3 == 1 => {
            let event = format!("{{\"endpoint\":{},\"latency_ms\":7}}", number % 100);
            request(out, &["RB.AGG.ADD", "calls", &event]);
        }
        Command::Writes => request(out, &["RB.KV.SET", &place, data]),
        _ => request(
            out,
            &[
                "RB.SUB", "load", "ID", &place, "FROM", "-10s", "UNTIL", "+10s",
            ],
        ),
    }
}

/// Counts complete replies of protocol version 2 in bytes that arrive in pieces.
#[derive(Debug, Default)]
struct Replies {
    /// What the current reply still lacks: elements, and bytes of a bulk string.
    elements: usize,
    bytes: usize,
    line: Vec<u8>,
    whole: u64,
    refused: u64,
}

impl Replies {
    fn take(&mut self, mut piece: &[u8]) -> Result<()> {
        while !piece.is_empty() {
            if self.bytes > 0 {
                let (_, rest) = piece.split_at(self.bytes.min(piece.len()));
                self.bytes -= piece.len() - rest.len();
                piece = rest;
                if self.bytes == 0 {
                    self.end_element();
                }
                continue;
            }
            let end = piece.iter().position(|&byte| byte == b'\n');
            let (head, rest) = piece.split_at(end.map_or(piece.len(), |end| end + 1));
            self.line.extend_from_slice(head);
            piece = rest;
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                self.take_line(&line)?;
            }
        }
        Ok(())
    }

    fn take_line(&mut self, line: &[u8]) -> Result<()> {
        let (sign, rest) = line.split_first().ok_or("an empty reply")?;
        let number = || -> Result<i64> { Ok(std::str::from_utf8(rest)?.trim_end().parse()?) };
        match sign {
            b'*' if number()? > 0 => {
                // One element is replaced by several.
                self.elements = self.elements.max(1) + usize::try_from(number()?)? - 1;
                return Ok(());
            }
            b'$' if number()? >= 0 => {
                self.elements = self.elements.max(1);
                self.bytes = usize::try_from(number()?)? + 2;
                return Ok(());
            }
            b'-' => self.refused += 1,
            _ => {}
        }
        self.elements = self.elements.max(1);
        self.end_element();
        Ok(())
    }

    fn end_element(&mut self) {
        self.elements -= 1;
        if self.elements == 0 {
            self.whole += 1;
        }
    }
}

/// The command-line options.
struct NodeLoadArguments(HashMap<String, String>);

impl NodeLoadArguments {
    fn read() -> Self {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let pairs = words.chunks_exact(2).filter_map(|pair| match pair {
            [name, value] => Some((name.trim_start_matches('-').to_owned(), value.clone())),
            _ => None,
        });
        Self(pairs.collect())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn count(&self, name: &str, otherwise: u64) -> Result<u64> {
        Ok(self
            .text(name)
            .map(str::parse)
            .transpose()?
            .unwrap_or(otherwise))
    }
}

/// The parameters of the load on one connection.
#[derive(Debug, Clone, Copy)]
struct CommandLoad {
    command: Command,
    pipeline: u64,
    length: Duration,
}

/// The measurements of a thread.
#[derive(Debug, Default)]
struct ThreadTimings {
    whole: u64,
    /// The latency of each pipeline, in µs.
    micros: Vec<u64>,
}

impl ThreadTimings {
    /// A percentile of the latencies.
    fn at(&self, share: u64) -> u64 {
        let place = self.micros.len() as u64 * share / 1000;
        let last = self.micros.len().saturating_sub(1);
        let place = usize::try_from(place).unwrap_or(last).min(last);
        self.micros.get(place).copied().unwrap_or(0)
    }
}

impl std::iter::Sum for ThreadTimings {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        let mut all = Self::default();
        for one in each {
            all.whole += one.whole;
            all.micros.extend(one.micros);
        }
        all.micros.sort_unstable();
        all
    }
}

/// Runs the load of one connection.
fn drive(mut stream: TcpStream, load: CommandLoad, from: u64) -> Result<ThreadTimings> {
    let (data, mut replies, mut number) = (data(), Replies::default(), from);
    let mut micros = Vec::new();
    let mut piece = vec![0; 256 << 10];
    let (started, mut out) = (Instant::now(), Vec::new());
    while started.elapsed() < load.length {
        out.clear();
        for _ in 0..load.pipeline {
            add(&mut out, load.command, (number, &data));
            number += 1;
        }
        let sent = Instant::now();
        stream.write_all(&out)?;
        while replies.whole < number - from {
            let read = stream.read(&mut piece)?;
            if read == 0 {
                return Err("the server has closed the connection".into());
            }
            replies.take(piece.get(..read).unwrap_or_default())?;
        }
        micros.push(u64::try_from(sent.elapsed().as_micros())?);
    }
    if replies.refused > 0 {
        return Err(format!("{} commands were rejected", replies.refused).into());
    }
    Ok(ThreadTimings {
        whole: replies.whole,
        micros,
    })
}

fn connect(asked: &NodeLoadArguments) -> Result<TcpStream> {
    let address = asked
        .text("address")
        .ok_or("--address or --embedded is required")?;
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    if let Some(token) = asked.text("token") {
        let user = asked.text("user").unwrap_or("default");
        let mut out = Vec::new();
        request(&mut out, &["AUTH", user, token]);
        stream.write_all(&out)?;
        let mut answer = [0; 64];
        let read = stream.read(&mut answer)?;
        if !answer.starts_with(b"+OK") {
            let said = answer.get(..read).unwrap_or_default().escape_ascii();
            return Err(format!("AUTH: {said}").into());
        }
    }
    Ok(stream)
}

/// Runs work in several threads; returns the sum of their results and the elapsed time.
fn in_threads(
    threads: u64,
    work: impl Fn(u64) -> Result<ThreadTimings> + Sync,
) -> Result<(ThreadTimings, Duration)> {
    let started = Instant::now();
    let sum = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| {
                let work = &work;
                scope.spawn(move || work(thread))
            })
            .collect();
        let done = running.into_iter().map(ScopedJoinHandle::join);
        done.map(|one| one.map_err(|_| "a thread panicked")?)
            .sum::<Result<ThreadTimings>>()
    })?;
    Ok((sum, started.elapsed()))
}

fn operation(command: Command, (number, now): (u64, u64), data: &[u8]) -> TopicOperation {
    let place = TopicPlace::id(DeweyId::root().child(place(number)));
    if command.publishes(number) {
        let publication = PublicationRecord {
            at: now,
            until: now + LIFE_MS,
            data: data.to_vec(),
            ..PublicationRecord::default()
        };
        return TopicOperation::Publish {
            place,
            publication,
            self_join: false,
            once: false,
        };
    }
    let subscription = SubscriptionRecord {
        from: now - REACH_MS,
        until: now + REACH_MS,
        at: now,
        ..SubscriptionRecord::default()
    };
    TopicOperation::Subscribe {
        place,
        subscription,
        self_join: false,
    }
}

/// Runs the load through the store; returns the number of operations and the elapsed time.
fn embedded(
    asked: &NodeLoadArguments,
    dir: &str,
    load: CommandLoad,
) -> Result<(ThreadTimings, Duration)> {
    let db = Arc::new(Db::open(dir, DbOptions::default())?);
    let durability = match asked.text("durability") {
        Some("buffered") => Durability::Buffered,
        _ => Durability::Sync,
    };
    let options = StoreOptions {
        durability,
        sink: None,
    };
    let store = DualDb::open(&db, "topics", keyspace_options(), options)?;
    let topic = TopicSpec {
        number: 1,
        ids: Ids::Hierarchy,
        retention: 86_400_000,
    };
    let data = ejson::parse_document(data().as_bytes()).map_err(|error| error.detail)?;
    let data = data.as_bytes();
    in_threads(asked.count("connections", 4)?, |thread| {
        let (started, mut number) = (Instant::now(), thread << 40);
        let from = number;
        while started.elapsed() < load.length {
            let now = db.now();
            let numbers = number..number + load.pipeline;
            let batch = numbers.map(|number| operation(load.command, (number, now), data));
            let batch: Vec<TopicOperation> = batch.collect();
            store.run(&topic, &batch)?;
            number += load.pipeline;
        }
        Ok(ThreadTimings {
            whole: number - from,
            micros: Vec::new(),
        })
    })
}

fn main() -> Result<()> {
    let asked = NodeLoadArguments::read();
    let command = asked.text("command").and_then(Command::parse);
    let load = CommandLoad {
        command: command.ok_or("--command is ping, publish, mixed or writes")?,
        pipeline: asked.count("pipeline", 64)?.max(1),
        length: Duration::from_secs(asked.count("seconds", 3)?),
    };
    let (done, took) = match asked.text("embedded") {
        Some(dir) => embedded(&asked, dir, load)?,
        None => in_threads(asked.count("connections", 4)?, |thread| {
            drive(connect(&asked)?, load, thread << 40)
        })?,
    };
    let rate = done.whole as f64 / took.as_secs_f64();
    writeln!(
        io::stdout(),
        "{{\"done\":{},\"rate\":{rate:.0},\"p50_us\":{},\"p99_us\":{}}}",
        done.whole,
        done.at(500),
        done.at(990),
    )?;
    Ok(())
}
