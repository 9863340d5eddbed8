"""Native collections: writes, definitions, queries, copies and their parts, isolation, kills."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import redis

from rillbase_native import (
    Expected,
    Operation,
    Operations,
    Outcomes,
    QueryError,
    Value,
    candidate_rows,
    document_versions,
    encode_write,
    id_key,
    write_partition,
)
from tests.own_storage_node import OwnStorageNode, token_of
from tests.waiting import wait_until

MIB = 1024 * 1024
SYNCS = "rillbase_node_engine_log_syncs_total"
AWAY = (redis.ConnectionError, redis.TimeoutError)
BY_CODE = {"number": 1, "name": "by code", "fields": [["code", 1]], "unique": True, "ready": True}
BY_PRICE = {"number": 2, "name": "by price", "fields": [["price", 1]], "ready": True}
BINARY: dict[str, Any] = {"protocol": 3, "decode_responses": False}


def execute(client: Any, *words: object) -> Any:
    return client.execute_command(*words)


def definition(version: int, *indexes: dict[str, Any], **other: object) -> str:
    return json.dumps({"write_version": version, "indexes": list(indexes), **other})


def value(plain: object) -> Value:
    return Value.parse(json.dumps(plain).encode())


def insert(**fields: object) -> Operation:
    return Operation.insert(value(fields))


def update(document_id: object, **operators: object) -> Operation:
    return Operation.update(value(document_id), value({f"${k}": v for k, v in operators.items()}))


def write(
    client: redis.Redis,
    name: str,
    *operations: Operation,
    version: int = 1,
    expected: Expected | None = None,
) -> Outcomes:
    request = encode_write(
        Operations(list(operations)), [("", 0, None)], atomic=False, expected=expected
    )
    return Outcomes.decode(execute(client, "RB.COL.WRITE", request, name, version))


def read(client: redis.Redis, name: str, document_id: object) -> tuple[int, Any] | None:
    """Return a document's version and body; None if it does not exist."""
    key = id_key(value(document_id))
    rows = candidate_rows(execute(client, "RB.COL.GET", name, 1, key)[0])
    return (rows[0][1], plain(rows[0][4])) if rows else None


def plain(body: bytes) -> Any:
    return json.loads(Value.from_bson(body).ejson())


def query(
    client: redis.Redis, name: str, conditions: object, sort: object, *options: object
) -> dict[str, Any]:
    words = (json.dumps(conditions), json.dumps(sort), *options)
    reply = execute(client, "RB.COL.QUERY", name, 1, *words)
    return {key.decode(): part for key, part in reply.items()}


def ids(reply: dict[str, Any]) -> list[Any]:
    return [plain(row[4])["_id"] for row in candidate_rows(reply["rows"])]


@pytest.fixture(scope="module")
def client(shared_node: OwnStorageNode) -> redis.Redis:
    return shared_node.namespace("collections", **BINARY)


@pytest.fixture
def goods(client: redis.Redis, request: pytest.FixtureRequest) -> str:
    """An empty collection."""
    name = str(request.node.originalname)
    execute(client, "RB.COL.DEFINE", name, definition(1, BY_PRICE))
    return name


def test_documents_are_inserted_changed_and_deleted_with_versions(
    client: redis.Redis, goods: str
) -> None:
    write(client, goods, insert(_id="a", price=1))
    changed = write(client, goods, update("a", inc={"price": 4}), update("b", inc={"price": 1}))

    assert (changed.change(0).version, changed.change(0).created) == (2, False)
    assert [(place, error.code) for place, error in changed.refusals()] == [(1, "not_found")]
    assert read(client, goods, "a") == (2, {"_id": "a", "price": 5})
    write(client, goods, Operation.delete(value("a")))
    assert read(client, goods, "a") is None
    again = write(client, goods, insert(_id="a"))
    assert again.change(0).version == 4, "versions continue after a deletion"


def test_a_precondition_decides_with_the_writes_before_it(client: redis.Redis, goods: str) -> None:
    write(client, goods, insert(_id="a", n=1))
    done = write(client, goods, update("a", inc={"n": 1}), expected=Expected([1]))
    assert done.refusals() == []
    late = write(client, goods, update("a", inc={"n": 1}), expected=Expected([1]))
    assert [error.code for _, error in late.refusals()] == ["precondition_failed"]
    assert read(client, goods, "a") == (2, {"_id": "a", "n": 2})


def test_large_documents_need_several_replies(client: redis.Redis, goods: str) -> None:
    for document_id in range(3):
        write(client, goods, insert(_id=document_id, text="x" * (5 * MIB)))
    absent = id_key(value("absent"))
    keys = [absent, *(id_key(value(n)) for n in range(3)), absent]
    answered: list[int] = []
    shown: list[Any] = []
    while keys:
        rows, count = execute(client, "RB.COL.GET", goods, 1, *keys)
        answered.append(count)
        shown += [plain(row[4])["_id"] for row in candidate_rows(rows)]
        keys = keys[count:]
    assert answered == [3, 2], "a reply ends after 8 MiB, and keys without documents are answered"
    assert shown == [0, 1, 2]
    assert execute(client, "RB.COL.GET", goods, 1, absent) == [b"", 1]


