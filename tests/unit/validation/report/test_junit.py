from __future__ import annotations

from xml.etree import ElementTree as ET

from validation.report import junit
from validation.report.model import StackReport
from validation.verdict import Verdict


def test_a_faulty_stack_is_written_exactly_so(faulty: StackReport) -> None:
    assert junit.render(faulty) == EXPECTED


def test_a_good_stack_has_neither_failure_nor_error(good: StackReport) -> None:
    root = ET.fromstring(junit.render(good))
    assert (root.get("tests"), root.get("failures"), root.get("errors"), root.get("skipped")) == ("3", "0", "0", "1")


def test_an_unreached_host_is_an_error(unreached: StackReport) -> None:
    root = ET.fromstring(junit.render(unreached))
    error = root.find("testsuite/testcase/error")
    assert error is not None
    assert error.get("message") == "stage 'reachable' not reached; last seen: refused"


def test_a_stack_without_hosts_is_red(empty: StackReport) -> None:
    root = ET.fromstring(junit.render(empty))
    assert root.get("errors") == "1"


def test_a_host_on_which_nothing_was_judged_good_is_red(good: StackReport) -> None:
    host = good.hosts[0]
    skipped = type(host)(
        host="gpu-1",
        address="",
        instance_id="",
        instance_type="",
        verdict=Verdict.UNKNOWN,
        findings=host.findings[2:],
    )
    root = ET.fromstring(junit.render(StackReport(Verdict.UNKNOWN, (skipped,))))
    assert root.get("errors") == "1"


def test_a_closed_gate_over_good_hosts_is_red(good: StackReport) -> None:
    root = ET.fromstring(junit.render(StackReport(Verdict.UNKNOWN, good.hosts)))
    assert root.get("errors") == "1"


def test_hostile_texts_stay_texts(hostile: StackReport) -> None:
    root = ET.fromstring(junit.render(hostile))
    assert root.find(".//script") is None
    case = root.find("testsuite/testcase")
    assert case is not None
    assert "<script>" in str(case.get("name"))
    assert "\\x1b" in str(case.get("name"))


EXPECTED = """\
<?xml version="1.0" encoding="utf-8"?>
<testsuites name="demo" time="2.500" tests="6" failures="1" errors="0" skipped="1">
  <testsuite name="gpu-1" hostname="127.64.0.1" timestamp="2026-05-01T10:00:00Z" time="1.250" tests="3" failures="0" \
errors="0" skipped="1">
    <properties>
      <property name="instance_id" value="i-gpu-1" />
      <property name="instance_type" value="p5.48xlarge" />
      <property name="verdict" value="PASS" />
    </properties>
    <testcase classname="gpu.count" name="gpu-1" />
    <testcase classname="nvlink.links_active" name="gpu-1/GPU0" />
    <testcase classname="efa.count" name="gpu-1">
      <skipped message="the stack asks for no EFA" />
    </testcase>
  </testsuite>
  <testsuite name="gpu-2" hostname="127.64.0.1" timestamp="2026-05-01T10:00:00Z" time="1.250" tests="3" failures="1" \
errors="0" skipped="0">
    <properties>
      <property name="instance_id" value="i-gpu-2" />
      <property name="instance_type" value="p5.48xlarge" />
      <property name="verdict" value="FAIL" />
    </properties>
    <testcase classname="gpu.count" name="gpu-1" />
    <testcase classname="nvlink.links_active" name="gpu-2/GPU3/link7">
      <failure message="17 of 18 NVLinks active, link 7 is down" type="reboot-once">17 of 18 NVLinks active, link 7 is \
down
measured 17, expected 18 (profile p5.48xlarge (golden, 2026-03-20))
remedy: Reboot once; if it repeats, replace the host.</failure>
    </testcase>
    <testcase classname="gpu.throttle" name="gpu-2/GPU1">
      <system-out>WARN (advisory FAIL): power brake
remedy: Look at it.</system-out>
    </testcase>
  </testsuite>
</testsuites>
"""
