"""An installation for a benchmark: real servers in a temporary directory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from rillbase_server.launcher.embedded import EmbeddedPostgres, EmbeddedValkey
from rillbase_server.launcher.ports import free_port
from rillbase_server.web_process import ENVIRONMENT, HTTP_PROTOCOL, WEBSOCKET_PROTOCOL

ROOT = Path(__file__).resolve().parents[2]
START_DEADLINE_S = 120.0
STOP_DEADLINE_S = 10.0
#: Spark starts slowly.
SERVICE_DEADLINE_S = 120.0


@dataclass(frozen=True, slots=True)
class Installation:
    """The addresses of the servers, and the environment for processes of the application."""

    directory: Path
    environment: dict[str, str]


@dataclass(frozen=True, slots=True)
class Web:
    """A process with an HTTP server."""

    port: int
    process: psutil.Process

    def cpu_s(self) -> float:
        """Return the CPU time that the process has used."""
        times = self.process.cpu_times()
        return float(times.user + times.system)


@contextmanager
def installation() -> Iterator[Installation]:
    """Start PostgreSQL and Valkey, durable as in production, with the schema and a demo tenant."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rillbase-bench-")))
        directory.chmod(0o755)
        postgres = stack.enter_context(
            EmbeddedPostgres(directory / "postgres", superuser_password="bench")
        )
        valkey = stack.enter_context(EmbeddedValkey(directory / "valkey", password="bench"))
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                [*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT), str(ROOT / "platform")]
            ),
            "DJANGO_SETTINGS_MODULE": "rillbase_server.settings",
            "RILLBASE_ENV": "test",
            "RILLBASE_SECRET_KEY": "benchmark-secret-" + "s" * 32,
            "RILLBASE_KEY_PEPPER": "benchmark-pepper-" + "p" * 32,
            "RILLBASE_DATA_DIR": str(directory),
            "RILLBASE_HOSTS": "127.0.0.1",
            "DATABASE_URL": postgres.url,
            "REDIS_URL": valkey.url,
        }
        subprocess.run(
            [sys.executable, "-m", "django", "prepare_database"],
            env=environment,
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        yield Installation(directory, environment)


@contextmanager
def web(installed: Installation, application: str, extra: Mapping[str, str]) -> Iterator[Web]:
    """Run one uvicorn process as the launcher does."""
    port = free_port()
    argv = [sys.executable, "-m", "uvicorn", application, "--host", "127.0.0.1"]
    if application.endswith(":get_asgi_application"):
        argv.append("--factory")
    else:
        argv += ["--http", HTTP_PROTOCOL, "--ws", WEBSOCKET_PROTOCOL]
    argv += ["--port", str(port), "--no-access-log", "--log-level", "warning", "--no-proxy-headers"]
    log = installed.directory / f"web-{port}.log"
    with log.open("wb") as output:
        child = subprocess.Popen(
            argv,
            env={**installed.environment, **ENVIRONMENT, **extra},
            cwd=ROOT,
            stdout=output,
            stderr=output,
        )
    try:
        _wait_for_answer(port, child, log)
        yield Web(port, psutil.Process(child.pid))
    finally:
        child.terminate()
        try:
            child.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            # A benchmark may have overloaded it.
            child.kill()
            child.wait()


def _wait_for_answer(port: int, child: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_DEADLINE_S
    while time.monotonic() < deadline and child.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=1).read()
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"the web server did not start:\n{log.read_text()[-2000:]}")


def python(installed: Installation, source: str, *arguments: str) -> str:
    """Run a program in the application's environment and return the last line that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", source, *arguments],
        env=installed.environment,
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.splitlines()[-1]


@contextmanager
def service(installed: Installation, command: str, extra: Mapping[str, str]) -> Iterator[Web]:
    """Run a service, `manage.py <command>`, and wait until it is ready."""
    port = free_port()
    argv = [sys.executable, str(ROOT / "manage.py"), command, "--port", str(port)]
    log = installed.directory / f"{command}.log"
    with log.open("wb") as output:
        child = subprocess.Popen(
            argv, env={**installed.environment, **extra}, cwd=ROOT, stdout=output, stderr=output
        )
    try:
        _wait_until_ready(port, child, log)
        yield Web(port, psutil.Process(child.pid))
    finally:
        child.terminate()
        child.wait(30)


def _wait_until_ready(port: int, child: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + SERVICE_DEADLINE_S
    while time.monotonic() < deadline and child.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1).read()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"a service did not start:\n{log.read_text()[-2000:]}")
