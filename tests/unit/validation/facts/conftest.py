"""Short outputs of the tools, written for these tests, in the shape of current drivers."""

from __future__ import annotations

import pytest

GPUS = 4


def pci(index: int) -> str:
    return f"00000000:{0x53 + index * 0x11:02X}:00.0"


@pytest.fixture
def topo_text() -> str:
    """``topo -m`` of 4 GPUs and 2 NICs, tabs, underlined header, legend."""
    head = "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    rows = [
        f"GPU{one}\t" + "\t".join(" X " if one == two else "NV18" for two in range(GPUS))
        + f"\tPXB\tSYS\t{'0-47' if one < 2 else '48-95'}\t{one // 2}\t\tN/A\n"
        for one in range(GPUS)
    ]  # fmt: skip
    nics = ["NIC0\tPXB\tPXB\tPXB\tPXB\t X \tSYS\t\t\t\t\n", "NIC1\tSYS\tSYS\tSYS\tSYS\tSYS\t X \t\t\t\t\n"]
    legend = "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n"
    return head + "".join(rows) + "".join(nics) + legend + "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n"


@pytest.fixture
def p2p_text() -> str:
    """``topo -p2p r`` of 4 GPUs."""
    head = "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\x1b[0m\n"
    rows = [f" GPU{a}\t" + "\t".join("X" if a == b else "OK" for b in range(GPUS)) + "\n" for a in range(GPUS)]
    return head + "".join(rows) + "\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n  NS   = Not supported\n"


@pytest.fixture
def nvlink_text() -> str:
    """``nvlink -s`` of 2 H100 with all 18 links up."""
    return "".join(
        f"GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: GPU-{gpu:08d})\n"
        + "".join(f"\t Link {link}: 26.562 GB/s\n" for link in range(18))
        for gpu in range(2)
    )


@pytest.fixture
def xml_text() -> str:
    """``nvidia-smi -q -x`` of 2 GPUs, the fields Kiln reads."""
    gpus = "".join(
        f"""\t<gpu id="{pci(index)}">
\t\t<product_name>NVIDIA H100 80GB HBM3</product_name>
\t\t<product_architecture>Hopper</product_architecture>
\t\t<persistence_mode>Enabled</persistence_mode>
\t\t<mig_mode>
\t\t\t<current_mig>Disabled</current_mig>
\t\t\t<pending_mig>Disabled</pending_mig>
\t\t</mig_mode>
\t\t<serial>165000000000{index}</serial>
\t\t<uuid>GPU-{index:08d}</uuid>
\t\t<vbios_version>96.00.99.00.01</vbios_version>
\t\t<gpu_recovery_action>None</gpu_recovery_action>
\t\t<pci>
\t\t\t<pci_bus_id>{pci(index)}</pci_bus_id>
\t\t\t<pci_gpu_link_info>
\t\t\t\t<link_widths>
\t\t\t\t\t<max_link_width>16x</max_link_width>
\t\t\t\t\t<current_link_width>16x</current_link_width>
\t\t\t\t</link_widths>
\t\t\t</pci_gpu_link_info>
\t\t\t<replay_counter>0</replay_counter>
\t\t</pci>
\t\t<clocks_event_reasons>
\t\t\t<clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>
\t\t\t<clocks_event_reason_hw_slowdown>Not Active</clocks_event_reason_hw_slowdown>
\t\t</clocks_event_reasons>
\t\t<fb_memory_usage>
\t\t\t<total>81559 MiB</total>
\t\t\t<used>0 MiB</used>
\t\t</fb_memory_usage>
\t\t<ecc_mode>
\t\t\t<current_ecc>Enabled</current_ecc>
\t\t</ecc_mode>
\t\t<ecc_errors>
\t\t\t<volatile>
\t\t\t\t<sram_correctable>0</sram_correctable>
\t\t\t\t<sram_uncorrectable_parity>0</sram_uncorrectable_parity>
\t\t\t\t<sram_uncorrectable_secded>0</sram_uncorrectable_secded>
\t\t\t\t<dram_correctable>0</dram_correctable>
\t\t\t\t<dram_uncorrectable>0</dram_uncorrectable>
\t\t\t</volatile>
\t\t</ecc_errors>
\t\t<remapped_rows>
\t\t\t<remapped_row_corr>0</remapped_row_corr>
\t\t\t<remapped_row_unc>0</remapped_row_unc>
\t\t\t<remapped_row_pending>No</remapped_row_pending>
\t\t\t<remapped_row_failure>No</remapped_row_failure>
\t\t</remapped_rows>
\t\t<temperature>
\t\t\t<gpu_temp>29 C</gpu_temp>
\t\t\t<gpu_temp_tlimit>57 C</gpu_temp_tlimit>
\t\t</temperature>
\t\t<processes>
\t\t</processes>
\t</gpu>
"""
        for index in range(2)
    )
    return (
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">\n<nvidia_smi_log>\n'
        "\t<driver_version>580.105.08</driver_version>\n\t<cuda_version>13.0</cuda_version>\n"
        f"\t<attached_gpus>2</attached_gpus>\n{gpus}</nvidia_smi_log>\n"
    )
