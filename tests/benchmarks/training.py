"""Epochs, extraction and steps of training, measured: of one trial, of a group, and of each method."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from adalayers.backbones import loading
from adalayers.backbones.sources import BackboneSource
from adalayers.backbones.tokens import Encoded
from adalayers.config import DEFAULT_FUSION, FUSIONS, TrialConfig, config_class, hyperparameters, trial_config
from adalayers.data.trial_data import TrialData
from adalayers.features.features import LiveFeatures, StoredFeatures, extraction_batches, stored
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.model import FusionModel
from adalayers.tensors.ragged import ragged_index
from adalayers.training.optimisers import Trained
from adalayers.training.together import Steps, Together, finished
from adalayers.training.trainer import Trainer
from tests.benchmarks.made import BATCH, Sizes, base, cola_lengths, encoded, trial_data
from tests.benchmarks.measure import interleaved
from tests.helpers.states import made_shape

CPU = torch.device("cpu")
CONFIG = LayerMixConfig(k=64, batch_size=BATCH)
GROUP_EXAMPLES = 128
"""Few: a pass of a large base model takes seconds on a CPU."""
CONTROL = f"{DEFAULT_FUSION}_matched".replace("-", "_")


def store(root: Path, source: BackboneSource, texts: Encoded, device: torch.device = CPU) -> StoredFeatures:
    """Compute the hidden states of texts, or find them below `root`."""
    return stored(root, source, texts, lambda: loading.load(source), device=device)


def epoch_of(
    data: TrialData, config: TrialConfig = CONFIG, device: torch.device = CPU
) -> Callable[[], float]:
    """Return a function that trains one more epoch each time it is called."""
    trainer = Trainer(config, data, seed=0, device=device)

    def epoch() -> float:
        trainer.progress.epoch += 1
        return finished(trainer.train_epoch())

    return epoch


def group_epoch_of(trainers: Sequence[Trainer]) -> Callable[[], object]:
    """Return a function that trains one more epoch of all trials."""
    together = Together()

    def trial(trainer: Trainer) -> Steps[float]:
        trainer.progress.epoch += 1
        return (yield from trainer.train_epoch())

    return lambda: together.run([trial(trainer) for trainer in trainers])


def epochs(name: str, root: Path, sizes: Sizes) -> dict[str, float]:
    """Return the seconds of an epoch over stored and over live features."""
    source = base(name, root, sizes)
    texts = encoded(cola_lengths(sizes.cola if name == "minilm" else sizes.sample))
    features = {"stored": store(root, source, texts), "live": LiveFeatures(source, texts)}
    every = {how: epoch_of(trial_data(source, each)) for how, each in features.items()}
    return interleaved(every, sizes.repeats)


def groups(name: str, root: Path, sizes: Sizes) -> dict[str, float]:
    """Return the seconds of an epoch of one arm over live features, and of 15 arms in turn."""
    source = base(name, root, sizes)
    features = LiveFeatures(source, encoded(cola_lengths(min(sizes.sample, GROUP_EXAMPLES))))
    features.shared = True
    data, common = trial_data(source, features), {"k": 64, "batch_size": BATCH}
    arms = [
        LayerMixConfig(**common, alpha=alpha, entropy_weight=weight)
        for alpha in (1.0, 8.0, 64.0, 512.0)
        for weight in (0.0, 1e-3, 1e-2)
    ]
    arms.append(LayerMixConfig(**common, mix="uniform"))
    arms += [LayerMixConfig(**common, mix="single", layer=layer) for layer in (1, source.layers // 2)]
    # One more, for an epoch of its own: those of a group are in the same epoch, and so read the same batches.
    one, *trainers = (Trainer(config, data, seed=0, device=CPU) for config in [arms[0], *arms])
    torch.set_num_threads(1)  # as a trial has
    rivals = {"one": group_epoch_of([one]), "group": group_epoch_of(trainers)}
    return interleaved(rivals, min(3, sizes.repeats))


def extraction(
    root: Path, bases: Mapping[str, BackboneSource], texts: Encoded, repeats: int, device: torch.device = CPU
) -> dict[str, float]:
    """Return the seconds of filling a store of each base model, and of its forward passes over the same batches alone.

    They are "extract <name>" and "forward <name>".
    """
    loaded = {name: loading.load(source).to(device) for name, source in bases.items()}
    lengths, batches = np.diff(texts.offsets), []
    for examples in extraction_batches(lengths):
        mask = np.arange(lengths[examples].max()) < lengths[examples][:, None]
        ids = np.zeros(mask.shape, np.int64)
        ids[mask] = texts.input_ids[ragged_index(texts.offsets, examples)]
        batches.append((torch.from_numpy(ids).to(device), torch.from_numpy(mask).long().to(device)))

    def forward(name: str) -> None:
        for ids, mask in batches:
            loaded[name](ids, mask)
        if device.type == "cuda":
            torch.cuda.synchronize()

    def extract(name: str) -> None:
        shutil.rmtree(root / "extraction", ignore_errors=True)
        stored(root / "extraction", bases[name], texts, lambda: loaded[name], device=device)

    steps = {f"{step.__name__} {name}": partial(step, name) for name in bases for step in (forward, extract)}
    return interleaved(steps, repeats)


def extract(root: Path, sizes: Sizes) -> dict[str, float]:
    """Return the seconds of `extraction` of MiniLM."""
    bases = {"minilm": base("minilm", root, sizes)}
    return extraction(root, bases, encoded(cola_lengths(sizes.cola)), min(3, sizes.repeats))


def head_step(layers: int, width: int, root: Path, sizes: Sizes) -> dict[str, float]:
    """Return the seconds of a whole training step of the head, and of its projections' products alone."""
    # A batch as training sees it: of like lengths, here those around the median.
    lengths = np.sort(cola_lengths())[len(cola_lengths()) // 2 :][:BATCH]
    torch.manual_seed(0)
    model = FusionModel(CONFIG, made_shape("sequence", 2, layers, width))
    trained = Trained(CONFIG, model)
    tokens, batch = int(lengths.sum()), torch.from_numpy(lengths)
    states = {state: torch.randn(tokens, width) for state in model.fusion.live()}
    labels = torch.randint(0, 2, (len(lengths),))
    matrices: list[Tensor] = [projection.weight for projection in model.fusion.projections]  # type: ignore[misc]
    given = [torch.randn(tokens, CONFIG.k)] * layers

    def products() -> None:
        out = [state @ matrix.t() for state, matrix in zip(states.values(), matrices, strict=True)]
        torch.autograd.grad(out, matrices, given)

    def step() -> None:
        loss = torch.nn.functional.cross_entropy(model(states, batch), labels)
        gradients = torch.autograd.grad(loss, trained.parameters)
        with torch.no_grad():
            trained.step(gradients, 1.0)

    model.train()
    return interleaved({"products": products, "step": step}, sizes.steps)


def methods() -> dict[str, TrialConfig]:
    """Return each fusion projected to k with the layer mix's head (matched), and at its own width where it can."""
    assert hyperparameters()  # all methods are known
    found: dict[str, TrialConfig] = {}
    for fusion in FUSIONS:
        name, common = fusion.replace("-", "_"), {"fusion": fusion, "batch_size": 32}
        found[f"{name}_matched"] = trial_config(**common)
        if "own_width" in config_class(fusion).__dataclass_fields__:
            found[f"{name}_own"] = trial_config(**common, own_width=True, read_out="linear")
    return found


def method_steps(root: Path, sizes: Sizes) -> dict[str, float]:
    """Return the seconds of an epoch of each method over stored features, over those of the layer mix."""
    source = base("minilm", root, sizes)
    data = trial_data(source, store(root, source, encoded(cola_lengths(sizes.sample))))
    every = {name: epoch_of(data, config) for name, config in methods().items()}
    seconds = interleaved(every, sizes.repeats)
    return {f"step_{name}": seconds[name] / seconds[CONTROL] for name in seconds if name != CONTROL}