def test_a_transaction_changes_several_collections_or_none(client: redis.Redis, goods: str) -> None:
    other = f"{goods}-2"
    execute(client, "RB.COL.DEFINE", other, definition(7))
    write(client, other, insert(_id="taken"), version=7)

    def transact(document_id: str) -> Outcomes:
        operations = [
            {"collection": "left", "insert": {"_id": document_id}},
            {"collection": "right", "insert": {"_id": document_id}},
        ]
        body = json.dumps({"operations": operations}).encode()
        parsed, atomic = Operations.parse(body, ndjson=False, max_operations=10, transaction=True)
        targets = [("left", 1, None), ("right", 0, None)]
        request = encode_write(parsed, targets, atomic=atomic)
        return Outcomes.decode(execute(client, "RB.COL.WRITE", request, other, 7, goods, 1))

    with pytest.raises(QueryError) as refused:
        transact("taken")
    assert (refused.value.code, refused.value.pointer) == ("duplicate_id", "/operations/1")
    assert read(client, goods, "taken") is None
    assert len(transact("free")) == 2
    assert read(client, goods, "free") == (1, {"_id": "free"})


def test_a_request_made_with_another_definition_is_rejected(
    client: redis.Redis, goods: str
) -> None:
    write(client, goods, insert(_id="a", price="cheap"))
    schema = {"properties": {"price": {"type": "number"}}}
    execute(client, "RB.COL.DEFINE", goods, definition(2, BY_CODE, schema=schema))

    for act in (
        lambda: write(client, goods, insert(_id="b")),
        lambda: read(client, goods, "a"),
        lambda: query(client, goods, {}, []),
    ):
        with pytest.raises(redis.ResponseError, match=r"^STALE the installed .* version 2$"):
            act()
    violating = write(client, goods, insert(_id="b", price="cheap"), version=2)
    assert [error.code for _, error in violating.refusals()] == ["invalid_document"]
    execute(client, "RB.COL.DEFINE", goods, definition(1))
    described = execute(client, "RB.COL.INFO", goods)
    assert described[b"write_version"] == 2, "an older definition changes nothing"
    assert (described[b"documents"], len(described[b"indexes"])) == (1, 1)


def test_of_concurrent_writers_one_gets_a_unique_key(
    shared_node: OwnStorageNode, client: redis.Redis, goods: str
) -> None:
    execute(client, "RB.COL.DEFINE", goods, definition(2, BY_CODE))

    def take(writer: int) -> list[str]:
        with shared_node.client("collections", token_of("collections"), **BINARY) as own:
            results = [
                write(own, goods, insert(_id=f"{writer}-{code}", code=code), version=2)
                for code in range(50)
            ]
        return [error.code for result in results for _, error in result.refusals()]

    with ThreadPoolExecutor(4) as pool:
        refusals = [code for codes in pool.map(take, range(4)) for code in codes]

    assert refusals == ["duplicate_key"] * 150
    described = execute(client, "RB.COL.INFO", goods)
    assert described[b"documents"] == 50


def test_the_use_of_a_collection_is_counted(
    shared_node: OwnStorageNode, client: redis.Redis, goods: str
) -> None:
    write(client, goods, *[insert(_id=n, price=n % 10) for n in range(60)])
    reply = query(client, goods, {"price": 5}, [["price", 1]], "COUNT", 2)
    following = ("PLAN", reply["plan"], "AFTER", *reply["after"], "AT", reply["snapshot"])
    query(client, goods, {"price": 5}, [["price", 1]], *following)
    query(client, goods, {"price": 6}, [["$updated", -1]], "DOCUMENTS", 5)
    assert read(client, goods, 1) is not None
    used = execute(client, "RB.COL.USAGE", goods)
    assert (used[b"reads"], used[b"writes"]) == (3, 60)
    counters = {"number": 2, "lookups": 2, "newest": 1, "ordered": 0, "counted": 2, "entries": 12}
    shown = {name.decode(): figure for name, figure in used[b"indexes"][0].items()}
    assert shown == counters | {"block_share": None}
    with shared_node.client() as admin:
        assert execute(admin, "RB.FEED.INFO")["run"] == used[b"run"].decode()
    with (
        shared_node.namespace("spectators", **BINARY) as other,
        pytest.raises(redis.ResponseError, match="NO_COLLECTION"),
    ):
        execute(other, "RB.COL.USAGE", goods)


