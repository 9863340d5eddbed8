"""A reader who tries a page's examples, in their order, as one tenant of a running server."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import requests

from tenants.models import ApiKey
from tests.caller import signed_in
from tests.documentation.fences import Fence
from tests.documentation.programs import run_javascript, run_python, terminal
from tests.documentation.shapes import covers, read
from tests.make import MadeTenant, make_key, unique
from tests.realtime.client import Client, opened
from tests.rillbase_server.graphql.listening import greeted as graphql_greeted

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

#: What says that a message has had its effect.
ANSWERS = {"hello": "welcome", "subscribe": "ready"}


class Reader:
    """One reader of one page."""

    def __init__(self, base: str, made: MadeTenant, folder: Path) -> None:
        self._base = base
        self._made = made
        self._folder = folder
        self._stack = ExitStack()
        self._answer: object = None
        self._operation: tuple[str, Json | None] | None = None
        self._socket: Client | None = None
        #: Frames that were heard while something else was waited for.
        self._frames: list[Json] = []
        self._awaited: list[tuple[Fence, Json]] = []
        self._terminal = self._stack.enter_context(
            terminal(folder, URL=base, KEY=made.admin_key, RILLBASE_URL=base)
        )
        self._placeholders = self._found_placeholders()

    def try_all(self, fences: Sequence[Fence]) -> None:
        """Try the examples, each as what it is; programs of one language are one."""
        done: set[str] = set()
        with self._stack:
            for place, fence in enumerate(fences):
                if fence.language in ("python", "js"):
                    if fence.language not in done:
                        done.add(fence.language)
                        self._program([one for one in fences if one.language == fence.language])
                    continue
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
        }
        tries[fence.language]()

    def _program(self, fences: Sequence[Fence]) -> None:
        run = run_python if fences[0].language == "python" else run_javascript
        source = "\n".join(self._filled(fence.text) for fence in fences)
        try:
            run(source, self._folder)
        except Exception as error:
            error.add_note(f"in the program of {fences[0].place}")
            raise

    # Placeholders

    def _found_placeholders(self) -> list[tuple[str, str]]:
        tenant, owner = self._made.tenant, self._made.owner
        publishable = make_key(
            tenant, kind=ApiKey.Kind.PUBLISHABLE, scopes=["documents:read", "documents:write"]
        )
        browser = signed_in(self._base, owner)
        token = browser.post("/api/v1/me/tokens", {"name": "docs"}).json()["secret"]
        ws = self._base.replace("http", "ws", 1)
        return [
            (r"http://127\.0\.0\.1:8080", self._base),
            (r"ws://127\.0\.0\.1:8080", ws),
            (r"rbk_dev_(…|\.\.\.)", self._made.admin_key),
            (r"rbp_dev_(…|\.\.\.)", publishable),
            (r"rbt_(…|\.\.\.)", token),
            (r"\btenants/acme\b", f"tenants/{tenant.slug}"),
            (r"ada@example\.com", owner.email),
        ]

    def _filled(self, text: str) -> str:
        for pattern, value in self._placeholders:
            text = re.sub(pattern, value, text)
        return text

    # Requests

    def _request(self, fence: Fence) -> None:
        head, _, body = self._filled(fence.text).partition("\n\n")
        first, *lines = head.splitlines()
        method, path = first.split(" ", 1)
        headers = {"Authorization": f"Bearer {self._made.admin_key}"}
        headers |= {name: value for line in lines for name, value in _HEADER.findall(line)}
        if body:
            headers.setdefault("Content-Type", "application/json")
        answer = requests.request(
            method, self._base + path, data=body.encode() or None, headers=headers, timeout=60
        )
        refused = int(fence.attributes.get("refused", "0"))
        assert answer.ok == (refused == 0), f"{answer.status_code} {answer.text}"
        self._answer = answer.json() if answer.content else None

    def _json(self, fence: Fence) -> None:
        match fence.attributes.get("is"):
            case "answer":
                (shown,) = read(fence.text)
                covers(self._answer, shown)
            case "messages":
                for message in read(self._filled(fence.text)):
                    self._say(message)
            case "frames":
                self._awaited += [(fence, frame) for frame in read(fence.text)]
            case "variables":
                pass  # The operation before it has taken them.
            case other:
                raise AssertionError(f"{fence.place}: what is this JSON? {other}")

    # The socket

    def _say(self, message: Json) -> None:
        if self._socket is None:
            self._socket = self._stack.enter_context(opened(self._base))
            if message["type"] != "hello":
                self._say({"type": "hello", "token": self._made.admin_key})
        if message.get("idempotency_key") == "…":
            message["idempotency_key"] = unique("key")
        self._socket.say(**message)
        answer = ANSWERS.get(message["type"], "ack")
        frame = self._heard((answer, "error"), message.get("id"))
        assert frame["type"] == answer, frame
        self._frames.append(frame)

    def _hear(self) -> None:
        """Wait until each frame that the page shows has come."""
        for fence, shown in self._awaited:
            found = next((one for one in self._frames if _is_same(one, shown)), None)
            try:
                covers(found or self._heard((shown["type"],), shown.get("id")), shown)
            except Exception as error:
                error.add_note(f"in the frames at {fence.place}")
                raise

    def _heard(self, kinds: Sequence[str], identity: object) -> Json:
        assert self._socket is not None, "nobody has said anything"
        return self._socket.wait_for(
            lambda frame: frame["type"] in kinds and frame.get("id") == identity
        )

    # GraphQL

    def _graphql(self, fence: Fence, following: Sequence[Fence]) -> None:
        names = re.findall(r"\$(\w+)\s*:", fence.text)
        known = {**VARIABLES, "slug": self._made.slug}
        variables: Json = {name: known[name] for name in names}
        for after in following:
            if after.attributes.get("is") == "variables":
                (given,) = read(after.text)
                variables |= given
        if fence.text.lstrip().startswith("subscription"):
            with graphql_greeted(self._base, token=self._made.admin_key) as listening:
                listening.subscribe("s", fence.text, **variables)
                payload = listening.payload("s")
        else:
            payload = requests.post(
                f"{self._base}/graphql",
                json={"query": fence.text, "variables": variables},
                headers={"Authorization": f"Bearer {self._made.admin_key}"},
                timeout=60,
            ).json()
        assert "errors" not in payload, payload


def _is_same(frame: Json, shown: Json) -> bool:
    return frame["type"] == shown["type"] and frame.get("id") == shown.get("id")
