"""Requests of S3, signed as Amazon describes Signature Version 4."""

from __future__ import annotations

import datetime
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urljoin, urlsplit

import requests

from tests.waiting import TIMEOUT_S

_REGION = "here-1"


@dataclass
class S3Client:
    """Reads objects by path with the properties that the catalogue returns for a table."""

    config: Mapping[str, str]
    #: How much the clock of this client is fast.
    fast: datetime.timedelta = datetime.timedelta()

    def get(
        self, path: str, method: str = "GET", *, raw: str = "", **headers: str
    ) -> requests.Response:
        """Send a signed request. `path` is the object's path on the server, and `raw` how it is
        sent, which by default is the usual encoding.
        """
        url = self.url(raw or quote(path))
        signed = self.signed(method, url, path, headers)
        request = requests.Request(method, url, headers=signed).prepare()
        # Preparing it removes dots from the path.
        request.url = url
        with requests.Session() as session:
            return session.send(request, timeout=TIMEOUT_S)

    def url(self, path: str) -> str:
        """Return the URL of a path on the server."""
        return urljoin(self.config["s3.endpoint"], "/") + path.removeprefix("/")

    def signed(
        self, method: str, url: str, path: str, headers: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the headers of a signed request."""
        at = (datetime.datetime.now(datetime.UTC) + self.fast).strftime("%Y%m%dT%H%M%SZ")
        empty = hashlib.sha256(b"").hexdigest()
        covered = {
            "host": urlsplit(url).netloc,
            **{name.lower(): value for name, value in headers.items()},
            "x-amz-content-sha256": empty,
            "x-amz-date": at,
        }
        names = sorted(covered)
        lines = [f"{name}:{covered[name]}\n" for name in names]
        canonical = "\n".join([method, quote(path), "", "".join(lines), ";".join(names), empty])
        scope = f"{at[:8]}/{_REGION}/s3/aws4_request"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{digest}"
        key = b"AWS4" + self.config["s3.secret-access-key"].encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        credential = f"{self.config['s3.access-key-id']}/{scope}"
        covered["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={credential}, "
            f"SignedHeaders={';'.join(names)}, Signature={signature}"
        )
        return covered
