"""Files that were damaged, or made to harm: typed errors or harmless loads, and nothing else."""

from __future__ import annotations

import copy
import itertools
import json
import shutil
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from astropy import units as u

from neoranging.calibration import Calibration, default_calibration
from neoranging.ephemeris import states as ephemeris
from neoranging.estimators import learned
from neoranging.estimators.learned import default_weights
from neoranging.estimators.registry import get_estimator
from neoranging.exceptions import (
    CheckpointError,
    ConformalError,
    DatasetError,
    EphemerisError,
    NeoRangingError,
)
from neoranging.files import parse_json, write_json
from neoranging.lab.sets.store import (
    ArcWriter,
    read_account,
    read_arcs,
    read_manifest,
    read_part,
    read_part_account,
)
from neoranging.lab.study.predictions import load_answers, predict, save_answers

N = 60
"""Mutants of each kind; a soak takes thousands."""

VALUES = (
    *(None, True, 0, -1, 1.5, 1e308, 1e-308, -0.0, float("nan"), float("inf"), 10**18, 10**400),
    *("", "x", "<script>", "\x1b[2J", [], [[]], {}, {"x": 1}, [None], [float("inf")]),
    [1, 2, 3],
)


def json_mutants(plain, n, seed):
    """JSON texts in each of which one value is another, is gone, or occurs twice."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        mutant = copy.deepcopy(plain)
        for _ in range(int(rng.integers(1, 3))):
            mutant = _injured(mutant, rng)
        text = json.dumps(mutant)
        if rng.random() < 0.05:
            text = text.replace("1", "9" * 400, 1)
        if rng.random() < 0.05:
            text = text.replace("[", "[" * 100_000, 1)
        yield text.encode()


def _injured(node, rng):
    if isinstance(node, dict | list) and node and rng.random() < 0.85:
        keys = list(node) if isinstance(node, dict) else range(len(node))
        key = keys[int(rng.integers(len(keys)))]
        injury = rng.random()
        if injury < 0.1:
            del node[key]
        elif injury < 0.2 and isinstance(node, list):
            node.append(copy.deepcopy(node[key]))
        else:
            node[key] = _injured(node[key], rng)
        return node
    return copy.deepcopy(VALUES[int(rng.integers(len(VALUES)))])


def byte_mutants(content, n, seed):
    """The same bytes with some of them changed, lost, repeated or cut off."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        mutant = bytearray(content)
        for _ in range(int(rng.integers(1, 4))):
            at, size = int(rng.integers(len(mutant) or 1)), int(rng.integers(1, 9))
            injury = int(rng.integers(5))
            if injury == 0:
                mutant[at : at + size] = rng.bytes(size)
            elif injury == 1:
                del mutant[at : at + size]
            elif injury == 2:
                mutant[at:at] = mutant[at : at + size]
            elif injury == 3 and mutant:
                mutant[min(at, len(mutant) - 1)] ^= 1 << int(rng.integers(8))
            else:
                del mutant[at:]
        yield bytes(mutant)


def trial(mutants, path, load):
    """Counts of refusals and loads; anything but a typed error comes through."""
    refused = loaded = 0
    for mutant in mutants:
        path.write_bytes(mutant)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                load(path)
            except NeoRangingError:
                refused += 1
            else:
                loaded += 1
    return refused, loaded


# Calibrations ------------------------------------------------------------------------------------


def intervals_of(path):
    """Intervals of a calibration, which must be intervals."""
    calibration = Calibration.read(path)
    repr(calibration)
    calibration.matches({"method": "gauss"})
    values = np.array([0.01, 0.3, 2.0])
    for of, ok in itertools.product(calibration.quantities, (True, False)):
        answer = values * (u.au if of == "range" else u.au / u.d)
        bounds = calibration.interval(
            answer,
            [0.1, 1.0, 10.0] * u.deg / u.d,
            [1.0, 2.0, 9.0] * u.h,
            ok,
            0.68,
            error=answer / 10.0,
            of=of,
        ).value
        assert not np.isnan(bounds).any()
        assert (bounds[:, 0] <= bounds[:, 1]).all()
    return calibration


