"""`parity known`: accept a finding until a day, with its smallest case, and take it out again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.errors import UsageError
from harness.cli.gate import RULES

if TYPE_CHECKING:
    from harness.record import FindingRecord, RunManifest
    from reports.ledger import KnownFinding

app = typer.Typer(
    help="The ledger of known findings: accept one until a day, list them, take one out.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Rules = Annotated[Path, typer.Option(help="Rules file that holds the ledger")]


@app.command()
def add(
    finding: Annotated[str, typer.Argument(help="Id of a finding, or its first characters")],
    *,
    owner: Annotated[str, typer.Option(help="Who sees to it")] = "",
    link: Annotated[str, typer.Option(help="Where it is tracked")] = "",
    expires: Annotated[str, typer.Option(help="Last day on which it may fail: 2027-01-31")] = "",
    reason: Annotated[str, typer.Option(help="Why it is accepted")] = "",
    any_policy: Annotated[
        bool, typer.Option("--any-policy", help="Accept it under whatever stream policy it shows")
    ] = False,
    run: Annotated[
        str | None, typer.Option(help="Run the finding is in; default: the newest")
    ] = None,
    rules: Rules = RULES,
) -> None:
    """Accept a finding of a run, and keep its smallest case beside the ledger.

    Every later run replays that case first. The file holds the case's prompts: review it before it
    is committed. A finding that has an entry already needs no owner; its case is kept. Which stream
    policies show a finding depends on how long was searched: --any-policy accepts it under all.
    """
    from harness.cli.ledger_text import rewrite, with_entry
    from harness.known_cases import keep, known_case
    from reports.view.changes import identity

    manifest, found = _finding(finding, run)
    case = known_case(found, manifest)
    there = [entry for entry in _entries(rules) if entry.matches(found)]
    if there and (owner or link or expires or reason):
        raise UsageError(
            f"{rules} has an entry for {found.finding_id} already: {there[0].name}, owner "
            f"{there[0].owner}, until {there[0].expires}. Leave --owner, --link, --expires and "
            "--reason out to keep its case, or take it out first: parity known drop"
        )
    if not there:
        entry = _entry(found, owner=owner, link=link, expires=expires, reason=reason)
        if any_policy:
            entry = replace(entry, finding_id="", signature=f"{identity(found)}; policy=*")
        rewrite(rules, lambda text: with_entry(text, entry))
        typer.echo(f"{rules}: {found.finding_id} may fail until {entry.expires} ({owner})")
    path = keep(case, rules)
    typer.echo(f"{path}: its smallest case, with its prompts; review both and commit them")


@app.command()
def drop(
    name: Annotated[
        str, typer.Argument(help="Id or signature of the entry, or id of its kept case")
    ],
    *,
    rules: Rules = RULES,
) -> None:
    """Take a finding out of the ledger, and the case that was kept of it."""
    from harness.cli.ledger_text import rewrite, without_entry
    from harness.known_cases import kept, path_of

    cases = kept(rules)
    own = [case.finding for case in cases if case.finding.finding_id == name]
    gone = [e for e in _entries(rules) if e.name == name or any(e.matches(f) for f in own)]
    if not gone:
        known = ", ".join(entry.name for entry in _entries(rules)) or "none"
        raise UsageError(f"{rules} has no entry {name!r}; it has {known}")
    for entry in gone:
        rewrite(rules, partial(without_entry, name=entry.name))
        typer.echo(f"{rules}: {entry.name} is out")
    left = _entries(rules)
    for case in cases:
        covered = any(entry.matches(case.finding) for entry in left)
        if any(entry.matches(case.finding) for entry in gone) and not covered:
            path = path_of(rules, case.finding.finding_id)
            path.unlink()
            typer.echo(f"{path}: removed")


@app.command("list")
def list_(*, rules: Rules = RULES) -> None:
    """The entries, whether each has expired, and whether its smallest case is kept."""
    from harness.known_cases import kept

    cases = kept(rules)
    today = datetime.now(UTC).date()
    entries = _entries(rules)
    for entry in entries:
        own = [c.finding.finding_id for c in cases if entry.matches(c.finding)]
        state = "until" if today <= entry.expires else "EXPIRED"
        stored = f"case kept: {', '.join(own)}" if own else "no case kept"
        typer.echo(f"{entry.name}: {entry.owner}, {state} {entry.expires}, {entry.link}; {stored}")
    typer.echo(f"{rules}: {len(entries)} known")


def _finding(wanted: str, run: str | None) -> tuple[RunManifest, FindingRecord]:
    from harness.cli.folders import run_folder
    from harness.cli.replay import find_finding
    from harness.record import read_manifest, read_records

    folder = run_folder(run)
    return read_manifest(folder), find_finding(folder.name, wanted, list(read_records(folder)))


def _entries(rules: Path) -> tuple[KnownFinding, ...]:
    from reports.gate import read_rules

    return read_rules(rules).known if rules.is_file() else ()


def _entry(
    finding: FindingRecord, *, owner: str, link: str, expires: str, reason: str
) -> KnownFinding:
    from reports.ledger import KnownFinding

    given = {"--owner": owner, "--link": link, "--expires": expires}
    lacking = [name for name, value in given.items() if not value.strip()]
    if lacking:
        raise UsageError(
            f"{finding.finding_id} has no entry yet, and a new one lacks {', '.join(lacking)}: a "
            "known finding has an owner, a link to where it is tracked, and the last day on which "
            "it may fail"
        )
    try:
        last = date.fromisoformat(expires)
    except ValueError as error:
        raise UsageError(f"--expires takes a day such as 2027-01-31, got {expires!r}") from error
    if last < datetime.now(UTC).date():
        raise UsageError(f"--expires {expires} has passed: the finding would fail at once")
    return KnownFinding(
        finding_id=finding.finding_id, owner=owner, link=link, expires=last, reason=reason
    )
