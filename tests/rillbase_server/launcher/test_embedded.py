"""The embedded servers keep what they have acknowledged, however they end."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from rillbase_server.launcher.embedded import EmbeddedPostgres, EmbeddedServerError, EmbeddedValkey
from rillbase_server.launcher.process import family, identify
from rillbase_server.launcher.valkey import ValkeyStore
from tests.launcher_command import reachable_directory
from tests.waiting import wait_until

PASSWORD = 'p/a:s@s"w\\ord'


@pytest.fixture
def directory() -> Iterator[Path]:
    with reachable_directory() as directory:
        yield directory


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    """A cluster that has run once."""
    with reachable_directory() as directory:
        with EmbeddedPostgres(directory / "postgres", superuser_password=PASSWORD, durable=False):
            pass
        yield directory / "postgres"


@pytest.fixture
def created(directory: Path, template: Path) -> Path:
    """The directory of a separate cluster that exists already."""
    # Preserves the owner, which is another account if the tests run as root.
    subprocess.run(["cp", "-a", template, directory], check=True)
    return directory / "postgres"


def test_postgres_keeps_committed_rows_through_repeated_kills(created: Path) -> None:
    with EmbeddedPostgres(created, superuser_password=PASSWORD) as server:
        with psycopg.connect(server.url) as connection:
            connection.execute("CREATE TABLE kept (number int)")
        for number in range(3):
            with psycopg.connect(server.url) as connection:
                connection.execute("INSERT INTO kept VALUES (%s)", (number,))
            os.kill(server.pid, signal.SIGKILL)
            server.start()
        with psycopg.connect(server.url) as connection:
            rows = connection.execute("SELECT number FROM kept ORDER BY 1").fetchall()
    assert rows == [(0,), (1,), (2,)]


def test_postgres_starts_after_it_was_killed_while_its_backends_hung(created: Path) -> None:
    with EmbeddedPostgres(created, superuser_password=PASSWORD) as server:
        with psycopg.connect(server.url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS number")
        with psycopg.connect(server.url) as hung:
            postmaster = identify(server.pid)
            assert postmaster is not None
            backends = [identify(process.pid) for process in family(postmaster)]
            for process in family(postmaster):
                process.suspend()
            os.kill(server.pid, signal.SIGKILL)
            server.start()
            assert len(backends) > 1
            assert not any(backend and backend.is_running for backend in backends)
            with pytest.raises(psycopg.OperationalError):
                hung.execute("SELECT 1")
        with psycopg.connect(server.url) as connection:
            assert connection.execute("SELECT number FROM kept").fetchall() == [(1,)]


def test_postgres_has_durability_checksums_and_a_password(directory: Path) -> None:
    with EmbeddedPostgres(directory / "postgres", superuser_password=PASSWORD) as server:
        with psycopg.connect(server.url) as connection:
            for name, expected in (
                ("data_checksums", "on"),
                ("synchronous_commit", "on"),
                ("fsync", "on"),
                ("listen_addresses", "127.0.0.1"),
            ):
                row = connection.execute("SELECT current_setting(%s)", (name,)).fetchone()
                assert row == (expected,)
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(server.url.replace("postgres:", "postgres:wrong", 1))


def test_postgres_takes_over_from_a_server_that_still_runs(created: Path) -> None:
    left = EmbeddedPostgres(created, superuser_password=PASSWORD)
    left.start()
    pid = left.pid
    with EmbeddedPostgres(created, superuser_password=PASSWORD) as server:
        assert identify(pid) is None
        with psycopg.connect(server.url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    left.stop()


def test_postgres_starts_although_its_lock_file_names_a_stranger(created: Path) -> None:
    server = EmbeddedPostgres(created, superuser_password=PASSWORD)
    server.start()
    lock = server.cluster.data / "postmaster.pid"
    text = lock.read_text().replace(str(server.pid), str(os.getppid()), 1)
    server.stop()
    lock.write_text(text)
    server.start()
    server.stop()


def test_an_interrupted_initdb_is_repeated(directory: Path) -> None:
    half = directory / "postgres" / "data.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    server = EmbeddedPostgres(directory / "postgres", superuser_password=PASSWORD, durable=False)
    with server, psycopg.connect(server.url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_server_that_cannot_start_reports_the_reason(created: Path) -> None:
    server = EmbeddedPostgres(created, superuser_password=PASSWORD, durable=False)
    with server:
        pass
    (server.cluster.data / "global" / "pg_control").unlink()
    with pytest.raises(EmbeddedServerError, match="pg_control"):
        server.start()


def test_valkey_keeps_its_data_through_a_kill(directory: Path) -> None:
    with EmbeddedValkey(directory / "valkey", password=PASSWORD) as server:
        with redis.Redis.from_url(server.url) as client:
            client.set("kept", "1")
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        os.kill(server.pid, signal.SIGKILL)
        server.start()
        with redis.Redis.from_url(server.url) as client:
            assert client.get("kept") == b"1"


def test_valkey_requires_its_password(directory: Path) -> None:
    with (
        EmbeddedValkey(directory / "valkey", password=PASSWORD) as server,
        redis.Redis(port=server.store.port) as client,
        pytest.raises(redis.AuthenticationError),
    ):
        client.ping()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's help is Linux's")
def test_servers_end_when_their_parent_is_killed(directory: Path) -> None:
    script = f"""
