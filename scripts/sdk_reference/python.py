"""Reads the public names of the Python SDK from the imported package."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter
from textwrap import dedent
from types import FunctionType, ModuleType
from typing import TypeAlias, is_typeddict

from scripts.sdk_reference.entry import DocumentedMember, Entry, Example

WIDTH = 88
#: What the code of an example follows.
EXAMPLE = "Example:\n"
#: What a class is documented with besides its public members.
SPECIAL = ("__init__",)
INTERNAL = frozenset({"core", "loop"})
Prose: TypeAlias = tuple[str | Example, ...]
#: The results of synchronous calls, by the function of `rillbase.facades` that makes them.
RESULTS = {
    "_narrowing": "{}",
    "beginning": "Future[{}]",
    "blocking": "{}",
    "iterating": "{}",
    "notifying": "{}",
}
_ASYNCHRONOUS = re.compile(r"\bAsync(?=[A-Z])")
_COMMENT = re.compile(r"^ *#: ?(.*)$")


def exports(package: ModuleType) -> list[Entry]:
    """Return what a package exports, in the order of its `__all__`."""
    return entries(package, package.__all__)


def entries(package: ModuleType, names: Iterable[str]) -> list[Entry]:
    """Return some of the names that a package exports."""
    return [_entry(package, name) for name in names]


def _entry(package: ModuleType, name: str) -> Entry:
    value = getattr(package, name)
    if inspect.isfunction(value):
        return Entry(name, _signature(name, value), _prose(value.__doc__))
    if not inspect.isclass(value):
        return _alias_or_constant(package, name)
    if is_typeddict(value):
        return Entry(name, _declaration_of_fields(value, "TypedDict"), _prose(value.__doc__))
    members = tuple(_members(package, value))
    if is_dataclass(value):
        return Entry(name, _declaration_of_fields(value, ""), _prose(value.__doc__), members)
    bases = ", ".join(base.__name__ for base in value.__bases__ if _is_public(package, base))
    declaration = f"class {name}({bases})" if bases else f"class {name}"
    return Entry(name, declaration, _prose(value.__doc__), members)


def _is_public(package: ModuleType, base: type) -> bool:
    return base.__name__ in package.__all__ or base is Exception


def _alias_or_constant(package: ModuleType, name: str) -> Entry:
    """Find the assignment of a name in the module that the package imports it from."""
    for module in _modules(package):
        source = inspect.getsource(module)
        for node in ast.parse(source).body:
            if name in _targets(node):
                line = ast.get_source_segment(source, node) or ""
                comment = _comment_above(source.splitlines(), node.lineno)
                return Entry(name, line, _prose(comment))
    raise LookupError(name)


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    yield from (value for value in vars(package).values() if inspect.ismodule(value))


def _targets(node: ast.stmt) -> set[str]:
    match node:
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case ast.Assign(targets=targets):
            names = (part for target in targets for part in ast.walk(target))
            return {part.id for part in names if isinstance(part, ast.Name)}
        case _:
            return set()


def _comment_above(lines: list[str], number: int) -> str:
    comment = list[str]()
    for line in reversed(lines[: number - 1]):
        found = _COMMENT.match(line)
        if found is None:
            break
        comment.insert(0, found[1])
    return "\n".join(comment)


def _declaration_of_fields(value: type, base: str) -> str:
    """Return a class of fields as it reads in its source: the fields and their comments."""
    shown = _shown_fields(value) if is_dataclass(value) else None
    source = dedent(inspect.getsource(value))
    lines = source.splitlines()
    body = [f"class {value.__name__}({base}):" if base else f"class {value.__name__}:"]
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        if shown is not None and node.target.id not in shown:
            continue
        comment = _comment_above(lines, node.lineno)
        body += [f"    # {line}" for line in comment.splitlines()]
        body += [f"    {ast.get_source_segment(source, node)}"]
    return "\n".join(body)


def _shown_fields(value: type) -> set[str]:
    """Return the fields that callers set; those with a factory are filled by the SDK."""
    declared = fields(value) if is_dataclass(value) else ()
    return {field.name for field in declared if field.init and field.default_factory is MISSING}


def _members(package: ModuleType, value: type) -> Iterator[DocumentedMember]:
    """Yield a class's public members and those of bases that are not exported themselves."""
    known = set[str]()
    for owner in value.__mro__:
        is_documented_itself = owner is not value and _is_public(package, owner)
        if is_documented_itself or not owner.__module__.startswith("rillbase"):
            continue
        for name, member in vars(owner).items():
            is_listed = not name.startswith("_") or (name in SPECIAL and not is_dataclass(value))
            if (
                is_listed
                and not _is_internal(member)
                and name not in known
                and _is_callable_or_property(member)
            ):
                known.add(name)
                yield _member(name, member, value)


