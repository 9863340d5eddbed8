"""The provisioner has exactly the rights that it needs: without any one of them, an operation
fails.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from realtime.grid.size import GridSize
from tests.kube.rendering import Object
from tests.make import unique
from tests.waiting import wait_until

if TYPE_CHECKING:
    from realtime.clusters.kubernetes.cluster_spec import ClusterSpec
    from tests.kube.control_plane import ControlPlane
    from tests.kube.provisioner import Provisioner

pytestmark = [pytest.mark.kube, pytest.mark.timeout(900)]

NO_WAIT = "--wait=false"
#: How long a new binding takes to apply everywhere; what is still rejected then is rejected for
#: good.
SETTLED_S = 3.0
#: Resource and verb of every right in the chart, by role.
RIGHTS = {
    "provisioner": {
        "namespaces": ("get", "list", "create", "patch", "delete"),
        "rolebindings": ("get", "create", "patch"),
        "clusterroles": ("bind",),
    },
    "tenant": {
        "resourcequotas": ("list", "create", "patch"),
        "limitranges": ("list", "create", "patch"),
        "serviceaccounts": ("list", "create", "patch"),
        "secrets": ("list", "create", "patch"),
        "networkpolicies": ("list", "create", "patch"),
        "configmaps": ("list", "create", "patch", "delete"),
        "services": ("list", "create", "patch", "delete"),
        "deployments": ("list", "create", "patch", "delete"),
        "poddisruptionbudgets": ("list", "create", "patch", "delete"),
        "pods": ("list",),
        "events": ("create",),
    },
}


def desired_spec(provisioner: Provisioner) -> ClusterSpec:
    """Return the specification of an unknown tenant's cluster."""
    from tests.realtime.clusters.cluster_specs import INSTALLATION, USUAL

    ours = replace(INSTALLATION, name=provisioner.name, namespace=provisioner.namespace)
    return replace(USUAL, installation=ours, tenant_id=uuid4())


def live(provisioner: Provisioner) -> None:
    """Do every operation on a cluster once; raise `ApiServerRejection` if a right is missing."""
    from realtime.clusters.kubernetes.cluster_spec import GridSpec
    from realtime.clusters.kubernetes.events import event
    from realtime.clusters.kubernetes.objects.naming import common
    from realtime.clusters.kubernetes.server import Reference
    from realtime.clusters.kubernetes.steps import ApplyStep, Verb, apply_steps

    server, first = provisioner.server(), desired_spec(provisioner)
    space = Reference("Namespace", "", first.namespace)
    server.find("Namespace", "", common(first))
    other = replace(first, grids=(GridSpec(1002, GridSize(4)),), node_size="medium")
    try:
        for wanted in (first, other):
            _patiently(lambda wanted=wanted: list(apply_steps(server, wanted)))  # type: ignore[misc]
            server.find("Pod", wanted.namespace, common(wanted))
        now = datetime.datetime.now(datetime.UTC)
        server.create_event(
            event(first.namespace, ApplyStep(Verb.CHANGE, space), now), first.namespace
        )
        server.delete(space)
    except BaseException:
        provisioner.plane.kubectl("delete", "namespace", "--ignore-not-found", space.name, NO_WAIT)
        raise


def _patiently(work: Callable[[], object]) -> None:
    """Retry until the provisioner's new binding applies."""
    from realtime.clusters.kubernetes.server import ApiServerRejection

    def is_done() -> bool:
        try:
            work()
        except ApiServerRejection as refused:
            rejections.append(refused)
            return False
        return True

    rejections = list[ApiServerRejection]()
    try:
        wait_until(is_done, what="the binding to count", timeout_s=SETTLED_S)
    except AssertionError:
        raise rejections[-1] from None


def _refusal(provisioner: Provisioner) -> str:
    """Return the rejected right, or nothing."""
    from realtime.clusters.kubernetes.server import ApiServerRejection

    try:
        live(provisioner)
    except ApiServerRejection as refused:
        return refused.message
    return ""


def _is_refused(provisioner: Provisioner, resource: str, verb: str) -> bool:
    said = _refusal(provisioner)
    if verb == "bind":
        # What may be bound only by who may do it all is refused by naming what is missing.
        return "attempting to grant RBAC permissions" in said
    return f'cannot {verb} resource "{resource}"' in said


def test_the_list_above_is_the_charts(provisioner: Provisioner) -> None:
    for role, expected in RIGHTS.items():
        given = {
            resource: tuple(rule["verbs"])
            for rule in provisioner.rules(role)
            for resource in rule["resources"]
        }
        assert given == expected


def test_with_all_rights_everything_can_be_done(provisioner: Provisioner) -> None:
    live(provisioner)


@pytest.mark.parametrize(
    ("role", "resource", "verb"),
    [
        (role, resource, verb)
        for role, resources in RIGHTS.items()
        for resource, verbs in resources.items()
        for verb in verbs
    ],
)
def test_each_permission_is_necessary(
    provisioner: Provisioner, role: str, resource: str, verb: str
) -> None:
    rules = provisioner.rules(role)
    others = [
        {
            **rule,
            "resources": [resource],
            "verbs": [v for v in rule["verbs"] if (resource, v) != lost],
        }
        for lost in [(resource, verb)]
        for rule in rules
        for resource in rule["resources"]
    ]
    provisioner.give(role, [rule for rule in others if rule["verbs"]])
    try:
        wait_until(lambda: _is_refused(provisioner, resource, verb), what=f"{verb} {resource}")
    finally:
        provisioner.give(role, rules)
        wait_until(lambda: not _refusal(provisioner), what="all rights to be back")


def test_it_may_touch_nothing_but_tenants_namespaces(
    plane: ControlPlane, provisioner: Provisioner
) -> None:
    from realtime.clusters.kubernetes.objects.accounts import bindings
    from realtime.clusters.kubernetes.server import ApiServerRejection, Reference

    server = provisioner.server()
    elsewhere: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": unique("x")}}
    with pytest.raises(ApiServerRejection, match="may change only"):
        server.apply(elsewhere)
    (binding, _) = bindings(desired_spec(provisioner))
    stolen = {**binding, "metadata": {"name": "stolen", "namespace": "kube-system"}}
    with pytest.raises(ApiServerRejection, match="may change only"):
        server.apply(stolen)
    with pytest.raises(ApiServerRejection, match="may change only"):
        server.delete(Reference("Namespace", "", provisioner.namespace))
    for kind in ("Secret", "Deployment", "Pod"):
        with pytest.raises(ApiServerRejection):
            server.find(kind, "kube-system", {})
    assert plane.kubectl("get", "namespace", provisioner.namespace)
