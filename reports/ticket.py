"""A finding as text for an issue tracker: Markdown that whoever reads it there can act on.

As in the job's summary, everything recorded stands in code spans and code blocks, where no tag,
link or mention is read.
"""

from __future__ import annotations

from collections.abc import Iterable

from reports.markdown import block, span, table
from reports.view.findings import FindingView
from reports.view.setup import Setup
from reports.view.text import plural, shortened

MAX_TRUTH = 32
MAX_SCRIPT_CHARACTERS = 12_000
"""Trackers take about 65,000 characters; a longer script stays in the report."""
MAX_PROMPTS = 4


def ticket(finding: FindingView, setup: Setup) -> str:
    """The whole text, without a heading: its first line is fit for the title."""
    return "\n\n".join(_parts(finding, setup)) + "\n"


def _parts(finding: FindingView, setup: Setup) -> Iterable[str]:
    yield span(shortened(finding.title, 300))
    at = f" {finding.worst_where}" if finding.worst_where else ""
    yield (
        f"{finding.look.word} on {span(finding.checkpoint)}, task {span(finding.tasks)}, found by "
        f"running the same case in different ways. Worst{at}: "
        f"{span(finding.worst)}{f' ({finding.share})' if finding.share else ''}."
    )
    yield "\n".join(f"- {name}: {value}" for name, value in _facts(finding))
    if setup.plants:
        planted = ", ".join(span(plant) for plant in setup.plants)
        yield f"This run had a fault planted on purpose: {planted}. It is no bug of the engine."
    if finding.truth:
        yield "Every way of running the smallest case:"
        yield _truth(finding)
    yield f"The smallest case: {plural(len(finding.prompts) + finding.more_prompts, 'prompt')}."
    if finding.parameters:
        yield "\n".join(f"- {span(k)}: {span(shortened(v, 200))}" for k, v in finding.parameters)
    shown = sorted(finding.prompts, key=lambda p: p.index)[:MAX_PROMPTS]
    yield from (block(p.text, "text") for p in shown if p.text)
    yield from _reproduction(finding)
    yield "Seen on:"
    yield _environment(setup)


def _facts(finding: FindingView) -> Iterable[tuple[str, str]]:
    yield "when", span(finding.fails_when)
    if finding.hidden.by:
        yield "hidden by", ", ".join(span(str(m)) for m in finding.hidden.by)
    for name, _, values in finding.conditions.named:
        yield name.lower(), ", ".join(span(value) for value in values)
    if finding.divergence:
        yield "first difference", finding.divergence
    if finding.oracle:
        yield "oracle", span(finding.oracle)


def _truth(finding: FindingView) -> str:
    lines = finding.truth[:MAX_TRUTH]
    rows = [[x.look.word, *(span(v) for v in x.values), span(x.value or "-")] for x in lines]
    told = table(["outcome", *(span(axis) for axis in finding.axes), "value"], rows)
    left = len(finding.truth) - len(lines)
    return told + (f"\n\n… and {plural(left, 'way')} more in the report." if left else "")


def _reproduction(finding: FindingView) -> Iterable[str]:
    if finding.reproduce:
        yield "Beside the run's records:"
        yield block(finding.reproduce, "sh")
    if not finding.script:
        return
    if len(finding.script) > MAX_SCRIPT_CHARACTERS:
        yield "A stand-alone script is in the report; it is too long for a tracker."
        return
    yield "Without them, as a script:"
    yield block(finding.script, "python")


def _environment(setup: Setup) -> str:
    rows = [["run", span(f"{setup.run_id}, profile {setup.profile}, seed {setup.seed}")]]
    if setup.commit:
        rows.append(["commit", span(setup.commit)])
    rows += [[span(name), span(shortened(value, 200))] for name, value in setup.environment]
    return table(["what", "value"], rows)
