"""Are the GPUs wired to each other and to the CPUs as the machine is built?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from profiles.models import Expectation, Expected
from validation.checks.base import Check
from validation.checks.wording import counted, listed, profile_of, ranges
from validation.facts.gpu import GpuInventory
from validation.facts.host import NumaMap, P2pMatrix, Pair, Topology
from validation.facts.missing import Missing
from validation.facts.store import Facts
from validation.facts.topo import UNTOLD
from validation.verdict import FaultClass, Finding, Verdict

_OLD_WORDS = {"SOC": "SYS", "PSB": "PIX"}  # drivers up to 384 and up to 450, for what the later word means


# A pair that NVLink connects reaches each other's memory on every machine, so no profile excuses it.
_LINKED_WORD = "OK, as NVLink connects them,"


class TopologyPairs(Check):
    """Every pair of GPUs is connected as ``nvidia-smi topo -m`` shows it on a good machine of this type."""

    id = "topology.pairs"
    title = "Pair matrix"
    why = "NVLink that did not come up at boot leaves every single-GPU test green; the pair matrix shows it."
    source = "aws-k8s-tester 9c7b987a goldens; Azure/azhpc-images 443 (bridge absent on 29 of 50 boots)"
    remedy = "Reboot once; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    requires = (Topology,)

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        profile = profile_of(expected)
        count = profile.gpu.count.value
        wanted = profile.links.pairs
        if count == 1:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "this machine has one GPU: there is no pair")
            return
        topology = facts.need(Topology)
        if wanted is None:
            seen = _tally({pair: cell for pair, cell in topology.links.items() if pair[0] != pair[1]})
            yield self.unspecified("host", "pair matrix", expected, seen)
            return
        if len(topology.gpus) != count:
            yield _not_all(self, len(topology.gpus), count)
            return
        cells = _cells(wanted.value, topology.gpus)
        source = expected.source_of(wanted.source)
        links = {pair: _OLD_WORDS.get(word, word) for pair, word in topology.links.items()}
        bad = {pair: links[pair] for pair in cells if links[pair] != cells[pair]}
        alone = _apart(facts, bad)
        if alone:
            yield _in_mig(self, alone, expected)
            bad = {pair: word for pair, word in bad.items() if not alone.intersection(pair)}
        untold = [pair for pair, word in bad.items() if word in UNTOLD]
        if untold:
            yield _untold(self, untold, f"a word for how they are connected ({listed(UNTOLD)})")
            bad = {pair: word for pair, word in bad.items() if word not in UNTOLD}
            if not bad:
                return
        if bad:
            yield self._wrong(bad, cells, source)
        elif any(not alone.intersection(pair) for pair in cells):
            shape = wanted.value if isinstance(wanted.value, str) else "as on a good machine"
            which = f"the other {counted(count - len(alone), 'GPU')}" if alone else f"{count} GPUs"
            yield self.finding(Verdict.PASS, "host", f"all pairs of {which}: {shape}", source=source)

    def _wrong(self, bad: Mapping[Pair, str], cells: Mapping[Pair, str], source: str) -> Finding:
        pairs = [(a, b) for a, b in sorted(bad) if a < b or (b, a) not in bad]
        seen = Counter(bad.values()).most_common(1)[0][0]
        details = listed((f"GPU{a}-GPU{b} {bad[a, b]} instead of {cells[a, b]}" for a, b in pairs), limit=4)
        return self.finding(
            Verdict.FAIL,
            _subject(pairs),
            f"{counted(len(pairs), 'pair')} not connected as built: {details}",
            measured=f"{seen} ({counted(len(pairs), 'pair')})",
            expected=listed(sorted({cells[pair] for pair in pairs})),
            source=source,
        )


class P2pStatus(Check):
    """Every pair of GPUs can reach each other's memory, where the machine allows it."""

    id = "topology.p2p"
    title = "Peer-to-peer access"
    why = "A pair without peer access falls back to copies through the CPU, silently and many times slower."
    source = "nvidia-smi topo -p2p r of 8 H100 (OK) and 2 L4 (CNS by design); its legend lines are no cells"
    remedy = "Reboot once; look at ACS, IOMMU and the driver's settings; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    requires = (P2pMatrix,)

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        profile = profile_of(expected)
        if profile.gpu.count.value == 1:
            yield self.finding(Verdict.NOT_APPLICABLE, "host", "this machine has one GPU: there is no pair")
            return
        matrix = facts.need(P2pMatrix)
        if not _of_memory(matrix):
            message = f"a matrix of another capability than read or write ({matrix.capability or 'not told which'})"
            remedy = "Judge the matrix of nvidia-smi topo -p2p r."
            yield self.finding(Verdict.UNKNOWN, "host", message, remedy=remedy)
            return
        wanted = profile.links.p2p
        status = {pair: seen for pair, seen in matrix.status.items() if pair[0] != pair[1]}
        bad = [pair for pair, seen in status.items() if seen != (wanted.value if wanted else "OK")]
        alone = _apart(facts, bad)
        if alone:
            yield _in_mig(self, alone, expected)
        untold = [pair for pair in bad if status[pair] == "U" and not alone.intersection(pair)]
        if untold:
            yield _untold(self, untold, "whether they can reach each other (U)")
        left = {pair: seen for pair, seen in status.items() if pair not in untold and not alone.intersection(pair)}
        apart = [] if wanted else _linked_apart(facts, left)
        if apart:
            yield self._wrong(left, apart, _LINKED_WORD, "")
            left = {pair: seen for pair, seen in left.items() if pair not in apart}
        if left or not (alone or untold or apart):
            yield from self._rest(matrix, left, wanted, expected)

    def excusable(self, finding: Finding) -> bool:
        return super().excusable(finding) and not finding.expected.startswith(_LINKED_WORD)

    def _rest(
        self, matrix: P2pMatrix, status: Mapping[Pair, str], wanted: Expected[str] | None, expected: Expectation
    ) -> Iterable[Finding]:
        """The pairs that the driver knows of and that are no MIG GPU's."""
        word = wanted.value if wanted else "OK"
        bad = sorted(pair for pair, seen in status.items() if seen != word)
        count = profile_of(expected).gpu.count.value
        if status and not bad and word != "OK":
            message = f"all {len(status)} pairs {word}: no peer access, by design of this machine"
            yield self.finding(Verdict.NOT_APPLICABLE, "host", message, measured=word)
        elif len(matrix.gpus) != count:
            yield _not_all(self, len(matrix.gpus), count)
        elif not bad:
            yield self.finding(Verdict.PASS, "host", f"all {len(status)} pairs OK", measured="OK")
        elif wanted is None:
            # OK everywhere needs no profile; anything else may be this machine's design or its fault.
            yield self.unspecified("host", "P2P status", expected, _tally(status))
        else:
            yield self._wrong(status, bad, word, expected.source_of(wanted.source))

    def _wrong(self, status: Mapping[Pair, str], bad: list[Pair], word: str, source: str) -> Finding:
        pairs = [(a, b) for a, b in bad if a < b or (b, a) not in bad]
        better = word != "OK" and all(status[pair] == "OK" for pair in bad)
        return self.finding(
            Verdict.WARN if better else Verdict.FAIL,
            _subject(pairs),
            listed((f"GPU{a}-GPU{b} {status[a, b]}" for a, b in pairs), limit=4),
            measured=_tally(status),
            expected=f"{word} for every pair",
            source=source,
        )


