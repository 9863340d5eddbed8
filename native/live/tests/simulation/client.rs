//! A client that applies its frames and checks everything.

use std::collections::BTreeMap;

use rillbase_live::hub::ClientOptions;
use rillbase_query::bson::{Document, Value, ValueRef};
use rillbase_query::ejson::parse_value;

use super::database::Database;
use super::queries::{Query, QuerySpec, apart, both, content};

pub(crate) type Checked = Result<(), String>;

/// Everything that was committed this long ago is shown, or the client has been notified that it
/// may not be: a tick is valid for 2 s and names a snapshot from at most 6 s before; a batch waits
/// for 2 s.
const SHOWN_US: u64 = 10_000_000;

/// Something that happened to a document.
#[derive(Debug)]
struct Event {
    kind: String,
    key: u8,
    version: u64,
    index: Option<usize>,
    old_index: Option<usize>,
}

/// A client.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and all combinations occur"
)]
pub(crate) struct Client {
    pub(crate) wanted: QuerySpec,
    pub(crate) options: ClientOptions,
    /// It does not acknowledge frames by itself.
    pub(crate) slow: bool,
    /// Frames and bytes that it has received and not acknowledged.
    pub(crate) taken: (usize, usize),
    /// The app server that it is connected to.
    pub(crate) process: Option<usize>,
    pub(crate) token: Option<String>,
    /// What it had received at the time of its token.
    at_token: (u64, Vec<(u8, u64)>),
    seq: u64,
    pub(crate) rows: Vec<(u8, u64)>,
    /// Rows of a result of which parts are missing.
    parts: Vec<(u8, u64)>,
    /// The highest version of each document that it received.
    highest: BTreeMap<u8, u64>,
    group: Vec<Event>,
    /// It has just switched to this app server, and may receive older versions.
    new_here: bool,
    pub(crate) ready: bool,
    pub(crate) live: bool,
}

impl Client {
    pub(crate) fn new(wanted: QuerySpec, options: ClientOptions, slow: bool) -> Self {
        Self {
            wanted,
            options,
            slow,
            taken: (0, 0),
            process: None,
            token: None,
            at_token: (0, Vec::new()),
            seq: 0,
            rows: Vec::new(),
            parts: Vec::new(),
            highest: BTreeMap::new(),
            group: Vec::new(),
            new_here: true,
            ready: false,
            live: false,
        }
    }

    /// It is disconnected. What it has of an interrupted group does not count.
    pub(crate) fn cut_off(&mut self) {
        self.process = None;
        self.taken = (0, 0);
        self.group.clear();
        self.parts.clear();
        self.ready = false;
        self.live = false;
        self.new_here = true;
        (self.seq, self.rows) = self.at_token.clone();
        if self.token.is_none() {
            self.highest.clear();
        }
    }

    /// It reconnects without its token, like a new client.
    pub(crate) fn begin_anew(&mut self) {
        self.token = None;
        self.at_token = (0, Vec::new());
        self.cut_off();
    }

    /// Reads a frame that was sent under a query's rules.
    pub(crate) fn read(&mut self, text: &str, query: Query, database: &Database) -> Checked {
        let Ok(Value::Document(frame)) = parse_value(text.as_bytes()) else {
            return Err(format!("not a frame: {text}"));
        };
        let frame = frame.as_ref();
        let kind = string(frame, "type").unwrap_or_default();
        let done = match kind.as_str() {
            "reset" => {
                self.reset();
                Ok(())
            }
            "result" => self.result(frame, query, database),
            "event" => self.event(frame, query, database),
            "ready" => {
                self.ready = true;
                self.live = true;
                self.new_here = false;
                Ok(())
            }
            "status" => {
                self.live = string(frame, "state").is_some_and(|state| state == "live");
                Ok(())
            }
            _ => Err("unexpected".to_owned()),
        };
        done.map_err(|error| format!("{error}: {text}"))?;
        if let Some(token) = string(frame, "resume") {
            self.token = Some(token);
            self.at_token = (self.seq, self.rows.clone());
        }
        Ok(())
    }

    fn reset(&mut self) {
        self.group.clear();
        self.seq = 0;
        self.ready = false;
        if std::mem::take(&mut self.new_here) {
            self.highest.clear();
        }
    }

    fn result(&mut self, frame: Document<'_>, query: Query, database: &Database) -> Checked {
        if number(frame, "part") == Some(0) {
            self.parts.clear();
        }
        if let Some(ValueRef::Array(items)) = frame.get("items") {
            for item in items.iter() {
                let ValueRef::Document(item) = item else {
                    return Err("not an item".to_owned());
                };
                let (key, version) = row_of(item, "id", query)?;
                if !query.grouped() {
                    allow(key, version, query, database)?;
                    self.rise(key, own(version, query), false)?;
                }
                self.parts.push((key, version));
            }
        }
        if matches!(frame.get("last"), Some(ValueRef::Bool(true))) {
            self.rows = std::mem::take(&mut self.parts);
            return self.check_batches(query, database);
        }
        Ok(())
    }

