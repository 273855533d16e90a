"""Masked-LM loss: how surprising a dataset's texts are to the base model, where it still has the head to say so."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from adalayers.backbones import pretrained
from adalayers.backbones.sources import BackboneSource
from adalayers.backbones.tokens import Encoded, load_tokenizer
from adalayers.measures.given import SEED, Given
from adalayers.results.measures import Measured
from adalayers.storage import hub

EXAMPLES = 200
SHARE = 0.15
"""Of the tokens that are masked."""

TITLE, UNIT = "masked-LM loss", "nats a masked token"


def measure(given: Given) -> Measured:
    """Return the loss on the case's texts; `nothing` is that on the reference's."""
    source = given.prepared.source
    model, why = _model(source)
    if model is None:
        return Measured(title=TITLE, unit=UNIT, why=why)
    mask = load_tokenizer(source).mask_token_id
    if mask is None:
        return Measured(title=TITLE, unit=UNIT, why="its tokeniser has no mask token")
    ours, theirs = given.pools(np.random.default_rng(SEED))
    other = given.encoded if given.same else given.reference_encoded
    losses = [
        _losses(model, encoded, examples[:EXAMPLES], mask, given.special)
        for encoded, examples in ((given.encoded, ours), (other, theirs))
    ]
    if not all(len(of) for of in losses):
        return Measured(title=TITLE, unit=UNIT, why="there are too few training examples")
    mean, half = float(losses[0].mean()), 1.96 * float(losses[0].std()) / math.sqrt(len(losses[0]))
    return Measured(
        title=TITLE,
        unit=UNIT,
        how=f"mean loss of the checkpoint's own head on {SHARE:.0%} of the tokens of up to {EXAMPLES} training texts, "
        "masked; next to it that on the reference's texts",
        value=mean,
        low=mean - half,
        high=mean + half,
        nothing=float(losses[1].mean()),
        n=min(map(len, losses)),
        of="masked tokens of each",
    )


def _model(source: BackboneSource) -> tuple[Any, str]:
    """Return the checkpoint with its own head, or None and why there is none."""
    from transformers import AutoModelForMaskedLM

    if source.random:
        return None, "random weights have learned no language"
    config = pretrained.read_config(source.folder, source.id)
    if pretrained.is_encoder_decoder(config):
        return None, "an encoder-decoder was not trained to fill in masked tokens alone"
    with hub.quiet(), torch.random.fork_rng(devices=[]):
        try:
            model, report = AutoModelForMaskedLM.from_pretrained(
                source.folder,
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                dtype=torch.float32,
                output_loading_info=True,
            )
        except ValueError:  # transformers knows no such head for this family
            return None, "its family has no such head"
    if [key for key in report["missing_keys"] if "pooler" not in key]:
        return None, "its checkpoint holds no such head"
    return model.eval().requires_grad_(False), ""


def _losses(model: Any, encoded: Encoded, examples: np.ndarray, mask: int, special: np.ndarray) -> np.ndarray:
    """Return the loss of each masked token, float64."""
    found = []
    rng = np.random.default_rng(SEED)
    for example in examples:
        ids = torch.from_numpy(encoded.take(np.array([example])).input_ids.astype(np.int64))
        real = ~np.isin(ids.numpy(), special)
        chosen = torch.from_numpy(real & (rng.random(len(ids)) < SHARE))
        if not bool(chosen.any()):
            continue
        with torch.no_grad():
            logits = model(input_ids=ids.masked_fill(chosen, mask).unsqueeze(0)).logits[0, chosen]
        found.append(torch.nn.functional.cross_entropy(logits, ids[chosen], reduction="none").numpy())
    return np.concatenate(found).astype(np.float64) if found else np.zeros(0)
