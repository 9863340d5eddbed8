"""A document whose `_id` was just made here is written without looking for it first.

Should there be one all the same, nobody loses anything: the insert fails on the document's row, and
the group starts over, this time looking.
"""

from __future__ import annotations

import pytest

from documents.models import Collection
from documents.store.sync import write_all
from documents.store.write import WriteCall
from foundation.errors import DuplicateId
from foundation.scope import scoped
from rillbase_native import Operation, Operations, Value
from tests.make import MadeTenant, make_tenant

NAME = "things"


@pytest.fixture
def made() -> MadeTenant:
    made = make_tenant(plan="dedicated")
    with scoped(tenant_id=made.tenant.id):
        Collection.objects.create(name=NAME)
    return made


def new_document() -> Operation:
    return Operation.insert(Value.parse(b'{"a": 1}'))


def write(made: MadeTenant, *operations: Operation, atomic: bool = True) -> list[int | str]:
    """Return the version that each operation led to, or the code of its refusal."""
    wanted = WriteCall(made.tenant.id, NAME, Operations(operations), atomic=atomic)
    (written,) = write_all([wanted])
    refused = {place: error.code for place, error in written.outcomes.refusals()}
    return [
        refused.get(place) or written.outcomes.change(place).version
        for place in range(len(operations))
    ]


def test_a_new_id_that_is_taken_is_a_duplicate(made: MadeTenant) -> None:
    taken = new_document()
    assert write(made, taken) == [1]
    with pytest.raises(DuplicateId):
        write(made, taken)


def test_only_the_existing_document_is_rejected(made: MadeTenant) -> None:
    taken = new_document()
    write(made, taken)
    ended = write(made, new_document(), taken, new_document(), atomic=False)
    assert ended == [1, "duplicate_id", 1]


def test_a_deleted_id_continues_from_its_version(made: MadeTenant) -> None:
    again = new_document()
    write(made, again)
    assert write(made, Operation.delete(again.id)) == [2]
    assert write(made, again) == [3]


def test_one_group_may_create_change_and_delete_a_document(made: MadeTenant) -> None:
    fresh = new_document()
    update = Operation.update(fresh.id, Value.parse(b'{"$inc": {"a": 1}}'))
    assert write(made, fresh, update, Operation.delete(fresh.id), fresh) == [1, 2, 3, 4]
