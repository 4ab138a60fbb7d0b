"""What ``lspci`` means alone: rows with the words of each finding, from listings as they are printed."""

from __future__ import annotations

import pytest

from validation.explain import explain

TREE = (  # one switch: a GPU and a network card below two of its ports, another GPU below a root port of its own
    "15:01.0 PCI bridge: Some Corp. Root Port (rev 10) (prog-if 00 [Normal decode])\n"
    "\tBus: primary=15, secondary=16, subordinate=1a, sec-latency=0\n"
    "\tCapabilities: [40] Express (v2) Root Port (Slot-), MSI 00\n"
    "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n"
    "16:00.0 PCI bridge: Some Corp. Switch (rev b0) (prog-if 00 [Normal decode])\n"
    "\tBus: primary=16, secondary=17, subordinate=1a, sec-latency=0\n"
    "\tCapabilities: [68] Express (v2) Upstream Port, MSI 00\n"
    "17:00.0 PCI bridge: Some Corp. Switch (rev b0) (prog-if 00 [Normal decode])\n"
    "\tBus: primary=17, secondary=18, subordinate=18, sec-latency=0\n"
    "\tCapabilities: [68] Express (v2) Downstream Port (Slot+), MSI 00\n"
    "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-\n"
    "17:01.0 PCI bridge: Some Corp. Switch (rev b0) (prog-if 00 [Normal decode])\n"
    "\tBus: primary=17, secondary=19, subordinate=19, sec-latency=0\n"
    "\tCapabilities: [68] Express (v2) Downstream Port (Slot+), MSI 00\n"
    "\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-\n"
    "18:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n"
    "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n"
    "\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x16\n"
    "\tKernel driver in use: nvidia\n"
    "19:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n"
    "2a:01.0 PCI bridge: Some Corp. Root Port (rev 10) (prog-if 00 [Normal decode])\n"
    "\tBus: primary=2a, secondary=2b, subordinate=2b, sec-latency=0\n"
    "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n"
    "2b:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n"
)
REDIRECTING = TREE.replace("SrcValid+ TransBlk- ReqRedir-", "SrcValid+ TransBlk- ReqRedir+")
ALONE = "3b:00.0 3D controller: NVIDIA Corporation L4 (rev a1)\n"
GUEST = "00:04.0 Ethernet controller: Red Hat, Inc. Virtio network device\n"
LINK = "\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16\n\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x{width}\n"
LOW = "WARN 0000:3b:00.0 tool.lspci: PCIe link is x8 of x16; by design where every GPU of its kind has that"
ROWS: list[tuple[str, list[str]]] = [
    (
        TREE,
        [
            "PASS host tool.lspci: 2 NVIDIA GPUs on the PCI bus, links x16 (1)",
            "PASS host tool.acs: no switch redirects between the 1 pair of devices below one",
        ],
    ),
    (
        REDIRECTING,
        [
            "PASS host tool.lspci: 2 NVIDIA GPUs",
            (
                "WARN host tool.acs: 1 bridge (0000:17:00.0) sends up to the CPU what 1 pair of devices say to each "
                "other: 0000:18:00.0, 0000:19:00.0"
            ),
        ],
    ),
    (
        TREE[TREE.index("2a:01.0") :],  # ACS of a root port alone: nothing to warn of
        ["PASS host tool.lspci: 1 NVIDIA GPU", "NOT_APPLICABLE host tool.acs: no GPU has a peer below the same PCIe"],
    ),
    (
        REDIRECTING + GUEST,
        ["PASS host tool.lspci: 2 NVIDIA GPUs", "NOT_APPLICABLE host tool.acs: a virtual machine"],
    ),
    (
        TREE.replace("\t\tACSCtl:\tSrcValid- TransBlk-", "\tCapabilities: <access denied>\n\t\t"),
        ["PASS host tool.lspci: 2 NVIDIA GPUs", "UNKNOWN host tool.acs: ACS of 0000:17:01.0 cannot be read without"],
    ),
    (ALONE, ["PASS host tool.lspci: 1 NVIDIA GPU on the PCI bus"]),
    (GUEST, ["NOT_APPLICABLE host tool.lspci: no NVIDIA GPU among 1 PCI function"]),
    (ALONE + LINK.format(width=16), ["PASS host tool.lspci: 1 NVIDIA GPU on the PCI bus, links x16 (1)"]),
    (ALONE + LINK.format(width=8), [LOW]),
    (
        f"{ALONE}\tCapabilities: <access denied>\n\tKernel driver in use: nvidia\n",
        ["UNKNOWN 0000:3b:00.0 tool.lspci: its link: could not look (access denied"],
    ),
    (
        f"{ALONE}\tKernel driver in use: nouveau\n",
        ["FAIL 0000:3b:00.0 tool.lspci: nouveau holds it, so NVIDIA's driver cannot"],
    ),
    (
        f"{ALONE}\tKernel driver in use: vfio-pci\n",
        ["WARN 0000:3b:00.0 tool.lspci: vfio-pci holds it: it is set aside for a virtual machine"],
    ),
    (ALONE.replace("(rev a1)", "(rev ff)"), ["FAIL 0000:3b:00.0 gpu.pci_bus: is on the bus, but its configuration"]),
    (
        "\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+\n\tACSCtl:\tSrcValid+ TransBlk- ReqRedir- CmpltRedir-\n",
        ["WARN host tool.acs_lines: 1 of 2 functions redirect (ReqRedir+ or CmpltRedir+)"],
    ),
    (
        "\tACSCtl:\tSrcValid+ TransBlk- ReqRedir- CmpltRedir-\n",
        ["PASS host tool.acs_lines: none of 1 function redirects"],
    ),
]


@pytest.mark.parametrize(("text", "wanted"), ROWS)
def test_a_listing_means_what_it_says(text: str, wanted: list[str]) -> None:
    findings = [one for one in explain(text).findings if one.check.startswith(("tool.", "gpu."))]
    found = [f"{one.verdict.value} {one.subject} {one.check}: {one.message}" for one in findings]
    assert len(found) == len(wanted), found
    for said, start in zip(found, wanted, strict=True):
        assert said.startswith(start), said


@pytest.mark.parametrize(
    ("profile", "width", "verdict"),
    [("g6.xlarge", 8, "PASS"), ("p5.48xlarge", 16, "PASS"), ("p5.48xlarge", 8, "FAIL"), ("g6.xlarge", 4, "FAIL")],
)
def test_with_a_profile_the_machines_own_width_is_the_measure(profile: str, width: int, verdict: str) -> None:
    (finding,) = [
        one for one in explain(ALONE + LINK.format(width=width), profile=profile).findings if one.check == "tool.lspci"
    ]
    assert finding.verdict.value == verdict
