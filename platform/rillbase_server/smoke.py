"""Smoke test of an installation: ``python -m rillbase_server.smoke URL``.

It needs no credentials and changes nothing. The exit status is 0 if all responses are correct.
"""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request

TIMEOUT_S = 30.0


def fetch(url: str) -> tuple[int, bytes]:
    """Return status and body, also for error statuses."""
    request = urllib.request.Request(url)  # noqa: S310 -- the operator's
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def complaints(base: str) -> list[str]:
    """Return a problem for each unexpected response."""
    problems = []
    status, body = fetch(f"{base}/readyz")
    readiness = json.loads(body)
    if status != 200 or readiness["status"] != "ready":  # noqa: PLR2004 -- HTTP's own
        problems.append(f"/readyz responded with {status}: {json.dumps(readiness)}")
    for path, expected in (
        ("/healthz", 200),
        ("/api/v1/tenants", 401),
        ("/v1/collections/any/documents/any", 401),
    ):
        status, body = fetch(f"{base}{path}")
        if status != expected:
            problems.append(f"{path} responded with {status} instead of {expected}: {body[:200]!r}")
    return problems


def main(arguments: list[str]) -> int:
    (base,) = arguments
    problems = complaints(base.rstrip("/"))
    sys.stdout.write("\n".join(problems or [f"{base} responds as expected"]) + "\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
