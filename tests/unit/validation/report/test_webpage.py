from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

from validation.report import webpage
from validation.report.model import StackReport
from validation.verdict import Verdict


class Page(HTMLParser):
    """The tags of a page in order, and its visible text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not {"src", "href", "onload", "onclick"} & {name for name, _ in attrs}
        if tag not in ("meta", "br", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def test_the_verdict_comes_first_then_what_closes_the_gate_then_everything(faulty: StackReport) -> None:
    text = Page(webpage.render(faulty)).text
    order = [
        text.index("demo: gate CLOSED: FAIL, 1 of 2 hosts good"),
        text.index("What closes the gate"),
        text.index("17 of 18 NVLinks active, link 7 is down"),
        text.index("Warnings"),
        text.index("Everything that was judged"),
    ]
    assert order == sorted(order)


def test_a_failing_finding_shows_measured_expected_source_and_remedy(faulty: StackReport) -> None:
    text = Page(webpage.render(faulty)).text
    assert (
        "FAIL gpu-2/GPU3/link7 nvlink.links_active reboot-once 17 of 18 NVLinks active, link 7 is down "
        "measured 17 expected 18 says profile p5.48xlarge (golden, 2026-03-20) "
        "remedy Reboot once; if it repeats, replace the host. evidence nvml"
    ) in text


def test_below_a_hosts_name_its_subjects_are_named_without_it(faulty: StackReport, unlike: StackReport) -> None:
    text = Page(webpage.render(faulty)).text
    assert "PASS nvlink.links_active GPU0 18 of 18 NVLinks active" in text
    assert "FAIL nvlink.links_active GPU3/link7 17 of 18" in text
    assert "PASS gpu.count host 8 GPUs" in text
    assert "WARN (advisory FAIL) gpu.throttle GPU1 power brake" in text
    assert "FAIL stack.driver stack the hosts have 2 versions" in Page(webpage.render(unlike)).text


def test_a_subject_of_a_host_with_a_longer_name_keeps_it(faulty: StackReport) -> None:
    """``gpu-1`` is not the host of ``gpu-10/GPU0``."""
    host = faulty.hosts[0]
    stray = replace(host.findings[1], subject="gpu-10/GPU0")
    text = Page(webpage.render(replace(faulty, hosts=(replace(host, findings=(stray,)),)))).text
    assert "PASS nvlink.links_active gpu-10/GPU0 18 of 18" in text


def test_the_colour_of_the_verdict_is_that_of_the_gate(
    good: StackReport, faulty: StackReport, unreached: StackReport, empty: StackReport
) -> None:
    """Only an open gate is green; one that warns and is open is."""
    warned = replace(good, verdict=Verdict.WARN)
    pages = [webpage.render(report) for report in (good, warned, faulty, unreached, empty)]
    assert [text.split('<header class="')[1].split('"')[0] for text in pages] == [
        "PASS",
        "PASS",
        "FAIL",
        "UNKNOWN",
        "UNKNOWN",
    ]


def test_every_finding_is_listed(faulty: StackReport) -> None:
    page = Page(webpage.render(faulty))
    assert page.tags.count("tr") == 3 + 2 + 3 + 3  # heads, hosts, findings of each host


def test_a_good_stack_shows_no_trouble(good: StackReport) -> None:
    text = Page(webpage.render(good)).text
    assert "What closes" not in text
    assert "Warnings" not in text
    assert "do not use" not in text


def test_a_host_that_was_not_reached_is_not_called_bad(unreached: StackReport, faulty: StackReport) -> None:
    assert "Not every host is known to be good: do not use them" in Page(webpage.render(unreached)).text
    assert "Not every host is good: do not use them" in Page(webpage.render(faulty)).text


def test_a_stack_without_hosts_is_closed(empty: StackReport) -> None:
    assert "no host was judged" in Page(webpage.render(empty)).text


def test_an_unreached_host_has_no_identity_line(unreached: StackReport) -> None:
    assert "bound to" not in Page(webpage.render(unreached)).text


def test_hostile_texts_add_no_tag(hostile: StackReport, faulty: StackReport) -> None:
    text = webpage.render(hostile)
    page = Page(text)
    assert set(page.tags) <= set(Page(webpage.render(faulty)).tags)
    assert "script" not in page.tags
    assert "{{ 7*7 }}" in page.text
    assert "\x1b" not in text
    text.encode("utf-8")


def test_the_page_loads_nothing(faulty: StackReport) -> None:
    text = webpage.render(faulty)
    assert "default-src 'none'" in text
    assert "http:" not in text
    assert "https:" not in text