    fn event(&mut self, frame: Document<'_>, query: Query, database: &Database) -> Checked {
        self.seq += 1;
        if number(frame, "seq") != Some(self.seq) {
            return Err(format!("{} was expected", self.seq));
        }
        let (key, version) = row_of(frame, "key", query)?;
        let event = Event {
            kind: string(frame, "match").unwrap_or_default(),
            key,
            version,
            index: place(frame, "index"),
            old_index: place(frame, "old_index"),
        };
        if event.kind != "remove" && !query.grouped() {
            allow(event.key, event.version, query, database)?;
        }
        self.group.push(event);
        if frame.get("resume").is_none() {
            return Ok(());
        }
        for event in std::mem::take(&mut self.group) {
            if query.sorted() {
                self.apply_to_window(&event, query)?;
            } else {
                self.apply(&event)?;
            }
        }
        self.check_batches(query, database)
    }

    fn apply(&mut self, event: &Event) -> Checked {
        let at = self.rows.binary_search_by_key(&event.key, |(key, _)| *key);
        let row = (event.key, event.version);
        self.rise(event.key, event.version, event.kind != "remove")?;
        match (event.kind.as_str(), at) {
            ("add", Err(at)) => self.rows.insert(at, row),
            ("change", Ok(at)) => self.rows[at] = row,
            ("remove", Ok(at)) => {
                self.rows.remove(at);
            }
            _ => return Err(format!("{event:?} does not fit {:?}", self.rows)),
        }
        Ok(())
    }

    /// Rows that stand for groups have no versions, and what is shown with a document changes
    /// without it: none of these is sent twice.
    fn apply_to_window(&mut self, event: &Event, query: Query) -> Checked {
        let row = (event.key, event.version);
        let made = query.grouped() || query.joined();
        if let Some(old) = event.old_index {
            match self.rows.get(old) {
                Some(held) if made && *held == row && event.index == Some(old) => {
                    return Err(format!("{event:?} tells nothing new"));
                }
                Some((key, _)) if *key == event.key => {
                    self.rows.remove(old);
                }
                _ => return Err(format!("{event:?} does not fit {:?}", self.rows)),
            }
        }
        match event.index {
            Some(index) if index <= self.rows.len() => self.rows.insert(index, row),
            Some(_) => return Err(format!("{event:?} does not fit {:?}", self.rows)),
            None => {}
        }
        if query.grouped() {
            return Ok(());
        }
        let version = own(event.version, query);
        let newer = !query.joined();
        let newer = newer && event.old_index.is_some() && event.index.is_some();
        self.rise(event.key, version, newer)
    }

    /// Versions never decrease, and no version is sent twice.
    fn rise(&mut self, key: u8, version: u64, newer: bool) -> Checked {
        let before = self.highest.insert(key, version).unwrap_or(0);
        if version < before || (newer && version == before) {
            return Err(format!("{key}@{version} was shown after {before}"));
        }
        Ok(())
    }

    /// A live client has received everything that was committed long enough ago.
    pub(crate) fn check(&self, query: Query, now_us: u64, database: &Database) -> Checked {
        if !self.ready || !self.live || (query.rules != 0 && query.rules != database.rules) {
            return Ok(());
        }
        let old = |at_us: u64| at_us + SHOWN_US < now_us;
        if query.sorted() {
            let quiet = database.all().all(|(_, version)| old(version.at_us));
            if quiet && self.rows != query.answer(database) {
                return self.differs(query, database);
            }
            return Ok(());
        }
        for (key, latest) in database.all().filter(|(_, latest)| old(latest.at_us)) {
            let held = self.rows.iter().find(|(held, _)| *held == key);
            let wanted = query.matches(&latest).then_some(latest.version);
            if held.map(|(_, version)| *version) != wanted {
                return self.differs(query, database);
            }
        }
        Ok(())
    }

    pub(crate) fn differs(&self, query: Query, database: &Database) -> Checked {
        let (shows, answer) = (&self.rows, query.answer(database));
        Err(format!("{query:?} shows {shows:?}, not {answer:?}"))
    }

    /// The documents that it shows, with their versions, including looked-up documents.
    fn shows(&self, query: Query, database: &Database) -> Vec<(u8, u64)> {
        let mut shows = Vec::new();
        for (key, shown) in &self.rows {
            let version = own(*shown, query);
            shows.push((*key, version));
            let other = query.joined().then(|| apart(*shown).1).flatten();
            let at = database.version(*key, version).and_then(|found| found.n);
            let at = at.and_then(|n| u8::try_from(n).ok());
            shows.extend(at.zip(other));
        }
        shows
    }

