"""The burn-in's result, as the probe's JSON has it (its shape: the docstring of validation/probe/burnin.py)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from profiles.errors import ParseError

TOOL = "burn-in"

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0)]


class _Fact(BaseModel):
    """Nothing may be missing, unknown, of another type, or not a number: a half-read result must not be judged."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class BurnInError(_Fact):
    """What stopped a burn-in. ``name`` is CUDA's or cuBLAS's own, or ours: hang, ended, memory-in-use."""

    phase: str
    call: str
    code: int | None
    name: str
    text: str


class CopyResult(_Fact):
    """Bandwidth in GB/s from and to pinned memory; ``intact``: what was copied to the GPU came back the same."""

    h2d_gbps: Amount
    d2h_gbps: Amount
    bytes: Count
    intact: bool


class GemmResult(_Fact):
    """``iterations`` GEMMs of order ``n`` in ``seconds`` on the GPU's clock, and how their results compared.

    ``compared`` batches had every element compared, ``mismatches`` of them differed, the first not later than iteration
    ``first_mismatch``. ``wrong_columns`` of ``checked_columns`` differ from the host's own answer. ``untouched``: the
    result was never written. Not ``complete``: these are the last totals of a GPU that did not finish.
    """

    n: Count
    iterations: Count
    seconds: Amount
    tflops: Amount
    compared: Count
    mismatches: Count
    first_mismatch: int | None
    untouched: bool
    checked_columns: Count
    wrong_columns: Count
    checksum: str
    complete: bool
    stable: bool | None = None

    @model_validator(mode="after")
    def _whole(self) -> GemmResult:
        if self.complete and self.stable is None:
            raise ValueError("complete, but without the comparison of its first and last result")
        if self.mismatches > self.compared or self.wrong_columns > self.checked_columns:
            raise ValueError("more differences than comparisons")
        return self


class Samples(_Fact):
    """What NVML said while the GEMMs ran, oldest first: MHz, W, degrees C, active throttle reasons, the PCIe link."""

    sm_clock_mhz: tuple[float, ...]
    power_w: tuple[float, ...]
    temp_c: tuple[float, ...]
    throttle: tuple[tuple[str, ...], ...]
    errors: tuple[str, ...]
    pcie_generation: tuple[int, ...] = ()
    pcie_width: tuple[int, ...] = ()


class GpuBurnIn(_Fact):
    """One GPU. ``copy_`` and ``gemm`` are None where not measured, ``no_cublas`` says what was tried in vain."""

    index: Count
    pci: str
    name: str
    phase: Literal["done", "setup", "copy", "gemm"]
    error: BurnInError | None
    no_cublas: str | None
    cublas: int | None
    library: str | None
    cpus: str | None
    copy_: Annotated[CopyResult | None, Field(alias="copy")]
    gemm: GemmResult | None
    samples: Samples | None

    @property
    def label(self) -> str:
        return f"GPU{self.index}"

    @model_validator(mode="after")
    def _explained(self) -> GpuBurnIn:
        if (self.phase == "done") != (self.error is None):
            raise ValueError(f"GPU{self.index}: phase {self.phase!r} does not fit its error")
        if self.error is None and self.gemm is None and self.no_cublas is None:
            raise ValueError(f"GPU{self.index}: no GEMM, and no reason")
        return self


class BurnInResult(_Fact):
    """The burn-in of one host. ``outcome`` other than ``ran`` means that no GPU was tried, and ``error`` why."""

    schema_: Annotated[Literal["kiln/burn-in/v1"], Field(alias="schema")]
    level: Literal["quick"]
    outcome: Literal["ran", "no-cuda", "cuda-error", "no-devices", "hang", "error"]
    error: BurnInError | None
    driver_cuda: int | None
    sampling_error: str | None
    wall_s: Amount
    gpus: tuple[GpuBurnIn, ...]

    @model_validator(mode="after")
    def _consistent(self) -> BurnInResult:
        if self.outcome == "ran" and not self.gpus:
            raise ValueError("it ran, but on no GPU")
        if len({gpu.index for gpu in self.gpus}) != len(self.gpus):
            raise ValueError("two GPUs with the same index")
        return self


def parse(text: str) -> BurnInResult:
    """The result. Raises ParseError naming the first field that is missing, unknown or wrong."""
    try:
        return BurnInResult.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ParseError(TOOL, 0, f"{where or 'the document'}: {first['msg']}") from error
