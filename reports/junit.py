"""JUnit XML: a suite a checkpoint, a test for every cell and every edge of its lattice.

A test's name is made of switches and values only, so it is the same in every run and a server can
follow it over time. Two outcomes have no word in JUnit: a vacuous comparison is a failure, since it
must not look like a pass; an inapplicable or refused one is skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from xml.etree import ElementTree as Xml

from harness.record import Comparison, PairRecord
from reports.load import Run
from reports.view.cells import differing, in_words
from reports.view.lattice import lattices
from reports.view.looks import SEVERITY, State, worst
from reports.view.margins import tightest
from reports.view.text import plural, shortened, visible

MAX_REASONS = 5
MAX_CHARACTERS = 4_000


def junit(run: Run) -> bytes:
    """The document, UTF-8 with its declaration. Attributes and order are those of JUnit 10."""
    root = Xml.Element("testsuites", {"name": "pooling-parity"})
    names = [c.name for c in run.manifest.checkpoints]
    names += [p.checkpoint for p in run.pairs] + [r.checkpoint for r in run.refusals]
    suites = [_suite(run, name) for name in dict.fromkeys(names)]
    for attribute in ("tests", "failures", "errors"):
        total = sum(int(suite.get(attribute, "0")) for suite in suites)
        root.set(attribute, str(total))
    root.extend(suites)
    Xml.indent(root)
    return bytes(Xml.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _suite(run: Run, checkpoint: str) -> Xml.Element:
    suite = Xml.Element("testsuite", {"name": _text(f"parity.{checkpoint}")})
    own = [f for f in run.findings if f.checkpoint == checkpoint]
    finding_of = {p: f.finding_id for f in own for p in f.pairs}
    reproduce = {f.finding_id: f.reproduce for f in own}
    tests = []
    for (kind, name), pairs in sorted(_groups(run, checkpoint).items()):
        state = worst(p.outcome for p in pairs)
        case = _case(checkpoint, kind, name)
        ids = tuple(dict.fromkeys(finding_of[p.pair_id] for p in pairs if p.pair_id in finding_of))
        _say(case, state, pairs, [f"{i}: {reproduce[i]}" for i in ids])
        tests.append((state, case))
    tests += [(State.REFUSED, case) for case in _refused(run, checkpoint)]
    counted = Counter(state for state, _ in tests)
    suite.set("tests", str(len(tests)))
    suite.set("failures", str(counted[State.FAIL] + counted[State.VACUOUS]))
    suite.set("errors", str(counted[State.ERROR]))
    suite.set("skipped", str(counted[State.INAPPLICABLE] + counted[State.REFUSED]))
    suite.set("timestamp", _text(run.manifest.created))
    spent = sum(e.seconds for e in run.executions.values() if e.checkpoint == checkpoint)
    suite.set("time", f"{spent:.3f}")
    facts = {"run": run.manifest.run_id, "seed": run.manifest.seed, "profile": run.manifest.profile}
    properties = Xml.SubElement(suite, "properties")
    for key, value in {**facts, **run.manifest.environment}.items():
        Xml.SubElement(properties, "property", {"name": _text(key), "value": _text(str(value))})
    suite.extend(case for _, case in tests)
    return suite


def _groups(run: Run, checkpoint: str) -> dict[tuple[str, str], list[PairRecord]]:
    """(kind of comparison, stable name) -> its pairs."""
    groups: dict[tuple[str, str], list[PairRecord]] = {}
    for pair in run.pairs:
        if pair.checkpoint == checkpoint:
            groups.setdefault((str(pair.comparison), _name(pair)), []).append(pair)
    return groups


def _name(pair: PairRecord) -> str:
    if pair.comparison is not Comparison.EDGE:
        return in_words(pair.cell_b) or "the only cell"
    axes = differing(pair.cell_a, pair.cell_b)
    shared = {k: v for k, v in pair.cell_a.items() if k not in axes}
    sides = (
        f"{axis} {pair.cell_a[axis]} against {pair.cell_b.get(axis, 'nothing')}" for axis in axes
    )
    where = f" where {in_words(shared)}" if shared else ""
    return ", ".join(sides) + where


def _case(checkpoint: str, kind: str, name: str) -> Xml.Element:
    attributes = {"classname": _text(f"parity.{checkpoint}.{kind}"), "name": _text(name)}
    return Xml.Element("testcase", {**attributes, "time": "0.000"})


def _refused(run: Run, checkpoint: str) -> Iterable[Xml.Element]:
    """A test for each cell that the engine does not start, skipped with its reason."""
    for lattice in lattices(run):
        if lattice.checkpoint != checkpoint:
            continue
        for cell in lattice.cells:
            if cell.look.css == "refused":
                case = _case(checkpoint, str(Comparison.BASELINE), cell.name)
                Xml.SubElement(case, "skipped", {"message": _text(f"refused: {cell.reason}")})
                yield case


def _say(case: Xml.Element, state: State, pairs: list[PairRecord], findings: Iterable[str]) -> None:
    told = Counter(str(p.outcome) for p in pairs)
    counts = ", ".join(f"{told[s]:,} {s}" for s in map(str, SEVERITY) if told[s])
    message = f"{plural(len(pairs), 'comparison')}: {counts}"
    if state is State.PASS:
        return
    if state is State.INAPPLICABLE:
        Xml.SubElement(case, "skipped", {"message": _text(message)})
        return
    bad = [p for p in pairs if str(p.outcome) == state]
    lines = [message]
    margin = tightest(bad)
    if margin is not None:
        lines.append(f"furthest over its bound: {margin.text}")
    lines += findings
    reasons: Mapping[str, None] = dict.fromkeys(p.reason for p in bad)
    lines += list(reasons)[:MAX_REASONS]
    if len(reasons) > MAX_REASONS:
        lines.append(f"… and {plural(len(reasons) - MAX_REASONS, 'reason')} more")
    tag = "error" if state is State.ERROR else "failure"
    element = Xml.SubElement(case, tag, {"type": str(state), "message": _text(message)})
    element.text = _text("\n".join(lines))


def _text(text: str) -> str:
    """Fit for XML 1.0, which has no control characters, escaped or not."""
    return visible(shortened(text, MAX_CHARACTERS))
