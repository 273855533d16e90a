"""Trained tasks on a base model's own passes, several at once (thesis section 5.3)."""

from __future__ import annotations

import functools
import inspect
import itertools
import re
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from adalayers.deploy.hooks import find_stream
from adalayers.deploy.predictions import Prediction, prediction_of
from adalayers.deploy.task import TrainedTask
from adalayers.deploy.tokenized import tokenized_inputs
from adalayers.errors import BadInput, unknown
from adalayers.fusion.fusion import Term
from adalayers.models.model import FusionModel
from adalayers.states import State
from adalayers.tensors.ragged import to_device, token_batches

HEAD_TOKENS, HEAD_TOKENS_GPU = 512, 8192
"""Tokens, padding included, that a head reads at once: few enough to need less memory than a base model's layer."""

_NOT_ENDED = "its last pass did not end"
_MOVES = ("reorder_cache", "batch_select_indices", "batch_repeat_interleave")
"""What a cache's sequences change places by."""


def attach(base: Any, /, **tasks: FusionModel | TrainedTask) -> Attached:
    """Run trained tasks on the passes that a base model runs anyway.

        with adalayers.attach(base, entities=adalayers.load(folder)) as attached:
            output = base(**inputs)               # as without them, bit for bit
            print(attached.answers(texts, inputs)["entities"])

    Args:
        base:  A model of transformers, task models (`RobertaForMaskedLM`, `BartForConditionalGeneration`) included.
        tasks: By a name of your choice, all of one stream of the base model.

    Returns:
        What gives the tasks' answers after each pass.

    Raises:
        BadInput: The base model is not the one of the tasks, or a task changed its own.
    """
    parts = {name: task.model if isinstance(task, TrainedTask) else task for name, task in tasks.items()}
    return Attached(base, parts)


