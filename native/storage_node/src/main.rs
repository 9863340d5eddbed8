//! The storage node as a program.
//!
//! ```text
//! RILLBASE_NODE_TOKEN=… rillbase-node --directory DIR [--listen 127.0.0.1:6390]
//!     [--metrics 127.0.0.1:6391] [--durability sync|buffered] [--threads N] [--clients 10000]
//!     [--clients-per-address 4096] [--in-flight-mib 512]
//!     [--cache-mib 64] [--memtables-mib 64] [--reserve-mib 32]
//!     [--retained-log-mib 1024]
//! ```
//!
//! The token authenticates the admin; it is passed in the environment, which other users cannot
//! see. SIGTERM and SIGINT stop the node: pending requests are answered, and all writes are
//! durable.

use std::collections::HashMap;
use std::fmt::Display;
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::str::FromStr;

use rillbase_engine::Durability;
use rillbase_storage_node::{NodeCore, NodeOptions, NodeServer, report};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

const TOKEN: &str = "RILLBASE_NODE_TOKEN";
const MIN_TOKEN_BYTES: usize = 16;
const MIN_IN_FLIGHT_MIB: usize = 64;
/// Space for a manifest and the unsynced end of the log, which is usually within one segment.
const RESERVE_MIB: u64 = 32;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If the line cannot be written, there is no one to report that to.
            let _ = writeln!(std::io::stderr(), "rillbase-node: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut asked = NodeArguments::read()?;
    let listen: SocketAddr = asked
        .take("listen")?
        .unwrap_or(([127, 0, 0, 1], 6390).into());
    let metrics: Option<SocketAddr> = asked.take("metrics")?;
    let options = options(&mut asked)?;
    asked.end()?;
    // Before anything else, so that an early signal is not lost.
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(text)?;
    let node = NodeCore::open(options).map_err(text)?;
    let server = NodeServer::start(node, listen, metrics).map_err(text)?;
    report(&format!("ready at {}", server.address()));
    let stop = server.stopper();
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            stop();
        }
    });
    server.wait().map_err(text)?;
    report("all writes are durable; the node has stopped");
    Ok(())
}

fn options(arguments: &mut NodeArguments) -> Result<NodeOptions, String> {
    let token = std::env::var(TOKEN).unwrap_or_default();
    if token.len() < MIN_TOKEN_BYTES {
        return Err(format!("{TOKEN} needs at least {MIN_TOKEN_BYTES} bytes"));
    }
    let directory: String = arguments
        .take("directory")?
        .ok_or("--directory is required")?;
    let mut options = NodeOptions::new(directory, token);
    if let Some(word) = arguments.take::<String>("durability")? {
        options.durability = match word.as_str() {
            "sync" => Durability::Sync,
            "buffered" => Durability::Buffered,
            _ => return Err("--durability must be sync or buffered".into()),
        };
    }
    options.reserve_bytes = arguments
        .take::<u64>("reserve-mib")?
        .unwrap_or(RESERVE_MIB)
        .saturating_mul(1 << 20);
    if let Some(mib) = arguments.take::<u64>("retained-log-mib")? {
        options.retained_log_bytes = mib.saturating_mul(1 << 20);
    }
    options.threads = arguments.take("threads")?.unwrap_or(options.threads);
    options.clients = arguments.take("clients")?.unwrap_or(options.clients);
    options.clients_per_address = arguments
        .take("clients-per-address")?
        .unwrap_or(options.clients_per_address);
    let mib = |bytes: Option<usize>, otherwise| bytes.map_or(otherwise, |mib| mib << 20);
    options.in_flight_bytes = mib(arguments.take("in-flight-mib")?, options.in_flight_bytes);
    if options.in_flight_bytes < MIN_IN_FLIGHT_MIB << 20 {
        return Err(format!(
            "--in-flight-mib must be at least {MIN_IN_FLIGHT_MIB}, which fits two of the largest requests"
        ));
    }
    options.cache_bytes = mib(arguments.take("cache-mib")?, options.cache_bytes);
    options.memtables_bytes = mib(arguments.take("memtables-mib")?, options.memtables_bytes);
    Ok(options)
}

/// `--name value` pairs.
struct NodeArguments(HashMap<String, String>);

impl NodeArguments {
    fn read() -> Result<Self, String> {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let mut pairs = HashMap::new();
        for pair in words.chunks(2) {
            let [name, value] = pair else {
                return Err("options are pairs: --name value".into());
            };
            let name = name
                .strip_prefix("--")
                .ok_or_else(|| format!("{name}: not an option"))?;
            pairs.insert(name.to_owned(), value.clone());
        }
        Ok(Self(pairs))
    }

    fn take<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, String> {
        let value = self.0.remove(name);
        let parsed = value.map(|value| {
            let parsed = value.parse();
            parsed.map_err(|_| format!("--{name} {value}: invalid value"))
        });
        parsed.transpose()
    }

    fn end(&self) -> Result<(), String> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(format!("--{name}: unknown")),
        }
    }
}

fn text(error: impl Display) -> String {
    error.to_string()
}
