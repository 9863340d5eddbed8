//! The informational commands: INFO, COMMAND, CLIENT.

use std::sync::atomic::Ordering;

use super::table::{COMMANDS, Command, find};
use super::{CommandAccess, CommandHandler, CommandStep};
use crate::node::NodeCore;
use crate::prometheus;
use crate::refusal::{CommandRefusal, Result};
use crate::resp::ReplyWriter;
use crate::session::{CommandSession, SessionCaller};
use crate::words::{Words, unknown};

pub(super) fn info(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let mut asked = Vec::new();
    while !words.is_empty() {
        asked.push(words.keyword()?);
    }
    let mut sections = vec![("Server", server(node))];
    match &session.caller {
        SessionCaller::Tenant(namespace, _) => {
            let topics = namespace.topics().len();
            let text = format!("name:{}\r\ntopics:{topics}\r\n", namespace.name);
            sections.push(("Namespace", text));
        }
        // Figures of the whole node reveal something about every tenant.
        SessionCaller::Admin | SessionCaller::Stranger => {
            sections.push(("Stats", prometheus::lines(node)));
        }
    }
    let is_wanted = |name: &str| {
        let is_requested = |one: &String| one.eq_ignore_ascii_case(name);
        asked.is_empty()
            || asked.iter().any(|one| {
                is_requested(one) || one == "ALL" || one == "EVERYTHING" || one == "DEFAULT"
            })
    };
    let shown = sections.iter().filter(|(name, _)| is_wanted(name));
    let shown: Vec<String> = shown
        .map(|(name, text)| format!("# {name}\r\n{text}"))
        .collect();
    reply.text(&shown.join("\r\n"));
    Ok(CommandStep::Done)
}

fn server(node: &NodeCore) -> String {
    format!(
        "server_name:rillbase-node\r\nrillbase_version:{}\r\nprocess_id:{}\r\nuptime_in_seconds:{}\r\nengine:{}\r\n",
        env!("CARGO_PKG_VERSION"),
        std::process::id(),
        node.metrics.started.elapsed().as_secs(),
        node.health().words().1,
    )
}

pub(super) fn client(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    match words.keyword()?.as_str() {
        "ID" => reply.integer(session.client.id),
        "INFO" => reply.text(&format!("{}\n", session.client.line())),
        "LIST" => reply.text(&list(node, session)),
        "GETNAME" => {
            let name = session.client.name.lock().clone();
            if name.is_empty() {
                reply.null();
            } else {
                reply.text(&name);
            }
        }
        "SETNAME" => {
            let name = words.text()?;
            if name.len() > 128 || !name.bytes().all(|byte| (b'!'..=b'~').contains(&byte)) {
                return Err(CommandRefusal::syntax(
                    "a client's name may have at most 128 visible characters",
                ));
            }
            name.clone_into(&mut session.client.name.lock());
            reply.ok();
        }
        "SETINFO" => {
            let (_, _) = (words.next()?, words.next()?);
            reply.ok();
        }
        "KILL" => kill(node, session, words.clone(), reply)?,
        other => return Err(unknown(other.as_bytes())),
    }
    Ok(CommandStep::Done)
}

/// Whether a session may see a client: tenants see their own.
fn may_see(session: &CommandSession, namespace: Option<&str>) -> bool {
    match &session.caller {
        SessionCaller::Admin => true,
        SessionCaller::Tenant(own, _) => namespace == Some(own.name.as_str()),
        SessionCaller::Stranger => false,
    }
}

fn list(node: &NodeCore, session: &CommandSession) -> String {
    let all = node.clients.all();
    let seen = all
        .iter()
        .filter(|client| may_see(session, client.namespace.lock().as_deref()));
    seen.map(|client| client.line() + "\n").collect()
}

fn kill(
    node: &NodeCore,
    session: &CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<()> {
    if !words.take("ID") {
        return Err(CommandRefusal::syntax("CLIENT KILL ID id"));
    }
    let client = node.clients.find(words.number()?);
    let client = client.filter(|client| may_see(session, client.namespace.lock().as_deref()));
    if let Some(client) = &client {
        client.is_killed.store(true, Ordering::Relaxed);
        node.has_revoked.store(true, Ordering::Release);
    }
    reply.integer(u64::from(client.is_some()));
    Ok(())
}

pub(super) fn command(
    _: &NodeCore,
    _: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let asked = if words.is_empty() {
        "INFO".into()
    } else {
        words.keyword()?
    };
    match asked.as_str() {
        "COUNT" => reply.integer(COMMANDS.len() as u64),
        "LIST" => {
            reply.array(COMMANDS.len());
            COMMANDS
                .iter()
                .for_each(|command| reply.text(&command.name.to_ascii_lowercase()));
        }
        "INFO" => {
            let commands = named(words)?;
            reply.array(commands.len());
            commands.iter().for_each(|commands| match commands {
                Some(command) => describe(command, reply),
                None => reply.null(),
            });
        }
        "DOCS" => {
            let commands: Vec<&Command> = named(words)?.into_iter().flatten().collect();
            reply.map(commands.len());
            commands.iter().for_each(|command| document(command, reply));
        }
        other => return Err(unknown(other.as_bytes())),
    }
    Ok(CommandStep::Done)
}

/// The named commands; all if none is named.
fn named(mut words: Words<'_>) -> Result<Vec<Option<&'static Command>>> {
    if words.is_empty() {
        return Ok(COMMANDS.iter().map(Some).collect());
    }
    let mut commands = Vec::with_capacity(words.count());
    while !words.is_empty() {
        commands.push(find(words.next()?));
    }
    Ok(commands)
}

/// Name, arity, flags, no keys, as clients expect them.
fn describe(command: &Command, reply: &mut ReplyWriter<'_>) {
    let (least, most) = command.words;
    let words = least as u64 + 1;
    reply.array(6);
    reply.text(&command.name.to_ascii_lowercase());
    if most == least {
        reply.integer(words);
    } else {
        reply.raw(format!(":-{words}\r\n").as_bytes());
    }
    let mut flags = Vec::new();
    if matches!(command.run, CommandHandler::Write(_)) {
        flags.push("write");
    }
    match command.access {
        CommandAccess::Anyone => flags.push("no_auth"),
        CommandAccess::Admin => flags.push("admin"),
        CommandAccess::Known | CommandAccess::Tenant => {}
    }
    reply.array(flags.len());
    flags.iter().for_each(|flag| reply.simple(flag));
    (0..3).for_each(|_| reply.integer(0));
}

fn document(command: &Command, reply: &mut ReplyWriter<'_>) {
    reply.text(&command.name.to_ascii_lowercase());
    reply.map(3);
    for (name, value) in [
        ("summary", command.summary),
        ("syntax", command.usage),
        ("group", "rillbase"),
    ] {
        reply.text(name);
        reply.text(value);
    }
}
