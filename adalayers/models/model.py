"""The trained part of a trial: a fusion of hidden states and a head; built, saved and loaded here."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from adalayers.config import TrialConfig, as_values, trial_config
from adalayers.errors import BadInput
from adalayers.fusion.fusion import ParameterGroup
from adalayers.models.heads import build_head, sinusoidal_positions
from adalayers.results.files import holding
from adalayers.states import Shape, State, Stream
from adalayers.storage.folder import Folder
from adalayers.storage.redaction import redacted
from adalayers.study import Variant
from adalayers.tensors.ragged import length_groups, padded
from adalayers.tensors.seeds import drawing

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
FORMAT = 2


@runtime_checkable
class Readable(Protocol):
    """What of a batch a model reads.

    states:    {hidden state: [tokens, K]} of the frozen base model, real tokens end to end
    lengths:   int64 [batch], on the CPU
    """

    @property
    def states(self) -> Mapping[State, Tensor]: ...
    @property
    def lengths(self) -> Tensor: ...


@dataclasses.dataclass(frozen=True)
class BaseUse:
    """What a model needs of its base model.

    run:      layers that have to run
    own_pass: whether no other task can share the pass, for the base model is changed
    through:  layers that a gradient passes
    trained:  weights of the layers that are trained
    adapters: weights of adapters, each counted as often as it acts
    changed:  weights that are not the shared base model's: those trained in it, and adapters
    """

    run: int
    own_pass: bool = False
    through: int = 0
    trained: int = 0
    adapters: int = 0
    changed: int = 0


class FusionModel(nn.Module):
    """Hidden states of ragged token sequences -> fusion -> padding, a group of like lengths at a time -> head.

    The fusion sees real tokens only, end to end; padding is added for the head. A fusion that gives logits has
    its own read-out, and no head.

    seed:  of its start; fusion and head draw from streams of their own
    about: what it was trained on (backbone, dataset, labels), where it was loaded; empty before
    """

    def __init__(self, config: TrialConfig, shape: Shape, *, seed: int = 0):
        super().__init__()
        config.check(shape)
        self.config, self.shape = config, shape
        self.about: dict[str, Any] = {}
        with drawing(seed, "fusion"):
            self.fusion = config.build(shape)
        with drawing(seed, "head"):  # a stream of its own: the head starts alike whatever the fusion drew
            self.head = (
                None if self.fusion.gives == "logits" else build_head(config, shape, self.fusion.width)
            )

    def forward(
        self, states: Mapping[State, Float[Tensor, "tokens K"]], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "items outputs"]:
        """Return [batch, outputs], or [tokens, outputs] of real tokens end to end, as the task's head gives them.

        `lengths` are best on the CPU, where they decide shapes, and best sorted: neighbours are padded together.
        """
        lengths = lengths.cpu()
        return self.read_out(self.fusion(states, lengths), lengths)

    def read_out(
        self, fused: Float[Tensor, "rows width"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "items outputs"]:
        """Return what `forward` does, of what the fusion gave; `lengths` are on the CPU."""
        if self.head is None:
            return fused
        if self.fusion.gives == "sequence":
            return self.head(fused.unsqueeze(1))
        groups = [
            lengths[first:last] for first, last in length_groups(lengths.tolist(), self.head.pass_tokens)
        ]
        parts = fused.split([int(group.sum()) for group in groups])
        given = [self._read(part, group) for part, group in zip(parts, groups, strict=True)]
        return given[0] if len(given) == 1 else torch.cat(given)

    def _read(
        self, flat: Float[Tensor, "tokens k"], lengths: Int[Tensor, " batch"]
    ) -> Float[Tensor, "items outputs"]:
        """Return what the head gives for a group of sequences that are padded to one length."""
        assert self.head is not None
        rows, padding, places = padded(flat, lengths)
        if self.config.positions:
            rows = rows + sinusoidal_positions(*rows.shape[1:]).to(rows)
        given = self.head(rows, padding)
        if self.shape.head == "sequence":
            return given
        given = given.flatten(0, 1)
        return given if places is None else given.index_select(0, places)

    def begin(self) -> None:
        """Make ready for training, once, after the fusion has looked at the training data."""

    def live(self) -> list[State]:
        """Return the hidden states that the next `answer` reads of a batch."""
        return self.fusion.live()

    def answer(self, batch: Readable) -> Float[Tensor, "items outputs"]:
        """Return what `forward` does, of a batch."""
        return self(batch.states, batch.lengths)

    def parameter_groups(self) -> list[ParameterGroup]:
        """Return all trainable parameters, each in one group: the head's, then the fusion's own."""
        head = [] if self.head is None else [p for p in self.head.parameters() if p.requires_grad]
        return [ParameterGroup(head), *self.fusion.parameter_groups()]

    def base_use(self) -> BaseUse:
        """Return what the model needs of its base model, which is frozen."""
        return BaseUse(run=self.shape.depth(self.fusion.live()))

    def weights_at_use(self) -> int:
        """Return how many weights, trained or not, act on a token next to the base model."""
        head = 0 if self.head is None else sum(parameter.numel() for parameter in self.head.parameters())
        return self.fusion.weights_at_use() + head

    def kept_at_use(self) -> int:
        """Return how many numbers a token keeps until the last hidden state is there (`Fusion.kept_at_use`)."""
        return self.fusion.kept_at_use(self.shape.width)

    def n_parameters(self) -> int:
        """Return the number of trainable parameters that can affect the output."""
        trainable = sum(p.numel() for p in self.parameters() if p.requires_grad)
        return trainable - self.fusion.unused_parameters()

    def as_variant(self, variant: Variant) -> AbstractContextManager[None] | None:
        """Return a context in which the model answers as `variant` says; None where that is the model itself, or none.

        A cutoff applies to fusions that tell their weights.
        """
        given = self.fusion.diagnostics()
        dropped = [
            state
            for state in self.fusion.states
            if state.number in variant.without
            or (variant.cutoff is not None and given.get(f"mix/weight_{state.name}", 1.0) <= variant.cutoff)
        ]
        if not dropped or len(dropped) == len(self.fusion.states):
            return None
        return self.fusion.without(dropped, renormalise=variant.renormalise)


def save(model: FusionModel, folder: Folder, *, about: Mapping[str, Any]) -> None:
    """Write the trained parts to `folder`; `about` says what they were trained on (backbone, dataset, labels)."""
    folder.write_bytes(
        WEIGHTS, save_tensors({name: t.contiguous() for name, t in model.state_dict().items()})
    )
    folder.write_json(
        CONFIG,
        {
            "format": FORMAT,
            "trial": as_values(model.config),
            "shape": dataclasses.asdict(model.shape),
            **about,
        },
    )


@dataclass(frozen=True)
class Saved:
    """What a `best/` folder holds: what `save` was given, and the tensors of the trained parts by name."""

    config: TrialConfig
    shape: Shape
    about: dict[str, Any]
    tensors: dict[str, Tensor]


def read(folder: Folder | str | Path) -> Saved:
    """Return what a `best/` folder holds.

    Raises `BadInput` where the folder holds no trained parts, or a fusion that is not known here.
    """
    place = holding(
        folder, (CONFIG, WEIGHTS), wanted="the trained parts of a study", advice="its best/ folder"
    )
    try:
        saved = place.read_json(CONFIG)
        tensors = load_tensors(place.read_bytes(WEIGHTS))
        if not isinstance(saved, dict):
            raise ValueError(f"{CONFIG} holds no object")
    except (ValueError, SafetensorError) as error:
        raise BadInput(
            f"wanted trained parts in {redacted(place.uri)}, their {CONFIG} or {WEIGHTS} cannot be read ({error}); "
            "take another copy, or run the study's command again, which writes them anew"
        ) from error
    if saved.get("format") != FORMAT:
        raise BadInput(
            f"wanted trained parts of format {FORMAT} in {place.uri}, got format {saved.get('format')}, written by "
            "another version; load them with that version"
        )
    about = {name: value for name, value in saved.items() if name not in ("format", "trial", "shape")}
    try:
        config, shape = trial_config(**saved["trial"]), _shape(**saved["shape"])
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise BadInput(
            f"wanted trained parts in {redacted(place.uri)}, their {CONFIG} does not say what they are "
            f"({type(error).__name__}: {error}); take another copy"
        ) from error
    return Saved(config, shape, about, tensors)


def load(folder: Folder | str | Path) -> FusionModel:
    """Return the trained parts saved in a `best/` folder, in eval mode; those of a frozen base model.

    Raises `BadInput` where the folder holds no such parts, or a fusion that is not known here.
    """
    saved = read(folder)
    if saved.config.base_model != "frozen":
        raise BadInput(
            "wanted trained parts over a frozen base model, these have a base model of their own "
            f"(base_model={saved.config.base_model}); use adalayers.load"
        )
    return restored(FusionModel(saved.config, saved.shape), saved)


def restored(model: FusionModel, saved: Saved) -> FusionModel:
    """Return `model` with the tensors of `saved`, and what it was trained on, in eval mode."""
    model.load_state_dict(saved.tensors)
    model.about = saved.about
    model.fusion.finish()
    return model.eval()


def _shape(streams: list[dict[str, Any]], **rest: Any) -> Shape:
    return Shape(streams=tuple(Stream(**stream) for stream in streams), **rest)
