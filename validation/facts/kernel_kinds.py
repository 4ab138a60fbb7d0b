"""What a line of the kernel log is about: one kind a line, told by its words, apart from the errors with a number.

Words of Linux 5.4 to 6.12, of NVIDIA's open kernel modules 515 to 595, of amzn-drivers (ENA, EFA) and of mlx5_core,
read in their sources and in logs of real machines (2026-09).
"""

from __future__ import annotations

import re

# Kinds that only tell of a driver that did not get hold of its GPU: past once the driver is loaded again.
UNTIL_RELOADED = ("api-mismatch", "driver-conflict", "nouveau", "module-rejected", "gpu-probe")
_NIC = r"(?:mlx5_core|mlx5_ib|infiniband mlx5_\d+)\b"
_EFA = r"(?:efa\b|infiniband (?:rdmap\w+|efa_\d+):)"

# By kind: patterns, each with a part that is there whenever it matches, in lower case. A search for a part is fast, and
# most lines have none. The first kind that has a pattern in the line names it; the Xid shapes are read before these.
_PATTERNS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "fallen-off-bus",
        (
            ("off the bus", r"\b(?:fallen|fell) off the bus\b"),
            ("gpu is not responding", r"GPU is not responding to commands"),
            ("device inaccessible", r"^nvidia\b.*\bdevice inaccessible\b"),
        ),
    ),
    ("api-mismatch", (("api mismatch", r"NVRM: API mismatch"),)),
    (
        "driver-conflict",
        (
            ("is not supported by", r"NVRM: .*is not supported by (?:the|open)"),
            ("requires use of", r"NVRM: .*requires use of the NVIDIA open"),
            ("is already bound to", r"NVRM: .*is already bound to"),
            ("probe routine was not called", r"NVIDIA probe routine was not called for"),
            ("nvrm: no", r"NVRM: No(?:ne of the)? NVIDIA (?:devices|GPU|graphics adapter)"),
        ),
    ),
    (
        "gsp-timeout",
        (
            ("waiting for rpc", r"NVRM:.*waiting for RPC response from GPU"),
            ("rate limiting", r"NVRM:.*Rate limiting GSP RPC error"),
            ("heartbeat timed out", r"NVRM:.*heartbeat timed out"),
        ),
    ),
    (
        "gpu-init",
        (
            ("rminitadapter", r"RmInitAdapter failed"),
            ("rm_init_adapter", r"rm_init_adapter failed"),
            ("cannot initialize gsp", r"NVRM: .*Cannot initialize GSP firmware"),
            ("this pci i/o region", r"NVRM: This PCI I/O region assigned to your NVIDIA device is invalid"),
        ),
    ),
    (
        "gpu-probe",
        (
            ("probe of", r"^nvidia: probe of \S+ failed"),
            ("probe with driver nvidia", r"\bprobe with driver nvidia failed"),
            ("probe routine failed", r"NVIDIA probe routine failed for"),
        ),
    ),
    (
        "module-rejected",
        (
            ("is rejected", r"Loading of (?:unsigned )?module (?:with unavailable key )?is rejected"),
            ("unsigned module", r"unsigned module loading is restricted"),
            ("could not insert", r"could not insert '\S+': (?:Key was rejected|Required key not)"),
        ),
    ),
    ("nouveau", (("nouveau", r"^nouveau [0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d: "),)),
    (
        "nic-down",
        (
            ("health issue", rf"^{_NIC}.*Health issue observed, (?!High temp)"),
            ("health compromised", rf"^{_NIC}.*health compromised"),
            ("fatal error", rf"^{_NIC}.*\bFatal error \d"),
            ("recovery flow aborted", rf"^{_NIC}.*recovery flow aborted"),
            ("error state", rf"^{_NIC}.*in(?:ternal)? error state"),
            ("send any completion", rf"^{_EFA}.*didn't send any completion"),
            ("(polling) timeout", rf"^{_EFA}.*\(polling\) timeout"),
            ("admin queue is closed", rf"^{_EFA}.*Admin queue is closed"),
            ("reset indication", rf"^{_EFA}.*Reset indication didn't"),
            ("device isn't ready", rf"^{_EFA}.*Device isn't ready"),
        ),
    ),
    (
        "nic-trouble",
        (
            ("netdev watchdog", r"NETDEV WATCHDOG"),
            ("transmit queue", r"transmit queue \d+ timed out"),
            ("completed on time", r"^ena\b.*wasn't completed on time"),
            ("lost tx", r"^ena\b.*lost tx completions"),
            ("watchdog timeout", r"^ena\b.*watchdog timeout"),
            ("trigger reset", r"^ena\b.*Trigger reset is on"),
            ("insufficient power", rf"^{_NIC}.*insufficient power"),
            ("high temperature", rf"^{_NIC}.*High temperature"),
            ("port module event", rf"^{_NIC}.*Port module event.*error"),
        ),
    ),
    ("pcie-limited", (("available pcie bandwidth", r"available PCIe bandwidth, limited by"),)),
    ("pcie-full", (("available pcie bandwidth", r"available PCIe bandwidth \("),)),
    (
        "aer",
        (
            ("aer:", r"\bAER:.*(?:\berrors?\b|recovery failed)"),
            ("pcie bus error", r"PCIe Bus Error: severity="),
            ("can't recover", r"\bAER: can't recover"),
        ),
    ),
    (
        "oom",
        (
            ("out of memory", r"\bOut of memory: Kill"),
            ("oom-kill:", r"\boom-kill:"),
            ("oom-killer", r"invoked oom-killer"),
        ),
    ),
    (
        "read-only-fs",
        (
            ("read-only", r"Remounting filesystem read-only"),
            ("shut down", r"Filesystem has been shut down"),
            ("forced read", r"\bforced read-?only"),
            ("xfs_do_force_shutdown", r"xfs_do_force_shutdown"),
        ),
    ),
    (
        "fs-error",
        (
            ("ext4-fs error", r"^EXT4-fs error"),
            ("xfs (", r"^XFS \(.*(?:corruption|log mount/recovery failed|run xfs_repair)"),
            ("btrfs", r"^BTRFS (?:error|critical)"),
        ),
    ),
    (
        "soft-lockup",
        (
            ("soft lockup", r"soft lockup - CPU"),
            ("hard lockup", r"hard LOCKUP on cpu"),
            ("self-detected stall", r"self-detected stall"),
            ("stall", r"\brcu\w*:? .*detected (?:expedited )?stalls?\b"),
        ),
    ),
    ("hung-task", (("blocked for more than", r"blocked for more than \d+ seconds"),)),
    (
        "oops",
        (
            ("oops: ", r"^(?!traps: ).*\bOops: [0-9a-f]"),
            ("bug: ", r"^BUG: (?:unable to handle|kernel NULL)"),
            ("general protection fault", r"^general protection fault"),
            ("kernel bug at", r"^kernel BUG at"),
            ("kernel panic", r"Kernel panic - not syncing"),
            ("unable to handle kernel", r"^Unable to handle kernel "),
            ("internal error: ", r"^Internal error: "),
        ),
    ),
    (
        "machine-check",
        (
            ("edac", r"^EDAC (?!.*Giving out).*\b(?:CE|UE)\b"),
            ("[hardware error]", r"\[Hardware Error\]"),
            ("machine check exception", r"\bMachine Check Exception\b"),
            ("memory failure", r"^Memory failure: 0x"),
        ),
    ),
    (
        "hot",
        (
            ("above threshold", r"temperature above threshold"),
            ("critical temperature", r"critical temperature reached"),
        ),
    ),
    ("slow-io", (("completion polled", r"nvme\S*: I/O .*timeout, completion polled"),)),
    (
        "io-error",
        (
            ("i/o error, dev", r"\bI/O error, dev "),
            ("i/o error", r"^EXT4-fs warning.*\bI/O error \d+ (?:reading|writing)"),
            ("buffer i/o error", r"Buffer I/O error"),
            ("error, dev", r"critical (?:medium|target) error, dev"),
            ("timeout", r"nvme\S*: I/O .*timeout"),
            ("controller is down", r"nvme.*controller is down"),
            ("aborting reset", r"nvme.*Device not ready; aborting"),
            ("removing after probe", r"nvme.*Removing after probe failure"),
        ),
    ),
    ("pcie-link-down", (("pciehp: ", r"\bpciehp: Slot\(\S+\): (?:Link Down|Card not present)"),)),
)
_KINDS = tuple((kind, part, re.compile(pattern, re.I)) for kind, patterns in _PATTERNS for part, pattern in patterns)
_SIGNED = re.compile(
    r"^(?:NVRM|nvidia(?:[-_]\w+)?|\[drm:nv_\w+|mlx5_core|mlx5_ib|infiniband|nvme|efa|ena|nvswitch|XFS|EXT4-fs)\b[^:]*:"
    r"|^\[drm:nv_",
    re.I,
)
_TROUBLE = re.compile(
    r"\b(?:error|fail(?:ed|ure)?|timed? ?out|fault|assert\w*|unable|fatal|corrupt\w*|panic|can't mount|No done)\b", re.I
)
# Lines that hold a word of trouble and mean none: they stand in the logs of machines that work.
_HARMLESS = re.compile(
    r"error recovery|module verification failed|error handling enabled|tainting kernel|default_error|"
    r"GPU Board Serial|RPC buffer|RPC history|RPC event history|Shutdown timeout set to \d+ seconds|"
    # The USB-C port of workstation boards, and a laptop's firmware that knows no power modes.
    r"^nvidia-gpu \S+: i2c timeout|from SBIOS\b|^EXT4-fs warning(?!.*\bI/O error)",
    re.I,
)
_HARMLESS_DRIVES = re.compile(
    # Drives without a medium, which a virtual machine has for show, and files that stand in for a drive.
    r"\bI/O error, dev (?:fd|sr|loop|nbd)\d+,|Buffer I/O error on dev(?:ice)? (?:fd|sr|loop|nbd)\d+,|"
    # To forget blocks, or to write zeros over them, is what a drive may refuse.
    r"error, dev \S+, sector \d+ op 0x[39]:",
    re.I,
)
_UNCORRECTED = re.compile(
    r"uncorrect|severity=.*fatal|recovery failed|\bUE\b|Machine Check Exception|^Memory failure: 0x|"
    r"event severity: (?:fatal|recoverable)|context corrupt|Fatal machine check|\bnvidia\b.*(?:rejected|key)",
    re.I,
)
_HAS_GRADES = ("aer", "machine-check", "module-rejected")
_DEVICE = re.compile(
    r"\berror(?:,| on) dev(?:ice)? (?P<dev>[a-z][\w-]*)|^nvme (?P<nvme>nvme\d+)|^(?P<disk>nvme\d+n\d+): |"
    r"^(?:XFS|EXT4-fs|BTRFS)[^(]*\((?:device )?(?P<fs>[\w-]+)\)|^infiniband (?P<ib>\w+):|^EDAC \w* ?(?P<mc>MC\d+):|"
    r"NETDEV WATCHDOG: (?P<netdev>\w+)"
)
# What a message begins with that only the kernel says, for those of its kinds that are told by their beginning.
BEGINS = (
    r"(?:NVRM: |nvidia: |nvidia-(?:uvm|modeset|nvlink|nvswitch\d*|drm)\b|\[drm|(?:NMI )?watchdog: |mce: |EDAC |BERT: |"
    r"(?:\{\d+\})?\[Hardware Error\]|Memory failure: |EXT4-fs |XFS \(|BTRFS |BUG: |Oops: |rcu: |INFO: (?:task|rcu)|"
    r"Kernel panic - |general protection fault|kernel BUG at|Unable to handle kernel|Internal error: |Out of memory: |"
    r"oom-kill:|blk_update_request: |I/O error, dev|Buffer I/O error|critical \w+ error, dev|NETDEV WATCHDOG|"
    r"Loading of |infiniband \w+: |nvme nvme\d+: |nvme\d+\w*: |"
    r"[\w.-]{1,32} [0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7][: ])"
)


