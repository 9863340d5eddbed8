"""The examples in the reference of the Python SDK run, and print what they say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

import pytest

import rillbase.dbapi
from scripts.sdk_reference import python
from scripts.sdk_reference.entry import Entry, Example
from scripts.write_sdk_reference import DBAPI_NAMES

if TYPE_CHECKING:
    from tests.make import TenantAccount
    from tests.realtime.live.conftest import BackgroundProcesses

pytestmark = pytest.mark.timeout(300)

#: What a line prints, as its comment says: `# ada`, or `# ada, then bob`.
PRINTED = re.compile(r"print\(.*\)  # (.+)$", re.MULTILINE)
#: Programs catch errors and do not construct them.
NOT_SHOWN = frozenset({"constructor"})
USERS: list[dict[str, Any]] = [{"_id": "ada", "name": "Ada"}, {"_id": "bob", "name": "Bob"}]
TODOS: list[dict[str, Any]] = [
    {"_id": "milk", "title": "Buy milk", "done": False, "rank": 1, "owner": "ada"},
    {"_id": "rent", "title": "Pay rent", "done": True, "rank": 2, "owner": "bob"},
    {"_id": "plants", "title": "Water plants", "done": False, "rank": 3, "owner": "ada"},
]
TABLES = {
    "orders": {
        "columns": {"id": "int64", "customer": "string", "amount": "double"},
        "key": ["id"],
    }
}
ENTRIES = python.exports(rillbase)
DRIVER_ENTRIES = python.entries(rillbase.dbapi, DBAPI_NAMES)


def examples(entry: Entry) -> Iterator[tuple[str, str]]:
    documented = [(entry.name, entry.prose)]
    documented += [(f"{entry.name}.{member.name}", member.prose) for member in entry.members]
    for name, prose in documented:
        for part in prose:
            if isinstance(part, Example):
                yield name, part.text


EXAMPLES = [example for entry in ENTRIES for example in examples(entry)]
DRIVER_EXAMPLES = [example for entry in DRIVER_ENTRIES for example in examples(entry)]


@dataclass
class Shop:
    """A tenant with the objects that the examples name, and what examples have printed."""

    url: str
    key: str
    printed: list[str] = field(default_factory=list)

    def fill(self) -> None:
        """Restore the documents that examples change."""
        with rillbase.Client(self.url, key=self.key) as db:
            for name, documents in {"todos": TODOS, "users": USERS}.items():
                collection = db.collection(name)
                collection.delete_many({})
                for document in documents:
                    collection.insert(document)

    def print(self, *values: object) -> None:
        self.printed.append(" ".join(map(str, values)))

    def run(self, code: str, *, is_async: bool) -> None:
        """Run an example with the objects that it names."""
        kind = "AsyncClient" if is_async else "Client"
        opened = f"{'async ' if is_async else ''}with {kind}({self.url!r}, key={self.key!r}) as db:"
        named = 'todos = db.collection("todos")\nvisits = db.aggregate("visits")\n'
        named += 'sales = db.dataset("sales")\n'
        program = f"{opened}\n{indent(named + self._filled(code), '    ')}\n"
        names: dict[str, Any] = {**vars(rillbase), "print": self.print}
        if not is_async:
            exec(compile(program, "example", "exec"), names)
            return
        import asyncio

        exec(compile(f"async def main():\n{indent(program, '    ')}", "example", "exec"), names)
        asyncio.run(names["main"]())

    def run_driver(self, code: str) -> None:
        """Run an example of `rillbase.dbapi`."""
        with rillbase.dbapi.connect(self.url, self.key, dataset="sales") as connection:
            names = {"connection": connection, "cursor": connection.cursor()}
            names |= {**vars(rillbase.dbapi), "print": self.print}
            exec(compile(self._filled(code), "example", "exec"), names)

    def check(self, code: str) -> None:
        """Compare what an example has printed with its comments."""
        expected = [line for text in PRINTED.findall(code) for line in text.split(", then ")]
        if expected:
            assert self.printed == expected

    def _filled(self, code: str) -> str:
        return code.replace("http://127.0.0.1:8080", self.url).replace("rbk_…", self.key)


@pytest.fixture(scope="module")
def shop(server: str, background: BackgroundProcesses) -> Shop:
    from tests.analytics.dataset_client import make_dataset
    from tests.caller import with_key
    from tests.make import make_key, make_tenant

    account: TenantAccount = make_tenant(plan="dedicated")
    admin = with_key(server, account.admin_key)
    for name in ("todos", "users"):
        assert admin.post(f"/api/v1/tenants/{account.slug}/collections", {"name": name}).ok
    visits = {"name": "visits", "dimensions": ["page"], "measures": {"count": {"op": "count"}}}
    assert admin.post(f"/api/v1/tenants/{account.slug}/aggregates", visits).ok
    make_dataset(server, account=account, name="sales", tables=TABLES)
    shop = Shop(server, make_key(account.tenant))
    with rillbase.Client(server, key=shop.key) as db:
        db.aggregate("visits").add({"page": "/"})
        order = {"id": 1, "customer": "ada", "amount": 9.5}
        db.dataset("sales").upload([order], table="orders", upload_id="day-1")
    return shop


def test_each_public_method_has_an_example() -> None:
    shown = {name for name, _ in EXAMPLES}
    missing = [
        f"{entry.name}.{member.name}"
        for entry in ENTRIES
        for member in entry.members
        if member.name not in NOT_SHOWN and f"{entry.name}.{member.name}" not in shown
    ]
    assert missing == []
    assert {"Client.constructor", "AsyncClient.constructor"} <= shown


def test_an_example_of_a_synchronous_call_awaits_nothing() -> None:
    for name, text in EXAMPLES:
        is_async = name.startswith("Async")
        assert is_async or not re.search(r"\b(await|async)\b|\bAsync", text), name


@pytest.mark.parametrize(("name", "text"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_an_example_prints_the_output_in_its_comments(
    shop: Shop, name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shop.fill()
    shop.printed.clear()
    shop.run(text, is_async=name.startswith("Async"))
    shop.check(text)


@pytest.mark.parametrize(
    ("name", "text"), DRIVER_EXAMPLES, ids=[name for name, _ in DRIVER_EXAMPLES]
)
def test_an_example_of_the_driver_prints_the_output_in_its_comments(
    shop: Shop, name: str, text: str
) -> None:
    shop.printed.clear()
    shop.run_driver(text)
    shop.check(text)
