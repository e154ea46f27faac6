"""Names of methods, and how they get registered."""

import shutil
from dataclasses import replace
from importlib.metadata import EntryPoint

import numpy as np
import pytest

import neoranging as nr
from neoranging.core.answers import Answers
from neoranging.core.status import RangeStatus
from neoranging.estimators import registry
from neoranging.estimators.base import RangingEstimator
from neoranging.estimators.gauss import GaussEstimator
from neoranging.estimators.laplace import LaplaceEstimator
from neoranging.estimators.learned import default_weights
from neoranging.exceptions import EstimationError, NotTrainedError, UnknownMethodError
from neoranging.orbits.population import PRIORS_FOLDER


class Shy(GaussEstimator):
    """A method that a script registers."""

    name = "shy"


@pytest.fixture
def own_registry(monkeypatch):
    """Registrations of a test end with it."""
    monkeypatch.setattr(registry, "_registered", {})


def test_the_built_in_methods_use_the_public_door():
    assert {"gauss", "laplace"} <= set(nr.available_methods())
    assert nr.available_methods() == tuple(sorted(nr.available_methods()))
    assert isinstance(nr.get_estimator("gauss"), GaussEstimator)
    assert isinstance(nr.get_estimator("laplace"), LaplaceEstimator)


def test_a_name_a_class_or_an_instance():
    assert isinstance(nr.get_estimator(GaussEstimator, origin="geocenter"), GaussEstimator)
    made = GaussEstimator(origin="geocenter")
    assert nr.get_estimator(made) is made
    assert nr.get_estimator("gauss", origin="geocenter").origin == "geocenter"


@pytest.mark.usefixtures("own_registry")
class TestRegistering:
    def test_by_its_own_name(self):
        nr.register_estimator(Shy)
        assert "shy" in nr.available_methods()
        assert isinstance(nr.get_estimator("shy"), Shy)

    def test_by_another_name(self):
        nr.register_estimator(Shy, name="bold")
        assert "bold" in nr.available_methods()
        assert "shy" not in nr.available_methods()

    def test_it_can_be_forgotten(self):
        nr.register_estimator(Shy)
        nr.unregister_estimator("shy")
        assert "shy" not in nr.available_methods()
        with pytest.raises(UnknownMethodError, match="no method 'shy' was registered here"):
            nr.unregister_estimator("shy")

    def test_a_built_in_name_may_be_taken_over(self):
        nr.register_estimator(Shy, name="gauss")
        assert isinstance(nr.get_estimator("gauss"), Shy)
        assert nr.available_methods().count("gauss") == 1

    @pytest.mark.parametrize("nonsense", [None, "gauss", int, Shy(), lambda: None])
    def test_only_estimators(self, nonsense):
        with pytest.raises(UnknownMethodError, match="RangingEstimator"):
            nr.register_estimator(nonsense)

    def test_a_registered_method_is_found_by_tracklets(self, simulate):
        nr.register_estimator(Shy)
        tracklets = simulate(3, 0.5, seed=1).tracklets()
        assert tracklets.estimate("shy").method == "shy"
        assert tracklets[0].estimate(Shy).method == "shy"


def test_an_unknown_name_is_told_the_known_ones():
    with pytest.raises(UnknownMethodError, match="gauss, laplace") as caught:
        nr.get_estimator("gaus")
    assert "'gaus'" in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("nonsense", [None, 3, int, object(), ["gauss"]])
def test_what_is_no_method(nonsense):
    with pytest.raises(UnknownMethodError):
        nr.get_estimator(nonsense)


def test_an_instance_takes_no_options():
    with pytest.raises(UnknownMethodError, match="refine"):
        nr.get_estimator(GaussEstimator(), refine=False)


def test_options_that_are_none_name_themselves():
    with pytest.raises(TypeError, match="colour"):
        nr.get_estimator("gauss", colour="blue")


def test_a_name_is_needed():
    class Nameless(RangingEstimator):
        def _estimate(self, arcs, attributables):
            return Answers.unsolved(
                attributables, np.full(len(arcs), RangeStatus.UNDETERMINED.code)
            )

    with pytest.raises(UnknownMethodError, match="Nameless has no name"):
        nr.register_estimator(Nameless)


