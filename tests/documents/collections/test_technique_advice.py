"""Which technique is advised for which use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from documents.collections.technique_advice import (
    MIN_OPERATIONS,
    IndexUse,
    TechniqueAdvice,
    advise,
)
from documents.technique import DeclaredTechnique

COMPOSITE, LAZY = DeclaredTechnique.COMPOSITE, DeclaredTechnique.LAZY
EMBEDDED, EAGER = DeclaredTechnique.EMBEDDED, DeclaredTechnique.EAGER

#: 100,000 documents of 555 bytes; each value has 1,500. Lookups ask for the newest ones.
NEWEST = IndexUse(
    reads=20_000,
    writes=80_000,
    lookups=5_000,
    newest=5_000,
    ordered=0,
    entries=1_500.0,
    block_share=0.8,
    documents=100_000,
    blocks=13_500,
)
#: Lookups of all documents of a value.
ALL = replace(NEWEST, newest=0)


def advised(use: IndexUse, current: DeclaredTechnique = COMPOSITE) -> TechniqueAdvice:
    advice = advise(use, current)
    assert advice is not None
    return advice


def test_lookups_of_the_newest_documents_suit_a_lazy_index() -> None:
    technique, gain = advised(NEWEST)
    assert technique is LAZY
    assert gain > 10


def test_the_gain_compares_with_the_present_technique() -> None:
    assert advised(NEWEST, LAZY) == (LAZY, 1.0)
    gains = [advised(NEWEST, technique).gain for technique in (EAGER, COMPOSITE)]
    assert 1 < gains[0] < gains[1]


def test_lookups_of_all_documents_suit_a_composite_index() -> None:
    assert advised(ALL) == (COMPOSITE, 1.0)
    technique, gain = advised(ALL, EMBEDDED)
    assert technique is COMPOSITE
    assert gain > 5


@pytest.mark.parametrize(
    ("newest", "technique"), [(3_900, COMPOSITE), (4_000, LAZY), (5_000, LAZY)]
)
def test_most_lookups_must_be_for_the_newest(newest: int, technique: DeclaredTechnique) -> None:
    assert advised(replace(NEWEST, newest=newest)).technique is technique


def test_an_index_that_supports_a_sort_is_composite() -> None:
    use = replace(NEWEST, ordered=1)
    assert advised(use) == (COMPOSITE, 1.0)
    many = advised(replace(use, ordered=1_000), LAZY)
    assert many.technique is COMPOSITE
    assert many.gain > 1.5


def test_an_index_that_is_hardly_used_should_cost_writes_little() -> None:
    use = replace(ALL, reads=5_000, lookups=0, entries=None)
    technique, gain = advised(use)
    assert technique is EMBEDDED
    assert 1.1 < gain < 1.3
    # As soon as it is used, a lookup costs more than many writes.
    assert advised(replace(use, lookups=240, entries=1_500.0)) == (COMPOSITE, 1.0)
    assert advised(replace(use, writes=4_000)).technique is COMPOSITE, "most are reads"


def test_values_that_grow_with_the_keys_suit_an_embedded_index() -> None:
    use = replace(NEWEST, block_share=0.005)
    technique, gain = advised(use)
    assert technique is EMBEDDED
    assert gain > 10
    assert advised(replace(use, block_share=0.011)).technique is LAZY
    assert advised(replace(use, block_share=None)).technique is LAZY


def test_embedded_is_not_advised_where_it_costs_more() -> None:
    use = replace(ALL, block_share=0.005, entries=500.0)
    assert advised(use) == (COMPOSITE, 1.0)
    assert advised(replace(use, newest=5_000, entries=10.0), LAZY) == (LAZY, 1.0)


@pytest.mark.parametrize("current", [COMPOSITE, LAZY, EMBEDDED])
@pytest.mark.parametrize("use", [NEWEST, ALL, replace(NEWEST, reads=0, lookups=0, newest=0)])
def test_eager_is_never_advised(use: IndexUse, current: DeclaredTechnique) -> None:
    assert advised(use, current).technique is not EAGER


def test_there_is_no_advice_for_few_operations() -> None:
    idle = replace(NEWEST, reads=10**6, writes=0, lookups=0, newest=0)
    assert advise(idle, COMPOSITE) is None
    few = replace(idle, lookups=MIN_OPERATIONS - 1, newest=MIN_OPERATIONS - 1)
    assert advise(few, COMPOSITE) is None
    assert advised(replace(few, writes=1)).technique is LAZY


def test_an_empty_collection_is_no_error() -> None:
    empty = replace(NEWEST, documents=0, blocks=0, entries=0.0, block_share=None)
    for technique in (COMPOSITE, LAZY, EMBEDDED, EAGER):
        assert advised(empty, technique).gain >= 1
