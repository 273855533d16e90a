"""Records what trained tasks read of one stream of a base model, while its passes run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from adalayers.deploy.hooks import StreamModules
from adalayers.deploy.streaming_sum import StreamingSum
from adalayers.errors import BadInput
from adalayers.models.model import FusionModel
from adalayers.states import State
from adalayers.tensors.ragged import to_device

HEAD_TOKENS, HEAD_TOKENS_GPU = 512, 8192
"""Tokens, padding included, that a head reads at once: it shall take less memory than a layer of the base model did."""

_NOT_ENDED = "its last pass did not end"


class PassRecorder:
    """Hooks on a stream, and what they recorded for the tasks that read it.

    A pass replaces what was recorded, unless a decoder goes on from a cache of just the tokens that were read: then it
    is read as one sequence with what came before. One that fails leaves nothing.

    Args:
        modules: Those that the stream's hidden states pass through.
        tasks:   By name; their weights as they are now.
    """

    def __init__(self, modules: StreamModules, tasks: Mapping[str, FusionModel]):
        self.modules, self.tasks = modules, dict(tasks)
        terms = {name: task.fusion.terms() for name, task in self.tasks.items()}
        summed = {name: task_terms for name, task_terms in terms.items() if task_terms is not None}
        self._sums = StreamingSum(summed, {name: _device(self.tasks[name]) for name in summed})
        self._whole = {name: task.live() for name, task in self.tasks.items() if name not in summed}
        self._kept_states = {state for states in self._whole.values() for state in states}
        self._wanted = sorted({*self._sums.states(), *self._kept_states})
        self._arguments = list(inspect.signature(modules.module.forward).parameters)
        self._steps: list[dict[str | State, Tensor]] = []
        self._step: dict[str | State, Tensor] = {}
        self._seen: set[State] | None = None
        self._mask: Any = None
        self._no_outputs: str | None = "it has run no pass since they were attached"
        self._handles = self._hooks()

    def _hooks(self) -> list[Any]:
        module = self.modules.module
        handles = [
            module.register_forward_pre_hook(self._begin, with_kwargs=True),
            # On an exception too: what was recorded of such a pass is nothing.
            module.register_forward_hook(self._end, always_call=True),
        ]
        hooks = {
            state: self.modules.hook(state, functools.partial(self._record, state)) for state in self._wanted
        }
        self._of_output = [state for state, handle in hooks.items() if handle is None]
        return [*handles, *(handle for handle in hooks.values() if handle is not None)]

    def detach(self) -> None:
        """Take the hooks off, and forget what was recorded."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self.forget("they were detached")

    def forget(self, why: str) -> None:
        """Forget what was recorded; `why` is told to who asks for answers."""
        self._steps, self._step, self._seen, self._mask, self._no_outputs = [], {}, None, None, why
        self._sums.clear()

    def _begin(self, module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        arguments = {**dict(zip(self._arguments, inputs, strict=False)), **named}
        cache: Any = arguments.get("past_key_values")
        cached = int(cache.get_seq_length()) if hasattr(cache, "get_seq_length") else 0
        recorded = self._tokens() if self._no_outputs is None else 0
        if cached and cached != recorded:
            self.forget(
                f"its last pass went on from a cache of {cached} tokens, of which {recorded} were read"
            )
            return
        if not cached:
            self.forget(_NOT_ENDED)
        self._no_outputs, self._seen, self._mask = _NOT_ENDED, set(), arguments.get("attention_mask")
        _forget_on_reorder(cache, self)

    def _record(self, state: State, hidden: Float[Tensor, "batch time K"]) -> None:
        """Record a hidden state; once a pass, for checkpointing runs layers again."""
        if self._seen is None or state in self._seen:
            return
        self._seen.add(state)
        if state in self._kept_states:
            self._step[state] = hidden.detach()
        self._sums.add(state, hidden)

    def _end(self, module: nn.Module, inputs: Any, output: Any) -> None:
        if self._seen is None:
            return
        if output is None:
            self.forget("its last pass failed")
            return
        for state in self._of_output:
            self._record(state, output[0] if isinstance(output, tuple) else output.last_hidden_state)
        if missed := [state.name for state in self._wanted if state not in self._seen]:
            self.forget(
                f"its last pass did not show the hidden states {', '.join(missed)}: attach before torch.compile, and "
                "let no layer be skipped"
            )
            return
        self._step.update(self._sums.totals)
        self._steps.append(self._step)
        self._step, self._seen, self._no_outputs = {}, None, None
        self._sums.clear()

    def _tokens(self) -> int:
        """Return how many tokens of each sequence were recorded, padding included."""
        return sum(next(iter(step.values())).shape[1] for step in self._steps)

    @torch.no_grad()
    def answer(self, name: str) -> Float[Tensor, ...]:
        """Return the outputs of a task for the last pass, float32: [batch, outputs], or [batch, time, outputs].

        Outputs at padding are 0.

        Raises:
            BadInput: There is no whole pass to answer of, or its mask does not say which are tokens.
        """
        if self._no_outputs is not None:
            raise BadInput(
                f"wanted answers of {name!r}, the base model has none to read: {self._no_outputs}; run it, then ask"
            )
        task, real = self.tasks[name], self._real()
        lengths, order = real.sum(dim=1).sort(stable=True)  # of like length side by side: heads pad less
        rows = torch.arange(real.numel()).view(real.shape)[order][real[order]]
        recorded = {key: self._flat(key) for key in self._whole.get(name, [name])}
        ends = lengths.cumsum(dim=0).tolist()
        parts = []
        with torch.autocast(_device(task).type, enabled=False):
            for first, last in _head_groups(lengths.tolist(), _device(task)):
                group_rows = rows[ends[first] - int(lengths[first]) : ends[last - 1]]
                of_group = {
                    key: values.index_select(0, to_device(group_rows, values.device))
                    for key, values in recorded.items()
                }
                parts.append(self._outputs(name, of_group, lengths[first:last]).float())
        outputs = torch.cat(parts)
        if task.shape.head == "sequence":
            return torch.empty_like(outputs).index_copy_(0, to_device(order, outputs.device), outputs)
        padded = outputs.new_zeros(real.numel(), outputs.shape[-1])
        return padded.index_copy_(0, to_device(rows, outputs.device), outputs).view(*real.shape, -1)

    def _flat(self, key: str | State) -> Float[Tensor, "rows width"]:
        """Return the sum of a task, or a hidden state, of all steps, the sequences end to end with their padding."""
        steps = [step[key] for step in self._steps]
        return (steps[0] if len(steps) == 1 else torch.cat(steps, dim=1)).flatten(0, 1)

    def _outputs(self, name: str, recorded: dict[Any, Tensor], lengths: Tensor) -> Tensor:
        """Return the outputs of a task for sequences, their tokens end to end."""
        task = self.tasks[name]
        if name in self._whole:
            return task({state: hidden.to(_device(task)) for state, hidden in recorded.items()}, lengths)
        return task.read_out(task.fusion.whole(recorded[name]).to(next(task.parameters()).dtype), lengths)

    def _real(self) -> Bool[Tensor, "batch time"]:
        """Return which of the tokens recorded are no padding, on the CPU."""
        batch, time = next(iter(self._steps[0].values())).shape[0], self._tokens()
        mask = self._mask
        if mask is None:
            return torch.ones(batch, time, dtype=torch.bool)
        if not isinstance(mask, Tensor) or mask.shape != (batch, time):
            got = tuple(mask.shape) if isinstance(mask, Tensor) else type(mask).__name__
            raise BadInput(
                f"wanted an attention mask [batch, time] = [{batch}, {time}] to tell tokens from padding, the base "
                f"model was given {got}; give it the tokeniser's"
            )
        real = mask.cpu() != 0
        if not real.any(dim=1).all():
            raise BadInput("wanted at least one token of every sequence, one is all padding; leave it out")
        return real


def _head_groups(lengths: list[int], device: torch.device) -> Iterator[tuple[int, int]]:
    """Yield (first, last + 1) of the sequences, sorted by length, that a head reads at once."""
    most, first = HEAD_TOKENS_GPU if device.type == "cuda" else HEAD_TOKENS, 0
    for last, longest in enumerate(lengths):
        if last > first and (last + 1 - first) * longest > most:
            yield first, last
            first = last
    yield first, len(lengths)


def _forget_on_reorder(cache: Any, recorder: PassRecorder) -> None:
    """Make a recorder forget when a cache changes the order of its sequences (beam search): its own is the old one."""
    if not hasattr(cache, "reorder_cache"):
        return
    recorders = vars(cache).setdefault("_adalayers_recorders", [])
    if recorder in recorders:
        return
    recorders.append(recorder)
    reorder = cache.reorder_cache

    def reorder_and_forget(*arguments: Any, **named: Any) -> Any:
        recorder.forget("its sequences changed places (beam search)")
        return reorder(*arguments, **named)

    cache.reorder_cache = reorder_and_forget


def _device(task: FusionModel) -> torch.device:
    return next(task.parameters()).device
