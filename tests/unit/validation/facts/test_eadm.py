"""Counters of RDMA drivers, and the two commands of Alibaba's eadm whose form is known."""

from __future__ import annotations

import pytest

from profiles.errors import ParseError
from validation.facts import eadm, rdma_counters
from validation.facts.missing import ABSENT

STAT = """[root@iZ2ze ~]# eadm stat -d erdma_1
listen_create_cnt : 4
accept_failed_cnt : 0
connect_timeout_cnt : 3
hw_tx_bytes_cnt : 5120
"""


def test_version_and_counters_of_the_driver_are_read() -> None:
    assert eadm.parse("# eadm ver\nQuery kernel driver version: 0.2.38\n").driver == "0.2.38"
    told = eadm.parse(STAT)
    assert (told.driver, told.device, told.counters["hw_tx_bytes_cnt"]) == (ABSENT, "erdma_1", 5120)
    assert told.errors == {"accept_failed_cnt": 0, "connect_timeout_cnt": 3}
    assert eadm.parse(STAT.split("\n", 1)[1]).device == ABSENT


@pytest.mark.parametrize(
    "text",
    [
        "$ eadm conf -d erdma_0 -t cc\ncc: 1\n",
        "# eadm stat -d erdma_0 -l\n1 2 3\n",
        "sudo eadm info\nQuery kernel driver version: 0.2.38\n",
        "# eadm -h\nUsage: eadm\n",
        "bash: eadm: command not found\n",
        f"{STAT}rx_rate 5 Gbps\n",
        "# eadm ver\n",
    ],
)
def test_what_is_published_nowhere_is_recognised_and_refused_with_what_tells_the_same(text: str) -> None:
    assert eadm.is_it(text)
    with pytest.raises(ParseError) as caught:
        eadm.parse(text)
    assert "rdma statistic show" in caught.value.remedy


@pytest.mark.parametrize("text", ["$ kubeadm version\n", "the eadm tool\n", "hw_tx_bytes_cnt\n", ""])
def test_another_text_is_not_eadm(text: str) -> None:
    assert not eadm.is_it(text)


LINK = "link mlx5_2/1 rx_write_requests 8 out_of_sequence 0 packet_seq_err 1 req_cqe_flush_error 5\n"


def test_counters_of_a_link_are_read_from_one_line_or_from_one_that_was_folded() -> None:
    folded = "$ rdma stat show link mlx5_2/1\nlink mlx5_2/1 rx_write_requests\n8 out_of_sequence 0\npacket_seq_err 1\n"
    for text in (LINK, folded):
        (port,) = rdma_counters.parse(text).ports
        assert (port.name, port.counters["rx_write_requests"]) == ("mlx5_2", 8)
        assert port.errors() == {"out_of_sequence": 0, "packet_seq_err": 1}


def test_counters_as_json_and_as_files_are_the_same() -> None:
    (told,) = rdma_counters.parse('[{"ifindex":1,"ifname":"erdma_0","port":1,"listen_failed_cnt":2}]').ports
    folder = "/sys/class/infiniband/erdma_0/ports/1/hw_counters"
    (files,) = rdma_counters.parse(f"# grep . {folder}/*\n{folder}/listen_failed_cnt:2\n").ports
    assert told == files
    assert rdma_counters.parse(f"{folder.replace('ports/1', 'ports/2')}/a_cnt:1\n").ports[0].name == "erdma_0/2"


@pytest.mark.parametrize(
    "text",
    ["", "hello\n", "link mlx5_0/1 a 1 b\n", "link mlx5_0/1 a b\n", '[{"ifname":"a","port":1,"x":"y"}]', "[{}]", "[5]"],
)
def test_counters_cut_short_are_refused(text: str) -> None:
    with pytest.raises(ParseError):
        rdma_counters.parse(text)


def test_the_error_counters_of_each_driver_are_told_from_its_traffic() -> None:
    errors = {
        *("listen_failed_cnt", "connect_reset_cnt", "hw_rx_disable_drop_cnt", "verbs_reg_usr_mr_failed_cnt"),
        *("rx_drops", "rdma_read_wr_err", "retrans_timeout_events", "unresponsive_remote_events"),
        *("local_ack_timeout_err", "implied_nak_seq_err", "req_transport_retries_exceeded", "rx_icrc_encapsulated"),
    }
    traffic = {"listen_success_cnt", "hw_tx_bytes_cnt", "rx_bytes", "send_wrs", "np_cnp_sent", "resp_cqe_flush_error"}
    assert set(rdma_counters.PortCounters("a", dict.fromkeys(errors | traffic, 1)).errors()) == errors
