"""Which examples also stand in train: `python -m adalayers.command.shared_examples FOLDER...`, of studies that ran.

A page then says what a study found without them.
"""

from __future__ import annotations

import dataclasses
import os
import sys

from adalayers.command.repeat import data_request
from adalayers.data.prepare import read_task
from adalayers.errors import BadInput
from adalayers.results.measures import write_shared
from adalayers.results.study_file import read_study
from adalayers.storage.folder import Folder
from adalayers.tasks.task import Task


def add_shared(folder: Folder, task: Task) -> None:
    """Write the indices of a task's shared examples into `measures.json`, where there are any."""
    if any(task.shared.values()):
        write_shared(folder, {role: index.tolist() for role, index in task.also_in_train.items()})


def add_from_data(folder: Folder) -> None:
    """Read the data of a study again, and write which of its examples are shared.

    Raises:
        BadInput: The data cannot be had, or are others than those of the study.
    """
    study = read_study(folder)
    there = study.environment.dataset
    request = data_request(study, data_dir=os.environ.get("ADALAYERS_DATA"))
    train, validation, test = (there.examples.get(role) for role in ("train", "validation", "test"))
    sized = dataclasses.replace(request, train_examples=train, eval_examples=validation, test_examples=test)
    task = read_task(sized)
    if (task.fingerprint, task.shared) != (there.fingerprint, there.shared):
        raise BadInput(
            f"wanted {there.name} as {folder.uri} read it ({there.fingerprint}), got other data ({task.fingerprint}); "
            "restore them, or name the folder above them with ADALAYERS_DATA"
        )
    add_shared(folder, task)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        add_from_data(Folder(argument))
