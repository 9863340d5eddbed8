"""The demo tenant's login on its way between the launcher and ``prepare_database``.

The command keeps the login that it finds in the file where that still works, and leaves there
whatever holds. Between starts the login lives with the other secrets: the API key is shown only
once by the server, and every start should show the same one.
"""

import json
from dataclasses import asdict, replace

from .atomic_file import write_atomically
from .data_directory import DataDirectory
from .secrets_file import Secrets, save


def hand_over(directory: DataDirectory, secrets: Secrets) -> Secrets:
    """Lay out the remembered login for ``prepare_database``."""
    # A file that a killed launcher did not take in is newer than the secrets.
    secrets = take_in(directory, secrets)
    if all(asdict(secrets.demo).values()):
        write_atomically(directory.demo, json.dumps(asdict(secrets.demo)))
    return secrets


def sign_in_link(directory: DataDirectory) -> str:
    """The link that ``prepare_database`` has left; empty where there is none.

    It is for one use soon, so it is shown and not remembered.
    """
    try:
        link = json.loads(directory.demo.read_text()).get("sign_in_link", "")
    except (FileNotFoundError, ValueError, AttributeError):
        return ""
    return link if isinstance(link, str) else ""


def take_in(directory: DataDirectory, secrets: Secrets) -> Secrets:
    """Remember the login that ``prepare_database`` has left, and remove its file."""
    try:
        answer = json.loads(directory.demo.read_text())
    except (FileNotFoundError, ValueError):
        answer = None
    demo = secrets.demo.updated(answer)
    if demo != secrets.demo:
        secrets = save(directory.secrets, replace(secrets, demo=demo))
    directory.demo.unlink(missing_ok=True)
    return secrets
