"""GraphQL operations that are small and take long to answer, from a tenant with ordinary quotas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count, repeat

from benchmarks.support.call_attack import Call, Callers

#: Callers, and the pause of each after an operation.
CONCURRENT, PAUSE_S = 8, 0.2
#: Introspection, as far as its depth is permitted.
_INTROSPECTION = (
    "__schema { types { name description fields { name args { name type { name } } type { name "
    "ofType { name ofType { name } } } } inputFields { name type { name ofType { name } } } } }"
)
_FIELD = 'count(collection: "c")'
_ALIASES, _REPETITIONS, _UNKNOWN = 60, 300, 250
_PAGES = 10


async def run(port: int, key: str, responses: Counter[int]) -> None:
    """Attack until cancelled."""
    await Callers(port, key, CONCURRENT, PAUSE_S, responses).run(_calls())


async def read(port: int, key: str, collection: str, responses: Counter[int]) -> None:
    """Repeat an operation that reads many pages, until cancelled."""
    page = f'documents(collection: "{collection}", first: 50) {{ totalCount nodes {{ document }} }}'
    pages = " ".join(f"a{alias}: {page}" for alias in range(_PAGES))
    call = Call("/graphql", {"query": f"{{ {pages} }}"})
    await Callers(port, key, CONCURRENT, 0, responses).run(repeat(call))


def _calls() -> Iterator[Call]:
    """No text is sent twice, so that none is answered from a cache."""
    aliases = " ".join(f"a{alias}: {_FIELD}" for alias in range(_ALIASES))
    unknown = " ".join(f"docments{field} {{ nodes {{ id }} }}" for field in range(_UNKNOWN))
    selections = [_INTROSPECTION, aliases, f"{_FIELD} " * _REPETITIONS, unknown]
    for number in count():
        for selection in selections:
            yield Call("/graphql", {"query": f"{{ {selection} }} # {number}"})
