"""ETags and `If-Match`: changes apply only to the state that the caller has seen."""

from __future__ import annotations

import re

from django.http import HttpRequest

from foundation.errors import InvalidParameter, PreconditionFailed

_ETAG = re.compile(r'\A(?:W/)?"v(\d{1,18})"\Z')


def etag(version: int) -> str:
    """Return the ETag of a version."""
    return f'"v{version}"'


def check_if_match(request: HttpRequest, version: int) -> None:
    """Raise `PreconditionFailed` when the caller's `If-Match` names another version."""
    condition = request.headers.get("If-Match")
    if condition is None or condition.strip() == "*":
        return
    if version not in versions(condition, "If-Match"):
        raise PreconditionFailed(f"The resource is at version {version}.")


def not_modified(request: HttpRequest, version: int) -> bool:
    """Return whether the caller already has this version (`If-None-Match`)."""
    condition = request.headers.get("If-None-Match")
    if condition is None:
        return False
    return condition.strip() == "*" or version in versions(condition, "If-None-Match")


def versions(header: str, name: str) -> set[int]:
    """Return the versions that a header's ETags name."""
    numbers = set()
    for part in header.split(","):
        form = _ETAG.match(part.strip())
        if form is None:
            raise InvalidParameter(f'{name} must contain ETags of the form "v3", or *.')
        numbers.add(int(form[1]))
    return numbers
