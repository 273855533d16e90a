"""The agenda: what runs in which order, rebuilt from a record; what Optuna is told."""

import itertools
from dataclasses import replace

import optuna
import pytest
from ray import tune

from adalayers.comparisons import PlannedArm
from adalayers.config import with_overrides
from adalayers.fusion.layer_mix import LayerMixConfig
from adalayers.request import StudyRequest
from adalayers.results.record import PROGRESS, StudyRecord
from adalayers.results.study_file import RequestRecord, Run, RunsRecord, StudyFile
from adalayers.storage.folder import Folder
from adalayers.study import Arm, Design, Setting, Space, Study, Tuning, as_recorded, plan, trial_id
from adalayers.tuning.agenda import Agenda, logger
from tests.helpers.made_data import made_data

SPACE = Space(
    {"alpha": tune.loguniform(1, 100), "entropy_weight": tune.choice([0.0, 0.01])},
    {"lr": tune.loguniform(1e-4, 1e-2)},
    {"alpha": [1.0, 8.0], "entropy_weight": [0.0, 0.01], "lr": [1e-3, 1e-2]},
)
BASE = LayerMixConfig(k=8, heads=2, epochs=4)
DATA = made_data()


def arms(setting):
    return [
        Arm("alpha=1", "core", {"alpha": 1.0}),
        Arm("alpha=8", "core", {"alpha": 8.0}),
        Arm("published", "published", {"alpha": 8.0}),
        Arm("cut", "published", {"cutoff": 0.5}),
        Arm("uniform", "uniform", {"mix": "uniform"}),
    ], ["a note"]


DESIGN = Design(arms=arms, first=lambda setting: [{"alpha": 64.0, "entropy_weight": 0.0, "lr": 1e-3}])
STUDY = Study(name="made", question="Why?", design=DESIGN)


def study_with(**changes):
    return replace(STUDY, design=replace(DESIGN, **changes))


def made_plan(study=STUDY, space=SPACE, **fixed):
    base = with_overrides(BASE, fixed)
    setting = Setting(dataset="made", shape=DATA.shape, fixed=fixed, base=base, train_examples=96)
    return plan(study, space, setting)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "study")


def agenda(folder, *, plan=None, undecided=None, analyses=(), arms=(), factors=(), **asked):
    """Return the agenda of a request: 3 trials by Optuna and ASHA and 2 seeds, unless it asks otherwise."""
    runs = RunsRecord(history=(Run(analyses=tuple(analyses)),))
    before = StudyFile(request=RequestRecord(arms=arms), runs=runs)
    record, request = StudyRecord(folder, "accuracy"), StudyRequest(**{"trials": 3, "seeds": 2, **asked})
    plan = plan or made_plan()
    return Agenda(plan, record, DATA, request, undecided=undecided, before=before, factors=factors)


def finish(agenda, request, score=0.5, status="completed"):
    """Let a trial begin and end."""
    agenda.record.begin(agenda.row(request))
    history = [{"epoch": 1.0, "step": 3, "val/accuracy": score}]
    row = {"val/accuracy": score, "epochs": 1}
    left = {"status": status, "error": "", "row": row, "history": history}
    agenda.record.work(request.trial_id).write_json(PROGRESS, left)
    agenda.record.end(request.trial_id, status)
    agenda.ended(request.trial_id, status)


def run(agenda, score=lambda request: 0.5, stop=lambda request: None):
    """Run an agenda to its end, one trial at a time; return its requests."""
    requests = []
    while not isinstance(request := agenda.next(), str):
        requests.append(request)
        finish(agenda, request, score(request), stop(request) or "completed")
    assert request == "done"
    agenda.record.write()
    return requests


def searched(agenda):
    """Return the configurations that the search of an agenda tries."""
    return [request.config for request in run(agenda) if request.stage == "search"]


def names(requests):
    return [(r.arm, r.seed) for r in requests if r.stage == "confirm"]


def test_equal_arms_merge_and_impossible_ones_are_dropped_with_a_reason():
    made = made_plan()
    aliases = {arm.name: arm.aliases for arm in made.arms}
    assert aliases == {"alpha=1": (), "alpha=8": ("published",), "uniform": ()}
    assert [name for name, _ in made.dropped] == ["cut"]
    assert "below 1/3" in made.dropped[0][1]
    assert made.control == "alpha=1"


def test_a_fixed_factor_leaves_the_space():
    made = made_plan(alpha=1.0)
    assert all("alpha" not in search.space.domains for search in made.searches)
    assert {name for name, _ in made.dropped} >= {"alpha=8", "published"}


