"""Tiny base models with a task of their own, made once, and trained parts for them."""

import functools

import pytest
import torch
import transformers

from adalayers.backbones.loading import load
from adalayers.backbones.sources import resolve
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.model import FusionModel
from adalayers.states import Shape
from adalayers.storage import hub
from tests.helpers.made_tasks import made_task

CLASSES = {
    "encoder": transformers.AutoModelForMaskedLM,
    "decoder": transformers.AutoModelForCausalLM,
    "encoder-decoder": transformers.AutoModelForSeq2SeqLM,
}


class Base:
    """A base model with a head of its own where its family has one, and the backbone, whose states are to be read.

    ids, mask: three sequences of 9, 5 and 7 tokens, padded on the right
    """

    def __init__(self, folder):
        self.source = resolve(str(folder))
        self.backbone = load(self.source)
        cls, config = CLASSES[self.source.reading.kind], transformers.AutoConfig.from_pretrained(folder)
        with torch.random.fork_rng(devices=[]), hub.quiet():
            torch.manual_seed(0)
            has_head = type(config) in cls._model_mapping
            self.model = (cls if has_head else transformers.AutoModel).from_pretrained(folder).eval()
        self.model.requires_grad_(False)
        self.mask = (torch.arange(9) < torch.tensor([[9], [5], [7]])).long()
        ids = torch.randint(20, 60, (3, 9), generator=torch.Generator().manual_seed(1))
        self.pad = self.backbone.pad_id
        self.ids = ids.masked_fill(self.mask == 0, self.pad)

    def task(self, head="sequence", seed=0, config=None, **changes):
        """Return trained parts for this base model."""
        shape = Shape(head, 3, self.source.streams, self.source.width, self.source.family)
        config = config or LayerMixConfig(k=8, heads=2, feedforward=16, **changes)
        return FusionModel(config, shape, seed=seed).eval()

    def expected(self, task, ids=None):
        """Return what the task makes of the backbone's states: [batch, outputs], or that of real tokens."""
        ids, mask = (self.ids, self.mask) if ids is None else (ids, torch.ones_like(ids))
        with torch.no_grad():
            states = self.backbone(ids, mask)
            return task({s: states[s][mask.bool()] for s in task.live()}, mask.sum(dim=1))


@pytest.fixture(scope="session")
def base_of(tiny_of):
    """Return the tiny base model of a family. Whoever changes it puts it back."""
    return functools.cache(lambda family="bert", **more: Base(tiny_of(family, width=16, heads=2, **more)))


@pytest.fixture(scope="session")
def backbone(tiny_of):
    return str(tiny_of(layers=3, width=16, heads=2))


@pytest.fixture(scope="session")
def made(backbone, tmp_path_factory):
    """Two tasks of one base model, as their studies left them."""
    root = tmp_path_factory.mktemp("results")
    return {
        "text": made_task(root / "text", backbone, "acceptability-demo"),
        "word": made_task(root / "word", backbone, "entities-demo"),
    }
