//! Loads a storage node with events of an aggregate, or Valkey with the equivalent counters in
//! hashes, over pipelined connections.
//!
//! ```text
//! aggregate_load --address 127.0.0.1:6390 --target node|valkey [--user NAME --token TOKEN]
//!     [--hot 1] [--connections 8] [--pipeline 512] [--batch 1] [--seconds 3] [--query JSON]
//! ```
//!
//! An event is one call of an endpoint: the caller, the endpoint and the duration. Events rotate
//! over `hot` endpoints, which belong to servers of apps of customers. Each event is stored, and
//! changes the rows of its endpoint, server, app and customer. Each command is a separate
//! transaction of `batch` events. With `--query`, an additional connection repeats that query and
//! measures its latency, under load and with no other connections. The last line is JSON.
#![allow(clippy::cast_precision_loss, reason = "rates are for people")]

use std::collections::HashMap;
use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Endpoints of one server, servers of one app, apps of one customer.
const FAN: u64 = 10;
/// The number of different commands that are prepared for each connection.
const PREPARED: u64 = 2048;

/// The command-line options.
struct AggregateLoadArguments(HashMap<String, String>);

impl AggregateLoadArguments {
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
        let text = self.text(name);
        Ok(text.map(str::parse).transpose()?.unwrap_or(otherwise))
    }
}

fn request(out: &mut Vec<u8>, words: &[&str]) {
    // Writing to a vector does not fail.
    let _ = write!(out, "*{}\r\n", words.len());
    for word in words {
        let _ = write!(out, "${}\r\n{word}\r\n", word.len());
    }
}

/// One call of an endpoint.
struct EndpointCall {
    customer: u64,
    app: u64,
    server: u64,
    endpoint: u64,
    latency: u64,
}

impl EndpointCall {
    fn new(number: u64, hot: u64) -> Self {
        let endpoint = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % hot;
        Self {
            customer: endpoint / (FAN * FAN * FAN),
            app: endpoint / (FAN * FAN),
            server: endpoint / FAN,
            endpoint,
            latency: 1 + number % 250,
        }
    }

    fn json(&self) -> String {
        let Self {
            customer,
            app,
            server,
            endpoint,
            latency,
        } = self;
        format!(
            r#"{{"customer":"c{customer}","app":"a{app}","server":"s{server}","endpoint":"e{endpoint}","latency_ms":{latency}}}"#
        )
    }

    /// The equivalent in Valkey: the event and a counter for each level, in one transaction.
    fn counters(&self, out: &mut Vec<u8>) {
        let Self {
            customer,
            app,
            server,
            endpoint,
            latency,
        } = self;
        let latency = latency.to_string();
        request(out, &["MULTI"]);
        request(out, &["RPUSH", "calls", &self.json()]);
        for key in [
            format!("customer:c{customer}"),
            format!("app:a{app}"),
            format!("server:s{server}"),
            format!("endpoint:e{endpoint}"),
        ] {
            request(out, &["HINCRBY", &key, "latency_ms", &latency]);
        }
        request(out, &["EXEC"]);
    }
}

/// The parameters of the load on one connection.
#[derive(Debug, Clone, Copy)]
struct EventLoad {
    is_valkey: bool,
    hot: u64,
    batch: u64,
    pipeline: u64,
    length: Duration,
}

impl EventLoad {
    /// The commands of a connection, and the end of each.
    fn commands(&self, from: u64) -> (Vec<u8>, Vec<usize>) {
        let (mut out, mut ends) = (Vec::new(), Vec::new());
        let count = (PREPARED / self.batch).max(16);
        for number in 0..count {
            let calls = (0..self.batch)
                .map(|place| EndpointCall::new(from + number * self.batch + place, self.hot));
            if self.is_valkey {
                calls.for_each(|call| call.counters(&mut out));
            } else {
                let events: Vec<String> = calls.map(|call| call.json()).collect();
                let mut words = vec!["RB.AGG.ADD", "calls"];
                words.extend(events.iter().map(String::as_str));
                request(&mut out, &words);
            }
            ends.push(out.len());
        }
        (out, ends)
    }

    /// The number of lines in a reply: replies consist of lines without bulk strings.
    fn lines(&self) -> u64 {
        if self.is_valkey {
            // OK, five times QUEUED, an array of five.
            12 * self.batch
        } else {
            1 + self.batch
        }
    }
}

