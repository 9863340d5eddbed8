"""A real Kubernetes without machines: etcd, API server, controller manager and scheduler.

They are built by `python -m scripts.kube_tools kubernetes`. Everything is on loopback and in one
folder; nothing of it outlives the test session. What kubelets do, `tests/kube/kubelet.py` does.
"""

from __future__ import annotations

import signal
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from kubernetes import client

from scripts import kube_tools
from tests import machine
from tests.own_valkey import free_port
from tests.waiting import wait_until

ADMIN_TOKEN = "administrators-token"
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
LOG_LINES = 20
#: The first two store objects; the others act on them.
KEEPING = ("etcd", "kube-apiserver")
COMPONENTS = (*KEEPING, "kube-controller-manager", "kube-scheduler")


class ControlPlane:
    """Owns the processes. Each may be stopped and restarted; etcd keeps all objects."""

    def __init__(self, folder: Path, components: Sequence[str] = COMPONENTS) -> None:
        self.folder = folder
        self.port, self._etcd_port = free_port(), free_port()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        #: By token: each has connections, which are closed at the end.
        self._clients: dict[str, client.ApiClient] = {}
        self._prepare()
        for name in components:
            self.start(name)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def certificate(self) -> Path:
        """The authority that signed the API server's certificate."""
        return self.folder / "certificates" / "apiserver.crt"

    def start(self, name: str) -> None:
        """Start a component, and wait until it serves."""
        arguments = getattr(self, "_" + name.replace("-", "_"))()
        path = kube_tools.program("kubernetes", name)
        assert path is not None
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [str(path), *arguments], cwd=self.folder, stdout=log, stderr=subprocess.STDOUT
            )
        if name == "etcd":
            health = f"http://127.0.0.1:{self._etcd_port}/health"
            wait_until(lambda: self._answers(health), what=name, timeout_s=START_TIMEOUT_S)
        if name == "kube-apiserver":
            ready = f"{self.url}/readyz"
            wait_until(lambda: self._answers(ready), what=name, timeout_s=START_TIMEOUT_S)

    def problems(self) -> str:
        """Describe what components report: which have ended, and the last lines of their logs."""
        told = []
        for name, process in self._processes.items():
            ended = process.poll()
            state = "runs" if ended is None else f"ended with {ended}"
            lines = (self.folder / f"{name}.log").read_text(errors="replace").splitlines()
            told.append("\n".join((f"{name} {state}", *lines[-LOG_LINES:])))
        return "\n".join(told)

    def signal(self, name: str, number: signal.Signals) -> None:
        """Kill, stop or continue a component."""
        process = self._processes[name]
        process.send_signal(number)
        if number is signal.SIGKILL:
            process.wait()

    def close(self) -> None:
        """Stop all processes, clients before servers."""
        for api in self._clients.values():
            api.close()  # type: ignore[no-untyped-call]
        for process in reversed(self._processes.values()):
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def api(self, token: str = ADMIN_TOKEN) -> client.ApiClient:
        """Return the client that authenticates with the token."""
        if token not in self._clients:
            settings = client.Configuration()
            settings.host, settings.ssl_ca_cert = self.url, str(self.certificate)
            settings.api_key = {"authorization": f"Bearer {token}"}
            self._clients[token] = client.ApiClient(settings)
        return self._clients[token]

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        path = kube_tools.program("kubernetes", "kubectl")
        command = [str(path), "--kubeconfig", str(self.kubeconfig), *arguments]
        return subprocess.run(
            command, input=given, capture_output=True, text=True, check=True
        ).stdout

    def apply(self, described: Mapping[str, Any]) -> None:
        """Create an object, or change it as described."""
        self.kubectl("apply", "--filename", "-", given=yaml.safe_dump(dict(described)))

    def _answers(self, url: str) -> bool:
        context = ssl._create_unverified_context()
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        try:
            with urllib.request.urlopen(request, timeout=10, context=context) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _prepare(self) -> None:
        (self.folder / "certificates").mkdir(parents=True)
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        (self.folder / "accounts.key").write_bytes(private)
        (self.folder / "accounts.pub").write_bytes(public)
        (self.folder / "tokens.csv").write_text(f'{ADMIN_TOKEN},admin,admin,"system:masters"\n')
        described: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [
                {
                    "name": "test",
                    "cluster": {
                        "server": self.url,
                        "certificate-authority": str(self.certificate),
                    },
                }
            ],
            "users": [{"name": "test", "user": {"token": ADMIN_TOKEN}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        }
        self.kubeconfig.write_text(yaml.safe_dump(described))

    def _etcd(self) -> list[str]:
        clients = f"http://127.0.0.1:{self._etcd_port}"
        peers = f"http://127.0.0.1:{free_port()}"
        return [
            *("--data-dir", str(self.folder / "etcd")),
            *("--listen-client-urls", clients, "--advertise-client-urls", clients),
            *("--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers),
            *("--initial-cluster", f"default={peers}"),
            *("--unsafe-no-fsync", "--log-level", "warn"),
        ]

    def _kube_apiserver(self) -> list[str]:
        return [
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--secure-port={self.port}",
            f"--cert-dir={self.folder / 'certificates'}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.folder / 'accounts.pub'}",
            f"--service-account-signing-key-file={self.folder / 'accounts.key'}",
            "--service-cluster-ip-range=10.0.0.0/24",
        ]

    def _kube_controller_manager(self) -> list[str]:
        return [
            *self._as_admin(),
            f"--service-account-private-key-file={self.folder / 'accounts.key'}",
            f"--root-ca-file={self.certificate}",
            "--use-service-account-credentials=true",
            # Objects whose owners are gone are deleted soon.
            "--concurrent-gc-syncs=4",
            "--namespace-sync-period=5s",
        ]

    def _kube_scheduler(self) -> list[str]:
        return self._as_admin()

    def _as_admin(self) -> list[str]:
        # Nothing asks these components anything, and a port could be taken before they bind it.
        return [f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", "--secure-port=0"]


def started(folder: Path, components: Sequence[str] = COMPONENTS) -> ControlPlane:
    """Return a running control plane, or skip the test and say what is missing."""
    machine.kubernetes("kube-apiserver")
    return ControlPlane(folder, components)
