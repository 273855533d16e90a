"""Masked-LM loss: how surprising a dataset's texts are to the base model, where it still has the head to say so."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from adalayers.backbones import pretrained
from adalayers.backbones.sources import BackboneSource
from adalayers.backbones.tokens import Encoded, load_tokenizer
from adalayers.errors import CannotWrite
from adalayers.measures.case_data import SEED, CaseData
from adalayers.results.measures import Measured
from adalayers.storage import hub

MAX_EXAMPLES = 200
MASKED_SHARE = 0.15
"""Of the tokens."""

UNMEASURED = Measured(title="masked-LM loss", unit="nats a masked token")


def measure(case: CaseData) -> Measured:
    """Return the loss on the case's texts; `nothing` is that on the reference's."""
    source = case.prepared.source
    model, why = _model(source)
    if model is None:
        return replace(UNMEASURED, why=why)
    mask = load_tokenizer(source).mask_token_id
    if mask is None:
        return replace(UNMEASURED, why="its tokeniser has no mask token")
    own, reference = (
        _losses(model, encoded, examples[:MAX_EXAMPLES], mask, case.special)
        for encoded, examples in case.pools(np.random.default_rng(SEED))
    )
    if not (len(own) and len(reference)):
        return replace(UNMEASURED, why="there are too few training examples")
    mean, half_width = float(own.mean()), 1.96 * float(own.std()) / math.sqrt(len(own))
    return replace(
        UNMEASURED,
        how=f"mean loss of the checkpoint's own head on {MASKED_SHARE:.0%} of the tokens of up to {MAX_EXAMPLES} "
        "training texts, masked; next to it that on the reference's texts",
        value=mean,
        low=mean - half_width,
        high=mean + half_width,
        nothing=float(reference.mean()),
        n=min(len(own), len(reference)),
        counted="masked tokens of each",
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
            with pretrained.staged(source.folder, with_weights=True) as place:
                model, report = AutoModelForMaskedLM.from_pretrained(
                    place,
                    local_files_only=True,
                    trust_remote_code=False,
                    use_safetensors=True,
                    dtype=torch.float32,
                    output_loading_info=True,
                )
        except CannotWrite:
            raise
        except ValueError:  # transformers knows no such head for this family
            return None, "its family has no such head"
    if [key for key in report["missing_keys"] if "pooler" not in key]:
        return None, "its checkpoint holds no such head"
    return model.eval().requires_grad_(False), ""


def _losses(model: Any, encoded: Encoded, examples: np.ndarray, mask: int, special: np.ndarray) -> np.ndarray:
    """Return the loss of each masked token, float64."""
    losses = [np.zeros(0)]
    rng = np.random.default_rng(SEED)
    for example in examples:
        ids = torch.from_numpy(encoded.take(np.array([example])).input_ids.astype(np.int64))
        is_text = ~np.isin(ids.numpy(), special)
        masked = torch.from_numpy(is_text & (rng.random(len(ids)) < MASKED_SHARE))
        if not bool(masked.any()):
            continue
        with torch.no_grad():
            logits = model(input_ids=ids.masked_fill(masked, mask).unsqueeze(0)).logits[0, masked]
        losses.append(torch.nn.functional.cross_entropy(logits, ids[masked], reduction="none").numpy())
    return np.concatenate(losses).astype(np.float64)
