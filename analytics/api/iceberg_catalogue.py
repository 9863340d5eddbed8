"""The Iceberg REST catalogue of a tenant, for reading.

Namespaces are datasets, and tables are their tables and views. Unknown parameters are ignored,
because clients send what newer versions of the specification define.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from pyiceberg.catalog.rest import (
    Capability,
    ListNamespaceResponse,
    ListTableResponseEntry,
    ListTablesResponse,
    NamespaceResponse,
    TableResponse,
)
from pyiceberg.catalog.rest.scan_planning import StorageCredential
from pyiceberg.typedef import IcebergBaseModel

from analytics import facts
from analytics.api.dataset_access import in_scope, in_thread
from analytics.api.iceberg_operations import FILES
from analytics.facts import READ
from analytics.iceberg.committed_states import CommittedStates, committed_states, tables_in
from analytics.iceberg.file_credentials import issue
from analytics.iceberg.file_locations import FileLocations
from analytics.iceberg.visible_table import missing, open_table
from analytics.models import Dataset
from data_plane.calls import Call
from data_plane.http import CallResponse, json_answer
from foundation.api.cursors import open_sealed, seal
from foundation.errors import FieldProblem, InvalidParameter, NotFound

MAX_PAGE = 1_000
_MAX_TOKEN_CHARS = 1_000
_ENDPOINTS = (
    Capability.V1_LIST_NAMESPACES,
    Capability.V1_LOAD_NAMESPACE,
    Capability.V1_NAMESPACE_EXISTS,
    Capability.V1_LIST_TABLES,
    Capability.V1_LOAD_TABLE,
    Capability.V1_TABLE_EXISTS,
)


async def config(call: Call) -> CallResponse:
    """GET config: the tenant, which is in the paths of the other calls, and what they are."""
    facts.allow(call.principal, READ)
    return json_answer(
        {
            "defaults": {},
            "overrides": {"prefix": call.tenant.slug},
            "endpoints": [str(endpoint) for endpoint in _ENDPOINTS],
        }
    )


async def namespaces(call: Call) -> CallResponse:
    """GET the names of datasets."""
    _check_caller(call)
    if parent := call.head.query.get("parent"):
        await in_scope(call, lambda: facts.find(parent))
        return _answer(ListNamespaceResponse(namespaces=[]))
    names = await in_scope(
        call, lambda: list(Dataset.objects.order_by("name").values_list("name", flat=True))
    )
    shown, following = _page(call, names, "namespaces")
    listed = [(name,) for name in shown]
    return _answer(ListNamespaceResponse(namespaces=listed, next_page_token=following))


async def namespace(call: Call) -> CallResponse:
    """GET a dataset."""
    _check_caller(call)
    name = call.parameters["namespace"]
    row = await in_scope(call, lambda: facts.find(name))
    return _answer(NamespaceResponse(namespace=(row.name,)))


async def tables(call: Call) -> CallResponse:
    """GET the names of a dataset's tables and views in the authority."""
    dataset_id, states = await _states(call)
    shown, following = _page(call, tables_in(states), f"tables:{dataset_id}")
    name = call.parameters["namespace"]
    listed = [ListTableResponseEntry(name=table, namespace=(name,)) for table in shown]
    return _answer(ListTablesResponse(identifiers=listed, next_page_token=following))


async def table(call: Call) -> CallResponse:
    """GET a table's metadata, with credentials for its files unless they are in an object store."""
    dataset_id, states = await _states(call)
    name = call.parameters["table"]
    if name not in tables_in(states):
        raise missing(name)
    locations = FileLocations(dataset_id)
    config = _reader_config(call, dataset_id) if locations.folder else {}
    # Some clients read only one of the two. DuckDB uses a single credential for files below the
    # table's location only, and data files are beside it.
    credentials = [
        StorageCredential(prefix=locations.public_prefix + folder, config=config)
        for folder in ("authority/", "iceberg/")
    ]

    def load() -> bytes:
        visible = open_table(dataset_id, name, states)
        response = TableResponse(
            metadata_location=locations.public(visible.location),
            metadata=visible.metadata(locations.public),
            config=config,
            storage_credentials=credentials if config else [],
        )
        return response.model_dump_json().encode()

    return CallResponse(body=await in_thread(load))


def _reader_config(call: Call, dataset_id: UUID) -> dict[str, str]:
    """Return the properties with which a reader's S3 client finds the files."""
    credentials = issue(call.principal, call.head, dataset_id)
    return {
        "s3.endpoint": f"{call.head.scheme}://{call.head.get_host()}{FILES}",
        "s3.access-key-id": credentials.access_key_id,
        "s3.secret-access-key": credentials.secret,
        "s3.path-style-access": "true",
        "s3.region": "rillbase",
        "client.region": "rillbase",
    }


async def _states(call: Call) -> tuple[UUID, CommittedStates]:
    """Return the dataset in the path, and its committed states."""
    _check_caller(call)
    name = call.parameters["namespace"]

    def read() -> tuple[UUID, CommittedStates]:
        dataset_id = facts.find(name).pk
        return dataset_id, committed_states(dataset_id)

    return await in_scope(call, read)


def _check_caller(call: Call) -> None:
    facts.allow(call.principal, READ)
    if call.parameters["tenant"] != call.tenant.slug:
        raise NotFound("The credentials belong to another tenant.")


def _page(call: Call, names: Sequence[str], kind: str) -> tuple[Sequence[str], str | None]:
    """Return one page of sorted names, and the token of the following one.

    Without a token, all names are returned: the client does not support pages.
    """
    token = call.head.query.get("pageToken")
    if token is None:
        return names, None
    bound = f"iceberg:{call.tenant.id}:{kind}".encode()
    if token:
        after = open_sealed(token[:_MAX_TOKEN_CHARS], bound).decode()
        names = [name for name in names if name > after]
    size = _page_size(call)
    shown = names[:size]
    more = len(names) > size
    return shown, seal(shown[-1].encode(), bound) if more else None


def _page_size(call: Call) -> int:
    text = call.head.query.get("pageSize", str(MAX_PAGE))
    plain = text.isascii() and text.isdigit() and len(text) <= len(str(MAX_PAGE))
    if not plain or not 1 <= int(text) <= MAX_PAGE:
        problem = FieldProblem("pageSize", "invalid", f"A whole number from 1 to {MAX_PAGE}.")
        raise InvalidParameter(errors=[problem])
    return int(text)


def _answer(model: IcebergBaseModel) -> CallResponse:
    return CallResponse(body=model.model_dump_json().encode())
