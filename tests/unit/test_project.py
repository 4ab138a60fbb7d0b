"""The project's own rules, as tests over its tracked files."""

from __future__ import annotations

import ast
import re
import subprocess
import tokenize
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


@pytest.fixture(scope="module")
def files(repository: Path) -> list[Path]:
    return tracked(repository)


@pytest.fixture(scope="module")
def modules(files: list[Path]) -> list[Path]:
    return [path for path in files if path.suffix == ".py"]


def texts(files: list[Path]) -> list[tuple[Path, str]]:
    """The tracked text files but this one, which names what it forbids."""
    found = []
    for path in files:
        data = path.read_bytes()
        if b"\0" not in data and path != Path(__file__):
            found.append((path, data.decode("utf-8")))
    return found


def test_no_module_is_longer_than_400_lines(modules: list[Path]) -> None:
    long = {str(path): count for path in modules if (count := len(path.read_text().splitlines())) > MODULE_LINES}
    assert long == {}


def test_no_function_body_of_the_product_is_longer_than_50_lines(repository: Path, modules: list[Path]) -> None:
    long = []
    for path in modules:
        if path.is_relative_to(repository / "tests"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
                count = (body[-1].end_lineno or 0) - body[0].lineno + 1
                if count > FUNCTION_LINES:
                    long.append(f"{path.relative_to(repository)}:{node.lineno} {node.name}: {count}")
    assert long == []


def test_no_module_has_a_name_that_says_nothing(modules: list[Path]) -> None:
    assert [str(path) for path in modules if path.name in BANNED_NAMES] == []


def imported(path: Path) -> set[str]:
    """The top packages a module imports, inside functions too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def test_imports_go_one_way(repository: Path, modules: list[Path]) -> None:
    wrong = []
    for path in modules:
        package = path.relative_to(repository).parts[0]
        if package in LAYERS:
            above = set(LAYERS[LAYERS.index(package) + 1 :])
            wrong += [f"{path.relative_to(repository)} imports {name}" for name in sorted(imported(path) & above)]
    assert wrong == []


def test_the_sandbox_is_imported_by_the_command_line_and_tests_only(repository: Path, modules: list[Path]) -> None:
    wrong = [
        str(path.relative_to(repository))
        for path in modules
        if "sandbox" in imported(path) and path.relative_to(repository).parts[0] not in MAY_IMPORT_SANDBOX
    ]
    assert wrong == []


def test_the_product_never_asks_whether_it_is_in_the_sandbox(repository: Path, modules: list[Path]) -> None:
    product = [path for path in modules if path.relative_to(repository).parts[0] in LAYERS[:-1]]
    wrong = []
    for path in product:
        with path.open("rb") as file:
            names = {token.string for token in tokenize.tokenize(file.readline) if token.type == tokenize.NAME}
        wrong += [f"{path.relative_to(repository)}: {name}" for name in names if "sandbox" in name.lower()]
    assert wrong == []


def test_fabric_is_imported_in_one_module(repository: Path, modules: list[Path]) -> None:
    found = {str(path.relative_to(repository)) for path in modules if imported(path) & {"fabric", "invoke"}}
    assert {path for path in found if not path.startswith("tests/")} <= {"validation/remote.py"}


@pytest.mark.parametrize("pattern", [ABSOLUTE, REGISTRY, UNFINISHED], ids=["machine path", "registry", "unfinished"])
def test_no_tracked_file_names_what_belongs_to_one_machine_or_is_unfinished(
    pattern: re.Pattern[str], repository: Path, files: list[Path]
) -> None:
    found = []
    for path, text in texts(files):
        if path.name in ("go.sum", "LICENSE"):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            match = pattern.search(line)
            if match:
                found.append(f"{path.relative_to(repository)}:{number}: {match.group()}")
    assert found == []


def test_no_test_is_skipped_or_expected_to_fail(repository: Path, files: list[Path]) -> None:
    found = [str(path.relative_to(repository)) for path, text in texts(files) if SKIP.search(text)]
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