def test_a_query_continues_at_its_snapshot(client: redis.Redis, goods: str) -> None:
    documents = [insert(_id=n, price=n % 10) for n in range(60)]
    write(client, goods, *documents)
    conditions, sort = {"price": {"$gte": 5}}, [["price", -1]]
    reply = query(client, goods, conditions, sort, "COUNT", 7, "DOCUMENTS", 7)
    assert (reply["order"], reply["backward"], reply["entries"]) == (b"index", 1, 30)
    shown = ids(reply)
    write(client, goods, *[Operation.delete(value(n)) for n in range(60)])

    while reply["after"] is not None:
        more = ("PLAN", reply["plan"], "AFTER", *reply["after"], "AT", reply["snapshot"])
        reply = query(client, goods, conditions, sort, *more, "COUNT", 7)
        shown += ids(reply)

    expected = sorted((n for n in range(60) if n % 10 >= 5), key=lambda n: (-(n % 10), n))
    assert shown == expected
    assert ids(query(client, goods, conditions, sort)) == []


@pytest.mark.parametrize("direction", [1, -1])
def test_documents_with_several_entries_are_returned_once_for_each_on_any_page(
    client: redis.Redis, goods: str, direction: int
) -> None:
    write(client, goods, *[insert(_id=n, price=[n, -n] if n % 2 else n) for n in range(8)])
    sort = [["price", direction]]
    whole = ids(query(client, goods, {}, sort))
    reply = query(client, goods, {}, sort, "COUNT", 1)
    shown = ids(reply)
    for _ in whole:
        if reply["after"] is not None:
            more = ("PLAN", reply["plan"], "AFTER", *reply["after"], "AT", reply["snapshot"])
            reply = query(client, goods, {}, sort, *more, "COUNT", 1)
            shown += ids(reply)

    assert reply["after"] is None
    assert shown == whole


def test_distances_are_the_order_of_a_filter(client: redis.Redis, goods: str) -> None:
    write(client, goods, insert(_id="a", at=[1, 1]), insert(_id="b", at=[0, 0]))
    reply = query(client, goods, {"at": {"$near": [0, 0]}}, None)
    assert (reply["order"], sorted(ids(reply))) == (b"any", ["a", "b"])


def test_a_long_scan_is_divided_and_counts_what_it_examined(
    client: redis.Redis, goods: str
) -> None:
    for start in range(0, 12_000, 2_000):
        write(client, goods, *[insert(_id=n, odd=n % 2) for n in range(start, start + 2_000)])
    options: tuple[object, ...] = ()
    replies, examined = 0, 0
    while True:
        reply = query(client, goods, {"odd": 2}, [], *options)
        replies, examined = replies + 1, examined + reply["examined"]
        assert ids(reply) == []
        if reply["after"] is None:
            break
        options = ("PLAN", reply["plan"], "AFTER", *reply["after"], "AT", reply["snapshot"])
    assert examined == 12_000
    assert replies >= 2, "no reply examines more than 10,000"


def test_documents_that_cannot_be_evaluated_are_returned(client: redis.Redis, goods: str) -> None:
    write(client, goods, insert(_id="zero", n=0), insert(_id="two", n=2), insert(_id="one", n=1))
    divided = {"$expr": {"$eq": [{"$divide": [2, "$n"]}, 2]}}
    assert ids(query(client, goods, divided, [])) == ["one", "zero"]


def test_a_namespace_reads_only_its_own_collections(
    shared_node: OwnStorageNode, client: redis.Redis, goods: str
) -> None:
    write(client, goods, insert(_id="a"))
    with shared_node.namespace("strangers", **BINARY) as other:
        with pytest.raises(redis.ResponseError, match="NO_COLLECTION"):
            read(other, goods, "a")
        execute(other, "RB.COL.DEFINE", goods, definition(1))
        assert read(other, goods, "a") is None
        assert execute(other, "RB.COL.DROP", goods) == 1
    assert read(client, goods, "a") is not None
    assert execute(client, "RB.COL.DROP", goods) == 1
    assert execute(client, "RB.COL.DROP", goods) == 0
    execute(client, "RB.COL.DEFINE", goods, definition(1))
    assert ids(query(client, goods, {}, [])) == []


def test_malformed_requests_are_rejected(client: redis.Redis, goods: str) -> None:
    operations = Operations([insert(_id="a", text="b"), update("a", set={"n": 1})])
    request = encode_write(operations, [("", 0, None)], atomic=True, expected=Expected([1, 2]))
    for length in range(len(request)):
        with pytest.raises(redis.ResponseError, match="the request is malformed"):
            execute(client, "RB.COL.WRITE", request[:length], goods, 1)
    of_another = encode_write(operations, [("", 5, None)], atomic=True)
    with pytest.raises(redis.ResponseError, match="NO_COLLECTION"):
        execute(client, "RB.COL.WRITE", of_another, goods, 1)
    for bad in ('{"indexes": 5}', "{}", '{"write_version": 1, "indexes": [{"number": 0}]}', "["):
        with pytest.raises(redis.ResponseError):
            execute(client, "RB.COL.DEFINE", goods, bad)
    for options in (("PLAN", b"\xff"), ("AFTER", "a"), ("COUNT", "many"), ("AT", "now"), ("X",)):
        with pytest.raises(redis.ResponseError):
            query(client, goods, {}, [], *options)
    assert read(client, goods, "a") is None


