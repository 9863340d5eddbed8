"""Compares a declared list of indexes with the existing ones. Pure. Indexes are identified by name.
One whose declaration is unchanged remains; one whose declaration has changed is replaced; one that
failed is built again whenever it is declared. A collection with a TTL has an internal index, which
finds expired documents. Callers cannot use its name, and the API does not show it; queries may use
it like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from documents.index_fields import IndexFields, is_spatial, parse_index_fields
from documents.models import Index
from documents.technique import DeclaredTechnique
from foundation.errors import FieldProblem, InvalidBody

MAX_INDEXES = 64
MAX_INDEX_FIELDS = 32
TTL_INDEX = "~ttl"


@dataclass(frozen=True, slots=True)
class IndexDeclaration:
    """The declaration of an index."""

    name: str
    fields: IndexFields
    unique: bool = False
    technique: DeclaredTechnique = DeclaredTechnique.AUTO

    def is_met_by(self, index: Index) -> bool:
        """Return whether an index has this declaration and has not failed."""
        return (
            index.name == self.name
            and fields_of(index) == self.fields
            and index.unique == self.unique
            and self.technique.permits(index.technique_in_use)
            and index.state in (Index.State.BUILDING, Index.State.READY)
        )


def fields_of(index: Index) -> IndexFields:
    """Return an index's paths with their orders."""
    return parse_index_fields(index.fields)


def declared_indexes(
    declared: Iterable[Mapping[str, object]], *, is_native: bool
) -> list[IndexDeclaration]:
    """Return the indexes that a validated body declares. Raise if a name or a path is repeated, or
    if a technique or a spatial order is not possible.
    """
    indexes: list[IndexDeclaration] = []
    problems: list[FieldProblem] = []
    for number, form in enumerate(declared):
        fields = form["fields"]
        pairs = tuple(fields) if isinstance(fields, list) else ()
        index = IndexDeclaration(
            str(form["name"]),
            pairs,
            bool(form.get("unique", False)),
            DeclaredTechnique(str(form.get("technique", DeclaredTechnique.AUTO))),
        )
        path = f"/indexes/{number}/technique"
        if index.technique.initial != DeclaredTechnique.COMPOSITE:
            if not is_native:
                detail = "Only native collections have indexes with this technique."
                problems.append(FieldProblem(path, "unsupported", detail))
            elif index.unique:
                detail = "Only composite indexes can be unique."
                problems.append(FieldProblem(path, "unsupported", detail))
        problems += _spatial_problems(index, f"/indexes/{number}")
        if any(index.name == other.name for other in indexes):
            problems.append(
                FieldProblem(f"/indexes/{number}/name", "duplicate", "The name is used twice.")
            )
        if len({path for path, _ in pairs}) < len(pairs):
            problems.append(
                FieldProblem(f"/indexes/{number}/fields", "duplicate", "The path is used twice.")
            )
        indexes.append(index)
    if problems:
        raise InvalidBody(errors=problems)
    return indexes


def _spatial_problems(index: IndexDeclaration, path: str) -> list[FieldProblem]:
    """Return why a spatial index is not possible."""
    if not is_spatial(index.fields):
        return []
    problems = []
    if len(index.fields) > 1:
        detail = "A spatial index has one field."
        problems.append(FieldProblem(f"{path}/fields", "unsupported", detail))
    if index.unique:
        detail = "A spatial index cannot be unique."
        problems.append(FieldProblem(f"{path}/unique", "unsupported", detail))
    if index.technique.initial != DeclaredTechnique.COMPOSITE:
        detail = "A spatial index has no other technique than composite."
        problems.append(FieldProblem(f"{path}/technique", "unsupported", detail))
    return problems


def ttl_index(ttl: Mapping[str, object] | None) -> list[IndexDeclaration]:
    """Return the index that a TTL needs."""
    return [] if ttl is None else [IndexDeclaration(TTL_INDEX, ((str(ttl["field"]), 1),))]


def is_declared(index: Index) -> bool:
    """Return whether an index was declared by a caller and is not internal."""
    return index.name != TTL_INDEX


def changes(
    present: Sequence[Index], declared: Sequence[IndexDeclaration]
) -> tuple[list[Index], list[IndexDeclaration]]:
    """Return which indexes to drop and which to create."""
    dropped = [
        index
        for index in present
        if not any(declaration.is_met_by(index) for declaration in declared)
    ]
    created = [
        declaration
        for declaration in declared
        if not any(declaration.is_met_by(index) for index in present)
    ]
    return dropped, created