@pytest.fixture(scope="module")
def plain_calibration(made_answers):
    """Plain data of a calibration of range and range-rate."""
    rng = np.random.default_rng(5)
    rho, eta, span, truth, usable = rng.uniform(0.1, 1.0, (5, 900))
    answers = made_answers(rho, 0.1 * rho, usable > 0.5, eta)
    answers.covariance[:, 1, 1] = 1e-6
    answers = replace(answers, rho_dot=0.01 * rho)
    return Calibration.fit(answers, span, truth, true_rate=0.01 * truth).to_json()


def calibration_trials(plain, tmp_path, n):
    text = json.dumps(plain).encode()
    for mutants in (json_mutants(plain, n, 1), byte_mutants(text, n, 2)):
        yield trial(mutants, tmp_path / "calibration.json", intervals_of)


def test_mutated_calibrations(plain_calibration, tmp_path):
    for refused, loaded in calibration_trials(plain_calibration, tmp_path, N):
        assert refused > loaded


@pytest.mark.parametrize("value", [None, 1, "x", [], True])
@pytest.mark.parametrize("name", ["identity", "description", "groups", "levels", "score"])
def test_a_calibration_with_an_entry_of_another_kind(name, value):
    plain = {**default_calibration("gauss").to_json(), name: value}
    with pytest.raises(ConformalError, match="no calibration"):
        Calibration.from_json(plain)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "9" * 400, "NaN", "1e999", "-Infinity", "", "\x00"]
)
def test_json_that_no_reader_should_take(text, tmp_path):
    with pytest.raises(ValueError):  # noqa: PT011 (whatever the reason is)
        parse_json(text)
    path = tmp_path / "calibration.json"
    path.write_text(text)
    with pytest.raises(ConformalError, match="cannot read"):
        Calibration.read(path)


def test_numbers_that_are_not_finite_are_null_in_json(tmp_path):
    path = tmp_path / "x.json"
    write_json(path, {"a": float("inf"), "b": [float("nan"), 1.0], "c": (np.float64("-inf"),)})
    assert parse_json(path.read_text()) == {"a": None, "b": [None, 1.0], "c": [None]}


# Networks ----------------------------------------------------------------------------------------


@pytest.fixture
def weights(tmp_path):
    source = default_weights("mlp", "paper")
    for ending in (".safetensors", ".json"):
        shutil.copy(source.with_suffix(ending), tmp_path / f"net{ending}")
    return tmp_path / "net.safetensors"


def card_trials(weights, n):
    card = weights.with_suffix(".json")
    content = card.read_bytes()
    plain = json.loads(content)
    for mutants in (json_mutants(plain, n, 3), byte_mutants(content, n, 4)):
        yield trial(mutants, card, lambda _: _asked(weights))
    card.write_bytes(content)


def _asked(weights):
    learned._load_once.cache_clear()
    estimator = get_estimator(str(weights))
    repr(estimator)
    return estimator.identity


def test_mutated_cards(weights):
    for refused, loaded in card_trials(weights, N):
        assert refused + loaded == N
        assert refused > 0