/// Runs the load of one connection; returns how many events were acknowledged. A full pipeline of
/// commands is always in flight.
fn drive(mut stream: TcpStream, load: EventLoad, from: u64) -> Result<u64> {
    let (bytes, ends) = load.commands(from);
    let (mut sent, mut lines) = (0_u64, 0_u64);
    let mut piece = vec![0; 256 << 10];
    let started = Instant::now();
    let place = |number: u64| usize::try_from(number % ends.len() as u64).unwrap_or_default();
    loop {
        let done = lines / load.lines();
        let is_over = started.elapsed() >= load.length;
        while !is_over && sent < done + load.pipeline {
            // Up to the end of the prepared commands.
            let first = place(sent);
            let wanted = usize::try_from(done + load.pipeline - sent)?;
            let last = (first + wanted).min(ends.len()) - 1;
            let start = first.checked_sub(1).and_then(|at| ends.get(at)).copied();
            let end = ends.get(last).copied().unwrap_or_default();
            stream.write_all(bytes.get(start.unwrap_or(0)..end).unwrap_or_default())?;
            sent += (last + 1 - first) as u64;
        }
        if is_over && done == sent {
            return Ok(sent * load.batch);
        }
        let read = stream.read(&mut piece)?;
        let piece = piece.get(..read).unwrap_or_default();
        if piece.is_empty() {
            return Err("the server has closed the connection".into());
        }
        if let Some(at) = piece.iter().position(|&byte| byte == b'-') {
            let said = piece.get(at..piece.len().min(at + 200)).unwrap_or_default();
            return Err(format!("refused: {}", said.escape_ascii()).into());
        }
        let ends = piece.iter().map(|&byte| u64::from(byte == b'\n'));
        lines += ends.sum::<u64>();
    }
}

fn connect(asked: &AggregateLoadArguments) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(asked.text("address").ok_or("--address is required")?)?;
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

/// Repeats a query; returns the latencies in microseconds and the size of the last result.
fn ask(mut stream: TcpStream, query: &str, is_over: &AtomicBool) -> Result<(Vec<u128>, usize)> {
    let mut out = Vec::new();
    request(&mut out, &["RB.AGG.QUERY", "calls", query]);
    let (mut times, mut last) = (Vec::new(), 0);
    let mut piece = vec![0; 1 << 20];
    while !is_over.load(Ordering::Relaxed) {
        let started = Instant::now();
        stream.write_all(&out)?;
        let (mut answer, mut whole) = (Vec::new(), usize::MAX);
        while answer.len() < whole {
            let read = stream.read(&mut piece)?;
            answer.extend_from_slice(piece.get(..read).unwrap_or_default());
            if !answer.starts_with(b"$") || read == 0 {
                let said = answer.get(..answer.len().min(200)).unwrap_or_default();
                return Err(format!("refused: {}", said.escape_ascii()).into());
            }
            if let Some(end) = answer.iter().position(|&byte| byte == b'\n') {
                let length = std::str::from_utf8(answer.get(1..end).unwrap_or_default())?;
                whole = length.trim_end().parse::<usize>()? + end + 3;
            }
        }
        times.push(started.elapsed().as_micros());
        last = whole;
        std::thread::sleep(Duration::from_millis(5));
    }
    times.sort_unstable();
    Ok((times, last))
}

fn main() -> Result<()> {
    let asked = AggregateLoadArguments::read();
    let load = EventLoad {
        is_valkey: asked.text("target") == Some("valkey"),
        hot: asked.count("hot", 1)?.max(1),
        batch: asked.count("batch", 1)?.max(1),
        pipeline: asked.count("pipeline", 512)?.max(1),
        length: Duration::from_secs(asked.count("seconds", 3)?),
    };
    let is_over = AtomicBool::new(false);
    let started = Instant::now();
    let (events, took, queries) = std::thread::scope(|scope| -> Result<_> {
        let asking = match asked.text("query") {
            None => None,
            Some(query) => {
                let (stream, is_over) = (connect(&asked)?, &is_over);
                Some(scope.spawn(move || ask(stream, query, is_over)))
            }
        };
        let mut running = Vec::new();
        let connections = asked.count("connections", 8)?;
        if connections == 0 {
            std::thread::sleep(load.length);
        }
        for number in 0..connections {
            let stream = connect(&asked)?;
            running.push(scope.spawn(move || drive(stream, load, number << 32)));
        }
        let done = running.into_iter().map(std::thread::ScopedJoinHandle::join);
        let events = done
            .map(|one| one.map_err(|_| "a thread panicked")?)
            .sum::<Result<u64>>();
        let took = started.elapsed();
        is_over.store(true, Ordering::Relaxed);
        let asked = asking.map(std::thread::ScopedJoinHandle::join);
        let queries = asked.map(|one| one.map_err(|_| "a thread panicked")?);
        Ok((events?, took, queries.transpose()?))
    })?;
    let rate = events as f64 / took.as_secs_f64();
    let (times, bytes) = queries.unwrap_or_default();
    let at = |share: usize| {
        times
            .get(times.len() * share / 100)
            .copied()
            .unwrap_or_default()
    };
    let mut out = std::io::stdout();
    writeln!(
        out,
        r#"{{"rate":{rate:.1},"events":{events},"queries":{},"query_p50_us":{},"query_p99_us":{},"query_bytes":{bytes}}}"#,
        times.len(),
        at(50),
        at(99),
    )?;
    Ok(())
}