class NumaAffinity(Check):
    """Every GPU hangs off the NUMA node that the machine is built with."""

    id = "numa.affinity"
    title = "NUMA affinity of the GPUs"
    why = "Processes pinned by a wrong map feed the GPU across the socket link."
    source = "aws-k8s-tester 9c7b987a goldens; a printed range such as 0-1 means that the platform does not say"
    remedy = "Reboot once; if it repeats, replace the host: the virtual machine was built with another map."
    fault_class = FaultClass.REBOOT_ONCE
    requires = (NumaMap, GpuInventory)

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        wanted = profile_of(expected).numa.gpu_nodes
        if wanted is not None and wanted.value == "not exposed":
            message = "the platform does not expose where the GPUs hang"
            yield self.finding(Verdict.NOT_APPLICABLE, "host", message, source=expected.source_of(wanted.source))
            return
        numa = facts.need(NumaMap)
        if len(numa.cpu_nodes) == 1:
            yield self.finding(Verdict.PASS, "host", "one NUMA node: every GPU is local")
            return
        if wanted is None:
            seen = [numa.gpu_node.get(str(gpu.pci_address)) for gpu in facts.need(GpuInventory).gpus]
            told = " ".join(str(node) for node in seen if isinstance(node, int))
            yield self.unspecified("host", "NUMA map", expected, f"nodes {told}" if told else "")
            return
        assert not isinstance(wanted.value, str)
        source = expected.source_of(wanted.source)
        count = len(facts.need(GpuInventory).gpus)
        if count != len(wanted.value):
            yield _not_all(self, count, len(wanted.value))
            return
        found = list(self._judged(facts, numa, wanted.value, source))
        yield from found
        if not found:
            nodes = " ".join(str(node) for node in wanted.value)
            yield self.finding(Verdict.PASS, "host", f"GPUs on NUMA nodes {nodes}", source=source)

    def _judged(self, facts: Facts, numa: NumaMap, nodes: tuple[int, ...], source: str) -> Iterable[Finding]:
        topology = facts.need(Topology) if Topology in facts else None
        for gpu in facts.need(GpuInventory).gpus:
            node = numa.gpu_node.get(str(gpu.pci_address))
            if node is None or isinstance(node, Missing):
                node = topology.numa.get(gpu.index) if topology else None
            if node is None or isinstance(node, Missing):
                message = "its NUMA node is not known: neither sysfs nor topo -m tells it"
                yield self.finding(Verdict.UNKNOWN, gpu.label, message, expected=f"node {nodes[gpu.index]}")
            elif node != nodes[gpu.index]:
                yield self.finding(
                    Verdict.FAIL,
                    gpu.label,
                    f"on NUMA node {node}",
                    measured=f"node {node}",
                    expected=f"node {nodes[gpu.index]}",
                    source=source,
                )