def test_a_plan_of_a_caller_reads_only_the_collection(client: redis.Redis, goods: str) -> None:
    write(client, goods, insert(_id="own", price=1))
    secret = f"{goods}-2"
    execute(client, "RB.COL.DEFINE", secret, definition(1, BY_CODE, BY_PRICE))
    write(client, secret, insert(_id="secret", code=2, price=1))
    for index in (0, 1, 2, 3, 2**32 - 1):
        number = bytearray()
        rest = index
        while rest >= 128:
            number.append(rest % 128 + 128)
            rest //= 128
        number.append(rest)
        for order in range(4):
            for backward in range(2):
                plan = bytes([*number, order, backward, 0, 0, 1, 0, 0])
                if index not in (0, 2):
                    with pytest.raises(redis.ResponseError, match="NO_INDEX"):
                        query(client, goods, {}, [], "PLAN", plan)
                    continue
                reply = query(client, goods, {}, [], "PLAN", plan)
                assert ids(reply) in ([], ["own"])


def test_writes_that_arrive_together_take_one_sync(node: OwnStorageNode) -> None:
    client = node.namespace("together", **BINARY)
    for number in range(20):
        execute(client, "RB.COL.DEFINE", f"c{number}", definition(1))
    syncs = node.metric(SYNCS)
    pipeline = client.pipeline(transaction=False)
    request = encode_write(Operations([insert(n=1)]), [("", 0, None)], atomic=True)
    for number in range(20):
        execute(pipeline, "RB.COL.WRITE", request, f"c{number}", 1)
    execute(pipeline, "RB.KV.SET", "key", "value")
    replies = pipeline.execute(raise_on_error=False)
    assert [len(Outcomes.decode(reply)) for reply in replies[:-1]] == [1] * 20
    assert node.metric(SYNCS) - syncs == 1


def claimed(client: Any, claim: tuple[object, ...], request: bytes, *collections: object) -> Any:
    return execute(client, "RB.COL.WRITE", "CLAIM", *claim, request, *collections)


def request_of(*operations: Operation) -> bytes:
    return encode_write(Operations(list(operations)), [("", 0, None)], atomic=False)


def test_a_repeated_write_with_a_claim_is_replayed(
    shared_node: OwnStorageNode, client: redis.Redis, goods: str
) -> None:
    key = goods.encode()
    request = request_of(insert(_id="a"), insert(_id="a"))
    claim = (key, b"hash", b"\x00state")
    replayed, state, result = claimed(client, claim, request, goods, 1)
    assert (replayed, state) == (0, b"\x00state")
    outcomes = Outcomes.decode(result)
    assert outcomes.change(0).version == 1
    assert [error.code for _, error in outcomes.refusals()] == ["duplicate_id"]
    with shared_node.client("collections", token_of("collections"), **BINARY) as other:
        assert claimed(other, claim, request, goods, 1) == [1, state, result]
    assert read(client, goods, "a") == (1, {"_id": "a"})

    with pytest.raises(redis.ResponseError, match=r"^MISMATCH the key was used with another"):
        claimed(client, (key, b"other", b""), request, goods, 1)
    execute(client, "RB.COL.DROP", goods)
    assert claimed(client, claim, request, goods, 1) == [1, state, result]
    with pytest.raises(redis.ResponseError, match=r"^NO_COLLECTION the collection does not exist$"):
        claimed(client, (b"next", b"hash", b""), request, goods, 1)
    with pytest.raises(redis.ResponseError, match="a collection and its version are missing"):
        claimed(client, claim, request)
    with pytest.raises(redis.ResponseError, match="wrong number of arguments"):
        execute(client, "RB.COL.WRITE", request)
    for bad in (b"", b"k" * 65):
        with pytest.raises(redis.ResponseError, match="the key of a claim has 1 to 64 bytes"):
            claimed(client, (bad, b"hash", b""), request, goods, 1)


def test_of_concurrent_calls_with_a_claim_one_is_executed(
    shared_node: OwnStorageNode, client: redis.Redis, goods: str
) -> None:
    names = [goods, f"{goods}-2"]
    execute(client, "RB.COL.DEFINE", names[1], definition(1))
    rounds, callers = 20, 8
    barrier = threading.Barrier(callers)

    def call(caller: int) -> list[object]:
        replies: list[object] = []
        with shared_node.client("collections", token_of("collections"), **BINARY) as own:
            for number in range(rounds):
                request = request_of(insert(_id=number))
                claim = (f"{goods}-{number}", b"hash", b"")
                barrier.wait()
                try:
                    replies.append(claimed(own, claim, request, names[caller % 2], 1)[0])
                except redis.ResponseError as error:
                    replies.append(str(error).split()[0])
        return replies

    with ThreadPoolExecutor(callers) as pool:
        by_caller = list(pool.map(call, range(callers)))

    for replies in zip(*by_caller, strict=True):
        assert replies.count(0) == 1, "one is executed"
        assert set(replies) <= {0, 1, "IN_PROGRESS"}
    counts = [execute(client, "RB.COL.INFO", name)[b"documents"] for name in names]
    assert sum(counts) == rounds


