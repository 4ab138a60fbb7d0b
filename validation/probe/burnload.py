"""The load one GPU carries in a burn-in, and how its result is proved. Runs in a process of its own.

The matrices hold odd integers from -15 to 15, so that every sum a GEMM of order 8192 forms is an integer below 2^24:
exact in fp32 in any order. Therefore the right answer does not depend on the board, the library or its algorithm, and
it can be computed on the host:

* ``C = A B`` and then ``C = A B - C`` must leave zeros. A batch does this once or many times; one wrong bit in any of
  its GEMMs stays until the end, where the sum of all magnitudes of C must be 0. So every element of every iteration is
  compared, on the GPU, with no kernel of our own. C starts as a poison pattern: a GEMM that never ran is seen.
* An error that comes back the same each time cancels in a batch. So before the first and after the last batch the
  column sums of C are read: all of them are compared across GPUs (``checksum``), and one column in 128, hence one of
  every tile a GEMM kernel works on, is compared with the host's own answer.

Four-bit integers draw somewhat less power than random fp16 values would: this finds wrong and slow GPUs, it is no test
of the cooling at full power.
"""

import ctypes
import hashlib
import itertools
import operator
import os
import struct
import time
import zlib
from array import array
from typing import Any, Callable, Dict, List, Set, Tuple

from validation.probe import cuda

PERIOD = 524287  # elements after which a matrix repeats: a prime, so that no two columns of a matrix are alike
SIZES = (8192, 4096)  # order of the matrices, by what fits: 8 bytes an element, and room for the libraries
RESERVE_BYTES = 256 << 20  # context, kernels and workspace of the library, and the copy buffer
COPY_BYTES = 32 << 20
COPIES = 8
COPY_ROUNDS = 3  # the best counts: a host that was busy for a moment is not a slow link
WARM_UP_COPIES = 4  # an idle link runs at generation 1 and trains up under load
BATCH_S = 0.1
CHECKED_STRIDE = 128  # width of the tiles that GEMM kernels work on
POISON = 0x7F7F7F7F

Message = Dict[str, Any]
Send = Callable[[Message], None]


