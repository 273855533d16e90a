"""The passes of one stream of a base model, and what trained tasks read of each while it runs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from adalayers.deploy.hooks import Place
from adalayers.deploy.streaming_sum import Sums
from adalayers.errors import BadInput
from adalayers.models.model import FusionModel
from adalayers.states import State
from adalayers.tensors.ragged import moved

HEAD_TOKENS, HEAD_TOKENS_GPU = 512, 8192
"""Tokens, padding included, that a head reads at once: it shall take less memory than a layer of the base model did."""

_NOT_ENDED = "its last pass did not end"


class Passes:
    """Hooks on a stream, and what they read for the tasks of it.

    place: where its hidden states pass by
    tasks: by name; their weights as they are now

    A pass begins anew, unless a decoder goes on from a cache of just the tokens that were read: then it is read as one
    sequence with what came before. One that fails leaves nothing.
    """

    def __init__(self, place: Place, tasks: Mapping[str, FusionModel]):
        self.place, self.tasks = place, dict(tasks)
        terms = {name: task.fusion.terms() for name, task in self.tasks.items()}
        summed = {name: found for name, found in terms.items() if found is not None}
        self._sums = Sums(summed, {name: _device(self.tasks[name]) for name in summed})
        self.whole = {name: self.tasks[name].live() for name, found in terms.items() if found is None}
        self._kept_states = {state for states in self.whole.values() for state in states}
        self._wanted = sorted({*self._sums.states(), *self._kept_states})
        self._arguments = list(inspect.signature(place.module.forward).parameters)
        self._steps: list[dict[str | State, Tensor]] = []
        self._step: dict[str | State, Tensor] = {}
        self._read: set[State] | None = None
        self._mask: Any = None
        self._why_none: str | None = "it has run no pass since they were attached"
        self._handles = self._hooks()

    def _hooks(self) -> list[Any]:
        module = self.place.module
        handles = [
            module.register_forward_pre_hook(self._begin, with_kwargs=True),
            # On an exception too: what was read of such a pass is nothing.
            module.register_forward_hook(self._end, always_call=True),
        ]
        watched = [(s, self.place.watch(s, functools.partial(self._pass, s))) for s in self._wanted]
        self._of_output = [state for state, handle in watched if handle is None]
        return [*handles, *(handle for _, handle in watched if handle is not None)]

    def detach(self) -> None:
        """Take the hooks off, and forget what was read."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self.forget("they were detached")

    def forget(self, why: str) -> None:
        """Forget what was read; `why` is what a question for answers is told."""
        self._steps, self._step, self._read, self._mask, self._why_none = [], {}, None, None, why
        self._sums.clear()

    @property
    def kept(self) -> int:
        """How many numbers per token are kept until a pass is over."""
        widths = [task.fusion.width for name, task in self.tasks.items() if name not in self.whole]
        return sum(widths) + len(self._kept_states) * next(iter(self.tasks.values())).shape.width

    def _begin(self, module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        given = {**dict(zip(self._arguments, inputs, strict=False)), **named}
        cache: Any = given.get("past_key_values")
        before = int(cache.get_seq_length()) if hasattr(cache, "get_seq_length") else 0
        known = self._tokens() if self._why_none is None else 0
        if before and before != known:
            self.forget(f"its last pass went on from a cache of {before} tokens, of which {known} were read")
            return
        if not before:
            self.forget(_NOT_ENDED)
        self._why_none, self._read, self._mask = _NOT_ENDED, set(), given.get("attention_mask")
        _watch_order(cache, self)

    def _pass(self, state: State, hidden: Float[Tensor, "batch time K"]) -> None:
        """Read a hidden state as it passes by; once a pass, for checkpointing runs layers again."""
        if self._read is None or state in self._read:
            return
        self._read.add(state)
        if state in self._kept_states:
            self._step[state] = hidden.detach()
        self._sums.add(state, hidden)

    def _end(self, module: nn.Module, inputs: Any, output: Any) -> None:
        if self._read is None:
            return
        if output is None:
            self.forget("its last pass failed")
            return
        for state in self._of_output:
            self._pass(state, output[0] if isinstance(output, tuple) else output.last_hidden_state)
        if missed := [state.name for state in self._wanted if state not in self._read]:
            self.forget(
                f"its last pass did not show the hidden states {', '.join(missed)}: attach before torch.compile, and "
                "let no layer be skipped"
            )
            return
        self._step.update(self._sums.totals)
        self._steps.append(self._step)
        self._step, self._read, self._why_none = {}, None, None
        self._sums.clear()

    def _tokens(self) -> int:
        """Return how many tokens of each sequence were read, padding included."""
        return sum(next(iter(step.values())).shape[1] for step in self._steps)

    @torch.no_grad()
    def answer(self, name: str) -> Float[Tensor, ...]:
        """Return the outputs of a task for the last pass, float32: [batch, outputs], or [batch, time, outputs].

        Outputs at padding are 0.

        Raises `BadInput` where there is no whole pass to answer of, or its mask does not say which are tokens.
        """
        if self._why_none is not None:
            raise BadInput(
                f"wanted answers of {name!r}, the base model has none to read: {self._why_none}; run it, then ask"
            )
        task, real = self.tasks[name], self._real()
        lengths, order = real.sum(dim=1).sort(stable=True)  # of like length side by side: heads pad less
        places = torch.arange(real.numel()).view(real.shape)[order][real[order]]
        read = {key: self._flat(key) for key in self.whole.get(name, [name])}
        ends = lengths.cumsum(dim=0).tolist()
        parts = []
        with torch.autocast(_device(task).type, enabled=False):
            for first, last in _groups(lengths.tolist(), self._most(task)):
                at = places[ends[first] - int(lengths[first]) : ends[last - 1]]
                of = {key: values.index_select(0, moved(at, values.device)) for key, values in read.items()}
                parts.append(self._given(name, of, lengths[first:last]).float())
        given = torch.cat(parts)
        if task.shape.head == "sequence":
            return torch.empty_like(given).index_copy_(0, moved(order, given.device), given)
        answers = given.new_zeros(real.numel(), given.shape[-1])
        return answers.index_copy_(0, moved(places, given.device), given).view(*real.shape, -1)

    @staticmethod
    def _most(task: FusionModel) -> int:
        return HEAD_TOKENS_GPU if _device(task).type == "cuda" else HEAD_TOKENS

    def _flat(self, key: str | State) -> Float[Tensor, "rows width"]:
        """Return the sum of a task, or a hidden state, of all steps, the sequences end to end with their padding."""
        steps = [step[key] for step in self._steps]
        return (steps[0] if len(steps) == 1 else torch.cat(steps, dim=1)).flatten(0, 1)

    def _given(self, name: str, read: dict[Any, Tensor], lengths: Tensor) -> Tensor:
        """Return what a task gives of sequences, their tokens end to end."""
        task = self.tasks[name]
        if name in self.whole:
            return task({state: hidden.to(_device(task)) for state, hidden in read.items()}, lengths)
        return task.read_out(task.fusion.whole(read[name]).to(next(task.parameters()).dtype), lengths)

    def _real(self) -> Bool[Tensor, "batch time"]:
        """Return which of the tokens read are no padding, on the CPU."""
        batch, time = next(iter(self._steps[0].values())).shape[0], self._tokens()
        if self._mask is None:
            return torch.ones(batch, time, dtype=torch.bool)
        if not isinstance(self._mask, Tensor) or self._mask.shape != (batch, time):
            found = tuple(self._mask.shape) if isinstance(self._mask, Tensor) else type(self._mask).__name__
            raise BadInput(
                f"wanted an attention mask [batch, time] = [{batch}, {time}] to tell tokens from padding, the base "
                f"model was given {found}; give it the tokeniser's"
            )
        real = self._mask.cpu() != 0
        if not real.any(dim=1).all():
            raise BadInput("wanted at least one token of every sequence, one is all padding; leave it out")
        return real


def _groups(lengths: list[int], most: int) -> Iterator[tuple[int, int]]:
    """Yield (first, last + 1) of the sequences, sorted by length, that a head reads at once: at most `most` tokens."""
    first = 0
    for last, longest in enumerate(lengths):
        if last > first and (last + 1 - first) * longest > most:
            yield first, last
            first = last
    yield first, len(lengths)


def _watch_order(cache: Any, passes: Passes) -> None:
    """Let a cache that changes the order of its sequences (beam search) say so: what was read has the old one."""
    reorder = getattr(cache, "reorder_cache", None)
    if reorder is None:
        return
    watching: list[Passes] | None = getattr(cache, "_adalayers_watching", None)
    if watching is None:
        listening: list[Passes] = []
        watching = listening

        def watched(*given: Any, **named: Any) -> Any:
            for each in listening:
                each.forget("its sequences changed places (beam search)")
            return reorder(*given, **named)

        cache.reorder_cache, cache._adalayers_watching = watched, watching
    if all(one is not passes for one in watching):  # several may be attached to one base model
        watching.append(passes)


def _device(task: FusionModel) -> torch.device:
    return next(task.parameters()).device