def test_a_namespace_has_its_own_claims(
    shared_node: OwnStorageNode, client: redis.Redis, goods: str
) -> None:
    request = request_of(insert(_id="a"))
    first = claimed(client, (goods, b"hash", b"own"), request, goods, 1)
    for _ in range(2):
        with shared_node.namespace("claimants", **BINARY) as other:
            execute(other, "RB.COL.DEFINE", goods, definition(1))
            replies = [
                claimed(other, (goods, b"other", b"theirs"), request, goods, 1)[:2]
                for _ in range(2)
            ]
            assert replies == [[0, b"theirs"], [1, b"theirs"]]
        with shared_node.client() as admin:
            assert execute(admin, "RB.NAMESPACE.DROP", "claimants") == 1
    again = claimed(client, (goods, b"hash", b""), request, goods, 1)
    assert again == [1, *first[1:]]


def test_a_claim_survives_a_kill(node: OwnStorageNode) -> None:
    with node.namespace("kills", **BINARY) as client:
        execute(client, "RB.COL.DEFINE", "goods", definition(1))
        request, claim = request_of(insert(_id="a")), (b"key", b"hash", b"")
        first = claimed(client, claim, request, "goods", 1)
    node.kill()
    node.start()
    with node.client("kills", token_of("kills"), **BINARY) as client:
        assert claimed(client, claim, request, "goods", 1) == [1, *first[1:]]


def build_index(
    client: redis.Redis, name: str, version: int, index: int, *options: object
) -> dict[str, Any]:
    reply = execute(client, "RB.COL.BUILD", name, version, index, *options)
    return {key.decode(): part for key, part in reply.items()}


def test_an_index_is_built_for_documents_that_were_written_before(
    client: redis.Redis, goods: str
) -> None:
    write(client, goods, *[insert(_id=n, code=n) for n in range(25)])
    by_code = BY_CODE | {"number": 2, "ready": False}
    execute(client, "RB.COL.DEFINE", goods, definition(2, by_code))
    parts = [build_index(client, goods, 2, 2, "COUNT", 10)]
    write(client, goods, insert(_id=-1, code=-1), Operation.delete(value(20)), version=2)
    while parts[-1]["after"] is not None:
        after = parts[-1]["after"]
        parts.append(build_index(client, goods, 2, 2, "AFTER", after, "COUNT", 10))
    assert [part["documents"] for part in parts] == [10, 10, 4]
    assert build_index(client, goods, 2, 2) == {"documents": 25, "after": None}

    by_code["ready"] = True
    execute(client, "RB.COL.DEFINE", goods, definition(3, by_code))
    conditions, sort = json.dumps({"code": {"$gte": -5}}), json.dumps([["code", 1]])
    reply = execute(client, "RB.COL.QUERY", goods, 3, conditions, sort, "DOCUMENTS", 5)
    assert (reply[b"index"], reply[b"order"]) == (2, b"index")
    assert [plain(row[4])["code"] for row in candidate_rows(reply[b"rows"])] == [
        n for n in range(-1, 25) if n != 20
    ]
    with pytest.raises(redis.ResponseError, match=r"^STALE"):
        build_index(client, goods, 2, 2)


def test_a_unique_index_is_not_built_over_equal_values(client: redis.Redis, goods: str) -> None:
    write(client, goods, *[insert(_id=n, code=n % 3) for n in range(4)])
    by_code = BY_CODE | {"number": 2, "ready": False}
    execute(client, "RB.COL.DEFINE", goods, definition(2, by_code))
    with pytest.raises(
        redis.ResponseError,
        match=r"^DUPLICATE_KEY Documents 0 and 3 have the same key\.$",
    ):
        build_index(client, goods, 2, 2)
    changed = write(client, goods, update(3, set={"n": 1}), version=2)
    assert changed.refusals() == [], "neither document has an entry"
    write(client, goods, update(3, set={"code": 3}), version=2)
    assert build_index(client, goods, 2, 2) == {"documents": 4, "after": None}
    with pytest.raises(redis.ResponseError, match=r"^NO_INDEX"):
        build_index(client, goods, 2, 1)
    for options in (("AFTER",), ("COUNT", "many"), ("X",)):
        with pytest.raises(redis.ResponseError):
            build_index(client, goods, 2, 2, *options)


def test_a_document_that_cannot_be_indexed_is_named(client: redis.Redis, goods: str) -> None:
    write(client, goods, insert(_id="short", code=1), insert(_id="long", code="x" * 2_000))
    execute(client, "RB.COL.DEFINE", goods, definition(2, BY_CODE | {"number": 2, "ready": False}))
    with pytest.raises(
        redis.ResponseError, match=r'^NOT_INDEXABLE Document "long": a key of a .* bytes\.$'
    ):
        build_index(client, goods, 2, 2)