def test_search_then_arms_seed_by_seed_then_the_best(folder):
    best = {}

    def score(request):
        best[request.trial_id] = request
        return 0.9 if request.stage == "search" and len(best) == 2 else 0.5

    requests = run(agenda(folder), score)
    assert [r.stage for r in requests[:3]] == ["search"] * 3
    assert {r.seed for r in requests[:3]} == {0}
    assert requests[0].config.alpha == 64.0, "the published point comes first"
    arms = [(arm, seed) for seed in (1, 2) for arm in ("alpha=1", "alpha=8", "uniform")]
    assert names(requests) == [*arms, ("search-best", 1), ("search-best", 2)]
    assert requests[-1].config.alpha == requests[1].config.alpha


def test_nothing_runs_twice_and_more_trials_and_seeds_add(folder):
    first = run(agenda(folder))
    assert run(agenda(folder)) == []
    again = agenda(folder)
    assert again.remaining() == 0
    more = agenda(folder, trials=5, seeds=3)
    added = run(more)
    assert [r.stage for r in added].count("search") == 2
    assert {r.seed for r in added if r.stage == "confirm" and not r.arm.startswith("search-best")} == {3}
    assert not {r.trial_id for r in first} & {r.trial_id for r in added}
    assert more.remaining() == 0


@pytest.mark.parametrize("search", ["optuna", "grid", "random"])
def test_a_search_that_goes_on_does_not_draw_its_first_points_again(folder, tmp_path, search):
    whole = searched(agenda(Folder(tmp_path / "whole"), trials=6, search=search))
    assert len(set(whole)) == 6
    run(agenda(folder, trials=3, search=search))
    rest = searched(agenda(folder, trials=6, search=search))
    assert rest == whole[3:], "a resumed search equals one that was not stopped"


def test_unfinished_trials_come_first_with_their_own_configuration(folder):
    started = agenda(folder)
    request = started.next()
    started.record.begin(started.row(request))
    started.record.write()
    resumed = agenda(folder)
    assert resumed.next() == request


def test_failed_trials_are_tried_again(folder):
    def stop(job):
        return "failed" if job.stage == "search" or job.arm == "uniform" else None

    run(agenda(folder, search="random"), stop=stop)
    again = agenda(folder, search="random")
    assert again.remaining() >= 5, "else no run begins"
    jobs = run(again)
    assert [job.stage for job in jobs].count("search") == 3
    assert names(jobs)[:2] == [("uniform", 1), ("uniform", 2)]
    assert again.remaining() == 0


def test_a_stopped_trial_is_pruned_in_optuna_live_and_replayed(folder):
    live = agenda(folder)
    run(live, stop=lambda job: "stopped" if job.stage == "search" and job.config.alpha == 64.0 else None)
    states = [trial.state for trial in live.searches[0]._optuna.trials]
    assert states.count(optuna.trial.TrialState.PRUNED) == 1
    assert states.count(optuna.trial.TrialState.COMPLETE) == 2
    replayed = agenda(folder).searches[0]._optuna.trials
    assert [trial.state for trial in replayed] == states
    assert [trial.params for trial in replayed] == [trial.params for trial in live.searches[0]._optuna.trials]
    pruned = next(trial for trial in replayed if trial.state == optuna.trial.TrialState.PRUNED)
    assert pruned.intermediate_values == {1: 0.5}


def test_a_point_outside_the_space_runs_and_tells_optuna_nothing_live_or_replayed(folder):
    planned = made_plan(study_with(first=lambda setting: [{"alpha": 512.0, "lr": 1e-3}]))
    live = agenda(folder, plan=planned)
    requests = run(live)
    assert next(r.config.alpha for r in requests if r.stage == "search") == 512.0
    states = [trial.state for trial in live.searches[0]._optuna.trials]
    assert states[0] == optuna.trial.TrialState.FAIL
    assert states[1:] == [optuna.trial.TrialState.COMPLETE] * 2
    assert [trial.state for trial in agenda(folder, plan=planned).searches[0]._optuna.trials] == states


def test_no_completed_search_drops_its_best_with_a_reason(folder):
    ended = agenda(folder)
    requests = run(ended, stop=lambda request: "diverged" if request.stage == "search" else None)
    assert not any(arm.startswith("search-best") for arm, _ in names(requests))
    assert ("search-best", "no trial of the search completed") in ended.dropped


