"""Take a picture of every page of the console: on a desk and a phone, light and dark.

    python -m scripts.take_pictures --folder pictures
    python -m scripts.take_pictures --folder pictures --only /topics/vans --ready-file ready.json

Starts an installation for it, or uses the running one that wrote the ready file. Shows the demo
tenant, then an empty tenant, as a new user finds the pages. Needs Chromium.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from scripts.installation import installation
from scripts.provision import web_browser
from tests import chromium
from tests.chromium import Page

DESK, PHONE = (1440, 900), (390, 844)
EMPTY = "empty"
#: Pages of the console, with what shows that each has loaded.
PAGES = {
    "/overview": "h1",
    "/start": "h1",
    "/collections/deliveries": "[data-state=live]",
    "/collections/todos/schema": "h1",
    "/collections/todos/rules": "h1",
    "/collections/todos/indexes": "h1",
    "/collections/todos/life": "h1",
    "/saved": "h1",
    "/collections/stock": "[data-state=live]",
    "/collections/stock/source": "h1",
    "/playground": "h1",
    "/subscriptions": "h1",
    "/activity": ".chart",
    "/grid": "h1",
    "/topics": "h1",
    "/topics/vans": ".topic-map svg",
    "/aggregates": "h1",
    "/aggregates/sales": ".chart",
    "/datasets": "h1",
    "/datasets/visits": "h1",
    "/datasets/visits/query": "h1",
    "/graphql": "h1",
    "/webhooks": "h1",
    "/keys": "h1",
    "/members": "h1",
    "/usage": "h1",
    "/requests": "h1",
    "/errors": "h1",
    "/audit": "h1",
    "/settings": "h1",
}
#: Pages that a tenant without anything has.
LISTS = [path for path in PAGES if path.count("/") == 1]
#: Until charts and lists have been filled.
SETTLE_MS = 2_500


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.take_pictures", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--ready-file", type=Path, help="as written by `manage.py up`")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--only", nargs="*", help="paths of pages, such as /topics")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    program = web_browser.find()
    if program is None:
        print("this machine has no Chromium", file=sys.stderr)
        return 1
    options.folder.mkdir(parents=True, exist_ok=True)
    with installation(options.ready_file) as ready, chromium.running(program) as browser:
        page = browser.page()
        sign_in(page, ready)
        paths = options.only or list(PAGES)
        for path in paths:
            show(page, f"{ready['url']}/t/{ready['tenant']}{path}", PAGES.get(path, "h1"))
            take(page, options.folder, f"{ready['tenant']}{path.replace('/', '-')}")
        for path in (path for path in paths if path in LISTS):
            show(page, f"{ready['url']}/t/{EMPTY}{path}", "h1")
            take(page, options.folder, f"{EMPTY}{path.replace('/', '-')}")
    return 0


def show(page: Page, url: str, loaded: str) -> None:
    page.open(url)
    page.wait(f"document.querySelector({loaded!r})")
    page.evaluate(f"new Promise((resolve) => setTimeout(resolve, {SETTLE_MS}))")


def sign_in(page: Page, ready: dict[str, str]) -> None:
    """Sign in as the demo user, and create the empty tenant unless it exists."""
    page.open(f"{ready['url']}/")
    page.wait("document.querySelector('form')")
    login = {"email": ready["email"], "password": ready["password"]}
    call = """(async (login, empty) => {
        const send = (path, body, headers) => fetch(path, {method: "POST",
            headers: {"Content-Type": "application/json", ...headers}, body: JSON.stringify(body)});
        const {csrf_token: token} = await (await send("/api/v1/auth/login", login)).json();
        const tenant = {slug: empty, name: "Empty"};
        return (await send("/api/v1/tenants", tenant, {"X-CSRF-Token": token})).status;
    })"""
    page.evaluate(f"{call}({json.dumps(login)}, {json.dumps(EMPTY)})")


def take(page: Page, folder: Path, name: str) -> None:
    for size, (width, height) in (("desk", DESK), ("phone", PHONE)):
        for theme in ("light", "dark"):
            file = folder / f"{name}-{size}-{theme}.png"
            page.picture(file, width=width, height=height, dark=theme == "dark")


if __name__ == "__main__":
    sys.exit(main())
