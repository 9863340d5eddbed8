//! How clients name subscriptions: by the topic, and by bytes that say where in it one lies.
//!
//! `topic ':' base64url(name)`. Who holds a namespace's token may end any of its subscriptions, so
//! nothing is sealed; of other namespaces a made-up name says nothing, since topics are looked up in
//! one's own.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rillbase_pubsub::SubscriptionLocator;

use crate::catalog::Namespace;
use crate::refusal::{CommandRefusal, Result};
use crate::topic::TopicEntry;

/// The name that clients are given.
pub(crate) fn text(topic: &TopicEntry, name: &SubscriptionLocator) -> String {
    format!("{}:{}", topic.name, URL_SAFE_NO_PAD.encode(name.to_bytes()))
}

/// What a client's name stands for.
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
