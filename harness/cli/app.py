"""The command table, and the one place where an exception becomes a message and an exit code."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

import typer

from harness.axes import AxisError
from harness.campaign.executors import ExecutorError
from harness.case import CaseError
from harness.checkpoints.errors import CheckpointError
from harness.cli import (
    approve,
    axes,
    calibrate,
    diff,
    doctor,
    faults,
    gate,
    judge,
    known,
    models,
    replay,
    report,
    rivals,
    run,
    scenario,
    search,
    serve,
    systems,
    trial,
)
from harness.cli.bisect import BISECT, UNTESTABLE
from harness.cli.errors import UsageError
from harness.judge.tolerance import ToleranceError
from harness.record import RecordError
from harness.registry import RegistryError
from harness.systems.base import SystemUnavailable
from reports.gate.rules import RulesError

MISUSE = 2
"""Exit code of a run that could not be judged or a command that could not be understood."""
REFUSALS = (
    UsageError,
    AxisError,
    CaseError,
    CheckpointError,
    ExecutorError,
    RecordError,
    RegistryError,
    RulesError,
    SystemUnavailable,
    ToleranceError,
    OSError,
)
"""What is told as a message: the reader can act on it."""
INTERRUPTED = 130
"""128 + SIGINT, as shells have it."""

EPILOG = """
\b
Exit codes, the first that applies:
  1  a difference, or a finding that the gate does not accept
  2  an error, or misuse of the command
  3  something proved nothing, or nothing was proved
  0  otherwise

\b
Environment:
  PARITY_HOME   where runs and compiled code go (default: .parity)
  PARITY_CACHE  checkpoints and float64 answers (default: ~/.cache/pooling-parity)

\b
Files of a run, in PARITY_HOME/runs/ID:
  run.json       what was known when it started
  records.jsonl  one record a line, flushed as soon as it is known
  outputs/       every output, as safetensors
  report.html    made from the records; `parity report` makes it again

\b
First steps:
  parity doctor
  parity run --profile smoke
  parity run --profile smoke --plant stage-skips-poststep

`parity COMMAND --help` has the rest; README.md and docs/ explain what is shown.
"""
"""Behind `parity --help`: click leaves paragraphs that begin with a backspace as they are."""

app = typer.Typer(
    name="parity",
    epilog=EPILOG,
    context_settings={"max_content_width": 100},
    help="Prove that a pooling engine gives the same answer whichever way it is run, or show "
    "exactly where it does not.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("run")(run.run)
app.command("replay")(replay.replay)
app.command("report")(report.report)
app.command("diff")(diff.diff)
app.command("gate")(gate.gate)
app.add_typer(known.app, name="known")
app.command("faults")(faults.faults)
app.command("rivals")(rivals.rivals)
app.command("search")(search.search)
app.command("scenario")(scenario.scenario)
app.command("axes")(axes.axes)
app.command("approve")(approve.approve)
app.command("calibrate")(calibrate.calibrate)
app.command("judge")(judge.judge)
app.command("models")(models.models)
app.add_typer(systems.app, name="systems")
app.command("doctor")(doctor.doctor)
app.command("serve")(serve.serve)
app.add_typer(trial.app, name="trial")


def run_app(arguments: Sequence[str]) -> int:
    """Exit codes: 0 all passed, 1 a difference, 2 error or misuse, 3 nothing was proved."""
    try:
        app(args=list(arguments), prog_name="parity")
    except SystemExit as request:
        return request.code if isinstance(request.code, int) else int(bool(request.code))
    except REFUSALS as error:
        sys.stderr.write(f"parity: {error}\n")
        return UNTESTABLE if BISECT in arguments else MISUSE
    except Exception:
        if BISECT not in arguments:
            raise
        # Python would end with 1, which a bisection takes for "this commit is bad".
        traceback.print_exc()
        return UNTESTABLE
    except KeyboardInterrupt:
        sys.stderr.write("parity: interrupted; what was recorded so far can be read\n")
        return INTERRUPTED
    return 0
