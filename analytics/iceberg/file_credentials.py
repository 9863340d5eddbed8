"""Short-lived S3 credentials for the files of one dataset.

The id of an access key is sealed: it names the dataset, the expiry, and the caller's credential
without containing it, so revoking a key also ends the access to files. The secret is derived from
the id, so neither is stored.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from django.utils import timezone

from analytics.iceberg.signature import SignedRequest, read_signature
from data_plane.calls import counted
from data_plane.http import CallHead
from foundation import opaque_tokens
from foundation.errors import CredentialsExpired, InvalidCredentials, NotFound
from foundation.request_context import client_address
from tenants.credentials.credential_reference import (
    CredentialReference,
    reference_of,
    resolve_reference,
)
from tenants.credentials.facts import TenantFacts
from tenants.principals import Principal, PrincipalKind

LIFETIME_S = 3600
_ID_PURPOSE = "iceberg files: id of an access key"
_SECRET_PURPOSE = "iceberg files: secret of an access key"


@dataclass(frozen=True, slots=True)
class FileCredentials:
    """An S3 access key."""

    access_key_id: str
    secret: str


def issue(principal: Principal, head: CallHead, dataset_id: UUID) -> FileCredentials:
    """Return credentials with which the caller can read the files of a dataset."""
    reference = reference_of(principal, head)
    fields = [
        reference.kind,
        reference.reference,
        reference.tenant_slug,
        dataset_id.hex,
        int(time.time()) + LIFETIME_S,
    ]
    access_key_id = opaque_tokens.write(_ID_PURPOSE, json.dumps(fields).encode())
    return FileCredentials(access_key_id, _secret_of(access_key_id))


async def signed_by(head: CallHead, dataset: str) -> tuple[Principal, TenantFacts]:
    """Return the caller that signed a request for a file of a dataset, and its tenant."""
    return await counted(lambda: _check(head, dataset))


def _check(head: CallHead, dataset: str) -> tuple[Principal, TenantFacts]:
    signature = read_signature(head.headers.get("Authorization", ""))
    try:
        plain = opaque_tokens.read(_ID_PURPOSE, signature.access_key_id)
    except opaque_tokens.UnknownToken:
        raise InvalidCredentials("The access key does not exist.") from None
    kind, reference, tenant_slug, dataset_id, expires_at = json.loads(plain)
    request = SignedRequest(head.method, head.path, head.query, head.headers)
    signature.check(request, _secret_of(signature.access_key_id), timezone.now())
    if expires_at <= time.time():
        raise CredentialsExpired("The access key has expired. Load the table again.")
    if str(UUID(dataset_id)) != dataset:
        raise NotFound("The access key is for another dataset.")
    return resolve_reference(
        CredentialReference(PrincipalKind(kind), reference, tenant_slug, client_address.get())
    )


def _secret_of(access_key_id: str) -> str:
    return opaque_tokens.write(_SECRET_PURPOSE, sha256(access_key_id.encode()).digest())
