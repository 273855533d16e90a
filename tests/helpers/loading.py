"""A dataset as a task, without a backbone."""

from typing import Any

from adalayers.request import DataRequest
from adalayers.tasks import task


def load_task(dataset: str, **asked: Any) -> task.Task:
    """Return a dataset as the task that a request for it alone makes it."""
    return task.load_task(DataRequest(dataset=dataset, **asked))
