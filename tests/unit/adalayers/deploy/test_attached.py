"""Tasks on a base model's own passes: it gives what it gave, bit for bit, and they what they gave in their study."""

import copy
from unittest import mock

import pytest
import torch
import transformers

import adalayers
from adalayers.backbones.families import FAMILIES
from adalayers.backbones.sources import resolve
from adalayers.config import FUSIONS, config_class, trial_config
from adalayers.deploy.predictor import Predictor
from adalayers.fusion.layer_mix import LayerMixConfig
from tests.helpers.refusing import refused


def hooks(model):
    """Return how many hooks there are on all modules of a model."""
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def run(base, model=None, **given):
    with torch.no_grad():
        called = base.model if model is None else model
        return called(input_ids=base.ids, attention_mask=base.mask, **given)


def assert_same(given, expected, atol=2e-6):
    torch.testing.assert_close(given, expected, atol=atol, rtol=1e-5)


def answered(base, call=run, model=None, **tasks):
    """Return the answers of tasks on what `call` runs, which gives what it gives without them, bit for bit."""
    model = base.model if model is None else model
    alone, before = call(base), hooks(model)
    with adalayers.attach(model, **tasks) as attached:
        with_tasks = call(base)
        answers = attached.outputs()
    pair = [given if isinstance(given, torch.Tensor) else given[0] for given in (with_tasks, alone)]
    torch.testing.assert_close(*pair, rtol=0, atol=0, equal_nan=True)
    assert hooks(model) == before
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


MAPPED = {"do_layer_norm_before": False, "word_embed_proj_dim": 8}
FAMILY_CASES = [*((family, {}) for family in sorted(FAMILIES)), ("opt", MAPPED)]


@pytest.mark.filterwarnings("ignore")  # of transformers, about configs and decoders used alone
@pytest.mark.parametrize(("family", "changes"), FAMILY_CASES, ids=str)
def test_tasks_ride_on_the_task_model_of_every_family(family, changes, base_of):
    base = base_of(family, **changes)
    task, kind = base.task("token"), base.source.reading.kind
    if base.source.reading.shared:
        refused("one and the same", adalayers.attach, base.model, task=task)
        return
    more = {"decoder_input_ids": base.ids[:, :3]} if kind == "encoder-decoder" else {}
    assert_answers(base, lambda base: run(base, **more), atol=1e-5, task=task)


@pytest.mark.parametrize("family", ["bart", "t5"])
def test_an_encoder_decoder_also_generates_what_it_generated(family, base_of):
    base = base_of(family)
    text, word = base.task(), base.task("token", config=LayerMixConfig(k=8, heads=2, final_norm=False))
    for beams in (1, 3):
        given = {"max_new_tokens": 5, "min_new_tokens": 5, "do_sample": False, "num_beams": beams}
        given |= {"input_ids": base.ids, "attention_mask": base.mask}
        assert_answers(base, lambda base, given=given: base.model.generate(**given), text=text, word=word)
    assert_answers(base, lambda base: run(base, decoder_input_ids=base.ids), text=text)


def test_a_decoder_is_read_step_by_step_as_one_sequence(base_of):
    base = base_of("gpt2")
    tasks = {"text": base.task(), "word": base.task("token", 1)}
    ids, mask = base.ids.flip(1), base.mask.flip(1)  # decoders generate from texts padded on the left
    settings = {"max_new_tokens": 4, "min_new_tokens": 4, "do_sample": False, "pad_token_id": base.pad}
    generated = base.model.generate(input_ids=ids, attention_mask=mask, **settings)
    answers = answered(base, lambda base: base.model.generate(ids, attention_mask=mask, **settings), **tasks)
    read = generated[:, :-1]  # the last token was given, never read
    all_real = torch.cat([mask, mask.new_ones(3, 3)], dim=1).bool()
    for row, real in enumerate(all_real):  # one by one, without padding: no position moves
        one = read[row : row + 1, real]
        assert_same(answers["text"][row : row + 1], base.expected(tasks["text"], one), atol=1e-5)
        assert_same(answers["word"][row, real], base.expected(tasks["word"], one), atol=1e-5)


