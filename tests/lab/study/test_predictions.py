"""One row for every arc whatever becomes of it, in order, and the same after a round trip."""

from dataclasses import replace

import numpy as np
import pytest

from neoranging.constants import R_EARTH
from neoranging.core.status import RangeStatus
from neoranging.estimators.gauss import GaussEstimator
from neoranging.exceptions import (
    DatasetError,
    EstimationError,
    EvaluationError,
    UnknownMethodError,
)
from neoranging.lab.sets.arcs import OBSERVED, to_core
from neoranging.lab.study import predictions
from neoranging.lab.study.predictions import load_answers, predict, save_answers
from neoranging.lab.study.scores import score


def half(rho, rho_dot):
    """Answers for every other arc."""
    failing = np.arange(len(rho)) % 2 == 1
    return np.where(failing, np.nan, [rho, rho_dot])


def columns(answers):
    names = ("rho", "rho_dot", "covariance", "r", "v", "epoch", "status", "eta", "admissible")
    return {name: getattr(answers, name) for name in names}


def assert_same(one, other):
    assert columns(one).keys() == columns(other).keys()
    for name, column in columns(one).items():
        np.testing.assert_array_equal(column, columns(other)[name], err_msg=name)
        assert column.dtype == columns(other)[name].dtype


def test_every_arc_has_its_row(table, oracle):
    found = predict(oracle(table, half), table)
    assert len(found) == len(table)
    answered = np.arange(len(table)) % 2 == 0
    np.testing.assert_array_equal(found.answered, answered)
    np.testing.assert_array_equal(found.ok, answered)
    assert set(found.status[~answered]) == {RangeStatus.NO_ROOT.code}
    np.testing.assert_array_equal(found.rho[answered], table["rho_topo_au"][answered])
    assert np.isnan(found.r[~answered]).all()
    assert np.isnan(found.rho_dot[~answered]).all()
    assert not found.admissible[~answered].any()
    assert np.isfinite(found.eta).all()


@pytest.mark.parametrize("chunk", [1, 7, 64, 10_000])
def test_chunks_do_not_matter(table, oracle, chunk, monkeypatch):
    some, steps = table.take(slice(0, 30)), []
    method = oracle(table, half)
    whole = predict(method, some)
    monkeypatch.setattr(predictions, "_CHUNK", chunk)
    found = predict(method, some, progress=steps.append)
    assert sum(steps) == len(some)
    assert max(steps) <= chunk
    # sums over arcs may round otherwise in other company
    for name, column in columns(whole).items():
        np.testing.assert_allclose(columns(found)[name], column, rtol=1e-12, err_msg=name)


def test_motion_is_that_of_the_arcs(exact_table, oracle):
    found = predict(oracle(exact_table), exact_table)
    np.testing.assert_allclose(found.eta, exact_table["proper_motion_rad_d"], rtol=0.02)
    assert found.seconds > 0.0


def test_by_name_by_class_and_as_it_is(table):
    some = table.take(slice(0, 20))
    by_name = predict("gauss", some, origin="geocenter")
    assert (by_name.method, by_name.origin) == ("gauss", "geocenter")
    assert_same(by_name, predict(GaussEstimator, some, origin="geocenter"))
    assert_same(by_name, predict(GaussEstimator(origin="geocenter"), some))
    assert predict("gauss", some, label="mine").method == "mine"
    with pytest.raises(UnknownMethodError, match="no method 'guess'"):
        predict("guess", some)


def test_observations_are_all_that_is_asked_for(table, oracle):
    bare = table.take(slice(0, 5))
    observed = type(bare)(bare.offsets, {k: bare.columns[k] for k in OBSERVED if k in bare})
    assert len(predict("laplace", observed)) == 5
    with pytest.raises(DatasetError, match="t_mjd_tdb"):
        predict("laplace", type(bare)(bare.offsets, {"station": bare["station"]}))


def test_no_arcs_no_rows(table):
    found = predict("gauss", table.take([]))
    assert len(found) == 0
    assert found.r.shape == (0, 3)


def test_answers_that_are_not_finite_are_none(table, oracle):
    def wild(rho, rho_dot):
        return np.where(np.arange(len(rho)) < 3, np.inf, rho), rho_dot

    with np.errstate(invalid="ignore"):
        found = predict(oracle(table, wild), table)
    assert found.answered.sum() == len(table) - 3
    scored = score(table, found)
    assert np.isnan(scored.rho[:3]).all()
    assert np.isnan(scored.rho_dot[:3]).all()


def test_admissible_is_judged_here(exact_table, oracle):
    assert predict(oracle(exact_table), exact_table).admissible.mean() > 0.95

    def inside_the_earth(rho, rho_dot):
        return np.full_like(rho, 0.5 * R_EARTH), rho_dot

    def escaping(rho, rho_dot):
        return rho, rho_dot + 0.1

    for change in (inside_the_earth, escaping):
        assert not predict(oracle(exact_table, change), exact_table).admissible.any()


def test_one_answer_per_arc_is_demanded(table, oracle):
    class Lossy(oracle):
        def _estimate(self, arcs, attributables):
            whole = super()._estimate(arcs, attributables)
            return whole.take(np.flatnonzero(np.isfinite(whole.rho)))

    with pytest.raises(EstimationError, match="one answer for each of 90 arcs"):
        predict(Lossy(table, half), table.take(slice(0, 90)))


def test_round_trip(table, oracle, tmp_path):
    found = predict(oracle(table, half), table, label="half “blind”")
    path = tmp_path / "deep" / "half.npz"
    save_answers(found, path)
    again, scores = load_answers(path, found.attributables)
    assert scores is None
    assert (again.method, again.origin, again.seconds) == (
        found.method,
        found.origin,
        found.seconds,
    )
    assert_same(found, again)
    save_answers(found, path)
    assert [each.name for each in path.parent.iterdir()] == ["half.npz"]


def test_files_of_something_else_are_told(table, oracle, tmp_path):
    found, path = predict(oracle(table), table), tmp_path / "half.npz"
    with pytest.raises(EvaluationError, match="there are no answers"):
        load_answers(path, found.attributables)
    save_answers(found, path)
    with pytest.raises(EvaluationError, match=r"column 'rho' has the shape \(200,\)"):
        load_answers(path, found.take(slice(0, 9)).attributables)
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(EvaluationError, match="ask the method again"):
        load_answers(path, found.attributables)
    np.savez(path, rho=np.ones(3))
    with pytest.raises(EvaluationError, match="holds no answers"):
        load_answers(path, found.attributables)
    save_answers(replace(found, origin="heliocenter"), path)
    with pytest.raises(EvaluationError, match="heliocenter"):
        load_answers(path, found.attributables)


def test_some_of_them(table, oracle):
    found = predict(oracle(table, half), table)
    few = found.take([5, 4])
    assert len(few) == 2
    assert np.isnan(few.rho[0])
    assert few.rho[1] == found.rho[4]
    assert len(few.attributables.ra) == 2
    assert len(found.take(found.answered)) == 100


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of sockets and loops of the cluster
def test_a_cluster_gives_the_same_answers(table, scheduler, monkeypatch):
    monkeypatch.setattr(predictions, "_SENT", 50)
    monkeypatch.setattr(predictions, "_POSTERIORS", 20)
    arcs, steps = to_core(table), []
    method = GaussEstimator()
    whole, _ = predictions.ask_arcs(method, arcs, arcs)
    spread, _ = predictions.ask_arcs(method, arcs, arcs, scheduler=scheduler, progress=steps.append)
    assert_same(spread, whole)
    assert sum(steps) == len(arcs)
    assert len(steps) > 2
