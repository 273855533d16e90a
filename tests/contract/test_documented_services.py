"""Commands of pages that start something else: a Ray cluster, a job, an MLflow server; and the GGUF recipe, all run."""

import os
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from adalayers.data.prepare import prepare
from adalayers.request import DataRequest
from adalayers.results.files import read_trials
from tests import dead_server
from tests.cluster import AT_NODE, Node, free_port, running
from tests.helpers.documented import ROOT, shown
from tests.helpers.long_form import LONG
from tests.helpers.small_study import Study
from tests.helpers.studying import flags, world
from tests.helpers.tiny import byte_level, tiny_backbone

FEW = (
    *("--set", "alpha=8", "entropy_weight=0", "--trials", "0", "--seeds", "1", "--epochs", "1"),
    *("--max-concurrent", "1"),
)
PAGE = "docs/clusters.md"
SIZES = {
    "context_length": 512,
    "embedding_length": 32,
    "block_count": 2,
    "feed_forward_length": 64,
    "head_count": 4,
    "head_count_kv": 2,
    "layer_norm_rms_eps": 1e-6,
    "rope_dimension_count": 8,
    "bos_token_id": 0,
    "eos_token_id": 2,
}
"""What a GGUF file says of the tiny decoder."""


@pytest.fixture
def short_folder():
    """A folder whose path is short enough for Ray's sockets below it."""
    with tempfile.TemporaryDirectory(prefix="c-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@LONG
def test_the_cluster_and_the_job_of_the_page(short_folder):
    """`ray stop` is not run: it ends every Ray of the machine. The job is, where `ray[default]` is installed."""
    root = short_folder
    made, port, dashboard = world(root), free_port(), free_port()
    places = {"HEAD:6379": f"127.0.0.1:{port}", "HEAD:8265": f"127.0.0.1:{dashboard}", "/shared": str(root)}
    places |= {"~": str(root), "OTHER": str(root)}

    def words(begins):
        """Return a command of the page, its places those of the test."""
        return [
            re.sub("|".join(places), lambda found: places[found[0]], word) for word in shown(PAGE, begins)
        ]

    exported = dict(word.split("=", 1) for word in words("export")[1:])
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    own = {"HOME": str(root), "RAY_TMPDIR": str(root), "PATH": path, "RAY_USAGE_STATS_ENABLED": "0"}
    environment = {**os.environ, **own, **exported}
    jobs = find_spec("aiohttp_cors") is not None  # of ray[default]
    at = [f"--port={port}", f"--dashboard-port={dashboard}", f"--include-dashboard={jobs}".lower()]
    tiny = flags(made, root / "results", *FEW, "--tracking-uri", "none")
    own_flags = [*tiny[:4], *tiny[8:]]  # the page's own say where results and features lie
    with running(Node("head", root, environment, *words("ray start --head")[2:], *at)) as head:
        assert Path(exported["RAY_AUTH_TOKEN_PATH"]).is_file()
        joins = words("ray start --address")[2:]
        with running(Node("second", root, environment, *joins)):
            _, *study = words("python studies/alpha_lambda.py --address")
            argv = [sys.executable, "-c", AT_NODE, str(head.folder), *study, *own_flags]
            run(argv, environment)
            check(root / "results")
        if jobs:
            run([*words("ray job submit"), *own_flags, "--label", "job"], environment)
            check(root / "results", "-job")


def run(argv, environment):
    done = subprocess.run(argv, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def check(output, label=""):
    assert (pd.read_csv(output / f"alpha_lambda/tiny-echo{label}/trials.csv")["status"] == "completed").all()


@LONG
def test_the_server_of_the_page_has_a_study_that_its_variable_sends_there(tmp_path):
    (tmp_path / "t").mkdir()
    made, server = world(tmp_path), dead_server.Server(tmp_path)
    server.start()
    try:
        study = Study(made, tmp_path, "one", FEW)
        assert study.start({**os.environ, "MLFLOW_TRACKING_URI": server.uri}).wait(300) == 0, study.said()
        (runs,) = dead_server.runs(server.uri)[1].values()
        assert len(runs) == len(read_trials(study.folder))
        assert f"MLflow: {server.uri}/#/experiments/1/runs?workflowType=machine_learning" in study.said()
    finally:
        server.kill()
    assert (tmp_path / "results" / "mlflow.db").is_file()


def test_the_gguf_recipe_of_the_page_makes_a_backbone(tmp_path, monkeypatch):
    gguf = pytest.importorskip("gguf", reason="gguf is not installed: `make setup` does that")
    (recipe,) = re.findall(r"<<'END'\n(.*?)END\n", (ROOT / "docs/backbones.md").read_text(), re.S)
    folder, name = re.search(r'pretrained\("(\w+)"', recipe)[1], re.search(r'"(\S+\.gguf)"', recipe)[1]
    (tmp_path / folder).mkdir()
    vocabulary, merges = byte_level()
    made = tiny_backbone(tmp_path / "made", "llama", layers=2, vocab_size=len(vocabulary))
    weights = load_file(made / "model.safetensors")
    writer = gguf.GGUFWriter(tmp_path / folder / name, "llama")
    for what, value in SIZES.items():
        getattr(writer, f"add_{what}")(value)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(list(vocabulary))
    writer.add_token_merges([" ".join(pair) for pair in merges])
    names, form = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 2), gguf.GGMLQuantizationType.Q4_1
    for key, value in weights.items():
        known = names.get_name(f"model.{key}", try_suffixes=(".weight",))
        quantised = value.ndim == 2
        data = gguf.quants.quantize(value.numpy(), form) if quantised else value.numpy()
        writer.add_tensor(known, data, raw_dtype=form if quantised else None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    monkeypatch.chdir(tmp_path)
    exec(recipe, {})
    prepared = prepare(DataRequest(str(tmp_path / "smollm2-135m"), str(world(tmp_path / "w")["dataset"])))
    embeddings = load_file(tmp_path / "smollm2-135m" / "model.safetensors")["embed_tokens.weight"]
    assert prepared.shape.streams[0].layers == 2
    assert torch.allclose(embeddings, weights["embed_tokens.weight"], atol=0.05)
