"""Records the hidden states that trained tasks read from one stream of a base model, during its forward passes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from adalayers.deploy.hooks import StreamModules
from adalayers.deploy.streaming_sum import add_terms
from adalayers.errors import BadInput
from adalayers.fusion.fusion import Term
from adalayers.models.model import FusionModel
from adalayers.states import State
from adalayers.tensors.ragged import to_device, token_batches

HEAD_TOKENS, HEAD_TOKENS_GPU = 512, 8192
"""Tokens, padding included, that a head reads at once: few enough to need less memory than a base model's layer."""

_NOT_ENDED = "its last pass did not end"


class PassRecorder:
    """Forward hooks on a stream, and the hidden states that they recorded for the tasks that read it.

    A forward pass replaces the recorded states. Only where a decoder continues from a cache of exactly the recorded
    tokens are its states appended, as one sequence with the earlier ones. A pass that fails leaves nothing recorded.

    Args:
        modules: The modules that the stream's hidden states pass through.
        tasks:   The tasks by name, read with their current weights.
    """

    def __init__(self, modules: StreamModules, tasks: Mapping[str, FusionModel]):
        self.modules, self.tasks = modules, dict(tasks)
        self._devices = {name: next(task.parameters()).device for name, task in self.tasks.items()}
        terms = {name: task.fusion.terms() for name, task in self.tasks.items()}
        self._terms: dict[
            State, dict[str, Term]
        ] = {}  # of each hidden state, what it adds to the sums of tasks
        for name, of_task in terms.items():
            for state, term in (of_task or {}).items():
                self._terms.setdefault(state, {})[name] = term
        self._unsummed_states = {name: self.tasks[name].live() for name in terms if terms[name] is None}
        self._kept_states = {state for states in self._unsummed_states.values() for state in states}
        self._wanted = sorted({*self._terms, *self._kept_states})
        self._arguments = list(inspect.signature(modules.module.forward).parameters)
        self._passes: list[dict[str | State, Tensor]] = []
        self._pass_states: dict[str | State, Tensor] = {}
        self._states_seen: set[State] | None = None
        self._mask: Any = None
        self._unavailable_because: str | None = "it has run no pass since they were attached"
        self._handles, self._states_from_output = self._hooks()

    def _hooks(self) -> tuple[list[Any], list[State]]:
        """Add the hooks; return their handles, and the states that only the module's output gives."""
        module = self.modules.module
        handles = [
            module.register_forward_pre_hook(self._begin, with_kwargs=True),
            # After an exception too: then nothing of the pass may stay recorded.
            module.register_forward_hook(self._end, always_call=True),
        ]
        hooks = {
            state: self.modules.hook(state, functools.partial(self._record, state)) for state in self._wanted
        }
        handles += [handle for handle in hooks.values() if handle is not None]
        return handles, [state for state, handle in hooks.items() if handle is None]

    def detach(self) -> None:
        """Remove the hooks and the recorded states."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self.forget("they were detached")

    def forget(self, why: str) -> None:
        """Drop the recorded states; `answer` gives `why` as its reason to refuse."""
        self._passes, self._pass_states, self._states_seen = [], {}, None
        self._mask, self._unavailable_because = None, why

    def _begin(self, module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        arguments = {**dict(zip(self._arguments, inputs, strict=False)), **named}
        cache: Any = arguments.get("past_key_values")
        cached = int(cache.get_seq_length()) if hasattr(cache, "get_seq_length") else 0
        recorded = self._tokens() if self._unavailable_because is None else 0
        if cached and cached != recorded:
            self.forget(
                f"its last pass went on from a cache of {cached} tokens, of which {recorded} were read"
            )
            return
        if not cached:
            self.forget(_NOT_ENDED)
        self._unavailable_because, self._states_seen = _NOT_ENDED, set()
        self._mask = arguments.get("attention_mask")
        _forget_on_reorder(cache, self)

    def _record(self, state: State, hidden: Float[Tensor, "batch time K"]) -> None:
        """Record a hidden state, once in each pass: gradient checkpointing runs layers a second time."""
        if self._states_seen is None or state in self._states_seen:
            return
        self._states_seen.add(state)
        if state in self._kept_states:
            self._pass_states[state] = hidden.detach()
        add_terms(self._pass_states, hidden, self._terms.get(state, {}), self._devices)

    def _end(self, module: nn.Module, inputs: Any, output: Any) -> None:
        if self._states_seen is None:
            return
        if output is None:
            self.forget("its last pass failed")
            return
        for state in self._states_from_output:
            self._record(state, output[0] if isinstance(output, tuple) else output.last_hidden_state)
        if missed := [state.name for state in self._wanted if state not in self._states_seen]:
            self.forget(
                f"its last pass did not show the hidden states {', '.join(missed)}: attach before torch.compile, and "
                "let no layer be skipped"
            )
            return
        self._passes.append(self._pass_states)
        self._pass_states, self._states_seen, self._unavailable_because = {}, None, None

    def _tokens(self) -> int:
        """Return how many tokens of each sequence were recorded, padding included."""
        return sum(next(iter(states.values())).shape[1] for states in self._passes)

    @torch.no_grad()
    def answer(self, name: str) -> Float[Tensor, ...]:
        """Return the outputs of a task for the last forward pass.

        Args:
            name: The task's.

        Returns:
            Float32 [batch, outputs] of a task for sequences, else [batch, time, outputs], 0 at padding.

        Raises:
            BadInput: No complete pass is recorded, or its attention mask does not tell tokens from padding.
        """
        if self._unavailable_because is not None:
            raise BadInput(
                f"wanted answers of {name!r}, the base model has none to read: {self._unavailable_because}; run it, "
                "then ask"
            )
        task, is_token = self.tasks[name], self._token_mask()
        device, lengths = self._devices[name], is_token.sum(dim=1)
        rows = torch.arange(is_token.numel()).view(is_token.shape)
        recorded = {key: self._flat(key) for key in self._unsummed_states.get(name, [name])}
        parts: list[Tensor] = []
        places: list[Tensor] = []
        with torch.autocast(device.type, enabled=False):
            for batch in token_batches(
                lengths.numpy(), HEAD_TOKENS_GPU if device.type == "cuda" else HEAD_TOKENS
            ):
                sequences = torch.from_numpy(batch)
                group_rows = rows[sequences][is_token[sequences]]
                group = {
                    key: values.index_select(0, to_device(group_rows, values.device))
                    for key, values in recorded.items()
                }
                parts.append(self._outputs(name, group, lengths[sequences]).float())
                places.append(group_rows if task.shape.per_token else sequences)
        outputs = torch.cat(parts)
        shape = is_token.shape if task.shape.per_token else is_token.shape[:1]
        whole = outputs.new_zeros(shape.numel(), outputs.shape[-1])
        return whole.index_copy_(0, to_device(torch.cat(places), outputs.device), outputs).view(*shape, -1)

    def _flat(self, key: str | State) -> Float[Tensor, "rows width"]:
        """Return a task's sum, or a hidden state, over all recorded passes: sequences end to end, padding included."""
        by_pass = [states[key] for states in self._passes]
        return (by_pass[0] if len(by_pass) == 1 else torch.cat(by_pass, dim=1)).flatten(0, 1)

    def _outputs(self, name: str, recorded: dict[Any, Tensor], lengths: Tensor) -> Tensor:
        """Return the outputs of a task for sequences whose tokens stand end to end."""
        task = self.tasks[name]
        if name in self._unsummed_states:
            return task(
                {state: hidden.to(self._devices[name]) for state, hidden in recorded.items()}, lengths
            )
        return task.read_out(task.fusion.whole(recorded[name]).to(next(task.parameters()).dtype), lengths)

    def _token_mask(self) -> Bool[Tensor, "batch time"]:
        """Return which recorded positions are tokens, not padding; on the CPU."""
        batch, time = next(iter(self._passes[0].values())).shape[0], self._tokens()
        mask = self._mask
        if mask is None:
            return torch.ones(batch, time, dtype=torch.bool)
        if not isinstance(mask, Tensor) or mask.shape != (batch, time):
            got = tuple(mask.shape) if isinstance(mask, Tensor) else type(mask).__name__
            raise BadInput(
                f"wanted an attention mask [batch, time] = [{batch}, {time}] to tell tokens from padding, the base "
                f"model was given {got}; give it the tokeniser's"
            )
        is_token = mask.cpu() != 0
        if not is_token.any(dim=1).all():
            raise BadInput("wanted at least one token of every sequence, one is all padding; leave it out")
        return is_token


def _forget_on_reorder(cache: Any, recorder: PassRecorder) -> None:
    """Drop a recorder's states when a cache reorders its sequences (beam search), as they keep the old order."""
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
