"""What determines a trial besides its data, backbone and seed: one flat, frozen dataclass per fusion method.

`TrialConfig` holds what all methods share; each method's own hyperparameters are a subclass in its file in
`adalayers/fusion/`. A field's name is the search-space key, the `config/<name>` column of `trials.csv` and the
`--set` key; a name that two methods use means the same in both.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import logging
import math
import types
import typing
from abc import ABC
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from adalayers.backbones.families import FAMILIES, layer_parts
from adalayers.errors import BadInput, require_within, unknown
from adalayers.installed import added, load_added
from adalayers.states import (
    Head,
    Pooling,
    Settings,
    Shape,
    State,
    StreamChoice,
    Value,
    chosen_states,
    chosen_streams,
    listed_layers,
)

if TYPE_CHECKING:  # importing torch takes seconds; only what builds a model pays for it
    from adalayers.fusion.fusion import Fusion

logger = logging.getLogger(__name__)

POOLED: tuple[Pooling, ...] = get_args(Pooling)
"""Read-outs that make one vector of a sequence, and then a linear layer's input."""
FUSIONS = {
    "layer-mix": "adalayers.fusion.layer_mix",
    "scalar-mix": "adalayers.fusion.scalar_mix",
    "concat": "adalayers.fusion.concat",
    "dwatt": "adalayers.fusion.dwatt",
    "extra-layers": "adalayers.fusion.extra_layers",
    "head2toe": "adalayers.fusion.head2toe",
    "routing": "adalayers.fusion.routing",
    "variability": "adalayers.fusion.variability",
    "layer-attention": "adalayers.fusion.layer_attention",
    "late-fusion": "adalayers.fusion.late_fusion",
    "layer-set": "adalayers.fusion.layer_set",
    "layer-graph": "adalayers.fusion.layer_graph",
    "tokens-first": "adalayers.fusion.tokens_first",
    "depth-convolution": "adalayers.fusion.depth_convolution",
    "wide-layer": "adalayers.fusion.wide_layer",
}
"""Fusion method -> the module with its configuration and its arithmetic. A new method is a file and a line here."""

DEFAULT_FUSION = "layer-mix"

MAXIMUM = 10**7
"""Largest whole number that a hyperparameter may be, unless its field says otherwise."""
MAX_WIDTH = 2**16
"""Beyond it no machine holds the weights."""


def bounded(default: Any, **bounds: Any) -> Any:
    """Return a field of a configuration with bounds, as `require_within` takes them, for what is not None.

    `absent=` is the first default that there was, of a field whose default has changed.
    """
    return dataclasses.field(default=default, metadata=bounds)


@dataclass(frozen=True, kw_only=True)
class HeadConfig:
    """What a method without a head of its own gives its head; a method with `own_read_out` uses none of it."""

    read_out: Literal["attention", "linear", "mean", "first-token", "last-token"] = "attention"
    classifier_layers: int = bounded(1, least=1, most=2)
    heads: int = bounded(8, least=1, most=2**12)
    dropout: float = bounded(0.1, least=0, below=1)
    positions: bool = False
    encoder_layers: int = bounded(1, least=1, most=2**8)
    feedforward: int = bounded(2048, least=1, most=2**18)


@dataclass(frozen=True, kw_only=True)
class AdapterConfig:
    """The adapters of `base_model=adapters`."""

    adapter_width: int = bounded(64, least=1, most=MAX_WIDTH)
    adapter_sharing: Literal["none", "layer", "three"] = "layer"
    adapter_norms: bool = False