def test_a_best_that_is_an_arm_already_is_an_alias(folder, monkeypatch):
    said = []
    monkeypatch.setattr(logger, "info", said.append)
    ended = agenda(folder, plan=made_plan(entropy_weight=0.0, lr=1e-3), search="grid", trials=2)
    requests = run(ended, score=lambda request: 0.9 if request.config.alpha == 8.0 else 0.1)
    assert not any(arm.startswith("search-best") for arm, _ in names(requests))
    assert next(arm for arm in ended.arms if arm.name == "alpha=8").aliases == ("published", "search-best")
    (why,) = said
    assert why == f"the search's best has the settings of alpha=8: {ended.seeds} trials fewer"


def test_a_best_that_changes_as_the_search_grows_gets_a_name_of_its_own(folder):
    run(agenda(folder, trials=2))
    seen = []

    def score(request):
        if request.stage == "search":
            seen.append(request)
        return 0.9 if request.stage == "search" else 0.5

    more = run(agenda(folder, trials=4), score)
    assert {arm for arm, _ in names(more)} == {"search-best-4"}
    # The same best goes on under that name, which study.json has among its arms.
    arms = tuple(PlannedArm(name, "best") for name in ("search-best", "search-best-4"))
    third = {arm for arm, seed in names(run(agenda(folder, trials=5, seeds=3, arms=arms))) if seed == 3}
    assert third == {"alpha=1", "alpha=8", "uniform", "search-best-4"}


def test_a_small_grid_ends_and_a_large_one_is_said_to_be_partial(folder, tmp_path):
    small = agenda(folder, search="grid", trials=20)
    configs = searched(small)
    assert len(configs) == len(set(configs)) == 8
    assert any("no more than 8" in note for note in small.notes)
    assert agenda(folder, search="grid", trials=20).remaining() == 0, "nothing is left to begin a run for"
    part = agenda(Folder(tmp_path / "part"), search="grid", trials=3)
    assert any("8 points; a part of 3" in note for note in part.notes)


def test_a_grid_keeps_its_values_where_the_first_of_another_cannot_run():
    grid = {"k": [16, 64], "entropy_weight": [0.0, 0.01]}
    space = Space({name: tune.choice(values) for name, values in grid.items()}, {}, grid)
    base = LayerMixConfig(k=64, heads=32)
    setting = Setting(dataset="made", shape=DATA.shape, fixed={"heads": 32}, base=base, train_examples=96)
    (search,) = plan(STUDY, space, setting).searches
    assert search.space.grid == {"k": [64], "entropy_weight": [0.0, 0.01]}


def test_a_fixed_space_is_one_trial(folder):
    fixed = agenda(folder, plan=made_plan(alpha=1.0, entropy_weight=0.0, lr=1e-3), trials=4)
    assert len(searched(fixed)) == 1


def test_trial_ids_follow_what_determines_a_trial():
    about, backbone = DATA.provenance, DATA.provenance.backbone
    one = trial_id(BASE, DATA.shape, 1, about)
    assert one == trial_id(BASE, DATA.shape, 1, about)
    assert one[0] == "t"
    others = {
        trial_id(BASE, DATA.shape, 2, about),
        trial_id(LayerMixConfig(k=16, heads=2, epochs=4), DATA.shape, 1, about),
        trial_id(BASE, DATA.shape, 1, replace(about, backbone=replace(backbone, fingerprint="f"))),
        trial_id(BASE, DATA.shape, 1, replace(about, backbone=replace(backbone, dtype="bfloat16"))),
        trial_id(BASE, DATA.shape, 1, replace(about, splits={**about.splits, "train": "other"})),
        trial_id(BASE, DATA.shape, 1, replace(about, precision="float16")),
        trial_id(BASE, DATA.shape, 1, replace(about, metric="f1_macro")),
    }
    assert len(others | {one}) == 8


# Until decided


def ends(made):
    """Return after how many seeds a run has made its analyses, and their levels, as it closes."""
    return [(analysis.after, round(analysis.level, 6)) for analysis in made.analyses(closing=True)]


class Deciding:
    """Says which arms need more seeds: those of `after` the analyses made so far, in turn."""

    def __init__(self, *after):
        self.after, self.request = [*after], 0

    def __call__(self):
        self.request += 1
        return self.after.pop(0)


PART = round(0.04 / 3, 6)


