"""Compares two states of an object, and detects changes of other managers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from realtime.clusters.kubernetes.objects.naming import MANAGER, Object

#: Fields that the server maintains.
_SERVERS_OWN = frozenset(
    {"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink"}
)
#: Secret values are not shown.
HIDDEN = "…"


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """One field that differs. None: it is absent."""

    path: str
    before: object
    after: object


def differences(before: Object, after: Object) -> list[FieldDifference]:
    """Return the fields in which an object differs, ignoring those that the server maintains."""
    fields = list(_walk("", _comparable(before), _comparable(after)))
    if "Secret" in (before.get("kind"), after.get("kind")):
        return [FieldDifference(field.path, HIDDEN, HIDDEN) for field in fields]
    return fields


def _comparable(described: Object) -> Object:
    desired = {name: value for name, value in described.items() if name != "status"}
    metadata = cast("Object", desired.get("metadata") or {})
    own_metadata = {name: value for name, value in metadata.items() if name not in _SERVERS_OWN}
    # In lists, objects lack their kind.
    return {**desired, "metadata": own_metadata, "kind": None, "apiVersion": None}


def _walk(path: str, before: object, after: object) -> Iterator[FieldDifference]:
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            yield from _walk(f"{path}.{name}" if path else name, before.get(name), after.get(name))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _walk(f"{path}[{index}]", old, new)
    else:
        yield FieldDifference(path, before, after)


def taken_over(live: Object) -> list[Object] | None:
    """Return `managedFields` that claim the additions of others; None if there are none.

    Server-side apply keeps what others have added, such as a container or a variable. Once such
    fields count as applied by this manager, the next apply, which does not contain them, removes
    them.
    """
    metadata = cast("Object", live.get("metadata") or {})
    entries = cast("list[Object]", metadata.get("managedFields") or [])
    foreign = [entry for entry in entries if _is_foreign(entry)]
    if not foreign:
        return None
    own = [entry for entry in entries if entry.get("manager") == MANAGER and _is_applied(entry)]
    fields: Object = {}
    for entry in [*own, *foreign]:
        fields = _join(fields, cast("Object", entry.get("fieldsV1") or {}))
    first = (own or foreign)[0]
    joined = {**first, "manager": MANAGER, "operation": "Apply", "fieldsV1": fields}
    unchanged = [entry for entry in entries if entry not in foreign and entry not in own]
    return [joined, *unchanged]


def _is_foreign(entry: Object) -> bool:
    """Return whether another manager sets more than a label or a status."""
    fields = cast("Object", entry.get("fieldsV1") or {})
    decides = bool(set(fields) - {"f:metadata", "f:status"})
    return decides and entry.get("manager") != MANAGER and not entry.get("subresource")


def _is_applied(entry: Object) -> bool:
    return entry.get("operation") == "Apply" and not entry.get("subresource")


def _join(first: Object, second: Object) -> Object:
    joined = dict(first)
    for name, value in second.items():
        existing = joined.get(name)
        both = isinstance(existing, dict) and isinstance(value, dict)
        joined[name] = _join(cast("Object", existing), cast("Object", value)) if both else value
    return joined
