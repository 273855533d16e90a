"""adalayers predict: what trained tasks say of texts, those of one base model on one pass."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal

import torch

from adalayers.backbones.sources import BackboneSource
from adalayers.console.progress import show
from adalayers.deploy.model_card import study_of
from adalayers.deploy.predictions import task_kind
from adalayers.deploy.predictor import Predictor
from adalayers.deploy.task import TrainedTask
from adalayers.errors import BadInput
from adalayers.models.model import FusionModel
from adalayers.models.saved import base_model_source
from adalayers.storage.hub import first_line

logger = logging.getLogger(__name__)

Form = Literal["text", "jsonl"]

AT_ONCE = 256
"""Lines that are read, and answered in the order of their length, before any is printed."""


def predict(
    folders: Sequence[str],
    *,
    texts: Sequence[str] | None = None,
    file: str | None = None,
    form: Form = "text",
    backbone: str | None = None,
    data_dir: str | None = None,
    max_length: int | None = None,
    words: bool = False,
) -> None:
    """Print the answers of trained tasks to standard output; progress goes to standard error.

    Lines without a word are left out, and counted.

    Args:
        folders:    Of trained tasks: `best/` folders, saved ones, or ids of the hub.
        texts:      The texts themselves.
        file:       With one text a line. Neither: standard input, one a line.
        form:       Of the answers.
        backbone:   Where the base model is; None: by the id that the folders name.
        data_dir:   A folder of local copies of base models.
        max_length: Most tokens of a text.
        words:      Whether lines are words separated by white space already.

    Raises:
        BadInput: Tasks of different base models, or what cannot be read.
    """
    if max_length is not None and max_length < 3:  # a token between two special ones
        raise BadInput(f"wanted --max-length of at least 3, got {max_length}; raise it")
    lines = _texts(_lines(texts, file))
    tasks, source = _tasks(folders, backbone, data_dir)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    predictor = Predictor(tasks, source, device=device, max_length=max_length, apart=words)
    if predictor.whole and any(task_kind(task).per_word for task in tasks.values()):
        logger.info(
            "texts are read whole, for the tasks share a pass; --words reads all of them word by word"
        )
    while chunk := list(islice(lines, AT_ONCE)):
        answers = predictor.predict([text for _, text in chunk])
        for (number, text), of_text in zip(chunk, answers, strict=True):
            if form == "jsonl":
                answered = {name: asdict(answer) for name, answer in of_text.items()}
                show(json.dumps({"line": number, "text": text, "tasks": answered}))
            else:
                said = (f"   {name}: {answer}" for name, answer in of_text.items())
                show("\n".join([f"{number}: {text}", *said]))
    if predictor.cut:
        logger.warning(
            f"{predictor.cut} texts were cut to {predictor.max_length} tokens; words beyond have no answer"
        )


def _tasks(
    folders: Sequence[str], backbone: str | None, data_dir: str | None
) -> tuple[dict[str, FusionModel], BackboneSource]:
    """Return the tasks by name, and where their base model is. Raises `BadInput` where they have several."""
    models = [
        TrainedTask.from_pretrained(folder, backbone=backbone, data_dir=data_dir).model for folder in folders
    ]
    source = base_model_source(models[0].about, models[0].shape, backbone, data_dir)
    tasks: dict[str, FusionModel] = {}
    for folder, model in zip(folders, models, strict=True):
        base = model.about.get("backbone", {})
        if (base.get("fingerprint"), base.get("dtype", source.dtype)) != (source.fingerprint, source.dtype):
            raise BadInput(
                f"wanted tasks of one base model, {folders[0]} has {source.id!r}, {folder} has {base.get('id')!r} or "
                "another revision or dtype of it; ask them one after the other"
            )
        study = study_of(model.about)
        name = study.dataset.name if study else Path(folder).resolve().name
        while name in tasks:
            name = f"{name}-{1 + len(tasks)}"
        tasks[name] = model
    return tasks, source


def _lines(texts: Sequence[str] | None, file: str | None) -> Iterable[bytes]:
    """Return the lines to be read: the texts, those of the file, or of standard input."""
    if texts is not None:
        return [text.encode("utf-8", "surrogateescape") for text in texts]
    if file is None:
        return sys.stdin.buffer
    try:
        return _whole(Path(file).open("rb"))
    except (OSError, ValueError) as error:  # ValueError: a NUL
        raise BadInput(
            f"wanted a file of texts, {file!r} cannot be read ({first_line(error)}); check the path"
        ) from error


def _whole(stream: BinaryIO) -> Iterator[bytes]:
    with stream:
        yield from stream


def _texts(stream: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """Yield the lines that hold a word, each with its number from 1."""
    empty = odd = 0
    for number, line in enumerate(stream, start=1):
        text = line.decode("utf-8", errors="replace").strip("\ufeff\r\n")
        odd += "\ufffd" in text
        if text.strip():
            yield number, text
        else:
            empty += 1
    if empty:
        logger.warning(f"lines without a word, left out: {empty}")
    if odd:
        logger.warning(f"lines that are no UTF-8, of which letters are lost: {odd}; convert them")