def test_arms_run_on_to_the_next_analysis_until_nothing_is_undecided(folder, monkeypatch):
    said = []
    monkeypatch.setattr(logger, "info", said.append)
    deciding = Deciding({"alpha=1", "uniform"}, set())
    made = agenda(folder, trials=0, seeds=20, undecided=deciding)
    assert made.total() == 3 * 20, "at most"
    ran = names(run(made))
    six, twelve = [*range(1, 7)], [*range(1, 13)]
    assert ran == [(arm, seed) for seed in six for arm in ("alpha=1", "alpha=8", "uniform")] + [
        (arm, seed) for seed in range(7, 13) for arm in ("alpha=1", "uniform")
    ]
    assert (ends(made), deciding.request) == ([(6, PART), (12, PART)], 2)
    assert made.analyses()[1].covered == {"alpha=1": twelve, "alpha=8": six, "uniform": twelve}
    assert (made.remaining(), made.total()) == (0, len(ran))
    assert said[0] == "decided after 6 seeds, no more trials of: alpha=8"


def test_a_complete_crossing_keeps_one_percent_for_its_factors(folder):
    cells = [{"alpha": alpha, "entropy_weight": weight} for alpha in (1.0, 8.0) for weight in (0.0, 0.01)]
    arms = [Arm(str(place), "core", cell) for place, cell in enumerate(cells)]
    crossed = study_with(arms=lambda setting: (arms, []))
    for factors, level in ((("alpha", "entropy_weight"), 0.03), (("alpha", "k"), 0.04)):
        made = agenda(folder, trials=0, seeds=6, plan=made_plan(crossed), factors=factors)
        run(made)
        assert ends(made) == [(6, level)]


def test_the_searchs_best_is_in_the_first_block_and_the_analysis_waits_for_it(folder):
    made = agenda(folder, seeds=9, undecided=Deciding(set()))
    ran = names(run(made))
    assert len(ran) == 4 * 6
    assert {seed for _, seed in ran} == {1, 2, 3, 4, 5, 6}
    assert ends(made) == [(6, 0.02)]


@pytest.mark.parametrize(("before", "now"), [(20, 20), (3, 5)], ids=["exhausted", "more trials"])
def test_a_decided_study_trains_no_arm_again_before_the_searchs_best_is_known(folder, before, now):
    """A search that ended early, or that has more trials now, decides nothing about the arms there are."""
    asked = {"search": "grid", "seeds": 9}
    first = agenda(folder, **asked, trials=before, undecided=Deciding(set()))
    run(first)
    analyses = first.analyses()
    again = agenda(folder, **asked, trials=now, undecided=Deciding(set(), set()), analyses=analyses)
    known = {arm.name for arm in first.arms}
    assert not [job for job in run(again) if job.stage == "confirm" and job.arm in known and job.seed > 6]


def test_a_search_over_methods_or_amounts_of_data_confirms_what_it_found(folder):
    """Their columns of `trials.csv` are no `config/*`."""
    domains = {"fusion": tune.choice(["layer-mix", "concat"]), "train_examples": tune.choice([16, 48])}
    space = Space(domains, {}, {})
    made = agenda(folder, search="random", trials=4, seeds=1, plan=made_plan(space=space))
    run(made, lambda job: (job.config.fusion == "concat") + (job.config.train_examples == 16))
    best = made.searches[0].best()
    assert (best.fusion, best.train_examples) == ("concat", 16)


def test_a_search_remembers_trials_that_leave_a_hyperparameter_unused(folder):
    plain = Space({"mix": tune.choice(["uniform", "learned"]), "alpha": tune.choice([1.0, 8.0])}, {}, {})
    one = agenda(folder, search="random", trials=3, plan=made_plan(space=plain))
    before = {trial.user_attrs["trial_id"] for trial in run(one) and one.searches[0].optuna_trials()}
    assert any(row.settings["mix"] == "uniform" for row in one.record.rows.values() if row.stage == "search")
    again = agenda(folder, search="random", trials=3, plan=made_plan(space=plain))
    assert {trial.user_attrs["trial_id"] for trial in again.searches[0].optuna_trials()} == before


def test_a_decided_study_has_nothing_left_and_one_with_more_seeds_is_extended(folder):
    run(agenda(folder, trials=0, seeds=6, undecided=Deciding({"alpha=1"})))
    first = agenda(folder, trials=0, seeds=6).analyses(closing=True)
    done = agenda(folder, trials=0, seeds=20, undecided=Deciding(set(), set()), analyses=first)
    assert done.remaining() == 0
    assert run(done) == []
    assert done.analyses(closing=True) == []
    more = agenda(folder, trials=0, seeds=7, undecided=Deciding({"alpha=8"}, {"alpha=8"}), analyses=first)
    assert more.remaining() == 1
    assert names(run(more)) == [("alpha=8", 7)]
    assert ends(more) == [(7, 0.005)]


