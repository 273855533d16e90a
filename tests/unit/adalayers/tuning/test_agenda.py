"""The agenda: what runs in which order, rebuilt from a record; what Optuna is told; the request as arms come and go."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import pytest
from optuna import load_study
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from ray import tune

from adalayers.comparisons import PlannedArm, pair
from adalayers.config import with_overrides
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.request import StudyRequest
from adalayers.results.record import PROGRESS, StudyRecord
from adalayers.results.study_file import RequestRecord, Run, RunsRecord, StudyFile
from adalayers.storage.folder import Folder
from adalayers.study import Arm, Design, Setting, Space, Study, Tuning, plan, trial_id
from adalayers.tuning.agenda import Agenda
from adalayers.tuning.document import request_record
from adalayers.tuning.search import JOURNAL, check_space, write_journal
from tests.helpers.made_data import made_data
from tests.helpers.refusing import refused

SPACE = Space(
    {"alpha": tune.loguniform(1, 100), "entropy_weight": tune.choice([0.0, 0.01])},
    {"lr": tune.loguniform(1e-4, 1e-2)},
    {"alpha": [1.0, 8.0], "entropy_weight": [0.0, 0.01], "lr": [1e-3, 1e-2]},
)
RATES_ALONE = Space({}, {"lr": SPACE.nuisance["lr"]}, {"lr": [1e-4, 1e-3, 3e-3]})
BASE = LayerMixConfig(k=8, heads=2, epochs=4)
DATA = made_data()
ARMS = [
    Arm("alpha=1", "core", {"alpha": 1.0}),
    Arm("alpha=8", "core", {"alpha": 8.0}),
    Arm("published", "published", {"alpha": 8.0}),
    Arm("cut", "published", {"cutoff": 0.5}),
    Arm("uniform", "uniform", {"mix": "uniform"}),
]
NAMES = ("alpha=1", "alpha=8", "uniform")
POINT = {"alpha": 64.0, "entropy_weight": 0.0, "lr": 1e-3}
DESIGN = Design(arms=lambda setting: (ARMS, ["a note"]), first=lambda setting: [POINT])


def study_with(**changes):
    """Return a study of another design; `arms` are given as they are."""
    if isinstance(arms := changes.get("arms"), list):
        changes["arms"] = lambda setting: (arms, [])
    return Study(name="made", question="Why?", design=replace(DESIGN, **changes))


def made_plan(study=None, space=SPACE, base=BASE, **fixed):
    base = with_overrides(base, fixed)
    setting = Setting(dataset="made", shape=DATA.shape, fixed=fixed, base=base, train_examples=96, classes=2)
    return plan(study or study_with(), space, setting)


def agenda(folder, *, plan=None, undecided=None, analyses=(), arms=(), factors=(), **asked):
    """Return the agenda of a request: 3 trials by Optuna and ASHA and 2 seeds, unless it asks otherwise."""
    runs = RunsRecord(history=(Run(analyses=tuple(analyses)),))
    before = StudyFile(request=RequestRecord(arms=arms), runs=runs)
    record, request = StudyRecord(folder, "accuracy"), StudyRequest(**{"trials": 3, "seeds": 2, **asked})
    plan = plan or made_plan()
    return Agenda(plan, record, DATA, request, undecided=undecided, before=before, factors=factors)


def finish(agenda, request, score=0.5, status="completed", epochs=(1,)):
    """Let a trial begin and end; its scores fall from the first epoch on."""
    agenda.record.begin(agenda.row(request))
    history = [{"epoch": float(epoch), "step": epoch, "val/accuracy": score / epoch} for epoch in epochs]
    row = {"val/accuracy": score, "epochs": len(epochs)}
    left = {"status": status, "error": "", "row": row, "history": history}
    agenda.record.work(request.trial_id).write_sealed(PROGRESS, left)
    if status != "unfinished":
        agenda.record.end(request.trial_id, status)
        agenda.ended(request.trial_id, status)


def run(agenda, score=lambda request: 0.5, stop=lambda request: None):
    """Run an agenda to its end, one trial at a time; return its requests."""
    requests = []
    while not isinstance(request := agenda.next(), str):
        requests.append(request)
        finish(agenda, request, score(request), stop(request) or "completed")
    assert request == "done"
    assert agenda.remaining() == 0
    agenda.record.write()
    return requests


def searched(requests):
    return [request for request in requests if request.stage == "search"]


def names(requests):
    return [(r.arm, r.seed) for r in requests if r.stage == "confirm"]


def high_rates_best(job):
    return 0.9 if job.config.lr > 1e-3 else 0.1


def test_equal_arms_are_one_impossible_ones_are_dropped_and_a_fixed_factor_leaves_the_space():
    made = made_plan()
    aliases = {arm.name: arm.aliases for arm in made.arms}
    assert aliases == dict.fromkeys(NAMES, ()) | {"alpha=8": ("published",)}
    ((name, why),) = made.dropped
    assert name == "cut"
    assert "below 1/3" in why
    assert made.control == "alpha=1"
    fixed = made_plan(alpha=1.0)
    assert "alpha" not in fixed.searches[0].space.domains
    assert {name for name, _ in fixed.dropped} >= {"alpha=8", "published"}


def test_search_then_arms_seed_by_seed_then_the_best(folder):
    numbers = itertools.count()
    requests = run(agenda(folder), lambda request: 0.9 if next(numbers) == 1 else 0.5)
    assert [(r.stage, r.seed) for r in requests[:3]] == [("search", 0)] * 3
    assert requests[0].config.alpha == 64.0, "the published point comes first"
    by_seed = [(arm, seed) for seed in (1, 2) for arm in NAMES]
    assert names(requests) == [*by_seed, ("search-best", 1), ("search-best", 2)]
    assert requests[-1].config.alpha == requests[1].config.alpha


def test_nothing_runs_twice_and_more_trials_and_seeds_add(folder):
    first = run(agenda(folder))
    assert run(agenda(folder)) == []
    added = run(agenda(folder, trials=5, seeds=3))
    assert len(searched(added)) == 2
    assert {seed for arm, seed in names(added) if arm in NAMES} == {3}
    assert not {r.trial_id for r in first} & {r.trial_id for r in added}


@pytest.mark.parametrize("search", ["optuna", "grid", "random"])
def test_a_search_that_goes_on_equals_one_that_was_not_stopped(folder, tmp_path, search):
    whole = searched(run(agenda(Folder(tmp_path / "whole"), trials=6, search=search)))
    assert len({job.config for job in whole}) == 6
    run(agenda(folder, trials=3, search=search))
    assert searched(run(agenda(folder, trials=6, search=search))) == whole[3:]


def test_unfinished_trials_come_first_and_failed_ones_are_tried_again(folder):
    def fails(job):
        return "failed" if job.stage == "search" or job.arm == "uniform" else None

    started = agenda(folder, search="random")
    request = started.next()
    finish(started, request, status="unfinished")
    started.record.write()
    assert run(agenda(folder, search="random"), stop=fails)[0] == request
    again = agenda(folder, search="random")
    assert again.remaining() >= 5, "else no run begins"
    jobs = run(again)
    assert len(searched(jobs)) == 3
    assert names(jobs)[:2] == [("uniform", 1), ("uniform", 2)]


def test_a_search_with_fewer_trials_ends_what_waits_before_its_best_is_known(folder):
    started = agenda(folder, search="random", trials=3)
    jobs = [started.next() for _ in range(3)]
    for job, status in zip(jobs, ("completed", "completed", "unfinished"), strict=True):
        finish(started, job, 0.5, status)
    started.record.write()
    again = agenda(folder, search="random", trials=2)
    ran = run(again, lambda job: 0.9)
    assert searched(ran) == [jobs[2]]
    assert [job.config for job in ran if job.arm == "search-best"] == [jobs[2].config] * 2


def test_optuna_is_told_how_trials_ended_and_nothing_of_a_point_outside_live_and_replayed(folder):
    def told(agenda):
        trials = agenda.searches[0].optuna_trials()
        return [(trial.state.name, trial.params, trial.intermediate_values) for trial in trials]

    planned = made_plan(study_with(first=lambda setting: [{"alpha": 512.0, "lr": 1e-3}]))
    live, numbers = agenda(folder, plan=planned), itertools.count()
    jobs = run(live, stop=lambda job: "stopped" if next(numbers) == 1 else None)
    assert jobs[0].config.alpha == 512.0
    assert [state for state, _, _ in told(live)] == ["FAIL", "PRUNED", "COMPLETE"]
    assert told(live)[1][2] == {1: 0.5}
    assert told(agenda(folder, plan=planned)) == told(live)
    write_journal(folder, live.searches)
    storage = JournalStorage(JournalFileBackend(str(folder.path() / JOURNAL)))
    kept = load_study(study_name=folder.name, storage=storage)
    assert [trial.state.name for trial in kept.trials] == ["PRUNED", "COMPLETE"]


def test_a_search_without_a_best_and_one_whose_best_is_an_arm_confirm_none(folder, tmp_path):
    ended = agenda(folder)
    ran = run(ended, stop=lambda job: "diverged" if job.stage == "search" else None)
    assert {arm for arm, _ in names(ran)} == {*NAMES}
    assert ("search-best", "no trial of the search completed") in ended.dropped
    plan = made_plan(entropy_weight=0.0, lr=1e-3)
    ended = agenda(Folder(tmp_path / "other"), plan=plan, search="grid", trials=2)
    ran = run(ended, score=lambda job: 0.9 if job.config.alpha == 8.0 else 0.1)
    assert {arm for arm, _ in names(ran)} == {*NAMES}
    assert next(arm for arm in ended.arms if arm.name == "alpha=8").aliases == ("published", "search-best")


def test_a_best_that_changes_as_the_search_grows_gets_a_name_of_its_own(folder):
    run(agenda(folder, trials=2))
    more = run(agenda(folder, trials=4), lambda job: 0.9 if job.stage == "search" else 0.5)
    assert {arm for arm, _ in names(more)} == {"search-best-4"}
    # The same best goes on under that name, which study.json has among its arms.
    arms = tuple(PlannedArm(name, "best") for name in ("search-best", "search-best-4"))
    third = names(run(agenda(folder, trials=5, seeds=3, arms=arms)))
    assert {arm for arm, seed in third if seed == 3} == {*NAMES, "search-best-4"}


def test_a_small_grid_ends_and_a_large_one_is_said_to_be_partial(folder, tmp_path):
    small = agenda(folder, search="grid", trials=20)
    assert small.remaining() == 8 + 3 * 2 + 2
    configs = [job.config for job in searched(run(small))]
    assert len(configs) == len(set(configs)) == 8
    assert any("no more than 8" in note for note in small.notes)
    assert agenda(folder, search="grid", trials=20).remaining() == 0, "nothing is left to begin a run for"
    part = agenda(Folder(tmp_path / "part"), search="grid", trials=3)
    assert any("8 points; a part of 3" in note for note in part.notes)
    plan_ = made_plan()
    plan_ = replace(plan_, searches=[replace(plan_.searches[0], first=[{"alpha": 8.0}])])
    part = agenda(Folder(tmp_path / "first"), plan=plan_, search="grid", trials=4)
    assert {job.config.alpha for job in searched(run(part))} == {8.0}
    fixed = made_plan(alpha=1.0, entropy_weight=0.0, lr=1e-3)
    assert len(searched(run(agenda(Folder(tmp_path / "fixed"), plan=fixed, trials=4)))) == 1


def test_a_search_whose_space_has_other_choices_now_says_so(folder):
    run(agenda(folder, trials=4))
    space = Space({**SPACE.scientific, "entropy_weight": tune.choice([0.5])}, SPACE.nuisance, {})
    assert len(searched(run(agenda(folder, plan=made_plan(space=space), trials=6)))) == 2
    notes = agenda(folder, plan=made_plan(space=space), trials=6).notes
    assert ["goes on without 4 of its trials" in note for note in notes if "without" in note] == [True]


def test_a_grid_keeps_its_values_where_the_first_of_another_cannot_run():
    grid = {"k": [16, 64], "entropy_weight": [0.0, 0.01]}
    space = Space({name: tune.choice(values) for name, values in grid.items()}, {}, grid)
    (search,) = made_plan(space=space, base=LayerMixConfig(k=64), heads=32).searches
    assert search.space.grid == {"k": [64], "entropy_weight": [0.0, 0.01]}


def test_trial_ids_follow_what_determines_a_trial():
    about, backbone = DATA.provenance, DATA.provenance.backbone
    backbones = [replace(backbone, fingerprint="f"), replace(backbone, dtype="bfloat16")]
    changes = [{}, *({"backbone": other} for other in backbones)]
    changes += [{"splits": {"train": "other"}}, {"precision": "float16"}, {"metric": "f1_macro"}]
    ids = [trial_id(BASE, DATA.shape, 1, replace(about, **change)) for change in changes]
    ids += [trial_id(BASE, DATA.shape, 2, about), trial_id(replace(BASE, k=16), DATA.shape, 1, about)]
    assert len(set(ids)) == 8
    assert ids[0] == trial_id(BASE, DATA.shape, 1, about)


@pytest.mark.parametrize(
    "choices",
    [
        {"fusion": ["layer-mix", "concat"], "train_examples": [16, 48]},
        {"mix": ["uniform", "learned"], "alpha": [1.0, 8.0]},
    ],
    ids=["columns that are no config/*", "a hyperparameter that is not used"],
)
def test_a_search_remembers_what_it_found(folder, choices):
    space = Space({name: tune.choice(values) for name, values in choices.items()}, {}, {})
    asked = {"search": "random", "trials": 4, "seeds": 1, "plan": made_plan(space=space)}
    made = agenda(folder, **asked)
    jobs = searched(run(made, lambda job: int(job.trial_id[1:], 16)))
    (name, values), _ = choices.items()
    assert {getattr(job.config, name) for job in jobs} == {*values}
    again = agenda(folder, **asked)
    told = [{t.user_attrs["trial_id"] for t in each.searches[0].optuna_trials()} for each in (made, again)]
    assert told[0] == told[1] >= {job.trial_id for job in jobs}
    best = trial_id(again.searches[0].best(), DATA.shape, 0, DATA.provenance)
    assert best == max(job.trial_id for job in jobs)


# Until decided


def ends(made):
    """Return after how many seeds a run has made its analyses, and their levels, as it closes."""
    return [(analysis.after, round(analysis.level, 6)) for analysis in made.analyses(closing=True)]


def deciding(*after):
    """Return what says which arms need more seeds: those of `after` each analysis, in turn."""
    return iter(after).__next__


PART = round(0.04 / 3, 6)


def test_arms_run_on_to_the_next_analysis_until_nothing_is_undecided(folder):
    made = agenda(folder, trials=0, seeds=20, undecided=deciding({"alpha=1", "uniform"}, set()))
    assert made.total() == 3 * 20, "at most"
    ran = names(run(made))
    six, twelve = [*range(1, 7)], [*range(1, 13)]
    assert ran == [
        *((arm, seed) for seed in six for arm in NAMES),
        *((arm, seed) for seed in range(7, 13) for arm in ("alpha=1", "uniform")),
    ]
    assert ends(made) == [(6, PART), (12, PART)]
    assert made.analyses()[1].covered == {"alpha=1": twelve, "alpha=8": six, "uniform": twelve}
    assert made.total() == len(ran)


def test_a_complete_crossing_keeps_one_percent_for_its_factors(folder):
    cells = itertools.product((1.0, 8.0), (0.0, 0.01))
    arms = [Arm(f"{a} {w}", "core", {"alpha": a, "entropy_weight": w}) for a, w in cells]
    for factors, level in ((("alpha", "entropy_weight"), 0.03), (("alpha", "k"), 0.04)):
        made = agenda(folder, trials=0, seeds=6, plan=made_plan(study_with(arms=arms)), factors=factors)
        run(made)
        assert ends(made) == [(6, level)]


@pytest.mark.parametrize(("before", "now"), [(20, 20), (3, 5)], ids=["exhausted", "more trials"])
def test_a_searchs_best_is_in_the_first_block_and_no_decided_arm_runs_before_it_is_known(folder, before, now):
    """A search that ended early, or that has more trials now, decides nothing about the arms there are."""
    asked = {"search": "grid", "seeds": 9}
    first = agenda(folder, **asked, trials=before, undecided=deciding(set()))
    ran = names(run(first))
    assert len(ran) == 4 * 6
    assert {seed for _, seed in ran} == {1, 2, 3, 4, 5, 6}
    assert ends(first) == [(6, 0.02)]
    again = agenda(folder, **asked, trials=now, undecided=deciding(set(), set()), analyses=first.analyses())
    known = {arm.name for arm in first.arms}
    assert not [arm for arm, seed in names(run(again)) if arm in known and seed > 6]


def test_a_decided_study_has_nothing_left_and_one_with_more_seeds_is_extended(folder):
    run(agenda(folder, trials=0, seeds=6, undecided=deciding({"alpha=1"})))
    first = agenda(folder, trials=0, seeds=6).analyses(closing=True)
    done = agenda(folder, trials=0, seeds=20, undecided=deciding(set(), set()), analyses=first)
    assert done.remaining() == 0
    assert run(done) == []
    assert ends(done) == []
    more = agenda(folder, trials=0, seeds=7, undecided=deciding({"alpha=8"}, {"alpha=8"}), analyses=first)
    assert more.remaining() == 1
    assert names(run(more)) == [("alpha=8", 7)]
    assert ends(more) == [(7, 0.005)]


def test_a_failed_trial_that_is_run_again_and_an_arm_that_joins_late_are_extensions(folder):
    made = agenda(folder, trials=0, seeds=6)
    how = {("uniform", 3): "failed", ("alpha=8", 2): "diverged"}
    run(made, stop=lambda job: how.get((job.arm, job.seed)))
    (first,) = made.analyses(closing=True)
    assert first.covered["alpha=8"] == [1, 2, 3, 4, 5, 6], "not of the easy seeds alone"
    assert (first.covered["uniform"], first.failed) == ([1, 2, 4, 5, 6], {"uniform": [3]})
    again = agenda(folder, trials=0, seeds=6, analyses=[first])
    assert names(run(again)) == [("uniform", 3)]
    assert ends(again) == [(6, 0.005)]
    analyses = [first, *again.analyses(closing=True)]
    joined = agenda(folder, trials=2, seeds=6, analyses=analyses)
    assert names(run(joined)) == [("search-best", seed) for seed in range(1, 7)]
    assert ends(joined) == [(6, 0.0025)]


def test_without_until_decided_the_analysis_is_at_the_end(folder):
    made = agenda(folder, trials=0, seeds=5)
    run(made)
    assert ends(made) == [], "fewer than six seeds are none"
    longer = agenda(folder, trials=0, seeds=7)
    for _ in range(6):  # three arms, two seeds
        assert ends(longer) == []
        finish(longer, longer.next())
    assert ends(longer) == [(7, 0.04)]
    again = agenda(folder, trials=0, seeds=7, analyses=longer.analyses(closing=True))
    assert ends(again) == [], "nothing new"


# Components that are tuned


def tuned_plan(**changes):
    """A plan whose two components, a uniform and a learned mix, are each tuned by a search; a third equals one."""
    mixes = {"learned": "learned", "uniform": "uniform", "again": "uniform"}
    study = study_with(
        arms=[Arm(name, "core", {"mix": mix}) for name, mix in mixes.items()],
        tunings=lambda setting: [Tuning(name, {"mix": mix}) for name, mix in mixes.items()],
        first=lambda setting: [{"lr": 1e-3}],
    )
    return replace(made_plan(study, RATES_ALONE), **changes)


def test_each_component_is_tuned_by_a_search_of_its_own_under_an_equal_budget(folder):
    ended = agenda(folder, plan=tuned_plan(), trials=2)
    requests = run(ended, score=high_rates_best)
    jobs = searched(requests)
    components = ["learned"] * 2 + ["uniform"] * 2
    assert [(job.search, job.arm, job.config.mix) for job in jobs] == [(name,) * 3 for name in components]
    rates = [job.config.lr for job in jobs]
    assert rates[:2] == rates[2:], "what is compared is the component"
    best = {job.arm: job.config.lr for job in requests if job.stage == "confirm"}
    for name in ("learned", "uniform"):
        assert best[f"{name}, tuned" if max(rates) > 1e-3 else name] == max(*rates, 1e-3)
    assert ended.total() == len(requests)
    more = searched(run(agenda(folder, plan=tuned_plan(), trials=3)))
    assert [job.search for job in more] == ["learned", "uniform"], "each goes on from its own rows"


def test_arms_may_be_confirmed_as_their_searches_find_them_best_and_not_as_they_are(folder):
    searches = [replace(search, becomes=search.name) for search in tuned_plan().searches]
    alone = tuned_plan(tuned_only=True, searches=searches)
    ended = agenda(folder, plan=alone, trials=2)
    assert ended.total() == 2 * 2 + 2 * 2
    ran = run(ended, score=high_rates_best)
    assert names(ran) == [("learned", 1), ("uniform", 1), ("learned", 2), ("uniform", 2)]
    plain = agenda(folder, plan=alone, trials=0)  # without a search they run as they are
    for made in (ended, plain):
        assert [arm.name for arm in made.arms] == ["learned", "uniform"]


def test_the_last_layer_may_win_a_search_and_be_resumed(folder):
    """Its rows say `last` and no layer, as those of the arm that reads the last layer."""
    depth = DATA.shape.streams[0].layers
    grid = {"layer": [1, depth], "mix": ["single"]}
    space = Space({}, {name: tune.choice(values) for name, values in grid.items()}, grid)
    one = study_with(tunings=lambda setting: [Tuning("alone", {"mix": "single", "layer": 1}, space=space)])
    asked = {"plan": made_plan(one), "trials": 2, "seeds": 1, "search": "grid"}
    first = agenda(folder, **asked)
    rows = [first.row(first.next()) for _ in range(2)]
    last = next(row for row in rows if row.settings["mix"] == "last")
    first.record.begin(last)
    again = agenda(folder, **asked)
    jobs = run(again, lambda job: 0.9 if job.trial_id == last.trial_id else 0.1)
    assert jobs[0].trial_id == last.trial_id
    assert trial_id(again.searches[0].best(), DATA.shape, 0, DATA.provenance) == last.trial_id
    assert [job for job in jobs if job.stage == "confirm" and job.config.values().get("layer") == depth]


def test_a_point_that_another_search_has_tried_may_be_the_best(folder):
    """The last layer alone is the best single layer too."""
    depth = DATA.shape.streams[0].layers
    single = Space({}, {"layer": tune.choice([1, depth])}, {"layer": [1, depth]})
    rate = Space({}, {"lr": tune.choice([1e-3])}, {"lr": [1e-3]})
    tunings = [
        Tuning("last", {"mix": "last", "lr": 1e-3}, space=rate),
        Tuning("single", {"mix": "single", "layer": 1, "lr": 1e-3}, space=single),
    ]
    plan = made_plan(study_with(tunings=lambda setting: tunings))
    made = agenda(folder, plan=plan, trials=2, seeds=1, search="grid")
    run(made, lambda job: 0.9 if job.config.mix == "last" else 0.1)
    best = made.searches[1].best()
    assert (best.mix, best.layer) == ("single", depth)


@pytest.mark.parametrize(
    ("domain", "how", "message"),
    [
        (64, "optuna", "a domain of ray.tune for batch_size in the search space of s, got 64; .* FIXED"),
        (tune.grid_search([1]), "optuna", "a domain that Optuna searches for batch_size"),
        (tune.randn(0, 1), "random", "a domain that Optuna searches for batch_size"),
        (tune.choice([1, 2]), "grid", "values of batch_size in .* for --search grid"),
        (tune.choice([1, 2]), "optuna", ""),
    ],
)
def test_a_space_that_cannot_be_searched_is_bad_input(domain, how, message):
    space, mistyped = (Space({}, {name: domain}, {}) for name in ("batch_size", "batchsize"))
    if message:
        refused(f"wanted {message}", check_space, space, how, "s")
    else:
        check_space(space, how, "s")
    refused("'batchsize'; did you mean 'batch_size'", check_space, mistyped, how, "s")


def test_tuned_arms_are_compared_with_what_the_controls_search_finds_best_now(tmp_path):
    def comparisons(arms, factors, control):
        return [pair(arm.name, control) for arm in arms if arm.name != control]

    plan, study = tuned_plan(tuned_only=True), study_with(comparisons=comparisons)
    plan = replace(plan, searches=[replace(search, becomes=search.name) for search in plan.searches])
    before, arms = StudyFile(), ()
    for trials, control in ((1, "learned"), (4, "learned-4")):
        made = agenda(Folder(tmp_path), plan=plan, trials=trials, seeds=1, arms=arms)
        run(made, score=high_rates_best)
        case = SimpleNamespace(plan=plan, before=before, request=RequestRecord(trials=trials, seeds=1))
        found = request_record(study, case, made)
        assert found.control == control
        pairs = {(planned.arm, planned.control) for planned in found.comparisons}
        assert {(arm.name, control) for arm in made.arms if arm.name != control} <= pairs
        before, arms = replace(before, request=found), found.arms


# Groups


def test_a_group_is_of_trials_that_read_the_same_batches(folder):
    made = agenda(folder, trials=1)
    groups = [made.next_group(5)]
    assert [job.stage for job in groups[0]] == ["search"], "a search's trials run alone"
    while not isinstance(group := made.next_group(2), str):
        groups.append(group)
        assert made.waiting() == made.remaining() - sum(map(len, groups))
    assert [[job.seed for job in group] for group in groups[1:]] == [[1, 1], [1], [2, 2], [2]]
    assert group == "wait", "the search is under way"
    for job in itertools.chain(*groups):
        finish(made, job)
    assert [job.seed for job in made.next_group(2)] == [1], "of the search's best"


@pytest.mark.parametrize(
    ("search", "scheduler", "sizes"),
    [("grid", "fifo", [2, 1]), ("random", "asha", [1, 1, 1]), ("optuna", "fifo", [1, 1, 1])],
)
def test_trials_of_a_search_share_a_program_where_none_hangs_on_another(folder, search, scheduler, sizes):
    made = agenda(folder, search=search, scheduler=scheduler)
    assert [len(made.next_group(2)) for _ in sizes] == sizes


def test_an_analysis_waits_for_the_whole_of_each_group(folder):
    made = agenda(folder, trials=0, seeds=12, undecided=lambda: ["uniform"])
    jobs = []
    while not isinstance(group := made.next_group(8), str):
        jobs += group
    for job in jobs[:-1]:
        finish(made, job)
    assert (group, made.next_group(8), made.analyses()) == ("wait", "wait", [])
    finish(made, jobs[-1])
    assert [job.arm for job in made.next_group(8)] == ["uniform"]
    assert len(made.analyses()) == 1


def test_a_group_that_was_interrupted_comes_again_with_its_members_in_their_places(folder):
    made = agenda(folder, trials=0)
    group = made.next_group(4, across_seeds=True)
    for job in group:
        made.record.begin(made.row(job, f"{group[0].trial_id}/4"))
    assert len(group) == 4
    assert agenda(folder, trials=0).next_group(6, across_seeds=True) == group


# Rates

RATES = (1e-3, 1e-2)
TUNED_FOR = {"alpha=1": 1e-3, "alpha=8": 1e-2, "uniform": 1e-3}
RATED = {"trials": 0, "rates": RATES}


def by_rate(job):
    """Score an arm best at the rate that `TUNED_FOR` names."""
    return 0.9 if TUNED_FOR.get(job.arm) == job.config.lr else 0.1


def tried(jobs):
    return [(job.arm, job.config.lr, job.seed) for job in jobs if job.search == "rates"]


def test_each_arm_first_tries_the_rates_on_the_searchs_seed_and_keeps_its_best(folder, tmp_path):
    made = agenda(folder, **RATED)
    assert (made.total(), made.remaining()) == (12, 12)
    jobs = run(made, by_rate)
    assert tried(jobs[:6]) == [(arm, rate, 0) for arm in NAMES for rate in RATES]
    assert {job.stage for job in jobs[:6]} == {"search"}
    assert {(job.arm, job.config.lr) for job in jobs[6:]} == set(TUNED_FOR.items())
    assert {job.config.mix_lr for job in jobs} == {1e-3}, "the mix has the rate that it has without the flag"
    plain = run(agenda(Folder(tmp_path / "plain"), trials=0))
    ids = [job.trial_id for job in jobs if job.config.lr == 1e-3 and job.seed]
    assert ids == [job.trial_id for job in plain if job.arm != "alpha=8"], "however its rate was chosen"
    assert run(agenda(folder, **RATED)) == []


def test_no_arm_is_confirmed_before_all_rates_which_may_share_a_program_are_known(folder):
    """Nor does a first block begin."""
    made = agenda(folder, **RATED, seeds=9, undecided=lambda: ["alpha=1", "alpha=8"])
    jobs = made.next_group(6)
    assert [job.search for job in jobs] == ["rates"] * 6
    for job in jobs:
        assert made.next() == "wait"
        finish(made, job, by_rate(job))
    ran = names(run(made))
    assert ran[:18] == [(arm, seed) for seed in range(1, 7) for arm in NAMES]
    assert {arm for arm, seed in ran if seed > 6} == {"alpha=1", "alpha=8"}


def test_rates_that_were_interrupted_go_on_and_those_that_failed_are_tried_again(folder):
    made = agenda(folder, **RATED)
    first, second, third = (made.next() for _ in range(3))
    finish(made, first, by_rate(first))
    finish(made, second, status="failed")
    finish(made, third, status="unfinished")
    made.record.write()
    jobs = run(agenda(folder, **RATED), by_rate)
    assert tried(jobs)[:2] == tried([second, third])
    assert len(tried(jobs)) == 5
    assert {job.arm: job.config.lr for job in jobs if job.seed} == TUNED_FOR


def test_an_arm_keeps_the_rate_that_it_was_confirmed_with(folder):
    run(agenda(folder, **RATED), by_rate, lambda job: tried([job]) == [("alpha=8", 1e-2, 0)] and "failed")
    more = run(agenda(folder, **RATED, seeds=3), by_rate)
    assert not tried(more), "the rate that failed is not asked for again: its arm has been confirmed"
    assert {(job.arm, job.config.lr) for job in more} == {(arm, 1e-3) for arm in NAMES}


def test_equal_rates_go_to_the_smallest_id_an_arm_without_any_stays_and_arms_alike_are_one(folder):
    arms = [Arm(name, "core", {"mix": "uniform", "lr": lr}) for name, lr in (("slow", 3e-3), ("fast", 0.1))]
    arms.append(Arm("none", "core", {"alpha": 1.0}))
    made = agenda(folder, **RATED, plan=made_plan(study_with(arms=arms)))
    jobs = run(made, stop=lambda job: "diverged" if job.arm == "none" and not job.seed else None)
    assert [arm for arm, *_ in tried(jobs)] == ["slow", "slow", "none", "none"]
    assert [(arm.name, arm.aliases) for arm in made.arms] == [("slow", ("fast",)), ("none", ())]
    ids = {job.config.lr: job.trial_id for job in jobs if job.arm != "none" and not job.seed}
    kept = {job.arm: job.config.lr for job in jobs if job.seed}
    assert kept == {"slow": min(ids, key=ids.get), "none": 1e-3}
    assert made.notes == ["`none` completed no trial of `--rates`: it has lr 0.001."]


def test_a_search_knows_the_rates_that_are_points_of_its_space(folder):
    """The mix's rate is set, so that a search at another lr finds the very trials of the rates."""
    planned = made_plan(entropy_weight=0.0, mix_lr=1e-3)
    asked = {"rates": RATES, "trials": 4, "search": "grid", "plan": planned}
    made = agenda(folder, **asked)
    jobs = run(made, by_rate)
    assert len(tried(jobs)) == len(searched(jobs)) == 6, "all four of the search have run"
    aliases = sorted(arm.aliases for arm in made.arms)
    assert aliases in ([(), ("published",), ("search-best",)], [(), (), ("published", "search-best")])
    assert "no more than 0 different configurations" in made.notes[0]
    assert run(agenda(folder, **asked)) == []


# What a folder has


def test_a_scheduler_gets_no_last_evaluation_of_a_completed_trial_and_what_one_under_way_has_left(folder):
    """Live, no rung sees an evaluation that ends a trial; a stopped one was stopped by its last."""
    made = agenda(folder)
    for status in ("completed", "stopped", "unfinished"):
        finish(made, made.next(), status=status, epochs=(1, 2))
    (search,) = made.searches
    both = [(1, 0.5), (2, 0.5)]  # the best so far
    assert [evaluations for _, evaluations in search.evaluated()] == [both[:1], both, both]
