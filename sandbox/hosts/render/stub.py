"""``machine.txt``: the description that the stub libraries answer from. Keys: ``sandbox/native/nvml.c``, ``cuda.c``."""

from __future__ import annotations

from sandbox.hosts.render.links import cpus_of, nodes_of, p2p_status
from sandbox.hosts.state import NVML_GPU_IS_LOST, NVML_LIBRARY_MISMATCH, Gpu, Host, peers_of_links

MIB = 1024 * 1024
ARCHITECTURES = {"Volta": 5, "Turing": 6, "Ampere": 7, "Ada Lovelace": 8, "Hopper": 9}
BRANDS = {"Tesla": 2, "NVIDIA": 14}
ANCESTORS = {"PIX": 10, "PXB": 20, "PHB": 30, "NODE": 40, "SYS": 50}
P2P = {"OK": 0, "CNS": 1, "TNS": 3, "NS": 5}
RECOVERY = {"None": 0, "Reset": 1, "Reboot": 2, "Drain and Reset": 4}
FABRIC_COMPLETED = 3
REMOTE_GPU, REMOTE_SWITCH = 0, 2

Keys = dict[str, object]


def _identity(index: int, gpu: Gpu, host: Host) -> Keys:
    board = gpu.board
    keys: Keys = {
        "name": gpu.name,
        "uuid": gpu.uuid,
        "serial": gpu.serial,
        "index": index,
        "minor": index,
        "module_id": gpu.module,
        "board_id": int(gpu.address[5:7] + gpu.address[8:10], 16),
        "part": board.board_part,
        "gpu_part": board.gpu_part,
        "inforom.image": board.inforom.image,
        "inforom.oem": board.inforom.oem,
        "inforom.ecc": board.inforom.ecc,
        "vbios": board.vbios,
        "brand": BRANDS[board.brand],
        "arch": ARCHITECTURES[board.architecture],
        "compute": board.compute_capability,
        "pci.bus_id": gpu.bus_id,
        "pci.device_id": f"0x{gpu.device_id}10de",
        "pci.subsystem": f"0x{board.subsystem_id}10de",
        "virtualization": 1,
        "persistence": 1,
        "compute_mode": 0,
        "pstate": board.pstate,
        "cpus": cpus_of(host, gpu),
        "nodes": nodes_of(host, gpu),
        "recovery": RECOVERY[gpu.recovery],
        "throttle": gpu.throttle,
    }
    if board.architecture != "Volta":  # Volta has no GSP
        keys["gsp"] = host.driver
    if board.mig:
        keys.update({"mig.current": int(gpu.mig), "mig.pending": int(gpu.mig)})
        keys.update({"mig.max": board.mig.most, "mig.count": len(gpu.instances)})
    return keys


def _instances(gpu: Gpu) -> Keys:
    """The MIG instances, each with the ids that the driver gives to equal ones made in one go: from 7 on."""
    keys: Keys = {}
    profile = gpu.board.mig
    for place, uuid in enumerate(gpu.instances):
        if profile is None:
            continue
        instance: Keys = {"index": place, "uuid": uuid, "name": f"{gpu.name} MIG {profile.name}"}
        instance.update({"gi": 7 + place, "ci": 0, "slices": 1, "sms": profile.sms, "copy": 1, "decoders": 1})
        instance.update({"jpegs": 1, "encoders": 0, "ofas": 0, "ecc.volatile.uncorrected.sram": 0})
        instance.update({"memory.total": profile.memory_mib * MIB, "memory.reserved": 0, "memory.used": 0})
        instance["bar1.total"] = profile.bar1_mib * MIB
        keys.update({f"mig.{place}.{name}": value for name, value in instance.items()})
    return keys


def _memory(gpu: Gpu) -> Keys:
    errors, repairs = gpu.errors, gpu.repairs
    keys: Keys = {
        "memory.total": gpu.memory_mib * MIB,
        "memory.reserved": gpu.board.memory.reserved_mib * MIB,
        "memory.used": 0,
        "bar1.total": gpu.board.memory.bar1_mib * MIB,
        "ecc.current": 1,
        "ecc.pending": 1,
    }
    for name in ("volatile_corrected", "volatile_uncorrected", "aggregate_corrected", "aggregate_uncorrected"):
        key = f"ecc.{name.replace('_', '.')}"
        keys.update({key: getattr(errors, name), f"{key}.dram": getattr(errors, name), f"{key}.sram": 0})
    if gpu.board.sram_counters == "split":
        keys["ecc.sram_threshold"] = 0
        keys.update({"repair.channel": int(repairs.channel_pending), "repair.tpc": int(repairs.tpc_pending)})
    keys["inforom.corrupt"] = int(gpu.inforom_corrupt)
    pending, failure = int(repairs.pending), int(repairs.failure)
    if gpu.mig:
        pass  # with MIG on, the driver tells of no repair: a capture of driver 590 has N/A everywhere
    elif gpu.board.repair.kind == "remapped-rows":
        keys.update({"remap.corrected": repairs.corrected, "remap.uncorrected": repairs.uncorrected})
        keys.update({"remap.pending": pending, "remap.failure": failure, "remap.banks": gpu.board.repair.banks})
    else:
        keys.update({"retired.single": repairs.corrected, "retired.double": repairs.uncorrected})
        keys["retired.pending"] = pending
    return keys


