//! The alternative without a grid: a consumer of the write stream evaluates each query for each
//! write.
//!
//! It uses the same streams, partitions and notifications as the grid, and filters that are
//! compiled once. The only difference is the missing index of queries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rillbase_grid_nodes::resp::{ValkeyConnection, ValkeyReply};
use rillbase_grid_nodes::server::ValkeyServer;
use rillbase_live::message::{
    AfterImage, FencingToken, ImageContent, NodeEvent, Notification, NotificationSource, QueryHash,
    WriteEntry,
};
use rillbase_live::wire::{notification, write_entry};
use rillbase_query::bson::Document;
use rillbase_query::filter::Filter;

use crate::Fallible;
use crate::notification_reader::entry_of;
use crate::options::LoadOptions;
use crate::workload::{GridWorkload, hash};

/// The threads that follow the write streams.
pub(crate) struct Tails {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Fallible<()>>>,
}

impl Tails {
    /// Follows each write stream in a separate thread.
    pub(crate) fn start(
        server: &ValkeyServer,
        options: &LoadOptions,
        workload: &GridWorkload,
    ) -> Fallible<Self> {
        let mut filters = Vec::with_capacity(workload.len());
        for number in 0..workload.len() {
            let name = hash(u64::try_from(number)?);
            filters.push((name, Filter::parse(workload.filter(number)?.as_ref())?));
        }
        let (filters, stop) = (Arc::new(filters), Arc::new(AtomicBool::new(false)));
        let mut threads = Vec::new();
        for partition in 0..options.write_partitions {
            let mut tail = Tail {
                connection: ValkeyConnection::open(server)?,
                stream: format!("{}:1:{partition}", options.prefix),
                log: format!("{}:1:log:0", options.prefix),
                after: "0-0".into(),
                filters: Arc::clone(&filters),
            };
            let stop = Arc::clone(&stop);
            threads.push(thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    tail.turn()?;
                }
                Ok(())
            }));
        }
        Ok(Self { stop, threads })
    }

    /// Stops all threads.
    pub(crate) fn stop(self) -> Fallible<()> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().map_err(|_| "a tailing thread panicked")??;
        }
        Ok(())
    }
}

struct Tail {
    connection: ValkeyConnection,
    stream: String,
    log: String,
    after: String,
    filters: Arc<Vec<(QueryHash, Filter)>>,
}

impl Tail {
    fn turn(&mut self) -> Fallible<()> {
        let (stream, after) = (self.stream.clone(), self.after.clone());
        let command: [&[u8]; 8] = [
            b"XREAD",
            b"COUNT",
            b"512",
            b"BLOCK",
            b"50",
            b"STREAMS",
            stream.as_bytes(),
            after.as_bytes(),
        ];
        let streams = self.connection.call(&command)?.list()?;
        let mut told = 0;
        for stream in streams {
            let entries = stream
                .list()?
                .into_iter()
                .nth(1)
                .unwrap_or(ValkeyReply::Nil);
            for entry in entries.list()? {
                let (id, body) = entry_of(entry)?;
                self.after = id;
                if let WriteEntry::Image(image) = write_entry::decode(&body, None)? {
                    told += usize::from(self.evaluate(image));
                }
            }
        }
        if told > 0 {
            self.connection.flush()?;
        }
        for _ in 0..told {
            self.connection.reply()?.accepted()?;
        }
        Ok(())
    }

    /// Evaluates every query; returns whether there was anything to report.
    fn evaluate(&mut self, image: AfterImage) -> bool {
        let ImageContent::Document(body) = &image.content else {
            return false;
        };
        let document = Document::trusted(body);
        let matching = |(_, filter): &&(QueryHash, Filter)| filter.matches(document) == Ok(true);
        let found = self.filters.iter().filter(matching);
        let added: Vec<QueryHash> = found.map(|(hash, _)| *hash).collect();
        if added.is_empty() {
            return false;
        }
        let said = notification::encode(&Notification {
            source: NotificationSource::Filter(0),
            token: FencingToken(1),
            count: 1,
            event: NodeEvent::Match {
                image,
                added,
                changed: Vec::new(),
                removed: Vec::new(),
            },
        });
        self.connection
            .queue(&[b"XADD", self.log.as_bytes(), b"*", b"e", &said]);
        true
    }
}
