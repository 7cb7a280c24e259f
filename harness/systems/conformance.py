"""Whether a system keeps to the protocol: run it before believing a campaign on it.

Every check runs the real system. A switch that shows no trace of having acted is VACUOUS here as it
would be in a campaign, and a system may refuse whatever it cannot do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.axes import ALL_AXES, AXES, Axis, Cell, baseline, inline
from harness.axes.overlap import cannot_overlap
from harness.case import Case, Prompt
from harness.judge import checks
from harness.judge.metrics import bit_difference, error
from harness.judge.output import Output
from harness.judge.subject import Subject
from harness.systems.base import Refused, System, SystemRun

SHARED = 34
"""Tokens that prompts begin alike in: two blocks of the usual size and two tokens."""


class Standing(StrEnum):
    """How a check ended."""

    HOLDS = "holds"
    BROKEN = "BROKEN"
    VACUOUS = "VACUOUS"
    """The system takes the switch and nothing shows that it acted."""
    REFUSED = "refused"
    NOTE = "note"
    """Allowed, and worth knowing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    name: str
    standing: Standing
    detail: str = ""


def exit_code(checks_made: Sequence[Check]) -> int:
    """1: something is broken; 3: a switch is vacuous, or nothing was checked; else 0."""
    standings = {check.standing for check in checks_made}
    if Standing.BROKEN in standings:
        return 1
    return 3 if Standing.VACUOUS in standings or Standing.HOLDS not in standings else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Conformance:
    """Checks of one system on one checkpoint. Owns nothing; the caller closes the system."""

    system: System
    checkpoint: str
    vocabulary: int
    chunk: int
    max_model_len: int

    def run(self) -> Iterator[Check]:
        """Every check, as it ends; a baseline that does not start ends them all."""
        try:
            self._run(baseline(), self._case("embed"))
        except Exception as failure:  # noqa: BLE001 - whatever it raises is what is wrong
            yield Check(
                name="baseline",
                standing=Standing.BROKEN,
                detail=f"does not answer: {_told(failure)}",
            )
            return
        for task in ("embed", "token_embed", "score"):
            if task in self.system.tasks:
                yield from self._answers(task)
        yield self._order()
        yield self._repeat()
        yield from self._mistakes()
        for axis in ALL_AXES.values():
            switched = [
                self._switch(axis, value) for value in axis.values if value != axis.baseline
            ]
            refused = all(found.standing is Standing.REFUSED for found in switched)
            if axis.name in AXES or not refused:  # who has no such switch need not tell of it
                yield self._baseline_witness(axis.name, refused=refused)
            yield from switched
        yield self._closes()

    def _case(self, task: str) -> Case:
        """Prompts with which every switch can act: of both sides of a chunk and of several, ids
        drawn from all over; the last two begin as the third does, over several blocks of keys, and
        a small pool has no room for both."""
        longest = min(4 * self.chunk, self.max_model_len)
        lengths = (1, self.chunk, 2 * self.chunk + 1, longest, 3, 2)
        alike = [self._ids(3, SHARED) + self._ids(6 + i, n) for i, n in enumerate((14, 11))]
        if task == "score":
            texts = (
                "A bridge over the river.",
                "Rain is water that falls.",
                "Two and two is four.",
            )
            return Case(
                task=task,
                prompts=tuple(Prompt(query="What is rain?", document=text) for text in texts),
            )
        return Case(
            task=task,
            prompts=tuple(
                Prompt(tokens=ids)
                for ids in (*(self._ids(i, n) for i, n in enumerate(lengths)), *alike)
            ),
        )

    def _ids(self, prompt: int, length: int) -> tuple[int, ...]:
        low = min(200, self.vocabulary // 4)  # special tokens stand first in most vocabularies
        span = self.vocabulary // 2
        return tuple(low + (prompt * 131 + i * 37) % span for i in range(length))

    def _run(self, cell: Cell, case: Case) -> SystemRun:
        settings = inline(self.system.settings[0])
        prompts = self.system.encode(case)
        return self.system.open(cell, settings).run(case, prompts)

    def _subject(self, case: Case) -> Subject:
        lengths = tuple(len(prompt.token_ids) for prompt in self.system.encode(case))
        return Subject.of(
            case, checkpoint=self.checkpoint, dtype=self.system.dtype, lengths=lengths
        )

    def _answers(self, task: str) -> Iterator[Check]:
        name, case = f"answers {task}", self._case(task)
        try:
            outputs = self._run(baseline(), case).outputs
        except Exception as failure:  # noqa: BLE001 - whatever it raises is what is wrong
            yield Check(name=name, standing=Standing.BROKEN, detail=_told(failure))
            return
        subject = self._subject(case)
        wrong = checks.structure(subject, outputs, outputs) or checks.finite("it", outputs)
        if wrong is None and _alike(subject, outputs):
            wrong = "different prompts have the same answer"
        yield _verdict(name, wrong)

    def _order(self) -> Check:
        case = self._case("embed")
        turned = Case(task="embed", prompts=case.prompts[::-1])
        mine = self._run(baseline(), case).outputs
        other = self._run(baseline(), turned).outputs[::-1]
        subject = self._subject(case)
        for index, output in enumerate(other):
            errors = [error(subject.kind, output, candidate) for candidate in mine]
            if min(range(len(errors)), key=errors.__getitem__) != index:
                return _verdict("order of outputs", f"prompt {index}'s answer is another's")
        return _verdict("order of outputs", None)

    def _repeat(self) -> Check:
        case = self._case("embed")
        first, again = (self._run(baseline(), case).outputs for _ in range(2))
        bits = sum(bit_difference(a, b).differing for a, b in zip(first, again, strict=True))
        if not bits:
            return _verdict("the same again", None)
        kind = self._subject(case).kind
        worst = max(error(kind, b, a) for a, b in zip(first, again, strict=True))
        return Check(
            name="the same again",
            standing=Standing.NOTE,
            detail=f"{bits} elements differ in their bits between two runs, {worst:.3g} at most",
        )

    def _mistakes(self) -> Iterator[Check]:
        """What cannot be answered must be an error, and the next case must not suffer for it."""
        for name, ids in (
            ("refuses an id beyond the vocabulary", (5, self.vocabulary)),
            ("refuses a prompt without tokens", ()),
        ):
            case = Case(task="embed", prompts=(Prompt(tokens=ids),))
            try:
                self._run(baseline(), case)
            except Exception as failure:  # noqa: BLE001 - any error will do
                yield Check(name=name, standing=Standing.HOLDS, detail=_told(failure))
                self.system.discard(baseline(), inline(self.system.settings[0]))
            else:
                yield Check(name=name, standing=Standing.BROKEN, detail="it was answered")
        try:
            self._run(baseline(), self._case("embed"))
        except Exception as failure:  # noqa: BLE001 - whatever it raises is what is wrong
            yield _verdict("answers again after an error", _told(failure))
        else:
            yield _verdict("answers again after an error", None)

    def _baseline_witness(self, name: str, *, refused: bool) -> Check:
        """At rest the switch must be attested too, unless no pair can ever differ in it."""
        run = self._run(baseline(), self._case("embed"))
        reason = ALL_AXES[name].witnessed(baseline(), run.witness)
        label = f"{name}={ALL_AXES[name].baseline}"
        if reason is None:
            return Check(name=label, standing=Standing.HOLDS, detail="attested")
        standing = Standing.NOTE if refused else Standing.VACUOUS
        return Check(name=label, standing=standing, detail=reason)

    def _switch(self, axis: Axis, value: str) -> Check:
        """One value, beside those of other axes that it cannot act without."""
        label, case = f"{axis.name}={value}", self._case("embed")
        cell = Cell.of({**baseline(), **axis.beside, axis.name: value})
        unable = cannot_overlap(cell, inline(self.system.settings[0]))
        if unable is not None:
            return Check(name=label, standing=Standing.NOTE, detail=unable)
        try:
            run = self._run(cell, case)
        except Refused as refusal:
            if not str(refusal).strip():
                return _verdict(label, "refused without a reason")
            return Check(name=label, standing=Standing.REFUSED, detail=str(refusal))
        except Exception as failure:  # noqa: BLE001 - whatever it raises is what is wrong
            self.system.discard(cell, inline(self.system.settings[0]))
            return _verdict(label, _told(failure))
        reason = axis.witnessed(cell, run.witness)
        if reason is None:
            return Check(name=label, standing=Standing.HOLDS, detail="acted")
        return Check(name=label, standing=Standing.VACUOUS, detail=reason)

    def _closes(self) -> Check:
        try:
            self.system.close()
            self.system.close()
        except Exception as failure:  # noqa: BLE001 - whatever it raises is what is wrong
            return _verdict("closes, twice", _told(failure))
        return _verdict("closes, twice", None)


def _alike(subject: Subject, outputs: Sequence[Output]) -> bool:
    first = outputs[0]
    same = [o for o in outputs[1:] if o.shape == first.shape]
    return bool(same) and all(error(subject.kind, o, first) == 0 for o in same)


def _verdict(name: str, wrong: str | None) -> Check:
    standing = Standing.HOLDS if wrong is None else Standing.BROKEN
    return Check(name=name, standing=standing, detail=wrong or "")


def _told(failure: Exception) -> str:
    text = str(failure).strip().partition("\n")[0]
    return f"{type(failure).__name__}: {text}"[:300]