def test_an_arm_that_joins_late_gets_the_seeds_that_others_have_and_an_extension(folder):
    run(agenda(folder, trials=0, seeds=6))
    first = agenda(folder, trials=0, seeds=6).analyses(closing=True)
    joined = agenda(folder, trials=2, seeds=6, analyses=first)
    assert names(run(joined)) == [("search-best", seed) for seed in range(1, 7)]
    (analysis,) = joined.analyses(closing=True)
    assert (analysis.after, analysis.level, analysis.extension) == (6, 0.005, True)
    assert "search-best" in analysis.covered


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


def test_a_failed_trial_that_is_run_again_is_an_extension(folder):
    made = agenda(folder, trials=0, seeds=6)
    run(made, stop=lambda job: "failed" if (job.arm, job.seed) == ("uniform", 3) else None)
    (first,) = made.analyses(closing=True)
    assert first.covered["uniform"] == [1, 2, 4, 5, 6]
    again = agenda(folder, trials=0, seeds=6, analyses=[first])
    assert names(run(again)) == [("uniform", 3)]
    assert ends(again) == [(6, 0.005)]


def test_leaving_out_until_decided_gives_the_last_analysis_what_is_left(folder):
    first = agenda(folder, trials=0, seeds=20, undecided=Deciding(set(), set()))
    run(first)
    rest = agenda(folder, trials=0, seeds=20, analyses=first.analyses(closing=True))
    run(rest)
    assert ends(rest) == [(20, round(0.04 * 2 / 3, 6))]


def tuned_plan():
    """A plan whose two components, a uniform and a learned mix, are each tuned by a search; a third equals one."""
    mixes = {"learned": "learned", "uniform": "uniform", "again": "uniform"}
    components = [(name, {"mix": mix}) for name, mix in mixes.items()]
    study = study_with(
        arms=lambda setting: ([Arm(name, "core", own) for name, own in components], []),
        tunings=lambda setting: [Tuning(name, overrides) for name, overrides in components],
        first=lambda setting: [{"lr": 1e-3}],
    )
    return made_plan(study, Space({}, {"lr": SPACE.nuisance["lr"]}, {"lr": [1e-4, 1e-3, 3e-3]}))


def test_each_component_is_tuned_by_a_search_of_its_own_under_an_equal_budget(folder):
    ended = agenda(folder, plan=tuned_plan(), trials=2)
    requests = run(ended, score=lambda request: 0.9 if request.config.lr > 1e-3 else 0.1)
    searched = [request for request in requests if request.stage == "search"]
    assert [(job.search, job.arm, job.config.mix) for job in searched] == [
        *[("learned", "learned", "learned")] * 2,
        *[("uniform", "uniform", "uniform")] * 2,
    ]
    # Trial by trial the searches suggest the same: what is compared is the component.
    assert [job.config.lr for job in searched[:2]] == [job.config.lr for job in searched[2:]]
    best = {job.arm: job.config.lr for job in requests if job.stage == "confirm"}
    for name in ("learned", "uniform"):
        tried = max(job.config.lr for job in searched)
        assert best[f"{name}, tuned" if tried > 1e-3 else name] == max(tried, 1e-3)
    assert ended.remaining() == 0
    assert ended.total() == len(requests)


def test_arms_may_be_confirmed_as_their_searches_find_them_best_and_not_as_they_are(folder):
    searches = [replace(search, becomes=search.name) for search in tuned_plan().searches]
    alone = replace(tuned_plan(), tuned_only=True, searches=searches)
    ended = agenda(folder, plan=alone, trials=2, seeds=2)
    assert ended.total() == 2 * 2 + 2 * 2
    requests = run(ended, score=lambda request: 0.9 if request.config.lr > 1e-3 else 0.1)
    confirmed = [(job.arm, job.seed) for job in requests if job.stage == "confirm"]
    assert confirmed == [("learned", 1), ("uniform", 1), ("learned", 2), ("uniform", 2)]
    assert [arm.name for arm in ended.arms] == ["learned", "uniform"]
    assert ended.remaining() == 0
    # Without a search they run as they are.
    plain = agenda(folder, plan=alone, trials=0, seeds=2)
    assert [arm.name for arm in plain.arms] == ["learned", "uniform"]


