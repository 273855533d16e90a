"""Tasks on a base model's own passes: it gives what it gave, bit for bit, and they what they gave in their study."""

import contextlib
from unittest import mock

import pytest
import torch
import transformers

import adalayers
from adalayers.backbones.sources import resolve
from adalayers.config import FUSIONS, config_class, trial_config
from adalayers.deploy.predictor import Predictor
from adalayers.errors import BadInput
from adalayers.fusion.layer_mix import LayerMixConfig


def hooks(model):
    """Return how many hooks there are on all modules of a model."""
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def run(base, model=None, **given):
    with torch.no_grad():
        called = base.model if model is None else model
        return called(input_ids=base.ids, attention_mask=base.mask, **given)


def assert_same(given, expected, atol=2e-6):
    torch.testing.assert_close(given, expected, atol=atol, rtol=1e-5)


def answered(base, call=run, **tasks):
    """Return the answers of tasks on what `call` runs, which gives what it gives without them, bit for bit."""
    alone, before = call(base), hooks(base.model)
    with adalayers.attach(base.model, **tasks) as attached:
        with_tasks = call(base)
        answers = attached.outputs()
    assert torch.equal(getattr(alone, "logits", alone), getattr(with_tasks, "logits", with_tasks))
    assert hooks(base.model) == before
    return answers


def assert_answers(base, call=run, atol=2e-6, **tasks):
    """Compare the answers of tasks with those over the backbone's states; at padding they are 0."""
    for name, given in answered(base, call, **tasks).items():
        if given.dim() == 3:
            assert given.shape[:2] == (3, 9)
            assert not given[base.mask == 0].any()
            given = given[base.mask.bool()]
        assert_same(given, base.expected(tasks[name]), atol)


SUMS = {"layer-mix", "scalar-mix", "concat", "variability"}
WIDE = [name for name in FUSIONS if "own_width" in config_class(name).__dataclass_fields__]
FUSED = [*((name, {}) for name in FUSIONS), *((name, {"own_width": True}) for name in WIDE)]
MIXES = [
    {"mix": "single", "layer": 2},
    {"mix": "last"},
    {"mix": "uniform", "hidden_states": "with-embeddings"},
    {"normalise": False, "gelu_after_mix": True},
    {"hidden_states": "layers:1,3", "alpha": 8.0},
    {"cutoff": 0.24, "alpha": 8.0},
]


