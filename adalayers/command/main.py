"""What all study scripts share: from the command line to an exit code.

What needs torch or Ray is imported once the flags are parsed: `--help` and a mistyped flag wait for neither.
"""

from __future__ import annotations

import contextlib
import logging
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from adalayers.command.flags import parse
from adalayers.console.command_line import DONE, run_command
from adalayers.console.interrupts import INTERRUPTED, Interrupts
from adalayers.console.progress import show
from adalayers.installed import code_hash, own_module, require_own_script
from adalayers.storage.redaction import redacted
from adalayers.study import Study

if TYPE_CHECKING:
    from adalayers.storage.folder import Folder

logger = logging.getLogger(__name__)


def main(study: Study, argv: Sequence[str] | None = None, *, program: str = "") -> int:
    """Run a study script; return its exit code: 0 done, 1 most trials failed, 2 bad input, 130 interrupted.

    Args:
        study: The study.
        argv: The words behind the program's; None: those of this process.
        program: What was called; "": the script of this process, with `argv` that in `studies`.
    """
    if argv is None:
        program, argv = shlex.join(["python", sys.argv[0]]), sys.argv[1:]
    words, program = argv, program or f"python studies/{study.name}.py"
    interrupts = Interrupts("")

    def run() -> int:
        try:
            with interrupts.listening():
                code, _ = run_study(study, words, program, interrupts)
        except KeyboardInterrupt:
            code = INTERRUPTED
        if code == INTERRUPTED:
            logger.warning(interrupts.last_words)
        return code

    return run_command(run)


def run_study(
    study: Study, argv: Sequence[str], program: str, interrupts: Interrupts
) -> tuple[int, list[Folder]]:
    """Run a study; return its exit code, and the folders of its cases.

    Args:
        study: The study.
        argv: Its flags.
        program: The first words of its command, as a shell takes them.
        interrupts: Gets the last words of a run that is interrupted: the command that goes on with it.

    Raises:
        BadInput: For whatever the user can fix.
    """
    interrupts.last_words = f"interrupted; continue with: {_command(program, argv)}"
    # Where an earlier study was set aside, the same words again would set this one aside.
    again = [word for word in argv if word != "--fresh"]
    command = _command(program, again)
    require_own_script()
    flags = parse(study, argv, command, program.removeprefix("python "))
    code_hash()  # of what is about to be imported: workers compare theirs with it
    from adalayers.command.cases import cases

    if flags.dry_run:
        from adalayers.command.estimate import describe

        for case in cases(study, flags):
            show(describe(case, flags))
        return DONE, []
    from adalayers.command.run import move_aside, run
    from adalayers.storage.lock import one_driver

    with contextlib.ExitStack() as drivers:
        found = cases(study, flags, lambda folder: drivers.enter_context(one_driver(folder, command)))
        own_module("reports").check()
        if flags.fresh:
            move_aside([case.folder for case in found])
            interrupts.last_words = f"interrupted; continue with: {command}"
        return run(study, flags, found), [case.folder for case in found]


def _command(program: str, words: Sequence[str]) -> str:
    return " ".join([program, *(shlex.quote(redacted(word)) for word in words)])