def test_a_search_begins_with_the_component_as_it_is_and_may_have_a_space_of_its_own():
    own = Space({}, {"alpha": tune.uniform(1, 9)}, {})
    study = study_with(
        tunings=lambda setting: [
            Tuning("one", {"mix": "learned", "lr": 2e-3}),
            Tuning("other", {"mix": "learned", "alpha": 8.0}, own),
        ],
        first=lambda setting: [],
    )
    made = made_plan(study, Space({}, {"lr": SPACE.nuisance["lr"]}, {}))
    searches = [(search.first, list(search.space.domains)) for search in made.searches]
    assert searches == [([{"lr": 2e-3}], ["lr"]), ([{"alpha": 8.0}], ["alpha"])]
    assert made.nuisance == ("lr", "alpha")


@pytest.mark.parametrize("chosen", [{}, {"mix": tune.choice(["single"])}], ids=["layer", "mix and layer"])
def test_the_last_layer_may_win_a_search_and_be_resumed(folder, chosen):
    """Its rows say `last` and no layer, as those of the arm that reads the last layer."""
    depth = DATA.shape.streams[0].layers
    space = Space({}, {"layer": tune.choice([1, depth]), **chosen}, {"layer": [1, depth], "mix": ["single"]})
    one = study_with(tunings=lambda setting: [Tuning("alone", {"mix": "single", "layer": 1}, space=space)])
    first = agenda(folder, plan=made_plan(one), trials=2, seeds=1, search="grid")
    begun = [first.next() for _ in range(2)]
    last = next(job for job in begun if first.row(job).settings["mix"] == "last")
    first.record.begin(first.row(last))
    again = agenda(folder, plan=made_plan(one), trials=2, seeds=1, search="grid")
    jobs = run(again, lambda job: 0.9 if job.trial_id == last.trial_id else 0.1)
    assert jobs[0].trial_id == last.trial_id
    best = again.searches[0].best()
    assert trial_id(best, DATA.shape, again.seed, DATA.provenance) == last.trial_id
    confirmed = [job for job in jobs if job.stage == "confirm" and job.config.values().get("layer") == depth]
    assert confirmed


def test_a_study_with_several_searches_goes_on_from_its_rows(folder):
    run(agenda(folder, plan=tuned_plan(), trials=1))
    resumed = agenda(folder, plan=tuned_plan(), trials=2)
    left = [request for request in run(resumed) if request.stage == "search"]
    assert [job.search for job in left] == ["learned", "uniform"]
    assert not run(agenda(folder, plan=tuned_plan(), trials=2))


def test_a_group_is_of_trials_that_read_the_same_batches(folder):
    made = agenda(folder, trials=1, seeds=2)
    searched = made.next_group(5)
    assert [job.stage for job in searched] == ["search"], "a search's trials run alone"
    groups = [searched]
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
    [
        ("random", "fifo", [2, 1]),
        ("grid", "fifo", [2, 1]),
        ("random", "asha", [1, 1, 1]),
        ("optuna", "fifo", [1, 1, 1]),
    ],
)
def test_trials_of_a_search_share_a_program_where_none_hangs_on_another(folder, search, scheduler, sizes):
    made = agenda(folder, trials=3, seeds=2, search=search, scheduler=scheduler)
    assert [len(made.next_group(2)) for _ in sizes] == sizes


def test_an_analysis_waits_for_the_whole_of_each_group(folder):
    made = agenda(folder, trials=0, seeds=12, undecided=lambda: ["uniform"])
    jobs = []
    while not isinstance(group := made.next_group(8), str):
        jobs += group
    assert (group, made.next_group(8), made.analyses()) == ("wait", "wait", [])
    for job in jobs[:-1]:
        finish(made, job)
    assert made.next_group(8) == "wait"
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


def by_rate(job):
    """Score an arm best at the rate that `TUNED_FOR` names."""
    return 0.9 if TUNED_FOR.get(job.arm) == job.config.lr else 0.1


def tried(jobs):
    return [(job.arm, job.config.lr, job.seed) for job in jobs if job.search == "rates"]