def names() -> tuple[str, ...]:
    """Every kind that has words of its own."""
    return tuple(kind for kind, _ in _PATTERNS)


def kind_of(message: str) -> str | None:
    """The kind, ``driver-unknown`` for a line of trouble from a driver that matters here, None for a harmless one."""
    lowered = message.lower()
    kind = next((kind for kind, part, pattern in _KINDS if part in lowered and pattern.search(message)), None)
    if kind is not None:  # a word that is harmless alone takes nothing from a fault that is known
        return None if kind == "io-error" and _HARMLESS_DRIVES.search(message) else kind
    if _SIGNED.match(message) and _TROUBLE.search(message) and not is_harmless(message):
        return "driver-unknown"
    return None


def is_harmless(message: str) -> bool:
    """Whether the line holds a word of trouble and is known to mean none."""
    return _HARMLESS.search(message) is not None or _HARMLESS_DRIVES.search(message) is not None


def is_grave(kind: str, message: str) -> bool | None:
    """Whether the line says that it is not the slight sort of its kind; None for a kind that has one sort."""
    return bool(_UNCORRECTED.search(message)) if kind in _HAS_GRADES else None


def device_of(message: str) -> str | None:
    """The disk, filesystem, network card or memory controller that a line names, where it has no PCI address."""
    match = _DEVICE.search(message)
    return next((name for name in match.groups() if name), None) if match else None