@dataclass(frozen=True, kw_only=True)
class TrialConfig(HeadConfig, AdapterConfig, ABC):
    """Hyperparameters that all fusion methods share. Impossible values raise `BadInput`, which repeats them.

    Which data
        hidden_states      layers: outputs of layers 1..l; with-embeddings: 0..l; layers:1,6: some of them; lower-half,
                           upper-half: 1..l/2 and the rest; as-released: see `chosen_states`
        stream             of a model with an encoder and a decoder, whose states: encoder, decoder, or both, the
                           encoder's first; `hidden_states` is then a choice of each
        final_norm         False reads the last state before the stream's final norm, where it has one (T5, GPT-2)
        train_examples     size of the subset of the training pool that is trained on (None: all of it)
        draw               which subset: the seed that draws it (None: the trial's seed)
    The head
        read_out           attention: as in the thesis; linear: no attention, a sequence is gelu -> dropout -> mean ->
                           linear, a token dropout -> linear; first-token, last-token, mean: a sequence is dropout ->
                           linear of its first or last token's state, or of the mean over its tokens, never of padding
        classifier_layers  2 puts a layer of the same width and tanh before the last one, in these three
        word_position      on tasks with a label per word, the token that answers for its word: first-token or
                           last-token; auto: the last where a decoder's states are read, which at a word's first token
                           have not seen the rest of it, else the first
        heads, dropout     attention heads (they divide the fusion's width); dropout in the head
        positions          sinusoidal positions added to the fused states
        encoder_layers, feedforward   token head only: pre-norm encoder layers and their inner width
    The base model
        base_model         frozen: its hidden states are read as they are; fine-tuned: a copy is trained along with the
                           rest; adapters: a copy is, by small layers within it (Houlsby et al. 2019)
        base_layers        which of its layers that is about. all; selected: the first ones, as many as the fusion takes
                           (`Fusion.depth`); as-many-top: as many, from the top
        adapter_width      m, the inner width of an adapter
        adapter_sharing    none: two adapters a layer; layer: one, used twice; three: one for three layers in a row
        adapter_norms      whether the layers' norms are trained with the adapters
        base_lr            learning rate of what is trained within the base model (None: that of lr)
    Optimisation
        optimiser          adam; adamw: weight decay apart from the gradient's moments
        lr, weight_decay   of all parameters for which the fusion does not say otherwise
        schedule           plateau: rates halved where validation stops improving; linear: warm-up, then to 0
        lr_patience        plateau: evaluations in a row without a better score before the rates are halved
        warmup             linear: share of all steps in which the rates rise from 0
        batch_size, epochs
        evaluate_every     epochs between two evaluations on validation
        patience           plateau: evaluations in a row without a better score before training stops
        class_weights      none; balanced: inverse frequency in train; published: 0.0292 for O, 0.12 for the rest

    A subclass sets `fusion`, the method's name, and says what is `unused`, what it `check`s and its `width`.

    method:       the fusion that it builds, which names this configuration (`Fusion`)
    tasks:        what the method has answers for: whole texts, single words, or both
    own_read_out: whether it gives logits itself, so that there is no head and nothing of one is used
    token_by_token: whether what it gives of a token follows from that token's states alone
    least_outputs: how many labels it takes at least
    """

    fusion: ClassVar[str]
    method: ClassVar[type[Any]]
    tasks: ClassVar[tuple[Head, ...]] = ("sequence", "token")
    own_read_out: ClassVar[bool] = False
    token_by_token: ClassVar[bool] = False
    least_outputs: ClassVar[int] = 1

    hidden_states: str = "layers"
    stream: StreamChoice = "encoder"
    final_norm: bool = True
    train_examples: int | None = bounded(None, least=1)
    draw: int | None = bounded(None, least=0, most=2**63 - 1)
    # What trials had before they named it: the default is no other one where there is no decoder.
    word_position: Literal["auto", "first-token", "last-token"] = bounded("auto", absent="first-token")
    base_model: Literal["frozen", "fine-tuned", "adapters"] = "frozen"
    base_layers: Literal["all", "selected", "as-many-top"] = "all"
    base_lr: float | None = bounded(None, above=0)
    optimiser: Literal["adam", "adamw"] = "adam"
    lr: float = bounded(1e-3, above=0)
    weight_decay: float = bounded(1e-3, least=0)
    schedule: Literal["plateau", "linear"] = "plateau"
    warmup: float = bounded(0.1, least=0, below=1)
    lr_patience: int = bounded(2, least=1)
    batch_size: int = bounded(32, least=1)
    epochs: int = bounded(20, least=1)
    evaluate_every: int = bounded(1, least=1)
    patience: int = bounded(5, least=1)
    class_weights: Literal["none", "balanced", "published"] = "none"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "fusion" in cls.__dict__:
            _CONFIGS[cls.fusion] = cls

    def __post_init__(self) -> None:
        for name, hint in _hints(type(self)).items():
            object.__setattr__(self, name, typed(name, hint, getattr(self, name)))
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int | float):
                most = {"most": MAXIMUM} if isinstance(value, int) else {}
                require_within(field.name, value, most | dict(field.metadata))
        listed_layers(self.hidden_states)

    def values(self) -> Settings:
        """Return all fields as they are given; none holds another dataclass."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def require(self, name: str, holds: bool, wanted: str) -> None:
        """Raise `BadInput` for the field `name` where `holds` is false."""
        if not holds:
            raise BadInput(f"wanted {name} to be {wanted}, got {name}={getattr(self, name)}; change {name}")

    def width(self, shape: Shape) -> int:
        """Return the width of what the fusion gives; methods that give no logits say theirs."""
        return shape.n_outputs

    def build(self, shape: Shape) -> Fusion:
        """Return the fusion, its parameters drawn from torch's global stream."""
        fusion: Fusion = self.method(self, shape)
        return fusion

    def unused(self, shape: Shape) -> set[str]:
        """Return the names of hyperparameters that change nothing here; methods add theirs."""
        sequence, attention = not shape.per_token, self.read_out == "attention"
        head_only = sequence or self.read_out == "linear"
        read = chosen_states(self.hidden_states, shape, stream=self.stream, final_norm=False)
        unused = {
            "warmup": self.schedule == "plateau",
            "lr_patience": self.schedule != "plateau",
            "patience": self.schedule != "plateau",
            "stream": len(shape.streams) == 1,
            "final_norm": not any(state.before_norm for state in read),
            "draw": self.train_examples is None,
            "encoder_layers": head_only,
            "feedforward": head_only,
            "heads": not attention,
            "classifier_layers": self.read_out not in POOLED,
            "word_position": sequence,
            "base_layers": self.base_model == "frozen",
            "base_lr": self.base_model == "frozen",
            **dict.fromkeys(_hints(AdapterConfig), self.base_model != "adapters"),
        }
        names = {name for name, is_unused in unused.items() if is_unused}
        return names | _hints(HeadConfig).keys() if self.own_read_out else names

    def resolved(self, shape: Shape) -> Settings:
        """Return all hyperparameters, those that follow from others worked out; methods work out theirs.

        A choice of hidden states has one name: that of the first of `layers`, `with-embeddings` that is the same.
        """
        chosen = chosen_states(self.hidden_states, shape, stream=self.stream)
        embeddings = all(stream.embeddings for stream in chosen_streams(self.stream, shape))
        names = ("layers", *(["with-embeddings"] if embeddings else []), self.hidden_states)
        name = next(name for name in names if chosen_states(name, shape, stream=self.stream) == chosen)
        values = self.values()
        rates: Settings = {name: rate or self.lr for name, rate in values.items() if name.endswith("_lr")}
        return {**values, **rates, "hidden_states": name, "word_position": self.word_token(shape)}

    def word_token(self, shape: Shape) -> Literal["first-token", "last-token"]:
        """Return which token answers for its word."""
        if self.word_position != "auto":
            return self.word_position
        return "last-token" if any(state.causal for state in self.states(shape)) else "first-token"

    def used(self, shape: Shape) -> Settings:
        """Return the hyperparameters that determine a trial; those that change nothing are left out."""
        unused = self.unused(shape)
        return {name: value for name, value in self.resolved(shape).items() if name not in unused}

    def within(self, names: Collection[str], shape: Shape) -> Settings:
        """Return those of some hyperparameters, `fusion` among them, that determine a trial; methods with two names
        for one trial give that of which `names` has all.
        """
        used = {"fusion": self.fusion, **self.used(shape)}
        return {name: used[name] for name in names if name in used}

    def identity(self, shape: Shape) -> Settings:
        """Return what tells this configuration from others: what it uses, as far as it is not the default.

        A field that is added with a default therefore renames no trial. Where a default changes, the field's
        metadata keeps the first one as `absent`: the value that trials had before they named it.
        """
        absent = _absent(type(self))
        changed = {name: value for name, value in self.used(shape).items() if value != absent[name]}
        return {"fusion": self.fusion, **changed}

    def check(self, shape: Shape) -> None:
        """Raise `BadInput` where this configuration does not fit a backbone or task; methods check theirs."""
        unit = "word" if shape.per_token else "text"
        self.require("fusion", shape.head in self.tasks, f"a method for tasks with a label per {unit}")
        wanted = f"a method for outputs of {shape.n_outputs} (this one takes at least {self.least_outputs})"
        self.require("fusion", shape.n_outputs >= self.least_outputs, wanted)
        chosen_states(self.hidden_states, shape, stream=self.stream)
        trainable = self.base_model == "frozen" or shape.family != "states"
        self.require(
            "base_model", trainable, "frozen where hidden states were computed elsewhere (states:DIR)"
        )
        readable = self.base_model == "frozen" or self.stream == "encoder" or len(shape.streams) == 1
        wanted = f"encoder where base_model={self.base_model}, for a decoder is read of frozen models alone"
        self.require("stream", readable, wanted)
        shared = self.base_model != "frozen" and getattr(FAMILIES.get(shape.family), "shared", False)
        self.require("base_model", not shared, "frozen where all layers are one and the same")
        if self.base_model == "adapters":
            layer_parts(shape.family)
        if self.own_read_out:
            return
        width = self.width(shape)
        divides = self.read_out != "attention" or width % self.heads == 0
        self.require("heads", divides, f"a divisor of the fusion's width, {width}")
        answers = self.read_out not in POOLED or not shape.per_token
        wanted = f"attention or linear on a task with a label per word, for {self.read_out} is for sequences"
        self.require("read_out", answers, wanted)

    def check_layer(self, shape: Shape, layer: int | None) -> None:
        """Raise `BadInput` where one hidden state is to be read, and `layer` is the number of none, or of several."""
        states = self.states(shape)
        one_stream = len({state.stream for state in states}) == 1
        self.require("stream", one_stream, "encoder or decoder, for the layer that is read is of one of them")
        numbers = [state.number for state in states]
        self.require("layer", layer is None or layer in numbers, f"one of {numbers}")

    def pooling(self, shape: Shape) -> Pooling | None:
        """Return how a text's tokens may be pooled in each layer before anything else, and the model stay the same.

        None where they may not: words have labels of their own, the base model is changed, or what comes before the
        read-out's pool is no sum over tokens (gelu and a norm are not).
        """
        sequence = not shape.per_token and self.base_model == "frozen"
        return self._pooling() if sequence else None

    def _pooling(self) -> Pooling | None:
        """Return the same of texts and a frozen base model: methods that pool before they mix say theirs."""
        at_one_token = self.read_out in ("first-token", "last-token") and not self.positions
        return self.read_out if self.token_by_token and at_one_token else None  # type: ignore[return-value]

    def _linear_pooling(self, linear: bool) -> Pooling | None:
        """Return `_pooling`, and the read-out's mean of a method that is `linear` in hidden states."""
        mean = self.read_out == "mean" and linear and not self.positions
        return "mean" if mean else TrialConfig._pooling(self)

    def states(self, shape: Shape) -> list[State]:
        """Return the hidden states that are read."""
        return chosen_states(self.hidden_states, shape, stream=self.stream, final_norm=self.final_norm)