    /// A client that shows one document of a batch shows none as it was before the batch: in each
    /// result and after each group, whether it is live or not. Rows that stand for groups do not
    /// say which documents they show.
    fn check_batches(&self, query: Query, database: &Database) -> Checked {
        if query.grouped() {
            return Ok(());
        }
        let shows = self.shows(query, database);
        for (xid, members) in &database.batches {
            let has = |member: &&(u8, u64)| shows.contains(member);
            let before = |(key, version): &&(u8, u64)| {
                let mut of_it = shows.iter().filter(|(shown, _)| shown == key);
                of_it.any(|(_, shown)| shown < version)
            };
            if let (Some(new), Some(old)) = (members.iter().find(has), members.iter().find(before))
            {
                return Err(format!(
                    "batch {xid} is shown in part: {new:?}, not {old:?}"
                ));
            }
        }
        Ok(())
    }
}

/// The version of the row's own document.
fn own(version: u64, query: Query) -> u64 {
    if query.joined() {
        apart(version).0
    } else {
        version
    }
}

/// What is shown is durable, in the result, and was not written under newer rules.
fn allow(key: u8, shown: u64, query: Query, database: &Database) -> Checked {
    let version = own(shown, query);
    let Some(found) = database.version(key, version) else {
        return Err(format!("{key}@{version} was never committed"));
    };
    if !query.matches(&found) {
        return Err(format!("{key}@{version} is not in {query:?}"));
    }
    if query.rules != 0 && found.rules > query.rules {
        return Err(format!("{key}@{version} was written under newer rules"));
    }
    let other = query.joined().then(|| apart(shown).1).flatten();
    let of = found.n.and_then(|n| u8::try_from(n).ok());
    of.zip(other).map_or(Ok(()), |(of, other)| {
        allow_other(of, other, query, database)
    })
}

/// The same for a looked-up document.
fn allow_other(key: u8, version: u64, query: Query, database: &Database) -> Checked {
    let found = database.version(key, version);
    let Some(found) = found.filter(|found| query.shows(found)) else {
        return Err(format!("{key}@{version} may not be seen in {query:?}"));
    };
    if query.rules != 0 && found.rules > query.rules {
        return Err(format!("{key}@{version} was written under newer rules"));
    }
    Ok(())
}

fn string(frame: Document<'_>, name: &str) -> Option<String> {
    match frame.get(name)? {
        ValueRef::String(text) => Some(text.to_owned()),
        _ => None,
    }
}

fn number(frame: Document<'_>, name: &str) -> Option<u64> {
    match frame.get(name)? {
        ValueRef::Int32(number) => u64::try_from(number).ok(),
        ValueRef::Int64(number) => u64::try_from(number).ok(),
        _ => None,
    }
}

fn place(frame: Document<'_>, name: &str) -> Option<usize> {
    usize::try_from(number(frame, name)?).ok()
}

fn key_of(frame: Document<'_>, name: &str) -> Result<u8, String> {
    let key = number(frame, name).and_then(|key| u8::try_from(key).ok());
    key.ok_or_else(|| "no key".to_owned())
}

/// The content of a frame: a document and its version, or a group and its content.
fn row_of(frame: Document<'_>, name: &str, query: Query) -> Result<(u8, u64), String> {
    if query.joined() {
        return Ok((key_of(frame, name)?, versions_of(frame)?));
    }
    if !query.grouped() {
        return Ok((key_of(frame, name)?, version_of(frame)?));
    }
    let Some((ValueRef::Document(of), ValueRef::Null)) = frame.get(name).zip(frame.get("version"))
    else {
        return Err("no group".to_owned());
    };
    let Some(ValueRef::Document(row)) = frame.get("document") else {
        return Ok((key_of(of, "n")?, 0));
    };
    if row.get("_id").is_some() || number(row, "n") != number(of, "n") {
        return Err("not the group's row".to_owned());
    }
    let measure = |name| number(row, name).ok_or_else(|| format!("no {name}"));
    let content = content(measure("count")?, measure("sum")?, measure("most")?);
    Ok((key_of(of, "n")?, content))
}

fn version_of(frame: Document<'_>) -> Result<u64, String> {
    number(frame, "version").ok_or_else(|| "no version".to_owned())
}

/// The versions of a document and of its looked-up document.
fn versions_of(frame: Document<'_>) -> Result<u64, String> {
    let version = version_of(frame)?;
    let Some(ValueRef::Document(document)) = frame.get("document") else {
        return Ok(both(version, 0));
    };
    if number(document, "v") != Some(version) {
        return Err("another version than it says".to_owned());
    }
    match document.get("other") {
        Some(ValueRef::Null) => Ok(both(version, 0)),
        Some(ValueRef::Document(other)) if other.get("_id").is_some() => {
            let other = number(other, "v").ok_or_else(|| "no other version".to_owned())?;
            Ok(both(version, other))
        }
        _ => Err("no other document".to_owned()),
    }
}
