"""Names of methods, and how they get registered."""

from importlib.metadata import EntryPoint

import numpy as np
import pytest

import neoranging as nr
from neoranging.core.solutions import Solutions
from neoranging.core.status import RangeStatus
from neoranging.estimators import registry
from neoranging.estimators.base import RangingEstimator
from neoranging.estimators.gauss import GaussEstimator
from neoranging.estimators.laplace import LaplaceEstimator
from neoranging.exceptions import EstimationError, UnknownMethodError


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
            return Solutions.unsolved(np.full(len(arcs), RangeStatus.UNDETERMINED.code))

    with pytest.raises(UnknownMethodError, match="Nameless has no name"):
        nr.register_estimator(Nameless)


def test_a_file_of_weights_is_no_name():
    with pytest.raises(UnknownMethodError, match="from_pretrained"):
        nr.get_estimator("run/network.safetensors")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda whole: None, "must return Solutions, got NoneType"),
        (lambda whole: whole._replace(rho=whole.rho[:1]), "one answer for each of 5 arcs"),
        (
            lambda whole: whole._replace(status=np.full(5, RangeStatus.OK.code, dtype=np.int8)),
            "says OK of 5 arcs without a finite range",
        ),
    ],
)
def test_answers_that_break_the_contract(answer, said):
    class Broken(RangingEstimator):
        name = "broken"

        def _estimate(self, arcs, attributables):
            verdict = np.full(len(arcs), RangeStatus.UNDETERMINED.code)
            return answer(Solutions.unsolved(verdict))

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
