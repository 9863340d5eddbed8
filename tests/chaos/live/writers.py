"""Clients that write through every API, whatever fails meanwhile."""

from __future__ import annotations

import threading
from random import Random
from typing import Any

import requests
from websockets.exceptions import WebSocketException

from tests.chaos.live.random_queries import IDS, Document, document, update
from tests.chaos.live.report import RunReport
from tests.chaos.live.rules import Rules
from tests.realtime.client import Client, greeted

#: Long enough for a server to recover: a write that timed out may still take effect.
CALL_TIMEOUT_S = 60.0
#: Delay between two writes of a writer, so that a fast machine does not test bursts only.
PAUSE_S = 0.03
CALL_ERRORS = (requests.RequestException, WebSocketException, OSError, TimeoutError, AssertionError)


class Gate:
    """Lets writers write, or blocks them until all of them are idle."""

    def __init__(self, writers: int) -> None:
        self.over = threading.Event()
        self._open = threading.Event()
        self._idle = threading.Semaphore(0)
        self._writers = writers
        self._open.set()

    def wait_open(self) -> bool:
        """Wait until the gate is open; return false once the run is over."""
        if not self._open.is_set():
            self._idle.release()
            self._open.wait()
        return not self.over.is_set()

    def close(self) -> None:
        """Close the gate, and return once every writer is idle."""
        self._open.clear()
        for _ in range(self._writers):
            assert self._idle.acquire(timeout=3 * CALL_TIMEOUT_S), "a writer is stuck"

    def open(self) -> None:
        self._open.set()

    def end(self) -> None:
        self.over.set()
        self._open.set()


class Writer(threading.Thread):
    """One client that makes one call after the other. Any call may fail."""

    def __init__(
        self, number: int, urls: list[str], key: str, gate: Gate, rules: Rules, report: RunReport
    ) -> None:
        super().__init__(name=f"writer-{number}", daemon=True)
        self._rules = rules
        self._rng = Random(f"{report.seed} writer {number}")
        self._urls = urls
        self._key = key
        self._gate = gate
        self._report = report
        self._session = requests.Session()
        self._session.headers["Authorization"] = f"Bearer {key}"
        self._write = (self._rest, self._bulk, self._transaction, self._socket)[number % 4]

    def run(self) -> None:
        while self._gate.wait_open():
            try:
                self._write()
            except CALL_ERRORS as error:
                self._report.count(f"write failed: {type(error).__name__}")
                self._gate.over.wait(0.1)
            self._gate.over.wait(PAUSE_S)

    def _url(self) -> str:
        return self._rng.choice(self._urls)

    def _collection(self) -> str:
        return self._rng.choice(["open", "ruled"])

    def _key_of_document(self) -> str:
        return f"d{self._rng.randrange(IDS):02}"

    def _document(self, key: str) -> Document:
        return {**document(self._rng, key), "era": self._rules.certain}

    def _update(self) -> Document:
        change = update(self._rng)
        change["$set"] = {**change.get("$set", {}), "era": self._rules.certain}
        return change

    def _call(self, method: str, path: str, body: Any = None) -> None:
        answer = self._session.request(
            method, f"{self._url()}/v1/{path}", json=body, timeout=CALL_TIMEOUT_S
        )
        self._note(answer.status_code)

    def _note(self, status: int) -> None:
        if status < 300:
            self._report.count("writes")
        elif status >= 500 or status == 429:
            self._report.count(f"write refused: {status}")
            self._gate.over.wait(0.1)
        elif status not in (404, 409, 412):
            self._report.fault(self.name, f"a write was answered {status}")

    def _rest(self) -> None:
        key = self._key_of_document()
        path = f"collections/{self._collection()}/documents/{key}"
        match self._rng.randrange(6):
            case 0:
                self._call("DELETE", path)
            case 1 | 2:
                self._call("PATCH", path, self._update())
            case _:
                self._call("PUT", path, self._document(key))

    def _operation(self) -> dict[str, Any]:
        key = self._key_of_document()
        match self._rng.randrange(5):
            case 0:
                return {"delete": {"id": key}}
            case 1:
                return {"update": {"id": key, "update": self._update()}}
            case _:
                return {"replace": {"id": key, "document": self._document(key)}}

    def _bulk(self) -> None:
        operations = [self._operation() for _ in range(self._rng.randrange(1, 8))]
        body = {"operations": operations, "ordered": self._rng.random() < 0.7}
        self._call("POST", f"collections/{self._collection()}/documents:bulk", body)

    def _transaction(self) -> None:
        operations = [
            {"collection": self._collection(), **self._operation()}
            for _ in range(self._rng.randrange(1, 6))
        ]
        self._call("POST", "transactions", {"operations": operations})

    def _socket(self) -> None:
        """Write over one connection until it is lost."""
        with greeted(self._url(), self._key) as client:
            while self._gate.wait_open():
                self._write_over_socket(client)
                self._gate.over.wait(PAUSE_S)

    def _write_over_socket(self, client: Client) -> None:
        key = self._key_of_document()
        where = {"collection": self._collection(), "key": key}
        match self._rng.randrange(5):
            case 0:
                answer = client.ask("delete", "w", **where)
            case 1:
                answer = client.ask("update", "w", **where, update=self._update())
            case _:
                answer = client.ask("replace", "w", **where, document=self._document(key))
        self._note(200 if answer["type"] == "ack" else int(answer["error"]["status"]))
