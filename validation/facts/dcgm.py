"""``dcgmi diag`` as text and JSON (2.x to 4.x): what DCGM says, test by test and GPU by GPU.

Formats: NVIDIA/DCGM dcgmi/Diag.cpp, read from 2.4 to 4.6.0 (2026-07), and runs of users.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from profiles.errors import ParseError
from validation.facts.text import clean, lines

DIAG = "dcgmi diag"
_SIGN = re.compile(
    r"^\| *Diagnostic *\| *Result|^\|[^|]+\| *(?:Pass|Fail|Skip|Warn)(?: - (?:All|GPUs?:)[^|]*)? *\|\s*$"
    r'|^\s*\{(?s:.*)"(?:test_categories|runtime_error)"',
    re.M,
)
_HEADING = re.compile(r"\| *Diagnostic *\| *Result")
_ROW = re.compile(r"^\|(?P<name>[^|]*)\|(?P<value>.*)\|\s*$")
_WORDS = "Pass|Fail|Skip|Warn|Not Run|Error"
_STATUS = re.compile(
    rf"^(?P<word>{_WORDS})(?:\s*-\s*(?:(?P<all>All)|GPUs?:?\s*(?P<gpus>[\d,\s]+?)(?P<cut>\.\.\.)?))?$", re.I
)
_ENTITY = re.compile(rf"^(?P<group>[A-Za-z][A-Za-z_ ]*?)\s?(?P<number>\d+): (?P<word>{_WORDS})$", re.I)
_NOTE = re.compile(r"^(?P<kind>Warning|Error|Info)\b(?:: GPU\s?(?P<gpu>\d+))?")
_ABOUT = re.compile(r"\bGPU (\d+)\b")
_METADATA = re.compile(r"\b(?:Version|Detected|IDs?|Serials?)\b")
_PIECE, _BLANKS_MAX = 45, 2  # characters: DATA_INFO_TAG_LEN of Diag.cpp
_ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")  # 4.x, 3.x
# DCGM's words where it ran no test at all.
NOT_RUN = re.compile(
    r"^(?:Error: .*(?:diagnostic|requested test|host engine|Unsupported entities).*|Cannot run diagnostic: .*"
    r"|.*MIG configuration is incompatible with the diagnostic.*)$",
    re.I | re.M,
)


@dataclass(frozen=True)
class DcgmNote:
    """One of DCGM's warnings: the GPU it is about (-1: the host, or not said) and its severity (0: not said).

    Severities are DCGM's own: 1 monitor, 2 isolate, 3 unknown, 4 triage, 5 configuration, 6 reset.
    """

    text: str
    gpu: int = -1
    severity: int = 0


@dataclass(frozen=True)
class DcgmTest:
    """One test. ``results``: (GPU, word), GPU -1 where the word is for all or for the host."""

    name: str
    results: tuple[tuple[int, str], ...]
    notes: tuple[DcgmNote, ...] = ()

    def gpus(self, word: str) -> tuple[int, ...]:
        """The GPUs with this word; -1 only where no single GPU has it."""
        found = tuple(gpu for gpu, said in self.results if said == word)
        return tuple(gpu for gpu in found if gpu >= 0) or found[:1]

    def notes_on(self, gpu: int) -> tuple[DcgmNote, ...]:
        """The notes on this GPU; those on nobody and, for -1, all of them."""
        return tuple(note for note in self.notes if gpu < 0 or note.gpu in (gpu, -1))


@dataclass(frozen=True)
class DcgmDiag:
    """All tests, in order. Words are lower case: pass, fail, skip, warn, not run. ``errors``: why it ran none.

    ``omitted``: what of the table is not shown; a row that is not there may have failed.
    """

    tests: tuple[DcgmTest, ...]
    errors: tuple[str, ...] = ()
    omitted: tuple[str, ...] = ()


def is_it(text: str) -> bool:
    """Told by its table, the keys of its document, or DCGM's words where it ran no test."""
    return any(sign.search(text) for sign in (_SIGN, NOT_RUN))


