"""Clocks, power, heat, throttle reasons and PCIe links while the GPUs work, through NVML in a process of its own.

An NVML call can hang like any other call into a sick driver; then the samples end early and the result says so.
"""

import time
from typing import Any, Callable, Dict, List, Optional

import pynvml

from validation.probe.burnprocess import Child, Port, collect
from validation.probe.nvml import throttle_reasons

START_S = 30.0
ANSWER_S = 2.0
EVERY_S = 0.1
_TEMPERATURE_GPU = 0

COLUMNS = ("sm_clock_mhz", "power_w", "temp_c", "throttle", "pcie_generation", "pcie_width")

Message = Dict[str, Any]


def body(port: Port) -> None:
    """The sampling process: says once which index each address has, then one sample of all GPUs per order."""
    try:
        pynvml.nvmlInit()
        handles = _handles()
    except pynvml.NVMLError as error:
        port.send({"error": f"NVML: {error}"})
        return
    port.send({"indices": {address: index for address, (index, _) in handles.items()}})
    while port.order() == "sample":
        port.send({"sample": {address: _sample(handle) for address, (_, handle) in handles.items()}})


def _handles() -> Dict[str, Any]:
    """(index, handle) by PCI address, of the GPUs that give one."""
    found: Dict[str, Any] = {}
    for index in range(pynvml.nvmlDeviceGetCount()):
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            address = pynvml.nvmlDeviceGetPciInfo(handle).busId
        except pynvml.NVMLError:
            continue  # a lost GPU: the evidence of NVML itself says so, and CUDA will not have it either
        text = address.decode() if isinstance(address, bytes) else address
        domain, _, rest = text.lower().partition(":")
        found[f"{int(domain, 16):04x}:{rest}"] = (index, handle)
    return found


def _sample(handle: Any) -> Message:
    reads: Dict[str, Callable[[], Any]] = {
        "sm_clock_mhz": lambda: float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
        "power_w": lambda: pynvml.nvmlDeviceGetPowerUsage(handle) / 1000.0,
        "temp_c": lambda: float(pynvml.nvmlDeviceGetTemperature(handle, _TEMPERATURE_GPU)),
        "throttle": lambda: throttle_reasons(handle),
        "pcie_generation": lambda: pynvml.nvmlDeviceGetCurrPcieLinkGeneration(handle),
        "pcie_width": lambda: pynvml.nvmlDeviceGetCurrPcieLinkWidth(handle),
    }
    sample: Message = {}
    for key, read in reads.items():
        try:
            sample[key] = read()
        except pynvml.NVMLError as error:  # noqa: PERF203 - each value may be missing by itself
            sample.setdefault("errors", []).append(f"{key}: {error}")
    return sample


def indices(sampler: Child, result: Message) -> Dict[str, int]:
    """NVML's index by PCI address; empty where NVML does not answer, and the result says why."""
    collect([sampler], lambda child: bool(child.messages), START_S)
    answer: Message = {"error": f"NVML did not answer in {START_S:g} s"}
    if sampler.messages:
        answer = sampler.messages[0]
    if "error" in answer:
        result["sampling_error"] = answer["error"]
    numbers: Dict[str, int] = answer.get("indices", {})
    return numbers


class Samples:
    """The samples of one phase. ``take`` may be called often: it asks for one where one is due and none is owed."""

    def __init__(self, sampler: Child, result: Message) -> None:
        self._sampler, self._result = sampler, result
        self._asked, self._asked_at = 0, 0.0
        self._first = len(sampler.messages)

    def _owed(self) -> bool:
        return len(self._sampler.messages) - self._first < self._asked

    def take(self) -> None:
        if self._result["sampling_error"]:
            return
        collect([self._sampler], lambda _: not self._owed(), 0.001)
        waited = time.monotonic() - self._asked_at
        if self._sampler.ended:
            self._result["sampling_error"] = f"the sampling process {self._sampler.ended}"
        elif self._owed():
            if waited > ANSWER_S:
                self._result["sampling_error"] = f"NVML did not answer in {ANSWER_S:g} s"
        elif waited >= EVERY_S:
            self._asked, self._asked_at = self._asked + 1, time.monotonic()
            self._sampler.tell("sample")

    def finish(self) -> None:
        """Wait for the answer that is owed."""
        if not self._result["sampling_error"] and collect([self._sampler], lambda _: not self._owed(), ANSWER_S):
            self._result["sampling_error"] = f"NVML did not answer in {ANSWER_S:g} s"

    def of(self, address: str) -> Optional[Message]:
        """The samples of one GPU as columns; None without any."""
        rows: List[Message] = [message["sample"] for message in self._sampler.messages[self._first :]]
        own = [row[address] for row in rows if address in row]
        if not own:
            return None
        columns: Message = {key: [row[key] for row in own if key in row] for key in COLUMNS}
        columns["errors"] = sorted({error for row in own for error in row.get("errors", ())})
        return columns
