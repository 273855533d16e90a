"""Tiny base models with a task of their own, made once, and trained parts for them."""

import functools

import pytest
import torch
import transformers

from adalayers.backbones.backbone import Backbone
from adalayers.backbones.families import family_of
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.model import FusionModel
from adalayers.states import Shape, Stream
from tests.helpers.made_tasks import made_task
from tests.helpers.tiny import tiny_backbone

LAYERS, WIDTH = 4, 16
CLASSES = {"bart": "AutoModelForSeq2SeqLM", "t5": "AutoModelForSeq2SeqLM", "gpt2": "AutoModelForCausalLM"}


class Base:
    """A base model with its own task, and the backbone of the same weights, whose states are what is to be read.

    ids, mask: three sequences of 9, 5 and 7 tokens, padded on the right
    """

    def __init__(self, folder, family):
        config = transformers.AutoConfig.from_pretrained(folder)
        kind = getattr(transformers, CLASSES.get(family, "AutoModelForMaskedLM"))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.model = kind.from_config(config).eval()
        self.family = family
        reading = family_of(config)
        decoder = reading.kind == "decoder"
        self.stream = Stream("decoder" if decoder else "encoder", LAYERS, final_norm=bool(reading.final_norm))
        inner = self.model.get_encoder() if family in ("bart", "t5") else self.model.base_model
        self.pad = config.pad_token_id or 0
        self.backbone = Backbone(inner, streams=(self.stream,), width=WIDTH, family=reading, pad_id=self.pad)
        generator = torch.Generator().manual_seed(1)
        self.mask = (torch.arange(9) < torch.tensor([[9], [5], [7]])).long()
        self.ids = torch.randint(20, 60, (3, 9), generator=generator).masked_fill(self.mask == 0, self.pad)

    def task(self, head="sequence", seed=0, config=None, **changes):
        """Return trained parts for this base model."""
        shape = Shape(head, 3, (self.stream,), WIDTH, self.family)
        config = config or LayerMixConfig(k=8, heads=2, feedforward=16, **changes)
        return FusionModel(config, shape, seed=seed).eval()

    def expected(self, task, ids=None, mask=None):
        """Return what the task makes of the backbone's states: [batch, outputs], or that of real tokens."""
        ids, mask = (self.ids, self.mask) if ids is None else (ids, mask)
        with torch.no_grad():
            states = self.backbone(ids, mask)
            return task({s: states[s][mask.bool()] for s in task.live()}, mask.sum(dim=1))


@pytest.fixture(scope="session")
def base_of(tmp_path_factory):
    """Return the tiny base model of a family. Whoever changes it puts it back."""

    @functools.cache
    def base(family="bert"):
        folder = tmp_path_factory.mktemp("bases") / family
        return Base(tiny_backbone(folder, family, layers=LAYERS, width=WIDTH, heads=2), family)

    return base


@pytest.fixture(scope="session")
def backbone(tmp_path_factory):
    return str(tiny_backbone(tmp_path_factory.mktemp("models") / "tiny", layers=3, width=16, heads=2))


@pytest.fixture(scope="session")
def made(backbone, tmp_path_factory):
    """Two tasks of one base model, as their studies left them."""
    root = tmp_path_factory.mktemp("results")
    return {
        "text": made_task(root / "text", backbone, "acceptability-demo"),
        "word": made_task(root / "word", backbone, "entities-demo"),
    }
