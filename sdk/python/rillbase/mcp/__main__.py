"""`python -m rillbase.mcp`: serve the tools over standard input and output."""

from __future__ import annotations

import argparse
import os
import sys
from urllib.parse import urlsplit

from rillbase.credentials import Credentials
from rillbase.http import Http
from rillbase.mcp.protocol import serve
from rillbase.mcp.tools import DataTools, tools
from rillbase.options import TIMEOUT_S

URL = "http://127.0.0.1:8080"


def main() -> None:
    """Serve until the client closes standard input."""
    parser = argparse.ArgumentParser(prog="python -m rillbase.mcp", description=main.__doc__)
    parser.add_argument("--allow-writes", action="store_true", help="add the tool `write`")
    options = parser.parse_args()
    url, key = os.environ.get("RILLBASE_URL", URL), os.environ.get("RILLBASE_KEY")
    at = urlsplit(url)
    if at.scheme not in ("http", "https") or not at.hostname:
        parser.error("RILLBASE_URL must be an http or https address")
    if not key:
        parser.error("RILLBASE_KEY must be an API key or a personal token")
    http = Http(url, Credentials(key=key, tenant=os.environ.get("RILLBASE_TENANT")), TIMEOUT_S)
    offered = tools(DataTools(http), allow_writes=options.allow_writes)
    try:
        serve(offered, sys.stdin.buffer, sys.stdout.buffer)
    except (BrokenPipeError, KeyboardInterrupt):
        # The client has ended; what is still buffered for it cannot be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    finally:
        http.close()


if __name__ == "__main__":
    main()
