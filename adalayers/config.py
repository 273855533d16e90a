"""What determines a trial besides its data, backbone and seed: one flat, frozen dataclass.

A field's name is the search-space key, the `config/<name>` column of `trials.csv` and the `--set` key.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from adalayers.errors import BadInput, unknown

Head = Literal["sequence", "token"]
"""Whether a head gives outputs per sequence or per token."""
Precision = Literal["float16", "bfloat16", "float32"]


@dataclass(frozen=True)
class Shape:
    """What a model needs to know of its backbone and task.

    head, n_outputs: whether the head gives outputs per sequence or per token, and how many
    n_layers: l of the backbone's stream; width: K; family: transformers' model type
    """

    head: Head
    n_outputs: int
    n_layers: int
    width: int
    family: str


_NEEDS_LEARNED_MIX = ("alpha", "entropy_weight", "entropy_scale", "cutoff", "cutoff_when", "mix_lr")
_NEEDS_TOKENS = ("encoder_layers", "feedforward")


@dataclass(frozen=True)
class TrialConfig:
    """Hyperparameters of a trial. Impossible values raise `BadInput`, which repeats them.

    The layer mix (spec: thesis section 5)
        mix                learned: softmax(alpha * p); uniform; single: all weight on `layer`; last: on the last
        layer              for `single`: the hidden state used, 0 = embeddings
        alpha              scale of the mix logits
        entropy_weight     lambda: the loss is cross-entropy + lambda * H(p~), H in nats
        entropy_scale      nats, or as-released: lambda divided by the number of hidden states mixed
        cutoff             mix weights at or below it become 0, the rest are renormalised
        cutoff_when        always, or after-training: only when the best model is scored
        train_projections  False freezes the projections at their start, as the released baselines did
        hidden_states      layers: outputs of layers 1..l; with-embeddings: 0..l; as-released: see `state_indices`
        k                  width that every hidden state is projected to
    The head
        heads, dropout     attention heads (they divide k); dropout in the head
        positions          sinusoidal positions added to the mixed states
        encoder_layers, feedforward   token head only: pre-norm encoder layers and their inner width
    Optimisation (Adam)
        lr, mix_lr         learning rate; that of p (None: the same)
        weight_decay       on everything except p
        batch_size, epochs
        patience           epochs without a better validation score before training stops
        lr_patience        epochs without one before lr and mix_lr are halved
        class_weights      none; balanced: inverse frequency in train; published: 0.0292 for O, 0.12 for the rest
    """

    mix: Literal["learned", "uniform", "single", "last"] = "learned"
    layer: int | None = None
    alpha: float = 1.0
    entropy_weight: float = 0.0
    entropy_scale: Literal["nats", "as-released"] = "nats"
    cutoff: float = 0.0
    cutoff_when: Literal["always", "after-training"] = "always"
    train_projections: bool = True
    hidden_states: Literal["layers", "with-embeddings", "as-released"] = "layers"
    k: int = 64
    heads: int = 8
    dropout: float = 0.1
    positions: bool = False
    encoder_layers: int = 1
    feedforward: int = 2048
    lr: float = 1e-3
    mix_lr: float | None = None
    weight_decay: float = 1e-3
    batch_size: int = 32
    epochs: int = 20
    patience: int = 5
    lr_patience: int = 2
    class_weights: Literal["none", "balanced", "published"] = "none"

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, _typed(field.name, getattr(self, field.name)))
        for name in (
            "k",
            "heads",
            "encoder_layers",
            "feedforward",
            "batch_size",
            "epochs",
            "patience",
            "lr_patience",
        ):
            self._require(name, getattr(self, name) >= 1, "a whole number of at least 1")
        for name in ("alpha", "lr"):
            self._require(name, getattr(self, name) > 0, "a number above 0")
        self._require(
            "mix_lr", self.mix_lr is None or self.mix_lr > 0, "a number above 0, or none for that of lr"
        )
        self._require("weight_decay", self.weight_decay >= 0, "a number of at least 0")
        self._require("cutoff", 0 <= self.cutoff < 1, "a share of at least 0 and below 1")
        self._require("dropout", 0 <= self.dropout < 1, "a probability of at least 0 and below 1")
        self._require("heads", self.k % self.heads == 0, f"a divisor of k = {self.k}")
        self._require(
            "layer",
            (self.layer is not None) == (self.mix == "single"),
            f"a hidden state for mix=single alone, mix is {self.mix}",
        )

    def _require(self, name: str, holds: bool, wanted: str) -> None:
        if not holds:
            raise BadInput(f"wanted {name} to be {wanted}, got {name}={getattr(self, name)}; change {name}")

    def check_states(self, n_states: int) -> None:
        """Raise `BadInput` where this configuration cannot mix `n_states` hidden states."""
        if self.mix == "learned" and self.cutoff * n_states >= 1:
            raise BadInput(
                f"wanted a cutoff below 1/{n_states} = {1 / n_states:.4g} ({n_states} hidden states start at that "
                f"weight and would all be cut), got cutoff={self.cutoff:g}; lower cutoff"
            )

    def used(self, head: Head) -> dict[str, Any]:
        """Return the hyperparameters that determine a trial with this `head`; those a variant ignores are left out.

        `mix_lr` is resolved: None and the value of `lr` are the same trial.
        """
        values = dataclasses.asdict(self)
        values["mix_lr"] = self.mix_lr or self.lr
        ignored: set[str] = set()
        if self.mix != "learned":
            ignored |= set(_NEEDS_LEARNED_MIX)
        if self.mix != "single":
            ignored.add("layer")
        if self.entropy_weight == 0:
            ignored.add("entropy_scale")
        if self.cutoff == 0:
            ignored.add("cutoff_when")
        if head == "sequence":
            ignored |= set(_NEEDS_TOKENS)
        return {name: value for name, value in values.items() if name not in ignored}


FIELDS = {field.name: field for field in dataclasses.fields(TrialConfig)}
_TYPES = typing.get_type_hints(TrialConfig)


def with_overrides(config: TrialConfig, overrides: Mapping[str, Any]) -> TrialConfig:
    """Return `config` with some fields replaced. Raises `BadInput` for an unknown key or an impossible value."""
    for name in overrides:
        if name not in FIELDS:
            raise unknown("hyperparameter", name, FIELDS)
    return dataclasses.replace(config, **overrides)


def parse_overrides(assignments: list[str] | tuple[str, ...]) -> dict[str, Any]:
    """Return {name: value} of "name=value" strings, values of the field's own type.

    Raises `BadInput` for what is not of that form, an unknown name, a value of another type, or a name given
    two different values.
    """
    values: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise BadInput(f"wanted KEY=VALUE, got {assignment!r}; write for example --set k=64 dropout=0.2")
        if name not in FIELDS:
            raise unknown("hyperparameter", name, FIELDS)
        value = _typed(name, text)
        if values.setdefault(name, value) != value:
            raise BadInput(f"wanted one value of {name}, got {values[name]} and {value}; keep one of them")
    return values


def _typed(name: str, value: Any) -> Any:
    """Return `value` (a number, or text from the command line) as the type of the field `name`."""
    wanted = _TYPES[name]
    if typing.get_origin(wanted) is Literal:
        choices = typing.get_args(wanted)
        if value not in choices:
            raise unknown(f"value of {name}", str(value), choices)
        return value
    optional = typing.get_origin(wanted) is types.UnionType
    if optional and (value is None or value in {"none", "None"}):
        return None
    kind = typing.get_args(wanted)[0] if optional else wanted
    try:
        return _convert(value, kind)
    except (KeyError, TypeError, ValueError) as error:
        article = {bool: "true or false", int: "a whole number", float: "a finite number"}[kind]
        raise BadInput(f"wanted {name} to be {article}, got {name}={value}; change {name}") from error


def _convert(value: Any, kind: type) -> Any:
    if kind is bool:
        return {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}[
            str(value).lower()
        ]
    number = float(value)
    if number != number or number in (float("inf"), float("-inf")):
        raise ValueError(value)
    if kind is int:
        if not number.is_integer():
            raise ValueError(value)
        return int(number)
    return number


def state_indices(hidden_states: str, n_layers: int, family: str) -> list[int]:
    """Return which entries of a backbone's `hidden_states` are mixed (0 = embeddings, i = output of layer i).

    `as-released` pairs projections with the first entries, as many as the released configuration of that
    family names: the number of layers (RoBERTa: the last layer is never used), one more for BERT and BART.
    """
    if hidden_states == "layers":
        return list(range(1, n_layers + 1))
    if hidden_states == "with-embeddings":
        return list(range(n_layers + 1))
    if hidden_states == "as-released":
        return list(range(n_layers + 1 if family in {"bert", "bart"} else n_layers))
    raise unknown("value of hidden_states", hidden_states, typing.get_args(_TYPES["hidden_states"]))
