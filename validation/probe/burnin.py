"""The burn-in: every GPU of the host works at once, and the result says what was measured and what was not.

``run`` returns (and never raises; nothing here judges)::

    {
      "schema": "kiln/burn-in/v1", "level": "quick", "wall_s": 6.1,
      "outcome": "ran",            or "no-cuda" (no driver library), "cuda-error", "no-devices", "hang", "error"
      "error": null,               or {"phase", "call", "code", "name", "text"}: CUDA 802 is code 802
      "driver_cuda": 12080,        newest CUDA the driver can run
      "sampling_error": null,      why the samples are missing or end early
      "gpus": [
        {
          "index": 0,              NVML's; CUDA's ordinal where NVML does not answer
          "pci": "0000:53:00.0", "name": "NVIDIA H100 80GB HBM3",
          "phase": "done",         or the phase that did not end: "setup", "copy", "gemm"
          "error": null,           or as above; name "hang" where no answer came in time, "ended" where it crashed,
                                   "memory-in-use" where too little memory is free
          "no_cublas": null,       or what was tried: then "gemm" is null
          "cublas": 120205, "library": "libcublas.so.12", "cpus": "0-47,96-143",
          "copy": {"h2d_gbps": 55.1, "d2h_gbps": 55.0, "bytes": 33554432, "intact": true},      null: not measured
          "gemm": {"n": 8192, "iterations": 1340, "seconds": 2.05, "tflops": 718.7,            null: not measured
                   "compared": 21, "mismatches": 0, "first_mismatch": null,
                   "untouched": false,               true: the result was never written
                   "checked_columns": 64, "wrong_columns": 0, "checksum": "9d2f3a60",
                   "stable": true,                   same checksum before and after; absent until "complete"
                   "complete": true},                false: it hung or died on the way, and these are the last totals
          "samples": {"sm_clock_mhz": [1755.0], "power_w": [640.1], "temp_c": [51.0],
                      "throttle": [["sw_power_cap"]], "pcie_generation": [5], "pcie_width": [16],
                      "errors": []}                  taken while the GEMMs ran; null: none
        }
      ]
    }

Copies are measured one GPU after the other, because GPUs behind one PCIe switch share its uplink and a floor is a
figure for one; GEMMs run on all GPUs at once. Bandwidth in GB/s, decimal. See ``burnload`` for how a result is proved.
"""

import os
import time
from typing import Any, Callable, Dict, List, Optional

from validation.probe import burnload, burnsamples, cuda
from validation.probe.burnprocess import Child, Port, collect, last

SCHEMA = "kiln/burn-in/v1"
LEVELS = {"quick": 2.0}  # seconds of GEMM on each GPU, by the GPU's own clock

SCOUT_S = 60.0  # cuInit of eight GPUs without persistence mode takes many seconds
SETUP_S = 60.0
COPY_S = 15.0
GEMM_MARGIN_S = 20.0
SAMPLE_EVERY_S = 0.1

Message = Dict[str, Any]
Emit = Callable[[Message], None]


def run(level: str, emit: Emit) -> Message:
    """Burn in at ``level`` (a key of LEVELS); ``emit`` gets ``{"stage": "burn-in", "text": ...}`` as it goes on.

    Call it before the process has started threads: it forks.
    """
    started = time.monotonic()
    result: Message = {"schema": SCHEMA, "level": level, "outcome": "ran", "error": None, "driver_cuda": None}
    result.update({"sampling_error": None, "gpus": []})
    try:
        _run(LEVELS[level], result, lambda text: emit({"stage": "burn-in", "text": text}))
    except Exception as error:  # noqa: BLE001 - the result must say what went wrong; the judge calls it UNKNOWN
        result["outcome"], result["error"] = "error", described("run", error)
    result["wall_s"] = round(time.monotonic() - started, 3)
    return result


def described(phase: str, error: Exception) -> Message:
    """An error as the result shows it."""
    return {
        "phase": phase,
        "call": getattr(error, "call", ""),
        "code": getattr(error, "code", None),
        "name": getattr(error, "name", type(error).__name__),
        "text": str(error),
    }


def _run(seconds: float, result: Message, say: Callable[[str], None]) -> None:
    # The child processes run under these: every GPU, in the order NVML has.
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    say("looking for GPUs")
    found = _scout(result)
    if not found:
        return
    root = os.environ.get("KILN_ROOT", "/")
    plan = burnload.Plan(seconds, seconds + GEMM_MARGIN_S / 2, cuda.find_cublas(result["driver_cuda"], root), root)
    sampler = Child(burnsamples.body)
    gpus = [Gpu(ordinal, address, name, plan) for ordinal, (address, name) in enumerate(found)]
    try:
        say(f"{len(gpus)} GPUs: setting up")
        numbers = burnsamples.indices(sampler, result)
        for gpu in gpus:
            gpu.index = numbers.get(gpu.address, gpu.index)
        phase(gpus, "setup", SETUP_S)
        say(f"{len(gpus)} GPUs: copying, one after the other")
        for gpu in gpus:
            phase([gpu], "copy", COPY_S)
        say(f"{len(gpus)} GPUs: multiplying for {seconds:g} s")
        samples = burnsamples.Samples(sampler, result)
        phase([gpu for gpu in gpus if gpu.can_multiply], "gemm", seconds + GEMM_MARGIN_S, samples.take)
        samples.finish()
    finally:
        for child in [sampler, *(gpu.child for gpu in gpus)]:
            child.stop()
    result["gpus"] = [gpu.result(samples.of(gpu.address)) for gpu in sorted(gpus, key=lambda gpu: gpu.index)]


