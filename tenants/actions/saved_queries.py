"""Save, change, pin and delete a tenant's queries."""

from __future__ import annotations

import json
from collections.abc import Mapping

from django.db import IntegrityError, transaction
from django.db.models import F

from foundation.api.rendering import timestamp
from foundation.errors import FieldProblem, InvalidBody, NameTaken, QuotaExceeded
from foundation.json_types import JsonObject, JsonValue
from tenants import audit
from tenants.models import SavedQuery, Tenant
from tenants.principals import Principal
from tenants.quotas import ensure_room

MAX_QUERY_BYTES = 16 * 1024
#: On the overview, where each is a live query.
MAX_PINS = 12


def describe(saved: SavedQuery) -> JsonObject:
    """Return a saved query as the API shows it."""
    return {
        "id": str(saved.id),
        "name": saved.name,
        "kind": saved.kind,
        "source": saved.source,
        "query": json.loads(saved.query),
        "chart": saved.chart,
        "pin": saved.pin,
        "created_at": timestamp(saved.created_at),
        "updated_at": timestamp(saved.updated_at),
    }


def _target(saved: SavedQuery) -> audit.AuditTarget:
    return audit.AuditTarget("saved_query", str(saved.id))


def lock_pins(tenant: Tenant) -> None:
    """Lock the order of pins until the transaction ends.

    To be called before a saved query is locked: changing the order locks others as well.
    """
    Tenant.objects.select_for_update().get(pk=tenant.pk)


def do_create(principal: Principal, tenant: Tenant, values: Mapping[str, JsonValue]) -> SavedQuery:
    """Save a query."""
    ensure_room(tenant, "saved_queries", SavedQuery.objects.all())
    saved = SavedQuery(tenant_id=tenant.id)
    _assign(saved, values)
    _save(saved, is_new=True)
    audit.record(principal, "saved_query.created", _target(saved), after=describe(saved))
    return saved


def do_change(principal: Principal, saved: SavedQuery, values: Mapping[str, JsonValue]) -> None:
    """Change a saved query. The caller holds its lock, and that of the pins if `pin` changes."""
    before = describe(saved)
    _assign(saved, values)
    _save(saved, is_new=False)
    after = describe(saved)
    audit.record(principal, "saved_query.updated", _target(saved), before=before, after=after)


def do_delete(principal: Principal, saved: SavedQuery) -> None:
    """Delete a saved query. If it was pinned, the order of the others does not change."""
    target, before = _target(saved), describe(saved)
    saved.delete()
    audit.record(principal, "saved_query.deleted", target, before=before)


def _assign(saved: SavedQuery, values: Mapping[str, JsonValue]) -> None:
    for field in {"name", "kind", "source", "chart"} & set(values):
        setattr(saved, field, values[field])
    if "query" in values:
        saved.query = _as_text(values["query"])
    if "pin" in values:
        pin = values["pin"]
        saved.pin = _make_room(saved, pin) if isinstance(pin, int) else None


def _as_text(query: JsonValue) -> str:
    text = json.dumps(query, ensure_ascii=False, separators=(",", ":"))
    if len(text.encode()) > MAX_QUERY_BYTES:
        detail = f"A saved query has at most {MAX_QUERY_BYTES} bytes."
        raise InvalidBody(errors=[FieldProblem("/query", "too_large", detail)])
    return text


def _make_room(saved: SavedQuery, position: int) -> int:
    """Renumber the other pins to make room at a position. Return the position, at most the one
    after them.
    """
    pinned = SavedQuery.objects.filter(pin__isnull=False).exclude(pk=saved.pk).order_by("pin", "pk")
    others = list(pinned)
    if len(others) >= MAX_PINS:
        raise QuotaExceeded(f"At most {MAX_PINS} queries can be pinned.")
    target = min(position, len(others))
    for index, other in enumerate(others):
        number = index if index < target else index + 1
        if other.pin != number:
            changed = SavedQuery.objects.filter(pk=other.pk)
            changed.update(pin=number, version=F("version") + 1)
    return target


def _save(saved: SavedQuery, *, is_new: bool) -> None:
    try:
        with transaction.atomic():
            if is_new:
                saved.save(force_insert=True)
            else:
                saved.save_next_version()
    except IntegrityError:
        raise NameTaken("A saved query with this name already exists.") from None
