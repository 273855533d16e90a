"""From names to data: a backbone and a dataset resolved, tokenised, and joined with their hidden states."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from adalayers.backbones import loading, pretrained, sources, states_folder, tokens
from adalayers.backbones.given_states import encoded_states
from adalayers.backbones.sources import BackboneSource
from adalayers.backbones.tokens import Encoded
from adalayers.config import TrialConfig
from adalayers.data.trial_data import SplitData, TrialData
from adalayers.environ import default_cache
from adalayers.errors import BadInput
from adalayers.features.features import Features, LiveFeatures, Mode, stored, stored_bytes
from adalayers.provenance import BackboneId, DatasetId, Provenance
from adalayers.request import DataRequest
from adalayers.results.study_file import splits_in_words
from adalayers.states import Shape, State, chosen_streams
from adalayers.tasks.columns import Split
from adalayers.tasks.task import Task, label_bytes, load_task


@dataclass(frozen=True)
class Prepared:
    """A task in a backbone's tokens; no hidden state is computed yet."""

    request: DataRequest
    source: BackboneSource
    task: Task
    encoded: dict[str, Encoded]

    @property
    def n_tokens(self) -> int:
        return sum(len(encoded.input_ids) for encoded in self.encoded.values())

    @property
    def also_in_train(self) -> dict[str, np.ndarray]:
        """Examples that also stand in train, as `Task` has them; none of hidden states, whose texts nothing reads."""
        return {} if self.source.is_states else self.task.also_in_train

    @property
    def truncated(self) -> dict[str, dict[str, int]]:
        """By split, how many examples the maximum length cut, and how many words (of inputs that come as words)."""
        return {name: encoded.truncated() for name, encoded in self.encoded.items()}

    @property
    def store_bytes(self) -> int:
        """Size of the stored hidden states of all splits, in bytes."""
        return sum(stored_bytes(self.source, each, self.request.precision) for each in self.encoded.values())

    @functools.cached_property
    def backbone_parameters(self) -> tuple[int, int]:
        """Parameters of the whole base model, an unread decoder included, and of one layer; it is not loaded."""
        return loading.count_parameters(self.source)

    @property
    def shape(self) -> Shape:
        kind, source = self.task.kind, self.source
        n_outputs = kind.n_outputs(self.task.label_names)
        return Shape(kind.head, n_outputs, source.streams, source.width, source.family)

    def reading(self, configs: Iterable[TrialConfig], *, pool: bool = True) -> Prepared:
        """Return the same data with the hidden states that these configurations read, to be computed and stored.

        A stream is read whole, so that its store serves other studies as well, unless every configuration that reads
        of it names layers by number (`hidden_states=layers:1,6,12`): then these alone are. Where all of them may read
        one vector of each text and layer (`TrialConfig.pooling`), and `pool` allows it, such vectors are stored instead
        of tokens: the numbers of trials are then the same to rounding.
        """
        configs, states = list(configs), set[State]()
        poolings = {config.pooling(self.shape) for config in configs}
        for config in configs:
            if config.hidden_states.startswith("layers:"):
                states |= set(config.states(self.shape))
            else:
                states |= {
                    state for stream in chosen_streams(config.stream, self.shape) for state in stream.states()
                }
        pooling = poolings.pop() if pool and len(poolings) == 1 else None
        return dataclasses.replace(
            self, source=dataclasses.replace(self.source.reads(states), pooling=pooling)
        )

    def data(
        self,
        mode: Mode,
        *,
        cache: Path | None = None,
        on_progress: Callable[[str, int, int], None] = lambda split, done, total: None,
    ) -> TrialData:
        """Return what trials read; in the modes `disk` and `memory` hidden states are computed where missing."""

        # Loaded where something is missing, and its memory free again when all is stored.
        backbone = functools.cache(lambda: loading.load(self.source))

        task = self.task
        read = splits_in_words(task.reading.roles, task.reading.unused)

        def features(name: str) -> Features:
            if mode == "live":
                return LiveFeatures(self.source, self.encoded[name], self.request.precision)
            found = stored(
                cache or default_cache(),
                self.source,
                self.encoded[name],
                backbone,
                precision=self.request.precision,
                about={"dataset": task.name, "path": task.reading.path, "split": name, "splits": read},
                on_progress=functools.partial(on_progress, name),
            )
            found.resident = mode == "memory"
            return found

        pooled = mode != "live" and self.source.pooling is not None
        splits = {
            name: SplitData(
                features(name), split.labels, split.index, self.encoded[name], pooled, split.groups
            )
            for name, split in task.splits.items()
        }
        torch.cuda.empty_cache()  # workers need what extraction has freed and this process would keep
        return TrialData(
            self.shape,
            task.label_names,
            task.metric,
            splits,
            self.provenance,
            task.kind,
            source=self.source,
            layer_parameters=self.backbone_parameters[1],
            pairs=isinstance(task.splits["train"].inputs[0], tuple),
            max_length=self.request.max_length,
        )

    @functools.cached_property
    def provenance(self) -> Provenance:
        """What determines the data of a trial."""
        source, task = self.source, self.task
        return Provenance(
            backbone=BackboneId(
                id=source.id, revision=source.revision, fingerprint=source.fingerprint, dtype=source.dtype
            ),
            dataset=DatasetId(source=task.source, revision=task.revision, fingerprint=task.fingerprint),
            labels=task.label_names,
            precision=self.request.precision,
            splits={name: _digest(self.encoded[name], split) for name, split in task.splits.items()},
            metric=None if task.metric == task.default_metric else task.metric,
        )