_CONFIGS: dict[str, type[TrialConfig]] = {}


@dataclass(frozen=True, kw_only=True)
class WidthConfig(TrialConfig):
    """What methods have in common that give vectors of a width of their own.

    k  that width
    """

    k: int = bounded(64, least=1, most=MAX_WIDTH)

    def width(self, shape: Shape) -> int:
        return self.k


@dataclass(frozen=True, kw_only=True)
class TextVectorConfig(TrialConfig):
    """What methods have in common that give one vector of a text: texts only, dropout and a linear layer read it.

    read_out  one of the pooled ones, which all say the same of one vector
    """

    tasks: ClassVar[tuple[Head, ...]] = ("sequence",)

    read_out: Literal["attention", "linear", "mean", "first-token", "last-token"] = "mean"

    def check(self, shape: Shape) -> None:
        super().check(shape)
        wanted = f"mean with fusion={self.fusion}, which gives one vector of a text"
        self.require("read_out", self.read_out in POOLED, wanted)

    def unused(self, shape: Shape) -> set[str]:
        return super().unused(shape) | {"positions"}

    def resolved(self, shape: Shape) -> Settings:
        return {**super().resolved(shape), "read_out": "mean"}


def config_class(fusion: Value) -> type[TrialConfig]:
    """Return the configuration of a method. Raises `BadInput` for a name that is none."""
    fusion, hint = str(fusion), ""
    if fusion not in _CONFIGS and fusion in FUSIONS:
        importlib.import_module(FUSIONS[fusion])
    elif fusion not in _CONFIGS and (entry := added("fusions").get(fusion)):
        load_added(entry)
        hint = f"{entry.value} was imported and has no configuration of that name: set its class attribute fusion"
    if fusion not in _CONFIGS:
        raise unknown("fusion", fusion, _known(), hint=hint)
    return _CONFIGS[fusion]


