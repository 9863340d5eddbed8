"""What an assistant can and cannot do through the Model Context Protocol."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scripts.write_site_markdown import ROOT, full_text, pages
from tenants.roles import Role
from tests.caller import signed_in
from tests.make import make_key, make_member
from tests.sdk.assistant import PYTHON_SDK, Assistant, assistant

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture
def shop(server: str) -> CollectionClient:
    """A collection of three documents, of which an anonymous caller may read one."""
    from tests.documents.collection import make_collection

    shop = make_collection(
        server,
        rules={"read": {"public": True}},
        schema={"type": "object", "properties": {"n": {"type": "number"}}},
        indexes=[("by-n", [("n", 1)], False)],
    )
    shop.insert_many([{"_id": f"d{n}", "n": n, "public": n == 1} for n in range(3)])
    return shop


@pytest.fixture
def reader(shop: CollectionClient) -> Iterator[Assistant]:
    """An assistant with the tenant's admin key, without `--allow-writes`."""
    with assistant(shop.caller.base, shop.account.admin_key) as reader:
        yield reader


def nested(depth: int) -> bytes:
    """A call with a filter that is nested this deep. Some depths pass Python's parser and not its
    encoder, which a tool calls with more frames on the stack.
    """
    call = {"name": "query", "arguments": {"collection": "c", "filter": 0}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    conditions = '{"$nor":[' * (depth // 2) + "{}" + "]}" * (depth // 2)
    return json.dumps(message).replace('"filter": 0', f'"filter": {conditions}').encode()


def _ids(result: Any) -> list[Any]:
    return [item["id"] for item in result["items"]]


def _arrays(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if schema.get("type") == "array":
        yield schema
    items = [schema["items"]] if "items" in schema else []
    for part in [*schema.get("properties", {}).values(), *items]:
        yield from _arrays(part)


def test_the_server_names_its_revision_and_offers_only_tools_that_read(reader: Assistant) -> None:
    initialized = reader.request("initialize", **INITIALIZE)["result"]
    assert initialized["protocolVersion"] == "2025-06-18"
    assert initialized["capabilities"] == {"tools": {}}
    project = tomllib.loads((PYTHON_SDK / "pyproject.toml").read_text())["project"]
    assert initialized["serverInfo"] == {"name": "rillbase", "version": project["version"]}
    # A notification has no response: the next one is that of the ping.
    reader.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    assert reader.request("ping") == {"result": {}}
    tools = reader.request("tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["query", "schema", "explain", "docs"]
    assert all(tool["annotations"]["readOnlyHint"] for tool in tools)
    for schema in (tool["inputSchema"] for tool in tools):
        assert (schema["type"], schema["additionalProperties"]) == ("object", False)
        # Some clients reject an array whose items have no schema.
        assert all("items" in part for part in _arrays(schema))


def test_an_assistant_queries_page_by_page(reader: Assistant, shop: CollectionClient) -> None:
    arguments = {"collection": shop.name, "filter": {"n": {"$gte": 0}}, "sort": [["n", -1]]}
    first = reader.call("query", **arguments, limit=2, projection={"n": 1})
    assert [item["document"] for item in first["items"]] == [
        {"_id": "d2", "n": 2},
        {"_id": "d1", "n": 1},
    ]
    rest = reader.call("query", **arguments, limit=2, cursor=first["next_cursor"])
    assert _ids(rest) == ["d0"]


def test_a_truncated_result_reports_how_much_is_missing(
    reader: Assistant, shop: CollectionClient
) -> None:
    shop.insert_many([{"_id": f"e{n}", "n": n, "text": "é" * 3_000} for n in range(30)])
    result = reader.call("query", collection=shop.name, limit=33)
    assert len(json.dumps(result, ensure_ascii=False)) <= 40_000
    assert len(result["items"]) + result["omitted"] == 33
    assert _ids(result)[:3] == ["d0", "d1", "d2"]
    assert "next_cursor" not in result


def test_an_assistant_reads_schemas_and_indexes(reader: Assistant, shop: CollectionClient) -> None:
    (listed,) = reader.call("schema")["items"]
    single = reader.call("schema", collection=shop.name)
    assert listed["name"] == single["name"] == shop.name
    assert single["schema"]["properties"] == {"n": {"type": "number"}}
    assert [index["name"] for index in single["indexes"]] == ["by-n"]


def test_an_assistant_reads_the_plan_of_a_query(reader: Assistant, shop: CollectionClient) -> None:
    plan = reader.call("explain", collection=shop.name, filter={"n": 2})
    assert "by-n" in json.dumps(plan)
    error = reader.error("explain", filter={"n": 2})
    assert error["code"] == "invalid_parameter"


def test_an_assistant_learns_why_a_subscriber_gets_a_change(
    todos: CollectionClient,
) -> None:
    todos.insert({"_id": "a", "n": 2})
    with assistant(todos.caller.base, todos.account.admin_key) as reader:
        query = {"collection": todos.name, "filter": {"n": {"$gt": 3}}}
        story = reader.call("explain", **query, document="a")
        assert story["verdict"] == "no_match"
        for document in ("a", 7, {"$oid": "0123456789abcdef01234567"}):
            error = reader.error("explain", subscription="no such", document=document)
            assert error["code"] == "not_found"
        error = reader.error("explain", subscription="no such", document={"$oid": "malformed"})
        assert error["code"] == "invalid_id"


def test_an_assistant_searches_the_documentation(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "llms-full.txt").write_text(full_text(pages(ROOT)))
    handler = partial(_QuietHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        with assistant(f"http://127.0.0.1:{site.server_port}", "rbk_none") as reader:
            text = reader.call("docs", search="webhook signature verification")
            assert text.startswith("<!-- guide/webhooks.md -->")
            assert len(text) <= 40_000
            assert reader.call("docs", search="xyzzy") == "No section has these words."
        (tmp_path / "docs" / "llms-full.txt").write_text("<!doctype html>")
        with assistant(f"http://127.0.0.1:{site.server_port}", "rbk_none") as reader:
            assert reader.error("docs", search="webhook")["code"] == "not_found"
        site.shutdown()


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: object) -> None:
        """Log nothing."""


def test_an_assistant_can_write_only_if_its_process_allows_it(shop: CollectionClient) -> None:
    operations = [{"update": {"id": "d0", "update": {"$set": {"n": 7}}}}, {"delete": {"id": "d2"}}]
    arguments = {"collection": shop.name, "operations": operations}
    with assistant(shop.caller.base, shop.account.admin_key) as reader:
        response = reader.request("tools/call", name="write", arguments=arguments)
        assert response["error"] == {"code": -32602, "message": "Unknown tool: 'write'."}
    assert shop.versions() == {"d0": 1, "d1": 1, "d2": 1}
    with assistant(shop.caller.base, shop.account.admin_key, ["--allow-writes"]) as writer:
        (*_, write) = writer.request("tools/list")["result"]["tools"]
        assert write["annotations"] == {"readOnlyHint": False, "destructiveHint": True}
        writer.call("write", **arguments)
    assert [document["n"] for document in shop.query()] == [7, 1]
    key = make_key(shop.account.tenant, scopes=["documents:read"])
    with assistant(shop.caller.base, key, ["--allow-writes"]) as writer:
        assert writer.error("write", **arguments)["code"] == "missing_scope"


@pytest.mark.parametrize(
    "filter",
    [{}, {"public": False}, {"$or": [{"public": True}, {"_id": "d0"}]}, {"$nor": [{"n": -1}]}],
    ids=str,
)
def test_no_filter_shows_documents_that_the_key_may_not_read(
    shop: CollectionClient,
    filter: dict[str, object],  # noqa: A002
) -> None:
    key = shop.anonymous().headers["Rillbase-Key"]
    with assistant(shop.caller.base, key) as reader:
        result = reader.call("query", collection=shop.name, filter=filter)
        assert set(_ids(result)) <= {"d1"}
        assert reader.error("explain", collection=shop.name)["code"] == "forbidden"
        assert reader.error("schema")["code"] == "forbidden"


def test_a_viewers_token_reads_documents_and_schemas_and_writes_nothing(
    shop: CollectionClient,
) -> None:
    viewer = make_member(shop.account.tenant, Role.VIEWER)
    tokens = signed_in(shop.caller.base, viewer).post("/api/v1/me/tokens", {"name": "assistant"})
    tenant = {"RILLBASE_TENANT": shop.account.slug}
    with assistant(
        shop.caller.base, tokens.json()["secret"], ["--allow-writes"], **tenant
    ) as reader:
        assert len(_ids(reader.call("query", collection=shop.name))) == 3
        assert reader.call("schema", collection=shop.name)["name"] == shop.name
        operations = [{"delete": {"id": "d0"}}]
        error = reader.error("write", collection=shop.name, operations=operations)
        assert error["code"] == "missing_scope"


def test_a_key_reaches_no_other_collection_and_no_other_address(shop: CollectionClient) -> None:
    key = make_key(shop.account.tenant, scopes=["documents:read"], collections=["others"])
    with assistant(shop.caller.base, key) as reader:
        assert reader.error("query", collection=shop.name)["code"] == "forbidden"
        for name in ("../whoami?", "others/documents:delete?x=", "..", "a\r\nHost: x", ""):
            assert reader.error("query", collection=name)["code"] == "invalid_parameter"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "invalid_parameter"),
        ({"collection": 7}, "invalid_parameter"),
        ({"collection": "things", "limit": 101}, "invalid_parameter"),
        ({"collection": "things", "limit": True}, "invalid_parameter"),
        ({"collection": "things", "filter": []}, "invalid_parameter"),
        ({"collection": "things", "group": {}}, "invalid_parameter"),
        ({"collection": "absent"}, "not_found"),
        ({"collection": "things", "filter": {"$where": "1"}}, "unsupported_operator"),
    ],
    ids=str,
)
def test_a_call_that_is_rejected_gets_the_code_of_the_error(
    reader: Assistant, shop: CollectionClient, arguments: dict[str, object], code: str
) -> None:
    if arguments.get("collection") == "things":
        arguments = {**arguments, "collection": shop.name}
    error = reader.error("query", **arguments)
    assert error["code"] == code
    assert error["detail"]


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        *((nested(depth), -32600) for depth in (300, 900, 960)),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":NaN}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":"\\ud800"}}', -32700),
        (b"[]", -32600),
        (b"null", -32600),
        (b'{"jsonrpc":"2.0"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600),
        (b" " * (3 * 1024 * 1024) + b'{"jsonrpc":"2.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"resources/list"}', -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["query"]}}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"drop"}}', -32602),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_hostile_line_gets_an_error_and_the_next_one_its_response(
    line: bytes, number: int
) -> None:
    with assistant("http://127.0.0.1:9", "rbk_none") as reader:
        assert reader.response(line)["error"]["code"] == number
        assert reader.request("ping") == {"result": {}}


def test_an_unreachable_server_is_an_error_of_the_tool() -> None:
    with assistant("http://127.0.0.1:9", "rbk_none") as reader:
        assert reader.error("query", collection="things")["code"] == "connection_lost"


@pytest.mark.parametrize(
    ("url", "key", "complaint"),
    [
        ("file:///etc/passwd", "rbk_none", "RILLBASE_URL"),
        ("http://127.0.0.1:9", "", "RILLBASE_KEY"),
    ],
)
def test_a_missing_setting_stops_the_process(url: str, key: str, complaint: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rillbase.mcp"],
        env={"PYTHONPATH": str(PYTHON_SDK), "RILLBASE_URL": url, "RILLBASE_KEY": key},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert complaint in done.stderr
