"""A minimal kubelet for tests: pods of a node start, become ready and end.

Most pods are only reported as running: those of Jobs and of `helm test` succeed at once, others
stay ready. For pods that `command` selects, a process of this machine is started.
"""

from __future__ import annotations

import datetime
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from tests.kube.control_plane import ControlPlane

NODE = "this-machine"
ROUND_S = 0.2
BEAT_S = 5.0
CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "500", "ephemeral-storage": "1Ti"}

Pod = Any
#: The command and environment of a process that runs in place of a pod.
Command = Callable[[Pod, Mapping[str, str]], tuple[list[str], dict[str, str]]]


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Kubelet:
    """One node, maintained by a thread."""

    def __init__(self, plane: ControlPlane, folder: Path, command: Command | None = None) -> None:
        # Dicts will do where the client's types ask for its own classes.
        self._core: Any = client.CoreV1Api(plane.api())
        self._leases: Any = client.CoordinationV1Api(plane.api())
        self._folder, self._command = folder, command
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.failures: list[str] = []
        self._stopping = threading.Event()
        self._since_beat_s = BEAT_S
        self._join()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stopping.set()
        self._thread.join(60)
        for process in self.processes.values():
            process.kill()
            process.wait()

    def _join(self) -> None:
        node = {
            "metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE, "pool": "spark"}}
        }
        try:
            self._core.create_node(node)
        except ApiException as failed:
            if failed.status != 409:
                raise
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        ready |= {"lastHeartbeatTime": _now(), "lastTransitionTime": _now()}
        status = {"capacity": CAPACITY, "allocatable": CAPACITY, "conditions": [ready]}
        self._core.patch_node_status(NODE, {"status": status})

    def _run(self) -> None:
        while not self._stopping.wait(ROUND_S):
            try:
                self._beat()
                self._round()
            except ApiException as failed:
                # Somebody was faster, or the API server is away: the next round sees what is.
                if failed.status not in (404, 409):
                    self.failures.append(str(failed))
            except Exception as failed:  # noqa: BLE001 -- the API server may go away at any moment
                self.failures.append(repr(failed))

    def _beat(self) -> None:
        """Renew the node's lease: without it the node counts as lost after less than a minute."""
        self._since_beat_s += ROUND_S
        if self._since_beat_s < BEAT_S:
            return
        self._since_beat_s = 0.0
        spec = {"holderIdentity": NODE, "leaseDurationSeconds": 600, "renewTime": _now()}
        try:
            self._leases.patch_namespaced_lease(NODE, "kube-node-lease", {"spec": spec})
        except ApiException as failed:
            if failed.status != 404:
                raise
            body = {"metadata": {"name": NODE}, "spec": spec}
            self._leases.create_namespaced_lease("kube-node-lease", body)

    def _round(self) -> None:
        pods = self._core.list_pod_for_all_namespaces(field_selector=f"spec.nodeName={NODE}").items
        for gone in self.processes.keys() - {pod.metadata.uid for pod in pods}:
            self._end(gone)
        for pod in pods:
            if pod.metadata.deletion_timestamp is not None:
                self._end(pod.metadata.uid)
                self._core.delete_namespaced_pod(
                    pod.metadata.name, pod.metadata.namespace, grace_period_seconds=0
                )
            elif pod.status.phase == "Pending":
                self._start(pod)
            elif pod.status.phase == "Running":
                self._watch(pod)

    def _start(self, pod: Pod) -> None:
        process = self._prepare_process(pod)
        if process is None:
            ends = pod.spec.restart_policy in ("Never", "OnFailure")
            self._say(pod, "Succeeded" if ends else "Running")
            return
        argv, environment = process
        directory = self._folder / pod.metadata.uid
        directory.mkdir(parents=True, exist_ok=True)
        with (self._folder / f"{pod.metadata.name}.log").open("wb") as log:
            self.processes[pod.metadata.uid] = subprocess.Popen(
                argv, cwd=directory, env=environment, stdout=log, stderr=subprocess.STDOUT
            )
        self._say(pod, "Running")

    def _prepare_process(self, pod: Pod) -> tuple[list[str], dict[str, str]] | None:
        if self._command is None:
            return None
        given = {
            variable.name: self._value(variable, pod)
            for variable in pod.spec.containers[0].env or []
        }
        argv, environment = self._command(pod, given)
        return (argv, environment) if argv else None

    def _value(self, variable: Any, pod: Pod) -> str:
        source = variable.value_from
        if source is None:
            return str(variable.value or "")
        if source.field_ref is not None:
            path = source.field_ref.field_path
            known = {"status.podIP": "127.0.0.1", "metadata.name": str(pod.metadata.name)}
            return known.get(path, "")
        return ""

    def _watch(self, pod: Pod) -> None:
        process = self.processes.get(pod.metadata.uid)
        if process is not None and process.poll() is not None:
            self._say(pod, "Succeeded" if process.returncode == 0 else "Failed")

    def _end(self, uid: str) -> None:
        process = self.processes.pop(uid, None)
        if process is not None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self._folder / uid, ignore_errors=True)

    def _say(self, pod: Pod, phase: str) -> None:
        runs = phase == "Running"
        code = {"Succeeded": 0, "Failed": 1}.get(phase)
        running: dict[str, Any] = {"running": {"startedAt": _now()}}
        ended = {"exitCode": code, "startedAt": _now(), "finishedAt": _now(), "reason": phase}
        state = running if runs else {"terminated": ended}
        ready = {"type": "Ready", "status": str(runs), "lastTransitionTime": _now()}
        ready_containers = {**ready, "type": "ContainersReady"}
        status = {
            "phase": phase,
            "podIP": "127.0.0.1",
            "podIPs": [{"ip": "127.0.0.1"}],
            "hostIP": "127.0.0.1",
            "startTime": _now(),
            "conditions": [ready, ready_containers],
            "containerStatuses": [
                {
                    "name": container.name,
                    "image": container.image,
                    "imageID": "",
                    "ready": runs,
                    "restartCount": 0,
                    "state": state,
                }
                for container in pod.spec.containers
            ],
        }
        self._core.patch_namespaced_pod_status(
            pod.metadata.name, pod.metadata.namespace, {"status": status}
        )


def machine_environment() -> dict[str, str]:
    """Environment variables that a process needs on this machine, whatever its pod says."""
    return {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
