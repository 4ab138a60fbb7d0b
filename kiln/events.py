"""Engine events as progress: resources by name with what is done to them, the gate's own lines by host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kiln.engine import UNHANDLED, Event
from kiln.progress import Progress

GATE = "kiln:index:HealthGate"
_DOING = {
    "create": "creating",
    "update": "updating",
    "delete": "deleting",
    "replace": "replacing",
    "create-replacement": "creating replacement",
    "delete-replaced": "deleting replaced",
    "read": "reading",
}
_DONE = {
    "create": "created",
    "update": "updated",
    "delete": "deleted",
    "replace": "replaced",
    "create-replacement": "created replacement",
    "delete-replaced": "deleted replaced",
    "read": "read",
}


class EngineProgress:
    """Feeds engine events to a progress. What did not change is not shown."""

    def __init__(self, shown: Progress) -> None:
        self._shown = shown

    def __call__(self, event: Event) -> None:
        if "resourcePreEvent" in event:
            self._step(event["resourcePreEvent"], _DOING)
        elif "resOutputsEvent" in event:
            self._step(event["resOutputsEvent"], _DONE)
        elif "resOpFailedEvent" in event:
            metadata = event["resOpFailedEvent"].get("metadata", {})
            self._shown(_name(metadata.get("urn", "")), "failed", _short(metadata.get("type", "")))
        elif "diagnosticEvent" in event:
            self._diagnostic(event["diagnosticEvent"])

    def _step(self, event: Mapping[str, Any], words: Mapping[str, str]) -> None:
        metadata = event.get("metadata", {})
        word = words.get(metadata.get("op", ""))
        if word:
            self._shown(_name(metadata.get("urn", "")), word, _short(metadata.get("type", "")))

    def _diagnostic(self, event: Mapping[str, Any]) -> None:
        severity, urn = event.get("severity", ""), event.get("urn", "")
        text = event.get("message", "").strip()
        if severity == "debug" or not text or text.startswith(UNHANDLED):
            return
        if severity.startswith("info") and event.get("ephemeral") and f"::{GATE}::" in urn:
            host, _, rest = text.partition(": ")
            stage, _, words = rest.partition(": ")
            self._shown(host, stage, words)
        else:
            self._shown(_name(urn) or "stack", severity.removesuffix("#status"), text.splitlines()[0])


def _name(urn: str) -> str:
    return urn.rpartition("::")[2]


def _short(token: str) -> str:
    """``aws:ec2/instance:Instance`` as ``aws Instance``."""
    return f"{token.partition(':')[0]} {token.rpartition(':')[2]}" if ":" in token else token
