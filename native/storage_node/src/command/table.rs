//! All commands.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{
    CommandStep, about, aggregates, check, collections, connection, copies, feed, follow, listings,
    namespaces, publish, topics, transactions, upkeep, usage, values,
};
use crate::group::CommandWrite;
use crate::node::NodeCore;
use crate::refusal::Result;
use crate::resp::ReplyWriter;
use crate::session::CommandSession;
use crate::words::Words;

/// Who may use a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandAccess {
    Anyone,
    /// Any authenticated connection.
    Known,
    Admin,
    Tenant,
}

/// How a command is executed.
#[derive(Clone, Copy)]
pub(crate) enum CommandHandler {
    Now(Answer),
    /// Like `Now`, but it may read much, so it runs on threads that do not write: neither waits for
    /// the other.
    Ask(Answer),
    Write(fn(&NodeCore, &mut CommandSession, Words<'_>) -> Result<CommandWrite>),
}

/// Executes a command and writes its reply.
type Answer =
    fn(&NodeCore, &mut CommandSession, Words<'_>, &mut ReplyWriter<'_>) -> Result<CommandStep>;

/// A command.
pub(crate) struct Command {
    /// In upper case.
    pub(crate) name: &'static str,
    /// The minimum and maximum number of arguments.
    pub(crate) words: (usize, usize),
    pub(crate) access: CommandAccess,
    pub(crate) run: CommandHandler,
    /// The arguments.
    pub(crate) usage: &'static str,
    pub(crate) summary: &'static str,
}

const MANY: usize = usize::MAX;

macro_rules! commands {
    ($($name:literal $words:tt $access:ident $how:ident($run:expr) $usage:literal $summary:literal)*) => {
        /// In the order in which they are listed.
        pub(crate) static COMMANDS: &[Command] = &[$(Command {
            name: $name,
            words: $words,
            access: CommandAccess::$access,
            run: CommandHandler::$how($run),
            usage: $usage,
            summary: $summary,
        }),*];
    };
}

commands! {
    "AUTH" (1, 2) Anyone Now(connection::auth) "[namespace] token" "Authenticate the connection."
    "HELLO" (0, MANY) Anyone Now(connection::hello) "[2|3] [AUTH namespace token] [SETNAME name]" "Choose the protocol version."
    "PING" (0, 1) Known Now(connection::ping) "[message]" "Return PONG or the message."
    "ECHO" (1, 1) Known Now(connection::echo) "message" "Return the message."
    "TIME" (0, 0) Known Now(connection::time) "" "Return the node's time: seconds and microseconds."
    "SELECT" (1, 1) Known Now(connection::select) "0" "Select database 0, the only one."
    "RESET" (0, 0) Anyone Now(connection::reset) "" "Reset the connection, including its authentication."
    "QUIT" (0, 0) Anyone Now(connection::quit) "" "Close the connection."
    "RB.FORMAT" (1, 1) Known Now(connection::format) "json|bson" "Choose the format of data and filters on this connection."
    "CLIENT" (1, MANY) Known Now(about::client) "ID|INFO|LIST|GETNAME|SETNAME name|SETINFO name value|KILL ID id" "Inspect and manage connections."
    "COMMAND" (0, MANY) Known Now(about::command) "[COUNT|LIST|INFO [name …]|DOCS [name …]]" "Describe commands."
    "INFO" (0, MANY) Known Now(about::info) "[section …]" "Describe the node, or the namespace."
    "RB.NAMESPACE.CREATE" (2, 2) Admin Now(namespaces::create) "namespace token" "Create a namespace."
    "RB.NAMESPACE.ROTATE" (2, 2) Admin Now(namespaces::rotate) "namespace token" "Replace its token."
    "RB.NAMESPACE.DROP" (1, 1) Admin Now(namespaces::drop) "namespace" "Remove it with all its data."
    "RB.NAMESPACE.LIST" (0, 0) Admin Now(namespaces::list) "" "List all namespaces."
    "RB.TOPIC.CREATE" (1, MANY) Tenant Now(topics::create) "topic [KIND flat|hierarchy|geo|grid west south east north sides depth] [RETENTION duration]" "Create a topic."
    "RB.TOPIC.ALTER" (3, 3) Tenant Now(topics::alter) "topic RETENTION duration" "Change how long publications may live."
    "RB.TOPIC.INFO" (1, 1) Tenant Now(topics::info) "topic" "Describe a topic."
    "RB.TOPIC.LIST" (0, 0) Tenant Now(topics::list) "" "List all topics."
    "RB.TOPIC.DROP" (1, 1) Tenant Now(topics::drop) "topic" "Remove it with all its data."
    "RB.PUB" (3, MANY) Tenant Write(publish::publish) "topic place [DATA json|BSON bytes] [NAME name] [AT time] [UNTIL time] [ONCE] [JOIN]" "Publish to the subscriptions of a place."
    "RB.SUB" (3, MANY) Tenant Write(publish::subscribe) "topic place [FROM time] [UNTIL time] [NAME name] [USER user] [FILTER json|FILTERBSON bytes] [UNSEEN] [JOIN] [FOLLOW]" "Subscribe, and return the earlier publications."
    "RB.UNSUB" (1, 1) Tenant Now(follow::unsubscribe) "subscription" "End a subscription."
    "RB.SUB.RESUME" (1, 2) Tenant Now(follow::resume) "subscription [position]" "Push the publications after a position, then new ones."
    "RB.SUB.PAUSE" (1, 1) Tenant Now(follow::pause) "subscription" "Stop pushes to this connection."
    "RB.SUB.READ" (2, MANY) Tenant Now(follow::read) "[BLOCK milliseconds] [COUNT number] subscription position|> [subscription position|> …]" "Read the publications after a position, or wait for the first."
    "RB.SUB.ACK" (2, 2) Tenant Write(follow::ack) "subscription position" "Acknowledge publications up to a position."
    "RB.DATA" (3, MANY) Tenant Now(listings::data) "topic place [FROM time] [UNTIL time] [AFTER position] [COUNT number]" "List live publications."
    "RB.SUBSCRIBERS" (3, MANY) Tenant Now(listings::subscribers) "topic place [AT time] [AFTER position] [COUNT number]" "List the subscriptions that a publication at that time would match, ignoring filters."
    "RB.BOTH" (3, MANY) Tenant Now(listings::both) "topic place [FROM time] [UNTIL time] [AT time] [COUNT number]" "List both in one snapshot."
    "RB.SUBS" (1, MANY) Tenant Now(listings::all) "topic [place] [AFTER position] [COUNT number]" "List all subscriptions that have not ended."
    "RB.KV.SET" (2, 4) Tenant Write(values::set) "key value [FOR duration]" "Store a value."
    "RB.KV.GET" (1, 3) Tenant Now(values::get) "key [AT snapshot]" "Return a value."
    "RB.KV.MGET" (1, MANY) Tenant Now(values::get_many) "key [key …]" "Return several values from one snapshot."
    "RB.KV.DEL" (1, MANY) Tenant Now(values::delete) "key [key …]" "Remove values, and return how many existed."
    "RB.KV.SCAN" (0, MANY) Tenant Now(values::scan) "[PREFIX prefix] [AFTER key] [COUNT number] [AT snapshot]" "List keys and values in key order."
    "RB.AGG.DEFINE" (2, 3) Tenant Now(aggregates::define) "aggregate definition [REPLACE]" "Create an aggregate, or build a new generation of it."
    "RB.AGG.SWITCH" (2, 2) Tenant Now(aggregates::switch) "aggregate generation" "Switch queries to the generation that was built."
    "RB.AGG.DROP" (1, 1) Tenant Now(aggregates::drop) "aggregate" "Remove it with all its data."
    "RB.AGG.LIST" (0, 2) Tenant Now(aggregates::list) "[PREFIX prefix]" "List the names of all aggregates."
    "RB.AGG.INFO" (1, 1) Tenant Now(aggregates::info) "aggregate" "Describe an aggregate."
    "RB.AGG.ADD" (2, MANY) Tenant Write(aggregates::add) "aggregate event [event …]" "Add events, each at most once."
    "RB.AGG.FACTS" (1, 5) Tenant Ask(aggregates::facts) "aggregate [AFTER position] [COUNT number]" "List events that were added, oldest first."
    "RB.AGG.APPLY" (4, MANY) Tenant Write(aggregates::apply) "aggregate generation partition position|- [change …]" "Apply changes of documents to a view."
    "RB.AGG.POSITIONS" (2, 2) Tenant Now(aggregates::positions) "aggregate generation" "Return the positions up to which changes were applied to a view."
    "RB.AGG.QUERY" (2, 2) Tenant Ask(aggregates::query) "aggregate query" "Return rows of an aggregate."
    "RB.AGG.WATCH" (2, 4) Tenant Ask(aggregates::watch) "aggregate query [FROM position]" "Return rows of an aggregate, then push those that change."
    "RB.AGG.UNWATCH" (1, 1) Tenant Now(aggregates::unwatch) "watch" "Stop notifications."
    "RB.SNAPSHOT.OPEN" (0, 1) Known Now(aggregates::open_snapshot) "[SEQUENCE]" "Open a snapshot for a minute."
    "RB.SNAPSHOT.CLOSE" (1, 1) Known Now(aggregates::close_snapshot) "snapshot" "Close a snapshot."
    "RB.TX.BEGIN" (0, 1) Tenant Now(transactions::begin) "[READONLY]" "Begin a transaction."
    "RB.TX.GET" (2, 2) Tenant Now(transactions::get) "transaction key" "Return a value as the transaction sees it."
    "RB.TX.SET" (3, 3) Tenant Now(transactions::set) "transaction key value" "Store a value when the transaction commits."
    "RB.TX.DEL" (2, 2) Tenant Now(transactions::delete) "transaction key" "Remove a value when the transaction commits."
    "RB.TX.ADD" (3, MANY) Tenant Now(transactions::add) "transaction aggregate event [event …]" "Add events when the transaction commits."
    "RB.TX.QUERY" (3, 3) Tenant Now(transactions::query) "transaction aggregate query" "Return rows of an aggregate as the transaction sees them."
    "RB.TX.COMMIT" (1, 1) Tenant Write(transactions::commit) "transaction" "Commit all writes, unless another write conflicts."
    "RB.TX.ROLLBACK" (1, 1) Tenant Now(transactions::rollback) "transaction" "Roll a transaction back."
    "RB.COL.DEFINE" (2, 2) Tenant Now(collections::define) "collection definition" "Create a collection, or install a newer definition of it."
    "RB.COL.DROP" (1, 1) Tenant Now(collections::drop) "collection" "Remove it with all its documents."
    "RB.COL.INFO" (1, 3) Tenant Now(collections::info) "collection [AT snapshot]" "Describe a collection."
    "RB.COL.USAGE" (1, 1) Tenant Now(usage::collection) "collection" "Return how a collection and its indexes were used since the node started."
    "RB.COL.WRITE" (3, MANY) Tenant Write(collections::write) "[CLAIM key request-hash state] request collection version [collection version …]" "Change documents, and return the result."
    "RB.COL.GET" (3, MANY) Tenant Now(collections::get) "collection version [AT snapshot] key [key …]" "Return the documents with these keys."
    "RB.COL.VERSIONS" (3, MANY) Tenant Now(collections::versions) "collection version [AT snapshot] key [key …]" "Return the documents with these keys, with their versions and those of deleted ones."
    "RB.COL.QUERY" (4, MANY) Tenant Ask(collections::query) "collection version filter sort [NOW milliseconds] [DOCUMENTS number] [UNORDERED] [PLAN plan] [AFTER entry key] [COUNT number] [BYTES number] [AT snapshot]" "Return documents that match a filter, in the order of a plan."
    "RB.COL.BUILD" (3, 7) Tenant Now(collections::build) "collection version index [AFTER key] [COUNT number]" "Add the entries of an index for the next documents."
    "RB.COL.CHECK" (3, 8) Tenant Now(check::collection) "collection version index [AFTER entry document] [COUNT number]" "Compare the entries of an index, or of all indexes, with the documents."
    "RB.COL.APPLY" (7, MANY) Tenant Now(copies::apply) "collection version key document-version created updated body [key document-version created updated body …]" "Store documents that are copied from another backend."
    "RB.COL.CHANGED" (2, 4) Tenant Now(copies::changed) "collection version [COUNT number]" "Return documents that were changed since a move to another backend began."
    "RB.COL.COPIED" (4, MANY) Tenant Now(copies::copied) "collection version key document-version [key document-version …]" "Forget the changes of documents that were copied in these versions."
    "RB.COL.COPY" (4, 10) Admin Ask(copies::copy) "namespace collection partition partitions [AT snapshot] [AFTER key] [BYTES number]" "Return the next documents of a partition for a rebuild of live queries."
    "RB.FEED.INFO" (0, 0) Admin Now(feed::info) "" "Return the run, the newest position, and the run before with its last position."
    "RB.FEED.READ" (1, 7) Admin Ask(feed::read) "after [RELEASE position] [BYTES number] [BLOCK milliseconds]" "Return the changes of native collections after a position."
    "RB.CHECKPOINT" (1, 1) Admin Now(upkeep::checkpoint) "name" "Copy the database to checkpoints/name, using hard links."
    "RB.VERIFY" (0, 0) Admin Now(upkeep::verify) "" "Read and check all tables."
    "SHUTDOWN" (0, 1) Admin Now(upkeep::shutdown) "" "Make all writes durable and stop the node."
}

static BY_NAME: LazyLock<HashMap<&'static [u8], &'static Command>> = LazyLock::new(|| {
    let named = COMMANDS
        .iter()
        .map(|command| (command.name.as_bytes(), command));
    named.collect()
});

/// The command with a name, case-insensitive.
pub(crate) fn find(name: &[u8]) -> Option<&'static Command> {
    let mut capitals = [0; 32];
    let capitals = capitals.get_mut(..name.len())?;
    capitals.copy_from_slice(name);
    capitals.make_ascii_uppercase();
    BY_NAME.get(&*capitals).copied()
}
