"""A caller that tries many wrong credentials is blocked, and no other caller is."""

from __future__ import annotations

import pytest
import requests

from data_plane.calls import Call, DataPlane
from data_plane.http import CallResponse, HttpOperation, json_answer
from foundation.asgi import Message, Receive, Scope, Send
from rillbase_server.edge import Edge, EdgeSettings
from tenants import keys
from tests.asgi_driver import Answer as Answered
from tests.asgi_driver import ask, http_scope
from tests.browser import from_own_address
from tests.caller import problem
from tests.make import make_tenant

PER_MINUTE = 5


@pytest.fixture(autouse=True)
def _few(settings_environment: pytest.MonkeyPatch) -> None:
    settings_environment.setenv("RILLBASE_REFUSALS_PER_MINUTE", str(PER_MINUTE))


@pytest.fixture
def client() -> requests.Session:
    """A client with a unique address."""
    session = requests.Session()
    session.mount("http://", from_own_address())
    return session


@pytest.fixture
def valid() -> dict[str, str]:
    return {"Authorization": f"Bearer {make_tenant().admin_key}"}


def wrong() -> dict[str, str]:
    """A well-formed key that was never issued."""
    return {"Authorization": f"Bearer {keys.mint(keys.Prefix.SECRET).text}"}


@pytest.mark.parametrize("path", ["/v1/whoami", "/api/v1/tenants/demo", "/api/v1/me/tokens"])
def test_many_unknown_keys_from_one_address_end_in_429(
    server: str, client: requests.Session, path: str
) -> None:
    for _ in range(PER_MINUTE):
        problem(client.get(server + path, headers=wrong()), 401, "invalid_credentials")
    late = client.get(server + path, headers=wrong())
    problem(late, 429, "rate_limited")
    assert int(late.headers["Retry-After"]) <= 60 / PER_MINUTE


def test_mistyped_keys_bad_sessions_and_calls_without_any_count_too(
    server: str, client: requests.Session
) -> None:
    url = server + "/api/v1/tenants/demo"
    given = [{"Authorization": "Bearer rbk_dev_x"}, {"Cookie": "rillbase_session=x"}, {}, {}, {}]
    assert [client.get(url, headers=h).status_code for h in given] == [401] * PER_MINUTE
    problem(client.get(url), 429, "rate_limited")


def test_a_valid_key_is_not_held_up_by_wrong_ones_from_its_address(
    server: str, client: requests.Session, valid: dict[str, str]
) -> None:
    for _ in range(PER_MINUTE):
        client.get(server + "/v1/whoami", headers=wrong())
    problem(client.get(server + "/v1/whoami", headers=wrong()), 429, "rate_limited")
    assert client.get(server + "/v1/whoami", headers=valid).status_code == 200


def test_another_address_is_not_affected(server: str, client: requests.Session) -> None:
    for _ in range(PER_MINUTE + 1):
        client.get(server + "/v1/whoami", headers=wrong())
    other = requests.Session()
    other.mount("http://", from_own_address())
    problem(other.get(server + "/v1/whoami", headers=wrong()), 401, "invalid_credentials")


async def _answer(_call: Call) -> CallResponse:
    return json_answer({})


async def _nothing(_scope: Scope, _receive: Receive, _send: Send) -> None:
    raise AssertionError("nobody else is asked")


async def _ask_data_plane(address: str, headers: dict[str, str]) -> Answered:
    plane = DataPlane(_nothing, [HttpOperation("GET", "/v1/things", _answer, {})])
    scope = http_scope("GET", "/v1/things", {"Host": "localhost", **headers}, (address, 5000))
    return await ask(Edge(plane, EdgeSettings(1000, 1000)), scope)


async def test_the_data_plane_counts_refusals_as_well(valid: dict[str, str]) -> None:
    address = f"2001:db8:{keys.random_token().encode().hex()[:4]}:7::"
    statuses = [
        (await _ask_data_plane(f"{address}{number:x}", wrong())).status
        for number in range(1, PER_MINUTE + 2)
    ]
    assert statuses == [401] * PER_MINUTE + [429]
    assert (await _ask_data_plane(f"{address}1", valid)).status == 200


async def test_the_data_plane_reads_no_body_before_authentication() -> None:
    async def read_all(call: Call) -> CallResponse:
        return json_answer(len(await call.body.read(1000)))

    async def nobody_reads() -> Message:
        raise AssertionError("the body was read")

    plane = DataPlane(_nothing, [HttpOperation("POST", "/v1/things", read_all, {})])
    statuses = []

    async def send(message: Message) -> None:
        statuses.append(message.get("status"))

    scope = http_scope("POST", "/v1/things", {"Host": "localhost", **wrong()})
    await plane({**scope, "state": {}}, nobody_reads, send)
    assert statuses[0] == 401
