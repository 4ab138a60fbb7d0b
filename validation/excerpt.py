"""The part of a Python module that somebody uses, word for word.

``pynvml`` has 330 kB, of which the probe uses a tenth; each host would receive and compile the rest for nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

_WORD = re.compile(r"\w+")


def words(text: str) -> set[str]:
    """Every word of a source, in names, texts and comments alike: at least what it uses."""
    return set(_WORD.findall(text))


def excerpt(source: str, used: Iterable[str]) -> str:
    """The statements that bind a name in ``used``, and those that any statement kept here mentions, in their order.

    What stands before the first statement (a licence) is kept, and every statement that does not only bind names: an
    ``if``, a call, ``import *``. A name that is looked up by its parts, as in ``getattr(module, "a" + "b")``, must be
    in ``used``. Raises SyntaxError.
    """
    lines = source.splitlines(keepends=True)
    statements = ast.parse(source).body
    texts = [_text(lines, statement) for statement in statements]
    kept = {number for number, statement in enumerate(statements) if not _binds(statement)}
    bound: dict[str, list[int]] = {}
    for number, statement in enumerate(statements):
        for name in _binds(statement):
            bound.setdefault(name, []).append(number)
    todo = {*used, *(word for number in kept for word in words(texts[number]))}
    done: set[str] = set()
    while todo:
        name = todo.pop()
        done.add(name)
        for number in bound.get(name, ()):
            if number not in kept:
                kept.add(number)
                todo |= words(texts[number]) - done
    before = lines[: _first_line(statements[0]) - 1] if statements else lines
    return "".join([*before, *(texts[number] for number in sorted(kept))])


def _binds(statement: ast.stmt) -> list[str]:
    """The names that a statement binds, where it does nothing else."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    if isinstance(statement, (ast.Import, ast.ImportFrom)) and statement.names[0].name != "*":
        return [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
    return []


def _first_line(statement: ast.stmt) -> int:
    """Its first line, a decorator's included, counted from 1."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def _text(lines: list[str], statement: ast.stmt) -> str:
    return "".join(lines[_first_line(statement) - 1 : statement.end_lineno]).rstrip("\n") + "\n"
