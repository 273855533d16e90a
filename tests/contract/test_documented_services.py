"""Commands of pages that start something else: a Ray cluster, a job, an MLflow server; and the GGUF recipe, all run."""

import functools
import os
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from adalayers.data.prepare import prepare
from adalayers.request import DataRequest
from adalayers.results.files import read_trials
from adalayers.storage.folder import Folder
from tests.cluster import AT_NODE, Node, running
from tests.helpers.documented import ROOT, shown
from tests.helpers.long_form import LONG, free_port
from tests.helpers.mlflow_server import Server, runs
from tests.helpers.small_study import Study
from tests.helpers.studying import flags, world
from tests.helpers.tiny import byte_level, tiny_backbone

FEW = ("--set", "alpha=8", "entropy_weight=0", "--trials", "0", "--seeds", "1", "--epochs", "1")


@pytest.fixture
def root():
    """A folder with a path that is short enough for Ray's sockets below it."""
    with tempfile.TemporaryDirectory(prefix="c-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        (Path(folder) / "t").mkdir()
        yield Path(folder)


@LONG
def test_the_cluster_and_the_job_of_the_page(root):
    """`ray stop` is not run: it ends every Ray of the machine. The job is, where `ray[default]` is installed."""
    made, port, dashboard = world(root), free_port(), free_port()
    head_and_jobs = (("HEAD:6379", f"127.0.0.1:{port}"), ("HEAD:8265", f"127.0.0.1:{dashboard}"))
    words = functools.partial(shown, "docs/clusters.md", places=(*head_and_jobs, ("/shared", str(root))))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    own = {"HOME": str(root), "RAY_TMPDIR": str(root), "PATH": path}
    environment = os.environ | own | dict(word.split("=", 1) for word in words("export")[1:])
    jobs = find_spec("aiohttp_cors") is not None  # of ray[default]
    at = [f"--port={port}", f"--dashboard-port={dashboard}", f"--include-dashboard={jobs}".lower()]
    tiny = flags(made, root / "results", *FEW, "--tracking-uri", "none")
    own_flags = [*tiny[:4], *tiny[8:]]  # the page's own say where results and features lie
    subprocess.run(words("ray get-auth-token"), env=environment, check=True, capture_output=True)
    with running(Node("head", root, environment, *words("ray start --head")[2:], *at)) as head:
        with running(Node("second", root, environment, *words("ray start --address")[2:])):
            _, *study = words("python studies/alpha_lambda.py --address")
            at_head = [sys.executable, "-c", AT_NODE, str(head.folder)]
            completes([*at_head, *study, *own_flags], environment, root / "results/alpha_lambda/tiny-echo")
        if jobs:
            submit = [*words("ray job submit"), *own_flags, "--label", "job"]
            completes(submit, environment, root / "results/alpha_lambda/tiny-echo-job")


def completes(argv, environment, folder):
    done = subprocess.run(argv, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (read_trials(Folder(folder))["status"] == "completed").all()


@LONG
def test_the_server_of_the_page_has_a_study_that_its_variable_sends_there(root):
    made, server = world(root), Server(root)
    server.start()
    try:
        study = Study(made, root, "one", FEW)
        assert study.start({**os.environ, "MLFLOW_TRACKING_URI": server.uri}).wait(300) == 0, study.said()
        (trials,) = runs(server.uri)[1].values()
        assert len(trials) == len(read_trials(study.folder))
        assert f"MLflow: {server.uri}/#/experiments/1/runs?workflowType=machine_learning" in study.said()
    finally:
        server.kill()
    assert (root / "results" / "mlflow.db").is_file()


def test_the_gguf_recipe_of_the_page_makes_a_backbone(tmp_path, monkeypatch):
    gguf = pytest.importorskip("gguf", reason="gguf is not installed: `make setup` does that")
    (recipe,) = re.findall(r"<<'END'\n(.*?)END\n", (ROOT / "docs/backbones.md").read_text(), re.S)
    folder, name = re.search(r'pretrained\("(\w+)"', recipe)[1], re.search(r'"(\S+\.gguf)"', recipe)[1]
    (tmp_path / folder).mkdir()
    vocabulary, merges = byte_level()
    made = tiny_backbone(tmp_path / "made", "llama", layers=2, vocab_size=len(vocabulary))
    weights = load_file(made / "model.safetensors")
    writer = gguf.GGUFWriter(tmp_path / folder / name, "llama")
    names = "context_length embedding_length block_count feed_forward_length head_count head_count_kv"
    names += " layer_norm_rms_eps rope_dimension_count bos_token_id eos_token_id"
    for what, value in zip(names.split(), (512, 32, 2, 64, 4, 2, 1e-6, 8, 0, 2), strict=True):
        getattr(writer, f"add_{what}")(value)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(list(vocabulary))
    writer.add_token_merges([" ".join(pair) for pair in merges])
    known, form = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 2), gguf.GGMLQuantizationType.Q4_1
    for key, value in weights.items():
        raw = form if value.ndim == 2 else None
        data = gguf.quants.quantize(value.numpy(), form) if raw else value.numpy()
        writer.add_tensor(known.get_name(f"model.{key}", try_suffixes=(".weight",)), data, raw_dtype=raw)
    for part in ("header", "kv_data", "tensors"):
        getattr(writer, f"write_{part}_to_file")()
    writer.close()
    monkeypatch.chdir(tmp_path)
    exec(recipe, {})
    request = DataRequest(str(tmp_path / "smollm2-135m"), str(world(tmp_path / "w")["dataset"]))
    embeddings = load_file(tmp_path / "smollm2-135m" / "model.safetensors")["embed_tokens.weight"]
    assert prepare(request).shape.streams[0].layers == 2
    assert torch.allclose(embeddings, weights["embed_tokens.weight"], atol=0.05)
