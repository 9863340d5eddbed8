"""The pages of the quick starts show the programs that are in examples/."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "guide" / "quickstarts"
SHOWN = {
    "node": ["tasks.js"],
    "react": ["src/tasks.js", "src/Tasks.jsx"],
    "vue": ["src/tasks.js", "src/useLiveQuery.js", "src/Tasks.vue"],
    "nextjs": [
        "../shared/published-tasks.json",
        "lib/server.js",
        "lib/queries.js",
        "app/page.jsx",
        "app/actions.js",
        "app/Tasks.jsx",
    ],
    "plain": ["index.html", "tasks.js"],
    "fastapi": ["main.py", "page/tasks.js"],
    "django": ["../shared/personal-tasks.json", "views.py", "static/tasks.js"],
    "svelte": ["src/tasks.js", "src/liveQuery.js", "src/Tasks.svelte"],
}


def test_every_page_is_listed() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == set(SHOWN)


@pytest.mark.parametrize("name", SHOWN)
def test_the_page_shows_the_program(name: str) -> None:
    page = (PAGES / f"{name}.md").read_text()
    for file in SHOWN[name]:
        assert (ROOT / "examples" / name / file).read_text() in page
