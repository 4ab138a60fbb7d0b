"""CUDA and cuBLAS through ctypes: the calls a burn-in needs, each with its error turned into an exception.

Result first: ``Cuda()`` and ``Blas(...)`` are ready to call, or the constructor raises ``CudaError`` (the driver or a
library said no) or ``OSError`` (a library is not there). Nothing is compiled or installed.

Nothing here touches a GPU at import time. All calls are made in processes of their own, because any of them can hang.
"""

import ctypes
import glob
import os
from typing import Any, List, Tuple

INT, UINT, SIZE, FLOAT, PTR = ctypes.c_int, ctypes.c_uint, ctypes.c_size_t, ctypes.c_float, ctypes.c_void_p
DEVICE_PTR = ctypes.c_ulonglong
Handle = ctypes.c_void_p  # a stream or an event

# Major versions of cuBLAS that this module knows how to call, newest first. Their GEMM calls are the same since 11.0.
CUBLAS_MAJORS = (13, 12, 11)

# Where cuBLAS lies when the loader does not know it: toolkits, then the wheels that frameworks bring along. The
# layouts are those of CUDA 11 to 13 toolkits and of the nvidia-cublas-cu11/-cu12 and nvidia-cublas wheels (2026-08).
CUBLAS_FOLDERS = (
    "usr/local/cuda*/lib64",
    "usr/local/cuda*/targets/*/lib",
    "usr/lib/*-linux-gnu",
    "usr/lib64",
    "opt/*/lib/python3*/site-packages/nvidia/cublas/lib",
    "opt/*/lib/python3*/site-packages/nvidia/cu13/lib",
    "opt/*/envs/*/lib/python3*/site-packages/nvidia/cublas/lib",
    "opt/*/envs/*/lib/python3*/site-packages/nvidia/cu13/lib",
    "usr/local/lib/python3*/*-packages/nvidia/cublas/lib",
    "usr/local/lib/python3*/*-packages/nvidia/cu13/lib",
    "usr/lib/python3*/*-packages/nvidia/cublas/lib",
    "home/*/.local/lib/python3*/site-packages/nvidia/cublas/lib",
)

_EVENT_BLOCKING_SYNC = 1  # wait asleep, not spinning: eight workers must not eat the host's CPUs
_STREAM_NON_BLOCKING = 1
_R_32F, _R_16F, _COMPUTE_32F, _GEMM_DEFAULT, _OP_N, _OP_T = 0, 2, 68, -1, 0, 1

# cublasStatus_t, from the cuBLAS documentation, chapter "cublasStatus_t" (12.6, 2024).
_BLAS_STATUS = {
    1: "CUBLAS_STATUS_NOT_INITIALIZED",
    3: "CUBLAS_STATUS_ALLOC_FAILED",
    7: "CUBLAS_STATUS_INVALID_VALUE",
    8: "CUBLAS_STATUS_ARCH_MISMATCH",
    11: "CUBLAS_STATUS_MAPPING_ERROR",
    13: "CUBLAS_STATUS_EXECUTION_FAILED",
    14: "CUBLAS_STATUS_INTERNAL_ERROR",
    15: "CUBLAS_STATUS_NOT_SUPPORTED",
    16: "CUBLAS_STATUS_LICENSE_ERROR",
}


class CudaError(Exception):
    """A call that did not return success: which call, its code, and the code's name."""

    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__(f"{call}: {name} ({code})")
        self.call = call
        self.code = code
        self.name = name


class Cuda:
    """The driver API on one device, in one process. All pointers are plain ints."""

    def __init__(self) -> None:
        self._lib = ctypes.CDLL("libcuda.so.1")
        self._call("cuInit", UINT(0))

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._lib, name)(*arguments)
        if code:
            raise CudaError(name, code, self._error_name(code))

    def _error_name(self, code: int) -> str:
        text = ctypes.c_char_p()
        if self._lib.cuGetErrorName(INT(code), ctypes.byref(text)) or not text.value:
            return f"CUDA_ERROR_{code}"
        return text.value.decode("ascii", "replace")

    def driver_version(self) -> int:
        """The newest CUDA the driver can run, as CUDA prints it: 12080 is 12.8."""
        value = INT()
        self._call("cuDriverGetVersion", ctypes.byref(value))
        return int(value.value)

    def devices(self) -> List[Tuple[str, str]]:
        """One (PCI address, name) per device, by ordinal; addresses as ``0000:53:00.0`` in lower case."""
        count = INT()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        found = []
        for ordinal in range(count.value):
            device, text = INT(), ctypes.create_string_buffer(256)
            self._call("cuDeviceGet", ctypes.byref(device), INT(ordinal))
            self._call("cuDeviceGetPCIBusId", text, INT(len(text)), device)
            address = text.value.decode("ascii", "replace").lower()
            self._call("cuDeviceGetName", text, INT(len(text)), device)
            found.append((address, text.value.decode("utf-8", "replace")))
        return found

    def enter(self, ordinal: int) -> None:
        """Make the primary context of a device current. This is where a sick GPU first says no."""
        device, context = INT(), PTR()
        self._call("cuDeviceGet", ctypes.byref(device), INT(ordinal))
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)

    def free_bytes(self) -> int:
        free, total = SIZE(), SIZE()
        self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def allocate(self, size: int) -> int:
        pointer = DEVICE_PTR()
        self._call("cuMemAlloc_v2", ctypes.byref(pointer), SIZE(size))
        return pointer.value

    def free(self, pointer: int) -> None:
        self._call("cuMemFree_v2", DEVICE_PTR(pointer))

    def allocate_host(self, size: int) -> int:
        """Pinned host memory, so that a copy runs at the link's speed."""
        pointer = PTR()
        self._call("cuMemHostAlloc", ctypes.byref(pointer), SIZE(size), UINT(0))
        return int(pointer.value or 0)

    def free_host(self, pointer: int) -> None:
        self._call("cuMemFreeHost", PTR(pointer))

    def stream(self) -> Handle:
        stream = PTR()
        self._call("cuStreamCreate", ctypes.byref(stream), UINT(_STREAM_NON_BLOCKING))
        return stream

    def wait(self, stream: Handle) -> None:
        self._call("cuStreamSynchronize", stream)

    def to_device(self, target: int, source: int, size: int, stream: Handle) -> None:
        self._call("cuMemcpyHtoDAsync_v2", DEVICE_PTR(target), PTR(source), SIZE(size), stream)

    def to_host(self, target: int, source: int, size: int, stream: Handle) -> None:
        self._call("cuMemcpyDtoHAsync_v2", PTR(target), DEVICE_PTR(source), SIZE(size), stream)

    def fill(self, target: int, word: int, count: int, stream: Handle) -> None:
        """Set ``count`` 32-bit words."""
        self._call("cuMemsetD32Async", DEVICE_PTR(target), UINT(word), SIZE(count), stream)

    def event(self) -> Handle:
        event = PTR()
        self._call("cuEventCreate", ctypes.byref(event), UINT(_EVENT_BLOCKING_SYNC))
        return event

    def record(self, event: Handle, stream: Handle) -> None:
        self._call("cuEventRecord", event, stream)

    def elapsed_s(self, begin: Handle, end: Handle) -> float:
        """Seconds on the GPU's own clock between two recorded events; waits for the second."""
        self._call("cuEventSynchronize", end)
        milliseconds = FLOAT()
        self._call("cuEventElapsedTime", ctypes.byref(milliseconds), begin, end)
        return milliseconds.value / 1000.0


