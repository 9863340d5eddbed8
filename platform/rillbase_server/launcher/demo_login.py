"""Exchanges the demo tenant's login between the launcher and ``prepare_database``.

The command reads the login from a file, replaces it if it does not work, and writes the valid one
to the file. Between starts, the login is stored with the other secrets: the server shows an API key
only once, but every start should show the same one.
"""

import json
from dataclasses import asdict, replace

from .atomic_file import write_atomically
from .data_directory import DataDirectory
from .secrets_file import Secrets, save


def hand_over(directory: DataDirectory, secrets: Secrets) -> Secrets:
    """Write the stored login to the file for ``prepare_database``."""
    # A file that a killed launcher did not read is newer than the secrets.
    secrets = take_in(directory, secrets)
    if all(asdict(secrets.demo).values()):
        write_atomically(directory.demo, json.dumps(asdict(secrets.demo)))
    return secrets


def sign_in_link(directory: DataDirectory) -> str:
    """Return the sign-in link from ``prepare_database``; empty if there is none.

    It can be used once and expires soon, so it is shown but not stored.
    """
    try:
        link = json.loads(directory.demo.read_text()).get("sign_in_link", "")
    except (FileNotFoundError, ValueError, AttributeError):
        return ""
    return link if isinstance(link, str) else ""


def take_in(directory: DataDirectory, secrets: Secrets) -> Secrets:
    """Store the login from ``prepare_database``, and remove its file."""
    try:
        answer = json.loads(directory.demo.read_text())
    except (FileNotFoundError, ValueError):
        answer = None
    demo = secrets.demo.updated(answer)
    if demo != secrets.demo:
        secrets = save(directory.secrets, replace(secrets, demo=demo))
    directory.demo.unlink(missing_ok=True)
    return secrets
