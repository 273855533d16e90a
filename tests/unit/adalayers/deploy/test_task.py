"""Trained tasks saved, loaded and pushed as the hub's mixin does it, with a card of what their study found."""

import json
import shutil

import numpy as np
import torch
from huggingface_hub import ModelCard
from safetensors.torch import load_file

import adalayers
from adalayers.__main__ import main
from adalayers.deploy.model_card import model_card
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.models.model import FusionModel
from adalayers.states import Shape, Stream
from tests.helpers.made_tasks import SMALL, made_task


def test_a_round_trip_keeps_the_parts_and_what_their_study_found(made, tmp_path):
    task = adalayers.TrainedTask.from_pretrained(made["text"].best)
    task.save_pretrained(tmp_path / "saved")
    again = adalayers.TrainedTask.from_pretrained(tmp_path / "saved")
    tensors = load_file(tmp_path / "saved" / "model.safetensors")
    n_saved = sum(tensor.numel() for tensor in tensors.values())
    assert n_saved == task.model.n_parameters(), "none of a frozen model"
    assert again.about == task.about
    assert again.about["study"]["scores"][0] | {"value": 0.5, "n": 3} == again.about["study"]["scores"][0]
    for other in (again.model, adalayers.load(tmp_path / "saved")):
        torch.testing.assert_close(dict(other.state_dict()), dict(task.model.state_dict()), rtol=0, atol=0)
    again.save_pretrained(tmp_path / "twice")
    assert (tmp_path / "twice" / "README.md").read_text() == (tmp_path / "saved" / "README.md").read_text()


def test_the_card_and_inspect_say_data_scores_weights_cost_and_use(made, tmp_path, capsys):
    task = adalayers.TrainedTask.from_pretrained(made["text"].best)
    task.save_pretrained(tmp_path)
    card, model = ModelCard.load(tmp_path / "README.md"), made["text"].outcome.model
    assert card.data.library_name == "adalayers"
    assert card.data.pipeline_tag == "text-classification"
    weights = model.fusion.weights().tolist()
    assert main(["inspect", str(made["text"].best)]) == 0
    use = '.TrainedTask.from_pretrained("<this repository>").model'
    pairs = adalayers.TrainedTask.from_pretrained(made["text"].best).model
    pairs.about = {**pairs.about, "pairs": True}
    of_pairs = model_card(pairs).text
    assert use in of_pairs
    assert use in card.text
    assert ("adalayers predict" in card.text, "adalayers predict" in of_pairs) == (True, False)
    assert '    base(**tokenizer(["A text."], ["Another one."], return_tensors="pt"))\n    print(' in of_pairs
    for text in (card.text, capsys.readouterr().out):
        for expected in (
            f"(`layer-mix`) and a head for sequence classification: {model.n_parameters():,} trained parameters",
            "Hidden states read: 01, 02, 03 of a base model of 3 layers",
            "Kept per token: 8 numbers (one sum, added up while it runs)",
            "Per token: 0.0002 million operations next to the base model's pass, 3.33% of the base model's layers",
            "| test | matthews | 0.5000 | 0.6000 | 3 |",  # too few seeds for an interval
            "acceptability-demo (`embedded`); examples: 64 train, 24 validation, 24 test",
            "Labels: `unacceptable`, `acceptable`",
            "adalayers.attach(",
            "no weight of it is inside",
        ):
            assert expected in text, text
        bars = [line.split() for line in text.splitlines() if "█" in line]
        assert [bar[:2] for bar in bars] == [[f"{i:02d}", f"{w:.4f}"] for i, w in enumerate(weights, 1)]
        assert len(bars[weights.index(max(weights))][2]) == 20
        assert "embeddings" not in text, "they are not mixed"


def test_mixed_embeddings_a_smoke_run_and_a_changed_base_model_are_said_to_be(backbone, tmp_path):
    changed = {"base_model": "adapters", "adapter_width": 4, "hidden_states": "with-embeddings"}
    made = made_task(tmp_path / "tuned", backbone, "entities-demo", LayerMixConfig(**SMALL, **changed))
    study = json.loads((tmp_path / "tuned" / "study.json").read_text())
    study["runs"]["smoke"] = True
    (tmp_path / "tuned" / "study.json").write_text(json.dumps(study))
    task = adalayers.TrainedTask.from_pretrained(made.best, backbone=backbone)
    text = str(task.generate_model_card())
    assert "00 is the embeddings." in text
    assert "A smoke run" in text
    assert "the weights that were trained within it are inside" in text
    assert "pipeline_tag: token-classification" in text.replace('"', "")


def test_weights_of_two_streams_are_told_apart():
    shape = Shape("sequence", 2, (Stream("encoder", 3), Stream("decoder", 3)), 16, "bart")
    text = model_card(FusionModel(LayerMixConfig(k=8, heads=2, stream="both"), shape, seed=0).eval()).text
    bars = [line.split()[0] for line in text.splitlines() if "█" in line]
    assert bars == ["01", "02", "03", "decoder_01", "decoder_02", "decoder_03"]


def test_parts_of_no_study_have_a_card_too(made, tmp_path):
    for name in ("config.json", "model.safetensors"):
        shutil.copy(made["text"].best / name, tmp_path)
    task = adalayers.TrainedTask.from_pretrained(tmp_path)
    assert "study" not in task.about
    text = str(task.generate_model_card())
    assert "## Scores" not in text
    assert "## Mix weights" in text


def test_the_use_of_a_task_over_states_that_were_computed_elsewhere_runs(made, tmp_path):
    model = adalayers.TrainedTask.from_pretrained(made["text"].best).model
    model.about = {**model.about, "backbone": {"id": "states:mine"}}
    card = model_card(model).text
    assert "AutoModel" not in card
    assert "adalayers predict" not in card
    arrays = [np.ones((5, model.shape.width), np.float32)] * (model.shape.streams[0].layers + 1)
    use = (
        card.partition("```python")[2]
        .partition("```")[0]
        .replace("<this repository>", str(made["text"].best))
    )
    known = {"arrays": arrays, "lengths": [2, 3]}
    exec(use, known)
    assert known["logits"].shape == (2, model.shape.n_outputs)