import sys, time
from pathlib import Path
from rillbase_server.launcher.embedded import EmbeddedPostgres, EmbeddedValkey
p = EmbeddedPostgres(Path({str(directory)!r}) / "postgres", superuser_password="p", durable=False)
v = EmbeddedValkey(Path({str(directory)!r}) / "valkey", password="v")
p.start(); v.start()
print(p.pid, v.pid, flush=True)
time.sleep(600)
"""
    path = str(Path(__file__).resolve().parents[3] / "platform")
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        env=dict(os.environ) | {"PYTHONPATH": path},
    ) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
        parent.kill()
    wait_until(lambda: all(identify(pid) is None for pid in pids), what="both servers to be gone")


def _overwrite_middle(data: Path) -> None:
    (file,) = data.glob("*.incr.aof")
    content = bytearray(file.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 50] = b"\xff" * 50
    file.write_bytes(content)


def _spoil_base(data: Path) -> None:
    (file,) = data.glob("*.base.rdb")
    file.write_bytes(b"REDIS9999" + file.read_bytes()[9:])


def _cut_base(data: Path) -> None:
    (file,) = data.glob("*.base.rdb")
    file.write_bytes(file.read_bytes()[:-12])


def _remove_base(data: Path) -> None:
    (file,) = data.glob("*.base.rdb")
    file.unlink()


def _spoil_manifest(data: Path) -> None:
    (file,) = data.glob("*.manifest")
    file.write_text("nothing of a manifest\n")


def _empty_manifest(data: Path) -> None:
    (file,) = data.glob("*.manifest")
    file.write_text("")


@pytest.mark.parametrize(
    "damage",
    [
        _overwrite_middle,
        _spoil_base,
        _cut_base,
        _remove_base,
        _spoil_manifest,
        _empty_manifest,
    ],
)
def test_valkey_moves_damaged_data_aside_and_starts_empty(
    directory: Path, damage: Callable[[Path], None]
) -> None:
    with EmbeddedValkey(directory / "valkey", password=PASSWORD) as server:
        with redis.Redis.from_url(server.url) as client:
            client.mset({f"key {number}": "v" * 50 for number in range(200)})
            client.waitaof(1, 0, 10_000)
        os.kill(server.pid, signal.SIGKILL)
        server.stop()
        damage(directory / "valkey" / "appendonlydir")
        server.start()
        with redis.Redis.from_url(server.url) as client:
            assert client.dbsize() == 0
            client.set("alive", 1)
        (aside,) = (directory / "valkey").glob("appendonlydir.damaged-*")
        assert any(aside.iterdir())


def test_few_damaged_folders_of_valkey_are_kept_and_other_failures_move_nothing(
    directory: Path,
) -> None:
    store = ValkeyStore(directory, PASSWORD, 1)
    data = directory / "appendonlydir"
    data.mkdir()
    assert store.quarantine_damaged_data("Address already in use") == ""
    full = "Error writing the append only file: No space left on device"
    assert store.quarantine_damaged_data(full) == ""
    assert data.exists()
    for number in range(4):
        data.mkdir(exist_ok=True)
        (data / "number").write_text(str(number))
        assert "starts empty" in store.quarantine_damaged_data("Invalid AOF manifest file format")
    kept = sorted(directory.glob("appendonlydir.damaged-*"))
    assert [(folder / "number").read_text() for folder in kept] == ["2", "3"]


@pytest.mark.parametrize("content", [b"", b"nonsense\n", b"\xff\xfe\x00", b"-1\n"])
def test_postgres_starts_beside_a_damaged_lock_file(created: Path, content: bytes) -> None:
    with EmbeddedPostgres(created, superuser_password=PASSWORD) as server:
        server.stop()
        (created / "data" / "postmaster.pid").write_bytes(content)
        server.start()
        with psycopg.connect(server.url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_postgres_is_created_again_after_a_kill_during_initdb(directory: Path) -> None:
    unfinished = directory / "postgres" / "data.new"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("18\n")
    (unfinished / "base").mkdir()
    with (
        EmbeddedPostgres(
            directory / "postgres", superuser_password=PASSWORD, durable=False
        ) as server,
        psycopg.connect(server.url) as connection,
    ):
        assert connection.execute("SELECT 1").fetchone() == (1,)
