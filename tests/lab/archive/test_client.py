"""The client over real HTTP: what it keeps, what it sets aside, what it tells."""

from __future__ import annotations

import contextlib
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from astropy import units as u

from neoranging.exceptions import (
    CorruptFileError,
    DownloadError,
    NeoRangingError,
    NeoRangingWarning,
    OrbitFormatError,
    ResourceNotFoundError,
)
from neoranging.lab.archive import NeodysClient, Politeness, Portal
from neoranging.lab.archive.astroquery import query_astroquery
from neoranging.lab.archive.client import cache_folder
from neoranging.lab.archive.manifest import Status
from neoranging.lab.archive.portal import BASE_URL

pytest.importorskip("requests")

YR4 = "mpcobs/2024YR4.rwo"
ELEMENTS = (2.5158127507489616, 0.661540, 3.408139, 271.365595, 134.361424, 40.403920)
HTML = b"<!DOCTYPE html>\n<html><body>NEODyS is under maintenance</body></html>\n"


@pytest.fixture
def client(tmp_path, portal, fast):
    with NeodysClient(tmp_path / "cache", portal=portal.url, politeness=fast) as neodys:
        yield neodys


@pytest.fixture
def many(portal, make_rwo):
    """Forty objects on the portal."""
    names = [f"2024 A{letter}{n}" for n in range(2) for letter in "BCDEFGHJKLMNOPQRSTUV"]
    text = make_rwo()
    for name in names:
        portal.put(f"mpcobs/{name.replace(' ', '')}.rwo", f"{text}! {name}\n")
    return names


@pytest.mark.parametrize(
    "target",
    ["http://127.0.0.1:9/x.rwo", "//example.org/x", "file:///etc/passwd", "http://localhost/x.rwo"],
)
def test_a_redirect_to_another_host_is_refused(client, portal, mishaps, target):
    portal.put(YR4, "never read")
    portal.goes_wrong(YR4, mishaps.status(302, Location=target))
    with pytest.raises(DownloadError, match="sends on to another one"):
        client.observations("2024 YR4")
    assert client.store.records.get(YR4).status is Status.FAILED
    assert not client.store.path(YR4).exists()


def test_a_redirect_on_the_same_host_is_followed(client, portal, make_rwo, mishaps):
    portal.put("mpcobs/new.rwo", make_rwo())
    portal.put(YR4, "never read")
    portal.goes_wrong(YR4, mishaps.status(301, Location="new.rwo"))
    assert len(client.observations("2024 YR4")) > 10


@pytest.mark.parametrize("ask", ["observations", "orbit", "catalogue"])
def test_a_web_page_with_status_200_is_set_aside_by_whatever_asks(client, portal, ask):
    keys = {
        "observations": YR4,
        "orbit": client.portal.orbit_file("2024 YR4", epoch="present").key,
        "catalogue": client.portal.catalogue,
    }
    portal.put(keys[ask], HTML)
    with pytest.raises(CorruptFileError, match="a web page"):
        getattr(client, ask)(*([] if ask == "catalogue" else ["2024 YR4"]))
    assert client.store.records.get(keys[ask]).status is Status.SET_ASIDE
    assert not client.store.path(keys[ask]).exists()


# Single files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2, 3])
def test_observations_in_every_layout(client, portal, make_rwo, version):
    portal.put(YR4, make_rwo(version=version))
    table = client.observations("2024 YR4")
    assert len(table) > 10
    assert table.meta["version"] == version
    assert set(table["designation"]) == {"2024 YR4"}
    client.observations("2024YR4")
    assert portal.asked[YR4] == 1


def test_real_files_in_every_layout(client, portal, shared):
    for path in sorted((shared / "data" / "rwo").iterdir()):
        name = path.name.partition(".")[0].partition("_")[0]
        content = path.read_bytes()
        portal.put(
            f"mpcobs/{name}.rwo", gzip.decompress(content) if path.suffix == ".gz" else content
        )
        assert len(client.observations(name, refresh=True)) > 10