def _scout(result: Message) -> List[List[str]]:
    """The devices CUDA has, asked by a process of their own. Without any, the result says why."""

    def body(port: Port) -> None:
        try:
            driver = cuda.Cuda()
            port.send({"driver_cuda": driver.driver_version(), "devices": driver.devices()})
        except OSError as error:
            port.send({"outcome": "no-cuda", "error": described("init", error)})
        except cuda.CudaError as error:
            port.send({"outcome": "cuda-error", "error": described("init", error)})

    scout = Child(body)
    collect([scout], lambda child: bool(child.messages), SCOUT_S)
    scout.stop()
    if not scout.messages:
        name = "ended" if scout.ended != "stopped" else "hang"
        text = f"process {scout.ended}" if name == "ended" else f"no answer in {SCOUT_S:g} s"
        result["outcome"] = "hang"
        result["error"] = {"phase": "init", "call": "cuInit", "code": None, "name": name, "text": text}
        return []
    answer = scout.messages[0]
    devices: List[List[str]] = answer.pop("devices", [])
    result.update(answer)
    if not devices and result["outcome"] == "ran":
        result["outcome"] = "no-devices"
    return devices


class Gpu:
    """One GPU's child process, and what is known of it."""

    def __init__(self, ordinal: int, address: str, name: str, plan: burnload.Plan) -> None:
        self.index = ordinal
        self.address = address
        self.name = name
        self.phase = "setup"
        self.error: Optional[Message] = None
        self.child = Child(self._body(ordinal, address, plan))

    @staticmethod
    def _body(ordinal: int, address: str, plan: burnload.Plan) -> Callable[[Port], None]:
        def body(port: Port) -> None:
            name = ""

            def send(message: Message) -> None:
                port.send({name: message})

            load = burnload.Load(plan, ordinal, address, send)
            phases = {"setup": load.setup, "copy": load.copy, "gemm": load.gemm}
            while True:
                name = port.order()
                if name not in phases:
                    return
                try:
                    phases[name]()
                except Exception as error:  # noqa: BLE001 - travels to the parent as this GPU's error
                    port.send({"error": described(name, error)})
                    return
                port.send({"ended": name})

        return body

    @property
    def can_multiply(self) -> bool:
        setup = self._said("setup")
        return self.error is None and bool(setup) and "no_cublas" not in setup

    def begin(self, name: str) -> None:
        if self.error is None:
            self.phase = name
            self.child.tell(name)

    def idle(self) -> bool:
        """Whether the phase it was told to do has ended, one way or the other."""
        if self.error is None:
            failure = last(self.child, "error")
            self.error = failure["error"] if failure else None
        ended = last(self.child, "ended")
        return self.error is not None or (ended is not None and ended["ended"] == self.phase)

    def give_up(self, timeout_s: float) -> None:
        """Mark it where its phase did not end: it hangs, or its process died."""
        if self.idle():
            return
        died = bool(self.child.ended)
        text = f"its process {self.child.ended}" if died else f"no answer in {timeout_s:g} s"
        self.error = {"phase": self.phase, "call": "", "code": None, "name": "ended" if died else "hang", "text": text}

    def _said(self, key: str) -> Message:
        message = last(self.child, key)
        return message[key] if message else {}

    def result(self, samples: Optional[Message]) -> Message:
        setup = self._said("setup")
        return {
            "index": self.index,
            "pci": self.address,
            "name": self.name,
            "phase": "done" if self.error is None else self.error["phase"],
            "error": self.error,
            "no_cublas": setup.get("no_cublas"),
            "cublas": setup.get("cublas"),
            "library": setup.get("library"),
            "cpus": setup.get("cpus"),
            "copy": self._said("copy") or None,
            "gemm": self._said("gemm") or None,
            "samples": samples,
        }


def phase(gpus: List[Gpu], name: str, timeout_s: float, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Let these GPUs do one phase together; whoever does not end it in time is marked and left alone."""
    for gpu in gpus:
        gpu.begin(name)
    by_child = {id(gpu.child): gpu for gpu in gpus}
    deadline = time.monotonic() + timeout_s
    children = [gpu.child for gpu in gpus]
    while True:
        meanwhile()
        if not collect(children, lambda child: by_child[id(child)].idle(), SAMPLE_EVERY_S):
            break
        if time.monotonic() > deadline:
            break
    for gpu in gpus:
        gpu.give_up(timeout_s)
