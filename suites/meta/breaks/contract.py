"""Breaks of `suites/contract`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from suites.meta.planting import instead
from suites.meta.planting.defect import Break


def _nothing_unexpected(check: Callable[..., None]) -> Callable[..., None]:
    """`Checkpoint.check`, which lets any tensor through that the model has no place for."""

    def function(checkpoint: Any, expected: Any, *, optional: Any, ignorable: Any) -> None:
        check(checkpoint, expected, optional=optional, ignorable=(*ignorable, ".*"))

    return function


def _folder_first(build_spec: Callable[..., Any]) -> Callable[..., Any]:
    """`build_spec`, which makes the folder of runs before it looks at what was asked."""

    def function(**asked: Any) -> Any:
        importlib.import_module("harness.cli.folders").runs_root().mkdir(parents=True)
        return build_spec(**asked)

    return function


def _forgetful_copy(read_text: Callable[..., str]) -> Callable[..., str]:
    """`Path.read_text`, which reads a Containerfile that forgets the reports."""

    def function(path: Path, *args: Any, **kwargs: Any) -> str:
        text = read_text(path, *args, **kwargs)
        return text.replace("COPY reports reports\n", "") if path.name == "Containerfile" else text

    return function


def _undocumented(command: Callable[..., None]) -> Callable[..., None]:
    """A command without a word on what it does."""
    command.__doc__ = None
    return command


def _behind_the_first_case(append: Callable[..., None]) -> Callable[..., None]:
    """`RunWriter.append`, to which replays come only once a drawn case was recorded."""
    held: list[Any] = []

    def function(writer: Any, record: Any) -> None:
        if record.kind == "replay":
            held.append(record)
            return
        append(writer, record)
        while record.kind == "case" and held:
            append(writer, held.pop(0))

    return function


def _silent_if_vacuous(say: Callable[..., None]) -> Callable[..., None]:
    """`_say`, which writes a vacuous comparison as JUnit has a test that passed."""

    def function(case: Any, state: Any, pairs: Any, findings: Any) -> None:
        if state != "VACUOUS":
            say(case, state, pairs, findings)

    return function


def _moved_up(result: Any) -> Any:
    """A run's result, its answers moved up by one if a request was refused."""
    if not result.refused:
        return result
    names = list(result.outputs)
    moved = zip(names, [*names[1:], names[0]], strict=True)
    return replace(result, outputs={name: result.outputs[other] for name, other in moved})


def _in_place(reopen: Callable[..., Any]) -> Callable[..., Any]:
    """`RunWriter.reopen`, which writes over the old records."""
    line, to_json = (reopen.__globals__[name] for name in ("_line", "to_json"))

    def function(cls: Any, folder: Path, manifest: Any, kept: Any) -> Any:
        with (folder / "records.jsonl").open("wb") as lines:
            for record in kept:
                lines.write(line(to_json(record)))
                lines.flush()
        return cls(folder, manifest)

    return function


def _set_aside(pair: Any) -> Any:
    """A pair of which a side crashed, as one that its switch cannot act on."""
    outcome = type(pair.outcome)
    return replace(pair, outcome=outcome("INAPPLICABLE")) if pair.outcome == "ERROR" else pair


def _last_bit_lost(encoded: Callable[..., Any]) -> Callable[..., Any]:
    """`encoded`, which changes the last bit of the first number."""

    def function(values: Any, encoding: str) -> Any:
        values = values.clone()
        first = values.view(-1)[:1]
        first.copy_(first.nextafter(first + 9))
        return encoded(values, encoding)

    return function


def _one_ulp_off(output: Any) -> Any:
    """An output, every number of it replaced by the next one."""
    nextafter = importlib.import_module("numpy").nextafter
    return type(output).of(nextafter(output.data, output.data + 9))


def _own_summand_only(_: Callable[..., Any]) -> Callable[..., Any]:
    """`_collect`, which gathers nothing: every rank goes on with its own summand."""

    def function(reduce: Any, stream: Any, turn: int, rows: int) -> Any:
        mine = reduce._buffers[turn]
        return lambda: [mine.tensor[:rows]], (mine,)

    return function


def _uncounted(lose: Callable[..., None]) -> Callable[..., None]:
    """`_lose`, which tells of a lost case and does not count it."""

    def function(campaign: Any, *args: Any, **kwargs: Any) -> None:
        lose(campaign, *args, **kwargs)
        campaign._counts["ERROR"] -= 1

    return function