def test_a_body_compressed_on_the_way(client, portal, make_rwo, mishaps):
    text = make_rwo().encode()
    portal.put(YR4, text)
    packed = gzip.compress(text)
    portal.goes_wrong(YR4, mishaps.body(packed, {"Content-Encoding": "gzip"}))
    assert len(client.observations("2024 YR4")) > 10
    assert client.store.path(YR4).read_bytes() == text


def test_orbits_of_every_kind(client, portal, make_orbit):
    portal.put("epoch/2024YR4.ke1", make_orbit("2024YR4", ELEMENTS, epoch=61000.0))
    portal.put("epoch/2024YR4.ke0", make_orbit("2024YR4", ELEMENTS, epoch=60700.0))
    h, k, p, q = 0.1, 0.2, 0.03, 0.04
    text = make_orbit("2024YR4", (2.5, h, k, p, q, 40.0)).replace(" KEP ", " EQU ")
    portal.put("epoch/2024YR4.eq1", text)
    now = client.orbit("2024 YR4")
    assert now.designation == "2024 YR4"
    assert now.epoch.mjd == 61000.0
    assert now.url == f"{portal.url}/epoch/2024YR4.ke1"
    assert client.orbit("2024 YR4", epoch="middle").epoch.mjd == 60700.0
    equinoctial = client.orbit("2024 YR4", kind="equinoctial")
    assert float(equinoctial.ecc) == pytest.approx(np.hypot(h, k))
    with pytest.raises(NeoRangingError, match="'cometary' at 'present'"):
        client.orbit("2024 YR4", kind="cometary")


def test_the_list_of_objects(client, portal, make_catalogue):
    portal.put("neodys.cat", make_catalogue({"433": ELEMENTS, "2024YR4": ELEMENTS}))
    assert client.names() == ["433", "2024 YR4"]
    assert client.catalogue()["a"][0] == ELEMENTS[0] * u.au
    assert portal.asked["neodys.cat"] == 1


def test_what_the_portal_does_not_have(client):
    with pytest.raises(ResourceNotFoundError, match="check the name"):
        client.observations("2099 AA")
    assert client.store.records.get("mpcobs/2099AA.rwo").status is Status.ABSENT


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (HTML, "a web page instead of the file"),
        (b"\n\n  <html>\n", "a web page instead of the file"),
        (b" \n", "an empty file"),
        (bytes(range(256)) * 20, "binary data instead of text"),
        (b"version =   3\nerrmod  = 'vfcc17'\n", "no END_OF_HEADER"),
        (b"%PDF-1.4 END_OF_HEADER\nabc\n", "no version in the header"),
        (b"version =   3\nEND_OF_HEADER\n! Object\n! Design\n", "no observation record"),
    ],
)
def test_what_is_no_observation_file_is_set_aside(client, portal, content, reason):
    portal.put(YR4, content)
    with pytest.raises(CorruptFileError, match=reason):
        client.observations("2024 YR4")
    entry = client.store.records.get(YR4)
    assert entry.status is Status.SET_ASIDE
    assert (client.store.folder / "set_aside" / YR4).read_bytes() == content
    assert not client.store.path(YR4).exists()


@pytest.mark.parametrize("share", [0.001, 0.3, 0.99])
def test_a_body_cut_short_without_a_word(client, portal, make_rwo, mishaps, share):
    text = make_rwo()
    if text[int(share * len(text)) - 1] == "\n":
        pytest.skip("cut at the end of a line")
    portal.put(YR4, text)
    portal.goes_wrong(YR4, mishaps.cut(share, announced=False))
    with pytest.raises(CorruptFileError):
        client.observations("2024 YR4")
    assert len(client.observations("2024 YR4")) > 10  # asked for by name, it is tried again


def test_a_catalogue_that_is_a_web_page(client, portal):
    portal.put("neodys.cat", HTML)
    with pytest.raises(CorruptFileError, match="web page"):
        client.names()