def parse_diag(text: str) -> DcgmDiag:
    """The table or the JSON document, told by its first character.

    Raises ParseError for a row whose result is not known: a result that was not read is no pass.
    """
    if clean(text).lstrip().startswith("{"):
        return _parse_json(text)
    if '"test_categories"' in text:
        raise ParseError(DIAG, 0, "a table and a JSON document in one text", "Show one output at a time.")
    reader = _Reader()
    for number, name, value in _rows(text):
        reader.read(number, name, value)
    tests = reader.tests
    errors = [match[0].strip() for match in NOT_RUN.finditer(clean(text))]
    if not tests and not errors:
        raise ParseError(DIAG, 0, "no row with a result")
    return DcgmDiag(tuple(tests), tuple(dict.fromkeys(errors)), _omitted(text) if tests else ())


@dataclass
class _Reader:
    """Reads row by row. A row without a name goes on with the note above it, or is one GPU's result."""

    tests: list[DcgmTest] = field(default_factory=list)
    _kind: str = ""

    def read(self, number: int, name: str, value: str) -> None:
        results = _results(value.strip())
        note = _NOTE.match(name)
        if name and results:
            self.tests.append(DcgmTest(name, tuple(results)))
            self._kind = ""
        elif self.tests and note:
            self._kind = note["kind"]
            if self._kind != "Info":
                self._add(DcgmNote(value.strip(" "), int(note["gpu"]) if note["gpu"] else -1))
        elif self.tests and not name and results:
            self._result(results, value.strip())
        elif self.tests and not name and self._kind:
            if self._kind != "Info":
                self._continue(value)
        elif self.tests and not name and value.strip():
            self._kind = "Warning"
            self._add(DcgmNote(value.strip(" ")))
        elif name and value.strip() != "Result" and not _METADATA.search(name):
            raise ParseError(DIAG, number, f"{name}: {value.strip()[:60]!r} is not a known result")

    def _add(self, note: DcgmNote) -> None:
        about = _ABOUT.search(note.text)
        gpu = int(about[1]) if note.gpu < 0 and about else note.gpu
        self.tests[-1] = replace(self.tests[-1], notes=(*self.tests[-1].notes, replace(note, gpu=gpu)))

    def _continue(self, value: str) -> None:
        """DCGM breaks its sentences in the middle of a word, at 45 characters; a blank that stood there is lost."""
        test = self.tests[-1]
        *before, last = test.notes
        short = -len(last.text) % _PIECE
        blanks = " " * short if short <= _BLANKS_MAX else ""
        joined = f"{last.text}{blanks}{value[1:].rstrip()}"
        self.tests[-1] = replace(test, notes=(*before, replace(last, text=joined)))

    def _result(self, results: list[tuple[int, str]], said: str) -> None:
        test = self.tests[-1]
        self._kind = ""
        self.tests[-1] = replace(test, results=(*test.results, *results))
        if results[0][1] in ("fail", "error", "warn") and _ENTITY.match(said) and not said.upper().startswith("GPU"):
            self._add(DcgmNote(said))  # a part that is no GPU: its name would be lost


def closed(text: str) -> bool:
    """False where a table was opened with a rule and not closed with one; a rule with a heading in it closes none."""
    rows = [line.strip() for line in lines(text) if line.startswith(("|", "+"))]
    return not any(row.startswith("+--") for row in rows) or set(rows[-1]) <= {"+", "-"}


def _omitted(text: str) -> tuple[str, ...]:
    """What is missing of a table that begins with neither rule nor heading, or ends with no rule."""
    rows = [line.strip() for line in lines(text) if line.startswith(("|", "+"))]
    begins = set(rows[0]) <= {"+", "-", "="} or _HEADING.match(rows[0]) is not None
    ends = set(rows[-1]) <= {"+", "-", "|"}
    return (
        *(() if begins else ("the table's beginning is missing",)),
        *(() if ends else ("the table's end is missing",)),
    )


