"""Checks signatures of requests: Amazon's Signature Version 4, in the header `Authorization`."""

from __future__ import annotations

import datetime
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import quote

from foundation.errors import InvalidCredentials

ALGORITHM = "AWS4-HMAC-SHA256"
#: How far the clock of a client may differ.
MAX_SKEW = datetime.timedelta(minutes=15)
_TIME = "%Y%m%dT%H%M%SZ"
_FORM = re.compile(
    rf"{ALGORITHM} Credential=(?P<key>[A-Za-z0-9_-]{{1,1000}})/(?P<date>[0-9]{{8}})"
    r"/(?P<region>[a-z0-9-]{1,60})/(?P<service>s3)/aws4_request, ?"
    r"SignedHeaders=(?P<headers>[a-z0-9-]+(;[a-z0-9-]+){0,50}), ?"
    r"Signature=(?P<signature>[0-9a-f]{64})"
)
_REQUIRED = {"host", "x-amz-date"}
_EMPTY = sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """The parts of a request that its signature covers."""

    method: str
    #: Decoded.
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RequestSignature:
    """The contents of `Authorization`."""

    access_key_id: str
    date: str
    region: str
    headers: tuple[str, ...]
    signature: str

    @property
    def scope(self) -> str:
        return f"{self.date}/{self.region}/s3/aws4_request"

    def check(self, request: SignedRequest, secret: str, now: datetime.datetime) -> None:
        """Raise `InvalidCredentials` unless the request was signed with this secret just now."""
        at = request.headers.get("x-amz-date", "")
        try:
            signed_at = datetime.datetime.strptime(at, _TIME).replace(tzinfo=datetime.UTC)
        except ValueError:
            raise InvalidCredentials("The header X-Amz-Date is missing or malformed.") from None
        if abs(now - signed_at) > MAX_SKEW or at[:8] != self.date:
            raise InvalidCredentials("The request was not signed within the last 15 minutes.")
        text = "\n".join((ALGORITHM, at, self.scope, _digest(self._canonical(request))))
        expected = hmac.new(self._key(secret), text.encode(), sha256).hexdigest()
        if not hmac.compare_digest(expected, self.signature):
            raise InvalidCredentials("The signature does not match the request.")

    def _canonical(self, request: SignedRequest) -> str:
        query = request.query.items()
        encoded = sorted((quote(name, safe="~"), quote(value, safe="~")) for name, value in query)
        lines = [
            f"{name}:{' '.join(request.headers.get(name, '').split())}" for name in self.headers
        ]
        return "\n".join(
            (
                request.method,
                quote(request.path, safe="/~"),
                "&".join(f"{name}={value}" for name, value in encoded),
                *lines,
                "",
                ";".join(self.headers),
                request.headers.get("x-amz-content-sha256", _EMPTY),
            )
        )

    def _key(self, secret: str) -> bytes:
        key = f"AWS4{secret}".encode()
        for part in self.scope.split("/"):
            key = hmac.new(key, part.encode(), sha256).digest()
        return key


def read_signature(authorization: str) -> RequestSignature:
    """Parse the header `Authorization`, or raise `InvalidCredentials`."""
    match = _FORM.fullmatch(authorization)
    if match is None:
        raise InvalidCredentials(f"The request must be signed with {ALGORITHM} in its headers.")
    headers = tuple(match["headers"].split(";"))
    if not set(headers) >= _REQUIRED:
        raise InvalidCredentials("The signature must cover the headers Host and X-Amz-Date.")
    return RequestSignature(
        match["key"], match["date"], match["region"], headers, match["signature"]
    )


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
