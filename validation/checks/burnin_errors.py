"""What an error of a burn-in means: a fault of the GPU, of the software, or no more than that we could not look.

Names are those of the CUDA driver API (cuda.h, CUresult, CUDA 13.0) and of cuBLAS. A name that is not listed here is
UNKNOWN: it keeps the gate shut and accuses nobody.
"""

from __future__ import annotations

from dataclasses import dataclass

from validation.facts.burnin import BurnInError
from validation.verdict import FaultClass, Verdict

_REBOOT = "Reboot once; if it repeats, replace the host."
_REPLACE = "Replace the host."
_AGAIN = "Validate again; if it repeats, look at the host's kernel log and at what else runs on it."


@dataclass(frozen=True)
class Said:
    """How an error is judged. ``remedy`` is empty where the check's own fits."""

    verdict: Verdict
    message: str
    fault_class: FaultClass | None = None
    remedy: str = ""


_WRONG_CODE = (FaultClass.REPLACE_NOW, _REPLACE)  # NVIDIA's own kernels on valid data must not end like this

_FAULTS: dict[str, tuple[FaultClass, str]] = {
    "CUDA_ERROR_SYSTEM_NOT_READY": (
        FaultClass.REBOOT_ONCE,
        "Start nvidia-fabricmanager in the driver's version; if it runs, reboot once; if it repeats, replace the host.",
    ),
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": (
        FaultClass.SOFTWARE,
        "Reboot, so that kernel module and libraries are of one version; else install them again.",
    ),
    "CUDA_ERROR_NO_DEVICE": (FaultClass.REBOOT_ONCE, _REBOOT),
    "CUDA_ERROR_NOT_INITIALIZED": (FaultClass.REBOOT_ONCE, _REBOOT),
    "CUDA_ERROR_UNKNOWN": (FaultClass.REBOOT_ONCE, _REBOOT),
    "CUDA_ERROR_ECC_UNCORRECTABLE": (
        FaultClass.REBOOT_ONCE,
        "Reboot once, so that the memory row is remapped; if it repeats, replace the host.",
    ),
    "CUDA_ERROR_DEVICE_NOT_LICENSED": (FaultClass.SOFTWARE, "Give the guest its vGPU licence."),
    "CUDA_ERROR_NVLINK_UNCORRECTABLE": _WRONG_CODE,
    "CUDA_ERROR_HARDWARE_STACK_ERROR": _WRONG_CODE,
    "CUDA_ERROR_ILLEGAL_ADDRESS": _WRONG_CODE,
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": _WRONG_CODE,
    "CUDA_ERROR_MISALIGNED_ADDRESS": _WRONG_CODE,
    "CUDA_ERROR_INVALID_ADDRESS_SPACE": _WRONG_CODE,
    "CUDA_ERROR_INVALID_PC": _WRONG_CODE,
    "CUDA_ERROR_LAUNCH_FAILED": _WRONG_CODE,
    "CUDA_ERROR_LAUNCH_TIMEOUT": _WRONG_CODE,
    "CUDA_ERROR_CONTAINED": _WRONG_CODE,
    "CUBLAS_STATUS_EXECUTION_FAILED": _WRONG_CODE,
    "CUBLAS_STATUS_INTERNAL_ERROR": _WRONG_CODE,
}

_HINTS = {
    "CUDA_ERROR_SYSTEM_NOT_READY": "the system is not set up: the fabric manager has not done its work",
    "CUDA_ERROR_DEVICE_UNAVAILABLE": "the GPU is busy or not open to this process",
    "CUDA_ERROR_OUT_OF_MEMORY": "out of GPU memory",
    "memory-in-use": "too little GPU memory is free",
    "hang": "it did not answer",
    "ended": "its process died",
}

_IN_USE = "Stop what else runs on the GPU, and validate again."
_REMEDIES = {
    "CUDA_ERROR_DEVICE_UNAVAILABLE": _IN_USE,
    "CUDA_ERROR_OUT_OF_MEMORY": _IN_USE,
    "memory-in-use": _IN_USE,
}

_OUTCOMES = {
    "no-cuda": "the CUDA driver library could not be loaded",
    "no-devices": "CUDA sees no GPU",
}


def said_of(outcome: str, error: BurnInError | None) -> Said:
    """How to judge the outcome of a whole burn-in, or (``ran``) the error of one GPU."""
    if outcome == "no-devices":
        fault, remedy = _FAULTS["CUDA_ERROR_NO_DEVICE"]
        return Said(Verdict.FAIL, _OUTCOMES[outcome], fault, remedy)
    if error is None:
        return Said(Verdict.UNKNOWN, _OUTCOMES.get(outcome, f"outcome '{outcome}' without a reason"), remedy=_AGAIN)
    hint = _HINTS.get(error.name) or _OUTCOMES.get(outcome) or f"error in phase '{error.phase}'"
    message = f"{hint} ({error.text}, in phase '{error.phase}')"
    if error.name in _FAULTS:
        fault, remedy = _FAULTS[error.name]
        return Said(Verdict.FAIL, message, fault, remedy)
    return Said(Verdict.UNKNOWN, message, remedy=_REMEDIES.get(error.name, _AGAIN))
