"""The report as JUnit XML: a suite per host, a case per check and subject. Red exactly where the gate is closed.

FAIL is a failure, UNKNOWN an error, NOT_APPLICABLE is skipped, WARN passes and says so on system-out, and so does an
advisory FAIL or UNKNOWN. A host or stack that is closed without a finding to blame gets a case of its own, so that no
reader of the file can take "nothing was judged" for green.
"""

from __future__ import annotations

from xml.etree import ElementTree as ET

from validation.report.model import HostReport, StackReport
from validation.report.summary import Entry, comparison, effective, headline, together
from validation.report.text import plain
from validation.verdict import Finding, Verdict


def render(report: StackReport) -> str:
    """The report as one XML document."""
    root = ET.Element("testsuites", {"name": plain(report.title) or "kiln", "time": f"{report.duration_s:.3f}"})
    suites = [_suite(host, report.started) for host in report.hosts]
    if report.findings:
        suites.append(_together(report))
    blamed = any(not effective(finding).opens_gate for finding in report.findings)
    if not report.healthy and not blamed and all(host.verdict.opens_gate for host in report.hosts):
        suites.append(_gate_suite(report))
    root.extend(suites)
    for key in ("tests", "failures", "errors", "skipped"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in suites)))
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(host: HostReport, started: str) -> ET.Element:
    suite = ET.Element("testsuite", {"name": plain(host.host), "hostname": plain(host.address or host.host)})
    if started:
        suite.set("timestamp", plain(started))
    suite.set("time", f"{host.duration_s:.3f}")
    properties = ET.SubElement(suite, "properties")
    for name, value in (
        ("instance_id", host.instance_id),
        ("instance_type", host.instance_type),
        ("verdict", host.verdict.value),
    ):
        ET.SubElement(properties, "property", {"name": name, "value": plain(value)})
    suite.extend(_case(Entry(host, finding)) for finding in host.findings)
    if not host.verdict.opens_gate and all(effective(finding).opens_gate for finding in host.findings):
        suite.append(_closed_case("host.verdict", host.host, f"{host.host}: {host.verdict.value}: nothing judged good"))
    return _count(suite)


def _together(report: StackReport) -> ET.Element:
    suite = ET.Element("testsuite", {"name": "stack"})
    suite.extend(_case(entry) for entry in together(report))
    return _count(suite)


def _gate_suite(report: StackReport) -> ET.Element:
    suite = ET.Element("testsuite", {"name": "gate"})
    suite.append(_closed_case("gate", report.title or "stack", headline(report)))
    return _count(suite)


def _closed_case(check: str, subject: str, message: str) -> ET.Element:
    case = ET.Element("testcase", {"classname": check, "name": plain(subject)})
    ET.SubElement(case, "error", {"message": plain(message), "type": Verdict.UNKNOWN.value})
    return case


def _case(entry: Entry) -> ET.Element:
    finding = entry.finding
    case = ET.Element("testcase", {"classname": plain(finding.check), "name": plain(finding.subject)})
    verdict = effective(finding)
    if verdict in (Verdict.FAIL, Verdict.UNKNOWN):
        kind = finding.fault_class.value if finding.fault_class else verdict.value
        tag = "failure" if verdict is Verdict.FAIL else "error"
        ET.SubElement(case, tag, {"message": plain(finding.message), "type": kind}).text = _details(finding)
    elif verdict is Verdict.NOT_APPLICABLE:
        ET.SubElement(case, "skipped", {"message": plain(finding.message)})
    elif verdict is Verdict.WARN:
        ET.SubElement(case, "system-out").text = f"{entry.label}: {_details(finding)}"
    return case


def _details(finding: Finding) -> str:
    lines = [finding.message, comparison(finding), finding.remedy and f"remedy: {finding.remedy}"]
    return plain("\n".join(text for text in lines if text))


def _count(suite: ET.Element) -> ET.Element:
    suite.set("tests", str(len(suite.findall("testcase"))))
    for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(key, str(len(suite.findall(f"testcase/{tag}"))))
    return suite