def _rows(text: str) -> list[tuple[int, str, str]]:
    """Line number and the two cells of each row."""
    found = []
    for number, line in enumerate(lines(text), start=1):
        row = _ROW.match(line)
        if row and not line.startswith(("|--", "|==")):
            found.append((number, row["name"].strip(), row["value"]))
        elif row is None and line.startswith("|") and not line.startswith(("|-", "|=")):
            raise ParseError(DIAG, number, f"{line[:80]!r} is not a row of two cells")
    if not closed(text):
        raise ParseError(DIAG, 0, "the table has no closing rule: the text is cut short")
    return found


def _results(value: str) -> list[tuple[int, str]]:
    one = _ENTITY.match(value)
    if one:
        return [(int(one["number"]) if one["group"].upper() == "GPU" else -1, one["word"].lower())]
    match = _STATUS.match(value)
    if match is None:
        return []
    word = match["word"].lower()
    gpus = [int(part) for part in (match["gpus"] or "").replace(",", " ").split()]
    if match["cut"]:  # a cell that is too narrow for all GPUs: the last number may be a part of one
        return [(gpu, word) for gpu in gpus[:-1]] + [(-1, word)]
    return [(gpu, word) for gpu in gpus] or [(-1, word)]


def _parse_json(text: str) -> DcgmDiag:
    """One run, or the ``iterations`` of several, all of whose tests count."""
    try:
        data = json.loads(clean(text))
    except (ValueError, RecursionError) as error:
        raise ParseError(DIAG, getattr(error, "lineno", 0), f"not a whole JSON document: {error}") from error
    runs = data.get("iterations", [data]) if isinstance(data, dict) else []
    roots = [run[name] for run in runs for name in _ROOTS if isinstance(run, dict) and name in run]
    if not roots or not all(isinstance(root, dict) for root in roots):
        raise ParseError(DIAG, 1, f"none of the keys {', '.join(_ROOTS)}")
    try:
        categories = [category for root in roots for category in root.get("test_categories") or ()]
        tests = [_json_test(test) for category in categories for test in category.get("tests", ())]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ParseError(DIAG, 0, f"a test is not of the known shape: {error!r}") from error
    errors = [str(root["runtime_error"]).strip() for root in roots if root.get("runtime_error")]
    if not tests and not errors:
        raise ParseError(DIAG, 0, "no test in the document")
    return DcgmDiag(tuple(tests), tuple(dict.fromkeys(errors)))


def _json_test(test: dict[str, Any]) -> DcgmTest:
    """The summary (4.x) counts beside the results: an error that is nobody's stands there alone."""
    results: list[tuple[int, str]] = []
    notes: list[DcgmNote] = []
    for result in (*(test.get("results") or ()), *([test["test_summary"]] if "test_summary" in test else [])):
        word = str(result["status"]).lower()
        if word not in _WORDS.lower().split("|"):
            raise ValueError(f"test {test['name']}: {word!r} is not a known result")
        gpus = list(_json_gpus(result))
        results += [(gpu, word) for gpu in gpus]
        for item in _list(result.get("warnings") or ()):
            note = _json_note(item, gpus)
            notes += [] if any(note.text == other.text for other in notes) else [note]
    if not results:
        raise ValueError(f"test {test['name']} has no result")
    return DcgmTest(str(test["name"]), tuple(results), tuple(notes))


def _json_note(item: object, gpus: list[int]) -> DcgmNote:
    """A sentence, or an object with its severity; 3.x names the key of its first level ``warnings``."""
    of: dict[str, Any] = item if isinstance(item, dict) else {"warning": item}
    text = str(of.get("warning", of.get("warnings", item)))
    return DcgmNote(text, gpus[0] if len(gpus) == 1 else -1, int(of.get("error_severity", 0)))


def _json_gpus(result: dict[str, Any]) -> Iterable[int]:
    """``gpu_id`` "0", ``gpu_ids`` "0,1" (3.x), or ``entity_group`` and ``entity_id`` (4.x); -1 for the host."""
    if "entity_id" in result:
        return [int(result["entity_id"]) if str(result.get("entity_group", "GPU")).upper() == "GPU" else -1]
    said = str(result.get("gpu_id", result.get("gpu_ids", "")))
    return [int(part) for part in said.split(",") if part.strip()] or [-1]


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]