class Mover:
    """Moves amounts between the documents of two collections, and counts what was acknowledged."""

    def __init__(self, node: OwnStorageNode, number: int) -> None:
        self._node, self._number = node, number
        self.acknowledged = 0

    def run(self, may_end: Callable[[], bool]) -> None:
        operations = [
            {"collection": "left", "update": {"id": "sum", "update": {"$inc": {"n": -1}}}},
            {"collection": "right", "update": {"id": "sum", "update": {"$inc": {"n": 1}}}},
        ]
        body = json.dumps({"operations": operations}).encode()
        parsed, _ = Operations.parse(body, ndjson=False, max_operations=10, transaction=True)
        targets = [("left", 0, None), ("right", 1, None)]
        moving = encode_write(parsed, targets, atomic=True)
        with self._node.client("crash", token_of("crash"), **BINARY) as client:
            while not may_end():
                mark = insert(_id=f"{self._number}-{self.acknowledged}")
                try:
                    Outcomes.decode(
                        execute(client, "RB.COL.WRITE", moving, "left", 1, "right", 1)
                    ).change(1)
                    marked = write(client, "marks", mark)
                except AWAY:
                    continue
                # An insert that was written before its reply was lost is repeated.
                if all(error.code == "duplicate_id" for _, error in marked.refusals()):
                    self.acknowledged += 1


def test_acknowledged_writes_survive_kills_and_transactions_are_whole(
    node: OwnStorageNode,
) -> None:
    client = node.namespace("crash", **BINARY)
    for name in ("left", "right", "marks"):
        execute(client, "RB.COL.DEFINE", name, definition(1))
    for name in ("left", "right"):
        write(client, name, insert(_id="sum", n=0))
    movers, end = [Mover(node, number) for number in range(3)], threading.Event()
    threads = [threading.Thread(target=mover.run, args=(end.is_set,)) for mover in movers]
    for thread in threads:
        thread.start()

    def acknowledged() -> int:
        return sum(mover.acknowledged for mover in movers)

    try:
        for _ in range(3):
            before = acknowledged()
            wait_until(lambda: acknowledged() >= before + 20, what="writes between kills")  # noqa: B023
            node.kill()
            node.start()
    finally:
        end.set()
        for thread in threads:
            thread.join()
    with node.client("crash", token_of("crash"), **BINARY) as client:
        left, right = read(client, "left", "sum"), read(client, "right", "sum")
        assert left is not None
        assert right is not None
        assert left[1]["n"] == -right[1]["n"] <= -acknowledged()
        assert left[0] == right[0] == right[1]["n"] + 1, "each change has a version"
        for mover in movers:
            for number in range(mover.acknowledged):
                assert read(client, "marks", f"{mover._number}-{number}") is not None
        counts = execute(client, "RB.COL.INFO", "marks")
        assert counts[b"documents"] >= acknowledged()


def versions(client: redis.Redis, name: str, *words: object) -> list[tuple[int, int, Any]]:
    """Return versions, transactions and bodies."""
    rows, count = execute(client, "RB.COL.VERSIONS", name, 1, *words)
    read = document_versions(rows)
    assert count == len(read)
    return [(number, xid, body and plain(body)) for number, xid, body in read]


def test_versions_include_those_of_deleted_documents(client: redis.Redis, goods: str) -> None:
    write(client, goods, insert(_id="a"), insert(_id="b"))
    write(client, goods, update("a", set={"n": 1}), Operation.delete(value("b")))
    keys = [id_key(value(document_id)) for document_id in ("b", "absent", "a", "b")]
    snapshot, sequence = execute(client, "RB.SNAPSHOT.OPEN", "SEQUENCE")
    deleted, absent, present, again = versions(client, goods, *keys)
    assert (deleted[0], deleted[2]) == (2, None)
    assert absent == (0, 0, None)
    assert (present[0], present[2]) == (2, {"_id": "a", "n": 1})
    assert again == deleted
    assert 0 < present[1] == deleted[1] <= sequence, "one batch has one first sequence"

    write(client, goods, update("a", set={"n": 2}), insert(_id="b"))
    later = versions(client, goods, *keys)
    assert [number for number, _, _ in later] == [3, 0, 3, 3]
    assert later[0][1] > sequence
    assert versions(client, goods, "AT", snapshot, *keys) == [deleted, absent, present, deleted]
    with pytest.raises(redis.ResponseError, match=r"^STALE"):
        execute(client, "RB.COL.VERSIONS", goods, 2, *keys)


def test_large_versions_need_several_replies(client: redis.Redis, goods: str) -> None:
    for document_id in range(3):
        write(client, goods, insert(_id=document_id, text="x" * (5 * MIB)))
    keys = [id_key(value(document_id)) for document_id in range(3)]
    rows, count = execute(client, "RB.COL.VERSIONS", goods, 1, *keys)
    assert (count, [number for number, _, _ in document_versions(rows)]) == (2, [1, 1])