def _known() -> list[str]:
    """Return the names of all methods: the project's own, those of other packages, and those that were imported."""
    return list(dict.fromkeys([*FUSIONS, *added("fusions"), *_CONFIGS]))


def trial_config(**values: Any) -> TrialConfig:
    """Return the configuration of `values`: `fusion`, the method (default layer-mix), and hyperparameters by name.

    Raises:
        BadInput: An unknown name or an impossible value.
    """
    return _class_for(values, DEFAULT_FUSION)(**values)


def used_config(fusion: str, used: Mapping[str, Value]) -> TrialConfig:
    """Return the configuration of a trial that was kept as what it `used`.

    A hyperparameter that is not there is what it was before there was one (`absent` of its field).

    Raises:
        BadInput: An unknown name or an impossible value.
    """
    return trial_config(fusion=fusion, **_absent(config_class(fusion)) | dict(used))


def with_overrides(config: TrialConfig, overrides: Mapping[str, Any]) -> TrialConfig:
    """Return `config` with some hyperparameters replaced; another `fusion` keeps what the two methods share.

    Raises:
        BadInput: An unknown name or an impossible value.
    """
    values = dict(overrides)
    kind = _class_for(values, config.fusion)
    shared = {name: value for name, value in config.values().items() if name in _hints(kind)}
    return kind(**{**shared, **values})


