"""gpu-burn: what each GPU computed, how many results were wrong, and the verdict it printed, if it came that far."""

from __future__ import annotations

import re
from dataclasses import dataclass

from profiles.errors import ParseError
from validation.facts.text import clean

TOOL = "gpu-burn"
# A progress line: percent, then iterations, wrong results and temperatures, one of each a GPU. The separator " - " also
# stands before a negative number, and is short of a blank after "(WARNING!)".
_PROGRESS = re.compile(
    r"(?<!\d)(?P<done>\d+(?:\.\d+)?)%\s+proc'd: (?P<work>.+?)\s+errors: (?P<errors>.+?)\s+temps: (?P<temps>.+)$"
)
_WORK = re.compile(r"(-?\d+) \((-?\d+(?:\.\d+)?) Gflop/s\)")
_ERRORS = re.compile(r"(-?\d+)(\s+\((?:WARNING|DIED)!\))?(?:\s*-\s+|\s*$)")
_TEMPERATURE = re.compile(r"(-?\d+|--) C")
_TESTED = re.compile(r"^Tested (\d+) GPUs?:\s*$")
_VERDICT = re.compile(r"^\s+GPU (\d+): (OK|FAULTY)\s*$")


@dataclass(frozen=True)
class BurnGpu:
    """One GPU at the last progress line: iterations done, GFLOPS, wrong results (negative where the counter ran over).

    ``died``: its process is gone. ``verdict`` is OK, FAULTY, or "" where gpu-burn never came to print one.
    """

    index: int
    iterations: int
    gflops: float
    errors: int
    died: bool
    verdict: str


@dataclass(frozen=True)
class GpuBurn:
    """``aborted``: no process was left. ``finished``: the list "Tested N GPUs" is there and whole."""

    gpus: tuple[BurnGpu, ...]
    aborted: bool
    finished: bool
    percent: float


def parse(text: str) -> GpuBurn:
    """The last progress line with every GPU in it, and the verdicts. A carriage return ends a progress line too."""
    pieces = [piece for line in clean(text).split("\n") for piece in line.split("\r")]
    progress = [match for piece in pieces if (match := _PROGRESS.search(piece))]
    announced, verdicts = 0, {}
    for piece in pieces:
        tested, verdict = _TESTED.match(piece), _VERDICT.match(piece)
        if tested:
            announced = int(tested[1])
        elif verdict:
            verdicts[int(verdict[1])] = verdict[2]
    if not progress and not announced:
        raise ParseError(TOOL, 0, "neither a progress line nor 'Tested N GPUs'")
    if len(verdicts) != announced:
        raise ParseError(TOOL, 0, f"'Tested {announced} GPUs', but {len(verdicts)} verdicts: the text is cut short")
    gpus = _last(progress, verdicts)
    return GpuBurn(
        gpus=gpus,
        aborted="No clients are alive" in text,
        finished=announced > 0,
        percent=float(progress[-1]["done"]) if progress else 0.0,
    )


def _last(progress: list[re.Match[str]], verdicts: dict[int, str]) -> tuple[BurnGpu, ...]:
    """Every GPU as the last progress line shows it; a line that was cut shows fewer than the ones before."""
    if not progress:
        return tuple(BurnGpu(index, 0, 0.0, 0, died=False, verdict=word) for index, word in sorted(verdicts.items()))
    work = [_WORK.findall(match["work"]) for match in progress]
    width = max(len(cells) for cells in work)
    at = max(index for index, cells in enumerate(work) if len(cells) == width)
    errors = _ERRORS.findall(progress[at]["errors"].strip())
    if len(errors) != width or len(_TEMPERATURE.findall(progress[at]["temps"])) != width:
        raise ParseError(TOOL, 0, f"{width} GPUs at work, {len(errors)} error counts: the progress line is not whole")
    if verdicts and sorted(verdicts) != list(range(width)):
        raise ParseError(TOOL, 0, f"{width} GPUs at work, verdicts for {sorted(verdicts)}")
    return tuple(
        BurnGpu(
            index=index,
            iterations=int(cell[0]),
            gflops=float(cell[1]),
            errors=int(error[0]),
            died="DIED" in error[1],
            verdict=verdicts.get(index, ""),
        )
        for index, (cell, error) in enumerate(zip(work[at], errors, strict=True))
    )