def _is_internal(member: object) -> bool:
    """Return whether only the SDK calls a constructor: it takes one of its internal objects."""
    names = inspect.signature(member).parameters if inspect.isfunction(member) else ()
    return not INTERNAL.isdisjoint(names)


def _is_callable_or_property(member: object) -> bool:
    return isinstance(member, property) or inspect.isfunction(member)


def _member(name: str, member: object, owner: type) -> DocumentedMember:
    documented = inspect.getdoc(getattr(owner, name))
    if isinstance(member, property):
        kind = inspect.get_annotations(member.fget or _member)["return"]
        return DocumentedMember(name, (f"{name}: {kind}",), _prose(documented))
    if inspect.isfunction(member):
        shown = "constructor" if name == "__init__" else name
        return DocumentedMember(shown, (_signature(name, member),), _prose(documented))
    raise TypeError(name)


def _signature(name: str, function: FunctionType) -> str:
    parameters = inspect.signature(function).parameters.values()
    shown = _parameters([parameter for parameter in parameters if parameter.name != "self"])
    result = str(inspect.get_annotations(function).get("return"))
    wrapper = function.__code__.co_qualname.partition(".")[0]
    if wrapper in RESULTS:
        result = RESULTS[wrapper].format(_ASYNCHRONOUS.sub("", result))
        shown = [_ASYNCHRONOUS.sub("", parameter) for parameter in shown]
    start = "async def" if inspect.iscoroutinefunction(function) else "def"
    line = f"{start} {name}({', '.join(shown)}) -> {result}"
    if len(line) <= WIDTH:
        return line
    inside = "".join(f"    {parameter},\n" for parameter in shown)
    return f"{start} {name}(\n{inside}) -> {result}"


def _parameters(parameters: list[Parameter]) -> list[str]:
    """Return parameters as they are written, with the star before those that need their names."""
    named = [parameter.kind is Parameter.KEYWORD_ONLY for parameter in parameters]
    first = named.index(True) if True in named else len(named)
    has_star = any(parameter.kind is Parameter.VAR_POSITIONAL for parameter in parameters)
    star = [] if has_star or first == len(named) else ["*"]
    shown = [_parameter(parameter) for parameter in parameters]
    return [*shown[:first], *star, *shown[first:]]


def _parameter(parameter: Parameter) -> str:
    text = str(parameter.replace(annotation=Parameter.empty, default=Parameter.empty))
    text += f": {parameter.annotation}"
    if parameter.default is Parameter.empty:
        return text
    default = parameter.default
    shown = f"{type(default).__name__}()" if is_dataclass(default) else repr(default)
    return f"{text} = {shown}"


def _prose(text: str | None) -> Prose:
    """Return a docstring's paragraphs and, where it is indented, its code."""
    blocks = inspect.cleandoc(text or "").split("\n\n")
    return tuple(_part(block) for block in blocks if block.strip())


def _part(block: str) -> str | Example:
    code = block.removeprefix(EXAMPLE)
    return Example(dedent(code)) if code.startswith("    ") else " ".join(block.split())