def as_values(config: TrialConfig) -> Settings:
    """Return a configuration as `trial_config` takes it."""
    return {"fusion": config.fusion, **config.values()}


def hyperparameters() -> dict[str, type]:
    """Return name -> type of the hyperparameters of all methods, `fusion` among them."""
    hints: dict[str, type] = {"fusion": str}
    for name in _known():
        try:
            hints |= _hints(config_class(name))
        except BadInput as error:  # of another package
            _passed_over(name, str(error))
    return hints


@functools.cache
def _passed_over(name: str, why: str) -> None:
    logger.warning(f"the fusion {name} is passed over: {why}")


def parse_overrides(assignments: list[str] | tuple[str, ...]) -> Settings:
    """Return {name: value} of "name=value" strings, values of the field's own type.

    Raises:
        BadInput: What is not of that form, an unknown name, a value of another type, or a name given two different
            values.
    """
    values: Settings = {}
    hints = hyperparameters() if assignments else {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise BadInput(f"wanted KEY=VALUE, got {assignment!r}; write for example --set k=64 dropout=0.2")
        if name not in hints:
            raise unknown("hyperparameter", name, hints)
        value = typed(name, hints[name], text)
        if values.setdefault(name, value) != value:
            raise BadInput(f"wanted one value of {name}, got {values[name]} and {value}; keep one of them")
    return values


def _class_for(values: Settings, fusion: str) -> type[TrialConfig]:
    """Return the configuration of `values`, taking the method's name out of them; `fusion` where they have none."""
    kind = config_class(values.pop("fusion", fusion))
    hints = _hints(kind)
    for name in values:
        if name not in hints:
            raise unknown("hyperparameter", name, hints)
    return kind


@functools.cache
def _absent(kind: type[TrialConfig]) -> Settings:
    """Return what each field was before trials named it: `absent`, else its default."""
    return {field.name: field.metadata.get("absent", field.default) for field in dataclasses.fields(kind)}


@functools.cache
def _hints(kind: type[HeadConfig | AdapterConfig]) -> dict[str, type]:
    """Return the types of a configuration's fields by name."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def typed(name: str, wanted: Any, value: Any) -> Any:
    """Return `value` (a number, or text from the command line) as the type `wanted` of the field `name`."""
    if wanted is str:
        return str(value)
    if typing.get_origin(wanted) is Literal:
        choices = typing.get_args(wanted)
        if value not in choices:
            raise unknown(f"value of {name}", str(value), choices)
        return value
    optional = typing.get_origin(wanted) is types.UnionType
    if optional and (value is None or value in ("none", "None")):
        return None
    kind = typing.get_args(wanted)[0] if optional else wanted
    try:
        if kind is bool:
            return {"true": True, "false": False}[str(value).lower()]
        number = int(value) if kind is int and str(value).isdecimal() else float(value)
        if not math.isfinite(number) or (kind is int and number % 1):
            raise ValueError(value)
        return kind(number)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        article = {bool: "true or false", int: "a whole number", float: "a finite number"}[kind]
        raise BadInput(f"wanted {name} to be {article}, got {name}={value}; change {name}") from error
