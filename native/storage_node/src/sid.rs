//! How clients refer to subscriptions: by the topic, and by bytes that locate it within the topic.
//!
//! `topic ':' base64url(name)`. A holder of a namespace's token may end any of its subscriptions,
//! so names are not sealed; a made-up name reveals nothing about other namespaces, because topics
//! are looked up in the caller's own.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rillbase_pubsub::SubscriptionLocator;

use crate::catalog::Namespace;
use crate::refusal::{CommandRefusal, Result};
use crate::topic::TopicEntry;

/// The name given to clients.
pub(crate) fn text(topic: &TopicEntry, name: &SubscriptionLocator) -> String {
    format!("{}:{}", topic.name, URL_SAFE_NO_PAD.encode(name.to_bytes()))
}

/// The subscription that a client's name refers to.
pub(crate) fn parse(
    namespace: &Namespace,
    sid: &str,
) -> Result<(Arc<TopicEntry>, SubscriptionLocator)> {
    let malformed = || CommandRefusal::new("MALFORMED", "this is not the name of a subscription");
    let (topic, name) = sid.split_once(':').ok_or_else(malformed)?;
    let bytes = URL_SAFE_NO_PAD.decode(name).map_err(|_| malformed())?;
    let name = SubscriptionLocator::from_bytes(&bytes)?;
    Ok((namespace.topic(topic)?, name))
}
