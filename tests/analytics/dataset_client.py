"""A dataset of a new tenant, for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa

from tests.caller import Caller, with_key
from tests.make import TenantAccount, make_tenant

Json = dict[str, Any]

ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"
NDJSON = "application/x-ndjson"

#: Shops and their orders.
SHOP: Json = {
    "name": "shop",
    "tables": {
        "orders": {
            "columns": {
                "id": "int64",
                "customer": "string",
                "amount": "double",
                "count": "int32",
                "paid": "bool",
                "day": "date",
                "at": "timestamp",
            },
            "key": ["id"],
            "views": {"by_customer": {"key": ["customer", "id"]}},
        },
        "stock": {
            "columns": {"place": "string", "item": "int64", "pieces": "int64", "note": "string"},
            "key": ["place", "item"],
        },
    },
}


@dataclass(frozen=True)
class DatasetClient:
    """A dataset, and a caller with all rights to it."""

    account: TenantAccount
    caller: Caller
    name: str
    id: UUID

    @property
    def path(self) -> str:
        return f"/v1/datasets/{self.name}"

    @property
    def control_path(self) -> str:
        return datasets(self.account, self.name)

    def upload(self, *lines: Json, **parameters: str) -> Json:
        """Upload lines as one upload."""
        answer = self.send("uploads", as_lines(lines), NDJSON, **parameters)
        assert answer.status_code in (200, 201), answer.text
        body: Json = answer.json()
        return body

    def insert(self, table: str, *rows: Json) -> Json:
        return self.upload(*({table: row} for row in rows))

    def send(self, address: str, content: bytes, media_type: str, **parameters: str) -> Any:
        """Send a body of any media type to a path below the dataset."""
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        path = f"{self.path}/{address}" + (f"?{query}" if query else "")
        return self.caller.call("POST", path, raw=content, Content_Type=media_type)

    def query(self, table: str, **request: object) -> Json:
        answer = self.caller.post(f"{self.path}/query", {"table": table, **request})
        assert answer.status_code == 200, answer.text
        body: Json = answer.json()
        return body

    def rows(self, table: str, **request: object) -> list[Json]:
        documents: list[Json] = self.query(table, **request)["rows"]
        return documents


def files_of(dataset_id: UUID) -> Path:
    """Return the local folder with a dataset's files."""
    from analytics.locations import folder_of

    folder = folder_of(dataset_id)
    assert isinstance(folder, Path)
    return folder


def datasets(account: TenantAccount, name: str = "") -> str:
    return f"/api/v1/tenants/{account.slug}/datasets" + (f"/{name}" if name else "")


def make_dataset(
    base: str, *, account: TenantAccount | None = None, **body: object
) -> DatasetClient:
    account = account or make_tenant(plan="dedicated")
    caller = with_key(base, account.admin_key)
    answer = caller.post(datasets(account), {**SHOP, **body})
    assert answer.status_code == 201, answer.text
    return DatasetClient(account, caller, answer.json()["name"], UUID(answer.json()["id"]))


def as_lines(lines: Iterable[Json]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def as_arrow(rows: pa.Table, **metadata: str) -> bytes:
    """Return an Arrow stream."""
    entries = {f"rillbase.{name}": value for name, value in metadata.items()}
    rows = rows.replace_schema_metadata(entries or None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())
