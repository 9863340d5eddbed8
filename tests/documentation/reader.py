"""Runs a page's examples in order, as one tenant of a running server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Any

import psycopg
import requests

from tests.documentation.account import Account
from tests.documentation.fences import Fence
from tests.documentation.issuer import LocalIssuer
from tests.documentation.programs import prints, run_javascript, run_python, terminal
from tests.documentation.shapes import check_shape, read
from tests.make import unique
from tests.realtime.client import Client, opened
from tests.rillbase_server.graphql.graphql_socket import greeted as graphql_greeted
from tests.waiting import wait_until

Json = dict[str, Any]
_HEADER = re.compile(r"^([A-Za-z-]+): (.*)$")
#: What stands for the variables of operations that no block names.
VARIABLES: Mapping[str, object] = {
    "filter": {"done": False},
    "geo": {"center": [16.37, 48.21], "radius_m": 420},
    "data": {"kind": "jam"},
    "from": "-1h",
    "resume": None,
}

PROGRAMS: Mapping[str, Callable[[str, Path], str]] = {"python": run_python, "js": run_javascript}
#: What says that a message has had its effect.
ANSWERS = {"hello": "welcome", "subscribe": "ready"}


class Reader:
    """One reader of one page."""

    def __init__(
        self,
        base: str,
        account: Account,
        folder: Path,
        issuer: LocalIssuer | None = None,
        database: str = "",
        programs: Mapping[str, Callable[[str, Path], str]] = PROGRAMS,
    ) -> None:
        """Read as the owner of a tenant. The issuer stands for those that the page registers, the
        database for the reader's own. By language, `programs` run the page's programs.
        """
        self._programs = programs
        self._database = database
        self._base = base
        self._issuer = issuer
        self._account = account
        self._folder = folder
        self._stack = ExitStack()
        self._answer: object = None
        self._operation: tuple[str, Json | None] | None = None
        self._socket: Client | None = None
        #: Frames that arrived while another one was awaited.
        self._frames: list[Json] = []
        self._awaited: list[tuple[Fence, Json]] = []
        self._terminal = self._stack.enter_context(
            terminal(folder, URL=base, KEY=account.admin_key, RILLBASE_URL=base)
        )
        self._placeholders = self._found_placeholders()
        if issuer is not None and issuer.is_registered:
            self._sign(issuer.claims)

    def try_all(self, fences: Sequence[Fence]) -> None:
        """Run the examples by their kind; programs of one language form one program."""
        done: set[str] = set()
        with self._stack:
            for place, fence in enumerate(fences):
                if fence.language in PROGRAMS:
                    if fence.language not in done:
                        done.add(fence.language)
                        self._program(fence.language, fences)
                    continue
                if fence.language == "text":
                    continue  # The program before it has been compared with it.
                try:
                    self._try(fence, fences[place + 1 :])
                except Exception as error:
                    error.add_note(f"in the example at {fence.place}")
                    raise
            self._hear()

    def _try(self, fence: Fence, following: Sequence[Fence]) -> None:
        tries: dict[str, Callable[[], None]] = {
            "sh": lambda: self._terminal.run(self._filled(fence.text), fence.attributes),
            "http": lambda: self._request(fence),
            "json": lambda: self._json(fence),
            "graphql": lambda: self._graphql(fence, following[:1]),
            "sql": lambda: self._sql(fence.text),
        }
        tries[fence.language]()

    def _program(self, language: str, fences: Sequence[Fence]) -> None:
        parts = [fence for fence in fences if fence.language == language]
        source = "\n".join(self._filled(fence.text) for fence in parts)
        try:
            printed = self._programs[language](source, self._folder)
            if shown := _output(language, fences):
                prints(printed, shown)
        except Exception as error:
            error.add_note(f"in the program of {parts[0].place}")
            raise

    def _sql(self, text: str) -> None:
        with psycopg.connect(self._database, autocommit=True) as connection:
            connection.execute(text.encode())

    # Placeholders

    def _found_placeholders(self) -> list[tuple[str, str | Callable[[re.Match[str]], str]]]:
        account = self._account
        ws = self._base.replace("http", "ws", 1)
        return [
            (r"postgresql://rillbase:…@[^\s\"]+", self._database),
            (r"http://127\.0\.0\.1:8080", self._base),
            (r"ws://127\.0\.0\.1:8080", ws),
            (r"rbk_dev_(…|\.\.\.)", self._account.admin_key),
            (r"rbp_dev_(…|\.\.\.)", account.publishable_key),
            (r"rbt_(…|\.\.\.)", account.personal_token),
            (r"\btenants/acme\b", f"tenants/{account.slug}"),
            (r"ada@example\.com", account.email),
        ]

    def _sign(self, claims: Json) -> None:
        """Let `eyJ…` be a token with these claims, and `eyJ…bob` the one of another user."""
        assert self._issuer is not None, "the page needs an issuer"
        issuer = self._issuer

        def token(named: re.Match[str]) -> str:
            return issuer.sign(claims | ({"sub": named[1]} if named[1] else {}))

        self._placeholders.insert(0, (r"\beyJ…(\w*)", token))

    def _filled(self, text: str) -> str:
        for pattern, value in self._placeholders:
            text = re.sub(pattern, value, text)
        return text

    # Requests

    def _request(self, fence: Fence) -> None:
        head, _, body = self._filled(fence.text).partition("\n\n")
        first, *lines = head.splitlines()
        method, path = first.split(" ", 1)
        headers = {"Authorization": f"Bearer {self._account.admin_key}"}
        headers |= {name: value for line in lines for name, value in _HEADER.findall(line)}
        if body:
            headers.setdefault("Content-Type", "application/json")
        if path.endswith("/issuers"):
            assert self._issuer is not None, "the page needs an issuer"
            body = json.dumps(self._issuer.adopt(json.loads(body)))
        answer = requests.request(
            method, self._base + path, data=body.encode() or None, headers=headers, timeout=60
        )
        expected_status = int(fence.attributes.get("refused", "0"))
        assert answer.ok == (expected_status == 0), f"{answer.status_code} {answer.text}"
        self._answer = answer.json() if answer.content else None
        if answer.ok and method == "POST" and path.endswith("/aggregates"):
            self._await_rows(json.loads(body)["name"])

    def _await_rows(self, aggregate: str) -> None:
        """Wait until a view has been built, which takes less time than reading on."""
        url = f"{self._base}/v1/aggregates/{aggregate}/query"
        headers = {"Authorization": f"Bearer {self._account.admin_key}"}

        def is_built() -> bool:
            answer = requests.post(url, json={"snapshot": "fresh"}, headers=headers, timeout=60)
            return answer.status_code != HTTPStatus.CONFLICT

        wait_until(is_built, what="the view")

    def _json(self, fence: Fence) -> None:
        match fence.attributes.get("is"):
            case "answer":
                (shown,) = read(fence.text)
                check_shape(self._answer, shown)
            case "messages":
                for message in read(self._filled(fence.text)):
                    self._say(message)
            case "frames":
                self._awaited += [(fence, frame) for frame in read(fence.text)]
            case "claims":
                self._sign(json.loads(fence.text))
            case "variables" | "alternative":
                pass  # The operation before it has taken them; it has a test of its own.
            case other:
                raise AssertionError(f"{fence.place}: what is this JSON? {other}")

    # The socket

    def _say(self, message: Json) -> None:
        if self._socket is None:
            self._socket = self._stack.enter_context(opened(self._base))
            if message["type"] != "hello":
                self._say({"type": "hello", "token": self._account.admin_key})
        if message.get("idempotency_key") == "…":
            message["idempotency_key"] = unique("key")
        self._socket.send(**message)
        answer = ANSWERS.get(message["type"], "ack")
        frame = self._frame((answer, "error"), message.get("id"))
        assert frame["type"] == answer, frame
        self._frames.append(frame)

    def _hear(self) -> None:
        """Wait until each frame that the page shows has arrived."""
        for fence, shown in self._awaited:
            result = next((one for one in self._frames if _is_same(one, shown)), None)
            try:
                check_shape(result or self._frame((shown["type"],), shown.get("id")), shown)
            except Exception as error:
                error.add_note(f"in the frames at {fence.place}")
                raise

    def _frame(self, kinds: Sequence[str], identity: object) -> Json:
        assert self._socket is not None, "nobody has said anything"
        return self._socket.wait_for(
            lambda frame: frame["type"] in kinds and frame.get("id") == identity
        )

    # GraphQL

    def _graphql(self, fence: Fence, following: Sequence[Fence]) -> None:
        names = re.findall(r"\$(\w+)\s*:", fence.text)
        known = {**VARIABLES, "slug": self._account.slug}
        variables: Json = {name: known[name] for name in names}
        for after in following:
            if after.attributes.get("is") == "variables":
                (given,) = read(after.text)
                variables |= given
        if fence.text.lstrip().startswith("subscription"):
            with graphql_greeted(self._base, token=self._account.admin_key) as listening:
                listening.subscribe("s", fence.text, **variables)
                payload = listening.payload("s")
        else:
            payload = requests.post(
                f"{self._base}/graphql",
                json={"query": fence.text, "variables": variables},
                headers={"Authorization": f"Bearer {self._account.admin_key}"},
                timeout=60,
            ).json()
        assert "errors" not in payload, payload


def _output(language: str, fences: Sequence[Fence]) -> str:
    """Return what the page shows as the output of its programs in a language."""
    shown, latest = "", ""
    for fence in fences:
        latest = fence.language if fence.language in PROGRAMS else latest
        if fence.language == "text" and latest == language:
            shown += fence.text
    return shown


def _is_same(frame: Json, shown: Json) -> bool:
    return frame["type"] == shown["type"] and frame.get("id") == shown.get("id")
