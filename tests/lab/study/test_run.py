"""Studies: which arcs and methods, what is kept, what is suspicious, what the tables hold."""

import json
import re

import numpy as np
import pytest

from neoranging.core.status import RangeStatus
from neoranging.estimators.conformal import ConformalEstimator
from neoranging.estimators.gauss import GaussEstimator
from neoranging.estimators.learned import default_weights
from neoranging.exceptions import EvaluationError, NotTrainedError, UnknownMethodError
from neoranging.lab.sets.arcs import to_core
from neoranging.lab.sets.splits import split_set
from neoranging.lab.sets.store import ArcWriter, read_arcs
from neoranging.lab.study.calibration import (
    CalibrationSample,
    MethodIntervals,
    calibrate,
    cross_conformal,
)
from neoranging.lab.study.checks import check_answers, check_copies, check_labels
from neoranging.lab.study.folder import prepare
from neoranging.lab.study.methods import StudyMethod, ask, study_methods
from neoranging.lab.study.published import PUBLISHED, SOLVED
from neoranging.lab.study.report import render
from neoranging.lab.study.run import run_study
from neoranging.lab.study.scores import ArcTruth
from neoranging.lab.study.selection import Selection, describe
from neoranging.lab.study.tables import HEADLINE

# ---------------------------------------------------------------------- which arcs


def test_a_selection_reads_its_split_without_resampled_arcs(folder):
    test = Selection().read(folder)
    assert set(test["split"]) == {"test"}
    assert not test["is_close"].any()
    both = Selection(close=True).read(folder)
    assert both["is_close"].any()
    assert len(both) > len(test)


def test_several_parts_are_named_with_commas(folder):
    parts = [Selection(split).read(folder)["arc_id"] for split in ("test", "unseen")]
    both = Selection("test,unseen").read(folder)
    assert set(both["split"]) == {"test", "unseen"}
    assert sorted(both["arc_id"]) == sorted(np.concatenate(parts))
    with pytest.raises(EvaluationError, match="no split 'tset'; there are train, val, test"):
        Selection("test,tset")


def test_a_cap_holds_for_every_object_and_depends_on_the_seed(folder):
    few = Selection(split=None, cap=2).read(folder)
    assert np.unique(few["designation"], return_counts=True)[1].max() == 2
    again = Selection(split=None, cap=2).read(folder)
    np.testing.assert_array_equal(few["arc_id"], again["arc_id"])
    other = Selection(split=None, cap=2, seed=9).read(folder)
    assert not np.array_equal(few["arc_id"], other["arc_id"])


def test_at_most_so_many_arcs_are_whole_objects(folder):
    every = Selection(split=None).read(folder)
    some = Selection(split=None, max_arcs=31).read(folder)
    assert 20 < len(some) <= 31
    for name in np.unique(some["designation"]):
        assert (some["designation"] == name).sum() == (every["designation"] == name).sum()
    assert len(Selection(split=None, max_arcs=2).read(folder)) == 2


def test_no_arcs_and_no_sense_are_told(folder, table, tmp_path):
    with pytest.raises(EvaluationError, match="cap must be at least 1"):
        Selection(cap=0)
    with ArcWriter(tmp_path, settings={}) as writer:
        writer.write(table)
    with pytest.raises(EvaluationError, match="'all' takes every arc"):
        Selection().read(tmp_path)


def test_the_description_names_what_a_reader_must_know(folder):
    selection = Selection(cap=3)
    arcs = selection.read(folder)
    told = describe(folder, selection, arcs)
    assert (told["kind"], told["n_arcs"]) == ("simulated", len(arcs))
    assert told["settings"] == {"kind": "made", "seed": 31}
    assert told["selection"]["cap"] == 3
    real = describe(folder, selection, arcs.with_columns(is_simulated=False))
    assert real["kind"] == "real"


# ---------------------------------------------------------------------- which methods