def test_an_orbit_that_is_none(client, portal, make_orbit):
    portal.put("epoch/433.ke1", make_orbit("433", (-1.0, *ELEMENTS[1:])))
    with pytest.raises(CorruptFileError, match="no readable orbit"):
        client.orbit("433")


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "P/2010 A2", "a?b", ".rwo"])
def test_names_that_are_no_file_names(client, portal, name):
    with pytest.raises(NeoRangingError, match="no name of an object"):
        client.observations(name)
    assert not portal.requests


# Renewal ------------------------------------------------------------------------------------------


def test_refresh_asks_and_takes_what_is_new(client, portal, make_rwo):
    portal.put(YR4, make_rwo())
    client.observations("2024 YR4")
    client.observations("2024 YR4", refresh=True)
    assert portal.requests[-1][2]["If-None-Match"]
    portal.put(YR4, make_rwo() + "! new\n")
    client.observations("2024 YR4", refresh=True)
    assert client.store.path(YR4).read_text().endswith("! new\n")


@pytest.mark.parametrize("trouble", ["503", "404", "page"])
def test_what_is_at_hand_survives_a_failed_renewal(client, portal, make_rwo, mishaps, trouble):
    portal.put(YR4, make_rwo())
    client.observations("2024 YR4")
    if trouble == "page":
        portal.put(YR4, HTML)
    else:
        portal.goes_wrong(YR4, *[mishaps.status(int(trouble))] * 3)
    with pytest.warns(NeoRangingWarning, match="not renewed"):
        table = client.observations("2024 YR4", refresh=True)
    assert len(table) > 10
    assert client.store.records.get(YR4).status is Status.OK


def test_a_file_damaged_on_disk_is_fetched_again(client, portal, make_rwo):
    portal.put(YR4, make_rwo())
    client.observations("2024 YR4")
    client.store.path(YR4).write_text("scribble")
    assert len(client.observations("2024 YR4")) > 10
    assert portal.asked[YR4] == 2


# Many files ---------------------------------------------------------------------------------------


def test_many_files_once_each(client, portal, many):
    steps = []
    report = client.download(client.observation_files(many), on_step=steps.append)
    assert report.count.n_used == report.n_asked == len(steps) == 40
    assert [file.key for file in report.files] == [
        client.portal.observation_file(name).key for name in many
    ]
    assert "40 files, 40 used" in str(report)
    again = client.download(client.observation_files([*many, *many]))
    assert again.n_asked == 0
    assert again.count.n_read == 40
    assert max(portal.asked.values()) == 1


def test_everything_that_goes_wrong_is_accounted_for(client, portal, many, mishaps):
    paths = [f"mpcobs/{name.replace(' ', '')}.rwo" for name in many]
    del portal.files[paths[3]]
    portal.put(paths[5], HTML)
    portal.goes_wrong(paths[8], *[mishaps.status(500)] * 3)
    portal.goes_wrong(paths[9], *[mishaps.cut(0.4)] * 3)
    portal.goes_wrong(paths[12], mishaps.cut(0.41, announced=False))
    portal.goes_wrong(paths[13], mishaps.status(429, Retry_After="0"))
    portal.goes_wrong(paths[14], mishaps.hang_up, mishaps.no_http)
    report = client.download(client.observation_files(many))
    counts = report.count
    assert (counts.n_read, counts.n_used) == (40, 35)
    assert sum(counts.reasons.values()) == 5
    assert counts.reasons["not on the portal"] == 1
    assert counts.reasons["did not arrive"] == 2
    assert counts.reasons["not what it should be, a web page instead of the file"] == 1
    assert f"{paths[5]}: a web page" in str(report)
    # a second call tries what failed to arrive, and only that
    before = portal.asked.copy()
    report = client.download(client.observation_files(many))
    assert dict(portal.asked - before) == {paths[8]: 1, paths[9]: 1}
    assert report.count.n_used == 37
    # and the rest on demand
    report = client.download(client.observation_files(many), again=True)
    assert report.count.n_used == 38
    assert report.count.reasons["not on the portal"] == 1
    lines = (client.store.folder / "manifest.jsonl").read_text().splitlines()
    assert len(lines) == 40 + 2 + 3
    assert all(json.loads(line)["time"] for line in lines)


