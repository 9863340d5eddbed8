"""What of the real-time side lives in a web process, put together."""

from __future__ import annotations

from dataclasses import dataclass

from aggregates.live import feed as aggregate_feed
from aggregates.live.kind import AggregateSubscriptions
from documents.live import Kinds
from foundation.asgi import App
from foundation.environment import environment
from foundation.http import Operation
from realtime import valkey
from realtime.api.live import LiveQueries, TicketedStreams
from realtime.api.operations import operations
from realtime.clusters import grids
from realtime.hub.documents import DocumentQueries
from realtime.hub.process import HubProcess
from realtime.hub.watches import Watches
from realtime.hub.wishes import Wishes
from realtime.socket.crowd import Crowd
from realtime.socket.endpoint import Realtime
from realtime.subscriptions import reading
from realtime.subscriptions.records import Records
from realtime.topics.api import TopicStreams
from realtime.topics.api import operations as topic_operations
from realtime.topics.kind import TopicSubscriptions
from realtime.why import exchange
from realtime.why.answering import Answers
from rillbase_server.aggregate_streams import AggregateStreams
from rillbase_server.aggregate_streams import operations as aggregate_operations
from rillbase_server.drain import DRAIN
from storage_engine.node import client, feeds
from tenants.data_plane import Call


@dataclass(frozen=True, slots=True)
class Live:
    """The connections of a process, and what can be subscribed to over them."""

    kinds: Kinds
    crowd: Crowd
    records: Records
    queries: LiveQueries
    topics: TopicStreams
    aggregates: AggregateStreams
    process: HubProcess
    watches: Watches
    answers: Answers

    @property
    def operations(self) -> tuple[Operation[Call], ...]:
        """The calls of the data plane that belong to it."""
        return (
            *operations(self.queries),
            *topic_operations(self.topics),
            *aggregate_operations(self.aggregates),
        )

    def around(self, app: App) -> App:
        """Return the application with everything in front of it that is not a plain call."""
        return Realtime(TicketedStreams(app, self.queries, self.topics), self.kinds, self.crowd)

    async def start(self) -> None:
        DRAIN.listen(self.crowd, environment().rillbase_drain_s)
        await self.crowd.start()
        await self.records.start()
        await self.watches.start()
        await self.answers.start()

    async def stop(self) -> None:
        await self.answers.stop()
        await self.watches.stop()
        await self.records.stop()
        await self.crowd.stop()
        await self.process.stop()
        await valkey.close()
        await feeds.feeds.close()
        await aggregate_feed.feeds.close()
        await client.close()
        reading.close()
        grids.close()
        exchange.close()


def build() -> Live:
    """Put a process's part together. Nothing runs before `start`."""
    process = HubProcess()
    documents = DocumentQueries(process)
    process.serve, process.settle = Wishes(documents).serve, documents.settle
    topics, aggregates = TopicSubscriptions(), AggregateSubscriptions()
    kinds, crowd = Kinds(documents, topics, aggregates), Crowd(process.name)
    return Live(
        kinds,
        crowd,
        Records(process.name, crowd),
        LiveQueries(kinds, crowd),
        TopicStreams(topics, crowd),
        AggregateStreams(aggregates, crowd),
        process,
        Watches(documents),
        Answers(process.name, crowd),
    )
