"""An assistant: a client of the process that serves the Model Context Protocol."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

PYTHON_SDK = Path(__file__).resolve().parents[2] / "sdk" / "python"
Json = dict[str, Any]


class Assistant:
    """Sends messages, one after the other, and reads their responses."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._requests: IO[bytes] = process.stdin
        self._responses: IO[bytes] = process.stdout

    def send(self, line: bytes) -> None:
        self._requests.write(line + b"\n")
        self._requests.flush()

    def receive(self) -> Json:
        message: Json = json.loads(self._responses.readline())
        assert message.pop("jsonrpc") == "2.0"
        return message

    def response(self, line: bytes) -> Json:
        """Return the response to a line as it is."""
        self.send(line)
        return self.receive()

    def request(self, method: str, **params: object) -> Json:
        """Return the response to a request."""
        message = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
        response = self.response(json.dumps(message).encode())
        assert response.pop("id") == method
        return response

    def call(self, tool: str, **arguments: object) -> Any:
        """Return the result of a tool."""
        text, is_error = self._call(tool, arguments)
        assert not is_error, text
        return text if tool == "docs" else json.loads(text)

    def error(self, tool: str, **arguments: object) -> Json:
        """Return the problem with which a tool fails."""
        text, is_error = self._call(tool, arguments)
        assert is_error, text
        problem: Json = json.loads(text)
        return problem

    def _call(self, tool: str, arguments: Json) -> tuple[str, bool]:
        result = self.request("tools/call", name=tool, arguments=arguments)["result"]
        (content,) = result["content"]
        assert content["type"] == "text"
        return content["text"], result["isError"]


@contextmanager
def assistant(
    url: str, key: str, options: Sequence[str] = (), **variables: str
) -> Iterator[Assistant]:
    """Run the server process for an assistant; it must end by itself when its input ends."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(PYTHON_SDK),
        "RILLBASE_URL": url,
        "RILLBASE_KEY": key,
        **variables,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "rillbase.mcp", *options],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield Assistant(process)
        remaining, complaints = process.communicate(timeout=30)
        assert (process.returncode, remaining, complaints) == (0, b"", b"")
    finally:
        process.kill()
        process.communicate()
