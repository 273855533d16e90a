"""Predictions of trained tasks for texts: those of one frozen base model share its passes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from adalayers.backbones import loading
from adalayers.backbones.sources import BackboneSource
from adalayers.backbones.tokens import Encoded, load_tokenizer
from adalayers.data.trial_data import Batch
from adalayers.deploy.model_card import study_of
from adalayers.deploy.predictions import Prediction, prediction_of, task_kind
from adalayers.deploy.tokenized import TokenizedText, tokenize_texts, tokenize_words
from adalayers.errors import BadInput
from adalayers.features.features import extraction_batches, hidden_states
from adalayers.models.model import FusionModel

MOST_TOKENS = 512
"""Of a text, special ones included, where nothing else is said and the base model takes as many."""


class Predictor:
    """Trained tasks over one base model, that predict for texts.

    Args:
        tasks:      By name; those over the frozen base model share a pass, others run their own.
        source:     Where that base model is; its fingerprint is the tasks'.
        device:     Where everything is computed.
        max_length: Most tokens of a text; None: as the tasks were scored, `MOST_TOKENS` where nothing says; at most
                    what the base model takes.
        apart:      Whether words are separated by white space alone, and all read word by word. Else texts are read
                    whole where a task has a label per text, and `word_spans` says what the words are.

    Attributes:
        cut: How many texts were longer than `max_length` so far.

    Raises:
        BadInput: A task does not read one text.
    """

    def __init__(
        self,
        tasks: Mapping[str, FusionModel],
        source: BackboneSource,
        *,
        device: torch.device | None = None,
        max_length: int | None = None,
        apart: bool = False,
    ):
        for name, task in tasks.items():
            if task.about.get("pairs"):
                raise BadInput(
                    f"wanted tasks that read one text, {name!r} reads pairs of texts; leave it out"
                )
        self.device = device or torch.device("cpu")
        self.tasks = {name: task.to(self.device).eval() for name, task in tasks.items()}
        scored = min(filter(None, map(_max_length, tasks.values())), default=MOST_TOKENS)
        self.max_length = min(source.max_length, max_length or scored)
        self.apart = apart
        self.cut = 0
        self.tokenizer = load_tokenizer(source)
        read = {state for task in self.tasks.values() for state in task.live()}
        self._base = loading.load(source.reads(read)).to(self.device) if read else None

    @property
    def whole(self) -> bool:
        """Whether texts are read whole, not word by word."""
        return not self.apart and not all(task_kind(task).per_word for task in self.tasks.values())

    def tokenize(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Return texts in tokens, as the tasks read them."""
        if not self.whole:
            return tokenize_words(self.tokenizer, texts, self.max_length, apart=self.apart)
        return tokenize_texts(self.tokenizer, texts, self.max_length)

    @torch.no_grad()
    def predict(self, texts: Sequence[str]) -> list[dict[str, Prediction]]:
        """Return the predictions of every task for each text, by name.

        Raises:
            BadInput: A text has no token, or a task's outputs are not finite.
        """
        tokenized = self.tokenize(texts)
        self.cut += sum(text.cut for text in tokenized)
        predictions: list[dict[str, Prediction]] = [dict.fromkeys(self.tasks) for _ in texts]  # type: ignore[misc]
        lengths = np.array([len(text.ids) for text in tokenized], dtype=np.int64)
        for batch in extraction_batches(lengths):
            for name, outputs in self._outputs([tokenized[i] for i in batch]):
                for i, output in zip(batch, outputs, strict=True):
                    if not output.isfinite().all():
                        raise BadInput(
                            f"wanted finite outputs of {name!r}, got others for {texts[i][:60]!r}; take another copy"
                        )
                    predictions[i][name] = prediction_of(self.tasks[name], texts[i], tokenized[i], output)
        return predictions

    def _outputs(self, batch: Sequence[TokenizedText]) -> Iterator[tuple[str, Iterable[Tensor]]]:
        """Yield the outputs of each task for each text of a batch."""
        lengths, every = [len(text.ids) for text in batch], np.arange(len(batch))
        tokens = Encoded(np.concatenate([text.ids for text in batch]), np.cumsum([0, *lengths]))
        states = hidden_states(self._base, tokens, every, self.device) if self._base is not None else {}
        labels = torch.empty(0, device=self.device)
        read = Batch(states, torch.tensor(lengths), labels, None, rows=every, examples=every, tokens=tokens)
        for name, task in self.tasks.items():
            outputs = task.forward_batch(read)
            yield name, outputs.split(lengths) if task.shape.per_token else outputs


def _max_length(task: FusionModel) -> int | None:
    """Return to how many tokens texts were cut for a task; None where nothing says."""
    study = study_of(task.about)
    return (study.max_length if study else None) or task.about.get("max_length")