def test_beams_and_foreign_caches_are_no_sequence_to_answer_of(base_of):
    base = base_of("gpt2")
    one = {"input_ids": base.ids[:1], "attention_mask": base.mask[:1], "pad_token_id": base.pad}
    cache = run(base, use_cache=True).past_key_values
    first, second = (adalayers.attach(base.model, text=base.task()) for _ in range(2))
    with first, second:
        with torch.no_grad():
            base.model(input_ids=base.ids[:, :1], past_key_values=cache)
        refused("a cache of 9 tokens, of which 0 were read", first.outputs)
        base.model.generate(**one, num_beams=3, max_new_tokens=4, min_new_tokens=4)
        for attached in (first, second):
            refused("beam search", attached.outputs)
        former, _ = (run(base, use_cache=True).past_key_values for _ in range(2))
        with torch.no_grad():
            base.model(input_ids=base.ids[:, :1], past_key_values=former)
            refused("of 9 tokens, of which others were read last", first.outputs)
            run(base, use_cache=True).past_key_values.batch_select_indices(torch.tensor([2, 0, 1]))
            refused("changed places", first.outputs)
        run(base)
        assert first.output("text").shape == (3, 3)


@pytest.mark.parametrize("family", ["bart", "t5"])
@pytest.mark.parametrize("side", [0, 1], ids=["left", "right"])
def test_padding_that_counts_as_tokens_is_refused(family, side, base_of):
    base = base_of(family)
    task = base.task(config=LayerMixConfig(k=8, heads=2, stream="decoder"))
    ids, mask = (value if side else value.flip(1) for value in (base.ids, base.mask))
    ids = ids.roll(1, 1).index_fill(1, torch.tensor(0), base.model.config.decoder_start_token_id)
    with adalayers.attach(base.model, task=task) as attached, torch.no_grad():
        base.model(ids, attention_mask=mask, decoder_input_ids=ids, decoder_attention_mask=mask)
        assert attached.output("task").shape == (3, 3)
        base.model(ids, attention_mask=mask, decoder_input_ids=ids)
        refused("decoder_attention_mask", attached.outputs)


def test_heads_read_a_few_sequences_at_a_time(base_of, monkeypatch):
    monkeypatch.setattr("adalayers.deploy.attached.HEAD_TOKENS", 10)
    assert_answers(base_of(), text=base_of().task(), word=base_of().task("token", 1))


@pytest.mark.parametrize("where", ["bert.encoder.layer.2", "cls"])
def test_a_pass_that_fails_leaves_nothing(where, base_of):
    base, task = base_of(), base_of().task()
    with adalayers.attach(base.model, task=task) as attached:
        run(base)
        hook = base.model.get_submodule(where).register_forward_hook(mock.Mock(side_effect=ZeroDivisionError))
        with hook, pytest.raises(ZeroDivisionError):
            run(base)
        refused("its last pass failed", attached.outputs)
        run(base)
        assert_same(attached.output("task"), base.expected(task))


@pytest.mark.filterwarnings("ignore:`gradient_checkpointing")  # the name that transformers 5.0 knows
def test_checkpointing_and_gradients_are_as_without(base_of):
    base, task = base_of(), base_of().task("token")
    model = copy.deepcopy(base.model).requires_grad_(True).train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0

    def gradients():
        model.zero_grad()
        model(input_ids=base.ids, attention_mask=base.mask, labels=base.ids).loss.backward()
        return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}

    alone = gradients()
    model.gradient_checkpointing_enable()
    with adalayers.attach(model, task=task) as attached:
        torch.testing.assert_close(gradients(), alone, rtol=0, atol=0)
        given = attached.output("task")
    assert_same(given[base.mask.bool()], base.expected(task))
    assert not given.requires_grad


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, None], ids=str)
def test_half_precision(dtype, base_of):
    """The base model in half, the task in float32 or in half too: its sums are float32."""
    base = base_of("roberta")
    model = copy.deepcopy(base.model).to(dtype)
    for task in (base.task(), base.task().to(dtype)):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype is None):
            given = answered(base, lambda base: run(base, model), model=model, task=task)["task"]
        assert given.dtype == torch.float32
        torch.testing.assert_close(given, base.expected(base.task()), atol=0.03, rtol=0.03)


def test_inference_mode_tuples_states_of_the_base_models_own_and_a_bare_model_without_a_mask(base_of):
    base, task = base_of(), base_of().task()
    with adalayers.attach(base.model.bert, task=task) as attached, torch.no_grad():
        base.model.bert(base.ids[:1])
        assert_same(attached.output("task"), base.expected(task, base.ids[:1]))
    with adalayers.attach(base.model, task=task) as attached:
        with torch.inference_mode():
            base.model(input_ids=base.ids, attention_mask=base.mask, return_dict=False)
        assert_same(attached.output("task"), base.expected(task))
        assert len(run(base, output_hidden_states=True).hidden_states) == 5
        assert_same(attached.output("task"), base.expected(task))


