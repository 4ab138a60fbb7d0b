from __future__ import annotations

import re

from validation.report import prometheus
from validation.report.model import StackReport

SERIES = re.compile(r'^[a-z_]+\{([a-z_]+="([^"\\\n]|\\["\\n])*",?)*\} \S+$')


def test_an_open_gate_is_one(good: StackReport) -> None:
    assert 'kiln_gate_open{stack="demo"} 1\n' in prometheus.render(good)


def test_a_stack_without_hosts_is_zero_and_not_absent(empty: StackReport) -> None:
    assert 'kiln_gate_open{stack="demo"} 0\n' in prometheus.render(empty)


def test_a_finding_that_closes_the_gate_is_named(faulty: StackReport) -> None:
    text = prometheus.render(faulty)
    assert (
        'kiln_finding{stack="demo",host="gpu-2",check="nvlink.links_active",subject="gpu-2/GPU3/link7",'
        'verdict="FAIL",fault_class="reboot-once"} 1\n'
    ) in text
    assert 'verdict="WARN",fault_class=""} 1\n' in text


def test_the_start_is_a_time_stamp(good: StackReport) -> None:
    assert 'kiln_started_timestamp_seconds{stack="demo"} 1777629600\n' in prometheus.render(good)


def test_a_start_that_is_no_time_is_left_out(good: StackReport) -> None:
    assert "kiln_started" not in prometheus.render(StackReport(good.verdict, good.hosts, started="soon"))


def test_every_line_is_well_formed_and_no_series_comes_twice(faulty: StackReport, hostile: StackReport) -> None:
    doubled = StackReport(faulty.verdict, (*faulty.hosts, *faulty.hosts))
    for report in (faulty, hostile, doubled):
        series = [row for row in prometheus.render(report).splitlines() if not row.startswith("#")]
        assert all(SERIES.match(row) for row in series)
        assert len({row.rpartition(" ")[0] for row in series}) == len(series)
