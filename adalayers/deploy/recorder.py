"""Records the hidden states that trained tasks read from one stream of a base model, during its forward passes."""

from __future__ import annotations

import functools
import inspect
import itertools
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from adalayers.deploy.hooks import StreamModules
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
        self.tasks = dict(tasks)
        self._devices = {name: next(task.parameters()).device for name, task in self.tasks.items()}
        # Of each hidden state what it adds to the sums of tasks; and what tasks read that are no sums.
        self._terms: dict[State, dict[str, Term]] = {}
        self._kept: dict[str, list[State]] = {}
        for name, task in self.tasks.items():
            if (of_task := task.fusion.terms()) is None:
                self._kept[name] = task.live()
            for state, term in (of_task or {}).items():
                self._terms.setdefault(state, {})[name] = term
        self._wanted = sorted({*self._terms, *itertools.chain.from_iterable(self._kept.values())})
        self._arguments = list(inspect.signature(modules.module.forward).parameters)
        self._cache: Callable[[], Any] = lambda: None
        self.forget("it has run no pass since they were attached")
        self._handles = [
            modules.module.register_forward_pre_hook(self._begin, with_kwargs=True),
            # After an exception too: then nothing of the pass may stay recorded.
            modules.module.register_forward_hook(self._end, always_call=True),
        ]
        self._states_from_output = list[State]()  # which only the module's output gives
        for state in self._wanted:
            if (entered := modules.entered_by(state)) is None:
                self._states_from_output.append(state)
            else:
                enter = functools.partial(self._enter, state)
                self._handles.append(entered.register_forward_pre_hook(enter, with_kwargs=True))

    def detach(self) -> None:
        """Remove the hooks and the recorded states."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self.forget("they were detached")

    def forget(self, why: str) -> None:
        """Drop the recorded states; `answer` gives `why` as its reason to refuse."""
        self._passes: list[dict[str | State, Tensor]] = []
        self._pass_states: dict[str | State, Tensor] = {}
        self._states_seen: set[State] | None = None
        self._mask: Any = None
        self._unavailable_because: str | None = why

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
        if hasattr(cache, "reorder_cache") and self._cache() is not cache:
            self._cache = weakref.ref(cache)
            cache.reorder_cache = functools.partial(self._reorder, cache.reorder_cache)

    def _reorder(self, reorder: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Forget what was read where a cache's sequences change places, for it keeps the old order."""
        self.forget("its sequences changed places (beam search)")
        return reorder(*given, **named)

    def _enter(self, state: State, module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._record(state, inputs[0] if inputs else named["hidden_states"])

    @torch.no_grad()
    def _record(self, state: State, hidden: Float[Tensor, "batch time K"]) -> None:
        """Record a hidden state, and add it to F = sum_i w_i N(gelu(Z_i) W_i^T) of tasks that are sums (thesis 5.3).

        Once in each pass: gradient checkpointing runs layers a second time. Work is done as precise as the matrices
        are, float32 where there is none; N and the sums are float32, on the device of the task's own matrices.
        """
        if self._states_seen is None or state in self._states_seen:
            return
        self._states_seen.add(state)
        if any(state in states for states in self._kept.values()):
            self._pass_states[state] = hidden.detach()
        activated: dict[torch.dtype, Tensor] = {}  # one gelu for all tasks that read it
        with torch.autocast(hidden.device.type, enabled=False):
            for task, term in self._terms.get(state, {}).items():
                values, dtype = hidden, torch.float32 if term.matrix is None else term.matrix.dtype
                if term.gelu:
                    if dtype not in activated:
                        activated[dtype] = functional.gelu(hidden.to(dtype))
                    values = activated[dtype]
                if term.matrix is not None:
                    values = functional.linear(values.to(dtype), term.matrix.to(values.device))
                values = values.float()
                if term.eps is not None:
                    values = functional.layer_norm(values, values.shape[-1:], eps=term.eps)
                values = values.to(self._devices[task])
                if task in self._pass_states:
                    self._pass_states[task].add_(values, alpha=term.weight)
                else:
                    self._pass_states[task] = values * term.weight

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
        task, is_token, device = self.tasks[name], self._token_mask(), self._devices[name]
        lengths, rows = is_token.sum(dim=1), torch.arange(is_token.numel()).view(is_token.shape)
        recorded = {key: self._flat(key) for key in self._kept.get(name, [name])}
        most = HEAD_TOKENS_GPU if device.type == "cuda" else HEAD_TOKENS
        shape = is_token.shape if task.shape.per_token else is_token.shape[:1]
        outputs = torch.zeros(shape.numel(), task.shape.n_outputs, device=device)
        with torch.autocast(device.type, enabled=False):
            for batch in token_batches(lengths.numpy(), most):
                sequences = torch.from_numpy(batch)
                tokens = rows[sequences][is_token[sequences]]
                group = {
                    key: values.index_select(0, to_device(tokens, values.device)).to(device)
                    for key, values in recorded.items()
                }
                places = to_device(tokens if task.shape.per_token else sequences, device)
                outputs.index_copy_(0, places, self._outputs(name, group, lengths[sequences]).float())
        return outputs.view(*shape, -1)

    def _flat(self, key: str | State) -> Float[Tensor, "rows width"]:
        """Return a task's sum, or a hidden state, over all recorded passes: sequences end to end, padding included."""
        by_pass = [states[key] for states in self._passes]
        return (by_pass[0] if len(by_pass) == 1 else torch.cat(by_pass, dim=1)).flatten(0, 1)

    def _outputs(self, name: str, recorded: dict[Any, Tensor], lengths: Tensor) -> Tensor:
        """Return the outputs of a task for sequences whose tokens stand end to end."""
        task = self.tasks[name]
        if name in self._kept:
            return task(recorded, lengths)
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
