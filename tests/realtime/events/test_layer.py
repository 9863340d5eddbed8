"""Leases, log and registry of the grid, on a real Valkey."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import cast

import pytest
import redis

from documents.outbox.events import prefix
from foundation.valkey_wire import ValkeyWire
from realtime.events.layer import EXPIRED_AT_ONCE, GridLayer, filter_node, log
from tests.own_valkey import OwnValkey

NODE = filter_node(0, 0)
QUERY, OTHER = b"q" * 16, b"r" * 16
REGISTER, EXPIRE, DEFINITION = b"\1\1", b"\1\2", b"\1\3"
RENEWAL = b"\2"
LONG_MS = 60_000
#: Enough to be over when the server has answered once more.
SHORT_MS = 1
AT_ONCE_MS = 0


@pytest.fixture
def client(valkey: OwnValkey) -> Iterator[redis.Redis]:
    with valkey.client() as client:
        yield client


def entries(client: redis.Redis, stream: str) -> list[dict[bytes, bytes]]:
    result = cast("list[tuple[bytes, dict[bytes, bytes]]]", client.xrange(stream))
    return [fields for _, fields in result]


def requests(client: redis.Redis) -> list[bytes]:
    return [fields[b"e"] for fields in entries(client, "{rillbase}:events:1:1:requests:0")]


def logged(client: redis.Redis) -> list[bytes]:
    return [fields[b"e"] for fields in entries(client, log(prefix(1), 1, 0))]


def registry(client: redis.Redis) -> dict[bytes, bytes]:
    result = client.hgetall("{rillbase}:events:1:1:registry:0")
    return cast("dict[bytes, bytes]", result)


def numbered(kind: bytes, query: bytes, activation: int, rest: bytes = b"") -> bytes:
    """A request or definition as far as the function looks into it."""
    return kind + query + activation.to_bytes(8, "big") + rest


async def register(grid: GridLayer, query: bytes = QUERY, hub: str = "hub") -> int:
    definition = numbered(DEFINITION, query, 0, b"defined")
    request = numbered(REGISTER, query, 0, b"requested")
    incarnation = (await grid.ends(1, 0)).life
    return (await grid.register(0, hub, incarnation, (query, definition, request))).activation


def as_renewal(query: bytes) -> tuple[bytes, bytes, bytes]:
    """A query, its definition, and a request whose flags behind the query say what it is."""
    return query, numbered(DEFINITION, query, 0), numbered(REGISTER, query, 0, RENEWAL)


async def renew(grid: GridLayer, query: bytes = QUERY) -> int:
    incarnation = (await grid.ends(1, 0)).life
    return (await grid.register(0, "hub", incarnation, as_renewal(query))).activation


async def expire_all(grid: GridLayer, ttl_ms: int = AT_ONCE_MS) -> None:
    while await grid.expire(1, ttl_ms):
        pass


async def pass_a_millisecond(grid: GridLayer) -> None:
    """Wait until the server's clock shows another millisecond."""
    before = (await grid.ends(1, 0)).time_us
    while (await grid.ends(1, 0)).time_us < before + 2_000:
        pass


async def test_a_partition_has_one_holder_until_the_lease_ends(grid: GridLayer) -> None:
    first = await grid.lease(NODE, "one", LONG_MS)
    refusal = await grid.lease(NODE, "two", LONG_MS)
    assert first.held
    assert not refusal.held
    assert refusal.token == first.token


async def test_renewing_keeps_the_token(grid: GridLayer) -> None:
    first = await grid.lease(NODE, "one", SHORT_MS)
    await pass_a_millisecond(grid)
    assert (await grid.lease(NODE, "one", LONG_MS)).token == first.token


async def test_the_next_holder_has_a_higher_token(grid: GridLayer) -> None:
    first = await grid.lease(NODE, "one", SHORT_MS)
    await pass_a_millisecond(grid)
    second = await grid.lease(NODE, "two", LONG_MS)
    assert second.held
    assert second.token > first.token


async def test_a_released_lease_can_be_taken_immediately(grid: GridLayer) -> None:
    await grid.lease(NODE, "one", LONG_MS)
    await grid.lease(NODE, "one", 0)
    assert (await grid.lease(NODE, "two", LONG_MS)).held


async def test_a_late_release_does_not_affect_the_new_holder(grid: GridLayer) -> None:
    await grid.lease(NODE, "one", SHORT_MS)
    await pass_a_millisecond(grid)
    second = await grid.lease(NODE, "two", SHORT_MS)
    await pass_a_millisecond(grid)
    await grid.lease(NODE, "one", 0)
    assert await grid.append(NODE, second.token, 0, [b"still the holder's"])


async def test_a_holder_may_write_after_its_lease_until_there_is_a_new_holder(
    grid: GridLayer, client: redis.Redis
) -> None:
    mine = await grid.lease(NODE, "one", SHORT_MS)
    await pass_a_millisecond(grid)
    assert await grid.append(NODE, mine.token, 0, [b"late"])
    await grid.lease(NODE, "two", LONG_MS)
    assert not await grid.append(NODE, mine.token, 0, [b"too late"])
    assert logged(client) == [b"late"]


