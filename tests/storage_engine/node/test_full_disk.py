"""On a full disk the node rejects writes, serves reads, and accepts writes again once there is
space.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import redis

from tests.own_storage_node import OwnStorageNode, ask, token_of
from tests.small_disk import SmallDisk, small_disk
from tests.waiting import wait_until

#: Publishing must work again this soon after space was freed.
RECOVERY_S = 10.0
AGGREGATE = '{"dimensions":["app"],"measures":{"n":{"op":"count"}}}'


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", size_mib=64) as disk_path:
        yield disk_path


@pytest.fixture
def small_node(disk: SmallDisk) -> Iterator[OwnStorageNode]:
    node = OwnStorageNode(disk.path, **{"reserve-mib": 8})
    yield node
    node.close()


def health(node: OwnStorageNode, page: str = "readyz") -> tuple[int, dict[str, object]]:
    try:
        with urlopen(f"http://127.0.0.1:{node.metrics_port}/{page}") as answer:
            return answer.status, json.load(answer)
    except HTTPError as refused:
        return refused.code, json.load(refused)


def refused_as_full(refused: redis.ResponseError) -> None:
    if not str(refused).startswith("STORAGE_FULL "):
        raise refused


def publish_until_full(client: redis.Redis, prefix: str) -> list[str]:
    """Publish until the disk is full; return the acknowledged names."""
    published: list[str] = []
    for number in range(10_000):
        name = f"{prefix}{number}"
        try:
            ask(
                client,
                "RB.PUB",
                "news",
                "ID",
                "1",
                "NAME",
                name,
                "DATA",
                f'{{"x":"{"y" * 50_000}"}}',
            )
        except redis.ResponseError as refused:
            refused_as_full(refused)
            return published
        published.append(name)
    raise AssertionError("the disk was never full")


def names(client: redis.Redis) -> list[str]:
    items: list[str] = []
    last = 0
    while page := ask(client, "RB.DATA", "news", "ID", "1", "AFTER", last):
        items += [one["name"] for one in page]
        last = page[-1]["position"]
    return items


def takes_writes(client: redis.Redis, name: str) -> bool:
    try:
        ask(client, "RB.PUB", "news", "ID", "1", "NAME", name)
    except redis.ResponseError as refused:
        refused_as_full(refused)
        return False
    return True


def test_writes_are_rejected_while_the_disk_is_full_and_accepted_afterwards(
    small_node: OwnStorageNode, disk: SmallDisk
) -> None:
    with small_node.namespace("full", protocol=3) as client:
        ask(client, "RB.TOPIC.CREATE", "news")
        ask(client, "RB.AGG.DEFINE", "calls", AGGREGATE)
        ask(client, "RB.AGG.ADD", "calls", '{"app":"shop"}')
        disk.fill(leave_bytes=2_000_000)
        published = publish_until_full(client, "before-")
        assert names(client) == published, "reads go on, and nothing that was refused is there"
        with pytest.raises(redis.ResponseError, match=r"^STORAGE_FULL"):
            ask(client, "RB.AGG.ADD", "calls", '{"app":"shop"}')
        query = ("RB.AGG.QUERY", "calls", '{"snapshot":"fresh"}')
        assert json.loads(ask(client, *query))["rows"] == [{"app": "shop", "n": 1}]
        for page in ("readyz", "healthz"):
            full = {"status": "degraded", "checks": {"engine": "storage_full"}}
            assert health(small_node, page) == (200, full)
        assert small_node.metric("rillbase_node_engine_full") == 1

        disk.empty()
        wait_until(lambda: takes_writes(client, "after"), what="room", timeout_s=RECOVERY_S)
        ask(client, "RB.AGG.ADD", "calls", '{"app":"shop"}')
        assert json.loads(ask(client, *query))["rows"] == [{"app": "shop", "n": 2}]
        wait_until(lambda: health(small_node)[1]["status"] == "ok", what="the node to be well")
        assert names(client) == [*published, "after"]
    small_node.kill()
    small_node.start()
    with small_node.namespace("full", protocol=3) as client:
        assert names(client) == [*published, "after"]


def test_a_node_that_is_started_on_a_full_disk_answers_reads(
    small_node: OwnStorageNode, disk: SmallDisk
) -> None:
    reserve = next(disk.path.glob("**/db")) / "RESERVE"
    wait_until(reserve.exists, what="the reserve")
    with small_node.namespace("full", protocol=3) as client:
        ask(client, "RB.TOPIC.CREATE", "news")
        disk.fill(leave_bytes=1_000_000)
        published = publish_until_full(client, "before-")
    small_node.kill()
    disk.fill()
    small_node.start()
    with small_node.client("full", token_of("full"), protocol=3) as client:
        assert names(client) == published
        assert not reserve.exists()
        disk.empty()
        wait_until(lambda: takes_writes(client, "after"), what="room", timeout_s=RECOVERY_S)
        assert names(client) == [*published, "after"]
    wait_until(reserve.exists, what="the reserve to be there again")


#: Lets `fdatasync` and `fsync` fail with EIO while a file exists.
FAILING_SYNC = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int fails(void) {
    const char *switch_ = getenv("FAILING_SYNC");
    return switch_ && access(switch_, F_OK) == 0;
}

#define SYNC(name) \
    int name(int file) { \
        static int (*real)(int); \
        if (fails()) { errno = EIO; return -1; } \
        if (!real) real = (int (*)(int)) dlsym(RTLD_NEXT, #name); \
        return real(file); \
    }

SYNC(fdatasync)
SYNC(fsync)
"""


class NodeOfFailingDisk(OwnStorageNode):
    """Its syncs fail while `broken` exists."""

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("a C compiler is needed to let syncs fail")
        self.broken = folder / "broken"
        self._library = folder / "failing_sync.so"
        source = folder / "failing_sync.c"
        source.write_text(FAILING_SYNC)
        build = [compiler, "-shared", "-fPIC", "-o", str(self._library), str(source), "-ldl"]
        subprocess.run(build, check=True)
        super().__init__(folder)

    errors: int | None = subprocess.PIPE
    said = ""

    def ended(self) -> int:
        process = self._running()
        _, errors = process.communicate()
        self.said = errors.decode()
        self._process = None
        return process.returncode

    def _variables(self) -> dict[str, str]:
        own = {"LD_PRELOAD": str(self._library), "FAILING_SYNC": str(self.broken)}
        return {**super()._variables(), **own}


def test_a_failed_sync_ends_the_node_and_what_it_acknowledged_is_there_afterwards(
    tmp_path: Path,
) -> None:
    node = NodeOfFailingDisk(tmp_path)
    try:
        with node.namespace("broken", protocol=3) as client:
            ask(client, "RB.TOPIC.CREATE", "news")
            assert takes_writes(client, "acknowledged")
            node.broken.touch()
            with pytest.raises((redis.ResponseError, redis.ConnectionError)):
                ask(client, "RB.PUB", "news", "ID", "1", "NAME", "unknown")
        assert node.ended() == 1
        assert "sync failed" in node.said
        node.broken.unlink()
        node.errors = None
        node.start()
        with node.client("broken", token_of("broken"), protocol=3) as client:
            assert "acknowledged" in names(client)
            assert takes_writes(client, "afterwards")
    finally:
        node.close()