def test_mutated_weights(weights):
    refused, loaded = trial(byte_mutants(weights.read_bytes(), N // 2, 5), weights, _asked)
    assert loaded == 0
    assert refused == N // 2


def test_a_card_of_other_weights_is_refused(weights):
    card = weights.with_suffix(".json")
    card.write_text(json.dumps({**json.loads(card.read_text()), "weights_sha256": "0" * 64}))
    with pytest.raises(CheckpointError, match="belongs to other weights"):
        get_estimator(str(weights))


# Caches of the ephemerides -----------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path):
    ephemeris.earth_state(np.array([60_000.0, 60_020.0]))
    path = tmp_path / "cache.pth"
    ephemeris.save_cache(path)
    return path


def cache_mutants(path, n, seed):
    """Caches with one entry replaced, their checksums as they were."""
    rng = np.random.default_rng(seed)
    content = torch.load(path, weights_only=True)
    values = (
        *(None, 1, 1.5, "x", [], {}, torch.zeros(0), torch.zeros(3), torch.zeros(3, 12, 3)),
        torch.zeros(2, dtype=torch.float64, requires_grad=True),
        torch.zeros(1, dtype=torch.float64).expand(10**10),
        torch.tensor([float("nan")] * 2),
        torch.tensor([-1, 10**12]),
        torch.zeros(2, dtype=torch.complex64),
        torch.zeros(2, 2).to_sparse(),
    )
    for _ in range(n):
        mutant = {**content, "series": {k: dict(v) for k, v in content["series"].items()}}
        place = mutant
        if rng.random() < 0.8:
            place = mutant["series"]
            if rng.random() < 0.8:
                place = place[list(place)[int(rng.integers(len(place)))]]
        place[list(place)[int(rng.integers(len(place)))]] = values[int(rng.integers(len(values)))]
        torch.save(mutant, path)
        yield path.read_bytes()


def cache_trials(cache, n):
    content = cache.read_bytes()
    yield trial(byte_mutants(content, n, 6), cache, ephemeris.load_cache)
    cache.write_bytes(content)
    yield trial(cache_mutants(cache, n, 7), cache, ephemeris.load_cache)


def test_mutated_caches(cache):
    for refused, loaded in cache_trials(cache, N):
        assert refused > loaded


def test_a_folder_is_no_cache(tmp_path):
    with pytest.raises(EphemerisError, match="is a folder"):
        ephemeris.load_cache(tmp_path)


# Sets and predictions ----------------------------------------------------------------------------


@pytest.fixture
def labelled_set(tmp_path, simulate):
    pytest.importorskip("pyarrow")
    folder = tmp_path / "set"
    with ArcWriter(folder, settings={"kind": "test", "gate_arcsec": float("inf")}) as writer:
        writer.write(simulate(40, 0.3, seed=2).labelled())
    return folder


def _opened(folder):
    manifest = read_manifest(folder)
    assert manifest["n_arcs"] >= 0
    read_account(folder)
    return read_arcs(folder)


def set_trials(folder, n):
    path, part = folder / "manifest.json", folder / "arcs" / "part-00000.parquet"
    content = path.read_bytes()
    yield trial(json_mutants(json.loads(content), n, 8), path, lambda _: _opened(folder))
    yield trial(byte_mutants(content, n, 9), path, lambda _: _opened(folder))
    path.write_bytes(content)
    whole = part.read_bytes()
    right = read_arcs(folder)

    def read(mutant):
        read_part_account(mutant)
        table = read_part(mutant, ("designation", "rho_geo_au", "ra1_rad", "n_obs"))
        for name in table.columns:  # damage that is not seen must not matter
            np.testing.assert_array_equal(table[name], right[name])

    yield trial(byte_mutants(whole, n, 10), part, read)


def test_mutated_sets(labelled_set):
    for refused, loaded in set_trials(labelled_set, N):
        assert refused + loaded == N


def test_settings_that_are_not_finite_go_on(labelled_set):
    assert read_manifest(labelled_set)["settings"]["gate_arcsec"] is None


@pytest.mark.parametrize("content", ["[]", "null", "{}", '{"complete": true}', '"x"'])
def test_manifests_of_nothing(labelled_set, content):
    (labelled_set / "manifest.json").write_text(content)
    with pytest.raises(DatasetError, match="no manifest"):
        read_manifest(labelled_set)


def test_mutated_predictions(tmp_path, simulate):
    path = tmp_path / "gauss.npz"
    answers = predict("gauss", simulate(40, 0.3, seed=2).labelled())
    save_answers(answers, path)

    def load(path):
        return load_answers(path, answers.attributables)

    refused, loaded = trial(byte_mutants(path.read_bytes(), N, 11), path, load)
    assert refused > loaded