def test_no_more_at_a_time_than_agreed(tmp_path, portal, many):
    limits = Politeness(requests_per_second=5000.0, concurrency=3)
    portal.delay_s = 0.01
    with NeodysClient(tmp_path, portal=portal.url, politeness=limits) as neodys:
        neodys.download(neodys.observation_files(many))
    assert portal.most_under_way == 3


def test_a_portal_that_is_down_is_left_alone(client, portal, many, mishaps):
    for name in many[10:]:
        path = f"mpcobs/{name.replace(' ', '')}.rwo"
        portal.goes_wrong(path, *[mishaps.status(503)] * 3)
    with pytest.raises(DownloadError, match="run the same command again"):
        client.download(client.observation_files(many))
    assert sum(portal.asked.values()) < 10 + 3 * 10
    portal.mishaps.clear()
    report = client.download(client.observation_files(many))
    assert report.count.n_used == 40
    assert all(portal.asked[f"mpcobs/{name.replace(' ', '')}.rwo"] == 1 for name in many[:10])


def test_an_interruption_loses_nothing(client, portal, many):
    def interrupt(_: int) -> None:
        if len(client.store.records) >= 7:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        client.download(client.observation_files(many), on_step=interrupt)
    assert 7 <= len(client.store.records) < 40
    missing = next(n for n in many if client.portal.observation_file(n).key not in portal.asked)
    assert len(client.observations(missing)) > 10
    assert client.download(client.observation_files(many)).count.n_used == 40
    assert max(portal.asked.values()) == 1


# Where it goes ------------------------------------------------------------------------------------


def test_the_base_address_by_argument_environment_and_default(monkeypatch):
    monkeypatch.delenv("NEORANGING_NEODYS_URL", raising=False)
    assert Portal().url("neodys.cat") == f"{BASE_URL}/neodys.cat"
    monkeypatch.setenv("NEORANGING_NEODYS_URL", "http://mirror/neodys/")
    assert Portal().url("neodys.cat") == "http://mirror/neodys/neodys.cat"
    assert Portal(base_url="http://x").url("a b") == "http://x/a%20b"


def test_where_the_cache_is(monkeypatch):
    monkeypatch.setenv("NEORANGING_CACHE", "/data/cache")
    assert cache_folder() == Path("/data/cache/neodys")
    monkeypatch.delenv("NEORANGING_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/home/a/cache")
    assert cache_folder() == Path("/home/a/cache/neoranging/neodys")


def test_other_paths(tmp_path, portal, make_rwo, fast):
    portal.put("download/2024YR4_observations.txt", make_rwo())
    there = Portal(base_url=portal.url, observations="download/{name}_observations.txt")
    with NeodysClient(tmp_path, portal=there, politeness=fast) as neodys:
        assert len(neodys.observations("2024 YR4")) > 10


# astroquery ---------------------------------------------------------------------------------------

pytest_astroquery = pytest.mark.skipif(
    not __import__("importlib.util").util.find_spec("astroquery"), reason="needs astroquery"
)


@pytest_astroquery
def test_the_way_through_astroquery_gives_the_same_orbit(client, portal, make_orbit):
    text = make_orbit("2024YR4", ELEMENTS, epoch=61000.0)
    portal.put("epoch/2024YR4.ke1", text)
    ours = client.orbit("2024 YR4")
    theirs = query_astroquery("2024 YR4", base_url=portal.url)
    assert theirs.epoch == ours.epoch
    assert np.array_equal(theirs.values, ours.values)
    # nothing is kept between calls
    portal.put("epoch/2024YR4.ke1", make_orbit("2024YR4", ELEMENTS, epoch=61001.0))
    assert query_astroquery("2024 YR4", base_url=portal.url).epoch.mjd == 61001.0


@pytest_astroquery
def test_errors_on_the_way_through_astroquery(portal):
    with pytest.raises(ResourceNotFoundError):
        query_astroquery("2099 AA", base_url=portal.url)
    portal.put("epoch/433.ke1", HTML)
    with pytest.raises(OrbitFormatError):
        query_astroquery("433", base_url=portal.url)