def test_each_arm_first_tries_the_rates_on_the_searchs_seed_and_keeps_its_best(folder):
    made = agenda(folder, trials=0, rates=RATES)
    assert (made.total(), made.remaining()) == (12, 12)
    jobs = run(made, by_rate)
    assert tried(jobs[:6]) == [(arm, rate, 0) for arm in ("alpha=1", "alpha=8", "uniform") for rate in RATES]
    assert {job.stage for job in jobs[:6]} == {"search"}
    assert {(job.arm, job.config.lr) for job in jobs[6:]} == set(TUNED_FOR.items())
    assert {job.config.mix_lr for job in jobs} == {1e-3}, "the mix has the rate that it has without the flag"
    plain = run(agenda(Folder(f"{folder.address}-plain"), trials=0))
    ids = [job.trial_id for job in jobs if job.config.lr == 1e-3 and job.seed]
    assert ids == [job.trial_id for job in plain if job.arm != "alpha=8"], "however its rate was chosen"
    assert made.remaining() == 0
    assert run(agenda(folder, trials=0, rates=RATES)) == []


def test_no_arm_is_confirmed_before_all_rates_which_may_share_a_program_are_known(folder):
    made = agenda(folder, trials=0, rates=RATES)
    jobs = made.next_group(6)
    assert [job.search for job in jobs] == ["rates"] * 6
    assert made.next() == "wait"
    for job in jobs[:-1]:
        finish(made, job, by_rate(job))
    assert made.next() == "wait"
    finish(made, jobs[-1], by_rate(jobs[-1]))
    assert made.next().stage == "confirm"


def test_rates_that_were_interrupted_go_on_and_those_that_failed_are_tried_again(folder):
    made = agenda(folder, trials=0, rates=RATES)
    first, second, third = (made.next() for _ in range(3))
    finish(made, first, by_rate(first))
    finish(made, second, status="failed")
    made.record.begin(made.row(third))
    made.record.write()
    again = agenda(folder, trials=0, rates=RATES)
    jobs = run(again, by_rate)
    assert tried(jobs)[:2] == tried([second, third])
    assert len(tried(jobs)) == 5
    assert {job.arm: job.config.lr for job in jobs if job.seed} == TUNED_FOR


def test_an_arm_keeps_the_rate_that_it_was_confirmed_with(folder):
    def stop(job):
        return "failed" if tried([job]) == [("alpha=8", 1e-2, 0)] else None

    run(agenda(folder, trials=0, rates=RATES), by_rate, stop)
    more = run(agenda(folder, trials=0, rates=RATES, seeds=3), by_rate)
    assert not tried(more), "the rate that failed is not asked for again: its arm has been confirmed"
    assert {(job.arm, job.config.lr) for job in more} == {(arm, 1e-3) for arm in TUNED_FOR}


def test_equal_rates_go_to_the_smallest_id_and_an_arm_without_any_stays_as_it_was(folder):
    made = agenda(folder, trials=0, rates=(3e-3, 1e-2))
    jobs = run(made, stop=lambda job: "diverged" if job.arm == "uniform" and not job.seed else None)
    ids = {job.config.lr: job.trial_id for job in jobs if job.arm == "alpha=1" and not job.seed}
    kept = {job.arm: job.config.lr for job in jobs if job.seed}
    assert kept["alpha=1"] == min(ids, key=ids.get)
    assert kept["uniform"] == 1e-3
    assert made.notes == ["`uniform` completed no trial of `--rates`: it has lr 0.001."]


def test_arms_that_the_rates_make_equal_are_one(folder):
    both = [Arm(name, "core", {"mix": "uniform", "lr": lr}) for name, lr in (("slow", 1e-3), ("fast", 0.1))]
    planned = made_plan(study_with(arms=lambda setting: (both, [])))
    made = agenda(folder, trials=0, rates=RATES, plan=planned)
    assert made.remaining() == 6
    jobs = run(made)
    assert len(tried(jobs)) == 2
    assert [(arm.name, arm.aliases) for arm in made.arms] == [("slow", ("fast",))]


def test_a_search_knows_the_rates_that_are_points_of_its_space(folder):
    """The mix's rate is set, so that a search at another lr finds the very trials of the rates."""
    planned = made_plan(entropy_weight=0.0, mix_lr=1e-3)
    made = agenda(folder, rates=RATES, trials=4, search="grid", plan=planned)
    jobs = run(made, by_rate)
    assert len(tried(jobs)) == 6
    assert not [job for job in jobs if job.stage == "search" and job.search != "rates"], "all four have run"
    assert [arm.aliases for arm in made.arms] in (
        [("search-best",), ("published",), ()],
        [(), ("published", "search-best"), ()],
    )
    assert "no more than 0 different configurations beside those of --rates" in made.notes[0]
    assert run(agenda(folder, rates=RATES, trials=4, search="grid", plan=planned)) == []