def test_questions_without_an_answer_and_what_cannot_be_attached(base_of):
    base = base_of()
    before = hooks(base.model)
    attached = adalayers.attach(base.model, entities=base.task())
    refused("no pass since they were attached", attached.outputs)
    refused(r"unknown task 'entitles'; did you mean 'entities'\?", attached.output, "entitles")
    run(base)
    attached.detach()
    attached.detach()
    refused("they were detached", attached.outputs)
    wider = copy.deepcopy(base.model)
    wider.config.hidden_size = 32
    for message, model, task in (
        ("a base model of transformers, got Linear", torch.nn.Linear(2, 2), base.task()),
        ("got BertForMaskedLM: bert, 4 layers of width 32", wider, base.task()),
        ("bert, 4 layers of width 16; got RobertaForMaskedLM", base_of("roberta").model, base.task()),
        ("it is in training mode", base.model, base.task().train()),
        ("base_model=fine-tuned", base.model, base.task(base_model="fine-tuned")),
        ("got DataParallel", torch.nn.DataParallel(base.model), base.task()),
    ):
        refused(message, adalayers.attach, model, task=task)
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
        if message:
            refused(message, adalayers.attach, base.model, task=task)
    adalayers.attach(base.model, task=task).detach()
    task.about = {"backbone": {"id": "a-folder", "fingerprint": "0"}}  # which may hold any model of the hub
    adalayers.attach(base.model, task=task).detach()


def test_a_base_model_may_be_compiled_after_attaching_and_one_that_was_before_is_seen(base_of):
    """Compiled in pieces between the layers: what it gives may be rounded otherwise, not what the tasks make of it."""
    base, task = base_of(), base_of().task()
    alone, compiled = run(base).logits, torch.compile(base.model, backend="eager")
    try:
        with adalayers.attach(base.model, task=task) as attached:
            assert_same(run(base, compiled).logits, alone, atol=1e-5)
            assert_same(attached.output("task"), base.expected(task), atol=1e-5)
        torch.compiler.reset()
        run(base, compiled)
        with adalayers.attach(compiled, task=task) as attached:
            run(base, compiled)
            refused(r"no pass since they were|attach before torch\.compile", attached.outputs)
    finally:
        torch.compiler.reset()


@pytest.mark.parametrize("side", ["left", "right"])
def test_answers_are_those_that_predict_gives(made, backbone, side):
    tokenizer = transformers.AutoTokenizer.from_pretrained(backbone, padding_side=side)
    tasks = {name: adalayers.load(task.best) for name, task in made.items()}
    shared = {name: adalayers.TrainedTask(task) for name, task in tasks.items()}
    texts = ["Anna read a book in London.", "the dog slept"]
    expected = Predictor(tasks, resolve(backbone)).predict(texts)
    base = transformers.AutoModel.from_pretrained(backbone).eval()
    inputs = tokenizer(texts, padding=True, return_tensors="pt")
    positions = (inputs["attention_mask"].cumsum(dim=1) - 1).clamp(min=0)
    with torch.no_grad(), adalayers.attach(base, **shared) as attached:
        base(**inputs, position_ids=positions)
        answers = attached.answers(texts, inputs)
        for i, of_text in enumerate(expected):
            text, word = answers["text"][i], answers["word"][i]
            assert text.label == of_text["text"].label
            assert text.probability == pytest.approx(of_text["text"].probability, abs=1e-5)
            assert word.tags == of_text["word"].tags
            given, wanted = (each.entities for each in (word, of_text["word"]))
            assert [(e.label, e.text, e.start) for e in given] == [(e.label, e.text, e.start) for e in wanted]
        for wrong in ((texts[0], inputs), (texts * 2, inputs), (texts, dict(inputs))):
            refused("fast tokeniser", attached.answers, *wrong)
        words = tokenizer([text.split() for text in texts], is_split_into_words=True, padding=True)
        for wrong in ((texts, words), (texts[::-1], inputs), ([(text, "") for text in texts], inputs)):
            refused("its tokens are not those of", attached.answers, *wrong)
        base.train()(**inputs, position_ids=positions)
        refused("wanted the base model in eval mode", attached.answers, texts, inputs)
        base.eval()(**inputs, position_ids=positions)
        for other in (texts[:1], ["Anna slept.", "the dog"], texts[::-1]):
            read = tokenizer(other, padding=True, return_tensors="pt")
            refused("texts of the last pass", attached.answers, other, read)
