"""A storage node of a single test, which can kill, stop and restart it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.own_process import OwnProcess
from tests.own_valkey import free_port

BINARY = Path(sys.executable).parent / "rillbase-node"
TOKEN = "the-administrators-token"
#: Generous: a wait ends as soon as the response arrives.
ANSWER_TIMEOUT_S = 60.0


def token_of(namespace: str) -> str:
    """Return the token of a test namespace."""
    return f"the-token-of-{namespace}"


def ask(client: redis.Redis | redis.client.Pipeline, *words: object) -> Any:
    """Give a command."""
    return client.execute_command(*words)  # type: ignore[no-untyped-call]


class OwnStorageNode(OwnProcess):
    """Its data survives the process."""

    def __init__(self, folder: Path, **options: object) -> None:
        self._options = options
        self.metrics_port = free_port()
        super().__init__(folder)

    @property
    def url(self) -> str:
        """The administrator's."""
        return f"redis://admin:{TOKEN}@127.0.0.1:{self.port}"

    def _command(self) -> Sequence[str]:
        options: dict[str, object] = {
            "directory": self._folder / "node",
            "listen": f"127.0.0.1:{self.port}",
            "metrics": f"127.0.0.1:{self.metrics_port}",
            "threads": 2,
            **self._options,
        }
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        return [str(BINARY), *words]

    def _variables(self) -> Mapping[str, str]:
        return {"RILLBASE_NODE_TOKEN": TOKEN}

    def client(self, namespace: str = "admin", token: str = TOKEN, **options: Any) -> redis.Redis:
        """Return a client, which decodes responses unless told otherwise."""
        # Tests decide themselves what is retried.
        always: dict[str, Any] = {"decode_responses": True, "retry": Retry(NoBackoff(), 0)}
        options = {"socket_timeout": ANSWER_TIMEOUT_S, **always, **options}
        return redis.Redis(port=self.port, username=namespace, password=token, **options)

    def namespace(self, name: str, **options: Any) -> redis.Redis:
        """Create a namespace and return a client for it."""
        token = token_of(name)
        with self.client() as admin:
            ask(admin, "RB.NAMESPACE.CREATE", name, token)
        return self.client(name, token, **options)

    def metric(self, name: str) -> float:
        """Return a value from the metrics page."""
        with urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics") as page:
            lines = page.read().decode().splitlines()
        items = [line.split() for line in lines if not line.startswith("#")]
        return {words[0]: float(words[1]) for words in items}[name]
