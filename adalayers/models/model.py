"""The trained part of a trial: a fusion of hidden states and a head."""

from __future__ import annotations

import dataclasses
from contextlib import AbstractContextManager
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from adalayers.config import TrialConfig
from adalayers.data.trial_data import Batch
from adalayers.fusion.fusion import Lengths, ParameterGroup, States
from adalayers.models.heads import build_head
from adalayers.states import Shape, State
from adalayers.study import Variant
from adalayers.tensors.ragged import in_padded_groups
from adalayers.tensors.seeds import drawing


@dataclasses.dataclass(frozen=True)
class BaseUse:
    """What a model needs of its base model.

    Attributes:
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


def trained_weights(module: nn.Module) -> int:
    """Return how many weights of a module are trained."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)


class FusionModel(nn.Module):
    """Hidden states of ragged token sequences -> fusion -> padding, a group of like lengths at a time -> head.

    The fusion sees real tokens only, end to end; padding is added for the head. A fusion that gives logits has
    its own read-out, and no head.

    Args:
        config: The trial's configuration.
        shape:  What it needs to know of backbone and task.
        seed:   Of its start; fusion and head draw from streams of their own.

    Attributes:
        about: What it was trained on (backbone, dataset, labels), where it was loaded; empty before.
    """

    def __init__(self, config: TrialConfig, shape: Shape, *, seed: int = 0):
        super().__init__()
        config.check(shape)
        self.config, self.shape = config, shape
        self.about: dict[str, Any] = {}
        with drawing(seed, "fusion"):
            self.fusion = config.build(shape)
        with drawing(seed, "head"):  # a stream of its own: the head starts alike whatever the fusion drew
            self.head = None if config.own_read_out else build_head(config, shape, self.fusion.width)

    def forward(self, states: States, lengths: Lengths) -> Float[Tensor, "items outputs"]:
        """Return [batch, outputs], or [tokens, outputs] of real tokens end to end, as the task's head gives them.

        `lengths` are best on the CPU, where they decide shapes, and best sorted: neighbours are padded together.
        """
        lengths = lengths.cpu()
        return self.read_out(self.fusion(states, lengths), lengths)

    def read_out(
        self, fused: Float[Tensor, "rows width"], lengths: Lengths
    ) -> Float[Tensor, "items outputs"]:
        """Return the outputs of `forward`, computed from those of the fusion; `lengths` are on the CPU."""
        if self.head is None:
            return fused
        if self.fusion.of_texts:
            return self.head.classify(self.head.read(fused.unsqueeze(1)))  # one vector has no place
        return in_padded_groups(fused, lengths, self.head.pass_tokens, self.head)

    def prepare_training(self) -> None:
        """Prepare for training, once, after the fusion was fitted to the training data."""

    def live(self) -> list[State]:
        """Return the hidden states that the next `forward_batch` reads of a batch."""
        return self.fusion.live()

    def forward_batch(self, batch: Batch) -> Float[Tensor, "items outputs"]:
        """Return the outputs of `forward` for a batch."""
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
        return trained_weights(self) - self.fusion.unused_parameters()

    def as_variant(self, variant: Variant) -> AbstractContextManager[None] | None:
        """Return a context in which the model answers as `variant` says; None where no layer is left or taken away.

        A cutoff applies to fusions that tell their weights; one that cuts none of them leaves the model as it is.
        """
        found = self.fusion.diagnostics().items() if variant.cutoff is not None else ()
        weights = {name: weight for name, weight in found if name.startswith("mix/weight_")}
        dropped = [
            state
            for state in self.fusion.states
            if state.number in variant.without
            or weights.get(f"mix/weight_{state.name}", 1.0) <= (variant.cutoff or 0)
        ]
        if not (dropped or weights) or len(dropped) == len(self.fusion.states):
            return None
        return self.fusion.without(dropped, renormalise=variant.renormalise)