def test_methods_are_named_placed_and_labelled():
    plain, placed, labelled = study_methods(["gauss", "laplace@geocenter", "mine=gauss@geocenter"])
    assert (plain.label, plain.estimator.origin) == ("gauss", "topocenter")
    assert (placed.label, placed.estimator.origin) == ("laplace@geocenter", "geocenter")
    assert (labelled.label, labelled.estimator.name) == ("mine", "gauss")
    twin = plain.from_geocenter()
    assert (twin.label, twin.estimator.origin) == ("gauss (geocentre)", "geocenter")
    assert placed.from_geocenter() is None


def test_impossible_methods_are_told(tmp_path):
    with pytest.raises(EvaluationError, match="no method to judge"):
        study_methods([])
    with pytest.raises(EvaluationError, match="several methods are called 'gauss'"):
        study_methods(["gauss", "gauss=laplace"])
    with pytest.raises(UnknownMethodError, match="no method 'kepler'"):
        study_methods(["kepler"])
    with pytest.raises(NotTrainedError, match="no weights at"):
        study_methods([f"net={tmp_path / 'none.safetensors'}"])


def test_kept_predictions_are_used_while_they_hold(table, tmp_path, monkeypatch):
    calls = []
    gauss = StudyMethod.of("gauss")
    solve = type(gauss.estimator)._solve
    monkeypatch.setattr(
        type(gauss.estimator), "_solve", lambda *args: calls.append(1) or solve(*args)
    )

    def asked(method, table, progress=None):
        origins = ("topocenter", "geocenter")
        arcs = {origin: to_core(table, origin) for origin in origins}
        truths = {origin: ArcTruth.of(table, origin, arcs[origin]) for origin in origins}
        return ask(method, table, truths, arcs, tmp_path, progress)[0]

    table = table.take(slice(0, 100))
    first = asked(gauss, table)
    done = []
    again = asked(gauss, table, done.append)
    np.testing.assert_array_equal(again.rho, first.rho)
    assert (len(calls), done) == (1, [len(table)])
    asked(StudyMethod("gauss", StudyMethod.of("gauss@geocenter").estimator), table)
    assert len(calls) == 2  # other options
    asked(gauss, table.take(slice(0, 9)))
    assert len(calls) == 3  # other arcs
    (tmp_path / "gauss.npz").write_bytes(b"damaged")
    asked(gauss, table.take(slice(0, 9)))
    assert len(calls) == 4
    some = table.take(slice(0, 9))
    asked(gauss, some.with_columns(rho_topo_au=1.01 * some["rho_topo_au"]))
    assert len(calls) == 5  # another truth


