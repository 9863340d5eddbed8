"""Tenants' clusters in a real Kubernetes: made, resized, broken by hand, repaired and removed.

The drivers' pods are processes of this machine that run the very grid epochs that the objects say,
so that tenants' live queries are really watched by them.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis
import requests

from scripts import kube_tools
from tests.caller import with_key
from tests.kube import spark
from tests.make import MadeTenant, make_tenant, unique
from tests.own_valkey import free_port
from tests.waiting import wait_until

if TYPE_CHECKING:
    from realtime.grid.layout import GridEpoch
    from realtime.models import Cluster
    from tests.kube.control_plane import ControlPlane
    from tests.kube.provisioner import Provisioner

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]
COMES_UP_S = 240.0
Object = dict[str, Any]


class Drivers:
    """What the image does for drivers' pods: the epoch that the command names, in processes.

    They know what their objects tell them and nothing else of this installation.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        #: By epoch: where the newest driver answers.
        self.ports: dict[str, int] = {}

    def __call__(self, pod: Any, given: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        from tests.kube.kubelet import machine_environment

        if (pod.metadata.labels or {}).get("app.kubernetes.io/component") != "grid":
            return [], {}
        command = pod.spec.containers[0].command
        epoch = command[command.index("--epoch") + 1]
        self.ports[epoch] = free_port()
        here = {
            "RILLBASE_DATA_DIR": os.environ["RILLBASE_DATA_DIR"],
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "platform")]),
        }
        argv = [sys.executable, str(ROOT / "manage.py"), "grid", "--epoch", epoch]
        described = {**given, **self._secret(pod.metadata.namespace)}
        environment = {**described, **machine_environment(), **here, **self._launched(pod)}
        return [*argv, "--port", str(self.ports[epoch])], environment

    def _launched(self, pod: Any) -> dict[str, str]:
        """Say what launches the nodes."""
        return {"RILLBASE_GRID": "processes", "RILLBASE_GRID_MASTER": ""}

    def _secret(self, namespace: str) -> dict[str, str]:
        command = ("--namespace", namespace, "get", "secret", "grid", "--output", "json")
        found = json.loads(self._plane.kubectl(*command))["data"]
        return {name: base64.b64decode(value).decode() for name, value in found.items()}

    def is_ready(self, epoch: int) -> bool:
        """Whether a driver says so itself."""
        url = f"http://127.0.0.1:{self.ports[str(epoch)]}/readyz"
        return bool(requests.get(url, timeout=10).ok)