class Blas:
    """The cuBLAS calls of a burn-in, on one stream. ``path`` is what :func:`find_cublas` chose."""

    def __init__(self, path: str, stream: Handle) -> None:
        folder, name = os.path.split(path)
        if folder:
            # The wheels and some toolkits keep libcublasLt beside it, where the loader does not look.
            companion = os.path.join(folder, name.replace("libcublas.", "libcublasLt."))
            if os.path.exists(companion):
                ctypes.CDLL(companion, mode=ctypes.RTLD_GLOBAL)
        self._lib = ctypes.CDLL(path)
        self._handle = PTR()
        self._call("cublasCreate_v2", ctypes.byref(self._handle))
        self._call("cublasSetStream_v2", self._handle, stream)

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._lib, name)(*arguments)
        if code:
            raise CudaError(name, code, _BLAS_STATUS.get(code, f"CUBLAS_STATUS_{code}"))

    def version(self) -> int:
        value = INT()
        self._call("cublasGetVersion_v2", self._handle, ctypes.byref(value))
        return value.value

    def gemm_fp16(self, n: int, a: int, b: int, beta: float, c: int) -> None:
        """C = A B + beta C for square column-major matrices: A and B fp16, C and the sums fp32."""
        one, factor = FLOAT(1.0), FLOAT(beta)
        self._call(
            "cublasGemmEx",
            self._handle,
            INT(_OP_N),
            INT(_OP_N),
            INT(n),
            INT(n),
            INT(n),
            ctypes.byref(one),
            DEVICE_PTR(a),
            INT(_R_16F),
            INT(n),
            DEVICE_PTR(b),
            INT(_R_16F),
            INT(n),
            ctypes.byref(factor),
            DEVICE_PTR(c),
            INT(_R_32F),
            INT(n),
            INT(_COMPUTE_32F),
            INT(_GEMM_DEFAULT),
        )

    def sum_of_magnitudes(self, count: int, x: int) -> float:
        """The sum of |x| over ``count`` fp32 values; waits for it. Zero only if every one is zero."""
        result = FLOAT(float("nan"))  # a call that does nothing must not look like a sum of zero
        self._call("cublasSasum_v2", self._handle, INT(count), DEVICE_PTR(x), INT(1), ctypes.byref(result))
        return result.value

    def column_sums(self, n: int, c: int, ones: int, y: int) -> None:
        """y = C^T ones, in fp32."""
        one, zero = FLOAT(1.0), FLOAT(0.0)
        self._call(
            "cublasSgemv_v2",
            self._handle,
            INT(_OP_T),
            INT(n),
            INT(n),
            ctypes.byref(one),
            DEVICE_PTR(c),
            INT(n),
            DEVICE_PTR(ones),
            INT(1),
            ctypes.byref(zero),
            DEVICE_PTR(y),
            INT(1),
        )


def find_cublas(driver_version: int, root: str = "/") -> List[str]:
    """The paths or sonames of cuBLAS worth trying, best first, for a driver that runs CUDA ``driver_version``.

    A cuBLAS newer than the driver's CUDA major version cannot run, so it is left out. The loader's own choice comes
    before the folders, which are read below ``root``.
    """
    candidates = []
    for major in CUBLAS_MAJORS:
        if major > driver_version // 1000:
            continue
        name = f"libcublas.so.{major}"
        candidates.append(name)
        for folder in CUBLAS_FOLDERS:
            candidates.extend(sorted(glob.glob(os.path.join(root, folder, name)), reverse=True))
    return candidates


def open_cublas(candidates: List[str], stream: Handle) -> Tuple[Blas, str]:
    """(Blas, path) of the first candidate that loads. Raises OSError naming every one tried."""
    failures = []
    for path in candidates:
        try:
            return Blas(path, stream), path
        except OSError as error:  # noqa: PERF203 - a handful of candidates
            failures.append(f"{path}: {error}")
    raise OSError("; ".join(failures) or "no cuBLAS that this driver can run")
