"""What the matrix of ``nvidia-smi topo -m`` means where nobody says which machine it is from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from profiles.models import Expectation
from validation.checks.base import Check
from validation.checks.wording import counted, listed
from validation.facts.host import Pair, Topology
from validation.facts.store import Facts
from validation.facts.topo import UNTOLD
from validation.verdict import FaultClass, Finding, Verdict

_FEWEST = 4  # GPUs of which one can be told to be different from the others


class TopologyAlone(Check):
    """What a pair matrix means alone: one GPU that is wired otherwise than all the others."""

    id = "tool.topology"
    title = "Pair matrix alone"
    why = "A GPU whose NVLinks did not all come up passes every test of its own; beside its peers it is the odd one."
    source = "Azure/azhpc-images 443 (bridge absent after boot); matrices of p4d, p5 and DGX-2: one word for all pairs"
    remedy = "Reboot once; if it repeats, replace the host. A GPU in MIG mode has no NVLink by design."
    fault_class = FaultClass.REBOOT_ONCE
    requires = (Topology,)
    needs_profile = False

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        if expected.profile is not None:
            return  # topology.pairs judges it, by the machine's own matrix
        topology = facts.need(Topology)
        untold = [pair for pair, word in topology.links.items() if word in UNTOLD]
        if untold:
            message = f"the driver does not tell how {counted(len(untold), 'pair')} of GPUs are connected"
            yield self.finding(Verdict.UNKNOWN, "host", message, remedy="Ask again with a newer nvidia-smi.")
        uneven = [(a, b) for a, b in topology.links if a < b and topology.links[a, b] != topology.links[b, a]]
        if uneven:
            message = f"the two directions differ: {listed((f'GPU{a}-GPU{b}' for a, b in uneven), limit=4)}"
            yield self.finding(Verdict.WARN, "host", message)
        elif not untold:
            yield from self._odd_one(topology.gpus, topology.links)

    def _odd_one(self, gpus: tuple[int, ...], links: Mapping[Pair, str]) -> Iterable[Finding]:
        usual, times = Counter(links.values()).most_common(1)[0] if links else ("", 0)
        odd = sorted(pair for pair, word in links.items() if word != usual and pair[0] < pair[1])
        if len(gpus) < _FEWEST or not usual.startswith("NV") or not odd or 2 * times <= len(links):
            return
        common = set(odd[0]).intersection(*odd[1:])
        if not common:
            return
        subject = f"GPU{odd[0][0]}-GPU{odd[0][1]}" if len(odd) == 1 else f"GPU{common.pop()}"
        seen = listed(sorted({links[pair] for pair in odd}))
        message = f"{counted(len(odd), 'pair')} by {seen}, where all others are connected by {usual}"
        yield self.finding(Verdict.WARN, subject, message, measured=seen, expected=usual)
