//! Authentication and the protocol version.

use std::sync::atomic::Ordering;

use super::CommandStep;
use crate::catalog::hash;
use crate::document::Format;
use crate::node::NodeCore;
use crate::refusal::{CommandRefusal, Result};
use crate::resp::ReplyWriter;
use crate::session::{CommandSession, SessionCaller, no_auth};
use crate::words::{Words, unknown};

/// The admin's name, which namespaces cannot use.
const ADMIN: &[u8] = b"admin";
/// The user name of clients that only support tokens.
const DEFAULT: &[u8] = b"default";

pub(super) fn auth(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let first = words.next()?;
    let (name, token) = if words.is_empty() {
        (ADMIN, first)
    } else {
        (first, words.next()?)
    };
    let caller = admit(node, name, token)?;
    session.become_caller(caller, (&node.live, &node.watches));
    reply.ok();
    Ok(CommandStep::Done)
}

/// Authenticates a token. Errors reveal neither what is wrong nor which namespaces exist.
fn admit(node: &NodeCore, name: &[u8], token: &[u8]) -> Result<SessionCaller> {
    if (name == ADMIN || name == DEFAULT) && hash(token) == node.admin {
        return Ok(SessionCaller::Admin);
    }
    let name = std::str::from_utf8(name).unwrap_or_default();
    let namespace = node.catalog.namespace(name).ok();
    let admitted = namespace.and_then(|namespace| Some((namespace.admit(token)?, namespace)));
    if let Some((generation, namespace)) = admitted {
        return Ok(SessionCaller::Tenant(namespace, generation));
    }
    node.metrics.wrong_tokens.add(1);
    Err(CommandRefusal::new(
        "WRONGPASS",
        "invalid username-password pair",
    ))
}

pub(super) fn hello(
    node: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let mut version = session.version;
    if !words.is_empty() {
        version = match words.next()? {
            b"2" => 2,
            b"3" => 3,
            _ => {
                return Err(CommandRefusal::new(
                    "NOPROTO",
                    "unsupported protocol version",
                ));
            }
        };
    }
    let (mut caller, mut name) = (None, None);
    while !words.is_empty() {
        if words.take("AUTH") {
            let (of, token) = (words.next()?, words.next()?);
            caller = Some(admit(node, of, token)?);
        } else if words.take("SETNAME") {
            name = Some(words.text()?.to_owned());
        } else {
            return Err(unknown(words.next()?));
        }
    }
    if caller.is_none() && matches!(session.caller, SessionCaller::Stranger) {
        return Err(no_auth());
    }
    if let Some(caller) = caller {
        session.become_caller(caller, (&node.live, &node.watches));
    }
    if let Some(name) = name {
        *session.client.name.lock() = name;
    }
    session.version = version;
    greet(session, &mut reply.of_version(version));
    Ok(CommandStep::Done)
}

fn greet(session: &CommandSession, reply: &mut ReplyWriter<'_>) {
    reply.map(7);
    for (name, value) in [
        ("server", "rillbase-node"),
        ("version", env!("CARGO_PKG_VERSION")),
        ("mode", "standalone"),
        ("role", "master"),
    ] {
        reply.text(name);
        reply.text(value);
    }
    reply.text("proto");
    reply.integer(u64::from(session.version));
    reply.text("id");
    reply.integer(session.client.id);
    reply.text("modules");
    reply.array(0);
}

pub(super) fn ping(
    _: &NodeCore,
    _: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    if words.is_empty() {
        reply.simple("PONG");
    } else {
        reply.bulk(words.next()?);
    }
    Ok(CommandStep::Done)
}

pub(super) fn echo(
    _: &NodeCore,
    _: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    reply.bulk(words.next()?);
    Ok(CommandStep::Done)
}

pub(super) fn time(
    node: &NodeCore,
    _: &mut CommandSession,
    _: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    let now = node.now();
    reply.array(2);
    reply.text(&(now / 1000).to_string());
    reply.text(&(now % 1000 * 1000).to_string());
    Ok(CommandStep::Done)
}

pub(super) fn select(
    _: &NodeCore,
    _: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    if words.next()? != b"0" {
        return Err(CommandRefusal::syntax("DB index is out of range"));
    }
    reply.ok();
    Ok(CommandStep::Done)
}

pub(super) fn reset(
    node: &NodeCore,
    session: &mut CommandSession,
    _: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    session.become_caller(SessionCaller::Stranger, (&node.live, &node.watches));
    session.client.name.lock().clear();
    session.version = 2;
    session.format = Format::default();
    reply.simple("RESET");
    Ok(CommandStep::Done)
}

pub(super) fn quit(
    _: &NodeCore,
    session: &mut CommandSession,
    _: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    session.client.is_killed.store(true, Ordering::Relaxed);
    reply.ok();
    Ok(CommandStep::Close)
}

pub(super) fn format(
    _: &NodeCore,
    session: &mut CommandSession,
    mut words: Words<'_>,
    reply: &mut ReplyWriter<'_>,
) -> Result<CommandStep> {
    session.format = match words.keyword()?.as_str() {
        "JSON" => Format::Json,
        "BSON" => Format::Bson,
        _ => return Err(CommandRefusal::syntax("a format is json or bson")),
    };
    reply.ok();
    Ok(CommandStep::Done)
}
