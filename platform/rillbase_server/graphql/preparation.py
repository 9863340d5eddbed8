"""Parses and validates the texts of operations, in slices: a text of a few kilobytes takes up to a
tenth of a second.

What validation compares is limited first. Fields with the same name in the response are compared
with each other, so a text with a thousand of them would take seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLSchema,
    InlineFragmentNode,
    Lexer,
    Node,
    OperationDefinitionNode,
    SelectionSetNode,
    Source,
    Token,
    ValidationContext,
    ValidationRule,
    specified_rules,
    validate,
)
from graphql.language.parser import Parser

from foundation.errors import InvalidOperation
from foundation.time_slices import Pause
from rillbase_server.graphql.bounds import MAX_DEPTH, MAX_TOKENS

MAX_ERRORS = 20
#: How many pairs of fields with the same name in the response are compared, and how many fields are
#: visited to count them, fragments included each time.
MAX_PAIRS, MAX_VISITED = 2_000, 20_000


def parse_text(text: str, pause: Pause) -> DocumentNode:
    """Parse a text, or raise `GraphQLSyntaxError`."""
    source = Source(text)
    parser = Parser(source, max_tokens=MAX_TOKENS, lexer=_PausingLexer(source, pause))
    return parser.parse_document()


def find_errors(schema: GraphQLSchema, document: DocumentNode, pause: Pause) -> list[GraphQLError]:
    """Validate a document, or raise `InvalidOperation` if that would take too long."""
    _check_pairs(document, pause)

    class PauseRule(ValidationRule):
        """Finds no errors, and pauses whenever a rule walks to another node: some walk through the
        whole operation when they enter it.
        """

        def __init__(self, context: ValidationContext) -> None:
            super().__init__(context)
            types = context._type_info
            enter = types.enter

            def enter_after_pause(node: Node) -> None:
                pause()
                enter(node)

            types.enter = enter_after_pause  # type: ignore[method-assign]

    return validate(schema, document, (PauseRule, *specified_rules), max_errors=MAX_ERRORS)


class _PausingLexer(Lexer):
    def __init__(self, source: Source, pause: Pause) -> None:
        super().__init__(source)
        self._pause = pause

    def read_next_token(self, start: int) -> Token:
        self._pause()
        return super().read_next_token(start)


def _check_pairs(document: DocumentNode, pause: Pause) -> None:
    fragments, operations = dict[str, FragmentDefinitionNode](), list[SelectionSetNode]()
    for definition in document.definitions:
        if isinstance(definition, FragmentDefinitionNode):
            fragments[definition.name.value] = definition
        if isinstance(definition, OperationDefinitionNode | FragmentDefinitionNode):
            operations.append(definition.selection_set)
    counter = _PairCounter(fragments, pause)
    for selections in operations:
        counter.count([selections], depth=1)


class _PairCounter:
    """Counts the pairs of fields at the same place of the response."""

    def __init__(self, fragments: Mapping[str, FragmentDefinitionNode], pause: Pause) -> None:
        self._fragments = fragments
        self._pause = pause
        self._pairs = self._visited = 0

    def count(self, merged: list[SelectionSetNode], depth: int) -> None:
        """Add the pairs of selections that are merged, or raise `InvalidOperation`."""
        if depth > MAX_DEPTH:
            raise InvalidOperation(f"Fields are nested more than {MAX_DEPTH} deep.")
        by_name = defaultdict[str, list[FieldNode]](list)
        visited_fragments = set[str]()
        for node in chain.from_iterable(
            self._fields(selections, visited_fragments) for selections in merged
        ):
            by_name[(node.alias or node.name).value].append(node)
        for nodes in by_name.values():
            self._pairs += len(nodes) * (len(nodes) - 1) // 2
            if self._pairs > MAX_PAIRS:
                raise InvalidOperation("Too many fields have the same name in the response.")
            below = [node.selection_set for node in nodes if node.selection_set is not None]
            if below:
                self.count(below, depth + 1)

    def _fields(self, selections: SelectionSetNode, visited: set[str]) -> Iterator[FieldNode]:
        for node in selections.selections:
            self._pause()
            self._visited += 1
            if self._visited > MAX_VISITED:
                raise InvalidOperation("The operation selects too many fields through fragments.")
            if isinstance(node, FieldNode):
                yield node
            elif isinstance(node, InlineFragmentNode):
                yield from self._fields(node.selection_set, visited)
            elif isinstance(node, FragmentSpreadNode) and node.name.value not in visited:
                visited.add(node.name.value)
                fragment = self._fragments.get(node.name.value)
                if fragment is not None:
                    yield from self._fields(fragment.selection_set, visited)