class TestWordsAfterAName:
    def test_representation_and_origin(self):
        for name in ("mlp@paper", "mlp@paper@geocenter", "mlp@geocenter@paper"):
            made = nr.get_estimator(name)
            assert (made.name, made.representation, made.origin) == ("mlp", "paper", "geocenter")
        placed = nr.get_estimator("pinn@invariant@geocenter")
        assert (placed.representation, placed.origin) == ("invariant", "geocenter")
        assert nr.get_estimator("gauss@geocenter", refine=False).origin == "geocenter"

    def test_prior_by_name_or_by_file(self):
        made = nr.get_estimator("systematic@log-uniform@geocenter")
        assert (made.prior, made.origin) == ("log-uniform", "geocenter")
        path = PRIORS_FOLDER / "catalogue.npz"
        table = nr.get_estimator(f"systematic@{path}")
        assert table.prior == str(path)
        assert table.identity == nr.get_estimator("systematic", prior=path).identity

    def test_a_method_without_priors_takes_no_table(self):
        with pytest.raises(UnknownMethodError, match=r"'mine\.npz' is none of"):
            nr.get_estimator("gauss@mine.npz")

    def test_default_is_the_invariant_one(self):
        plain, named = nr.get_estimator("pinn"), nr.get_estimator("pinn@invariant")
        assert plain.identity == named.identity

    def test_paper_form_has_its_weights_and_its_calibration(self):
        made = nr.get_estimator("mlp@paper")
        assert made.card["representation"] == "paper"
        assert made.calibration is not None
        assert made.min_observations == 3
        assert nr.get_estimator("mlp").min_observations == 2

    def test_estimates_take_them(self):
        tracklets = nr.read_tracklets(nr.sample("impactors"))
        found = tracklets.estimate("mlp@paper")
        options = tracklets.estimate("mlp", representation="paper")
        np.testing.assert_array_equal(found.range, options.range)
        assert tracklets[0].estimate("gauss@geocenter").origin == "geocenter"

    def test_a_file_of_weights(self):
        path = default_weights("pinn", "invariant")
        made = nr.get_estimator(f"{path}@geocenter")
        assert (made.name, made.origin) == ("pinn", "geocenter")
        assert nr.get_estimator(str(path), slack=0.5).slack == 0.5

    def test_an_at_sign_in_a_path_places_nothing(self, tmp_path):
        folder = tmp_path / "run@geocenter"
        shutil.copytree(default_weights("mlp", "invariant").parent, folder)
        made = nr.get_estimator(str(folder / "mlp-invariant.safetensors"))
        assert made.origin == "topocenter"

    def test_no_such_file(self):
        with pytest.raises(NotTrainedError, match=r"no weights at run/network\.safetensors"):
            nr.get_estimator("run/network.safetensors")

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("gaus", "did you mean 'gauss'"),
            ("Gauss", "did you mean 'gauss'"),
            ("gaus@geocenter", "did you mean 'gauss'"),
            ("mlp@papr", "did you mean 'paper'"),
            ("gauss@geocentre", "did you mean 'geocenter'"),
            ("gauss@paper", "'paper' is none of topocenter, geocenter"),
            ("mlp@", "'' is none of"),
            ("mlp@paper@invariant", "give one representation"),
            ("gauss@geocenter@geocenter", "give one origin"),
            (f"{default_weights('mlp', 'paper')}@paper", "'paper' is none of"),
        ],
    )
    def test_words_that_are_none(self, name, said):
        with pytest.raises(UnknownMethodError, match=said):
            nr.get_estimator(name)

    def test_an_option_does_not_contradict_the_name(self):
        assert nr.get_estimator("gauss@geocenter", origin="geocenter").origin == "geocenter"
        with pytest.raises(UnknownMethodError, match="give one origin"):
            nr.get_estimator("gauss@geocenter", origin="topocenter")

    @pytest.mark.usefixtures("own_registry")
    def test_a_registered_name_may_hold_an_at_sign(self):
        nr.register_estimator(Shy, name="shy@home")
        assert isinstance(nr.get_estimator("shy@home"), Shy)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda whole: None, "must return Answers, got NoneType"),
        (lambda whole: replace(whole, rho=whole.rho[:1]), "one answer for each of 5 arcs"),
        (
            lambda whole: replace(whole, status=np.full(5, RangeStatus.OK.code, dtype=np.int8)),
            "says OK of 5 arcs without a finite range",
        ),
    ],
)
def test_answers_that_break_the_contract(answer, said):
    class Broken(RangingEstimator):
        name = "broken"

        def _estimate(self, arcs, attributables):
            verdict = np.full(len(arcs), RangeStatus.UNDETERMINED.code)
            return answer(Answers.unsolved(attributables, verdict))

    with pytest.raises(EstimationError, match=said):
        nr.read_tracklets(nr.sample("impactors")).estimate(Broken())


class TestEntryPoints:
    @pytest.fixture
    def installed(self, monkeypatch):
        """Pretend that a package installed a method named plugin."""

        def install(value):
            point = EntryPoint("plugin", value, registry.GROUP)
            monkeypatch.setattr(registry, "_entry_points", lambda: {"plugin": point})
            registry._load.cache_clear()

        yield install
        registry._load.cache_clear()

    def test_of_another_package(self, installed):
        installed("neoranging.estimators.laplace:LaplaceEstimator")
        assert isinstance(nr.get_estimator("plugin"), LaplaceEstimator)

    def test_that_is_no_estimator(self, installed):
        installed("neoranging.constants:GM_SUN")
        with pytest.raises(UnknownMethodError, match=r"neoranging\.constants:GM_SUN"):
            nr.get_estimator("plugin")

    def test_that_does_not_import_harms_no_other_method(self, installed):
        installed("no_such_package:Estimator")
        assert "plugin" in nr.available_methods()
        with pytest.raises(UnknownMethodError, match="No module named") as caught:
            nr.get_estimator("plugin")
        assert isinstance(caught.value.__cause__, ImportError)
        assert isinstance(nr.get_estimator(GaussEstimator), GaussEstimator)


def test_the_abstract_estimator_cannot_be_made():
    with pytest.raises(TypeError):
        RangingEstimator()
