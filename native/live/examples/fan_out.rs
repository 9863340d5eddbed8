//! Measures how many events per second a hub emits on one core, rendered and with sealed tokens:
//! `cargo run --release -p rillbase-live --example fan_out -- [subscribers] [writes]`.
#![allow(clippy::print_stdout, reason = "its figures are what it is for")]

use std::sync::Arc;
use std::time::Instant;

use rillbase_live::hub::{Attach, ClientOptions, Hub, HubConfig, OutboxBounds, Sealer};
use rillbase_live::message::{
    AfterImage, FencingToken, ImageContent, NodeEvent, Notification, NotificationSource,
    QueryDefinition, QueryHash, StreamId, StreamTick,
};
use rillbase_live::snapshot::PgSnapshot;
use rillbase_query::bson::Value;
use rillbase_query::ejson::parse_value;

/// The paper's document: strings of ten characters, and numbers.
const DOCUMENT: &str = r#"{"_id":"abcdefghij","s1":"abcdefghij","s2":"abcdefghij",
"s3":"abcdefghij","s4":"abcdefghij","i1":1234567,"i2":1234567,"i3":1234567,"i4":1234567,
"random":1234567}"#;

const QUERY: QueryHash = QueryHash([1; 16]);

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|one| one.parse().ok());
    let subscribers: u64 = arguments.next().unwrap_or(1_000);
    let writes: u64 = arguments.next().unwrap_or(500);
    let Ok(Value::Document(document)) = parse_value(DOCUMENT.as_bytes()) else {
        return;
    };
    let body: Arc<[u8]> = document.as_bytes().into();
    let mut hub = opened(subscribers);
    let mut frames = drain(&mut hub);
    let mut bytes = 0;
    let begun = Instant::now();
    let before = frames;
    for version in 1..=writes {
        let event = matched(version, Arc::clone(&body));
        notify(&mut hub, version + 2, event);
        let (count, size) = drained(&mut hub);
        frames += count;
        bytes += size;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let told = frames - before;
    let told = f64::from(u32::try_from(told).unwrap_or(u32::MAX));
    let mebibytes = f64::from(u32::try_from(bytes >> 10).unwrap_or(u32::MAX)) / 1024.0;
    println!(
        "{told:.0} events, {:.0} a second, {:.0} MiB a second, {subscribers} subscribers",
        told / seconds,
        mebibytes / seconds,
    );
}

fn opened(subscribers: u64) -> Hub {
    let mut hub = Hub::new(HubConfig {
        sealer: Sealer::new(b"secret"),
        installation: 1,
        epoch: 1,
        write_partitions: 1,
        bounds: OutboxBounds::default(),
        memory_bytes: 1 << 30,
        trace_bytes: 16 << 20,
    });
    hub.tick(1_000_000);
    let definition = Arc::new(QueryDefinition {
        hash: QUERY,
        activation: 1,
        tenant: [1; 16],
        collection: [2; 16],
        rules_version: 0,
        filter: [].into(),
        sort: [].into(),
        offset: 0,
        limit: None,
        sorted: false,
        slack: 0,
        group: [].into(),
        lookups: [].into(),
        sides: [].into(),
        rule: [].into(),
    });
    for id in 0..subscribers {
        let attach = Attach {
            name: "s1".into(),
            definition: Arc::clone(&definition),
            partition: 0,
            projection: None,
            options: ClientOptions::default(),
            holder: [3; 16],
            resume: None,
            reset: None,
            connection: id,
        };
        hub.attach(id, attach);
    }
    let end = StreamId::default();
    let asked = hub.registration_id(&QUERY).unwrap_or_default();
    hub.registered(
        &QUERY,
        asked,
        (1, end),
        end,
        PgSnapshot::default(),
        Vec::new(),
    );
    let active = NodeEvent::Active {
        query: QUERY,
        activation: 1,
        request: StreamId::default(),
    };
    notify(&mut hub, 1, active);
    let tick = StreamTick {
        time_us: 1_000_000,
        count: 1,
        token: FencingToken(1),
        incarnation: [1; 16],
        snapshot: PgSnapshot::default(),
    };
    notify(&mut hub, 2, NodeEvent::Tick(tick));
    hub.tick(1_300_000);
    hub
}

fn notify(hub: &mut Hub, count: u64, event: NodeEvent) {
    let notification = Notification {
        source: NotificationSource::Filter(0),
        token: FencingToken(1),
        count,
        event,
    };
    let at = StreamId {
        ms: 1_000,
        number: count,
    };
    hub.read(0, at, &notification);
}

fn matched(version: u64, body: Arc<[u8]>) -> NodeEvent {
    NodeEvent::Match {
        image: AfterImage {
            xid: version,
            tenant: [1; 16],
            collection: [2; 16],
            version,
            rules_version: 0,
            created_ms: 0,
            written_us: 0,
            key: b"abcdefghij".as_slice().into(),
            content: ImageContent::Document(body),
            parts: [].into(),
        },
        added: Vec::new(),
        changed: vec![QUERY],
        removed: Vec::new(),
    }
}

fn drain(hub: &mut Hub) -> usize {
    drained(hub).0
}

/// Takes all frames, as fast clients do.
fn drained(hub: &mut Hub) -> (usize, usize) {
    let (mut count, mut bytes) = (0, 0);
    loop {
        let frames = hub.poll(1_000);
        if frames.is_empty() {
            return (count, bytes);
        }
        for frame in frames {
            count += 1;
            bytes += frame.text.len();
            hub.drained(frame.client, 1, frame.text.len());
        }
    }
}