def prepare(request: DataRequest, *, weights: bool = True) -> Prepared:
    """Resolve and tokenise.

    Args:
        weights: False fetches none of the backbone's, where they are not there: enough to make plans with.

    Raises:
        BadInput: For whatever of it cannot be had, before anything is computed.
    """
    source = sources.resolve(request.backbone, data_dir=request.data_dir, weights=weights)
    dtype = request.backbone_dtype
    if dtype == "bfloat16":
        sources.require_base_model(source, "for --backbone-dtype bfloat16")
    if dtype == "auto":
        dtype = loading.fitting_dtype(source, loading.device_bytes())
    source = dataclasses.replace(source, dtype=dtype)
    if request.max_length > source.max_length:
        raise BadInput(
            f"wanted --max-length of at most {source.max_length}, the most tokens {source.name} reads, "
            f"got {request.max_length}; lower it"
        )
    task = load_task(request)
    if source.is_states:
        return Prepared(request, source, task, encoded_states(states_folder.read(source.folder), task))
    tokenizer = tokens.load_tokenizer(source)
    encoded = {
        name: tokens.encode(
            tokenizer, split.inputs, request.max_length, place=functools.partial(task.place, name)
        )
        for name, split in task.splits.items()
    }
    _require_embeddings(source, encoded)
    for name, tokenized in encoded.items():
        if tokenized.word_starts is not None and not (tokenized.word_starts >= 0).any():
            raise BadInput(
                f"wanted labelled words in {name} of {task.name}, got none in {len(task.splits[name])} sentences, "
                f"{tokenized.truncated()['words']} words of which --max-length {request.max_length} cut away; raise "
                "it, or fix the data"
            )
    return Prepared(request, source, task, encoded)


def _require_embeddings(source: BackboneSource, encoded: Mapping[str, Encoded]) -> None:
    """Raise `BadInput` where the tokeniser gives ids that the backbone has no embedding for."""
    vocabulary = getattr(pretrained.read_config(source.folder, source.id), "vocab_size", None)
    highest = max(int(split.input_ids.max()) for split in encoded.values())
    if isinstance(vocabulary, int) and highest >= vocabulary:
        raise BadInput(
            f"wanted token ids below {vocabulary}, the embeddings of {source.name}, its tokeniser gives {highest}: the "
            f"two do not belong together; save both into {str(source.folder)!r} again, or fetch the model again"
        )


def _digest(encoded: Encoded, split: Split) -> str:
    """Return a hash of the token ids, their types where there are any, and the labels of a split."""
    digest = encoded.digest()
    digest.update(label_bytes(split.labels))
    return digest.hexdigest()[:16]
