"""A tenant's limits: its plan, overridden by quotas that staff have granted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from ipaddress import ip_address, ip_network
from types import MappingProxyType

from django.db import models

from foundation.environment import environment
from foundation.errors import QuotaExceeded
from foundation.limits import Limit
from foundation.request_context import client_address
from tenants.models.tenant import Tenant

#: Every limit, with the value for a plan that does not set it.
LIMITS: Mapping[str, int] = MappingProxyType(
    {
        "requests_per_s": 50,
        "requests_burst": 200,
        "members": 5,
        "api_keys": 10,
        "webhooks": 3,
        "issuers": 2,
        "saved_queries": 20,
        "collections": 20,
        "sources": 2,
        "topics": 20,
        "aggregates": 10,
        "datasets": 5,
        "dataset_bytes": 1_000_000_000,
        "connections": 100,
        "subscriptions": 1_000,
        "cluster_write_partitions": 0,
    }
)

#: Counters of later features for the tenant in scope, by limit.
counts: dict[str, Callable[[], int]] = {}

#: Requests of a signed-in user outside any tenant, and of an address without credentials.
USER_REQUESTS_PER_S, USER_REQUESTS_BURST = 20.0, 100
ANONYMOUS_REQUESTS_PER_S, ANONYMOUS_REQUESTS_BURST = 5.0, 30
#: The prefix usually assigned to one IPv6 customer.
IPV6_NETWORK_BITS = 64


def effective_limits(tenant: Tenant) -> dict[str, int]:
    """Return every limit of a tenant whose plan and quota are loaded."""
    quota = getattr(tenant, "quota", None)
    return {**LIMITS, **tenant.plan.limits, **(quota.limits if quota is not None else {})}


def request_limits(
    tenant_id: str, credential: str, limits: Mapping[str, int], calls: int = 1
) -> tuple[Limit, ...]:
    """Return the limits that a request counts against: the tenant's and the credential's.

    A credential may use at most what its tenant may, so that a single runaway key can be
    identified; a tenant's keys share the tenant's rate.
    """
    rate, burst = limits["requests_per_s"], limits["requests_burst"]
    return _of_tenant_and_key(
        tenant_id,
        credential,
        (rate, burst),
        (limits.get("key_requests_per_s", rate), limits.get("key_requests_burst", burst)),
        calls,
    )


@lru_cache(maxsize=10_000)
def _of_tenant_and_key(
    tenant_id: str, credential: str, tenants: tuple[int, int], keys: tuple[int, int], calls: int
) -> tuple[Limit, ...]:
    return (
        Limit("tenant", f"t:{tenant_id}", float(tenants[0]), tenants[1], calls),
        Limit("key", f"c:{credential}", float(keys[0]), keys[1], calls),
    )


def user_limits(user_id: str) -> list[Limit]:
    """Return the limits of a request outside any tenant."""
    return [Limit("user", f"u:{user_id}", USER_REQUESTS_PER_S, USER_REQUESTS_BURST)]


def anonymous_limits() -> list[Limit]:
    """Return the limits of a request without credentials."""
    return [
        Limit(
            "address",
            f"a:{caller_network()}",
            ANONYMOUS_REQUESTS_PER_S,
            ANONYMOUS_REQUESTS_BURST,
        )
    ]


def refusal_limits() -> list[Limit]:
    """Return the limits of calls rejected for their credentials (401)."""
    per_minute = environment().rillbase_refusals_per_minute
    return [Limit("refused", f"a:{caller_network()}", per_minute / 60, per_minute)]


def caller_network() -> str:
    """Return the key of limits by address: an IPv4 address, or an IPv6 customer's network."""
    text = client_address.get()
    try:
        address = ip_address(text)
    except ValueError:
        return text
    if address.version == 4:  # noqa: PLR2004 -- the protocol's number
        return text
    return str(ip_network((address, IPV6_NETWORK_BITS), strict=False))


def register_count(limit: str, count: Callable[[], int]) -> None:
    """Register how a later feature counts usage of a limit. For `AppConfig.ready`."""
    counts[limit] = count


def ensure_room(tenant: Tenant, limit: str, rows: models.QuerySet[models.Model]) -> None:
    """Raise `QuotaExceeded` if one more of `rows` would exceed the limit.

    The tenant's row is locked for the rest of the transaction, so that two callers cannot both take
    the last slot.
    """
    Tenant.objects.select_for_update().get(pk=tenant.pk)
    allowed = effective_limits(tenant)[limit]
    if rows.count() >= allowed:
        raise QuotaExceeded(
            f"The tenant's quota allows at most {allowed} {limit.replace('_', ' ')}."
        )
