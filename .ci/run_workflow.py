"""Runs the steps of a GitHub workflow on this machine, from the same file: what CI will do.

    python .ci/run_workflow.py JOB [--file FILE] [--only ID ...] [--dry-run]

Shell steps run in order, in bash as GitHub runs them, with the workflow's environment. A step
that fails stops those after it, unless it says `continue-on-error` or they say `always()` or
`!cancelled()`. Steps that use an action cannot run here: they are named and passed over, but what
an upload would take must exist. Anything this script does not understand is an error, no guess.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

WORKFLOW = Path(__file__).resolve().parents[1] / ".github/workflows/parity.yml"
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
# On a machine of one's own there is no main branch being published.
CONDITIONS = {
    "always()": (False, True),
    "!cancelled()": (False, True),
    "success()": (False,),
    "failure()": (True,),
}
"""Condition -> whether an earlier step has failed, where it holds."""
REMOTE = re.compile(r"github\.ref == '[^']*'|vars\.\w+ == '[^']*'")
MISUSE = 2


class NotUnderstoodError(Exception):
    """The workflow says something that this script cannot do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How one step ended: `ok`, `failed`, `failed, tolerated`, `skipped` or `not here`."""

    name: str
    ended: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code of the job: 0 when every step that counts passed, 1 when one failed, 2 misuse."""
    parser = argparse.ArgumentParser(prog="run_workflow.py", description=__doc__.split("\n")[0])
    parser.add_argument("job", help="name of a job in the workflow")
    parser.add_argument("--file", type=Path, default=WORKFLOW, help="default: %(default)s")
    parser.add_argument("--only", nargs="+", metavar="ID", help="only the steps with these ids")
    parser.add_argument("--dry-run", action="store_true", help="print the commands, run nothing")
    options = parser.parse_args(arguments)
    try:
        workflow = yaml.safe_load(options.file.read_text(encoding="utf-8"))
        job = workflow["jobs"].get(options.job)
        if job is None:
            raise NotUnderstoodError(
                f"no job {options.job!r}; valid: {', '.join(workflow['jobs'])}"
            )
        environment = {**workflow.get("env", {}), **job.get("env", {})}
        results = run(job["steps"], environment, only=options.only, dry_run=options.dry_run)
    except (OSError, yaml.YAMLError, KeyError, NotUnderstoodError) as error:
        sys.stderr.write(f"run_workflow.py: {options.file}: {error}\n")
        return MISUSE
    for result in results:
        sys.stdout.write(f"{result.ended:<18}{result.name}\n")
    return int(any(result.ended == "failed" for result in results))


def run(
    steps: Sequence[Mapping[str, Any]],
    environment: Mapping[str, str],
    *,
    only: Sequence[str] | None = None,
    dry_run: bool = False,
) -> list[Result]:
    """Every step in turn. Raises NotUnderstoodError before anything runs."""
    known = {step["id"] for step in steps if "id" in step}
    if only and set(only) - known:
        raise NotUnderstoodError(f"no step {sorted(set(only) - known)}; valid: {sorted(known)}")
    for step in steps:
        _wanted(step, failed=False)
        if "run" in step and EXPRESSION.search(step["run"]):
            raise NotUnderstoodError(f"expression in {_name(step)!r}: {step['run']}")
    results: list[Result] = []
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        summary = Path(scratch) / "summary.md"
        summary.touch()
        values = {**os.environ, **environment, "CI": "true", "GITHUB_STEP_SUMMARY": str(summary)}
        for step in steps:
            if only and step.get("id") not in only:
                continue
            ended = "skipped"
            if _wanted(step, failed=failed):
                ended = _step(step, values, dry_run=dry_run)
            failed = failed or ended == "failed"
            results.append(Result(name=_name(step), ended=ended))
        if summary.stat().st_size:
            sys.stdout.write(f"--- job summary\n{summary.read_text(encoding='utf-8')}---\n")
    return results


def _name(step: Mapping[str, Any]) -> str:
    return str(step.get("name") or step.get("uses") or step["run"].strip().splitlines()[0])


def _wanted(step: Mapping[str, Any], *, failed: bool) -> bool:
    condition = EXPRESSION.sub(r"\1", str(step.get("if", "success()")))
    wanted = True
    for part in condition.split(" && "):
        if REMOTE.fullmatch(part):
            wanted = False
        elif part in CONDITIONS:
            wanted = wanted and failed in CONDITIONS[part]
        else:
            raise NotUnderstoodError(f"condition {part!r} of {_name(step)!r}")
    return wanted


def _step(step: Mapping[str, Any], environment: Mapping[str, str], *, dry_run: bool) -> str:
    if "uses" in step:
        return _action(step, dry_run=dry_run)
    sys.stdout.write(f"--- {_name(step)}\n{step['run'].rstrip()}\n")
    sys.stdout.flush()
    if dry_run:
        return "not run"
    own = {**environment, **step.get("env", {})}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env=own,
        check=False,
    )
    if done.returncode == 0:
        return "ok"
    return "failed, tolerated" if step.get("continue-on-error") is True else "failed"


def _action(step: Mapping[str, Any], *, dry_run: bool) -> str:
    given = step.get("with", {})
    if not dry_run and given.get("if-no-files-found") == "error":
        paths = [p for p in str(given["path"]).splitlines() if p.strip()]
        if not any(Path(p).exists() for p in paths):
            sys.stdout.write(f"nothing to upload: {', '.join(paths)}\n")
            return "failed"
    return "not here"


if __name__ == "__main__":
    sys.exit(main())
