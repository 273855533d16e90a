"""What all study scripts share: from the command line to an exit code.

What needs torch or Ray is imported once the flags are parsed: `--help` and a mistyped flag wait for neither.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from adalayers.command.flags import parse
from adalayers.errors import BadInput
from adalayers.progress import say
from adalayers.results.redaction import redacted
from adalayers.study import Study

if TYPE_CHECKING:
    from adalayers.results.folder import Folder

DONE, ALL_FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


class Reports(Protocol):
    """What a study needs of the package `reports`, which the library does not import."""

    def write_report(self, folder: Folder, /) -> str: ...
    def write_cover(self, study_root: Folder, folders: list[Folder], /) -> str: ...
    def undecided_arms(self, folder: Folder, /) -> Collection[str]: ...


def main(study: Study, reports: Reports, argv: Sequence[str] | None = None) -> int:
    """Run a study script; return its exit code: 0 done, 1 all trials failed, 2 bad input, 130 interrupted.

    reports: the package of that name
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    command = " ".join([f"python studies/{study.name}.py", *(redacted(word) for word in argv)])
    try:
        flags = parse(study, argv)
        from adalayers.command.cases import cases

        found = cases(study, flags)
        if flags.dry_run:
            from adalayers.command.estimate import describe

            for case in found:
                print(describe(case.prepared, case.plan, flags))
            return DONE
        from adalayers.command.run import run

        ended = run(study, flags, found, reports=reports, command=command)
    except BadInput as error:
        say(f"error: {error}")
        return BAD_INPUT
    except KeyboardInterrupt:
        ended = "interrupted"
    if ended == "interrupted":
        say(f"interrupted; continue with: {command}")
        return INTERRUPTED
    return ALL_FAILED if ended == "all failed" else DONE