class SparkDrivers(Drivers):
    """Drivers as they are: Spark makes their executors' pods, which are processes here as well."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        super().__init__(plane)
        self._folder = folder

    def __call__(self, pod: Any, given: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        argv, environment = spark.as_executor(pod, given)
        return (argv, environment) if argv else super().__call__(pod, given)

    def _launched(self, pod: Any) -> dict[str, str]:
        """Use the objects' own settings of Spark, and the rights of the pod's own account."""
        namespace, account = pod.metadata.namespace, pod.spec.service_account_name
        (config,) = [each.config_map.name for each in pod.spec.volumes if each.config_map]
        folder = self._folder / pod.metadata.name
        folder.mkdir()
        return spark.lay_out(self._plane, namespace, config, account, folder)


class Tenants:
    """Tenants with clusters, and who looks after these."""

    def __init__(self, provisioner: Provisioner, server: str) -> None:
        self.provisioner, self.plane, self._server = provisioner, provisioner.plane, server
        self._made: list[MadeTenant] = []

    def make(self, **members: object) -> MadeTenant:
        """Have a tenant wish for a cluster."""
        made = make_tenant(plan="dedicated")
        self._made.append(made)
        assert self.call(made, "POST", members) == 202
        return made

    def call(self, made: MadeTenant, method: str, body: object = None) -> int:
        caller = with_key(self._server, made.admin_key)
        return caller.call(method, f"/api/v1/tenants/{made.slug}/cluster", body).status_code

    def shown(self, made: MadeTenant) -> Object:
        """Return the cluster as its tenant sees it."""
        caller = with_key(self._server, made.admin_key)
        found: Object = caller.get(f"/api/v1/tenants/{made.slug}/cluster").json()
        return found

    def look(self, made: MadeTenant) -> list[Any]:
        """Look after a cluster now; return what was done to its objects."""
        from realtime.clusters.kubernetes.reconcile import reconcile

        done: list[Any] = []
        self.due(made)
        reconcile(made.tenant.pk, self.provisioner.server(), done.append)
        return done

    def due(self, made: MadeTenant) -> None:
        now = datetime.datetime.now(datetime.UTC)
        self.rows(made).update(due_at=now)

    def rows(self, made: MadeTenant) -> Any:
        from realtime.models import Cluster

        return Cluster.unscoped.using("relay").filter(tenant_id=made.tenant.pk)

    def row(self, made: MadeTenant) -> Cluster:
        found: Cluster = self.rows(made).get()
        return found

    def until(self, made: MadeTenant, state: str) -> None:
        """Look after a cluster until it is so."""

        def reached() -> bool:
            self.look(made)
            return str(self.shown(made)["state"]) == state

        wait_until(reached, what=f"a cluster that is {state}", timeout_s=COMES_UP_S)

    def space(self, made: MadeTenant) -> str:
        return f"{self.provisioner.name}-t-{made.tenant.pk.hex}"

    def kubectl(self, made: MadeTenant, *arguments: str) -> str:
        return self.plane.kubectl("--namespace", self.space(made), *arguments)

    def names(self, made: MadeTenant, kinds: str, *more: str) -> list[str]:
        return self.kubectl(made, "get", kinds, *more, "--output", "name").split()

    def close(self) -> None:
        from realtime.clusters import epochs

        for made in self._made:
            epochs.disown(made.tenant.pk)
            self.rows(made).delete()


@pytest.fixture(scope="module")
def provisioner(plane: ControlPlane) -> Provisioner:
    if kube_tools.helm() is None:
        pytest.skip("helm is not here: python -m scripts.kube_tools helm")
    from tests.kube.provisioner import Provisioner

    return Provisioner(plane, unique("rb")[:20].rstrip("-"))


@pytest.fixture
def tenants(
    provisioner: Provisioner,
    server: str,
    settings_environment: pytest.MonkeyPatch,
) -> Iterator[Tenants]:
    settings_environment.setenv("RILLBASE_CLUSTERS_NAME", provisioner.name)
    settings_environment.setenv("RILLBASE_CLUSTERS_NAMESPACE", provisioner.namespace)
    found = Tenants(provisioner, server)
    yield found
    found.close()


@contextlib.contextmanager
def driving(found: Drivers, plane: ControlPlane, folder: Path, valkey_url: str) -> Iterator[None]:
    """Have a relay, and a machine on which drivers really run."""
    from tests.kube.kubelet import Kubelet
    from tests.realtime.live.conftest import Backstage

    with redis.Redis.from_url(valkey_url) as client:
        client.flushdb()
        backstage = Backstage(client)
        backstage.start("relay")
        (folder / "pods").mkdir()
        kubelet = Kubelet(plane, folder / "pods", found)
        try:
            yield
        finally:
            kubelet.close()
            backstage.close()


@pytest.fixture
def drivers(plane: ControlPlane, tmp_path: Path, valkey_url: str) -> Iterator[Drivers]:
    found = Drivers(plane)
    with driving(found, plane, tmp_path, valkey_url):
        yield found


@pytest.fixture
def spark_drivers(plane: ControlPlane, tmp_path: Path, valkey_url: str) -> Iterator[SparkDrivers]:
    found = SparkDrivers(plane, tmp_path)
    with driving(found, plane, tmp_path, valkey_url):
        yield found


def changed(steps: list[Any]) -> dict[str, str]:
    """By object: what was done to it, if anything."""
    return {str(step.object): str(step.verb) for step in steps if str(step.verb) != "keep"}


def test_a_cluster_comes_up_is_resized_sleeps_wakes_and_leaves_nothing(
    tenants: Tenants, drivers: Drivers, server: str
) -> None:
    from realtime.clusters import epochs, grids
    from tests.documents.collection import make_collection
    from tests.realtime.client import greeted
    from tests.realtime.live.answer import begin, subscribe

    made = tenants.make(write_partitions=1, idle_after_s=60)
    tenants.until(made, "running")
    assert holding(tenants, made) == {"Applied", "Running", "Watching"}
    assert changed(tenants.look(made)) == {}

    todos = make_collection(server, made=made)
    key = todos.caller.headers["Authorization"].removeprefix("Bearer ")
    with greeted(server, key) as client:
        answer = subscribe(client, "s", collection=todos.name)
        todos.insert({"_id": "a"})
        answer.until_shows([{"_id": "a"}])
        (before,) = epochs.of_tenant(made.tenant.pk)
        assert grids.queries(before) == 1
        assert drivers.is_ready(before.epoch)

        after = _resize(tenants, made, before)
        todos.insert({"_id": "b"})
        answer.until_shows([{"_id": "a"}, {"_id": "b"}])
        assert all(frame["type"] != "reset" for frame in answer.frames)

    _fall_asleep(tenants, made, after)

    with greeted(server, key) as client:
        answer = begin(client, "s", collection=todos.name)
        wait_until(lambda: grids.queries(after) == 1, what="the query to be registered")
        tenants.until(made, "running")
        answer.until("ready")
        todos.insert({"_id": "c"})
        answer.until_shows([{"_id": "a"}, {"_id": "b"}, {"_id": "c"}])

    _remove(tenants, made)
    assert tenants.space(made) not in tenants.plane.kubectl("get", "namespaces")
    assert epochs.in_force(made.tenant.pk) == []
    assert tenants.shown(made)["launcher"] == "shared"
    assert tenants.call(made, "POST", {}) == 202


def test_spark_makes_executors_within_the_tenants_bounds(
    tenants: Tenants, spark_drivers: SparkDrivers, server: str
) -> None:
    from tests.documents.collection import make_collection
    from tests.realtime.client import greeted
    from tests.realtime.live.answer import subscribe

    made = tenants.make(write_partitions=1)
    tenants.until(made, "running")
    (executor,) = tenants.names(made, "pods", "--selector=spark-role=executor")
    found = json.loads(tenants.kubectl(made, "get", executor, "--output", "json"))
    (owner,) = found["metadata"]["ownerReferences"]
    assert owner["name"].startswith("grid-")
    assert found["metadata"]["labels"]["rillbase.dev/tenant"] == made.slug
    assert found["spec"]["serviceAccountName"] == "executor"
    assert os.environ["RILLBASE_SECRET_KEY"] not in json.dumps(found)
    used = json.loads(tenants.kubectl(made, "get", "resourcequota/cluster", "--output", "json"))
    assert used["status"]["used"]["pods"] == "2"

    todos = make_collection(server, made=made)
    key = todos.caller.headers["Authorization"].removeprefix("Bearer ")
    with greeted(server, key) as client:
        answer = subscribe(client, "s", collection=todos.name)
        todos.insert({"_id": "a"})
        answer.until_shows([{"_id": "a"}])
        tenants.kubectl(made, "delete", executor, "--wait=false")
        wait_until(lambda: executor not in tenants.names(made, "pods"), what="the pod to go")
        todos.insert({"_id": "b"})
        answer.until_shows([{"_id": "a"}, {"_id": "b"}], timeout_s=COMES_UP_S)
        assert len(tenants.names(made, "pods", "--selector=spark-role=executor")) == 1


def _resize(tenants: Tenants, made: MadeTenant, before: GridEpoch) -> GridEpoch:
    """Have a grid of another size beside the first one, which goes when the new one watches."""
    from realtime.clusters import epochs

    assert tenants.call(made, "PATCH", {"write_partitions": 3}) == 202
    tenants.look(made)
    assert tenants.shown(made)["state"] == "resizing"
    assert len(tenants.names(made, "deployments")) == 2
    tenants.until(made, "running")
    (after,) = epochs.of_tenant(made.tenant.pk)
    assert (after.write_partitions, after.epoch > before.epoch) == (3, True)
    assert tenants.names(made, "deployments") == [f"deployment.apps/grid-{after.epoch}"]
    return after


def _fall_asleep(tenants: Tenants, made: MadeTenant, grid: GridEpoch) -> None:
    """Have nobody watch for long: what keeps queries alive for two minutes is cut short."""
    from realtime.clusters import grids

    def forgotten() -> bool:
        asyncio.run(_expire(grid))
        return grids.queries(grid) == 0

    wait_until(forgotten, what="the query to end")
    tenants.look(made)
    long_ago = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    tenants.rows(made).update(quiet_since=long_ago)
    tenants.look(made)
    assert tenants.shown(made)["state"] == "idle"
    wait_until(lambda: tenants.names(made, "pods") == [], what="the pods to go")


async def _expire(grid: GridEpoch) -> None:
    from foundation.valkey_wire import ValkeyWire
    from realtime.events.layer import GridLayer

    wire = ValkeyWire(os.environ["REDIS_URL"], connect_timeout_s=10, answer_timeout_s=10)
    await GridLayer(wire, grid.installation, grid.epoch).expire(1, ttl_ms=0)
    await wire.aclose()


def _remove(tenants: Tenants, made: MadeTenant) -> None:
    assert tenants.call(made, "DELETE") == 202
    tenants.look(made)
    assert tenants.shown(made)["state"] == "deleting"

    def gone() -> bool:
        if tenants.rows(made).exists():
            tenants.look(made)
        return not tenants.rows(made).exists()

    wait_until(gone, what="the cluster to be gone", timeout_s=COMES_UP_S)


def test_whatever_is_broken_by_hand_is_repaired(tenants: Tenants) -> None:
    made = tenants.make()
    wait_until(lambda: _is_applied(tenants, made), what="all objects")
    (driver,) = tenants.names(made, "deployments")
    name = driver.rpartition("/")[2]
    kinds = "secrets,configmaps,services,networkpolicies,serviceaccounts,resourcequotas,limitranges"
    before = tenants.names(made, f"{kinds},deployments,poddisruptionbudgets,rolebindings")

    tenants.kubectl(made, "scale", driver, "--replicas=3")
    tenants.kubectl(made, "set", "env", driver, "RILLBASE_LOG_LEVEL=DEBUG", "ADDED=by-hand")
    sidecar = {"spec": {"template": {"spec": {"containers": [{"name": "spy", "image": "spy"}]}}}}
    tenants.kubectl(made, "patch", driver, "--patch", json.dumps(sidecar))
    opened = '{"spec": {"ingress": [{}]}}'
    tenants.kubectl(made, "patch", "networkpolicy", "closed", "--type=merge", "--patch", opened)
    added = {"data": {"ADDED": "Ynk=", "EVENTS_URL": "b3RoZXI="}}
    tenants.kubectl(made, "patch", "secret", "grid", "--patch", json.dumps(added))
    level = "pod-security.kubernetes.io/enforce=privileged"
    tenants.plane.kubectl("label", "--overwrite", "namespace", tenants.space(made), level)
    for gone in ("serviceaccount/executor", "resourcequota/cluster", f"service/{name}"):
        tenants.kubectl(made, "delete", gone)

    assert changed(tenants.look(made)) == {
        f"namespace/{tenants.space(made)}": "change",
        f"deployment/{name}": "change",
        "networkpolicy/closed": "change",
        "secret/grid": "change",
        "serviceaccount/executor": "create",
        "resourcequota/cluster": "create",
        f"service/{name}": "create",
    }
    after = tenants.names(made, f"{kinds},deployments,poddisruptionbudgets,rolebindings")
    assert sorted(after) == sorted(before)
    found = json.loads(tenants.kubectl(made, "get", driver, "--output", "json"))
    (box,) = found["spec"]["template"]["spec"]["containers"]
    variables = {each["name"]: each.get("value") for each in box["env"]}
    assert "ADDED" not in variables
    assert variables["RILLBASE_LOG_LEVEL"] == "INFO"
    assert found["spec"]["replicas"] == 1
    secret = json.loads(tenants.kubectl(made, "get", "secret", "grid", "--output", "json"))
    assert "ADDED" not in secret["data"]
    assert changed(tenants.look(made)) == {}

    said = tenants.kubectl(made, "get", "events", "--field-selector", "reason=Changed")
    assert "spec.replicas" in said
    # What people look for.
    listed = tenants.plane.kubectl(
        *("get", "deployments", "--all-namespaces", "-L", "rillbase.dev/tenant")
    )
    assert made.slug in listed


def holding(tenants: Tenants, made: MadeTenant) -> set[str]:
    """Return the conditions that hold."""
    conditions = tenants.shown(made)["conditions"]
    return {each["type"] for each in conditions if each["status"] == "True"}


def _is_applied(tenants: Tenants, made: MadeTenant) -> bool:
    tenants.look(made)
    return "Applied" in holding(tenants, made)


@pytest.fixture
def machine(plane: ControlPlane, tmp_path: Path) -> Iterator[None]:
    """A machine on which pods seem to run, and end when they are told to."""
    from tests.kube.kubelet import Kubelet

    kubelet = Kubelet(plane, tmp_path)
    yield
    kubelet.close()


def test_an_orphaned_namespace_is_removed(tenants: Tenants, machine: None) -> None:
    from realtime.clusters.kubernetes.reconcile import orphans

    lost, kept = tenants.make(), tenants.make()
    for made in (lost, kept):
        wait_until(lambda made=made: _is_applied(tenants, made), what="all objects")  # type: ignore[misc]
    server = tenants.provisioner.server()
    tenants.rows(lost).delete()
    found = {each.name: each for each in orphans(server)}
    assert tenants.space(lost) in found
    assert tenants.space(kept) not in found
    server.delete(found[tenants.space(lost)])
    wait_until(
        lambda: tenants.space(lost) not in tenants.plane.kubectl("get", "namespaces"),
        what="the namespace to go",
        timeout_s=COMES_UP_S,
    )
    assert tenants.space(kept) in tenants.plane.kubectl("get", "namespaces")


def test_a_tenant_whose_cluster_fails_delays_no_other(tenants: Tenants) -> None:
    failing, fine = tenants.make(), tenants.make()
    # A namespace that is being removed, and cannot be, takes nothing.
    space = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": tenants.space(failing), "finalizers": ["example.com/never"]},
    }
    tenants.plane.apply(space)
    tenants.plane.kubectl("delete", "namespace", tenants.space(failing), "--wait=false")
    try:
        for number in range(1, 4):
            tenants.look(failing)
            assert tenants.row(failing).failures == number
            assert tenants.row(failing).due_at > datetime.datetime.now(datetime.UTC)
        assert tenants.row(failing).state == "failing"
        (condition,) = tenants.shown(failing)["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == (
            "Applied",
            "False",
            "Forbidden",
        )
        assert "terminated" in condition["message"]
        wait_until(lambda: _is_applied(tenants, fine), what="the other one's objects")
        assert tenants.row(fine).failures == 0
    finally:
        free = '{"metadata": {"finalizers": null}}'
        tenants.plane.kubectl(
            "patch", "namespace", tenants.space(failing), "--type=merge", "--patch", free
        )
    wait_until(lambda: _is_applied(tenants, failing), what="the first one's objects, too")
    assert tenants.row(failing).failures == 0


def test_a_cluster_is_never_reconciled_twice_at_once(tenants: Tenants) -> None:
    from realtime.clusters.kubernetes.reconcile import claim

    made = tenants.make()
    tenants.due(made)
    assert claim(made.tenant.pk) is not None
    assert claim(made.tenant.pk) is None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_run_that_an_api_server_cuts_off_is_done_again(
    tenants: Tenants, number: signal.Signals
) -> None:
    from realtime.clusters.kubernetes.reconcile import reconcile

    made = tenants.make()
    wait_until(lambda: _is_applied(tenants, made), what="all objects")
    assert tenants.call(made, "PATCH", {"node_size": "medium", "write_partitions": 4}) == 202
    plane, taken = tenants.plane, 0

    def cut_off(step: object) -> None:
        nonlocal taken
        taken += 1
        if taken == 6:
            plane.signal("kube-apiserver", number)

    try:
        reconcile(made.tenant.pk, tenants.provisioner.server(), cut_off)
        row = tenants.row(made)
        (told,) = [each for each in row.conditions if each["type"] == "Applied"]
        assert (told["status"], told["reason"]) == ("Unknown", "ApiServerAway")
        assert (row.failures, row.state) == (1, "failing")
    finally:
        if number is signal.SIGSTOP:
            plane.signal("kube-apiserver", signal.SIGCONT)
        else:
            plane.start("kube-apiserver")
    wait_until(lambda: _is_applied(tenants, made), what="all objects")
    assert len(tenants.names(made, "deployments")) == 2
    assert changed(tenants.look(made)) == {}
    assert tenants.row(made).failures == 0


def test_the_command_line_shows_its_actions_and_executes_them(
    tenants: Tenants, capsys: pytest.CaptureFixture[str], settings_environment: pytest.MonkeyPatch
) -> None:
    from django.core.management import CommandError, call_command

    made = tenants.make()
    kubeconfig = str(tenants.plane.kubeconfig)
    settings_environment.setenv("RILLBASE_CLUSTERS_KUBECONFIG", kubeconfig)

    def told(action: str) -> str:
        call_command("kube", action, made.slug)
        return capsys.readouterr().out

    planned = told("plan")
    assert "+ namespace/" in planned
    assert "+ deployment/grid-" in planned
    assert "Nothing was changed" in planned
    assert tenants.space(made) not in tenants.plane.kubectl("get", "namespaces")

    done = told("apply")
    assert "Done: " in done
    assert "Applied" in done
    assert "All objects are as described." in told("plan")
    (driver,) = tenants.names(made, "deployments")
    tenants.kubectl(made, "scale", driver, "--replicas=2")
    assert "spec.replicas: 2 → 1" in told("diff")
    status = told("status")
    assert f"{made.slug} is pending" in status
    assert "not ready" in status

    for slug, complaint in (
        (unique("nobody"), "does not exist"),
        (make_tenant().slug, "no dedicated grid"),
    ):
        with pytest.raises(CommandError, match=complaint):
            call_command("kube", "status", slug)