class Pattern:
    """The repeating content of one matrix: as fp16 bytes for the GPU, as integers for the host's own answer."""

    def __init__(self, seed: int) -> None:
        blocks = (hashlib.sha512(b"%d %d" % (seed, block)).digest() for block in range(PERIOD // 64 + 1))
        raw = b"".join(blocks)[:PERIOD]  # the same for ever, so that the right checksums are constants of the judge
        numbers = [2 * (byte & 15) - 15 for byte in range(256)]
        halves = [struct.pack("<e", number) for number in numbers]
        self.fp16 = bytearray(2 * PERIOD)
        self.fp16[0::2] = raw.translate(bytes(half[0] for half in halves))
        self.fp16[1::2] = raw.translate(bytes(half[1] for half in halves))
        self.numbers = array("b", raw.translate(bytes(number & 255 for number in numbers)))
        self.numbers.extend(self.numbers)  # doubled, so that a column never wraps around


def checked_columns(n: int) -> range:
    """The columns whose sums the host computes too: one in every tile."""
    return range(CHECKED_STRIDE // 2, n, CHECKED_STRIDE)


def expected_sums(n: int, left: Pattern, right: Pattern) -> List[int]:
    """The sums of :func:`checked_columns` of A B: (ones^T A) B, which takes n steps a column instead of n squared."""
    totals = [0]
    totals.extend(itertools.accumulate(left.numbers))
    starts = [(k * n) % PERIOD for k in range(n)]
    row = [totals[start + n] - totals[start] for start in starts]
    return [sum(map(operator.mul, row, right.numbers[starts[j] : starts[j] + n])) for j in checked_columns(n)]


class Plan:
    """What all GPUs of a host share, made once before their processes are started."""

    def __init__(self, seconds: float, wall_s: float, libraries: List[str], root: str) -> None:
        self.seconds = seconds
        self.wall_s = wall_s
        self.libraries = libraries
        self.root = root
        self.left, self.right = Pattern(1), Pattern(2)
        self._sums = {SIZES[0]: expected_sums(SIZES[0], self.left, self.right)}

    def sums(self, n: int) -> List[int]:
        if n not in self._sums:
            self._sums[n] = expected_sums(n, self.left, self.right)
        return self._sums[n]


class LoadError(Exception):
    """The load could not be set up, for a reason that is no error of a CUDA call. ``name`` is ours."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


class Load:
    """One GPU's load. ``setup``, ``copy`` and ``gemm`` each send what they found."""

    def __init__(self, plan: Plan, ordinal: int, address: str, send: Send) -> None:
        self._plan, self._ordinal, self._address, self._send = plan, ordinal, address, send

    def setup(self) -> None:
        """Context, library and matrices. From here on the GPU has its memory and is known to answer."""
        bound = bind_to_node(self._address, self._plan.root)
        self._gpu = gpu = cuda.Cuda()
        gpu.enter(self._ordinal)
        self._stream = gpu.stream()
        self._begin, self._end = gpu.event(), gpu.event()
        free = gpu.free_bytes()
        fitting = [n for n in SIZES if 8 * n * n + RESERVE_BYTES <= free]
        if not fitting:
            need = (8 * SIZES[-1] ** 2 + RESERVE_BYTES) >> 20
            raise LoadError("memory-in-use", f"{free >> 20} MiB of GPU memory free; a burn-in needs {need} MiB")
        self._n = n = fitting[0]
        message: Message = {"n": n, "cpus": bound}
        try:
            self._blas, path = cuda.open_cublas(self._plan.libraries, self._stream)
            message.update({"cublas": self._blas.version(), "library": path})
        except OSError as error:
            message["no_cublas"] = str(error)
        else:
            self._a = self._matrix(self._plan.left)
            self._b = self._matrix(self._plan.right)
            self._c = gpu.allocate(4 * n * n)
            self._ones = gpu.allocate(4 * n)
            self._sums = gpu.allocate(4 * n)
            self._host_sums = gpu.allocate_host(4 * n)
            gpu.fill(self._ones, struct.unpack("<I", struct.pack("<f", 1.0))[0], n, self._stream)
            gpu.wait(self._stream)
        self._send(message)

    def _matrix(self, pattern: Pattern) -> int:
        """An n by n matrix on the GPU, filled with the pattern over and over."""
        gpu, total = self._gpu, 2 * self._n * self._n
        matrix, chunk = gpu.allocate(total), gpu.allocate_host(len(pattern.fp16))
        ctypes.memmove(chunk, bytes(pattern.fp16), len(pattern.fp16))
        for offset in range(0, total, len(pattern.fp16)):
            gpu.to_device(matrix + offset, chunk, min(len(pattern.fp16), total - offset), self._stream)
        gpu.wait(self._stream)
        gpu.free_host(chunk)
        return matrix

    def copy(self) -> None:
        """Bandwidth from and to pinned host memory, the best of some rounds, and whether the bytes came back."""
        gpu, size = self._gpu, COPY_BYTES
        there, back, device = gpu.allocate_host(size), gpu.allocate_host(size), gpu.allocate(size)
        content = bytes(self._plan.left.fp16) * (size // (2 * PERIOD) + 1)
        ctypes.memmove(there, content, size)
        ctypes.memset(back, 0, size)
        h2d = self._rate(lambda: gpu.to_device(device, there, size, self._stream))
        d2h = self._rate(lambda: gpu.to_host(back, device, size, self._stream))
        same = ctypes.string_at(back, size) == content[:size]
        gpu.free_host(there)
        gpu.free_host(back)
        gpu.free(device)
        self._send({"h2d_gbps": h2d, "d2h_gbps": d2h, "bytes": size, "intact": same})

    def _rate(self, transfer: Callable[[], None]) -> float:
        """GB/s (decimal) of the best round; 0 where no time passed on the GPU's clock."""
        best = 0.0
        for _ in range(WARM_UP_COPIES):
            transfer()
        for _ in range(COPY_ROUNDS):
            self._gpu.record(self._begin, self._stream)
            for _ in range(COPIES):
                transfer()
            self._gpu.record(self._end, self._stream)
            elapsed = self._gpu.elapsed_s(self._begin, self._end)
            if elapsed > 0:
                best = max(best, COPIES * COPY_BYTES / elapsed / 1e9)
        return best

    def gemm(self) -> None:
        """GEMMs for ``seconds`` of GPU time, and no longer than ``wall_s``; running totals are sent as they grow."""
        started = time.monotonic()
        result: Message = {"n": self._n, "iterations": 0, "seconds": 0.0, "tflops": 0.0, "compared": 0}
        result.update({"mismatches": 0, "first_mismatch": None, "complete": False})
        result.update(self._prove())
        count = 2
        while not result["untouched"] and result["seconds"] < self._plan.seconds:
            if time.monotonic() - started > self._plan.wall_s:
                break
            elapsed, zeros = self._batch(count)
            result["iterations"] += count
            result["seconds"] += elapsed
            result["compared"] += 1
            if not zeros:
                result["mismatches"] += 1
                result["first_mismatch"] = result["first_mismatch"] or result["iterations"]
            if result["seconds"] > 0:
                result["tflops"] = result["iterations"] * 2.0 * self._n**3 / result["seconds"] / 1e12
            if elapsed > 0:
                count = max(2, min(1000, int(count * BATCH_S / elapsed)) // 2 * 2)
            self._send(dict(result))
        last = self._prove()
        result["untouched"] = result["untouched"] or last["untouched"]
        result["stable"] = last["checksum"] == result["checksum"]
        result["wrong_columns"] = max(result["wrong_columns"], last["wrong_columns"])
        result["complete"] = True
        self._send(result)

    def _batch(self, count: int) -> Tuple[float, bool]:
        """An even number of GEMMs that must leave zeros: (seconds on the GPU, whether they did)."""
        gpu, n = self._gpu, self._n
        gpu.fill(self._c, POISON, n * n, self._stream)
        gpu.record(self._begin, self._stream)
        for i in range(count):
            self._blas.gemm_fp16(n, self._a, self._b, -1.0 if i else 0.0, self._c)
        gpu.record(self._end, self._stream)
        elapsed = gpu.elapsed_s(self._begin, self._end)
        return elapsed, self._blas.sum_of_magnitudes(n * n, self._c) == 0.0

    def _prove(self) -> Message:
        """One GEMM, and its column sums against the host's own."""
        gpu, n = self._gpu, self._n
        gpu.fill(self._c, POISON, n * n, self._stream)
        gpu.fill(self._sums, POISON, n, self._stream)
        self._blas.gemm_fp16(n, self._a, self._b, 0.0, self._c)
        self._blas.column_sums(n, self._c, self._ones, self._sums)
        gpu.to_host(self._host_sums, self._sums, 4 * n, self._stream)
        gpu.wait(self._stream)
        sums = ctypes.string_at(self._host_sums, 4 * n)
        gpu.to_host(self._host_sums, self._c, 4, self._stream)
        gpu.wait(self._stream)
        first = struct.unpack("<I", ctypes.string_at(self._host_sums, 4))[0]
        values, truth = struct.unpack(f"<{n}f", sums), self._plan.sums(n)
        wrong = sum(values[j] != want for j, want in zip(checked_columns(n), truth))  # noqa: B905 - no such argument in 3.6
        return {
            "untouched": first == POISON,
            "checksum": f"{zlib.crc32(sums) & 0xFFFFFFFF:08x}",
            "checked_columns": len(truth),
            "wrong_columns": wrong,
        }


def bind_to_node(address: str, root: str) -> str:
    """Keep this process to the CPUs near the GPU, so that pinned memory lies there; says to which, or why not."""
    try:
        with open(os.path.join(root, f"sys/bus/pci/devices/{address}/local_cpulist")) as file:
            text = file.read().strip()
        cpus: Set[int] = set()
        for part in text.split(","):
            low, _, high = part.partition("-")
            cpus.update(range(int(low), int(high or low) + 1))
        os.sched_setaffinity(0, cpus)
    except (OSError, ValueError) as error:
        return f"not bound: {error}"
    return text
