"""Settings are checked before anything starts, and production takes no risks."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from foundation.environment import DEVELOPMENT_SECRET, Environment, environment

SAFE = {
    "RILLBASE_ENV": "production",
    "RILLBASE_DEBUG": "false",
    "RILLBASE_SECRET_KEY": "s" * 40,
    "RILLBASE_KEY_PEPPER": "p" * 40,
    "RILLBASE_HOSTS": "db.example.com",
    "RILLBASE_PUBLIC_URL": "https://db.example.com",
    "RILLBASE_TRUSTED_PROXIES": "10.0.0.0/8, fd00::/8",
    "RILLBASE_EMAIL_URL": "smtps://user:password@mail.example.com",
    "RILLBASE_ALLOW_LOOPBACK_TARGETS": "false",
}


def settings(monkeypatch: pytest.MonkeyPatch, **changes: str) -> Environment:
    for name, value in {**SAFE, **changes}.items():
        monkeypatch.setenv(name, value)
    return Environment()


def test_safe_settings_start(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings(monkeypatch).rillbase_env == "production"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RILLBASE_DEBUG", "true"),
        ("RILLBASE_SECRET_KEY", DEVELOPMENT_SECRET),
        ("RILLBASE_SECRET_KEY", "short"),
        ("RILLBASE_SECRET_KEY", SAFE["RILLBASE_KEY_PEPPER"]),
        ("RILLBASE_KEY_PEPPER", DEVELOPMENT_SECRET),
        ("RILLBASE_HOSTS", "*"),
        ("RILLBASE_HOSTS", "db.example.com,.example.com"),
        ("RILLBASE_HOSTS", ""),
        ("RILLBASE_PUBLIC_URL", "http://db.example.com"),
        ("RILLBASE_TRUSTED_PROXIES", "0.0.0.0/0"),
        ("RILLBASE_TRUSTED_PROXIES", "10.0.0.0/8,::/0"),
        ("RILLBASE_TRUSTED_PROXIES", "0.0.0.0/1,10.0.0.0/8,128.0.0.0/1"),
        ("RILLBASE_EMAIL_URL", "log://"),
        ("RILLBASE_ALLOW_LOOPBACK_TARGETS", "true"),
    ],
)
def test_production_does_not_start_with_what_is_unsafe(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    with pytest.raises(ValidationError, match="not safe for production") as refused:
        settings(monkeypatch, **{name: value})
    assert SAFE["RILLBASE_KEY_PEPPER"] not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RILLBASE_ENV", "staging"),
        ("RILLBASE_BODY_MAX_BYTES", "lots"),
        ("RILLBASE_EMAIL_URL", "pigeon://coop"),
        ("RILLBASE_TRUSTED_PROXIES", "10.0.0.0/33"),
        ("RILLBASE_REFUSALS_PER_MINUTE", "0"),
    ],
)
def test_a_setting_of_the_wrong_form_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    with pytest.raises(ValidationError, match=name.lower()):
        settings(monkeypatch, **{name: value})


def test_a_setting_may_be_in_a_file_and_a_variable_counts_more(
    settings_environment: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "RILLBASE_EMAIL_FROM").write_text("Files <files@example.com>\n")
    (tmp_path / "RILLBASE_SECRET_KEY").write_text("k" * 40)
    settings_environment.setenv("RILLBASE_SECRET_KEY", "v" * 40)
    settings_environment.setenv("RILLBASE_SETTINGS_DIR", str(tmp_path))
    settings = environment()
    assert settings.rillbase_email_from == "Files <files@example.com>"
    assert settings.rillbase_secret_key.get_secret_value() == "v" * 40
