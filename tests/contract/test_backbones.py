"""Every kind of backbone goes through the ordinary study, on the embedded default; small random models of each."""

import dataclasses

import pandas as pd
import pytest

from adalayers.backbones.families import FAMILIES
from adalayers.backbones.sources import resolve
from adalayers.command.main import main
from adalayers.study import Arm, Design
from studies.backbones import STUDY
from tests.helpers.long_form import LONG
from tests.helpers.studying import RAYS_OWN, NoPages
from tests.helpers.tiny import tiny_backbone

pytestmark = [*RAYS_OWN, pytest.mark.usefixtures("ray_here")]


def arms(setting):
    """Return one learned mix of each stream, and of both where there are two."""
    if len(setting.shape.streams) == 1:
        return [Arm("learned", "control", {})], []
    return [Arm(stream, "control", {"stream": stream}) for stream in ("encoder", "decoder", "both")], []


KINDS = ("bert", "albert", "gpt2", "t5")
"""An encoder, one whose layers are one and the same, a decoder, and both."""


@pytest.mark.parametrize("families", [KINDS, pytest.param([*FAMILIES], marks=LONG)], ids=["kinds", "all"])
def test_every_kind_of_backbone_trains_in_one_study(tmp_path, families):
    folders = {family: tiny_backbone(tmp_path / family, family, layers=2) for family in families}
    argv = [
        *("--backbone", *map(str, folders.values()), "--dataset", "acceptability-demo"),
        *("--output", str(tmp_path / "results"), "--cache-dir", str(tmp_path / "cache")),
        *("--set", "k=4", "heads=2", "dropout=0", "--epochs", "1", "--seeds", "1", "--tracking-uri", "none"),
        *("--train-examples", "32", "--eval-examples", "16", "--test-examples", "16", "--max-length", "24"),
        *("--max-concurrent", "1"),
    ]
    study = dataclasses.replace(STUDY, design=Design(arms=arms))
    assert main(study, NoCover, argv) == 0
    for family, folder in folders.items():
        source = resolve(str(folder))
        trials = pd.read_csv(
            tmp_path / "results/backbones" / f"{source.name}-acceptability-demo" / "trials.csv"
        )
        assert set(trials["status"]) == {"completed"}, family
        assert trials["val/accuracy"].between(0, 1).all()
        if len(source.streams) == 1:
            assert trials["arm"].tolist() == ["learned"]
        else:
            assert sorted(trials["config/stream"]) == ["both", "decoder", "encoder"]
            by_stream = trials.set_index("config/stream")["parameters"]
            # As many projections as states: two of each, so that both have more.
            assert by_stream["both"] > by_stream["decoder"] == by_stream["encoder"]
        folders_of = f"{source.name}-{'[0-9a-f]' * 20}"  # and none of "roberta-prelayernorm-..." of "roberta"
        stored = {path.name for path in (tmp_path / "cache").glob(f"{folders_of}/*.npy")}
        assert stored == {f"{state.key}.npy" for stream in source.streams for state in stream.states()} | {
            "starts.npy",
            "lengths.npy",
        }


class NoCover(NoPages):
    """Without the page over all cases either."""

    @staticmethod
    def write_cover(root, folders):
        return root.uri
