"""The operations of a schema. Texts are parsed and validated once and cached, because that takes
longer than executing them. So are the errors of invalid texts.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

from graphql import GraphQLError, GraphQLSchema, GraphQLSyntaxError, get_operation_ast

from foundation.errors import InvalidOperation
from foundation.time_slices import Pause, run_in_slices
from rillbase_server.graphql.bounds import bounded
from rillbase_server.graphql.introspection import IntrospectionCache
from rillbase_server.graphql.operations import OperationRejected, PreparedOperation
from rillbase_server.graphql.plans import Plans
from rillbase_server.graphql.preparation import find_errors, parse_text

MAX_CACHED_CHARS = 1_000_000

#: The text of a document, and the name of one of its operations.
_Key: TypeAlias = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class InvalidText:
    """Why a text was rejected, or its errors and their locations."""

    reason: str
    errors: tuple[GraphQLError, ...] = ()

    @classmethod
    def of_errors(cls, errors: Sequence[GraphQLError]) -> InvalidText:
        """Keep errors without the nodes that they refer to."""
        located = (
            GraphQLError(error.message, source=error.source, positions=error.positions)
            for error in errors
        )
        return cls(errors[0].message, tuple(located))

    def reject(self) -> NoReturn:
        """Raise `OperationRejected` or `InvalidOperation`."""
        if self.errors:
            raise OperationRejected(list(self.errors))
        raise InvalidOperation(self.reason)


_Prepared: TypeAlias = PreparedOperation | InvalidText


@dataclass(slots=True)
class OperationCache:
    """A schema's operations; the least recently used are evicted first."""

    schema: GraphQLSchema
    introspection: IntrospectionCache = field(default_factory=IntrospectionCache)
    _prepared: OrderedDict[_Key, _Prepared] = field(default_factory=OrderedDict)
    _chars: int = 0
    _in_progress: dict[_Key, asyncio.Task[_Prepared]] = field(default_factory=dict)

    async def prepare(self, text: str, name: str | None, party: Hashable) -> PreparedOperation:
        """Return the operation of this name in a text, or raise `OperationRejected` or
        `InvalidOperation`. The time that this takes is charged to `party`.
        """
        key = (text, name)
        prepared = self._prepared.get(key)
        if prepared is None:
            prepared = await self._prepare_once(key, party)
        else:
            self._prepared.move_to_end(key)
        if isinstance(prepared, InvalidText):
            prepared.reject()
        return prepared

    async def _prepare_once(self, key: _Key, party: Hashable) -> _Prepared:
        """Prepare a text once for all concurrent callers."""
        task = self._in_progress.get(key)
        if task is None:
            work = run_in_slices(party, lambda pause: self._read(*key, pause))
            task = self._in_progress[key] = asyncio.create_task(work)
            task.add_done_callback(lambda done: self._finish(key, done))
        return await asyncio.shield(task)

    def _finish(self, key: _Key, task: asyncio.Task[_Prepared]) -> None:
        del self._in_progress[key]
        if task.cancelled() or task.exception() is not None:
            return
        self._prepared[key] = task.result()
        self._chars += len(key[0])
        while self._chars > MAX_CACHED_CHARS:
            (text, _), _ = self._prepared.popitem(last=False)
            self._chars -= len(text)

    def _read(self, text: str, name: str | None, pause: Pause) -> _Prepared:
        try:
            document = parse_text(text, pause)
            errors = find_errors(self.schema, document, pause)
            if errors:
                return InvalidText.of_errors(errors)
            operation = get_operation_ast(document, name)
            if operation is None:
                return InvalidText("Specify one of the operations in `operationName`.")
            limited = bounded(document, operation)
        except GraphQLSyntaxError as error:
            return InvalidText.of_errors([error])
        except InvalidOperation as error:
            return InvalidText(str(error))
        except RecursionError:
            return InvalidText("The operation is nested too deeply.")
        plans: Plans | None = None if "@" in text else {}
        return PreparedOperation(self.schema, document, text, limited, plans, self.introspection)
