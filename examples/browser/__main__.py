"""Serve a page with live queries.

    python -m examples.browser --key rbk_dev_…         ideas to vote on
    python -m examples.browser chat --key rbk_dev_…    chat rooms, with offline writes
    python -m examples.browser shop --key rbk_dev_…    a dashboard of incoming orders

URL and key come from the options, or from RILLBASE_URL and RILLBASE_KEY. The key is not sent to the
page. It is used once: to create a collection with access rules and a publishable key for the page,
and to allow the page's origin. The page then calls Rillbase directly.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from http.server import ThreadingHTTPServer

from examples.browser.api import Api, CallRejected
from examples.browser.apps import APPS, SHOP
from examples.browser.customers import Trade
from examples.browser.pages import handler
from examples.browser.prepare import prepare


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.browser", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("app", nargs="?", choices=list(APPS), default="ideas")
    parser.add_argument("--url", default=os.environ.get("RILLBASE_URL", "http://127.0.0.1:8080"))
    parser.add_argument("--key", default=os.environ.get("RILLBASE_KEY", ""))
    parser.add_argument("--port", type=int, default=8090)
    options = parser.parse_args()
    if not options.key:
        parser.error("a key is required: --key or RILLBASE_KEY")
    return options


def main() -> int:
    """Serve until Ctrl-C."""
    options = arguments()
    app, url = APPS[options.app], options.url.rstrip("/")
    unprepared = handler(app.folder, {}, "")
    with ExitStack() as stack:
        try:
            server = stack.enter_context(
                ThreadingHTTPServer(("127.0.0.1", options.port), unprepared)
            )
        except OSError as error:
            print(
                f"Port {options.port}: {error.strerror}. Choose a different one with --port.",
                file=sys.stderr,
            )
            return 1
        origin = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            settings: Mapping[str, str] = prepare(app, url, options.key, origin)
        except CallRejected as refused:
            print(refused, file=sys.stderr)
            return 1
        server.RequestHandlerClass = handler(app.folder, settings, url)
        if app is SHOP:
            stack.enter_context(Trade(Api(url, options.key), app.collection))
        print(f"Open {origin} {app.invitation}. Press Ctrl-C to stop.", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
