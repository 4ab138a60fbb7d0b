"""RDMA ports from every tool that lists them: one entry a port, and a text that is cut short is refused."""

from __future__ import annotations

import pytest

from profiles.errors import ParseError
from validation.facts import rdma, rdma_link
from validation.facts.missing import ABSENT

TWO_PORTS = """[root@n1 ~]# ibv_devinfo
hca_id:\tmlx4_0
\tfw_ver:\t\t\t2.40.7000
\tvendor_id:\t\t0x02c9
\tphys_port_cnt:\t\t2
\t\tport:\t1
\t\t\tstate:\t\tPORT_DOWN (1)
\t\t\tlink_layer:\tInfiniBand

\t\tport:\t2
\t\t\tstate:\t\tPORT_ACTIVE (4)
\t\t\tlink_layer:\tEthernet
"""


def test_the_state_of_one_port_never_hides_that_of_another() -> None:
    first, second = rdma.parse_ibv_devinfo(TWO_PORTS).devices
    assert (first.name, first.state, first.is_active()) == ("mlx4_0", "PORT_DOWN", False)
    assert (second.name, second.state, second.is_active()) == ("mlx4_0/2", "PORT_ACTIVE", True)
    assert (first.vendor_id, second.vendor_id, second.firmware) == ("0x02c9", "0x02c9", "2.40.7000")


def test_an_adapter_with_fewer_ports_than_it_says_is_a_cut_text() -> None:
    with pytest.raises(ParseError, match="1 of 2 ports shown"):
        rdma.parse_ibv_devinfo(TWO_PORTS.split("\t\tport:\t2")[0])
    with pytest.raises(ParseError, match="mlx4_0/2: no state"):
        rdma.parse_ibv_devinfo(TWO_PORTS.split("\t\t\tstate:\t\tPORT_ACTIVE")[0])


@pytest.mark.parametrize(
    "cut", ["PORT_ACTIVE (4)\n\t\t\tlink_layer:\tEthernet\n", "VE (4)\n\t\t\tlink_layer:\tEthernet\n", "rnet\n"]
)
def test_a_word_that_was_cut_off_is_no_state_and_no_link_layer(cut: str) -> None:
    with pytest.raises(ParseError, match=r"no state|is no link layer"):
        rdma.parse_ibv_devinfo(TWO_PORTS.removesuffix(cut))


def test_a_text_whose_beginning_is_missing_is_refused() -> None:
    whole = ("hca_id:\tmlx5_0\n", "CA 'mlx5_0'\n", "Infiniband device 'mlx5_0' port 1 status:\n")
    parsers = (rdma.parse_ibv_devinfo, rdma.parse_ibstat, rdma.parse_ibstatus)
    ports = (
        "\t\tport:\t1\n\t\t\tstate:\tPORT_DOWN (1)\n",
        "\tPort 1:\n\t\tState: Down\n\t\tLink layer: Ethernet\n",
        "\tstate:\t1: DOWN\n\tlink_layer:\tEthernet\n",
    )
    for parse, head, port in zip(parsers, whole, ports, strict=True):
        assert len(parse(head + port).devices) == 1
        for rest in (port, port.split("\n", 1)[1]):
            with pytest.raises(ParseError, match="beginning is missing"):
                parse(rest + head + port)


def test_old_and_verbose_outputs_are_read() -> None:
    old = "hca_id:\tmthca0\n\t\tport:\t1\n\t\t\tstate:\tactive (4)\n\t\tport:\t2\n\t\t\tstate:\tdown (1)\n"
    assert [(port.name, port.is_active()) for port in rdma.parse_ibv_devinfo(old).devices] == [
        ("mthca0", True),
        ("mthca0/2", False),
    ]
    long = "hca_id:\tirdma0\n\tmax_qp:\t9\n\t\tport:\t1\n\t\t\tstate:\tPORT_DOWN (1)\n\t\t\tphys_state:\tDISABLED (3)\n"
    assert rdma.parse_ibv_devinfo(long).devices[0].physical == "DISABLED"


@pytest.mark.parametrize(
    ("text", "why", "remedy"),
    [
        ("Failed to get IB devices list: Function not implemented\n", "nothing was looked at", "modprobe ib_uverbs"),
        ("    device          \t   node GUID\n    ------\n    erdma_0\t02163efffe000001\n", "without the state", "-l"),
        ("2 HCAs found:\n\tmlx5_0\n\tmlx5_1\n", "without the state", "-l"),
    ],
)
def test_names_without_states_are_no_ports_and_the_way_on_is_told(text: str, why: str, remedy: str) -> None:
    with pytest.raises(ParseError, match=why) as caught:
        rdma.parse_ibv_devinfo(text)
    assert remedy in caught.value.remedy
    assert remedy not in str(caught.value)


