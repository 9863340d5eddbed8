"""A client of the API server that reads, applies and deletes objects and writes events. Objects are
written with server-side apply: the server adopts the given fields, and a call that changes nothing
writes nothing. The paths of the few kinds are hard-coded, since discovering them would take further
calls and permissions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlencode

from realtime.clusters.kubernetes.objects.naming import MANAGER, Object

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

CONNECT_TIMEOUT_S, ANSWER_TIMEOUT_S = 3.0, 10.0
_OK, _NOT_FOUND, _CONFLICT, _OTHER = 200, 404, 409, 300

#: The path of each kind, in the order in which objects are created.
KINDS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "Namespace": ("/api/v1", "namespaces"),
        "RoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "rolebindings"),
        "ResourceQuota": ("/api/v1", "resourcequotas"),
        "LimitRange": ("/api/v1", "limitranges"),
        "ServiceAccount": ("/api/v1", "serviceaccounts"),
        "NetworkPolicy": ("/apis/networking.k8s.io/v1", "networkpolicies"),
        "Secret": ("/api/v1", "secrets"),
        "ConfigMap": ("/api/v1", "configmaps"),
        "Service": ("/api/v1", "services"),
        "Deployment": ("/apis/apps/v1", "deployments"),
        "PodDisruptionBudget": ("/apis/policy/v1", "poddisruptionbudgets"),
        "Pod": ("/api/v1", "pods"),
        "Event": ("/api/v1", "events"),
    }
)


class ApiServerUnavailable(Exception):
    """The API server did not answer in time."""


class ApiServerRejection(Exception):
    """The API server rejected a request."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """Names an object. A namespace has no namespace."""

    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, described: Object, kind: str = "") -> Reference:
        """Return the name of an object; in lists, they lack their kind."""
        metadata = cast("Object", described["metadata"])
        return cls(
            str(described.get("kind") or kind),
            str(metadata.get("namespace", "")),
            str(metadata.get("name", "")),
        )

    @property
    def path(self) -> str:
        return f"{_collection(self.kind, self.namespace)}/{self.name}"

    def __str__(self) -> str:
        return f"{self.kind.lower()}/{self.name}"


class ApiServer:
    """The API server. Methods raise `ApiServerUnavailable` or `ApiServerRejection`."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    def get(self, reference: Reference) -> Object | None:
        """Return an object; None if it does not exist."""
        try:
            return self._call("GET", reference.path)
        except ApiServerRejection as error:
            if error.status == _NOT_FOUND:
                return None
            raise

    def find(self, kind: str, namespace: str, selector: Mapping[str, str]) -> list[Object]:
        """Return the objects of a kind that have these labels."""
        labels = ",".join(f"{name}={value}" for name, value in selector.items())
        answer = self._call("GET", _collection(kind, namespace), {"labelSelector": labels})
        return cast("list[Object]", answer.get("items") or [])

    def apply(self, described: Object, *, dry_run: bool = False) -> Object:
        """Create or update an object as described. Return its new state."""
        parameters = {"fieldManager": MANAGER, "force": "true", "fieldValidation": "Strict"}
        if dry_run:
            parameters["dryRun"] = "All"
        path = Reference.of(described).path
        return self._call("PATCH", path, parameters, described, "application/apply-patch+yaml")

    def own(self, reference: Reference, managed_fields: list[Object], version: str) -> None:
        """Set the managers of an object's fields, unless the object has changed."""
        body: Object = {"metadata": {"managedFields": managed_fields, "resourceVersion": version}}
        self._call("PATCH", reference.path, {}, body, "application/merge-patch+json")

    def delete(self, reference: Reference) -> bool:
        """Delete an object with what belongs to it; return whether there was one."""
        body: Object = {"propagationPolicy": "Background"}
        try:
            self._call("DELETE", reference.path, {}, body)
        except ApiServerRejection as error:
            # Conflict: a namespace that is already being deleted.
            if error.status in (_NOT_FOUND, _CONFLICT):
                return False
            raise
        return True

    def create_event(self, event: Object, namespace: str) -> None:
        """Write an event about an object."""
        self._call("POST", _collection("Event", namespace), {}, event)

    def close(self) -> None:
        self._client.close()  # type: ignore[no-untyped-call]

    def _call(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, str] = MappingProxyType({}),
        body: Object | None = None,
        content_type: str = "application/json",
    ) -> Object:
        # Its own imports take seconds, and only this process needs them.
        from urllib3.exceptions import HTTPError  # noqa: PLC0415

        headers = {"Accept": "application/json", "Content-Type": content_type}
        url = self._client.configuration.host + path
        if parameters:
            url += "?" + urlencode(parameters)
        # A token from a file is read again once it is old.
        self._client.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        try:
            answer = self._client.rest_client.pool_manager.request(
                method,
                url,
                body=None if body is None else json.dumps(body).encode(),
                headers=headers,
                timeout=_timeout(),
                retries=False,
            )
        except (HTTPError, OSError) as error:
            raise ApiServerUnavailable(str(error)) from None
        return _read(answer.status, answer.data)


def _timeout() -> object:
    from urllib3 import Timeout  # noqa: PLC0415 -- see `_call`

    return Timeout(connect=CONNECT_TIMEOUT_S, read=ANSWER_TIMEOUT_S)


def _read(status: int, data: bytes) -> Object:
    try:
        body = cast("Object", json.loads(data))
    except ValueError:
        body = {"message": data[:200].decode(errors="replace")}
    if _OK <= status < _OTHER:
        return body
    message = str(body.get("message", ""))
    if status >= 500 or status == 429:  # noqa: PLR2004 -- HTTP's
        raise ApiServerUnavailable(f"{status}: {message}")
    raise ApiServerRejection(status, str(body.get("reason", status)), message)


def _collection(kind: str, namespace: str) -> str:
    group, plural = KINDS[kind]
    return f"{group}/namespaces/{namespace}/{plural}" if namespace else f"{group}/{plural}"
