"""The project's own rules, as tests over its tracked files."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from stacks.settings import Settings

# Imports go one way; sandbox stands beside and is imported by the command line and tests only.
LAYERS = ("profiles", "images", "validation", "stacks", "plugins", "kiln")
MAY_IMPORT_SANDBOX = ("sandbox", "kiln", "tests", "tools", "bench")
MODULE_LINES = 400
FUNCTION_LINES = 50
ABSOLUTE = re.compile(r"(?<![\w.$}])/(?:home|Users|work|root)/[\w.-]+")
# Each with one letter in brackets, so that this line names none.
REGISTRY = re.compile(r"\b(?:py[p]i\.org|python[h]osted\.org|(?:proxy|sum)\.go[l]ang\.org|npm[j]s\.org|crates\.i[o])\b")
SKIP = re.compile(r"pytest\.(?:mark\.)?(?:skip|skipif|xfail|importorskip)\b")
UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
BANNED_NAMES = {"utils.py", "util.py", "common.py", "helpers.py", "misc.py"}


def tracked(repository: Path) -> list[Path]:
    # A checkout that another user owns, as in a container, is still this project.
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    done = subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True)
    return [path for name in done.stdout.split("\0") if name and (path := repository / name).is_file()]


@dataclass(frozen=True)
class Module:
    """What the rules ask of a module: the top packages it imports, in functions too, and its functions' lengths."""

    path: Path
    place: str  # its path below the root
    text: str
    imports: frozenset[str]
    functions: tuple[tuple[str, int], ...]

    @property
    def package(self) -> str:
        return self.place.partition("/")[0]


def statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Every statement, inside others too. Expressions hold most nodes of a tree, and no import and no function."""
    for statement in body:
        yield statement
        for inner in ("body", "orelse", "finalbody"):
            yield from statements(getattr(statement, inner, ()))
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from statements(part.body)


def module(repository: Path, path: Path) -> Module:
    text, place = path.read_text(), str(path.relative_to(repository))
    imports: set[str] = set()
    functions: list[tuple[str, int]] = []
    for node in statements(ast.parse(text).body):
        if isinstance(node, ast.Import):
            imports.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            imports.add(node.module.partition(".")[0])
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            functions.append((f"{place}:{node.lineno} {node.name}", (body[-1].end_lineno or 0) - body[0].lineno + 1))
    return Module(path, place, text, frozenset(imports), tuple(functions))


@pytest.fixture(scope="module")
def files(repository: Path) -> list[Path]:
    return tracked(repository)


@pytest.fixture(scope="module")
def modules(repository: Path, files: list[Path]) -> list[Module]:
    return [module(repository, path) for path in files if path.suffix == ".py"]


@pytest.fixture(scope="module")
def texts(files: list[Path]) -> list[tuple[Path, str]]:
    """The tracked text files but this one, which names what it forbids."""
    found = []
    for path in files:
        data = path.read_bytes()
        if b"\0" not in data and path != Path(__file__):
            found.append((path, data.decode("utf-8")))
    return found


def test_imports_and_functions_are_found_wherever_they_stand(tmp_path: Path) -> None:
    (tmp_path / "deep.py").write_text(
        "import os.path\n"
        "class A:\n"
        "    async def a(self):\n"
        "        try:\n            import first\n"
        "        except E:\n            import second\n"
        "        else:\n            from third.x import y\n"
        "        finally:\n            import fourth\n"
        "        with a:\n            for b in c:\n                while d:\n                    import fifth\n"
        "                else:\n                    import sixth\n"
        "        if a:\n            pass\n        elif b:\n            import seventh\n"
        "        match a:\n            case 1:\n                def b():\n                    import eighth\n"
    )
    found = module(tmp_path, tmp_path / "deep.py")
    numbered = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
    assert found.imports == {"os", *numbered}
    assert found.functions == (("deep.py:3 a", 22), ("deep.py:24 b", 1))


def test_no_module_is_longer_than_400_lines(modules: list[Module]) -> None:
    long = {one.place: count for one in modules if (count := len(one.text.splitlines())) > MODULE_LINES}
    assert long == {}


def test_no_function_body_of_the_product_is_longer_than_50_lines(modules: list[Module]) -> None:
    product = [one for one in modules if one.package != "tests"]
    assert [f"{name}: {count}" for one in product for name, count in one.functions if count > FUNCTION_LINES] == []


def test_no_module_has_a_name_that_says_nothing(modules: list[Module]) -> None:
    assert [one.place for one in modules if one.path.name in BANNED_NAMES] == []


def test_imports_go_one_way(modules: list[Module]) -> None:
    wrong = []
    for one in modules:
        if one.package in LAYERS:
            above = set(LAYERS[LAYERS.index(one.package) + 1 :])
            wrong += [f"{one.place} imports {name}" for name in sorted(one.imports & above)]
    assert wrong == []


def test_the_sandbox_is_imported_by_the_command_line_and_tests_only(modules: list[Module]) -> None:
    importing = [one for one in modules if "sandbox" in one.imports]
    assert [one.place for one in importing if one.package not in MAY_IMPORT_SANDBOX] == []


def test_the_product_never_asks_whether_it_is_in_the_sandbox(modules: list[Module]) -> None:
    wrong = []
    for one in modules:
        if one.package in LAYERS[:-1] and "sandbox" in one.text.lower():
            tokens = tokenize.generate_tokens(io.StringIO(one.text).readline)
            names = {token.string for token in tokens if token.type == tokenize.NAME}
            wrong += [f"{one.place}: {name}" for name in names if "sandbox" in name.lower()]
    assert wrong == []


def test_ssh_is_known_to_one_module(modules: list[Module]) -> None:
    knowing = {one.place for one in modules if one.imports & {"fabric", "invoke", "paramiko"}}
    assert {place for place in knowing if not place.startswith("tests/")} == {"validation/remote.py"}


@pytest.mark.parametrize("pattern", [ABSOLUTE, REGISTRY, UNFINISHED], ids=["machine path", "registry", "unfinished"])
def test_no_tracked_file_names_what_belongs_to_one_machine_or_is_unfinished(
    pattern: re.Pattern[str], repository: Path, texts: list[tuple[Path, str]]
) -> None:
    found = []
    for path, text in texts:
        if path.name in ("go.sum", "LICENSE"):
            continue
        for match in pattern.finditer(text):
            number = text.count("\n", 0, match.start()) + 1
            found.append(f"{path.relative_to(repository)}:{number}: {match.group()}")
    assert found == []


def test_no_test_is_skipped_or_expected_to_fail(repository: Path, texts: list[tuple[Path, str]]) -> None:
    found = [str(path.relative_to(repository)) for path, text in texts if SKIP.search(text)]
    assert found == []


def test_every_setting_is_declared_in_pulumi_yaml_and_the_other_way_round(repository: Path) -> None:
    declared: dict[str, Any] = yaml.safe_load((repository / "Pulumi.yaml").read_text())["config"]
    fields = {field.alias or name: field for name, field in Settings.model_fields.items()}
    assert set(declared) == set(fields)
    assert [key for key, entry in declared.items() if not entry.get("description") or "type" not in entry] == []


def test_a_default_is_the_same_in_pulumi_yaml_and_in_the_settings(repository: Path) -> None:
    declared: dict[str, Any] = yaml.safe_load((repository / "Pulumi.yaml").read_text())["config"]
    defaults = Settings().model_dump(mode="json", by_alias=True)
    assert {key: entry.get("default") for key, entry in declared.items()} == defaults


def test_every_target_of_the_makefile_is_phony_and_has_a_description(repository: Path) -> None:
    text = (repository / "Makefile").read_text()
    phony = set(re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)[0].split())
    described = set(re.findall(r"^([a-z]+):.*## ", text, re.MULTILINE))
    assert phony == described