IBSTAT = """# ibstat
CA 'mlx5_0'
    Number of ports: 2
    Firmware version: 28.39.1002
    Port 1:
        State: Active
        Physical state: LinkUp
        Rate: 400
        Link layer: InfiniBand
    Port 2:
        State: Down
        Physical state: Disabled
        Rate: 40
        Link layer: Ethernet
"""


def test_ibstat_gives_each_port_its_own_state_and_rate() -> None:
    first, second = rdma.parse_ibstat(IBSTAT).devices
    assert (first.state, first.physical, first.rate_gbit_s) == ("Active", "LinkUp", 400)
    assert (second.name, second.state, second.physical, second.rate_gbit_s) == ("mlx5_0/2", "Down", "Disabled", 40)
    assert second.firmware == "28.39.1002"
    with pytest.raises(ParseError, match="1 of 2 ports"):
        rdma.parse_ibstat(IBSTAT.split("    Port 2:")[0])


def test_ibstatus_tells_the_physical_state_and_that_there_is_no_device() -> None:
    text = (
        "Infiniband device 'mlx5_1' port 2 status:\n\tstate:\t1: DOWN\n\tphys state:\t3: Disabled\n"
        "\trate:\t40 Gb/sec (4X QDR)\n\tlink_layer:\tEthernet\n"
    )
    (port,) = rdma.parse_ibstatus(text).devices
    assert (port.name, port.state, port.physical) == ("mlx5_1/2", "DOWN", "Disabled")
    assert rdma.parse_ibstatus("Fatal error:  No devices\n").devices == ()


@pytest.mark.parametrize(
    "line",
    [
        "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth0 ",
        "link mlx5_0/1: state ACTIVE physical_state LINK_UP netdev eth0",
        "8/1: mlx5_0/1: state ACTIVE physical_state LINK_UP netdev eth0",
        "1: link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth0",
        "link mlx5_0/1 subnet_prefix fe80::1 lid 13 sm_lid 1 lmc 0 state ACTIVE physical_state LINK_UP netdev eth0",
    ],
)
def test_a_link_of_every_iproute2_is_read(line: str) -> None:
    (port,) = rdma_link.parse(f"root@n1:~# rdma link\n{line}\n    caps: <AUTO_MIG>\n").devices
    assert (port.name, port.state, port.physical, port.netdev) == ("mlx5_0", "ACTIVE", "LINK_UP", "eth0")


@pytest.mark.parametrize(
    "line",
    [
        "link mlx5_0/1 state ACTIVE",
        "link mlx5_0/1 state ACT physical_state LINK_UP",
        "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev",
    ],
)
def test_a_link_that_was_cut_off_is_refused(line: str) -> None:
    with pytest.raises(ParseError):
        rdma_link.parse(line)


def test_links_as_json_are_read_whole_or_refused() -> None:
    text = '[{"ifindex":0,"ifname":"mlx5_0","port":2,"state":"DOWN","physical_state":"POLLING"}]'
    (port,) = rdma_link.parse(text).devices
    assert (port.name, port.state, port.physical, port.netdev) == ("mlx5_0/2", "DOWN", "POLLING", ABSENT)
    assert rdma_link.parse("[]").devices == ()
    for bad in (text[:-9], text.replace("port", "ports"), text.replace('"DOWN"', "1")):
        with pytest.raises(ParseError):
            rdma_link.parse(bad)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("Failed to open NETLINK_RDMA socket\n", "modprobe"),
        ("0: mlx5_0: node_type ca fw 28.39 node_guid 5c25:7303:0:1 sys_image_guid 5c25:7303:0:1\n", "rdma link"),
        ("hello\n", ""),
        ("", ""),
    ],
)
def test_links_that_were_not_told_are_refused(text: str, remedy: str) -> None:
    with pytest.raises(ParseError) as caught:
        rdma_link.parse(text)
    assert remedy in caught.value.remedy


def test_an_interface_that_is_down_is_not_a_port_that_is_down() -> None:
    plain = "#ibdev2netdev\nmlx5_0 port 1 ==> ib0 (Down)\nmlx5_0 port 2 ==> ib1 (Up)\n"
    first, second = rdma_link.parse_map(plain).devices
    assert (first.name, first.state, first.netdev, first.netdev_up) == ("mlx5_0", ABSENT, "ib0", False)
    assert (second.name, second.netdev_up) == ("mlx5_0/2", True)
    verbose = "0000:02:00.5 mlx5_2 (MT4116 - NA)  fw 12.23.1020 port 1 (DOWN  ) ==> ib2 (Down)\n"
    assert rdma_link.parse_map(verbose).devices[0].state == "DOWN"
    for bad in ("", "mlx5_0 port 1 ==> ib0\n", verbose.replace("DOWN  ", "DO")):
        with pytest.raises(ParseError):
            rdma_link.parse_map(bad)