@pytest.mark.parametrize(("fusion", "changes"), [*FUSED, *(("layer-mix", mix) for mix in MIXES)], ids=str)
def test_every_fusion_answers_as_over_stored_states_beside_others(fusion, changes, base_of):
    base, config = base_of(), trial_config(fusion=fusion, heads=2, feedforward=16, **changes)
    task = base.task(config.tasks[-1], config=config)
    assert (task.fusion.terms() is not None) == (fusion in SUMS)
    if fusion == "layer-mix":
        with torch.no_grad():
            for parameter in task.fusion.parameters():
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(3)))
    tasks = {"task": task, "text": base.task(), "word": base.task("token", 1)}
    assert_answers(base, atol=2e-6 if fusion == "layer-mix" else 1e-5, **tasks)
    beside, alone = (answered(base, **given)["task"] for given in (tasks, {"task": task}))
    torch.testing.assert_close(alone, beside, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("family", ["bart", "t5"])
def test_an_encoder_decoder_also_generates_what_it_generated(family, base_of):
    base = base_of(family)
    text, word = base.task(), base.task("token", config=LayerMixConfig(k=8, heads=2, final_norm=False))
    for beams in (1, 3):
        settings = {"max_new_tokens": 5, "min_new_tokens": 5, "do_sample": False, "num_beams": beams}
        given = {"input_ids": base.ids, "attention_mask": base.mask, **settings}
        assert_answers(base, lambda base, given=given: base.model.generate(**given), text=text, word=word)
    assert_answers(base, lambda base: run(base, decoder_input_ids=base.ids), text=text)


def test_a_decoder_is_read_step_by_step_as_one_sequence(base_of):
    base = base_of("gpt2")
    text, word = base.task(), base.task("token", 1)
    mask = base.mask.flip(1)  # decoders generate from texts padded on the left
    ids = base.ids.flip(1)
    settings = {"max_new_tokens": 4, "min_new_tokens": 4, "do_sample": False, "pad_token_id": base.pad}
    generated = []

    def generate(base):
        generated.append(base.model.generate(input_ids=ids, attention_mask=mask, **settings))
        return generated[-1]

    answers, given = answered(base, generate, text=text, word=word), generated[-1]
    # the last token was given, never read
    read, all_real = given[:, :-1], torch.cat([mask, mask.new_ones(3, 3)], dim=1)
    for row in range(3):  # one by one, without padding: no position moves
        one = read[row][all_real[row].bool()].unsqueeze(0)
        ones = torch.ones_like(one)
        tokens = answers["word"][row][all_real[row].bool()]
        for task, given in ((text, answers["text"][row : row + 1]), (word, tokens)):
            assert_same(given, base.expected(task, one, ones), atol=1e-5)


def test_beams_and_foreign_caches_are_no_sequence_to_answer_of(base_of):
    base = base_of("gpt2")
    one = {"input_ids": base.ids[:1], "attention_mask": base.mask[:1], "pad_token_id": base.pad}
    with (
        adalayers.attach(base.model, text=base.task()) as first,
        adalayers.attach(base.model, text=base.task()) as second,
    ):
        base.model.generate(**one, num_beams=3, max_new_tokens=4, min_new_tokens=4)
        for attached in (first, second):
            with pytest.raises(BadInput, match="beam search"):
                attached.outputs()
    cache = run(base, use_cache=True).past_key_values
    with adalayers.attach(base.model, text=base.task()) as attached, torch.no_grad():
        base.model(input_ids=base.ids[:, :1], past_key_values=cache)
        with pytest.raises(BadInput, match="a cache of 9 tokens, of which 0 were read"):
            attached.outputs()
        run(base)
        assert attached.output("text").shape == (3, 3)


def test_heads_read_a_few_sequences_at_a_time(base_of, monkeypatch):
    monkeypatch.setattr("adalayers.deploy.recorder.HEAD_TOKENS", 10)
    assert_answers(base_of(), text=base_of().task(), word=base_of().task("token", 1))


class Fails(Exception):
    """Raised within a base model."""


@pytest.mark.parametrize("where", ["bert.encoder.layer.2", "cls"])
def test_a_pass_that_fails_leaves_nothing(where, base_of):
    base, task = base_of(), base_of().task()
    with adalayers.attach(base.model, task=task) as attached:
        run(base)
        failing = base.model.get_submodule(where).register_forward_hook(mock.Mock(side_effect=Fails))
        with failing, pytest.raises(Fails):
            run(base)
        with pytest.raises(BadInput, match="its last pass failed"):
            attached.outputs()
        run(base)
        assert_same(attached.output("task"), base.expected(task))


@pytest.mark.filterwarnings("ignore:`gradient_checkpointing")  # the name that transformers 5.0 knows
def test_checkpointing_and_gradients_are_as_without(base_of):
    base, task = base_of(), base_of().task("token")
    parameters = [p.requires_grad_(True) for p in base.model.parameters()]

    def gradients():
        base.model.zero_grad()
        base.model(input_ids=base.ids, attention_mask=base.mask, labels=base.ids).loss.backward()
        return [None if p.grad is None else p.grad.clone() for p in parameters]

    try:
        for module in base.model.modules():
            module.training = True
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        alone = gradients()
        base.model.gradient_checkpointing_enable()
        with adalayers.attach(base.model, task=task) as attached:
            with_task = gradients()
            given = attached.output("task")
        for one, other in zip(alone, with_task, strict=True):
            assert (one is None) == (other is None)
            assert one is None or torch.equal(one, other)
    finally:
        base.model.gradient_checkpointing_disable()
        base.model.requires_grad_(False)
        base.model.zero_grad()
        base.model.eval()
    assert_same(given[base.mask.bool()], base.expected(task))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, None], ids=str)
def test_half_precision(dtype, base_of):
    """The base model in half, the task in float32 or in half too: its sums are float32."""
    base = base_of("roberta")
    expected = base.expected(base.task())
    base.model.to(dtype)
    try:
        for task in (base.task(), base.task().to(dtype)):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype is None):
                given = answered(base, task=task)["task"]
            assert given.dtype == torch.float32
            torch.testing.assert_close(given, expected, atol=0.03, rtol=0.03)
    finally:
        base.model.float()


def test_inference_mode_tuples_states_of_the_base_models_own_and_a_bare_model_without_a_mask(base_of):
    base, task = base_of(), base_of().task()
    with adalayers.attach(base.model.bert, task=task) as attached, torch.no_grad():
        base.model.bert(base.ids[:1])
        assert_same(attached.output("task"), base.expected(task, base.ids[:1], torch.ones_like(base.ids[:1])))
    with adalayers.attach(base.model, task=task) as attached:
        with torch.inference_mode():
            base.model(input_ids=base.ids, attention_mask=base.mask, return_dict=False)
        assert_same(attached.output("task"), base.expected(task))
        assert len(run(base, output_hidden_states=True).hidden_states) == 5
        assert_same(attached.output("task"), base.expected(task))


def test_questions_without_an_answer(base_of):
    base = base_of()
    attached = adalayers.attach(base.model, entities=base.task())
    with pytest.raises(BadInput, match="no pass since they were attached"):
        attached.outputs()
    with pytest.raises(BadInput, match=r"unknown task 'entitles'; did you mean 'entities'\?"):
        attached.output("entitles")
    run(base)
    attached.detach()
    attached.detach()
    with pytest.raises(BadInput, match="they were detached"):
        attached.outputs()


