"""Tenants with clusters of their own, and the provisioner that creates those."""

from __future__ import annotations

import datetime
import json
from typing import TYPE_CHECKING, Any

from tests.caller import with_key
from tests.make import TenantAccount, make_tenant
from tests.waiting import wait_until

if TYPE_CHECKING:
    from realtime.models import Cluster
    from tests.kube.provisioner import Provisioner

START_S = 240.0
Object = dict[str, Any]


class TenantClusters:
    """Tenants with clusters, and their provisioner."""

    def __init__(self, provisioner: Provisioner, server: str) -> None:
        self.provisioner, self.plane, self._server = provisioner, provisioner.plane, server
        self._accounts: list[TenantAccount] = []

    def make(self, **members: object) -> TenantAccount:
        """Request a cluster for a tenant."""
        account = make_tenant(plan="dedicated")
        self._accounts.append(account)
        assert self.call(account, "POST", members) == 202
        return account

    def call(self, account: TenantAccount, method: str, body: object = None) -> int:
        caller = with_key(self._server, account.admin_key)
        return caller.call(method, f"/api/v1/tenants/{account.slug}/cluster", body).status_code

    def details(self, account: TenantAccount) -> Object:
        """Return the cluster as its tenant sees it."""
        caller = with_key(self._server, account.admin_key)
        body: Object = caller.get(f"/api/v1/tenants/{account.slug}/cluster").json()
        return body

    def reconcile(self, account: TenantAccount) -> list[Any]:
        """Reconcile a cluster now; return the changes to its objects."""
        from realtime.clusters.kubernetes.reconcile import reconcile

        steps: list[Any] = []
        self.make_due(account)
        reconcile(account.tenant.pk, self.provisioner.server(), steps.append)
        return steps

    def make_due(self, account: TenantAccount) -> None:
        now = datetime.datetime.now(datetime.UTC)
        self.rows(account).update(due_at=now)

    def rows(self, account: TenantAccount) -> Any:
        from realtime.models import Cluster

        return Cluster.unscoped.using("relay").filter(tenant_id=account.tenant.pk)

    def row(self, account: TenantAccount) -> Cluster:
        row: Cluster = self.rows(account).get()
        return row

    def until(self, account: TenantAccount, state: str) -> None:
        """Reconcile a cluster until the condition holds."""

        def reached() -> bool:
            self.reconcile(account)
            return str(self.details(account)["state"]) == state

        wait_until(reached, what=f"a cluster that is {state}", timeout_s=START_S)

    def namespace(self, account: TenantAccount) -> str:
        return f"{self.provisioner.name}-t-{account.tenant.pk.hex}"

    def kubectl(self, account: TenantAccount, *arguments: str) -> str:
        return self.plane.kubectl("--namespace", self.namespace(account), *arguments)

    def names(self, account: TenantAccount, kinds: str, *more: str) -> list[str]:
        return self.kubectl(account, "get", kinds, *more, "--output", "name").split()

    def close(self) -> None:
        from realtime.clusters import epochs

        for account in self._accounts:
            epochs.disown(account.tenant.pk)
            self.rows(account).delete()


def changed_objects(steps: list[Any]) -> dict[str, str]:
    """The changes, by object."""
    return {str(step.object): str(step.verb) for step in steps if str(step.verb) != "keep"}


def true_conditions(tenants: TenantClusters, account: TenantAccount) -> set[str]:
    """Return the conditions that hold."""
    conditions = tenants.details(account)["conditions"]
    return {condition["type"] for condition in conditions if condition["status"] == "True"}


def is_applied(tenants: TenantClusters, account: TenantAccount) -> bool:
    tenants.reconcile(account)
    return "Applied" in true_conditions(tenants, account)


def deployments_are_observed(tenants: TenantClusters, account: TenantAccount) -> bool:
    """Return whether the controller has processed all deployments, and writes no more revisions."""
    listed = json.loads(tenants.kubectl(account, "get", "deployments", "--output", "json"))
    return all(
        item["metadata"]["generation"] == item["status"].get("observedGeneration")
        for item in listed["items"]
    )
