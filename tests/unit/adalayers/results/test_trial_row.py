"""No published trial is renamed: the ids of all rows under docs/results follow from their columns as they did."""

import dataclasses
import hashlib
import json
import os

import pytest

from adalayers.config import FUSIONS, trial_config
from adalayers.data.prepare import prepare
from adalayers.provenance import Provenance
from adalayers.results.study_file import read_study
from adalayers.results.trial_row import read_trial_rows
from adalayers.states import Shape
from adalayers.storage.folder import Folder
from adalayers.tasks.kinds import KINDS
from tests.helpers.documented import KEPT, RESULTS
from tests.helpers.states import made_shape

DATA = os.environ.get("ADALAYERS_DATA")
METHODS = "5389bcfc213a9a1f"
IDS = "567279239593896c"
"""A hash of the ids that all rows would have if no split held anything: what is stored has no hashes of splits."""


def test_published_rows_have_the_ids_that_they_had():
    ids = []
    for folder in map(Folder, KEPT):
        environment = read_study(folder).environment
        backbone, dataset = environment.backbone, environment.dataset
        kind = KINDS[dataset.kind]
        outputs = kind.n_outputs(dataset.labels)
        shape = Shape(kind.head, outputs, backbone.streams, backbone.width, backbone.family)
        known = {"labels": dataset.labels, "precision": environment.features.precision}
        provenance = Provenance(backbone=backbone, dataset=dataset, **known)
        ids += [row.identity(shape, provenance) for row in read_trial_rows(folder).values()]
    assert len(ids) > 2000
    assert hashlib.sha256(json.dumps(ids).encode()).hexdigest()[:16] == IDS


def test_default_configurations_of_all_methods_are_identified_as_they_were():
    shape = made_shape("sequence", 2, 6, 384)
    known = [trial_config(fusion=name, lr=0.01).identity(shape) for name in FUSIONS]
    assert hashlib.sha256(json.dumps(known).encode()).hexdigest()[:16] == METHODS


@pytest.mark.skipif(DATA is None, reason="needs CoLA in ADALAYERS_DATA")
def test_rows_on_real_data_have_their_own_ids():
    folder = Folder(RESULTS / "alpha_lambda" / "minilm-cola")
    asked = read_study(folder).request.data
    prepared = prepare(dataclasses.replace(asked, backbone="minilm", dataset="cola", data_dir=DATA))
    rows = read_trial_rows(folder)
    assert [row.identity(prepared.shape, prepared.provenance) for row in rows.values()] == [*rows] != []