def test_what_cannot_be_attached_is_refused_by_name(base_of):
    base = base_of()
    before = hooks(base.model)
    refused = {
        "a base model of transformers, got Linear": (torch.nn.Linear(2, 2), base.task()),
        "bert, 4 layers of width 16; got RobertaForMaskedLM": (base_of("roberta").model, base.task()),
        "it is in training mode": (base.model, base.task().train()),
        "base_model=fine-tuned": (base.model, base.task(base_model="fine-tuned")),
        "got DataParallel": (torch.nn.DataParallel(base.model), base.task()),
    }
    for message, (model, task) in refused.items():
        with pytest.raises(BadInput, match=message):
            adalayers.attach(model, task=task)
    with pytest.raises(BadInput, match="at least one task"):
        adalayers.attach(base.model)
    assert hooks(base.model) == before


def test_another_revision_or_another_model_of_the_same_size_is_refused(base_of, monkeypatch):
    base, task = base_of(), base_of().task()
    task.about = {"backbone": {"id": "org/base", "revision": "a" * 40, "fingerprint": "0"}}
    for commit, name, message in (
        ("b", "org/base", "at revision aaaa.*, loaded at bbbb"),
        ("a", "org/other", "wanted the base model 'org/base' of.*'org/other'"),
        ("a", "org/base", ""),
    ):
        monkeypatch.setattr(base.model.config, "_commit_hash", commit * 40, raising=False)
        monkeypatch.setattr(base.model.config, "_name_or_path", name, raising=False)
        with pytest.raises(BadInput, match=message) if message else contextlib.nullcontext():
            adalayers.attach(base.model, task=task).detach()


@pytest.fixture
def compiler():
    yield torch.compile
    torch.compiler.reset()


def test_attaching_to_a_model_that_was_compiled_and_run_is_seen(base_of, compiler):
    base = base_of()
    compiled = compiler(base.model, backend="eager")
    run(base, compiled)
    with adalayers.attach(compiled, task=base.task()) as attached:
        run(base, compiled)
        with pytest.raises(BadInput, match=r"no pass since they were|attach before torch\.compile"):
            attached.outputs()


def test_a_base_model_that_is_compiled_after_attaching(base_of, compiler):
    """Compiled in pieces between the layers: what it gives may be rounded otherwise, not what the tasks make of it."""
    base, task = base_of(), base_of().task()
    alone = run(base).logits
    with adalayers.attach(base.model, task=task) as attached:
        compiled = compiler(base.model, backend="aot_eager")
        assert_same(run(base, compiled).logits, alone, atol=1e-5)
        assert_same(attached.output("task"), base.expected(task), atol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="NOT TESTED on two devices: there is no GPU")
def test_a_base_model_on_another_device_than_the_task(base_of):
    base, task = base_of(), base_of().task()
    ids, mask = base.ids.cuda(), base.mask.cuda()
    try:
        base.model.to("cuda")
        given = answered(base, torch.no_grad()(lambda base: base.model(ids, mask)), here=task)["here"]
    finally:
        base.model.cpu()
    assert given.device.type == "cpu"
    torch.testing.assert_close(given, base.expected(task), atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("side", ["left", "right"])
def test_answers_are_those_that_predict_gives(made, backbone, side):
    tasks = {name: adalayers.load(task.best) for name, task in made.items()}
    texts = ["Anna read a book in London.", "the dog slept"]
    expected = Predictor(tasks, resolve(backbone)).predict(texts)
    tokenizer = transformers.AutoTokenizer.from_pretrained(backbone, padding_side=side)
    base = transformers.AutoModel.from_pretrained(backbone).eval()
    inputs = tokenizer(texts, padding=True, return_tensors="pt")
    positions = (inputs["attention_mask"].cumsum(dim=1) - 1).clamp(min=0)
    with torch.no_grad(), adalayers.attach(base, **tasks) as attached:
        base(**inputs, position_ids=positions)
        answers = attached.answers(texts, inputs)
    for i, of_text in enumerate(expected):
        assert answers["text"][i].label == of_text["text"].label
        assert answers["text"][i].probability == pytest.approx(of_text["text"].probability, abs=1e-5)
        assert answers["word"][i].tags == of_text["word"].tags
        ours, theirs = (
            [(entity.label, entity.text, entity.start) for entity in given.entities]
            for given in (answers["word"][i], of_text["word"])
        )
        assert ours == theirs


def test_answers_want_the_texts_and_inputs_of_the_pass(made, backbone):
    task = adalayers.load(made["word"].best)
    tokenizer = transformers.AutoTokenizer.from_pretrained(backbone)
    base = transformers.AutoModel.from_pretrained(backbone).eval()
    texts = ["Anna slept."]
    with torch.no_grad(), adalayers.attach(base, word=task) as attached:
        base(**(inputs := tokenizer(texts, return_tensors="pt")))
        for wrong in (("Anna slept.", inputs), (texts * 2, inputs), (texts, dict(inputs))):
            with pytest.raises(BadInput, match="fast tokeniser"):
                attached.answers(*wrong)
        other = ["Anna slept in a big house."]
        with pytest.raises(BadInput, match="texts of the last pass"):
            attached.answers(other, tokenizer(other, return_tensors="pt"))
