"""A dataset as a task, without a backbone."""

from adalayers.request import DataRequest
from adalayers.tasks import task


def load_task(dataset, **asked):
    """Return a dataset as the task that a request for it alone makes it."""
    return task.load_task(DataRequest(dataset=dataset, **asked))
