"""Tenants' clusters in a real Kubernetes: damaged by hand, repaired, and reconciled after failures.

No pods need to run for that.
"""

from __future__ import annotations

import datetime
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.kube.tenant_clusters import (
    START_S,
    TenantClusters,
    changed_objects,
    deployments_are_observed,
    is_applied,
)
from tests.make import TenantAccount, make_tenant, unique
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.kube.control_plane import ControlPlane

pytestmark = [pytest.mark.kube, pytest.mark.timeout(900)]

#: Its controllers add these to each namespace.
_OF_KUBERNETES = ("configmap/kube-root-ca.crt", "serviceaccount/default")


def _names_of_ours(tenants: TenantClusters, account: TenantAccount) -> list[str]:
    """Return the objects of a namespace, without those that Kubernetes adds at any time."""
    kinds = "secrets,configmaps,services,networkpolicies,serviceaccounts,resourcequotas,limitranges"
    names = tenants.names(account, f"{kinds},deployments,poddisruptionbudgets,rolebindings")
    return [name for name in names if name not in _OF_KUBERNETES]


def test_manual_changes_are_reverted(tenants: TenantClusters) -> None:
    account = tenants.make()
    wait_until(lambda: is_applied(tenants, account), what="all objects")
    (driver,) = tenants.names(account, "deployments")
    name = driver.rpartition("/")[2]
    before = _names_of_ours(tenants, account)

    tenants.kubectl(account, "scale", driver, "--replicas=3")
    tenants.kubectl(account, "set", "env", driver, "RILLBASE_LOG_LEVEL=DEBUG", "ADDED=by-hand")
    sidecar = {"spec": {"template": {"spec": {"containers": [{"name": "spy", "image": "spy"}]}}}}
    tenants.kubectl(account, "patch", driver, "--patch", json.dumps(sidecar))
    opened = '{"spec": {"ingress": [{}]}}'
    tenants.kubectl(account, "patch", "networkpolicy", "closed", "--type=merge", "--patch", opened)
    added = {"data": {"ADDED": "Ynk=", "EVENTS_URL": "b3RoZXI="}}
    tenants.kubectl(account, "patch", "secret", "grid", "--patch", json.dumps(added))
    level = "pod-security.kubernetes.io/enforce=privileged"
    tenants.plane.kubectl("label", "--overwrite", "namespace", tenants.namespace(account), level)
    for object_name in ("serviceaccount/executor", "resourcequota/cluster", f"service/{name}"):
        tenants.kubectl(account, "delete", object_name)

    changed: dict[str, str] = {}

    def driver_is_reverted() -> bool:
        # Its controller may change it at the same time: then the next pass reverts it.
        changed.update(changed_objects(tenants.reconcile(account)))
        return f"deployment/{name}" in changed

    wait_until(driver_is_reverted, what="the driver's deployment to be reverted")
    assert changed == {
        f"namespace/{tenants.namespace(account)}": "change",
        f"deployment/{name}": "change",
        "networkpolicy/closed": "change",
        "secret/grid": "change",
        "serviceaccount/executor": "create",
        "resourcequota/cluster": "create",
        f"service/{name}": "create",
    }
    after = _names_of_ours(tenants, account)
    assert sorted(after) == sorted(before)
    body = json.loads(tenants.kubectl(account, "get", driver, "--output", "json"))
    (box,) = body["spec"]["template"]["spec"]["containers"]
    variables = {variable["name"]: variable.get("value") for variable in box["env"]}
    assert "ADDED" not in variables
    assert variables["RILLBASE_LOG_LEVEL"] == "INFO"
    assert body["spec"]["replicas"] == 1
    secret = json.loads(tenants.kubectl(account, "get", "secret", "grid", "--output", "json"))
    assert "ADDED" not in secret["data"]
    assert changed_objects(tenants.reconcile(account)) == {}

    said = tenants.kubectl(account, "get", "events", "--field-selector", "reason=Changed")
    assert "spec.replicas" in said
    # The columns that people look for.
    listed = tenants.plane.kubectl(
        *("get", "deployments", "--all-namespaces", "-L", "rillbase.dev/tenant")
    )
    assert account.slug in listed


@pytest.fixture
def machine(plane: ControlPlane, tmp_path: Path) -> Iterator[None]:
    """A node on which pods appear to run, and end on request."""
    from tests.kube.kubelet import Kubelet

    kubelet = Kubelet(plane, tmp_path)
    yield
    kubelet.close()


def test_an_orphaned_namespace_is_removed(tenants: TenantClusters, machine: None) -> None:
    from realtime.clusters.kubernetes.reconcile import orphans

    lost, kept = tenants.make(), tenants.make()
    for created in (lost, kept):
        wait_until(lambda created=created: is_applied(tenants, created), what="all objects")  # type: ignore[misc]
    server = tenants.provisioner.server()
    tenants.rows(lost).delete()
    result = {orphan.name: orphan for orphan in orphans(server)}
    assert tenants.namespace(lost) in result
    assert tenants.namespace(kept) not in result
    server.delete(result[tenants.namespace(lost)])
    wait_until(
        lambda: tenants.namespace(lost) not in tenants.plane.kubectl("get", "namespaces"),
        what="the namespace to go",
        timeout_s=START_S,
    )
    assert tenants.namespace(kept) in tenants.plane.kubectl("get", "namespaces")


