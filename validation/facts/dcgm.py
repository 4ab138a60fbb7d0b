"""``dcgmi diag`` as text and JSON (3.x and 4.x), and ``dcgmi health``: what DCGM says, test by test and GPU by GPU."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from profiles.errors import ParseError
from validation.facts.text import clean, lines

DIAG = "dcgmi diag"
HEALTH = "dcgmi health"
_ROW = re.compile(r"^\|(?P<name>[^|]*)\|(?P<value>[^|]*)\|\s*$")
_STATUS = re.compile(
    r"^(?P<word>Pass|Fail|Skip|Warn|Not Run|Error)(?:\s*-\s*(?:(?P<all>All)|GPUs?:\s*(?P<gpus>[\d,\s]+)))?$", re.I
)
_PER_GPU = re.compile(r"^GPU\s?(?P<gpu>\d+):\s*(?P<word>Pass|Fail|Skip|Warn|Not Run|Error)$", re.I)
_NOTE = re.compile(r"^(?:Warning|Error|Info)\b")
_ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")  # 4.x, 3.x


@dataclass(frozen=True)
class DcgmTest:
    """One test. ``results``: (GPU, word), GPU -1 where the word is for all; ``notes``: DCGM's own sentences."""

    name: str
    results: tuple[tuple[int, str], ...]
    notes: tuple[str, ...] = ()

    def gpus(self, word: str) -> tuple[int, ...]:
        return tuple(gpu for gpu, said in self.results if said == word)


@dataclass(frozen=True)
class DcgmDiag:
    """All tests, in order. Words are lower case: pass, fail, skip, warn, not run."""

    tests: tuple[DcgmTest, ...]


@dataclass(frozen=True)
class DcgmHealth:
    """``overall`` is DCGM's word; ``incidents`` are (GPU, system, word, sentences)."""

    overall: str
    incidents: tuple[tuple[int, str, str, tuple[str, ...]], ...]


def parse_diag(text: str) -> DcgmDiag:
    """The table or the JSON document, told by its first character."""
    if clean(text).lstrip().startswith("{"):
        return _parse_json(text)
    tests: list[DcgmTest] = []
    note = False
    for name, value in _rows(text):
        results = _results(value.strip())
        if name and results:
            tests.append(DcgmTest(name, tuple(results)))
            note = False
        elif tests and _NOTE.match(name):
            tests[-1] = replace(tests[-1], notes=(*tests[-1].notes, value.strip(" ")))
            note = True
        elif tests and not name and note:
            tests[-1] = _continued(tests[-1], value)
        elif tests and not name and results:
            tests[-1] = replace(tests[-1], results=(*tests[-1].results, *results))
    if not tests:
        raise ParseError(DIAG, 0, "no row with a result")
    return DcgmDiag(tuple(tests))


def _rows(text: str) -> list[tuple[str, str]]:
    """The two cells of each row. A table that was opened with a rule must be closed with one."""
    found = []
    last = ""
    ruled = False
    for number, line in enumerate(lines(text), start=1):
        row = _ROW.match(line)
        if row and not line.startswith(("|--", "|==")):
            found.append((row["name"].strip(), row["value"]))
        elif row is None and line.startswith("|") and not line.startswith(("|-", "|=")):
            raise ParseError(DIAG, number, f"{line[:80]!r} is not a row of two cells")
        ruled = ruled or line.startswith("+--")
        last = line if line.startswith(("|", "+")) else last
    if ruled and not last.startswith("+"):
        raise ParseError(DIAG, 0, "the table has no closing rule: the text is cut short")
    return found


def _continued(test: DcgmTest, value: str) -> DcgmTest:
    """DCGM breaks its sentences in the middle of a word, at the width of the cell."""
    piece = value[1:].rstrip("\n")
    full = len(value.rstrip()) >= len(value) - 2
    return replace(test, notes=(*test.notes[:-1], (test.notes[-1] + (piece if full else piece.rstrip())).strip()))


def _results(value: str) -> list[tuple[int, str]]:
    one = _PER_GPU.match(value)
    if one:
        return [(int(one["gpu"]), one["word"].lower())]
    match = _STATUS.match(value)
    if match is None:
        return []
    gpus = [int(part) for part in (match["gpus"] or "").replace(",", " ").split()]
    return [(gpu, match["word"].lower()) for gpu in gpus] or [(-1, match["word"].lower())]


def _parse_json(text: str) -> DcgmDiag:
    try:
        data = json.loads(clean(text))
    except (ValueError, RecursionError) as error:
        raise ParseError(DIAG, getattr(error, "lineno", 0), f"not a whole JSON document: {error}") from error
    root = next((data[name] for name in _ROOTS if isinstance(data, dict) and name in data), None)
    if not isinstance(root, dict):
        raise ParseError(DIAG, 1, f"none of the keys {', '.join(_ROOTS)}")
    try:
        tests = [_json_test(test) for category in root.get("test_categories", ()) for test in category.get("tests", ())]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ParseError(DIAG, 0, f"a test is not of the known shape: {error!r}") from error
    if not tests:
        raise ParseError(DIAG, 0, "no test in the document")
    return DcgmDiag(tuple(tests))


def _json_test(test: dict[str, Any]) -> DcgmTest:
    results: list[tuple[int, str]] = []
    notes: list[str] = []
    for result in test["results"]:
        word = str(result["status"]).lower()
        results += [(gpu, word) for gpu in _json_gpus(result)]
        for key in ("warnings", "info"):
            said = result.get(key) or ()
            notes += [str(item.get("warning", item) if isinstance(item, dict) else item) for item in _list(said)]
    if not results:
        raise ValueError(f"test {test['name']} has no result")
    return DcgmTest(str(test["name"]), tuple(results), tuple(notes))


def _json_gpus(result: dict[str, Any]) -> Iterable[int]:
    """``gpu_id`` "0", ``gpu_ids`` "0,1" (3.x), or ``entity_group`` and ``entity_id`` (4.x); -1 for the host."""
    if "entity_id" in result:
        return [int(result["entity_id"]) if str(result.get("entity_group", "GPU")).upper() == "GPU" else -1]
    said = str(result.get("gpu_id", result.get("gpu_ids", "")))
    return [int(part) for part in said.split(",") if part.strip()] or [-1]


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def parse_health(text: str) -> DcgmHealth:
    """``dcgmi health -c``. Raises ParseError where there is no overall word, or it is bad and nothing says why."""
    overall, gpu = "", -1
    incidents: list[tuple[int, str, str, tuple[str, ...]]] = []
    for line in lines(text):
        row = _ROW.match(line)
        if row is None:
            continue
        name, value = row["name"].strip(), row["value"].strip()
        if name == "Overall Health":
            overall = value
        elif re.match(r"^-> (?:GPU )?\d+$", name):
            gpu = int(name.split()[-1])
        elif name.startswith("->"):
            incidents.append((gpu, name[2:].strip(), value, ()))
        elif not name and value and incidents:
            last = incidents[-1]
            incidents[-1] = (last[0], last[1], last[2], (*last[3], value))
    if not overall:
        raise ParseError(HEALTH, 0, "no row 'Overall Health'")
    if overall.lower() != "healthy" and not incidents:
        raise ParseError(HEALTH, 0, f"overall health is {overall}, and no row says why: the text is cut short")
    return DcgmHealth(overall, tuple(incidents))