#: Microseconds from 1970 to 2000.
EPOCH_2000_US = 946_684_800_000_000


def copied_rows(rows: bytes, collection: UUID) -> Iterator[tuple[bytes, int, int, int, Any]]:
    """Yield key, version, times in milliseconds and body of the rows of a binary copy."""
    at = 0

    def take(length: int) -> bytes:
        nonlocal at
        at += length
        assert at <= len(rows)
        return rows[at - length : at]

    while at < len(rows):
        assert take(2) == b"\0\6"
        cells = [take(int.from_bytes(take(4))) for _ in range(6)]
        assert cells[0] == collection.bytes
        version, created, updated = (int.from_bytes(cell, signed=True) for cell in cells[2:5])
        times = [(us + EPOCH_2000_US) // 1000 for us in (created, updated)]
        yield cells[1], version, times[0], times[1], plain(cells[5])


def copy_part(admin: redis.Redis, collection: object, *options: object) -> dict[str, Any]:
    reply = execute(admin, "RB.COL.COPY", "collections", str(collection), *options)
    assert list(reply) == [b"snapshot", b"sequence", b"rows", b"after"]
    return {key.decode(): part for key, part in reply.items()}


@pytest.fixture(scope="module")
def admin(shared_node: OwnStorageNode) -> redis.Redis:
    return shared_node.client(**BINARY)


@pytest.fixture
def collection(client: redis.Redis) -> UUID:
    """An empty collection, named as servers name them."""
    collection = uuid4()
    execute(client, "RB.COL.DEFINE", str(collection), definition(1, BY_PRICE))
    return collection


def test_the_parts_of_a_copy_are_the_documents_of_one_snapshot(
    client: redis.Redis, admin: redis.Redis, collection: UUID
) -> None:
    name = str(collection)
    write(client, name, *[insert(_id=n, price=n, text="x" * 100) for n in range(300)])
    write(client, name, *[update(n, inc={"price": 1}) for n in range(0, 300, 3)])
    write(client, name, *[Operation.delete(value(n)) for n in range(0, 300, 5)])
    shown = {
        row[0]: (*row[1:4], plain(row[4]))
        for row in candidate_rows(query(client, name, {}, [], "COUNT", 1000)["rows"])
    }
    assert len(shown) == 240

    snapshot, sequence = execute(admin, "RB.SNAPSHOT.OPEN", "SEQUENCE")
    copied: list[tuple[bytes, tuple[int, int, int, Any]]] = []
    parts = 0
    for partition in range(2):
        options: tuple[object, ...] = ()
        keys: list[bytes] = []
        while True:
            at = ("AT", snapshot, *options, "BYTES", 2_000)
            # The spellings of the name alternate.
            spelling = name if parts % 2 else collection.hex
            part = copy_part(admin, spelling, partition, 2, *at)
            parts += 1
            assert (part["snapshot"], part["sequence"]) == (snapshot, sequence)
            assert len(part["rows"]) < 2_300
            rows = [(key, rest) for key, *rest in copied_rows(part["rows"], collection)]
            keys += [key for key, _ in rows]
            copied += [(key, tuple(rest)) for key, rest in rows]
            write(client, name, insert(_id=1_000 + parts), Operation.delete(value(parts * 5 + 1)))
            write(client, name, update(299, inc={"price": 1}))
            if part["after"] is None:
                break
            options = ("AFTER", part["after"])
        assert keys == sorted(keys)
        assert {write_partition(key, 2) for key in keys} == {partition}

    assert parts > 20
    assert len(copied) == len(shown)
    assert dict(copied) == shown
    assert execute(admin, "RB.SNAPSHOT.CLOSE", snapshot) == 1
    with pytest.raises(redis.ResponseError, match=r"^SNAPSHOTEXPIRED"):
        copy_part(admin, name, 0, 2, "AT", snapshot)


def test_one_snapshot_is_used_for_several_collections(
    client: redis.Redis, admin: redis.Redis, collection: UUID
) -> None:
    missing = uuid4()
    first = copy_part(admin, missing, 0, 1)
    assert (first["rows"], first["after"]) == (b"", None)
    write(client, str(collection), insert(_id="a"))
    second = copy_part(admin, collection, 0, 1, "AT", first["snapshot"])
    assert second == first, "the document was written later"
    third = copy_part(admin, collection, 0, 1)
    [row] = copied_rows(third["rows"], collection)
    assert (row[1], row[4]) == (1, {"_id": "a"})
    assert third["sequence"] > first["sequence"]
    execute(client, "RB.COL.DROP", str(collection))
    dropped = copy_part(admin, collection, 0, 1, "AT", third["snapshot"])
    assert dropped == third | {"rows": b""}
    reply = execute(admin, "RB.COL.COPY", "no-namespace", str(collection), 0, 1)
    assert (reply[b"rows"], reply[b"after"]) == (b"", None)
    for part in (first, third):
        assert execute(client, "RB.SNAPSHOT.CLOSE", part["snapshot"]) == 0
        assert execute(admin, "RB.SNAPSHOT.CLOSE", part["snapshot"]) == 1


def test_a_part_of_a_copy_examines_a_bounded_number_of_documents(
    client: redis.Redis, admin: redis.Redis, collection: UUID
) -> None:
    for start in range(0, 12_000, 2_000):
        documents = range(start, start + 2_000)
        write(client, str(collection), *[insert(_id=n) for n in documents])
        write(client, str(collection), *[Operation.delete(value(n)) for n in documents])
    part = copy_part(admin, collection, 0, 1)
    parts = [part]
    while part["after"] is not None:
        part = copy_part(admin, collection, 0, 1, "AT", part["snapshot"], "AFTER", part["after"])
        parts.append(part)
    assert len(parts) >= 2
    assert {part["rows"] for part in parts} == {b""}


def test_only_the_administrator_copies_at_its_own_snapshots(
    client: redis.Redis, admin: redis.Redis, collection: UUID
) -> None:
    with pytest.raises(redis.ResponseError, match="only the admin may do this"):
        copy_part(client, collection, 0, 1)
    theirs = execute(client, "RB.SNAPSHOT.OPEN")
    with pytest.raises(redis.ResponseError, match=r"^SNAPSHOTEXPIRED"):
        copy_part(admin, collection, 0, 1, "AT", theirs)
    assert execute(admin, "RB.SNAPSHOT.CLOSE", theirs) == 0
    own = execute(admin, "RB.SNAPSHOT.OPEN")
    with pytest.raises(redis.ResponseError, match=r"^SNAPSHOTEXPIRED"):
        execute(client, "RB.COL.INFO", str(collection), "AT", own)
    with pytest.raises(redis.ResponseError, match="whose name is a UUID"):
        copy_part(admin, "goods", 0, 1)
    for words in ((1, 1), (0, 0), (-1, 2), (0, 70_000), (0, 1, "AFTER"), (0, 1, "X", 1)):
        with pytest.raises(redis.ResponseError):
            copy_part(admin, collection, *words)


def test_a_long_write_does_not_delay_the_requests_of_others(tmp_path: Path) -> None:
    """The only thread that serves connections reads while the write is decided."""
    node = OwnStorageNode(tmp_path, threads=1)
    try:
        client = node.namespace("long", **BINARY)
        indexes = [
            {"number": n, "name": f"i{n}", "fields": [["n", 1]], "ready": True}
            for n in range(1, 65)
        ]
        execute(client, "RB.COL.DEFINE", "many", definition(1, *indexes))
        operations = Operations([insert(n=n) for n in range(2_000)])
        request = encode_write(operations, [("", 0, None)], atomic=True)
        with (
            node.client("long", token_of("long"), **BINARY) as other,
            ThreadPoolExecutor(1) as pool,
        ):
            execute(other, "PING")
            written = pool.submit(execute, client, "RB.COL.WRITE", request, "many", 1)
            served = 0
            while not written.done():
                execute(other, "RB.KV.GET", "none")
                served += 1
            assert len(Outcomes.decode(written.result())) == 2_000
        assert served > 20
    finally:
        node.close()


def test_writes_of_a_connection_are_executed_in_order_beside_a_long_one(
    client: redis.Redis, goods: str
) -> None:
    pipeline = client.pipeline(transaction=False)
    many = [insert(_id=f"i{n}") for n in range(2_000)]
    for operations in (
        [insert(_id="a")],
        [update("a", inc={"n": 1}), *many],
        [update("a", inc={"n": 1})],
    ):
        request = encode_write(Operations(operations), [("", 0, None)], atomic=True)
        execute(pipeline, "RB.COL.WRITE", request, goods, 1)
    replies = [Outcomes.decode(reply) for reply in pipeline.execute()]
    assert [outcomes.change(0).version for outcomes in replies] == [1, 2, 3]


def test_a_plan_without_rows_is_not_a_use_until_it_is_read(client: redis.Redis, goods: str) -> None:
    write(client, goods, *[insert(_id=n, price=n) for n in range(20)])

    def uses() -> tuple[int, int]:
        usage = execute(client, "RB.COL.USAGE", goods)
        return usage[b"reads"], usage[b"indexes"][0][b"lookups"]

    conditions = {"price": {"$lt": 5}}
    planned = query(client, goods, conditions, None, "COUNT", 0)
    assert (planned["index"], planned["entries"], planned["examined"]) == (2, 6, 0)
    assert (planned["rows"], planned["after"], planned["snapshot"]) == (b"", None, None)
    assert uses() == (0, 0)
    assert ids(query(client, goods, conditions, None, "PLAN", planned["plan"])) == [*range(5)]
    assert uses() == (1, 0)
    query(client, goods, conditions, None)
    assert uses() == (2, 1)