class NumaNodes(Check):
    """The host has the NUMA nodes and distances of its type."""

    id = "numa.nodes"
    title = "NUMA nodes"
    why = "Another number of nodes means another machine, or a hypervisor that hides the sockets."
    source = "aws-k8s-tester 9c7b987a goldens; nodes without CPUs (HBM, GPU memory) are not counted"
    remedy = "Reboot once; if it repeats, replace the host."
    fault_class = FaultClass.REBOOT_ONCE
    requires = (NumaMap,)

    def evaluate(self, facts: Facts, expected: Expectation) -> Iterable[Finding]:
        numa = facts.need(NumaMap)
        wanted = profile_of(expected).numa
        nodes = numa.cpu_nodes
        if not nodes:
            yield self.finding(Verdict.UNKNOWN, "host", "no NUMA node with CPUs was found")
            return
        if wanted.nodes is None:
            message = f"{counted(len(nodes), 'NUMA node')} with CPUs; the type's number is not in its profile"
            yield self.finding(Verdict.PASS, "host", message, measured=str(len(nodes)))
            return
        source = expected.source_of(wanted.nodes.source)
        if len(nodes) != wanted.nodes.value:
            message = f"{counted(len(nodes), 'NUMA node')} with CPUs"
            want = str(wanted.nodes.value)
            yield self.finding(Verdict.FAIL, "host", message, measured=str(len(nodes)), expected=want, source=source)
            return
        far = sorted({numa.distances[a, b] for a in nodes for b in nodes if a != b and (a, b) in numa.distances})
        if wanted.distance and far and far != [wanted.distance.value]:
            message = f"NUMA distance {listed(far)}"
            want = str(wanted.distance.value)
            yield self.finding(Verdict.WARN, "host", message, measured=listed(far), expected=want, source=source)
            return
        distance = f", distance {far[0]}" if far else ""
        yield self.finding(Verdict.PASS, "host", f"{counted(len(nodes), 'NUMA node')}{distance}", source=source)


