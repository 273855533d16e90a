"""python -m adalayers predict: what trained tasks say of texts, those of one base model on one pass."""

from __future__ import annotations

import contextlib
import csv
import json
import logging
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, TextIO

import torch

from adalayers.backbones.sources import BackboneSource
from adalayers.console.progress import Rate
from adalayers.deploy.predictions import Prediction, task_kind
from adalayers.deploy.predictor import Predictor, Words
from adalayers.deploy.task import TrainedTask
from adalayers.errors import BadInput
from adalayers.models.model import FusionModel
from adalayers.models.saved import base_model_source

logger = logging.getLogger(__name__)

Form = Literal["text", "jsonl", "csv"]

AT_ONCE = 256
"""Lines that are read, and answered in the order of their length, before any is printed."""

_Write = Callable[[int, str, Mapping[str, Prediction]], None]

_COLUMNS = ("line", "task", "label", "probability", "text", "start", "end")


@dataclass(frozen=True, kw_only=True)
class PredictRequest:
    """What is to be predicted.

    folders:    of trained tasks: `best/` folders, saved ones, or ids of the hub
    text, file: one text; a file with one a line; neither: standard input, one a line
    backbone, data_dir: where the base model is; None: by the id that the folders name
    words:      whether lines are words apart by white space already
    """

    folders: Sequence[str]
    text: str | None = None
    file: str | None = None
    form: Form = "text"
    backbone: str | None = None
    data_dir: str | None = None
    max_length: int | None = None
    words: bool = False


def predict(asked: PredictRequest, out: TextIO | None = None) -> None:
    """Print the answers to standard output, or write them to `out`; progress goes to standard error.

    Lines without a word are left out, and counted. Raises `BadInput` for tasks of different base models, and for what
    cannot be read.
    """
    if asked.max_length is not None and asked.max_length < 1:
        raise BadInput(f"wanted --max-length of at least 1, got {asked.max_length}; raise it")
    with _lines(asked) as lines:
        predictor = _predictor(asked)
        write = _WRITERS[asked.form](out or sys.stdout)
        try:
            while chunk := list(islice(lines, AT_ONCE)):
                answers = predictor.predict([text for _, text in chunk])
                for (number, text), of_text in zip(chunk, answers, strict=True):
                    write(number, text, of_text)
        except BrokenPipeError:  # whoever read the answers has had enough
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # else Python flushes into the pipe once more
    if predictor.cut:
        logger.warning(
            f"{predictor.cut} texts were cut to {predictor.max_length} tokens; words beyond are of no entity"
        )


def _predictor(asked: PredictRequest) -> Predictor:
    """Return what answers for all folders. Raises `BadInput` where their base models differ."""
    tasks: dict[str, FusionModel] = {}
    source: BackboneSource | None = None
    for folder in asked.folders:
        given = {} if asked.backbone is None else {"backbone": asked.backbone}
        task = TrainedTask.from_pretrained(folder, data_dir=asked.data_dir, **given).model
        if source is None:
            source = base_model_source(task.about, asked.backbone, asked.data_dir)
        elif task.about.get("backbone", {}).get("fingerprint") != source.fingerprint:
            of = task.about.get("backbone", {}).get("id", "one that it does not name")
            raise BadInput(
                f"wanted tasks of one base model, {asked.folders[0]} has {source.id!r}, {folder} has {of!r} or another "
                "revision of it; ask them one after the other"
            )
        tasks[_name(task, folder, tasks)] = task
    assert source is not None, "the command line wants at least one folder"
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    words: Words = "apart" if asked.words else "auto"
    predictor = Predictor(tasks, source, device=device, max_length=asked.max_length, words=words)
    if predictor.whole and any(task_kind(task).per_word for task in tasks.values()):
        logger.info(
            "texts are read whole, for the tasks share a pass; --words reads all of them word by word"
        )
    return predictor


def _name(task: FusionModel, folder: str, taken: Collection[str]) -> str:
    """Return what a task is called: its dataset's name, else its folder's; numbered where another has it."""
    data = task.about.get("study", {}).get("dataset", {}).get("name")
    name = data or Path(folder).resolve().name
    return name if name not in taken else f"{name}-{1 + sum(one.startswith(name) for one in taken)}"


@contextlib.contextmanager
def _lines(asked: PredictRequest) -> Iterator[Iterator[tuple[int, str]]]:
    """Yield the lines that hold a word, each with its number from 1. Raises `BadInput` for a file that is not there."""
    if asked.text is not None:
        yield _worded([(0, asked.text.encode("utf-8", "surrogateescape"))], None)
    elif asked.file is None:
        yield _worded(((0, line) for line in sys.stdin.buffer), None)
    else:
        with contextlib.ExitStack() as files:
            try:
                stream = files.enter_context(Path(asked.file).open("rb"))
            except OSError as error:
                raise BadInput(
                    f"wanted a file of texts, {asked.file!r} cannot be read ({error.strerror}); check the path"
                ) from error
            yield _worded(_counted(stream), os.fstat(stream.fileno()).st_size)


def _counted(stream: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield each line with how many bytes there are up to its end."""
    done = 0
    for line in stream:
        done += len(line)
        yield done, line


def _worded(lines: Iterable[tuple[int, bytes]], total: int | None) -> Iterator[tuple[int, str]]:
    """Yield the lines that hold a word, and say how far they are, of a file of `total` bytes."""
    rate, empty = Rate("predict", "kB"), 0
    for number, (done, line) in enumerate(lines, start=1):
        text = line.decode("utf-8", errors="replace").strip("\ufeff\r\n")
        if total:
            rate(done // 1000, max(1, total // 1000))
        if text.strip():
            yield number, text
        else:
            empty += 1
    if empty:
        logger.warning(f"{empty} lines without a word were left out")


def _as_text(out: TextIO) -> _Write:
    def write(number: int, text: str, answers: Mapping[str, Prediction]) -> None:
        print(
            f"{number}: {text}",
            *(f"   {name}: {answer}" for name, answer in answers.items()),
            sep="\n",
            file=out,
        )

    return write


def _as_lines(out: TextIO) -> _Write:
    def write(number: int, text: str, answers: Mapping[str, Prediction]) -> None:
        found = {name: answer.as_json() for name, answer in answers.items()}
        print(json.dumps({"line": number, "text": text, "tasks": found}, ensure_ascii=False), file=out)

    return write


def _as_table(out: TextIO) -> _Write:
    table = csv.DictWriter(out, _COLUMNS, lineterminator="\n")
    table.writeheader()

    def write(number: int, text: str, answers: Mapping[str, Prediction]) -> None:
        for name, answer in answers.items():
            for row in answer.rows():
                table.writerow({"line": number, "task": name, "text": text, **row})

    return write


_WRITERS: dict[Form, Callable[[TextIO], _Write]] = {"text": _as_text, "jsonl": _as_lines, "csv": _as_table}
