"""Trained parts along with a base model: saved without what is frozen, loaded with the base model they belong to."""

import json
from dataclasses import asdict, replace

import pytest
import torch

import adalayers
from adalayers.backbones.sources import resolve
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.saved import CONFIG, base_model_source, save
from adalayers.models.trainable_base.model import TrainableBaseModel, build_model
from adalayers.storage.folder import Folder
from tests.helpers.made_tokens import made_tokens, token_data
from tests.helpers.refusing import refused
from tests.helpers.tiny import tiny_backbone


def saved(source, folder, **changes):
    data = token_data(source)
    model = build_model(LayerMixConfig(k=8, heads=2, adapter_width=4, **changes), data.shape, source, seed=3)
    model.prepare_training()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.05 * torch.randn_like(parameter))
    save(model.eval(), Folder(folder), about={"backbone": asdict(data.provenance.backbone)})
    return model


@pytest.mark.parametrize(
    "changes",
    [
        {"base_model": "adapters", "adapter_norms": True, "adapter_sharing": "three"},
        {"base_model": "fine-tuned", "mix": "single", "layer": 2},
        {"base_model": "fine-tuned", "base_layers": "as-many-top"},
    ],
    ids=str,
)
def test_a_round_trip(changes, source_of, tmp_path):
    source = source_of()
    model = saved(source, tmp_path / "best", **changes)
    again = adalayers.load(tmp_path / "best", backbone=str(source.folder))
    assert isinstance(again, TrainableBaseModel)
    assert not any(module.training for module in again.modules())
    batch = made_tokens(3, 6)
    with torch.no_grad():
        assert torch.equal(again.forward_batch(batch), model.forward_batch(batch))


def test_a_model_of_a_folder_of_local_copies_is_found_by_its_id(tmp_path):
    """An alias or hub id is looked for in `data_dir` by its last part."""
    folder = tiny_backbone(tmp_path / "data" / "bert-base-cased", width=16, heads=2)
    source = resolve("google-bert/bert-base-cased", data_dir=tmp_path / "data")
    assert source.folder == folder
    model, batch = saved(source, tmp_path / "best", base_model="adapters"), made_tokens(4)
    with torch.no_grad():
        again = adalayers.load(tmp_path / "best", data_dir=tmp_path / "data").forward_batch(batch)
        assert torch.equal(again, model.forward_batch(batch))


def test_a_base_model_that_is_missing_another_one_or_not_named_is_refused(source_of, tmp_path):
    saved(source_of(), tmp_path, base_model="adapters")
    refused(r"wanted the base model 'bert' .*not found.*backbone=\.\.\.", adalayers.load, tmp_path)
    other = tiny_backbone(tmp_path / "bert", width=16, heads=2, seed=1)
    refused(f"fingerprint {source_of().fingerprint}", adalayers.load, tmp_path, backbone=str(other))
    document = json.loads((tmp_path / CONFIG).read_text())
    del document["backbone"]
    (tmp_path / CONFIG).write_text(json.dumps(document))
    refused("does not say which one it was", adalayers.load, tmp_path)


def test_the_base_model_computes_as_it_did_in_the_study(source_of):
    data = token_data(source_of())
    for dtype in ("float32", "bfloat16"):
        backbone = replace(data.provenance.backbone, id=str(source_of().folder), revision=None, dtype=dtype)
        assert base_model_source({"backbone": asdict(backbone)}, data.shape).dtype == dtype