class Attached:
    """Trained tasks attached to a base model by forward hooks; a context that detaches them when it is left.

    A fusion that is a sum over hidden states (`Fusion.terms`: layer mix, scalar mix, concat, a single layer) is added
    up while the base model runs: one tensor [batch, time, width] a task. What another fusion reads is kept until the
    pass is over. Layers that no task reads are not touched, and nothing of the base model is changed.

    The weights are those at the time of attaching. One pass at a time: answers are those of the last one, and one that
    failed leaves none. Only where a decoder continues from a cache of exactly the tokens that were read are its states
    appended, as one sequence with the earlier ones.
    """

    def __init__(self, base: Any, tasks: dict[str, FusionModel]):
        if not tasks:
            raise BadInput(
                "wanted at least one task to attach, got none; name one: attach(base, entities=model)"
            )
        streams = {name: _stream(name, task) for name, task in tasks.items()}
        if len({*streams.values()}) > 1:
            raise BadInput(f"wanted tasks of one stream, got {streams}; attach those of each by themselves")
        for name, task in tasks.items():
            _check_same_base(base, name, task)
            module, entered = find_stream(base, task.shape, streams[name])  # of each task, for it checks
        # What the decoder of an encoder reads is its own: no text of the tokeniser's.
        self._reads_texts = streams[name] == task.shape.streams[0].name
        self._base, self._tasks = base, tasks
        self._devices = {name: next(task.parameters()).device for name, task in tasks.items()}
        # Of each hidden state what it adds to the sums of tasks; and what tasks read that are no sums.
        self._terms: dict[State, dict[str, Term]] = {}
        self._kept: dict[str, list[State]] = {}
        for name, task in tasks.items():
            if (of_task := task.fusion.terms()) is None:
                self._kept[name] = task.live()
            for state, term in (of_task or {}).items():
                self._terms.setdefault(state, {})[name] = term
        self._wanted = sorted({*self._terms, *itertools.chain.from_iterable(self._kept.values())})
        self._pad = _padding_id(base)
        self._arguments = list(inspect.signature(module.forward).parameters)
        self._cache: Callable[[], Any] = lambda: None
        self._forget("it has run no pass since they were attached")
        self._handles = [
            module.register_forward_pre_hook(self._begin, with_kwargs=True),
            # After an exception too: then nothing of the pass may stay recorded.
            module.register_forward_hook(self._end, always_call=True),
            base.register_forward_hook(self._failed, always_call=True),
        ]
        self._states_from_output = list[State]()  # which only the module's output gives
        for state in self._wanted:
            if (inner := entered[state]) is None:
                self._states_from_output.append(state)
            else:
                enter = functools.partial(self._enter, state)
                self._handles.append(inner.register_forward_pre_hook(enter, with_kwargs=True))

    def __enter__(self) -> Attached:
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()

    def detach(self) -> None:
        """Take all hooks off the base model, and forget what was read; once more is no error."""
        for handle in self._handles:
            handle.remove()
        self._forget("they were detached")

    def answers(self, texts: Sequence[str], inputs: Any) -> dict[str, list[Prediction]]:
        """Return what every task says of the texts of the last pass, by name.

        Args:
            texts: The texts [batch], as the tokeniser was given them.
            inputs: What it returned, of a fast tokeniser: where each token stands in its text.

        Returns:
            Of each text, in order: a label with its probability, words' tags with their entities, or a number.

        Raises:
            BadInput: The inputs are not those of the last pass, or do not say where tokens stand; the pass was one in
                training mode, or a task is in it.
        """
        noisy = [name for name, task in self._tasks.items() if task.training]
        for name in ["the base model", *noisy] if self._dropping else noisy:
            raise BadInput(
                f"wanted {name} in eval mode, in training mode dropout changes answers; call its eval()"
            )
        tokenized, outputs = tokenized_inputs(texts, inputs), self.outputs()
        for name, given in outputs.items():
            if len(given) != len(texts) or (given.dim() == 3 and given.shape[1] != len(tokenized[0].ids)):
                raise BadInput(
                    f"wanted the texts of the last pass, whose outputs of {name!r} are {tuple(given.shape)}, got "
                    f"{len(texts)} of {len(tokenized[0].ids)} tokens; give those that the base model was run on"
                )
        comparable = self._reads_texts and self._ids[0] is not None and len(self._passes) == 1
        if comparable and self._ids[0].tolist() != [each.ids.tolist() for each in tokenized]:
            raise BadInput(
                "wanted the texts of the last pass, got others; give those that the base model was run on"
            )
        return {
            name: [
                prediction_of(self._tasks[name], *each) for each in zip(texts, tokenized, given, strict=True)
            ]
            for name, given in outputs.items()
        }

    def outputs(self) -> dict[str, Float[Tensor, ...]]:
        """Return the outputs of every task for the last pass, by name: `output` of each."""
        return {name: self.output(name) for name in self._tasks}

    @torch.no_grad()
    def output(self, name: str) -> Float[Tensor, ...]:
        """Return the outputs of a task for the last pass, float32: [batch, outputs], or [batch, time, outputs].

        The latter are of tokens; a word's is that of the one that answers for it. At padding they are 0.

        Raises:
            BadInput: There is no such task, or no whole pass, or its attention mask does not tell tokens from padding.
        """
        if name not in self._tasks:
            raise unknown("task", name, self._tasks)
        if self._unavailable_because is not None:
            raise BadInput(
                f"wanted answers of {name!r}, the base model has none to read: {self._unavailable_because}; run it"
            )
        task, is_token, device = self._tasks[name], self._token_mask(), self._devices[name]
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
                outputs.index_copy_(0, places, self._head_outputs(name, group, lengths[sequences]).float())
        return outputs.view(*shape, -1)

    def _forget(self, why: str) -> None:
        """Drop what was read; `output` gives `why` as its reason to refuse."""
        self._passes: list[dict[str | State, Tensor]] = []
        self._pass_states: dict[str | State, Tensor] = {}
        self._states_seen: set[State] | None = None
        self._mask: Any = None
        self._dropping = False
        self._ids: list[Any] = []
        self._unavailable_because: str | None = why

    def _begin(self, module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        arguments = {**dict(zip(self._arguments, inputs)), **named}  # noqa: B905  # torch 2.7 compiles no `strict`
        cache: Any = arguments.get("past_key_values")
        cached = int(cache.get_seq_length()) if hasattr(cache, "get_seq_length") else 0
        recorded = self._tokens() if self._unavailable_because is None else 0
        if cached and (cached != recorded or cache is not self._cache()):
            read = f"{recorded} were read" if cached != recorded else "others were read last"
            self._forget(f"its last pass went on from a cache of {cached} tokens, of which {read}")
            return
        if not cached:
            self._forget(_NOT_ENDED)
        self._unavailable_because, self._states_seen = _NOT_ENDED, set()
        self._dropping = self._base.training
        self._mask = arguments.get("attention_mask")
        self._ids.append(arguments.get("input_ids"))

    def _watch(self, output: Any) -> None:
        """Remember the pass's cache. Once its sequences change places, what was read in the old order is forgotten."""
        parts = output if isinstance(output, tuple) else output.values()
        cache: Any = next((part for part in parts if hasattr(part, "get_seq_length")), None)
        if cache is not None and self._cache() is not cache:
            self._cache = weakref.ref(cache)
            for name in _MOVES:
                if hasattr(cache, name):
                    setattr(cache, name, functools.partial(self._moved, getattr(cache, name)))

    def _moved(self, move: Callable[..., Any], *given: Any, **named: Any) -> Any:
        self._forget("its sequences changed places (beam search)")
        return move(*given, **named)

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
        self._failed(module, inputs, output)
        if self._states_seen is None:
            return
        for state in self._states_from_output:
            self._record(state, output[0] if isinstance(output, tuple) else output.last_hidden_state)
        if missed := [state.name for state in self._wanted if state not in self._states_seen]:
            self._forget(
                f"its last pass did not show the hidden states {', '.join(missed)}: attach before torch.compile, and "
                "let no layer be skipped"
            )
            return
        self._watch(output)
        self._passes.append(self._pass_states)
        self._pass_states, self._states_seen, self._unavailable_because = {}, None, None

    def _failed(self, module: nn.Module, inputs: Any, output: Any) -> None:
        """Forget what was read of a pass that failed, behind the stream too, in a head of the base model."""
        if output is None:
            self._forget("its last pass failed")

    def _tokens(self) -> int:
        """Return how many tokens of each sequence were recorded, padding included."""
        return sum(next(iter(states.values())).shape[1] for states in self._passes)

    def _flat(self, key: str | State) -> Float[Tensor, "rows width"]:
        """Return a task's sum, or a hidden state, over all recorded passes: sequences end to end, padding included."""
        by_pass = [states[key] for states in self._passes]
        return (by_pass[0] if len(by_pass) == 1 else torch.cat(by_pass, dim=1)).flatten(0, 1)

    def _head_outputs(self, name: str, recorded: dict[Any, Tensor], lengths: Tensor) -> Tensor:
        """Return the outputs of a task for sequences whose tokens stand end to end."""
        task = self._tasks[name]
        if name in self._kept:
            return task(recorded, lengths)
        return task.read_out(task.fusion.whole(recorded[name]).to(next(task.parameters()).dtype), lengths)

    def _token_mask(self) -> Bool[Tensor, "batch time"]:
        """Return which recorded positions are tokens, not padding; on the CPU."""
        batch, time = next(iter(self._passes[0].values())).shape[0], self._tokens()
        mask = torch.ones(batch, time) if self._mask is None else self._mask
        if not isinstance(mask, Tensor) or mask.shape != (batch, time):
            got = tuple(mask.shape) if isinstance(mask, Tensor) else type(mask).__name__
            raise BadInput(
                f"wanted an attention mask [batch, time] = [{batch}, {time}] to tell tokens from padding, the base "
                f"model's layers were given {got}; give it the tokeniser's, and no static cache"
            )
        is_token = mask.cpu() != 0
        if not is_token.any(dim=1).all():
            raise BadInput("wanted at least one token of every sequence, one is all padding; leave it out")
        ids = [part.cpu() for part in self._ids if part is not None]
        if self._pad is not None and sum(part.shape[1] for part in ids) == time:
            # The first may be padding by design: decoders of some encoders begin with it.
            padding = ((torch.cat(ids, dim=1) == self._pad) & is_token)[:, 1:]
            if (padding[:, :1] | padding[:, -1:]).any():
                raise BadInput(
                    f"wanted an attention mask that tells tokens from padding, it counts tokens {self._pad} at an end "
                    "of a sequence, which are padding; give one (a decoder behind an encoder: decoder_attention_mask), "
                    "and generate texts one by one, for one that ends early is padded"
                )
        return is_token


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


def _padding_id(base: Any) -> int | None:
    """Return the id of the base model's token for padding; None where it has none, or it ends texts too."""
    about = base.config.get_text_config()
    pad, end = (getattr(about, f"{name}_token_id", None) for name in ("pad", "eos"))
    return None if pad is None or pad in (end if isinstance(end, list) else [end]) else int(pad)


def _check_same_base(base: Any, name: str, task: FusionModel) -> None:
    """Raise `BadInput` where the base model says that it came from elsewhere than the task's, or another revision.

    What a model was loaded from is known of hub ids alone, on either side; a folder may hold anything.
    """
    trained, config = task.about.get("backbone", {}), getattr(base, "config", None)
    loaded, commit = str(getattr(config, "_name_or_path", "")), str(getattr(config, "_commit_hash", None))
    from_hub = re.fullmatch(r"[\w.-]+/[\w.-]+", loaded) and not Path(loaded).is_dir()
    wanted, revision = str(trained.get("id")), str(trained.get("revision"))
    commits = [re.fullmatch("[0-9a-f]{40}", each) for each in (revision, commit)]
    if (re.search("[/:]", wanted) and from_hub and loaded != wanted) or (all(commits) and revision != commit):
        raise BadInput(
            f"wanted the base model {wanted!r} of {name!r} at revision {revision}, this one is {loaded!r}, loaded at "
            f"{commit}; load the former with from_pretrained(..., revision=...)"
        )
