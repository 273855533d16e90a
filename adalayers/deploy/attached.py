"""Trained tasks on a base model's own passes, several at once (thesis section 5.3)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from adalayers.deploy.hooks import find_stream
from adalayers.deploy.predictions import Prediction, prediction_of
from adalayers.deploy.recorder import PassRecorder
from adalayers.deploy.tokenized import tokenized_inputs
from adalayers.errors import BadInput, unknown
from adalayers.models.model import FusionModel


def attach(base: Any, /, **tasks: FusionModel) -> Attached:
    """Run trained tasks on the passes that a base model runs anyway.

        with adalayers.attach(base, entities=adalayers.load(folder)) as attached:
            output = base(**inputs)               # as without them, bit for bit
            print(attached.answers(texts, inputs)["entities"])

    Args:
        base:  A model of transformers, task models (`RobertaForMaskedLM`, `BartForConditionalGeneration`) included.
        tasks: By a name of your choice.

    Returns:
        What gives the tasks' answers after each pass.

    Raises:
        BadInput: The base model is not the one of the tasks, or a task changed its own.
    """
    return Attached(base, tasks)


class Attached:
    """Trained tasks attached to a base model; a context that detaches them when it is left.

    A fusion that is a sum over hidden states (`Fusion.terms`: layer mix, scalar mix, concat, a single layer) is added
    up while the base model runs: one tensor [batch, time, width] a task. What another fusion reads is kept until the
    pass is over. Layers that no task reads are not touched, and nothing of the base model is changed.

    The weights are those at the time of attaching. One pass at a time: answers are those of the last one. Steps of a
    decoder that go on from its cache are one pass.
    """

    def __init__(self, base: Any, tasks: dict[str, FusionModel]):
        if not tasks:
            raise BadInput(
                "wanted at least one task to attach, got none; name one: attach(base, entities=model)"
            )
        by_stream: dict[str, dict[str, FusionModel]] = {}
        for name, task in tasks.items():
            by_stream.setdefault(_stream(name, task), {})[name] = task
            _check_same_base(base, name, task)
        self._tasks, self._recorders = tasks, []
        for stream, stream_tasks in by_stream.items():
            modules = [find_stream(base, task.shape, stream) for task in stream_tasks.values()]  # each checks
            self._recorders.append(PassRecorder(modules[0], stream_tasks))
        self._recorder_of = {name: recorder for recorder in self._recorders for name in recorder.tasks}
        self._guard = base.register_forward_hook(self._failed, always_call=True)

    def __enter__(self) -> Attached:
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()

    def answers(self, texts: Sequence[str], inputs: Any) -> dict[str, list[Prediction]]:
        """Return what every task says of the texts of the last pass, by name.

        Args:
            texts: The texts [batch], as the tokeniser was given them.
            inputs: What it returned, of a fast tokeniser: where each token stands in its text.

        Returns:
            Of each text, in order: a label with its probability, words' tags with their entities, or a number.

        Raises:
            BadInput: The inputs are not those of the last pass, or do not say where tokens stand.
        """
        tokenized, outputs = tokenized_inputs(texts, inputs), self.outputs()
        for name, given in outputs.items():
            if len(given) != len(texts) or (given.dim() == 3 and given.shape[1] != len(tokenized[0].ids)):
                raise BadInput(
                    f"wanted the texts of the last pass, whose outputs of {name!r} are {tuple(given.shape)}, got "
                    f"{len(texts)} of {len(tokenized[0].ids)} tokens; give those that the base model was run on"
                )
        return {
            name: [
                prediction_of(self._tasks[name], *each) for each in zip(texts, tokenized, given, strict=True)
            ]
            for name, given in outputs.items()
        }

    def outputs(self) -> dict[str, Float[Tensor, ...]]:
        """Return the outputs of every task for the last pass, by name: `output` of each."""
        return {name: self.output(name) for name in self._recorder_of}

    def output(self, name: str) -> Float[Tensor, ...]:
        """Return the outputs of a task for the last pass, float32: [batch, outputs], or [batch, time, outputs].

        The latter are of tokens; a word's is that of its first. At padding they are 0.

        Raises:
            BadInput: There is no such task, or no whole pass.
        """
        if name not in self._recorder_of:
            raise unknown("task", name, self._recorder_of)
        return self._recorder_of[name].answer(name)

    def detach(self) -> None:
        """Take all hooks off the base model, and forget what was read; once more is no error."""
        self._guard.remove()
        for recorder in self._recorders:
            recorder.detach()

    def _failed(self, module: nn.Module, inputs: Any, output: Any) -> None:
        """Forget what was read of a pass that failed behind the stream, in a head of the base model."""
        if output is None:
            for recorder in self._recorders:
                recorder.forget("its last pass failed")


def _stream(name: str, task: FusionModel) -> str:
    """Return the name of the stream that a task reads. Raises `BadInput` for a task that cannot be attached."""
    if task.config.base_model != "frozen":
        raise BadInput(
            f"wanted a task over a frozen base model, {name!r} has changed its own (base_model="
            f"{task.config.base_model}), and no other shares its passes; run it by itself"
        )
    if task.training:
        raise BadInput(f"wanted {name!r} in eval mode, it is in training mode; call its eval()")
    streams = {state.stream for state in task.live()} or {task.shape.streams[0].name}
    if len(streams) > 1:
        raise BadInput(f"wanted hidden states of one stream, {name!r} reads {', '.join(sorted(streams))}")
    return streams.pop()


def _check_same_base(base: Any, name: str, task: FusionModel) -> None:
    """Raise `BadInput` where the base model says that it came from elsewhere than the task's, or another revision.

    What a model was loaded from is known of hub ids alone; a folder may hold anything.
    """
    trained, config = task.about.get("backbone", {}), getattr(base, "config", None)
    loaded, commit = str(getattr(config, "_name_or_path", "")), str(getattr(config, "_commit_hash", None))
    from_hub = re.fullmatch(r"[\w.-]+/[\w.-]+", loaded) and not Path(loaded).is_dir()
    wanted, revision = trained.get("id"), str(trained.get("revision"))
    commits = [re.fullmatch("[0-9a-f]{40}", each) for each in (revision, commit)]
    if (wanted and from_hub and loaded != wanted) or (all(commits) and revision != commit):
        raise BadInput(
            f"wanted the base model {wanted!r} of {name!r} at revision {revision}, this one is {loaded!r}, loaded at "
            f"{commit}; load the former with from_pretrained(..., revision=...)"
        )
