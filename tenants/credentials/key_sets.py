"""Issuers' key sets (JWKS), hosted on servers that tenants choose.

A set is fetched by the guarded outbound client and cached for a few minutes; an unknown key id
triggers a new fetch, at most twice a minute. While its server is unreachable the old set stays in
use.

Such a server may hang on purpose, and any holder of a publishable key can send tokens for it. So
each set has at most one fetch in flight, failures are cached like responses, and only a few threads
of the process may wait for key sets, fewer still for those of one tenant: the others use the cached
set, or respond with 503 immediately.
"""

from __future__ import annotations

import contextlib
import hashlib
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
from foundation.outbound import InvalidResponse, OutboundError, OutboundResponse, outbound_client
from tenants.credentials.cache import ShortCache, check_may_load

FRESH_S = 300.0
RETRY_S = 30.0
KEPT_S = 3600.0
MAX_KEY_SETS = 2_000
#: Well below the number of threads that serve requests.
WAITING_AT_MOST = 8
WAITING_AT_MOST_OF_A_TENANT = 2


@dataclass(frozen=True, slots=True)
class IssuerKey:
    """A key of a set, and the digest by which a later set is compared with it."""

    key: jwt.PyJWK
    digest: str


@dataclass(frozen=True, slots=True)
class _KeySet:
    keys: Mapping[str, IssuerKey]
    fetched_at: float
    #: Why the last fetch failed.
    failure: str = ""

    def is_fresh_for(self, key_id: str) -> bool:
        age_s = time.monotonic() - self.fetched_at
        return age_s < (FRESH_S if key_id in self.keys else RETRY_S)


_key_sets: ShortCache[_KeySet] = ShortCache(ttl_s=KEPT_S, max_entries=MAX_KEY_SETS, is_polled=False)


class _FetchSlots:
    """Bounds the waiting threads, in total and per tenant."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: Counter[UUID] = Counter()

    @contextmanager
    def waiter_slot(self, tenant_id: UUID) -> Iterator[bool]:
        """Return whether a slot is free, and hold it for the duration of the block."""
        with self._lock:
            free = (
                self._waiters.total() < WAITING_AT_MOST
                and self._waiters[tenant_id] < WAITING_AT_MOST_OF_A_TENANT
            )
            self._waiters[tenant_id] += free
        try:
            yield free
        finally:
            with self._lock:
                self._waiters[tenant_id] -= free
                self._waiters += Counter()  # drops tenants without waiters


_waiting_slots = _FetchSlots()
_calls: dict[str, Future[_KeySet]] = {}
#: Sets that a background thread is about to fetch.
_refreshing: set[str] = set()
_lock = threading.Lock()


def find_key(tenant_id: UUID, url: str, key_id: str) -> IssuerKey:
    """Return a key of the set at `url`, for a tenant, or raise why there is none."""
    key_set = _key_sets.get(url)
    if key_set is None or not key_set.is_fresh_for(key_id):
        key_set = _newer(tenant_id, url, key_set)
    if key_id in key_set.keys:
        return key_set.keys[key_id]
    if key_set.failure and not key_set.keys:
        raise _unavailable(key_set.failure)
    raise InvalidCredentials("The token's key is not in the issuer's key set.")


def is_withdrawn(tenant_id: UUID, url: str, key_id: str, digest: str) -> bool:
    """Return whether the set at `url`, as far as it is cached, lacks a key that it had. An old set
    is fetched in the background, since the caller has no time to wait.
    """
    key_set = _key_sets.get(url)
    if key_set is None or not key_set.is_fresh_for(key_id):
        _refresh(tenant_id, url)
    if key_set is None or not key_set.keys:
        return False
    key = key_set.keys.get(key_id)
    return key is None or key.digest != digest


def _refresh(tenant_id: UUID, url: str) -> None:
    """Fetch the set in a thread, unless a fetch is in flight."""
    with _lock:
        if url in _calls or url in _refreshing:
            return
        _refreshing.add(url)

    def fetch() -> None:
        try:
            with contextlib.suppress(Unavailable):
                _newer(tenant_id, url, _key_sets.get(url))
        finally:
            with _lock:
                _refreshing.discard(url)

    threading.Thread(target=fetch, daemon=True).start()


def _newer(tenant_id: UUID, url: str, known: _KeySet | None) -> _KeySet:
    """Return the current set, or the cached one if too many threads wait already."""
    check_may_load()
    with _waiting_slots.waiter_slot(tenant_id) as free:
        if free:
            return _read(url, known)
    if known is None:
        raise _unavailable("Too many key sets are being read at the moment. Retry.")
    return known


def _read(url: str, known: _KeySet | None) -> _KeySet:
    """Fetch the set, or wait for the fetch that is in flight."""
    with _lock:
        current, call = _key_sets.get(url), _calls.get(url)
        if current is not None and current is not known:
            return current
        own_call = call is None
        if call is None:
            call = _calls[url] = Future()
    if own_call:
        _fetch(url, known, call)
    return call.result()


def _fetch(url: str, known: _KeySet | None, call: Future[_KeySet]) -> None:
    """Fetch the set; others may be waiting for the result."""
    try:
        try:
            fresh = _KeySet(_download(url), time.monotonic())
        except OutboundError as error:
            fresh = _KeySet(known.keys if known else {}, time.monotonic(), str(error))
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


def _download(url: str) -> Mapping[str, IssuerKey]:
    return outbound_client().probe("GET", url, _read_keys)


def _read_keys(answer: OutboundResponse) -> Mapping[str, IssuerKey]:
    """Parse a JWKS document. Unsupported kinds of keys are skipped."""
    if not answer.successful:
        raise InvalidResponse(f"The key set's server responded with status {answer.status}.")
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise InvalidResponse("The key set is not a JWKS document.") from error
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise InvalidResponse("The key set is not a JWKS document.")
    keys_by_id: dict[str, IssuerKey] = {}
    for entry in entries:
        try:
            digest = hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()
            keys_by_id[str(entry.get("kid", ""))] = IssuerKey(jwt.PyJWK(entry), digest)
        except (jwt.PyJWTError, ValueError, TypeError, AttributeError):
            continue
    return keys_by_id
