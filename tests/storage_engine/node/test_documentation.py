"""What the page about the storage node shows is what happens, and it shows every command."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import redis

from tests.own_storage_node import OwnStorageNode
from tests.storage_engine.node.listener import Listener

PAGE = Path(__file__).resolve().parents[3] / "docs" / "storage-node.md"
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: Ends the connection, or the node: shown by no example.
#: They end the session, or take bytes instead of text.
WITHOUT_EXAMPLE = {"QUIT", "SHUTDOWN", "RB.COL.GET", "RB.COL.VERSIONS", "RB.COL.WRITE"}


class Session:
    """A connection that remembers the subscription and the position that it was last shown."""

    def __init__(self, node: OwnStorageNode) -> None:
        self._listener = Listener(node.client(protocol=3))
        self._seen: dict[str, Any] = {}

    def answer(self, line: str) -> str:
        """Return what a line of an example brings."""
        if line == "(push)":
            return f"(push) {json.dumps(self._listener.next_push(), ensure_ascii=False)}"
        words = [str(self._seen.get(word, word)) for word in shlex.split(line)]
        try:
            reply = self._listener.ask(*words)
        except redis.RedisError as refusal:
            return f"(error) {refusal}"
        self._remember(reply)
        if words[0] == "RB.TX.BEGIN":
            self._seen["$transaction"] = reply
        return json.dumps(reply, ensure_ascii=False)

    def _remember(self, reply: Any) -> None:
        if isinstance(reply, dict):
            known = {f"${name}": value for name, value in reply.items()}
            self._seen |= {
                name: known[name] for name in ("$subscription", "$position") if name in known
            }


def examples() -> Iterator[tuple[str, str]]:
    """Yield each line that asks for something, with the answer shown."""
    for block in BLOCK.findall(PAGE.read_text()):
        lines = block.splitlines()
        for line, following in zip(lines, [*lines[1:], ""], strict=True):
            if line.startswith("> "):
                yield line[2:], following
            elif line.startswith("(push)"):
                yield "(push)", line


def fits(shown: str, answer: str) -> bool:
    """Whether an answer is what is shown; `…` stands for what differs each time."""
    if answer.startswith("(error)"):
        # Clients cut some codes off.
        return shown.startswith("(error)") and shown.endswith(answer.removeprefix("(error) "))
    return re.fullmatch(re.escape(shown).replace("…", ".*"), answer) is not None


def test_every_example_is_answered_as_shown(node: OwnStorageNode) -> None:
    session = Session(node)
    for line, shown in examples():
        answer = session.answer(line)
        assert fits(shown, answer), f"> {line}\n{answer}\nis shown as\n{shown}"


def test_every_command_has_an_example(node: OwnStorageNode) -> None:
    shown = {line.split()[0] for line, _ in examples() if line != "(push)"}
    commands = {name.upper() for name in Listener(node.client()).ask("COMMAND", "LIST")}
    assert commands - WITHOUT_EXAMPLE == shown
    assert all(f"`{name}`" in PAGE.read_text() for name in WITHOUT_EXAMPLE)
