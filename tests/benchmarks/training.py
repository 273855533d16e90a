"""Epochs, extraction and the head step, measured."""

import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from adalayers.backbones import loading
from adalayers.backbones.sources import BackboneSource
from adalayers.backbones.tokens import Encoded
from adalayers.config import TrialConfig
from adalayers.data.trial_data import TrialData
from adalayers.features.extract import extraction_batches
from adalayers.features.features import LiveFeatures, StoredFeatures, stored
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.model import FusionModel
from adalayers.tensors.ragged import ragged_index
from adalayers.training.optimisers import Trained
from adalayers.training.together import finished
from adalayers.training.trainer import Trainer
from tests.benchmarks import made
from tests.benchmarks.measure import interleaved
from tests.benchmarks.sizes import BATCH
from tests.helpers.states import made_shape

CPU = torch.device("cpu")
CONFIG = LayerMixConfig(k=64, batch_size=BATCH)


def store(root: Path, source: BackboneSource, encoded: Encoded, device: torch.device = CPU) -> StoredFeatures:
    """Compute the hidden states of `encoded`, or find them below `root`."""
    return stored(root, source, encoded, lambda: loading.load(source), device=device)


def epoch_of(
    data: TrialData, config: TrialConfig = CONFIG, device: torch.device = CPU
) -> Callable[[], float]:
    """Return a function that trains one more epoch each time it is called."""
    trainer = Trainer(config, data, seed=0, device=device)

    def epoch() -> float:
        trainer.progress.epoch += 1
        return finished(trainer.train_epoch())

    return epoch


def epochs(root: Path, source: BackboneSource, lengths: np.ndarray, repeats: int) -> dict[str, float]:
    """Return the seconds of an epoch over stored and over live features."""
    encoded = made.encoded(lengths)
    disk, live = store(root, source, encoded), LiveFeatures(source, encoded)
    return interleaved(
        {
            "stored": epoch_of(made.trial_data(source, disk)),
            "live": epoch_of(made.trial_data(source, live)),
        },
        repeats,
    )


def extraction(
    root: Path,
    bases: Mapping[str, BackboneSource],
    encoded: Encoded,
    repeats: int,
    device: torch.device = CPU,
) -> dict[str, float]:
    """Return the seconds of filling a store of each base model, and of its forward passes over the same batches alone.

    They are "extract <name>" and "forward <name>".
    """
    loaded = {name: loading.load(source).to(device) for name, source in bases.items()}
    batches = batches_of(encoded, device)

    def forward(name: str) -> None:
        for ids, mask in batches:
            loaded[name](ids, mask)
        if device.type == "cuda":
            torch.cuda.synchronize()

    def extract(name: str) -> None:
        shutil.rmtree(root / "extraction", ignore_errors=True)
        stored(root / "extraction", bases[name], encoded, lambda: loaded[name], device=device)

    steps = {f"{step.__name__} {name}": partial(step, name) for name in bases for step in (forward, extract)}
    return interleaved(steps, repeats)


def batches_of(encoded: Encoded, device: torch.device = CPU) -> list[tuple[Tensor, Tensor]]:
    """Return (ids, mask) of the batches in which extraction reads `encoded`."""
    lengths, batches = np.diff(encoded.offsets), []
    for examples in extraction_batches(lengths):
        mask = np.arange(lengths[examples].max()) < lengths[examples][:, None]
        ids = np.zeros(mask.shape, np.int64)
        ids[mask] = encoded.input_ids[ragged_index(encoded.offsets, examples)]
        batches.append((torch.from_numpy(ids).to(device), torch.from_numpy(mask).long().to(device)))
    return batches


def head_step(
    layers: int, width: int, lengths: np.ndarray, repeats: int, config: TrialConfig = CONFIG
) -> dict[str, float]:
    """Return the seconds of a whole training step of the head, and of its projections' products alone."""
    torch.manual_seed(0)
    model = FusionModel(config, made_shape("sequence", 2, layers, width))
    trained = Trained(config, model)
    tokens, batch = int(lengths.sum()), torch.from_numpy(lengths)
    states = {state: torch.randn(tokens, width) for state in model.fusion.live()}
    labels = torch.randint(0, 2, (len(lengths),))
    matrices: list[Tensor] = [projection.weight for projection in model.fusion.projections]  # type: ignore[misc]
    gradients = [torch.randn(tokens, config.k)] * layers

    def products() -> None:
        out = [state @ matrix.t() for state, matrix in zip(states.values(), matrices, strict=True)]
        torch.autograd.grad(out, matrices, gradients)

    def step() -> None:
        loss = torch.nn.functional.cross_entropy(model(states, batch), labels)
        gradients = torch.autograd.grad(loss, trained.parameters)
        with torch.no_grad():
            trained.step(gradients, 1.0)

    model.train()
    return interleaved({"products": products, "step": step}, repeats)
