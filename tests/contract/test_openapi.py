"""The OpenAPI document is complete, and the server conforms to it whatever it receives."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from rillbase_server.pages import openapi_document
from tenants.models import Quota
from tests.caller import Caller, anonymous, signed_in, with_key
from tests.documents.collection import make_collection
from tests.make import TenantAccount, make_tenant

#: Requests for each operation; about sixty operations keep this below a minute.
EXAMPLES = 12


def document() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        body: dict[str, Any] = json.loads(openapi_document())
    return body


DOCUMENT = document()
OPERATIONS = {
    str(operation.definition.raw["operationId"]): operation
    for operation in (
        result.ok()  # type: ignore[union-attr]
        for result in schemathesis.openapi.from_dict(DOCUMENT).get_all_operations()
    )
}


#: Answers without an end; tests/realtime/live reads them.
ENDLESS = {"documents_live"}


@schemathesis.serializer("application/x-ndjson")
def _lines(context: object, value: object) -> bytes:
    """Send generated text as it is: lines, most of them malformed."""
    return str(value).encode()


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (path, method, operation)
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
        if method in ("get", "post", "put", "patch", "delete")
    ]


def test_the_document_is_openapi_3_1_and_served(server: str) -> None:
    answer = anonymous(server).get("/api/openapi.json")
    assert answer.json()["openapi"].startswith("3.1")
    assert answer.json()["paths"].keys() == DOCUMENT["paths"].keys()


@pytest.mark.parametrize(("path", "method", "operation"), operations())
def test_every_operation_is_described(path: str, method: str, operation: dict[str, Any]) -> None:
    assert operation.get("summary"), f"{method} {path} has no summary"
    assert operation.get("tags"), f"{method} {path} has no tag"
    assert operation["responses"].keys() - {"default"}, f"{method} {path} has no answer"


def test_the_docs_page_loads_nothing_from_other_servers(server: str) -> None:
    page = anonymous(server).get("/api/docs").text
    assert "http://" not in page
    assert "https://" not in page
    loaded = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)
    assert {Path(path).suffix for path in loaded} == {".css", ".js", ".svg"}
    for path in loaded:
        assert anonymous(server).get(path).status_code == 200


def caller_for(server: str, operation: Any, account: TenantAccount) -> Caller:
    path = operation.path
    if "/auth/" in path:
        return anonymous(server)
    if "{tenant}" in path or path.startswith("/v1/"):
        return with_key(server, account.admin_key)
    return signed_in(server, account.owner)


# The server's threads draw random numbers while the strategy runs, which Hypothesis would attribute
# to it.
@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")
@pytest.mark.parametrize("name", sorted(OPERATIONS.keys() - ENDLESS))
def test_every_response_is_a_documented_one(server: str, name: str) -> None:
    operation, account = OPERATIONS[name], make_tenant(plan="dedicated")
    plenty = {"requests_per_s": 1_000_000, "requests_burst": 1_000_000}
    Quota(tenant=account.tenant, limits=plenty).save(using="staff")
    caller = caller_for(server, operation, account)
    if "{collection}" in operation.path:
        things = make_collection(server, account=account)
        things.insert({"_id": "a"})
        caller = things.caller

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def holds(case: Any) -> None:
        if "tenant" in (case.path_parameters or {}):
            case.path_parameters["tenant"] = account.slug
        if "collection" in (case.path_parameters or {}):
            case.path_parameters["collection"] = things.name
        response = case.call(base_url=server, headers=caller.headers)
        case.validate_response(response, checks=CHECKS)

    holds()
