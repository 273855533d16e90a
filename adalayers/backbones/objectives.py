"""What a backbone was pretrained for, where its name tells."""

from __future__ import annotations

import re

from adalayers.backbones.sources import BackboneSource
from adalayers.storage import hub

_OBJECTIVES = {
    r"all-minilm-l6-v2": "contrastive sentence embedding, on a distilled masked language model",
    r"(xlm-)?roberta-(base|large)": "masked language modelling",
    r"bert-(base|large)-(un)?cased": "masked language modelling, and whether one sentence follows another",
    r"distilbert-base-(un)?cased|distilroberta-base": "masked language modelling, distilled",
    r"electra-(small|base|large)-discriminator|deberta-v3-(base|large)": "replaced token detection",
    r"albert-(base|large|xlarge|xxlarge)-v[12]": "masked language modelling, and the order of sentences",
    r"modernbert-(base|large)": "masked language modelling",
    r"all-mpnet-base-v2": "contrastive sentence embedding, on a masked and permuted language model",
    r"bart-(base|large)": "denoising",
    r"bart-large-cnn": "denoising, then summarisation",
    r"t5-(small|base|large)": "span denoising, and supervised tasks as text",
    r"flan-t5-(small|base|large)": "span denoising, then many tasks by instruction",
    r"(distil)?gpt2(-medium|-large|-xl)?": "causal language modelling",
    r"opt-\d+(\.\d+)?[mb]|pythia-\d+(\.\d+)?[mb]|qwen3-\d+(\.\d+)?b-base": "causal language modelling",
    r"llama-3\.2-[13]b|gemma-3-1b-pt": "causal language modelling, distilled",
}
"""Last part of a hub id, lower case -> the objective. Families do not tell: checkpoints are tuned for anything."""


def objective(source: BackboneSource) -> str:
    """Return what the backbone was pretrained for; "" where its name is not known."""
    if source.random:
        return "nothing: random weights"
    name = hub.last_part(source.id)
    return next((text for pattern, text in _OBJECTIVES.items() if re.fullmatch(pattern, name)), "")