def test_components_with_a_search_of_their_own_try_the_rates_too(folder):
    alphas = {"a": {"alpha": 1.0}, "b": {"alpha": 8.0}}
    study = study_with(
        tunings=lambda setting: [Tuning(name, own) for name, own in alphas.items()],
        arms=lambda setting: ([Arm(name, "core", own) for name, own in alphas.items()], []),
        tuned_only=True,
    )
    planned = made_plan(study, Space({}, {"lr": SPACE.nuisance["lr"]}, {}), mix_lr=1e-3)
    made = agenda(folder, rates=RATES, trials=2, plan=planned)
    jobs = run(made, lambda job: 0.9 if job.search == "rates" and job.config.lr == 1e-2 else 0.1)
    assert [len([job for job in jobs if job.search == name]) for name in ("rates", "a", "b")] == [4, 2, 2]
    assert {(job.arm, job.config.lr) for job in jobs if job.seed} == {("a", 1e-2), ("b", 1e-2)}


def test_blocks_until_decided_begin_once_the_rates_are_known(folder):
    asked = []

    def undecided():
        asked.append(None)
        return ["alpha=1", "alpha=8"]

    made = agenda(folder, trials=0, seeds=9, rates=RATES, undecided=undecided)
    jobs = run(made, by_rate)
    assert [job.search for job in jobs[:6]] == ["rates"] * 6
    assert names(jobs)[:18] == [(arm, seed) for seed in range(1, 7) for arm in TUNED_FOR]
    assert {arm for arm, seed in names(jobs) if seed > 6} == {"alpha=1", "alpha=8"}
    assert asked


def test_a_name_in_a_folder_keeps_its_meaning_whatever_later_versions_plan(folder):
    """The folder has a mix at alpha 8 and its rate; the arm of that name is now another one."""
    before = made_plan()
    recorded = [PlannedArm(arm.name, arm.role, arm.config.used(DATA.shape)) for arm in before.arms]
    later = {"alpha": 8.0, "mix_lr": 0.5}
    now = [arm for arm in arms(None)[0] if arm.name != "alpha=8"] + [Arm("alpha=8", "core", later)]
    planned = made_plan(
        study_with(
            arms=lambda setting: (now, ["a new note"]),
            tunings=lambda setting: [Tuning("alpha=8", later)],
        )
    )
    kept = as_recorded(planned, recorded, ["a note"], DATA.shape)
    assert planned.notes == ["a new note"]
    assert kept.notes == ["a note"]
    (old,) = (arm for arm in before.arms if arm.name == "alpha=8")
    (new,) = (arm for arm in kept.arms if arm.name == "alpha=8")
    one, other = (trial_id(arm.config, DATA.shape, 1, DATA.provenance) for arm in (new, old))
    assert one == other
    assert kept.searches[0].base == new.config
    assert as_recorded(before, recorded, ["a note"], DATA.shape) is before


def test_the_last_layer_goes_on_though_it_is_recorded_by_its_other_name():
    top = Arm("top", "single", {"mix": "single", "layer": DATA.shape.streams[0].layers})
    planned = made_plan(study_with(arms=lambda setting: ([Arm("mix", "mix", {}), top], [])))
    recorded = [PlannedArm(arm.name, arm.role, arm.config.used(DATA.shape)) for arm in planned.arms]
    assert recorded[1].config["mix"] == "last"
    assert as_recorded(planned, recorded, [], DATA.shape) is planned


def test_a_scheduler_gets_no_last_evaluation_of_a_completed_trial_and_what_one_under_way_has_left(folder):
    """Live, no rung sees an evaluation that ends a trial; a stopped one was stopped by its last."""
    made = agenda(folder, trials=3)
    history = [{"epoch": float(epoch), "step": epoch, "val/accuracy": 0.1 * epoch} for epoch in (1, 2)]
    for status in ("completed", "stopped", "unfinished"):
        job = made.next()
        made.record.begin(made.row(job))
        left = {"status": status, "error": "", "row": {"val/accuracy": 0.2}, "history": history}
        made.record.work(job.trial_id).write_json(PROGRESS, left)
        if status != "unfinished":
            made.record.end(job.trial_id, status)
    (search,) = made.searches
    assert [[each["epoch"] for each in evaluations] for _, evaluations in search.finished()] == [[1], [1, 2]]
    assert [each["epoch"] for each in search.evaluations(job.trial_id)] == [1, 2]
