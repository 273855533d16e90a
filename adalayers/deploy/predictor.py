"""Answers of trained tasks to texts: those of one frozen base model share its passes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from adalayers.backbones import backbone as backbones
from adalayers.backbones.sources import BackboneSource
from adalayers.backbones.tokens import load_tokenizer
from adalayers.deploy.answers import Answer, answer, kind_of
from adalayers.deploy.attached import attach
from adalayers.deploy.reading import Read, read_texts, read_words
from adalayers.errors import BadInput
from adalayers.models.model import FusionModel
from adalayers.tensors.ragged import token_batches

Words = Literal["auto", "apart"]

BATCH_TOKENS = 4096
"""Tokens, padding included, of one pass of the base model."""
MOST_TOKENS = 512
"""Of a text, special ones included, where nothing else is said and the base model takes as many."""


@dataclass(frozen=True)
class _Ragged:
    """Token ids end to end, for a model that runs a base model of its own."""

    input_ids: Tensor
    lengths: Tensor
    token_types: Tensor | None = None


class Predictor:
    """Trained tasks over one base model, asked about texts.

    tasks:      by name; those over the frozen base model share a pass, others run their own
    source:     where that base model is; its fingerprint is the tasks'
    max_length: most tokens of a text, None: what the base model takes, at most `MOST_TOKENS`
    words:      auto: texts are read whole where a task has a label per text, else word by word; in both cases `spans`
                says what the words are. apart: word by word, and white space alone parts them

    cut:        how many texts were longer so far

    Raises `BadInput` for a kind of task that does not read one text.
    """

    def __init__(
        self,
        tasks: Mapping[str, FusionModel],
        source: BackboneSource,
        *,
        device: torch.device | None = None,
        max_length: int | None = None,
        words: Words = "auto",
    ):
        for name, task in tasks.items():
            if task.about.get("pairs") or not {"text", "words"} & set(kind_of(task).input_shapes):
                raise BadInput(
                    f"wanted tasks that read one text, {name!r} reads pairs of texts; leave it out"
                )
            if beyond := {state.stream for state in task.live()} - {one.name for one in source.streams_read}:
                raise BadInput(
                    f"wanted tasks over the {source.streams_read[0].name} of {source.name}, {name!r} reads its "
                    f"{', '.join(sorted(beyond))}; run the base model yourself, with adalayers.attach"
                )
        self.device = device or torch.device("cpu")
        self.tasks = {name: task.to(self.device) for name, task in tasks.items()}
        self.max_length = min(source.max_length, max_length or MOST_TOKENS)
        self.apart = words == "apart"
        self.cut = 0
        self.tokenizer = load_tokenizer(source)
        self._own = [name for name, task in self.tasks.items() if task.config.base_model != "frozen"]
        shared = {name: task for name, task in self.tasks.items() if name not in self._own}
        self._base = backbones.load(source).to(self.device) if shared else None
        self._shared = shared
        apart = self._base is not None and not self._base.family.shared  # no hook tells shared layers apart
        self._attached = attach(self._base.model, **shared) if apart and self._base else None

    @property
    def whole(self) -> bool:
        """Whether texts are read whole, not word by word."""
        return not self.apart and not all(kind_of(task).per_word for task in self.tasks.values())

    def read(self, texts: Sequence[str]) -> list[Read]:
        """Return texts in tokens, as the tasks read them."""
        if not self.whole:
            return read_words(self.tokenizer, texts, self.max_length, apart=self.apart)
        words = any(kind_of(task).per_word for task in self.tasks.values())
        return read_texts(self.tokenizer, texts, self.max_length, words=words)

    @torch.no_grad()
    def predict(self, texts: Sequence[str]) -> list[dict[str, Answer]]:
        """Return what every task says of each text, by name. Raises `BadInput` for a text without any token."""
        read = self.read(texts)
        self.cut += sum(one.cut for one in read)
        found: list[dict[str, Answer]] = [{} for _ in texts]
        for batch in token_batches(np.array([len(one.ids) for one in read], dtype=np.int64), BATCH_TOKENS):
            for name, outputs in self._outputs([read[i] for i in batch]):
                for i, of_text in zip(batch, outputs, strict=True):
                    found[i][name] = answer(self.tasks[name], texts[i], read[i], of_text)
        return [{name: one[name] for name in self.tasks} for one in found]

    def _outputs(self, batch: Sequence[Read]) -> Iterator[tuple[str, Iterable[Tensor]]]:
        """Yield the outputs of each task for each text of a batch."""
        lengths = [len(one.ids) for one in batch]
        if self._base is not None:
            mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
            ids = torch.full(mask.shape, self._base.pad_id)
            ids[mask] = torch.from_numpy(np.concatenate([one.ids for one in batch]))
            ids, mask = ids.to(self.device), mask.to(self.device)
            if self._attached is not None:
                self._base.model(input_ids=ids, attention_mask=mask.long())
                yield from self._attached.answers().items()
            else:
                states = self._base(ids, mask.long())
                for name, task in self._shared.items():
                    given = task({state: states[state][mask] for state in task.live()}, torch.tensor(lengths))
                    yield name, given.split(lengths) if task.shape.head == "token" else given
        flat = torch.from_numpy(np.concatenate([one.ids for one in batch])).to(self.device)
        for name in self._own:
            task = self.tasks[name]
            given = task.forward_batch(_Ragged(flat, torch.tensor(lengths)))  # type: ignore[arg-type]  # it reads token ids
            yield name, given.split(lengths) if task.shape.head == "token" else given
