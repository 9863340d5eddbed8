"""Issuers' key sets (JWKS), which lie on servers that tenants choose.

A set is fetched by the guarded outbound client and kept for a few minutes; an unknown key id makes
it be fetched again, at most twice a minute. While its server is away the old set stays in use.

Such a server may hang on purpose, and whoever has a publishable key can send tokens for it. So a
set has one call under way at a time, a failure is remembered like an answer, and few threads of
the process wait for key sets at all, fewer still for those of one tenant: the others answer with
what is known, or 503 at once.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

import jwt

from foundation.errors import FieldProblem, InvalidCredentials, Unavailable
from foundation.outbound import Answer, InvalidResponse, OutboundError, outbound_client
from tenants.credentials.cache import ShortCache, check_may_load

FRESH_S = 300.0
RETRY_S = 30.0
KEPT_S = 3600.0
MAX_KEY_SETS = 2_000
#: Well below the threads that answer requests.
WAITING_AT_MOST = 8
WAITING_AT_MOST_OF_A_TENANT = 2


@dataclass(frozen=True, slots=True)
class _KeySet:
    keys: Mapping[str, jwt.PyJWK]
    fetched_at: float
    #: Why the last call brought nothing.
    failure: str = ""

    def is_fresh_for(self, key_id: str) -> bool:
        age_s = time.monotonic() - self.fetched_at
        return age_s < (FRESH_S if key_id in self.keys else RETRY_S)


_key_sets: ShortCache[_KeySet] = ShortCache(ttl_s=KEPT_S, max_entries=MAX_KEY_SETS)


class _Places:
    """Who may wait at the moment: so many in all, and so many of one tenant."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: Counter[UUID] = Counter()

    @contextmanager
    def one_for(self, tenant_id: UUID) -> Iterator[bool]:
        """Tell whether there is a place, and hold it for as long as the block runs."""
        with self._lock:
            free = (
                self._taken.total() < WAITING_AT_MOST
                and self._taken[tenant_id] < WAITING_AT_MOST_OF_A_TENANT
            )
            self._taken[tenant_id] += free
        try:
            yield free
        finally:
            with self._lock:
                self._taken[tenant_id] -= free
                self._taken += Counter()  # forgets tenants of whom nobody waits


_places = _Places()
_calls: dict[str, Future[_KeySet]] = {}
_lock = threading.Lock()


def find_key(tenant_id: UUID, url: str, key_id: str) -> jwt.PyJWK:
    """Return a key of the set at `url`, for a tenant, or raise why there is none."""
    known = _key_sets.get(url)
    if known is None or not known.is_fresh_for(key_id):
        known = _newer(tenant_id, url, known)
    if key_id in known.keys:
        return known.keys[key_id]
    if known.failure and not known.keys:
        raise _unavailable(known.failure)
    raise InvalidCredentials("The token's key is not in the issuer's key set.")


def _newer(tenant_id: UUID, url: str, known: _KeySet | None) -> _KeySet:
    """Return the set as it is now, or the known one when that cannot be had without a crowd."""
    check_may_load()
    with _places.one_for(tenant_id) as free:
        if free:
            return _read(url, known)
    if known is None:
        raise _unavailable("Too many key sets are being read at the moment.")
    return known


def _read(url: str, known: _KeySet | None) -> _KeySet:
    """Make the call, or wait for the one that is under way."""
    with _lock:
        current, call = _key_sets.get(url), _calls.get(url)
        if current is not None and current is not known:
            return current
        mine = call is None
        if call is None:
            call = _calls[url] = Future()
    if mine:
        _fetch(url, known, call)
    return call.result()


def _fetch(url: str, known: _KeySet | None, call: Future[_KeySet]) -> None:
    """Make the call that others may be waiting for."""
    try:
        try:
            fresh = _KeySet(_download(url), time.monotonic())
        except OutboundError as away:
            fresh = _KeySet(known.keys if known else {}, time.monotonic(), str(away))
        _key_sets.forget(url)
        call.set_result(_key_sets.get_or_load(url, lambda: fresh))
    except BaseException as failure:
        call.set_exception(failure)
        raise
    finally:
        with _lock:
            del _calls[url]


def _unavailable(why: str) -> Unavailable:
    return Unavailable(
        "The issuer's key set cannot be read.", errors=[FieldProblem("", "jwks_unavailable", why)]
    )


def _download(url: str) -> Mapping[str, jwt.PyJWK]:
    return outbound_client().probe("GET", url, _read_keys)


def _read_keys(answer: Answer) -> Mapping[str, jwt.PyJWK]:
    """Read a JWKS document. Keys of kinds that are not understood are left out."""
    if not answer.successful:
        raise InvalidResponse(f"The key set's server answered {answer.status}.")
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError) as malformed:
        raise InvalidResponse("The key set is not a JWKS document.") from malformed
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise InvalidResponse("The key set is not a JWKS document.")
    found: dict[str, jwt.PyJWK] = {}
    for entry in entries:
        try:
            found[str(entry.get("kid", ""))] = jwt.PyJWK(entry)
        except (jwt.PyJWTError, ValueError, TypeError, AttributeError):
            continue
    return found