def test_a_folder_with_a_study_is_not_written_over_unasked(tmp_path):
    prepare(tmp_path)
    (tmp_path / "study.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "predictions").mkdir()
    with pytest.raises(EvaluationError, match="holds a study: resume it"):
        prepare(tmp_path)
    prepare(tmp_path, resume=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["notes.txt", "predictions"]
    prepare(tmp_path, overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


# ---------------------------------------------------------------------- what is suspicious


def alarms(made, rho, rho_true, **columns):
    told = check_answers(made(rho, rho_true, **columns))
    return [remark.text for remark in told if remark.is_alarm]


@pytest.fixture(scope="module")
def truth():
    rng = np.random.default_rng(11)
    return {
        "rho_true": np.exp(rng.normal(-1.2, 0.7, 400)),
        "rho_dot_true": rng.normal(0.0, 0.006, 400),
    }


def test_honest_answers_raise_no_alarm(made, truth, noisy):
    rho, rho_dot = noisy(truth["rho_true"], truth["rho_dot_true"])
    assert not check_answers(made(rho, rho_dot=rho_dot, **truth))


@pytest.mark.parametrize(
    ("plant", "text"),
    [
        (lambda r, v: (1.496e8 * r, v), r"units look swapped \(kilometres\)"),
        (lambda r, v: (r / 1.496e8, v), r"taken for kilometres, and converted"),
        (lambda r, v: (389.2 * r, v), "lunar distances"),
        (lambda r, v: (r, 1731.46 * v), r"range-rates .*\(kilometres per second\)"),
        (lambda r, v: (v, r), "look exchanged"),
        (lambda r, v: (r, -v), "wrong sign"),
        (lambda r, v: (np.roll(r, 1), v), "1 row back .* labels or answers are shifted"),
        (lambda r, v: (np.roll(r, -3), v), "3 rows further"),
        (lambda r, v: (np.full(len(r), 0.3), v), "nearly constant ranges"),
        (lambda r, v: (r, 0.0 * v), "nearly constant range-rates"),
        (lambda r, v: (np.random.default_rng(1).permutation(r), v), "tell nothing"),
        (lambda r, v: (1e-5 * np.ones(len(r)) * (1.0 + r), v), "degenerate roots"),
        (lambda r, v: (np.nan * r, v), r"answers 0 of 400 arcs \(0.0 %\)"),
    ],
)
def test_planted_errors_raise_an_alarm(made, truth, noisy, plant, text):
    rho, rho_dot = plant(*noisy(truth["rho_true"], truth["rho_dot_true"]))
    told = alarms(made, rho, rho_dot=rho_dot, **truth)
    assert any(re.search(text, each) for each in told), told


def test_a_method_is_not_broken_for_answers_it_does_not_vouch_for(made, truth, noisy):
    """Sound where it says OK, noise elsewhere: a remark, and an alarm if OK means nothing."""
    rho, rho_dot = noisy(truth["rho_true"], truth["rho_dot_true"])
    rng, m = np.random.default_rng(8), len(rho)
    ok = np.arange(m) % 5 == 0
    mixed = np.where(ok, rho, rng.permutation(rho) / truth["rho_true"])
    status = np.where(ok, RangeStatus.OK.code, RangeStatus.UNDETERMINED.code).astype("i1")
    columns = {"rho_dot": rho_dot, "status": status, "ok": ok, **truth}
    told = [r for r in check_answers(made(mixed, **columns)) if "of the true ones" in r.text]
    assert [remark.is_alarm for remark in told] == [False]
    nothing = rng.permutation(rho) / truth["rho_true"]
    told = [r for r in check_answers(made(nothing, **columns)) if "of the true ones" in r.text]
    assert [remark.is_alarm for remark in told] == [True]


def test_answers_that_are_the_truth_raise_an_alarm(made, truth):
    told = alarms(made, truth["rho_true"], rho_dot=truth["rho_dot_true"], **truth)
    assert any("does it see the truth" in each for each in told)


def test_what_figures_must_be_read_with_is_a_remark(made, truth, noisy):
    rho, rho_dot = noisy(truth["rho_true"], truth["rho_dot_true"])
    rho[::2] = np.nan
    (half,) = check_answers(made(rho, rho_dot=rho_dot, **truth))
    assert not half.is_alarm
    assert half.text == "answers 200 of 400 arcs (50.0 %); its errors are of these alone"
    middle = 0.3 * (truth["rho_true"] / 0.3) ** 0.3
    (drawn,) = check_answers(made(middle, rho_dot=rho_dot, **truth))
    assert "drawn to the middle" in drawn.text
    assert not drawn.is_alarm


def test_one_method_under_two_names_is_found(made, truth, noisy):
    rho, _ = noisy(truth["rho_true"], truth["rho_dot_true"])
    first, same, other = (
        made(answers, truth["rho_true"], method=name)
        for name, answers in (("a", rho), ("b", rho.copy()), ("c", 1.01 * rho))
    )
    (told,) = check_copies([first, same, other])
    assert (told.subject, told.is_alarm) == ("b", True)
    assert "the very ranges of a on 400 of 400 arcs" in told.text


def test_labels_of_other_arcs_are_found_without_any_method(folder, arcs):
    told = describe(folder, Selection(split=None), arcs)
    sound = check_labels(arcs, ArcTruth.of(arcs), told)
    assert not [remark for remark in sound if remark.is_alarm]
    names = ("rho_topo_au", "rho_dot_topo_au_d")
    shifted = arcs.with_columns(**{name: np.roll(arcs[name], 5) for name in names})
    found = check_labels(shifted, ArcTruth.of(shifted), told)
    assert any(r.is_alarm and "off those of the catalogue" in r.text for r in found)
    metres = arcs.with_columns(rho_topo_au=arcs["rho_topo_au"] * 1.496e11)
    found = check_labels(metres, ArcTruth.of(metres), told)
    assert any("are labels in astronomical units" in remark.text for remark in found)


def test_one_object_that_owns_many_arcs_is_told(folder, arcs):
    alone = arcs.with_columns(designation=np.where(np.arange(len(arcs)) < 60, "A", "B"))
    told = describe(folder, Selection(split=None), alone)
    found = check_labels(alone, ArcTruth.of(alone), told)
    assert any("consider a cap by object" in remark.text for remark in found)


# ---------------------------------------------------------------------- what it holds


def test_a_study_judges_every_method_on_the_same_arcs(study):
    assert study.labels == ["gauss", "laplace", "honest"]
    assert [each.label for each in study.geocentric] == ["gauss (geocentre)", "laplace (geocentre)"]
    assert {len(each) for each in study.scored.values()} == {len(study.table)}
    assert [each.attrs["method"] for each in study.learned] == ["honest"]
    assert len(study.classical) == 4
    assert not [remark for remark in study.remarks if remark.subject == "honest"]


def test_the_headline_has_every_figure_with_bounds_and_arcs(study):
    table = study.tables["headline"]
    assert {f"{name}{end}" for name in HEADLINE for end in ("", "_low", "_n_arcs")} < set(table)
    rows = table[table["answers"] == "all"].set_index("method")
    assert list(rows.index) == study.labels
    honest = rows.loc["honest"]
    assert honest["solved"] == 100.0
    assert honest["median_relative_error"] == pytest.approx(0.17, abs=0.05)
    assert honest["medae_rho_low"] <= honest["medae_rho"] <= honest["medae_rho_high"]
    assert honest["d_sh_pseudo_n_arcs"] <= honest["n_arcs"]
    for row in table[table["answers"] == "OK"].itertuples():
        assert row.n_arcs == study.scored[row.method].ok.sum()


def test_every_status_is_counted(study):
    counts = study.tables["status"].groupby("method")["n_arcs"].sum()
    assert counts.to_dict() == dict.fromkeys(study.scored, len(study.table))


def test_published_figures_stand_apart(study):
    rows = study.tables["published"].set_index(["subset", "method"])
    assert set(rows["source"]) == {"published, NEODyS"}
    # the tables of the article
    assert (rows["medae_rho"]["all", "PINN"], rows["medae_rho"]["all", "MLP"]) == (0.208, 0.219)
    alike = rows.loc["solved from the geocenter"]
    assert alike.index.tolist() == ["Gauss", "Laplace", "MLP", "PINN"]
    assert (alike["solved"]["Gauss"], alike["collapsed"]["Laplace"]) == (45.0, 88.9)
    assert set(study.tables["classical"]["subset"]) >= {SOLVED}
    assert {each.n_arcs for each in PUBLISHED} == {56_773, 23_298}


def test_differences_are_of_the_learned_method_and_each_classical_one(study):
    pairs = study.tables["cross"][["first", "second"]].drop_duplicates()
    assert pairs.to_numpy().tolist() == [["honest", "gauss"], ["honest", "laplace"]]


def test_crosswise_intervals_are_those_of_the_calibrations(study, arcs, oracle, noisy):
    rows = study.tables["coverage"].query("method == 'honest'")
    assert set(rows["level"]) == {0.68, 0.95}
    assert set(rows["source"]) == {"crosswise"}
    by_stratum = dict(iter(rows.groupby("stratum")))
    assert by_stratum["all"]["n_arcs"].tolist() == [len(study.table)] * 2
    assert (by_stratum["all"]["per_arc"] - by_stratum["all"]["level"]).abs().max() < 0.12
    assert set(by_stratum["eta tercile"]["bin"]) == {"slow", "mid", "fast"}
    spans = by_stratum["span tercile"]
    assert set(spans["bin"]) == {"short"}  # all arcs are of one length
    assert spans["n_arcs"].sum() == by_stratum["answered"]["n_arcs"].sum()
    # the same by way of the estimator
    held = CalibrationSample.of(oracle(arcs, noisy), [study.table])
    direct = cross_conformal(held, levels=(0.68,), folds=4)[0.68]
    scored = study.scored["honest"]
    np.testing.assert_allclose(np.column_stack([scored.low, scored.high]), direct, rtol=1e-12)


def test_single_objects_are_unseen_ones(study, folder):
    unseen = Selection(split="unseen").read(folder)
    cases = study.cases
    assert cases.are_unseen
    assert cases.objects == sorted(set(unseen["designation"]))
    assert [each.attrs["method"] for each in cases.scored] == study.labels
    assert len(study.tables["cases"]) == len(study.labels) * len(cases.table)
    honest = study.tables["cases"].query("method == 'honest'")
    assert honest["rho_au"].between(honest["low_au"], honest["high_au"], inclusive="neither").all()
    assert 0.4 < honest["inside"].mean() < 0.95


def test_single_objects_of_the_study_where_none_are_unseen(folder, arcs, oracle, noisy):
    selection = Selection(split=None)
    study = run_study(folder, [oracle(arcs, noisy)], selection=selection, n_boot=0, folds=4)
    assert study.labels == ["oracle"]
    assert "cross" not in study.tables
    assert "classical" not in study.tables
    assert not study.cases.are_unseen
    assert len(study.cases.objects) == 6
    assert np.isfinite(study.cases.scored[0].low).all()


def test_a_file_of_weights_is_placed_like_a_name():
    path = default_weights("mlp", "invariant")
    plain, placed = study_methods([str(path), f"{path}@geocenter"])
    assert (plain.label, placed.label) == ("mlp", "mlp@geocenter")
    assert (plain.estimator.origin, placed.estimator.origin) == ("topocenter", "geocenter")


def test_arcs_of_one_object_have_no_intervals(folder):
    study = run_study(folder, ["gauss"], selection=Selection(split=None, max_arcs=2), n_boot=2)
    assert any(
        remark.text == "no intervals: all arcs are of one object" for remark in study.remarks
    )
    assert "gauss" not in study.coverage


def test_a_method_without_answers_is_reported_and_not_fatal(folder, arcs, oracle):
    nothing = StudyMethod("mute", oracle(arcs, lambda rho, rho_dot: (np.nan * rho, rho_dot)))
    study = run_study(folder, ["gauss", nothing], n_boot=5, folds=4)
    told = [remark for remark in study.remarks if remark.subject == "mute"]
    assert told[0].is_alarm
    assert told[0].text.startswith("answers 0 of")
    assert any(remark.text.startswith("no intervals") for remark in told)
    assert "mute" not in study.coverage


def test_the_identity_of_each_method_is_kept(study):
    kept = json.loads(json.dumps(study.settings["methods"]))
    assert kept["gauss (geocentre)"]["origin"] == "geocenter"
    assert kept["honest"]["method"] == "oracle"


# ---------------------------------------------------------------------- intervals


def held_out(made_answers, rho, ok, objects):
    """Arcs with an answer, OK or not, of objects at one au."""
    answers = made_answers(rho, np.nan, ok)
    ones = np.ones(len(answers))
    limits, nothing = np.stack([1e-4 * ones, 3.0 * ones], axis=1), np.full((len(ones), 5), np.nan)
    a, names = answers.attributables, np.asarray(objects)
    truth = ArcTruth("topocenter", a, limits, ones, ones, nothing, 0.02 * ones, names)
    return CalibrationSample({"method": "made"}, answers, truth)


def test_one_object_with_most_answers_does_not_take_the_intervals_away(made_answers):
    """Without it the others would be too few to be calibrated apart: all are taken together."""
    ok = np.arange(400) < 38
    objects = np.where(np.arange(400) < 20, "one", np.arange(400).astype(str))
    together = MethodIntervals.of(held_out(made_answers, 0.9, ok, objects), {})
    assert "only 38 answers are usable" in together.why
    assert not together.sample.answers.usable.any()
    assert set(together.rows["level"]) == {0.68, 0.95}
    assert np.isfinite(together.bounds[0.68]).all()
    ok, objects = np.arange(400) < 200, np.arange(400).astype(str)
    apart = MethodIntervals.of(held_out(made_answers, 0.9, ok, objects), {})
    assert apart.why == ""
    assert apart.sample.answers.usable.sum() == 200


def test_one_object_with_hundreds_of_arcs_does_not_make_the_intervals(made_answers):
    """1000 arcs of it are a tenth off, one arc of each of 400 others by the factor 1.5."""
    objects = np.r_[np.full(1000, "one"), np.arange(400).astype(str)]
    ok, rho = np.ones(1400, dtype=bool), np.where(np.arange(1400) < 1000, 0.9, 1.5)
    calibration = held_out(made_answers, rho, ok, objects).calibration("log")
    new = held_out(made_answers, 0.9, ok, objects)
    bounds = new.intervals(calibration, 0.68)
    np.testing.assert_allclose(bounds[:, 1] / new.answers.rho, 1.5, rtol=1e-4)
    assert calibration.description["most_of_an_object"] == 20


def test_a_calibration_is_not_judged_by_the_arcs_it_was_made_of(folder, arcs, oracle, noisy):
    estimator = oracle(arcs, noisy)
    own = calibrate(estimator, folder, "test")
    assert own.description["split"] == "test"
    wrapped = StudyMethod("mine", ConformalEstimator(estimator, own))
    for split, sources in (
        ("test", {"crosswise"}),
        ("val,test", {"crosswise"}),
        ("val", {"crosswise", "of the method"}),
    ):
        made = run_study(folder, [wrapped], selection=Selection(split), n_boot=2, folds=3)
        assert set(made.tables["coverage"]["source"]) == sources


def test_a_network_is_not_judged_by_what_it_learnt_from(folder, learnt):
    network = learnt(folder)
    for split in ("train", "val,test", None):
        with pytest.raises(EvaluationError, match=r"^learnt learnt from.*'S.*--allow-learnt"):
            run_study(folder, [network], selection=Selection(split))
    clean = run_study(folder, [network], selection=Selection("test,unseen"), n_boot=0, folds=3)
    assert clean.data["learnt"] == {}
    options = {"selection": Selection("val,test"), "n_boot": 0, "folds": 3, "allow_learnt": True}
    allowed = run_study(folder, [network], **options)
    text = f"with {len(Selection('val').read(folder))} of {len(allowed.table)} arcs"
    assert text in allowed.data["learnt"]["learnt"]
    assert text in render(allowed)


def test_a_set_divided_elsewhere_does_not_hide_what_a_network_learnt(folder, learnt, tmp_path):
    network = learnt(folder)
    copy = tmp_path / "copy"
    with ArcWriter(copy, settings={"kind": "another"}) as writer:
        writer.write(read_arcs(folder))
    split_set(copy, seed=7, ratios=(0.2, 0.1, 0.7))
    with pytest.raises(EvaluationError, match=r"--seed 1 --ratios 0\.2 0\.1 0\.7"):
        run_study(copy, [network], selection=Selection("test"))


def test_a_network_whose_card_notes_no_rule_is_named(folder, learnt):
    study = run_study(folder, [learnt()], selection=Selection("val"), n_boot=0, folds=3)
    assert any("does not tell by which rule" in remark.text for remark in study.remarks)


def test_a_calibrated_classical_method_stays_classical():
    wrapped = StudyMethod("gauss", ConformalEstimator(GaussEstimator()))
    assert wrapped.is_classical
    assert wrapped.from_geocenter().estimator.origin == "geocenter"
    assert wrapped.estimator.calibration is None
