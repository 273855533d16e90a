"""A fusion and head over a base model that is changed along with them; and the one way to make any trial's model."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from adalayers.backbones.backbone import Backbone
from adalayers.backbones.families import layer_parts
from adalayers.backbones.loading import shared_backbone
from adalayers.backbones.sources import BackboneSource
from adalayers.config import TrialConfig
from adalayers.errors import BadInput
from adalayers.fusion.fusion import ParameterGroup
from adalayers.models.model import BaseUse, FusionModel, trained_weights
from adalayers.models.trainable_base.adapters import Adapters
from adalayers.models.trainable_base.base import Base
from adalayers.states import Shape, State
from adalayers.study import Variant


class TrainableBaseModel(FusionModel):
    """A `FusionModel` that runs a base model of its own: adapters in its layers, or layers trained.

    Which layers (`config.base_layers`), l being the base model's, d the deepest hidden state that is read and n the
    fusion's `depth`: all: 1..d; selected: 1..n; as-many-top: l-n+1..d. Layers beyond d are not run. Fine-tuning all
    trains what belongs to no layer too (embeddings). The fusion chooses by the frozen model (`fit`), so
    the base model stays as it is until `prepare_training`.

    Args:
        backbone: What is copied; it is never changed.
        seed:     Of its start; fusion, head and each adapter draw from streams of their own.

    Attributes:
        span: int64 [3], once prepared: the first and last layer that are trained or have adapters, and d

    While training, dropout within the base model is on, drawn again at each step from `generator`.

    Raises:
        BadInput: A base model that cannot be changed in that way.
    """

    def __init__(self, config: TrialConfig, shape: Shape, backbone: Backbone, *, seed: int = 0):
        super().__init__(config, shape, seed=seed)
        self.base = Base(backbone)
        self.adapters = Adapters(config, inner=shape.width, seed=seed)
        self.generator: torch.Generator | None = None
        self.span = nn.Buffer(torch.zeros(3, dtype=torch.long))

    def prepare_training(self) -> None:
        """Change the base model as configured. Raises `BadInput` where there is no layer to change."""
        deepest = max((state.number for state in self.fusion.live()), default=0)
        first, last = 1, deepest
        if self.config.base_layers == "selected":
            last = min(deepest, self.fusion.depth())
        elif self.config.base_layers == "as-many-top":
            first = self.base.streams[0].layers - self.fusion.depth() + 1
        if first > last and not self._trains_embeddings:
            raise BadInput(
                f"wanted layers of the base model to train, base_layers={self.config.base_layers} leaves none of the "
                f"{deepest} that this fusion reads; change base_layers or hidden_states"
            )
        self._change(first, last, deepest)

    @property
    def _trains_embeddings(self) -> bool:
        """Whether more than layers are trained: as many layers, at the top or below, are so many weights alike."""
        return self.config.base_model == "fine-tuned" and self.config.base_layers == "all"

    def _change(self, first: int, last: int, deepest: int) -> None:
        """Put adapters into layers first..last or train them, and cut off what is not run."""
        config, base = self.config, self.base
        self.span.copy_(torch.tensor([first, last, deepest]))
        base.cut(deepest)
        if config.base_model == "fine-tuned":
            states = [state for state in self.fusion.states if state.number == deepest]
            base.train_layers(first, last, others=self._trains_embeddings, states=states)
            return
        layers = {number: base.layers[number - 1] for number in range(first, last + 1)}
        self.adapters.put_into(layers, layer_parts(self.shape.family))
        self.adapters.to(self.span.device)
        if config.adapter_norms:
            for module in itertools.chain.from_iterable(layer.modules() for layer in layers.values()):
                if "norm" in type(module).__name__.lower():
                    module.requires_grad_(True)

    def live(self) -> list[State]:
        """Return no hidden state: `forward_batch` reads token ids."""
        return []

    def forward_batch(self, batch: Any) -> Float[Tensor, "items outputs"]:
        """Return what `forward` does of the states that the base model now gives for a batch's `input_ids`."""
        with self._drawing() if self.training else contextlib.nullcontext():
            states = self.base.of_sequences(
                batch.input_ids, batch.lengths, self.fusion.live(), batch.token_types
            )
        return self(states, batch.lengths)

    @contextlib.contextmanager
    def _drawing(self) -> Iterator[None]:
        """Let the base model's dropout, which knows torch's global stream alone, follow from `generator`."""
        device = self.span.device
        seed = int(torch.randint(1 << 62, (), generator=self.generator, device=device))
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.default_generator.manual_seed(seed)
            if device.type == "cuda":
                torch.cuda.default_generators[device.index].manual_seed(seed)
            yield

    def parameter_groups(self) -> list[ParameterGroup]:
        """Return the head's and the fusion's groups, then what is trained within the base model, at `base_lr`."""
        within = [*self.base.parameters(), *self.adapters.parameters()]
        own = [parameter for parameter in within if parameter.requires_grad]
        return [*super().parameter_groups(), ParameterGroup(own, lr=self.config.base_lr)]

    def base_use(self) -> BaseUse:
        """Return what a pass takes, which no other task can share; embedding tables are changed, and no operations."""
        first, _, deepest = self.span.tolist()
        return BaseUse(
            run=deepest,
            own_pass=True,
            through=deepest - first + 1,
            trained=trained_weights(self.base.layers[:deepest]),
            adapters=self.adapters.acting,
            changed=trained_weights(self.base) + trained_weights(self.adapters),
        )

    def kept_at_use(self) -> int:
        """Return K: nothing but the pass's own stream."""
        return self.shape.width

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # type: ignore[override]  # it has overloads
        """Return fusion, head, adapters, and what is trained of the base model: nothing that is frozen."""
        trained = {f"base.{name}" for name, p in self.base.named_parameters() if p.requires_grad}
        tensors = super().state_dict(*args, **kwargs).items()
        return {name: value for name, value in tensors if not name.startswith("base.") or name in trained}

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Load what `state_dict` returned; a base model that is still as it was is changed as that one's first.

        Raises:
            ValueError: Other tensors, or a span that the base model does not have.
        """
        if not self.span.any():
            self._change(*state_dict["span"].tolist())
        wanted, given = set(self.state_dict()), set(state_dict)
        if strict and wanted != given:
            raise ValueError(
                f"wanted the parameters of this model, missing {sorted(wanted - given)}, "
                f"unknown {sorted(given - wanted)}"
            )
        loaded = super().load_state_dict(state_dict, strict=False, assign=assign)
        if any(state.number > self.span[2] for state in self.fusion.live()):
            raise ValueError(f"wanted span to reach all layers that are read, got {self.span.tolist()}")
        return loaded

    def as_variant(self, variant: Variant) -> contextlib.AbstractContextManager[None] | None:
        """Return what `FusionModel.as_variant` does; with adapters, `without` takes away those of the layers.

        All of them may be taken away. Nothing sums to 1, so there is no other way than `renormalise`, and no cutoff.
        """
        if not self.adapters.layers:
            return super().as_variant(variant)
        layers = set(variant.without) & set(self.adapters.layers)
        if not layers or not variant.renormalise or variant.cutoff is not None:
            return None
        return self._without_adapters(layers)

    @contextlib.contextmanager
    def _without_adapters(self, layers: Collection[int]) -> Iterator[None]:
        """Evaluate as if the adapters of `layers` were not there (Houlsby et al. 2019, section 3.6)."""
        before, self.adapters.off = self.adapters.off, frozenset(layers)
        try:
            yield
        finally:
            self.adapters.off = before


def build_model(
    config: TrialConfig,
    shape: Shape,
    source: BackboneSource | None = None,
    *,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> FusionModel:
    """Return the model that a configuration asks for.

    Args:
        config: The trial's configuration.
        shape:  What the model needs to know of backbone and task.
        source: Where the base model is; read only where it is not frozen.
        seed:   Of the start of all parameters.
        device: Where the model is put.

    Returns:
        A `FusionModel`; where `config.base_model` is not frozen, a `TrainableBaseModel`.

    Raises:
        BadInput: The base model cannot be changed in that way.
    """
    if config.base_model == "frozen":
        return FusionModel(config, shape, seed=seed).to(device)
    assert source is not None, "data of a study say where their base model is"
    # Its copy takes small steps, which bfloat16 would round away.
    full_source = dataclasses.replace(source.with_all_states, dtype="float32")
    return TrainableBaseModel(config, shape, shared_backbone(full_source, device), seed=seed).to(device)