BREAKS: Final = (
    Break(
        name="unexpected-tensors-are-let-through",
        suite="suites/contract/test_checkpoints.py",
        red="test_damage_is_named",
        at="engine.weights:Checkpoint.check",
        instead=_nothing_unexpected,
    ),
    Break(
        name="a-refused-command-leaves-a-folder",
        suite="suites/contract/test_command_line.py",
        red="test_misuse_is_a_message",
        at="harness.cli.run:build_spec",
        instead=_folder_first,
    ),
    Break(
        name="values-are-not-looked-at",
        suite="suites/contract/test_configuration.py",
        red="test_a_value_that_is_wrong_on_its_own",
        at="engine.config:_require",
        instead=instead.returns(None),
    ),
    Break(
        name="the-image-lacks-the-reports",
        suite="suites/contract/test_container.py",
        red="test_what_is_sent_is_what_is_copied",
        at="pathlib:Path.read_text",
        instead=_forgetful_copy,
    ),
    Break(
        name="prompts-stay-in-redacted-records",
        suite="suites/contract/test_deployments.py",
        red="test_redacted_records_hold_no_prompt",
        at="harness.campaign.redact:Redactor.__call__",
        instead=instead.value(lambda redactor, record: record),
    ),
    Break(
        name="what-was-not-looked-for-is-fixed",
        suite="suites/contract/test_diff.py",
        red="test_what_could_not_be_found_is_not_called_fixed",
        at="reports.view.changes:_seen",
        instead=instead.result(bool),
    ),
    Break(
        name="the-gate-trusts-every-record",
        suite="suites/contract/test_gate.py",
        red="test_a_killed_run_an_edited_one_and_a_planted_one_are_refused",
        at="reports.gate.decision:_soundness",
        instead=instead.returns(()),
    ),
    Break(
        name="a-command-is-not-explained",
        suite="suites/contract/test_help.py",
        red="test_every_command_and_option_is_explained",
        at="harness.cli.doctor:doctor",
        instead=_undocumented,
    ),
    Break(
        name="junit-passes-what-is-vacuous",
        suite="suites/contract/test_junit.py",
        red="test_a_vacuous_comparison_is_no_pass",
        at="reports.junit:_say",
        instead=_silent_if_vacuous,
    ),
    Break(
        name="a-redacted-case-is-kept",
        suite="suites/contract/test_known_entries.py",
        red="test_a_redacted_run_has_no_case_to_keep",
        at="harness.known_cases:REDACTED",
        instead=instead.value("nothing is ever redacted"),
    ),
    Break(
        name="the-report-has-no-section-of-what-was-known",
        suite="suites/contract/test_known_fates.py",
        red="test_the_fate_of_a_known_finding_is_told_everywhere",
        at="reports.html.render:build_page",
        instead=instead.result(lambda page: replace(page, known=None)),
    ),
    Break(
        name="what-is-known-waits-for-the-drawn-cases",
        suite="suites/contract/test_known_replay.py",
        red="test_a_known_finding_is_replayed_first_both_ways_round",
        at="harness.record.writer:RunWriter.append",
        instead=_behind_the_first_case,
    ),
    Break(
        name="every-known-finding-still-fails",
        suite="suites/contract/test_known_fates.py",
        red="test_the_fate_of_a_known_finding_is_told_everywhere",
        at="reports.fates:_of_ledger",
        instead=instead.result(lambda told: replace(told, fate=type(told.fate)("still failing"))),
    ),
    Break(
        name="a-code-span-can-be-left",
        suite="suites/contract/test_markdown.py",
        red="test_spans_and_blocks_hold_whatever_stands_in_them",
        at="reports.markdown:span",
        instead=instead.value(lambda text: f"`{text}`"),
    ),
    Break(
        name="a-template-turns-its-answers-round",
        suite="suites/contract/test_own_engine.py",
        red="test_the_shown_commands_pass",
        at="harness.systems.plain:_PlainSession.run",
        instead=instead.result(lambda run: replace(run, outputs=run.outputs[::-1])),
    ),
    Break(
        name="answers-move-up-for-who-was-refused",
        suite="suites/contract/test_requests.py",
        red="test_bad_company_changes_no_bit",
        at="engine.engine:Engine.run",
        instead=instead.result(_moved_up),
    ),
    Break(
        name="a-resumed-run-is-written-over",
        suite="suites/contract/test_resume.py",
        red="test_the_old_records_stay_until_the_new_are_whole",
        at="harness.record.writer:RunWriter.reopen",
        instead=_in_place,
    ),
    Break(
        name="a-crashed-side-is-set-aside",
        suite="suites/contract/test_runs.py",
        red="test_bad_cases_cost_nothing_but_themselves",
        at="harness.campaign.judging:judge_pair",
        instead=instead.result(_set_aside),
    ),
    Break(
        name="a-search-forgets-the-plant",
        suite="suites/contract/test_search.py",
        red="test_the_hardest_cases_join_a_corpus",
        at="harness.trials.bench:TrialBench.plant",
        instead=instead.returns(None),
    ),
    Break(
        name="a-served-row-loses-its-last-bit",
        suite="suites/contract/test_server.py",
        red="test_many_connections_each_get_their_own_bits_and_a_shutdown_loses_none",
        at="engine.server.embeddings:encoded",
        instead=_last_bit_lost,
    ),
    Break(
        name="the-adapter-changes-a-bit",
        suite="suites/contract/test_server_as_system.py",
        red="test_the_verdicts_are_those_of_the_engine_in_process",
        at="harness.systems.wire:array",
        instead=instead.result(_one_ulp_off),
    ),
    Break(
        name="ranks-of-one-process-do-not-sum",
        suite="suites/contract/test_torchrun.py",
        red="test_two_ranks_over_gloo_give_the_bits_of_two_ranks_inline",
        at="engine.collectives:InlineAllReduce._collect",
        instead=_own_summand_only,
    ),
    Break(
        name="the-plant-is-no-difference",
        suite="suites/contract/test_tutorial.py",
        red="test_the_difference_is_new_and_the_plant_is_what_differs",
        at="reports.view.changes:differences",
        instead=instead.returns(()),
    ),
    Break(
        name="lost-cases-are-not-counted",
        suite="suites/contract/test_workers.py",
        red="test_a_case_that_kills_its_worker_costs_itself_only",
        at="harness.campaign.local:LocalCampaign._lose",
        instead=_uncounted,
    ),
    Break(
        name="any-node-will-do",
        suite="suites/contract/test_executors.py",
        red="test_a_node_with_other_software_is_told_apart",
        at="harness.campaign.executors.node:differing",
        instead=instead.returns(""),
    ),
    Break(
        name="nothing-is-masked",
        suite="suites/contract/test_writers.py",
        red="test_redaction_leaves_no_prompt_anywhere",
        at="reports.redaction:_Masker._text",
        instead=instead.value(lambda masker, text: text),
    ),
)
