"""gpu-burn: what each GPU computed, how many results were wrong, and the verdict it printed, if it came that far.

Formats: wilicc/gpu-burn gpu_burn-drv.cpp, read in revisions of 2016 to 2026-08, its Windows port, and runs of users.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from profiles.errors import ParseError
from validation.facts.text import clean

TOOL = "gpu-burn"
_SIGN = re.compile(r"proc'd: -?\d+ \(|^\s*Tested \d+ GPUs?:|Couldn't init a GPU test|^Burning for \d+ seconds", re.M)
# A progress line: percent, then iterations, wrong results and temperatures, one of each a GPU. The separator " - " also
# stands before a negative number, and lacks a blank after "(WARNING!)". Power follows the temperatures since 2025.
_PROGRESS = re.compile(
    r"(?<!\d)(?P<done>\d+(?:\.\d+)?)%\s+proc'd: (?P<work>[^:]+)\berrors: (?P<errors>[^:]+)\btemps: (?P<temps>.+)$"
)
_WORK = re.compile(r"(-?\d+) \((-?\d+(?:\.\d+)?) Gflop/s\)")
_ERRORS = re.compile(r"(-?\d+)(\s+\((?:WARNING|DIED)!\))?(?:\s*-\s+|\s*$)")
_TEMPERATURE = re.compile(r"-?\d+ C\b|--")  # "--" where nvidia-smi gives none
_TESTED = re.compile(r"^\s*Tested (\d+) GPUs?:\s*$")
_VERDICT = re.compile(r"^\s*GPU (\d+): (OK|FAULTY)\s*$")
_BOARD = re.compile(r"^GPU (\d+): (.+?) \(UUID: \S+\)\s*$")
_TROUBLE = re.compile(
    r"Couldn't init a GPU test: ?.*|Failure during compute: ?.*|No CUDA devices|Couldn't find a CUDA.*"
)
_SAYS = re.compile(rf"{_TESTED.pattern}|{_VERDICT.pattern}|{_TROUBLE.pattern}|proc'd: ")


@dataclass(frozen=True)
class BurnGpu:
    """One GPU at the last progress line: iterations done, GFLOPS, wrong results (negative where the counter ran over).

    ``errors`` are those of the last progress line that shows any: gpu-burn counts anew after each summary.
    ``died``: its process is gone. ``board`` is the product's name, where it is told. ``verdict`` is OK, FAULTY, or ""
    where gpu-burn never came to print one.
    """

    index: int
    iterations: int
    gflops: float
    errors: int
    died: bool
    verdict: str
    board: str = ""


@dataclass(frozen=True)
class GpuBurn:
    """``aborted``: no process was left. ``finished``: the list "Tested N GPUs" is there and whole.

    ``troubles`` are gpu-burn's own sentences on why it could not start or go on.
    """

    gpus: tuple[BurnGpu, ...]
    aborted: bool
    finished: bool
    percent: float
    troubles: tuple[str, ...] = ()


def is_it(text: str) -> bool:
    """Told by a progress line, the list of verdicts, or what a run begins with."""
    return _SIGN.search(text) is not None


def parse(text: str) -> GpuBurn:
    """The last progress line with every GPU in it, and the verdicts. A carriage return ends a progress line too.

    Of several runs in one text each GPU's worst counts.
    """
    found = _runs(clean(text))
    runs = [_run(pieces) for pieces in [run for run in found if any(map(_SAYS.search, run))] or found]
    one = runs[0] if len(runs) == 1 else _worst(runs)
    return replace(one, aborted="No clients are alive" in text)


def _runs(text: str) -> list[list[str]]:
    """The lines of each run: another begins behind a list of verdicts, or with a lower percentage.

    Its first words alone begin none: a child's buffer may repeat them in the middle of a log.
    """
    runs: list[list[str]] = [[]]
    done, listed = 0.0, False
    for piece in (piece for line in text.split("\n") for piece in line.split("\r")):
        progress, tested = _PROGRESS.search(piece), _TESTED.match(piece)
        starts = piece.startswith("Burning for ") or _BOARD.match(piece) is not None
        lower = progress is not None and float(progress["done"]) < done
        if (starts and listed) or lower or (listed and (progress or tested)):
            runs.append([])
            done, listed = 0.0, False
        runs[-1].append(piece)
        done = float(progress["done"]) if progress else done
        listed = listed or tested is not None
    return runs


def _worst(runs: list[GpuBurn]) -> GpuBurn:
    """What is bad in any run is bad."""
    by_index: dict[int, list[BurnGpu]] = {}
    for gpu in (gpu for run in runs for gpu in run.gpus):
        by_index.setdefault(gpu.index, []).append(gpu)
    gpus = [
        BurnGpu(
            index=index,
            iterations=min(gpu.iterations for gpu in same),
            gflops=min(gpu.gflops for gpu in same),
            errors=next((gpu.errors for gpu in same if gpu.errors), 0),
            died=any(gpu.died for gpu in same),
            verdict="FAULTY" if any(gpu.verdict == "FAULTY" for gpu in same) else min(gpu.verdict for gpu in same),
            board=same[-1].board,
        )
        for index, same in sorted(by_index.items())
    ]
    troubles = tuple(dict.fromkeys(trouble for run in runs for trouble in run.troubles))
    finished, percent = all(run.finished for run in runs), min(run.percent for run in runs)
    return GpuBurn(tuple(gpus), aborted=False, finished=finished, percent=percent, troubles=troubles)


def _run(pieces: list[str]) -> GpuBurn:
    progress = [match for piece in pieces if (match := _PROGRESS.search(piece))]
    troubles = tuple(dict.fromkeys(match[0].strip() for piece in pieces if (match := _TROUBLE.search(piece))))
    announced, verdicts, names = 0, {}, {}
    for piece in pieces:
        tested, verdict, board = _TESTED.match(piece), _VERDICT.match(piece), _BOARD.match(piece)
        if tested:
            announced = int(tested[1])
        elif verdict:
            verdicts[int(verdict[1])] = verdict[2]
        elif board:
            names[int(board[1])] = board[2]
    if not progress and not announced and not troubles:
        raise ParseError(TOOL, 0, "neither a progress line nor 'Tested N GPUs'")
    if len(verdicts) != announced:
        raise ParseError(TOOL, 0, f"'Tested {announced} GPUs', but {len(verdicts)} verdicts: the text is cut short")
    began = any(piece.startswith("Burning for ") for piece in pieces)
    if not progress and not began and "OK" in verdicts.values() and "FAULTY" not in verdicts.values():
        reason = "a list of verdicts alone: OK stands there after no work too"
        raise ParseError(TOOL, 0, reason, "Show the progress lines before it too.")
    gpus = _last(progress, verdicts)
    return GpuBurn(
        gpus=tuple(_named(gpu, names, len(gpus)) for gpu in gpus),
        aborted=False,
        finished=announced > 0,
        percent=float(progress[-1]["done"]) if progress else 0.0,
        troubles=troubles,
    )


def _named(gpu: BurnGpu, names: dict[int, str], count: int) -> BurnGpu:
    """With the name from the list of boards, where it lists as many as were burned (``-i`` burns one of many)."""
    name = names.get(gpu.index, "") if len(names) == count else ""
    return BurnGpu(gpu.index, gpu.iterations, gpu.gflops, gpu.errors, gpu.died, gpu.verdict, name)


def _last(progress: list[re.Match[str]], verdicts: dict[int, str]) -> tuple[BurnGpu, ...]:
    """Every GPU as the last progress line shows it; a line that was cut shows fewer than the ones before."""
    if not progress:
        return tuple(BurnGpu(index, 0, 0.0, 0, died=False, verdict=word) for index, word in sorted(verdicts.items()))
    work = [_WORK.findall(match["work"]) for match in progress]
    width = max(len(cells) for cells in work)
    whole = [at for at, cells in enumerate(work) if len(cells) == width]
    last = whole[-1]
    counts = [_ERRORS.findall(progress[at]["errors"].strip()) for at in whole]
    temperatures = _TEMPERATURE.findall(progress[last]["temps"].partition("power:")[0])
    if len(counts[-1]) != width or len(temperatures) != width:
        raise ParseError(TOOL, 0, f"{width} GPUs at work, {len(counts[-1])} error counts: the progress line is cut")
    if verdicts and sorted(verdicts) != list(range(width)):
        raise ParseError(TOOL, 0, f"{width} GPUs at work, verdicts for {sorted(verdicts)}")
    seen = [_ERRORS.findall(match["errors"].strip()) for match in progress]
    return tuple(
        BurnGpu(
            index=index,
            iterations=int(cell[0]),
            gflops=float(cell[1]),
            errors=next((int(row[index][0]) for row in reversed(seen) if len(row) > index and int(row[index][0])), 0),
            died="DIED" in counts[-1][index][1],
            verdict=verdicts.get(index, ""),
        )
        for index, cell in enumerate(work[last])
    )