def _linked_apart(facts: Facts, status: Mapping[Pair, str]) -> list[Pair]:
    """The pairs without peer access that NVLink connects, by the pair matrix where there is one."""
    links = facts.need(Topology).links if Topology in facts else {}
    return sorted(pair for pair, seen in status.items() if seen != "OK" and links.get(pair, "").startswith("NV"))


def _of_memory(matrix: P2pMatrix) -> bool:
    """Whether the matrix tells about memory access: not ``-p2p n``, ``a`` or ``p``, of which NS is the usual answer."""
    if matrix.capability:
        return set(matrix.capability) <= {"r", "w"}
    return "NS" not in matrix.status.values()


def _untold(check: Check, pairs: list[Pair], what: str) -> Finding:
    """What the driver does not know accuses nobody."""
    named = listed((f"GPU{a}-GPU{b}" for a, b in pairs if a < b or (b, a) not in pairs), limit=4)
    return check.finding(Verdict.UNKNOWN, "host", f"{named}: the driver does not tell {what}")


def _not_all(check: Check, found: int, wanted: int) -> Finding:
    """Indices shift when a GPU is missing, so nothing can be compared by them; gpu.count says who is to blame."""
    message = f"{found} of {counted(wanted, 'GPU')}: which is which cannot be told; see gpu.count"
    remedy = "Mend what gpu.count says, and validate again."
    return check.finding(Verdict.UNKNOWN, "host", message, measured=str(found), expected=str(wanted), remedy=remedy)


def _apart(facts: Facts, pairs: Iterable[Pair]) -> set[int]:
    """The GPUs among those of the pairs that are partitioned: with MIG on, a GPU has no peer (MIG user guide 620)."""
    gpus = facts.need(GpuInventory).gpus if GpuInventory in facts else ()
    return {gpu.index for gpu in gpus if gpu.mig_enabled is True} & {at for pair in pairs for at in pair}


def _in_mig(check: Check, gpus: set[int], expected: Expectation) -> Finding:
    """Nothing to judge where the stack asked for MIG; where it did not, gpu.mig says what to do."""
    subject = f"GPU{min(gpus)}" if len(gpus) == 1 else "host"
    of = f"GPU {ranges(gpus)}" if len(gpus) == 1 else f"GPUs {ranges(gpus)}"
    if expected.mig:
        message = f"{of} in MIG mode, as the stack asked: no peer to reach"
        return check.finding(Verdict.NOT_APPLICABLE, subject, message)
    message = f"{of} in MIG mode: the pairs cannot be judged; see gpu.mig"
    return check.finding(Verdict.UNKNOWN, subject, message, remedy="Mend what gpu.mig says, and validate again.")


def _cells(wanted: str | tuple[tuple[str, ...], ...], gpus: tuple[int, ...]) -> dict[Pair, str]:
    """The expected cell of every ordered pair."""
    pairs = [(a, b) for a in gpus for b in gpus if a != b]
    if isinstance(wanted, str):
        return dict.fromkeys(pairs, wanted)
    place = {gpu: index for index, gpu in enumerate(gpus)}
    return {(a, b): wanted[place[a]][place[b]] for a, b in pairs}


def _subject(pairs: list[Pair]) -> str:
    """The pair, the one GPU that is in every bad pair, else the host."""
    if len(pairs) == 1:
        return f"GPU{pairs[0][0]}-GPU{pairs[0][1]}"
    common = set(pairs[0]).intersection(*pairs[1:])
    return f"GPU{common.pop()}" if len(common) == 1 else "host"


def _tally(status: Mapping[Pair, str]) -> str:
    return listed(f"{word} for {count}" for word, count in Counter(status.values()).most_common())
