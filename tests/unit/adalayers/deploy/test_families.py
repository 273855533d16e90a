"""Tasks on the passes of a task model of every family: it gives what it gave, and they what they give over a store."""

import pytest
import torch
import transformers

import adalayers
from adalayers.backbones.families import FAMILIES
from adalayers.backbones.loading import load
from adalayers.backbones.sources import resolve
from adalayers.errors import BadInput
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.model import FusionModel
from adalayers.states import Shape
from tests.helpers.tiny import tiny_backbone

CLASSES = {
    "encoder": transformers.AutoModelForMaskedLM,
    "decoder": transformers.AutoModelForCausalLM,
    "encoder-decoder": transformers.AutoModelForSeq2SeqLM,
}
MAPPED = {"do_layer_norm_before": False, "word_embed_proj_dim": 16}
CASES = [*((family, {}) for family in sorted(FAMILIES)), ("opt", MAPPED)]


def task_model(folder, kind):
    """Return a model with a head of its own, or the bare one where the family has no such head."""
    config = transformers.AutoConfig.from_pretrained(folder)
    cls = CLASSES[kind] if type(config) in CLASSES[kind]._model_mapping else transformers.AutoModel
    return cls.from_pretrained(folder).eval()


@pytest.mark.filterwarnings("ignore")  # of transformers, about configs and decoders used alone
@pytest.mark.parametrize(("family", "changes"), CASES, ids=lambda of: of if isinstance(of, str) else len(of))
def test_tasks_ride_on_a_task_model(family, changes, tmp_path):
    source = resolve(str(tiny_backbone(tmp_path / "model", family, layers=3, **changes)))
    base, backbone = task_model(source.folder, source.reading.kind), load(source)
    shape = Shape("token", 3, source.streams_read, source.width, source.family)
    task = FusionModel(LayerMixConfig(k=8, heads=2, feedforward=16), shape, seed=0).eval()
    if source.reading.shared:
        with pytest.raises(BadInput, match="one and the same"):
            adalayers.attach(base, task=task)
        return
    ids = torch.randint(20, 60, (2, 7), generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[1] * 7, [1] * 4 + [0] * 3])
    given = {"input_ids": ids, "attention_mask": mask}
    if source.reading.kind == "encoder-decoder":
        given["decoder_input_ids"] = ids[:, :3]
    with torch.no_grad():
        alone = base(**given)[0]
        with adalayers.attach(base, task=task) as attached:
            # A head that the folder has no weights of may hold any number.
            torch.testing.assert_close(base(**given)[0], alone, rtol=0, atol=0, equal_nan=True)
            answers = attached.output("task")[mask.bool()]
        states = backbone(ids, mask)
        expected = task({state: states[state][mask.bool()] for state in task.live()}, mask.sum(1))
    torch.testing.assert_close(answers, expected, atol=1e-5, rtol=1e-4)