async def test_tokens_increase_even_if_the_server_has_lost_them(
    grid: GridLayer, client: redis.Redis
) -> None:
    before = await grid.lease(NODE, "one", LONG_MS)
    client.flushall()
    assert not await grid.append(NODE, before.token, 0, [b"of the life before"])
    after = await grid.lease(NODE, "one", LONG_MS)
    assert after.token > before.token
    assert logged(client) == []


async def test_nodes_report_their_state_with_each_renewal(grid: GridLayer) -> None:
    lease = await grid.lease(NODE, "one", LONG_MS, b'{"state":"running"}')
    time_us, reports = await grid.leases([NODE, filter_node(0, 1)])
    assert list(reports) == [NODE]
    assert (reports[NODE].holder, reports[NODE].token) == ("one", lease.token)
    assert reports[NODE].report == b'{"state":"running"}'
    assert reports[NODE].until_ms > time_us // 1000


async def test_the_leases_of_nodes_are_independent(grid: GridLayer) -> None:
    mine = await grid.lease(NODE, "one", LONG_MS)
    assert not await grid.append(filter_node(0, 1), mine.token, 0, [b"elsewhere"])


async def test_a_query_gets_an_activation_number_in_registry_and_request(
    grid: GridLayer, client: redis.Redis
) -> None:
    activation = await register(grid)
    assert requests(client) == [numbered(REGISTER, QUERY, activation, b"requested")]
    assert registry(client) == {QUERY: numbered(DEFINITION, QUERY, activation, b"defined")}


async def test_a_live_query_keeps_its_activation_number(
    grid: GridLayer, client: redis.Redis
) -> None:
    assert await register(grid, hub="one") == await register(grid, hub="two")
    assert len(requests(client)) == 2


async def test_requests_are_numbered_so_that_gaps_are_detected(
    grid: GridLayer, client: redis.Redis
) -> None:
    await register(grid)
    await register(grid, OTHER)
    result = entries(client, "{rillbase}:events:1:1:requests:0")
    assert [fields[b"n"] for fields in result] == [b"1", b"2"]


async def test_a_query_without_holders_ends_after_its_time(
    grid: GridLayer, client: redis.Redis
) -> None:
    await grid.hub_alive("hub", LONG_MS)
    activation = await register(grid)
    await grid.unregister(0, "hub", QUERY)
    await expire_all(grid, LONG_MS)
    assert QUERY in registry(client)
    await pass_a_millisecond(grid)
    await expire_all(grid)
    assert registry(client) == {}
    assert requests(client)[-1] == numbered(EXPIRE, QUERY, activation)


async def test_a_query_that_is_registered_again_in_time_continues(
    grid: GridLayer, client: redis.Redis
) -> None:
    await grid.hub_alive("hub", LONG_MS)
    before = await register(grid)
    await grid.unregister(0, "hub", QUERY)
    assert await register(grid) == before
    await pass_a_millisecond(grid)
    await expire_all(grid)
    assert QUERY in registry(client)


async def test_a_server_that_registered_early_keeps_its_queries(
    grid: GridLayer, client: redis.Redis
) -> None:
    await grid.hub_alive("hub", LONG_MS)
    await register(grid)
    client.flushall()
    assert await grid.registered_queries(0, "hub") == []
    await register(grid)
    assert not await grid.hub_alive("hub", LONG_MS)
    assert await grid.registered_queries(0, "hub") == [QUERY]
    assert await grid.hub_alive("hub", LONG_MS)


async def test_an_ended_query_is_registered_again_with_a_higher_number(
    grid: GridLayer, client: redis.Redis
) -> None:
    await grid.hub_alive("hub", LONG_MS)
    before = await register(grid)
    await grid.unregister(0, "hub", QUERY)
    await pass_a_millisecond(grid)
    await expire_all(grid)
    ended = await register(grid)
    client.flushall()
    assert before < ended < await register(grid)


async def test_a_renewal_adds_rows_to_a_live_query(grid: GridLayer, client: redis.Redis) -> None:
    await grid.hub_alive("hub", LONG_MS)
    activation = await register(grid)
    assert await renew(grid) == activation
    assert requests(client)[-1] == numbered(REGISTER, QUERY, activation, RENEWAL)
    await grid.unregister(0, "hub", QUERY)
    await renew(grid)
    await pass_a_millisecond(grid)
    await expire_all(grid)
    assert registry(client) == {}


