"""Exchanges the demo tenant's login between the launcher and ``prepare_database``.

The command reads the login from a file, replaces it if it does not work, and writes the valid one
to the file. Between starts, the login is stored with the other secrets: the server shows an API key
only once, but every start should show the same one.
"""

import json
from dataclasses import asdict, replace
from pathlib import Path

from .atomic_file import write_atomically
from .data_directory import DataDirectory
from .secrets_file import DemoCredentials, Secrets, save


def hand_over(directory: DataDirectory, secrets: Secrets) -> Secrets:
    """Write the stored login to the file for ``prepare_database``."""
    # A file that a killed launcher did not read is newer than the secrets.
    secrets = store_login(directory, secrets)
    if secrets.demo.api_key:
        write_atomically(directory.demo, json.dumps(asdict(secrets.demo)))
    return secrets


def sign_in_link(directory: DataDirectory) -> str:
    """Return the sign-in link from ``prepare_database``; empty if there is none.

    It can be used once and expires soon, so it is shown but not stored.
    """
    content = _read(directory.demo)
    link = content.get("sign_in_link") if isinstance(content, dict) else None
    return link if isinstance(link, str) else ""


def store_login(directory: DataDirectory, secrets: Secrets) -> Secrets:
    """Store the login from ``prepare_database``, and remove its file."""
    demo = secrets.demo.updated(_read(directory.demo))
    if demo != secrets.demo:
        secrets = save(directory.secrets, replace(secrets, demo=demo))
    directory.demo.unlink(missing_ok=True)
    return secrets


def write_key(directory: DataDirectory, path: Path) -> None:
    """Write the demo's API key to a file for the process that plays the demo's clients.

    The key is in the file of ``prepare_database`` until the launcher has stored it. A file that
    cannot be read is no reason to end the installation: the clients report a missing key.
    """
    stored = _read(directory.secrets)
    login = _read(directory.demo) or (stored.get("demo") if isinstance(stored, dict) else None)
    if key := DemoCredentials().updated(login).api_key:
        write_atomically(path, key)


def _read(path: Path) -> object:
    """Return the JSON in a file, or None."""
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return None
