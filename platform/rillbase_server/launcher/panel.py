"""The panel with the next steps, shown once everything is ready."""

from collections.abc import Sequence

from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from .options import INSTALLED, PROGRAM, UpOptions
from .secrets_file import DemoCredentials

#: A label and a value.
Row = tuple[str, str]
NOT_MADE = "(none: started with --no-demo)"


def rows(
    options: UpOptions, demo: DemoCredentials, link: str, notes: Sequence[Row] = ()
) -> list[Row]:
    """Return labels and values, in the order in which a new user needs them."""
    return [
        ("Sign in", link or options.url),
        ("URL", options.url),
        ("API docs", f"{options.url}/api/docs"),
        ("Staff admin", f"{options.url}/staff/"),
        ("Email", demo.email or NOT_MADE),
        ("Password", demo.password or NOT_MADE),
        ("Tenant", demo.tenant or NOT_MADE),
        ("API key", demo.api_key or NOT_MADE),
        ("Publishable key", demo.publishable_key or NOT_MADE),
        ("Data", str(options.data_dir)),
        ("Logs", str(options.data_dir / "logs")),
        *notes,
        ("Stop", f"Ctrl-C, or: {PROGRAM} stop --data-dir {options.data_dir}"),
    ]


def panel(
    options: UpOptions, demo: DemoCredentials, link: str, seconds: float, notes: Sequence[Row] = ()
) -> Panel:
    """Return the rows in a frame, for terminals."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    # Values are meant to be copied, so they are wrapped but never truncated.
    table.add_column(overflow="fold")
    for label, value in rows(options, demo, link, notes):
        table.add_row(label, Text(value))
    return Panel(table, title=f"Rillbase is ready ({seconds:.1f} s)", border_style="green")


def plain(
    options: UpOptions, demo: DemoCredentials, link: str, seconds: float, notes: Sequence[Row] = ()
) -> str:
    """Return the rows as lines, for files and pipes."""
    lines = [f"Rillbase is ready ({seconds:.1f} s)"]
    lines += [f"  {label + ':':<17}{value}" for label, value in rows(options, demo, link, notes)]
    return "\n".join(lines)


def example(options: UpOptions, demo: DemoCredentials) -> str:
    """Return a command to try. It is outside the frame, so it can be copied."""
    if not demo.api_key:
        return f"Try it: curl {options.url}/readyz"
    key = f"Authorization: Bearer {demo.api_key}"
    return f"Try it: curl -H '{key}' {options.url}/api/v1/tenants/{demo.tenant}"


def watch(options: UpOptions, demo: DemoCredentials) -> str:
    """Return a command that subscribes to a query, for a second terminal in the checkout."""
    if not demo.api_key or INSTALLED:
        return ""
    return (
        f"Watch: RILLBASE_URL={options.url} RILLBASE_KEY={demo.api_key} "
        ".venv/bin/python -m examples.watch todos --sort rank"
    )