async def test_a_renewal_does_not_revive_an_expired_query(
    grid: GridLayer, client: redis.Redis
) -> None:
    other = await register(grid, OTHER)
    before = requests(client)
    assert await renew(grid) == 0
    assert (requests(client), list(registry(client))) == (before, [OTHER])
    both = [as_renewal(QUERY), as_renewal(OTHER)]
    expired, renewed = await grid.register_all(0, "hub", (await grid.ends(1, 0)).life, both)
    assert (expired.activation, renewed.activation) == (0, other)
    assert len(requests(client)) == len(before) + 1


async def test_positions_of_another_incarnation_register_nothing(
    grid: GridLayer, client: redis.Redis
) -> None:
    client.hset("{rillbase}:events:1:state", "random", "first")
    before = (await grid.ends(1, 0)).life
    client.hset("{rillbase}:events:1:state", "random", "second")
    with pytest.raises(redis.ResponseError, match="another life"):
        await grid.register(0, "hub", before, as_renewal(QUERY))
    assert (requests(client), registry(client)) == ([], {})


async def test_a_query_continues_as_long_as_it_has_a_holder(
    grid: GridLayer, client: redis.Redis
) -> None:
    await grid.hub_alive("alive", LONG_MS)
    await grid.hub_alive("dead", 0)
    await register(grid, QUERY, "alive")
    await register(grid, QUERY, "dead")
    await register(grid, OTHER, "dead")
    await pass_a_millisecond(grid)
    await expire_all(grid)
    assert list(registry(client)) == [QUERY]


async def test_a_repeated_release_counts_once(grid: GridLayer, client: redis.Redis) -> None:
    await grid.hub_alive("one", LONG_MS)
    await grid.hub_alive("two", LONG_MS)
    await register(grid, hub="one")
    await register(grid, hub="two")
    await grid.unregister(0, "one", QUERY)
    await grid.unregister(0, "one", QUERY)
    await pass_a_millisecond(grid)
    await expire_all(grid)
    assert QUERY in registry(client)


async def test_an_app_server_that_was_considered_dead_has_to_register_again(
    grid: GridLayer,
) -> None:
    assert not await grid.hub_alive("hub", 0)
    assert await grid.hub_alive("hub", 0)
    await pass_a_millisecond(grid)
    await expire_all(grid)
    assert not await grid.hub_alive("hub", LONG_MS)


async def test_many_queries_end_in_several_calls(grid: GridLayer, client: redis.Redis) -> None:
    count = EXPIRED_AT_ONCE + 1
    await asyncio.gather(
        *(register(grid, number.to_bytes(16, "big"), "dead") for number in range(count))
    )
    await pass_a_millisecond(grid)
    assert await grid.expire(1, AT_ONCE_MS) == EXPIRED_AT_ONCE
    assert len(registry(client)) == 1
    await expire_all(grid)
    assert registry(client) == {}


async def test_ends_are_the_current_ends_of_the_streams(
    grid: GridLayer, client: redis.Redis
) -> None:
    assert (await grid.ends(2, 0)).writes == ("0-0", "0-0")
    entry = cast("bytes", client.xadd("{rillbase}:events:1:1:1", {"e": b"image"}))
    token = (await grid.lease(NODE, "one", LONG_MS)).token
    await grid.append(NODE, token, 0, [b"news"])
    result = await grid.ends(2, 0)
    (last, _), *_ = cast("list[tuple[bytes, object]]", client.xrevrange(log(prefix(1), 1, 0)))
    assert result.writes == ("0-0", entry.decode())
    assert result.log == last.decode()


async def test_entries_of_the_log_are_numbered_without_gaps(
    grid: GridLayer, client: redis.Redis
) -> None:
    token = (await grid.lease(NODE, "one", LONG_MS)).token
    await grid.append(NODE, token, 0, [b"one", b"two"])
    await grid.append(NODE, token, 0, [])
    await grid.append(NODE, token, 0, [b"three"])
    assert [fields[b"n"] for fields in entries(client, log(prefix(1), 1, 0))] == [b"1", b"2", b"3"]


async def test_the_log_is_bounded_in_bytes(grid: GridLayer, client: redis.Redis) -> None:
    token = (await grid.lease(NODE, "one", LONG_MS)).token
    part = b"x" * (8 * 1024 * 1024)
    for _ in range(40):
        await grid.append(NODE, token, 0, [part])
    size = sum(len(entry) for entry in logged(client))
    assert 200 * 1024 * 1024 <= size <= 264 * 1024 * 1024


async def test_old_entries_of_the_log_are_dropped(grid: GridLayer, client: redis.Redis) -> None:
    now_ms = (await grid.ends(1, 0)).time_us // 1000
    name = log(prefix(1), 1, 0)
    for number in range(300):
        client.xadd(name, {"e": b"old"}, id=f"{now_ms - 90_000}-{number + 1}")
    await grid.trim(1)
    assert len(entries(client, name)) < 150


async def test_the_function_is_loaded_into_a_replaced_server(
    wire: ValkeyWire, grid: GridLayer, client: redis.Redis
) -> None:
    client.function_flush("SYNC")
    assert (await grid.lease(NODE, "one", LONG_MS)).held