def test_a_tenant_whose_cluster_fails_delays_no_other(tenants: TenantClusters) -> None:
    failing, fine = tenants.make(), tenants.make()
    # A namespace that is being removed, and cannot be, takes nothing.
    space = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": tenants.namespace(failing), "finalizers": ["example.com/never"]},
    }
    tenants.plane.apply(space)
    tenants.plane.kubectl("delete", "namespace", tenants.namespace(failing), "--wait=false")
    try:
        for number in range(1, 4):
            tenants.reconcile(failing)
            assert tenants.row(failing).failures == number
            assert tenants.row(failing).due_at > datetime.datetime.now(datetime.UTC)
        assert tenants.row(failing).state == "failing"
        (condition,) = tenants.details(failing)["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == (
            "Applied",
            "False",
            "Forbidden",
        )
        assert "terminated" in condition["message"]
        wait_until(lambda: is_applied(tenants, fine), what="the other one's objects")
        assert tenants.row(fine).failures == 0
    finally:
        free = '{"metadata": {"finalizers": null}}'
        tenants.plane.kubectl(
            "patch", "namespace", tenants.namespace(failing), "--type=merge", "--patch", free
        )
    wait_until(lambda: is_applied(tenants, failing), what="the first one's objects, too")
    assert tenants.row(failing).failures == 0


def test_a_cluster_is_never_reconciled_twice_at_once(tenants: TenantClusters) -> None:
    from realtime.clusters.kubernetes.reconcile import claim

    account = tenants.make()
    tenants.make_due(account)
    assert claim(account.tenant.pk) is not None
    assert claim(account.tenant.pk) is None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_run_that_an_api_server_cuts_off_is_done_again(
    tenants: TenantClusters, number: signal.Signals
) -> None:
    from realtime.clusters.kubernetes.reconcile import reconcile

    account = tenants.make()
    wait_until(lambda: is_applied(tenants, account), what="all objects")
    # Controllers that lose the API server while they start end for good.
    wait_until(lambda: deployments_are_observed(tenants, account), what="the controllers to start")
    assert tenants.call(account, "PATCH", {"node_size": "medium", "write_partitions": 4}) == 202
    plane, taken = tenants.plane, 0

    def cut_off(step: object) -> None:
        nonlocal taken
        taken += 1
        if taken == 6:
            plane.signal("kube-apiserver", number)

    try:
        reconcile(account.tenant.pk, tenants.provisioner.server(), cut_off)
        row = tenants.row(account)
        (applied,) = [condition for condition in row.conditions if condition["type"] == "Applied"]
        assert (applied["status"], applied["reason"]) == ("Unknown", "ApiServerUnavailable")
        assert (row.failures, row.state) == (1, "failing")
    finally:
        if number is signal.SIGSTOP:
            plane.signal("kube-apiserver", signal.SIGCONT)
        else:
            plane.start("kube-apiserver")
    wait_until(lambda: is_applied(tenants, account), what="all objects")
    assert len(tenants.names(account, "deployments")) == 2
    # The controller adds the revision of a deployment, which a pass at that time takes for its own
    # change. It is late if it has to reconnect to a new API server.
    wait_until(
        lambda: deployments_are_observed(tenants, account), what="the controller of deployments"
    )
    changed: dict[str, str] = {}

    def succeeds() -> bool:
        # A pass that conflicts with another controller fails, and is repeated.
        changed.update(changed_objects(tenants.reconcile(account)))
        return tenants.row(account).failures == 0

    wait_until(succeeds, what="a pass without a conflict")
    assert changed == {}


def test_the_command_line_shows_its_actions_and_executes_them(
    tenants: TenantClusters,
    capsys: pytest.CaptureFixture[str],
    settings_environment: pytest.MonkeyPatch,
) -> None:
    from django.core.management import CommandError, call_command

    account = tenants.make()
    kubeconfig = str(tenants.plane.kubeconfig)
    settings_environment.setenv("RILLBASE_CLUSTERS_KUBECONFIG", kubeconfig)

    def output_of(action: str) -> str:
        call_command("kube", action, account.slug)
        return capsys.readouterr().out

    planned = output_of("plan")
    assert "+ namespace/" in planned
    assert "+ deployment/grid-" in planned
    assert "Nothing was changed" in planned
    assert tenants.namespace(account) not in tenants.plane.kubectl("get", "namespaces")

    done = output_of("apply")
    assert "Done: " in done
    assert "Applied" in done
    assert "All objects are as described." in output_of("plan")
    (driver,) = tenants.names(account, "deployments")
    tenants.kubectl(account, "scale", driver, "--replicas=2")
    assert "spec.replicas: 2 → 1" in output_of("diff")
    status = output_of("status")
    assert f"{account.slug} is pending" in status
    assert "not ready" in status

    for slug, complaint in (
        (unique("nobody"), "does not exist"),
        (make_tenant().slug, "no dedicated grid"),
    ):
        with pytest.raises(CommandError, match=complaint):
            call_command("kube", "status", slug)
