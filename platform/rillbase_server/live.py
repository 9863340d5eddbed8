"""Assembles the real-time parts of a web process."""

from __future__ import annotations

from dataclasses import dataclass

from aggregates.live import feed as aggregate_feed
from aggregates.live.event_stream import AggregateStreams
from aggregates.live.event_stream import operations as aggregate_operations
from aggregates.live.kind import AggregateSubscriptionKind
from connections import open_connections
from connections.connection_registry import STOPPING, ConnectionRegistry
from connections.credential_rechecks import CredentialRechecks
from connections.products import Products
from connections.server_channel import ServerChannel
from connections.subscriptions import SubscriptionKinds
from data_plane.calls import Call
from data_plane.http import HttpOperation
from documents.api import messages as document_messages
from foundation import event_server
from foundation.asgi import App
from foundation.environment import environment
from foundation.server_messages import channel_layer
from realtime.api.live import LiveQueries, TicketedStreams
from realtime.api.operations import operations
from realtime.clusters import grids
from realtime.delivery_trace import exchange
from realtime.delivery_trace.question_listener import QuestionListener
from realtime.grid import layout
from realtime.hub.collection_watcher import CollectionWatcher
from realtime.hub.process import HubProcess
from realtime.hub.query_subscriptions import QuerySubscriptionKind
from realtime.subscriptions import names, subscription_list
from realtime.subscriptions.records import SubscriptionRecords
from rillbase_server.drain import DRAIN
from storage_engine.node import client, feeds
from storage_engine.topics.api import messages as topic_messages
from storage_engine.topics.live.api import TopicStreams
from storage_engine.topics.live.api import operations as topic_operations
from storage_engine.topics.live.kind import TopicSubscriptionKind
from tenants.credentials import changes

MESSAGE_CALLS = {**document_messages.CALLS, **topic_messages.CALLS}


@dataclass(frozen=True, slots=True)
class LiveConnections:
    """The connections of a process, and the kinds of subscription that they offer."""

    kinds: SubscriptionKinds
    registry: ConnectionRegistry
    records: SubscriptionRecords
    queries: LiveQueries
    topics: TopicStreams
    aggregates: AggregateStreams
    process: HubProcess
    watches: CollectionWatcher
    answers: QuestionListener
    rechecks: CredentialRechecks
    channel: ServerChannel

    @property
    def operations(self) -> tuple[HttpOperation[Call], ...]:
        """The data-plane calls of live connections."""
        return (
            *operations(self.queries),
            *topic_operations(self.topics),
            *aggregate_operations(self.aggregates),
        )

    @property
    def products(self) -> Products:
        """The handlers of WebSockets."""
        return Products(self.kinds, MESSAGE_CALLS)

    def around(self, app: App) -> App:
        """Wrap the application in the handler of ticketed streams."""
        return TicketedStreams(app, self.queries, self.topics)

    async def start(self) -> None:
        DRAIN.listen(self.registry, environment().rillbase_drain_s)
        await self.registry.start()
        await self.records.start()
        await self.watches.start()
        await self.answers.start()
        await self.channel.start()

    async def stop(self) -> None:
        await self.channel.stop()
        await self.rechecks.stop()
        await self.answers.stop()
        await self.watches.stop()
        await self.records.stop()
        await self.registry.stop()
        await self.process.stop()
        await event_server.close()
        await feeds.feeds.close()
        await aggregate_feed.feeds.close()
        await client.close()
        subscription_list.close()
        open_connections.close()
        grids.close()
        exchange.close()


def build() -> LiveConnections:
    """Assemble the parts of a process. Nothing runs before `start`."""
    process = HubProcess()
    documents = QuerySubscriptionKind(process)
    process.settle = documents.settle
    topics, aggregates = TopicSubscriptionKind(), AggregateSubscriptionKind()
    kinds, registry = (
        SubscriptionKinds(documents, topics, aggregates),
        ConnectionRegistry(process.name),
    )
    records, rechecks = SubscriptionRecords(process.name, registry), CredentialRechecks(registry)
    handlers = {
        changes.MESSAGE: rechecks.changed,
        names.ENDED: records.ended,
        layout.CHANGED: process.grids_changed,
        STOPPING: process.prepare,
    }
    channel = ServerChannel(registry.tenants, handlers, channel_layer())
    registry.tenant_came = channel.tenants_changed
    return LiveConnections(
        kinds,
        registry,
        records,
        LiveQueries(kinds, registry),
        TopicStreams(topics, registry),
        AggregateStreams(aggregates, registry),
        process,
        CollectionWatcher(documents),
        QuestionListener(process.name, registry),
        rechecks,
        channel,
    )
