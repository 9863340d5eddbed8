//! All commands.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{
    CommandStep, about, aggregates, connection, follow, look, namespaces, publish, topics,
    transactions, upkeep, values,
};
use crate::group::CommandWrite;
use crate::node::NodeCore;
use crate::refusal::Result;
use crate::resp::ReplyWriter;
use crate::session::CommandSession;
use crate::words::Words;

/// Who may give a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandAccess {
    Anyone,
    /// Whoever has a token.
    Known,
    Admin,
    Tenant,
}

/// What a command does.
#[derive(Clone, Copy)]
pub(crate) enum CommandHandler {
    Now(Answer),
    /// The same, but it may read much: whoever asks waits neither for writes of others, nor do they
    /// wait for it.
    Ask(Answer),
    Write(fn(&NodeCore, &mut CommandSession, Words<'_>) -> Result<CommandWrite>),
}

/// Answers a command.
type Answer =
    fn(&NodeCore, &mut CommandSession, Words<'_>, &mut ReplyWriter<'_>) -> Result<CommandStep>;

/// A command.
pub(crate) struct Command {
    /// In capitals.
    pub(crate) name: &'static str,
    /// How many words may follow the name.
    pub(crate) words: (usize, usize),
    pub(crate) access: CommandAccess,
    pub(crate) run: CommandHandler,
    /// What follows the name.
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
    "AUTH" (1, 2) Anyone Now(connection::auth) "[namespace] token" "Say who you are."
    "HELLO" (0, MANY) Anyone Now(connection::hello) "[2|3] [AUTH namespace token] [SETNAME name]" "Choose the protocol's version."
    "PING" (0, 1) Known Now(connection::ping) "[message]" "Get an answer."
    "ECHO" (1, 1) Known Now(connection::echo) "message" "Get it back."
    "TIME" (0, 0) Known Now(connection::time) "" "The node's time: seconds and microseconds."
    "SELECT" (1, 1) Known Now(connection::select) "0" "There is one database."
    "RESET" (0, 0) Anyone Now(connection::reset) "" "Be a stranger again."
    "QUIT" (0, 0) Anyone Now(connection::quit) "" "End the connection."
    "RB.FORMAT" (1, 1) Known Now(connection::format) "json|bson" "How this connection is shown data and filters."
    "CLIENT" (1, MANY) Known Now(about::client) "ID|INFO|LIST|GETNAME|SETNAME name|SETINFO name value|KILL ID id" "About connections."
    "COMMAND" (0, MANY) Known Now(about::command) "[COUNT|LIST|INFO [name …]|DOCS [name …]]" "About commands."
    "INFO" (0, MANY) Known Now(about::info) "[section …]" "About the node, or the namespace."
    "RB.NAMESPACE.CREATE" (2, 2) Admin Now(namespaces::create) "namespace token" "Make a namespace."
    "RB.NAMESPACE.ROTATE" (2, 2) Admin Now(namespaces::rotate) "namespace token" "Give it another token."
    "RB.NAMESPACE.DROP" (1, 1) Admin Now(namespaces::drop) "namespace" "Remove it with all that is in it."
    "RB.NAMESPACE.LIST" (0, 0) Admin Now(namespaces::list) "" "All namespaces."
    "RB.TOPIC.CREATE" (1, MANY) Tenant Now(topics::create) "topic [KIND flat|hierarchy|geo|grid west south east north sides depth] [RETENTION duration]" "Make a topic."
    "RB.TOPIC.ALTER" (3, 3) Tenant Now(topics::alter) "topic RETENTION duration" "Change how long publications may live."
    "RB.TOPIC.INFO" (1, 1) Tenant Now(topics::info) "topic" "A topic."
    "RB.TOPIC.LIST" (0, 0) Tenant Now(topics::list) "" "All topics."
    "RB.TOPIC.DROP" (1, 1) Tenant Now(topics::drop) "topic" "Remove it with all that is in it."
    "RB.PUB" (3, MANY) Tenant Write(publish::publish) "topic place [DATA json|BSON bytes] [NAME name] [AT time] [UNTIL time] [ONCE] [JOIN]" "Publish; whoever subscribes to the place is told."
    "RB.SUB" (3, MANY) Tenant Write(publish::subscribe) "topic place [FROM time] [UNTIL time] [NAME name] [USER user] [FILTER json|FILTERBSON bytes] [UNSEEN] [JOIN] [FOLLOW]" "Subscribe; what was published before is the answer."
    "RB.UNSUB" (1, 1) Tenant Now(follow::unsubscribe) "subscription" "End a subscription."
    "RB.SUB.RESUME" (1, 2) Tenant Now(follow::resume) "subscription [position]" "Be pushed what follows a position, and what is to come."
    "RB.SUB.PAUSE" (1, 1) Tenant Now(follow::pause) "subscription" "Be pushed no more."
    "RB.SUB.READ" (2, MANY) Tenant Now(follow::read) "[BLOCK milliseconds] [COUNT number] subscription position|> [subscription position|> …]" "Read what follows a position; wait for it if there is nothing."
    "RB.SUB.ACK" (2, 2) Tenant Write(follow::ack) "subscription position" "Remember up to where it was dealt with."
    "RB.DATA" (3, MANY) Tenant Now(look::data) "topic place [FROM time] [UNTIL time] [AFTER position] [COUNT number]" "Publications that are alive."
    "RB.SUBSCRIBERS" (3, MANY) Tenant Now(look::subscribers) "topic place [AT time] [AFTER position] [COUNT number]" "Who a publication of that time would meet, filters aside."
    "RB.BOTH" (3, MANY) Tenant Now(look::both) "topic place [FROM time] [UNTIL time] [AT time] [COUNT number]" "Both, as of one moment."
    "RB.SUBS" (1, MANY) Tenant Now(look::all) "topic [place] [AFTER position] [COUNT number]" "All subscriptions that have not ended."
    "RB.KV.SET" (2, 4) Tenant Write(values::set) "key value [FOR duration]" "Keep a value."
    "RB.KV.GET" (1, 3) Tenant Now(values::get) "key [AT snapshot]" "A value."
    "RB.KV.MGET" (1, MANY) Tenant Now(values::get_many) "key [key …]" "Several values, as of one moment."
    "RB.KV.DEL" (1, MANY) Tenant Now(values::delete) "key [key …]" "Remove values; says how many there were."
    "RB.KV.SCAN" (0, MANY) Tenant Now(values::scan) "[PREFIX prefix] [AFTER key] [COUNT number] [AT snapshot]" "Keys and values in the order of keys."
    "RB.AGG.DEFINE" (2, 3) Tenant Now(aggregates::define) "aggregate definition [REPLACE]" "Make an aggregate, or build another generation of it."
    "RB.AGG.SWITCH" (2, 2) Tenant Now(aggregates::switch) "aggregate generation" "Let queries see the generation that was built."
    "RB.AGG.DROP" (1, 1) Tenant Now(aggregates::drop) "aggregate" "Remove it with all that is in it."
    "RB.AGG.LIST" (0, 2) Tenant Now(aggregates::list) "[PREFIX prefix]" "The names of all aggregates."
    "RB.AGG.INFO" (1, 1) Tenant Now(aggregates::info) "aggregate" "An aggregate."
    "RB.AGG.ADD" (2, MANY) Tenant Write(aggregates::add) "aggregate event [event …]" "Count events, each once."
    "RB.AGG.FACTS" (1, 5) Tenant Ask(aggregates::facts) "aggregate [AFTER position] [COUNT number]" "Events that were added, the oldest first."
    "RB.AGG.APPLY" (4, MANY) Tenant Write(aggregates::apply) "aggregate generation partition position|- [change …]" "Let a view follow documents."
    "RB.AGG.POSITIONS" (2, 2) Tenant Now(aggregates::positions) "aggregate generation" "Up to where a view has followed."
    "RB.AGG.QUERY" (2, 2) Tenant Ask(aggregates::query) "aggregate query" "Rows of an aggregate."
    "RB.AGG.WATCH" (2, 4) Tenant Ask(aggregates::watch) "aggregate query [FROM position]" "Rows of an aggregate, and then those that change."
    "RB.AGG.UNWATCH" (1, 1) Tenant Now(aggregates::unwatch) "watch" "Be told no more."
    "RB.SNAPSHOT.OPEN" (0, 0) Tenant Now(aggregates::open_snapshot) "" "Hold the present moment for a minute."
    "RB.SNAPSHOT.CLOSE" (1, 1) Tenant Now(aggregates::close_snapshot) "snapshot" "Hold it no longer."
    "RB.TX.BEGIN" (0, 1) Tenant Now(transactions::begin) "[READONLY]" "Begin a transaction."
    "RB.TX.GET" (2, 2) Tenant Now(transactions::get) "transaction key" "A value, as the transaction sees it."
    "RB.TX.SET" (3, 3) Tenant Now(transactions::set) "transaction key value" "Keep a value, once it commits."
    "RB.TX.DEL" (2, 2) Tenant Now(transactions::delete) "transaction key" "Remove a value, once it commits."
    "RB.TX.ADD" (3, MANY) Tenant Now(transactions::add) "transaction aggregate event [event …]" "Count events, once it commits."
    "RB.TX.QUERY" (3, 3) Tenant Now(transactions::query) "transaction aggregate query" "Rows of an aggregate, as the transaction sees them."
    "RB.TX.COMMIT" (1, 1) Tenant Write(transactions::commit) "transaction" "Write all, unless somebody else was faster."
    "RB.TX.ROLLBACK" (1, 1) Tenant Now(transactions::rollback) "transaction" "Write nothing."
    "RB.CHECKPOINT" (1, 1) Admin Now(upkeep::checkpoint) "name" "Copy the database into checkpoints/name, by links."
    "RB.VERIFY" (0, 0) Admin Now(upkeep::verify) "" "Read and check all tables."
    "SHUTDOWN" (0, 1) Admin Now(upkeep::shutdown) "" "Make all durable and end the node."
}

static BY_NAME: LazyLock<HashMap<&'static [u8], &'static Command>> = LazyLock::new(|| {
    let named = COMMANDS
        .iter()
        .map(|command| (command.name.as_bytes(), command));
    named.collect()
});

/// The command of a name, whatever its case.
pub(crate) fn find(name: &[u8]) -> Option<&'static Command> {
    let mut capitals = [0; 32];
    let capitals = capitals.get_mut(..name.len())?;
    capitals.copy_from_slice(name);
    capitals.make_ascii_uppercase();
    BY_NAME.get(&*capitals).copied()
}
