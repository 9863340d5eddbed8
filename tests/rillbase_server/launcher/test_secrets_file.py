"""The secrets of an installation."""

import json
import stat
from pathlib import Path

import pytest

from rillbase_server.launcher.problems import ExitCode, LauncherProblem
from rillbase_server.launcher.secrets_file import DemoCredentials, load_or_create, save


def test_the_first_start_creates_secrets_that_only_the_owner_can_read(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    secrets = load_or_create(path, data_exists=False)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    values = {
        secrets.secret_key,
        secrets.key_pepper,
        secrets.postgres_password,
        secrets.valkey_password,
    }
    assert len(values) == 4
    assert all(len(value) >= 32 for value in values)


def test_later_starts_find_the_same_secrets(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    secrets = load_or_create(path, data_exists=False)
    assert load_or_create(path, data_exists=True) == secrets


def test_an_installation_from_before_the_storage_node_gets_a_token_for_it(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    stored = load_or_create(path, data_exists=False)
    older = json.loads(path.read_text())
    del older["storage_token"]
    path.write_text(json.dumps(older))
    secrets = load_or_create(path, data_exists=True)
    assert secrets.secret_key == stored.secret_key
    assert secrets.storage_token != stored.storage_token
    assert load_or_create(path, data_exists=True) == secrets


def test_the_demo_login_is_remembered(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    secrets = load_or_create(path, data_exists=False)
    demo = DemoCredentials("a@example.org", "secret", "demo", "rbk_x")
    save(path, type(secrets)(secrets.secret_key, secrets.key_pepper, "p", "v", demo))
    assert load_or_create(path, data_exists=True).demo == demo


def test_empty_values_do_not_replace_known_ones() -> None:
    known = DemoCredentials("a@example.org", "secret", "demo", "rbk_x")
    assert known.updated(
        {"email": "b@example.org", "api_key": None, "password": ""}
    ) == DemoCredentials("b@example.org", "secret", "demo", "rbk_x")


def test_data_without_secrets_is_refused_rather_than_given_new_ones(tmp_path: Path) -> None:
    with pytest.raises(LauncherProblem) as problem:
        load_or_create(tmp_path / "secrets.json", data_exists=True)
    assert problem.value.code is ExitCode.SECRETS_UNUSABLE
    assert not (tmp_path / "secrets.json").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"secret_key": 1}'])
def test_a_damaged_file_is_named_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "secrets.json"
    path.write_text(text)
    with pytest.raises(LauncherProblem, match="is damaged"):
        load_or_create(path, data_exists=True)
    assert path.read_text() == text


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00\x01", b"[]", b'{"secret_key": ""}'])
def test_a_damaged_file_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "secrets.json"
    path.write_bytes(content)
    with pytest.raises(LauncherProblem, match="is damaged") as problem:
        load_or_create(path, data_exists=True)
    assert problem.value.code is ExitCode.SECRETS_UNUSABLE
    assert path.read_bytes() == content
