"""What is done with a results folder: adalayers list, export, sync, and inspect of a trained task."""

from __future__ import annotations

from typing import Literal

from adalayers.console.progress import duration, show
from adalayers.errors import BadInput
from adalayers.results.files import HISTORY, TRIALS, read_trials, rows_or_why
from adalayers.results.frames import StudyResults, find_studies
from adalayers.results.study_file import StudyFile, read_study
from adalayers.storage.folder import Folder
from adalayers.storage.lock import is_driven
from adalayers.storage.redaction import redacted
from adalayers.study import SEARCH_BEST


def list_results(folder: str) -> None:
    """Print a line per study in or below a folder: its state, its arms, its trials, and about the time left."""
    root = Folder(folder)
    try:
        folders = find_studies(root)
    except BadInput:
        show(f"no study in or below {root.uri}; adalayers study lists those that can be run")
        return
    below = f"{root.uri}/"
    names = [one.name if one.uri == root.uri else one.uri.removeprefix(below) for one in folders]
    rows = [("study", "state", "arms", "trials", "time left"), *map(_row, names, folders)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        show("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _row(name: str, folder: Folder) -> tuple[str, str, str, str, str]:
    try:
        study = read_study(folder)
        done = len(read_trials(folder)) if folder.exists(TRIALS) else 0
    except BadInput as error:
        return name, f"cannot be read: {error}", "", "", ""
    # A driver that was killed, or that failed before its trials, has left it so.
    ended = study.runs.state == "running" and not is_driven(folder)
    state = "interrupted" if ended else study.runs.state
    return name, state, str(len(study.request.arms)), str(done), _left(study, done)


def _left(study: StudyFile, done: int) -> str:
    """Return about how long a study that has not ended has to run, from the mean time of its trials so far."""
    request, runs = study.request, study.runs
    searches = sum(map(bool, request.spaces.values()))
    found = any(arm.role in ("best", "tuned") or SEARCH_BEST in arm.aliases for arm in request.arms)
    to_come = 0 if found or not request.trials else request.seeds  # of the arm that a search finds
    left = searches * (request.trials + to_come)
    left += (len(request.rates) + request.seeds) * len(request.arms) - done
    if runs.state == "finished" or left <= 0 or not done or not runs.concurrency:
        return ""
    return f"about {duration(left * runs.training_seconds / done / runs.concurrency)}"


def export(folder: str, form: Literal["latex", "csv", "json"]) -> None:
    """Print a study's tables for a paper."""
    from adalayers.results.export import export

    print(export(StudyResults(folder), form), end="")


def sync(folder: str, tracking_uri: str | None = None) -> None:
    """Mirror a results folder to MLflow. Raises `BadInput` where its trials have no curves: runs are written once."""
    from adalayers.tracking.mirror import default_uri, sync

    results = Folder(folder)
    history, why = rows_or_why(results, HISTORY)
    if why or (history.empty and results.exists(TRIALS) and "completed" in {*read_trials(results)["status"]}):
        raise BadInput(
            f"wanted {HISTORY}, the curves of the trials, in {redacted(results.uri)}, {why or 'it has none'}; restore "
            "it from a copy"
        )
    uri = tracking_uri or default_uri(results.parent().parent())
    written = sync(results, uri)
    show(f"{written} trials written to MLflow at {redacted(uri)}; those already there were left as they are")


def inspect(folder: str) -> None:
    """Print what a trained task is, and what it costs."""
    from adalayers.deploy.model_card import model_card
    from adalayers.deploy.task import TrainedTask

    show(model_card(TrainedTask.from_pretrained(folder).model).text)