def _physics(gpu: Gpu, width: int) -> Keys:
    board = gpu.board
    keys: Keys = {"temperature.gpu": gpu.temperature_c}
    if board.temperature.memory_c is not None:
        keys["temperature.memory"] = board.temperature.memory_c
    if board.temperature.tlimit:
        limit = board.temperature.tlimit
        keys["temperature.margin"] = limit.now - gpu.temperature_c + board.temperature.gpu_c
        keys.update({"tlimit.shutdown": limit.shutdown, "tlimit.slowdown": limit.slowdown, "tlimit.gpu": limit.gpu_max})
        keys.update({"tlimit.memory": limit.memory_max} if limit.memory_max is not None else {})
    if board.temperature.thresholds:
        threshold = board.temperature.thresholds
        keys.update({"threshold.0": threshold.shutdown, "threshold.1": threshold.slowdown})
        keys.update({"threshold.2": threshold.memory_max} if threshold.memory_max is not None else {})
        keys["threshold.3"] = threshold.gpu_max
    power = board.power
    keys.update({"power.usage": round(power.idle_w * 1000), "power.limit": power.limit_w * 1000})
    keys.update(
        {"power.default": power.limit_w * 1000, "power.min": power.min_w * 1000, "power.max": power.max_w * 1000}
    )
    keys.update({"power.average": round(power.idle_w * 1000)} if power.average else {})
    for suffix, clocks in (("", board.clocks.now), (".max", board.clocks.max)):
        keys.update({f"clock.graphics{suffix}": clocks.graphics, f"clock.sm{suffix}": clocks.graphics})
        keys.update({f"clock.memory{suffix}": clocks.memory, f"clock.video{suffix}": clocks.video})
    keys.update({"pcie.gen": board.pcie.idle_generation, "pcie.gen.max": board.pcie.generation})
    keys.update({"pcie.width": width, "pcie.width.max": board.pcie.width, "pcie.replay": 0})
    return keys


def _links(gpu: Gpu, host: Host) -> Keys:
    keys: Keys = {}
    for other_index, other in enumerate(host.gpus):
        if other is gpu:
            continue
        linked = host.pair(gpu, other).startswith("NV")
        keys[f"topology.{other_index}"] = ANCESTORS[host.pcie_pair(gpu, other)]
        keys[f"p2p.{other_index}"] = P2P[p2p_status(host, gpu, other)]
        keys[f"p2p_nvlink.{other_index}"] = P2P["OK" if linked else "NS"]
    if gpu.board.nvlink and not gpu.mig:
        nvlink = gpu.board.nvlink
        keys.update({"nvlink.count": nvlink.count, "nvlink.version": nvlink.version})
        keys["nvlink.rate_mbps"] = int(float(nvlink.rate) * 1000)
        ends = {item.slot: item for item in host.gpus}
        for link, slot in enumerate(peers_of_links(host.machine, gpu.slot)):
            peer = ends.get(slot) if slot is not None else None
            keys[f"nvlink.{link}.active"] = int(gpu.links[link])
            keys[f"nvlink.{link}.remote_type"] = REMOTE_SWITCH if slot is None else REMOTE_GPU
            if peer:
                keys[f"nvlink.{link}.remote"] = peer.bus_id
    if host.machine.fabric:
        keys.update({"fabric.state": FABRIC_COMPLETED, "fabric.status": 0, "fabric.clique": 0, "fabric.health": 0})
        keys.update({"fabric.uuid": "00000000-0000-0000-0000-000000000000", "fabric.summary": 0})
    return keys


def render(host: Host) -> str:
    """The whole of ``machine.txt``. A GPU that fell off the bus has its error and its address, nothing else."""
    major, minor = host.cuda_driver.split(".")
    lines = [
        "# What the stub libraries answer from. Written anew with every fault.",
        f"driver.version={host.driver}",
        f"nvml.version={major}.{host.library}",
        f"nvml.init={NVML_LIBRARY_MISMATCH if host.mismatch else 0}",
        f"nvml.hang={int(host.smi_hangs)}",
        f"cuda.driver={int(major) * 1000 + int(minor) * 10}",
        f"gpu.count={len(host.gpus)}",
    ]
    for index, gpu in enumerate(host.gpus):
        if gpu.lost:
            lines += [f"gpu.{index}.error={NVML_GPU_IS_LOST}", f"gpu.{index}.pci.bus_id={gpu.bus_id}"]
            continue
        keys = _identity(index, gpu, host)
        for more in (_instances(gpu), _memory(gpu), _physics(gpu, host.machine.pcie_width), _links(gpu, host)):
            keys.update(more)
        keys.update({f"burnin.{name}": value for name, value in gpu.burn_in.items()})
        lines += [f"gpu.{index}.{name}={value}" for name, value in keys.items()]
    return "\n".join(lines) + "\n"
