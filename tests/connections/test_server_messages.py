"""A change at one server takes effect at the others at once, by a message.

The periodic checks, which have the same effect within a second, are disabled here unless Valkey is
down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgpack
import pytest
import redis

from connections.connection_registry import STOPPING, ConnectionRegistry
from foundation import server_messages
from foundation.errors import InvalidCredentials
from foundation.scope import scoped
from realtime.clusters import epochs
from realtime.grid.layout import CHANGED
from realtime.grid.size import GridSize
from tenants.credentials import facts
from tenants.credentials.authenticate import refuse_unusable_key
from tenants.credentials.changes import CredentialChanges
from tenants.models import ApiKey, Membership, Tenant, User
from tenants.roles import Role
from tests.caller import signed_in, with_key
from tests.make import TenantAccount, make_key, make_member, make_tenant
from tests.own_server import another_server
from tests.own_valkey import OwnValkey
from tests.realtime.client import greeted
from tests.waiting import wait_until

GROUP = "{rillbase}:layer::group:" + server_messages.SERVERS

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def messages_only(server: str, valkey_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch the periodic checks of this process's server off."""
    # Another test may have emptied the database.
    with redis.Redis.from_url(valkey_url) as client:
        wait_until(lambda: bool(client.exists(GROUP)), what="the server to join its group")
    judge = ConnectionRegistry.judge

    async def if_concerned(self: ConnectionRegistry, *concerned: Callable[..., bool]) -> None:
        if concerned:
            await judge(self, *concerned)

    monkeypatch.setattr(ConnectionRegistry, "judge", if_concerned)


def revoke(server: str, account: TenantAccount, key: str) -> None:
    caller = with_key(server, account.admin_key)
    path = f"/api/v1/tenants/{account.slug}/api-keys"
    items = caller.get(path).json()["items"]
    (key_id,) = [item["id"] for item in items if item["key_id"] == key.split("_")[2]]
    assert caller.delete(f"{path}/{key_id}").ok


@pytest.mark.usefixtures("messages_only")
def test_a_revoked_key_ends_its_connections_and_no_others(server: str) -> None:
    account = make_tenant()
    key, other = make_key(account.tenant), make_key(account.tenant)
    with greeted(server, key) as client, greeted(server, other) as neighbour:
        revoke(server, account, key)
        assert client.closed()[0] == 4401
        assert neighbour.ask("ping", "p")["type"] == "pong"


def _remove_membership(account: TenantAccount, member: str) -> None:
    with scoped(tenant_id=account.tenant.id):
        Membership.objects.get(user__email=member).delete()


def _suspend(account: TenantAccount, _: str) -> None:
    tenant = Tenant.objects.using("staff").get(pk=account.tenant.pk)
    tenant.state = Tenant.State.SUSPENDED
    tenant.save(using="staff")


def _lock_out(_: TenantAccount, member: str) -> None:
    user = User.objects.using("staff").get(email=member)
    user.is_active = False
    user.save(using="staff")


@pytest.mark.usefixtures("messages_only")
@pytest.mark.parametrize(
    "change", [_remove_membership, _suspend, _lock_out], ids=["member", "tenant", "user"]
)
def test_every_loss_of_access_ends_the_members_connections(
    server: str, change: Callable[[TenantAccount, str], None]
) -> None:
    account = make_tenant()
    member = make_member(account.tenant, Role.DEVELOPER)
    token = signed_in(server, member).post("/api/v1/me/tokens", {"name": "t"}).json()["secret"]
    with greeted(server, token, tenant=account.slug) as client:
        change(account, member.email)
        assert client.closed()[0] in (4401, 4403)


@pytest.mark.usefixtures("messages_only")
def test_changed_scopes_take_effect_immediately(server: str) -> None:
    account = make_tenant()
    text = make_key(account.tenant)
    with greeted(server, text) as client:
        unknown = client.ask("query", "1", collection="none")
        assert unknown["error"]["code"] == "not_found"
        with scoped(tenant_id=account.tenant.id):
            key = ApiKey.objects.get(key_id=text.split("_")[2])
            key.scopes = ["topics:read"]
            key.save()
        wait_until(
            lambda: client.ask("query", "2", collection="none")["error"]["code"] == "missing_scope",
            what="the scopes to hold",
        )


def test_what_a_message_names_is_evicted_from_the_caches() -> None:
    account = make_tenant()
    key_id = make_key(account.tenant).split("_")[2]
    known = facts.key_facts(key_id)
    with scoped(tenant_id=account.tenant.id):
        ApiKey.objects.filter(key_id=key_id).update(revoked_at=account.tenant.created_at)
    facts.evict(CredentialChanges(keys={key_id}))
    with pytest.raises(InvalidCredentials):
        refuse_unusable_key(facts.key_facts(key_id))
    assert facts.key_facts(key_id) is not known


class Tap:
    """Receives what servers send to a group, as a server process would."""

    def __init__(self, url: str, group: str) -> None:
        self._valkey = redis.Redis.from_url(url)
        self._key = "{rillbase}:layer:tap.tap!"
        self._valkey.zadd("{rillbase}:layer::group:" + group, {"tap.tap!tests": 2**31})

    def forget(self) -> None:
        self._valkey.delete(self._key)

    def types(self) -> set[str]:
        waiting = self._valkey.zrange(self._key, 0, -1)
        return {msgpack.unpackb(item[12:])["type"] for item in waiting}


@pytest.fixture
def tap(valkey_url: str) -> Iterator[Callable[[str], Tap]]:
    yield lambda group: Tap(valkey_url, group)
    with redis.Redis.from_url(valkey_url) as client:
        client.delete("{rillbase}:layer:tap.tap!")
        client.zrem(GROUP, "tap.tap!tests")


def test_changes_of_a_dedicated_grid_are_announced_to_servers(
    tap: Callable[[str], Tap],
) -> None:
    account = make_tenant()
    received = tap(server_messages.tenant_group(account.tenant.id))
    epochs.add(account.tenant.pk, GridSize(1))
    epochs.note_ready(epochs.dedicated_epochs(account.tenant.pk)[-1].grid.epoch)
    wait_until(lambda: received.types() == {CHANGED}, what="the message of the grid")
    received.forget()
    epochs.disown(account.tenant.pk)
    wait_until(lambda: received.types() == {CHANGED}, what="the message of its end")


def test_a_stopping_server_announces_it(tap: Callable[[str], Tap]) -> None:
    with another_server() as other:
        received = tap(server_messages.SERVERS)
        other.process.terminate()
        other.process.wait(60)
        wait_until(lambda: STOPPING in received.types(), what="the message of its end")


def test_a_revocation_takes_effect_although_valkey_has_stopped(valkey: OwnValkey) -> None:
    account = make_tenant()
    key = make_key(account.tenant)
    with another_server(EVENTS_URL=valkey.url) as other, greeted(other.url, key) as client:
        valkey.freeze()
        revoke(other.url, account, key)
        assert client.closed()[0] == 4401
        valkey.thaw()
