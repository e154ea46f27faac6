"""The page of a night: each kind of tracklet, what it needs, and how a browser shows it."""

from __future__ import annotations

import re
import shutil
import subprocess
from html import escape

import numpy as np
import pandas as pd
import pytest
from astropy import units as u
from astropy.coordinates import EarthLocation, SkyCoord
from astropy.time import Time
from html_pages import Checked

import neoranging as nr
from neoranging.exceptions import EstimationError, NeoRangingWarning, UnknownStationError
from neoranging.night import NightPage
from neoranging.samples import sample

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)

SCRIPT = "<script>alert(1)</script>"


def made_up(designation, *, step=(0.02, 0.01), mag=20.0, station="G96", blunder=0.0):
    """Rows of four made-up observations, whose third may be off by so many degrees."""
    k = np.arange(4)
    return pd.DataFrame(
        {
            "designation": designation,
            "obstime": Time(60500.3 + 0.01 * k, format="mjd", scale="utc").isot,
            "ra": 250.0 + step[0] * k,
            "dec": -10.0 + step[1] * k + blunder * (k == 2),
            "station": station,
            "mag": mag,
            "band": "V",
        }
    )


@pytest.fixture(scope="module")
def night():
    """Tracklets of every kind that a night has."""
    rows = pd.concat(
        [
            made_up(SCRIPT),
            made_up("blundered", blunder=0.01),
            made_up("satellite", step=(2.0, 1.0)),
            made_up("unmeasured", mag=np.nan),
            made_up("nowhere", station="C51"),
        ]
    )
    with pytest.warns(NeoRangingWarning):
        return nr.read_tracklets([sample("impactors"), sample("messy"), rows])


@pytest.fixture(scope="module")
def html(night):
    return NightPage(night, n=60, field=20.0 * u.arcmin, limit=21.0 * u.mag).html


@pytest.fixture(scope="module")
def rows(html):
    """Cells of the rows by the name of the object; of one with several tracklets the first."""
    table = html.split('<table id="night">')[1].split("<tbody>")[1].split("</tbody>")[0]
    named = {}
    for row in re.findall(r"<tr[^>]*>(.*?)</tr>", table, re.DOTALL):
        cells = [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)]
        named.setdefault(cells[0], cells)
    return named


def panel(html, name):
    """Text of the first panel of an object."""
    part = next(p for p in html.split("<article")[1:] if f">{name}<small>" in p)
    return " ".join(re.sub(r"<[^>]+>", " ", part).split())


def test_the_page_is_well_formed_and_needs_nothing_else(html):
    checked = Checked(html)
    assert not checked.fetched
    assert not re.search(r"https?://|@import|url\(|<link", html)
    assert html.count("<script") == html.count("<script>") == 1
    anchors = {link.removeprefix("#") for link in checked.links}
    assert anchors <= set(checked.ids)


def test_every_tracklet_has_a_row_and_a_panel(html, night):
    assert html.count("<article") == len(night)
    table = html.split('<table id="night">')[1].split("</table>")[0]
    assert table.count("<tr") == 2 + len(night)
    for k in range(len(night)):
        assert f'id="t{k + 1}"' in html
        assert f'href="#t{k + 1}"' in html


def test_the_header_says_what_was_read_and_how_it_was_worked_out(html):
    text = Checked(html.split("<main>")[0] + "</body></html>").text
    assert "messy.obs80: 15 records, 9 used, 6 set aside" in text
    assert "impactors.obs80: 34 records, 34 used, 0 set aside" in text
    assert "alone: no second epoch of that object in that night" in text
    assert "right ascension in columns 33-44 cannot be read" in text  # of every record
    assert "radar delay or Doppler" in text
    assert "unknown station" in text
    assert "Method systematic, prior population, ranges from the topocenter; 60 draws" in text
    assert "field of view 20′" in text
    assert "limit V 21" in text


def test_names_are_shown_and_not_obeyed(html):
    assert SCRIPT not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_possible_impactors_come_first(rows, html):
    assert list(rows)[:2] == ["2008 TC3", "2014 AA"]
    text = panel(html, "2014 AA")
    assert "OK" in text
    assert "impact all of 60 draws: above 95" in text
    assert "log-uniform all of 60 draws" in text
    assert "falls 2014-01-02 02:" in text
    # a day later nothing is left to point at
    assert "when 2014-01-01 16:" in text
    assert "half way to the first falls" in text
    assert "no position" not in text
    assert 'class="hot"' in html


def test_an_object_to_follow_up_has_its_place_on_the_sky(rows, html):
    text = panel(html, "2008 EK68")
    assert "POPULATION" in text
    assert "from G96" in text
    assert "when 2008-03-06 11:30 UTC" in text  # one day after the last observation
    for fact in ("range-rate", "position", "square arcminutes", "altitude", "worth", "fields"):
        assert fact in text
    assert "brighter than 21" in text
    part = next(p for p in html.split("<article")[1:] if ">2008 EK68<small>" in p)
    assert part.count("<svg viewBox") == 3
    assert 'class="field"' in part
    assert "–" not in rows["2008 EK68"]


def test_nothing_follows_from_a_misfit_and_the_page_says_so(rows, html):
    text = panel(html, "blundered")
    assert "MISFIT" in text
    assert "observation 3 of 4" in text
    assert "nothing follows from this tracklet" in text
    assert "Where to point" not in text
    assert rows["blundered"][8].startswith("(")  # what the method printed
    assert rows["blundered"][-8:] == ["–"] * 8


def test_an_orbit_that_is_none_an_observer_without_place(rows, html):
    assert "INADMISSIBLE" in panel(html, "satellite")
    assert "UNKNOWN_OBSERVER" in panel(html, "nowhere")
    assert rows["nowhere"][7] == "UNKNOWN_OBSERVER"
    last = list(rows)[-3:]
    assert {"satellite", "nowhere"} < set(last)


def test_without_a_magnitude_the_size_is_said_to_be_unknown(rows, html):
    text = panel(html, "unmeasured")
    assert "magnitude none given: size unknown" in text
    assert "H unknown without a magnitude" in text
    assert "magnitude unknown without one in the night" in text
    assert rows["unmeasured"][9] == "–"


def test_fields_are_listed_in_the_order_of_their_probability(html):
    part = next(
        p
        for p in html.split("<article")[1:]
        if "<details><summary>1 field" not in p and "fields of view in order" in p
    )
    body = part.split("<tbody>")[1].split("</tbody>")[0]
    cells = [re.findall(r"<td>(.*?)</td>", row) for row in body.split("<tr>")[1:]]
    shares = [float(row[3]) for row in cells]
    assert len(shares) > 1
    assert shares == sorted(shares, reverse=True)
    assert float(cells[-1][4]) == pytest.approx(sum(shares), abs=0.1 * len(shares))


@pytest.fixture(scope="module")
def one():
    return nr.read_tracklets(nr.sample("2024YR4"))[1:2]


def test_an_instant_and_a_station_of_ones_own(one):
    at = Time("2024-12-29T06:00", scale="utc")
    text = Checked(NightPage(one, n=60, at=at, station="G96").html).text
    assert "Pointing at 2024-12-29 06:00 UTC, from G96" in text
    assert "when 2024-12-29 06:00 UTC from G96 position" in text


def test_an_instant_years_away_is_not_followed_and_said_so(one):
    text = Checked(NightPage(one, n=60, at=Time("2020-01-01")).html).text
    assert "no position this is 1,822 d from the night: orbits are followed for 60 d" in text


def test_an_unknown_station_is_refused_before_the_work(one):
    with pytest.raises(UnknownStationError, match="ZZZ"):
        NightPage(one, at=Time("2024-12-29"), station="ZZZ")
    with pytest.raises(UnknownStationError, match="ZZZ"):
        NightPage(one, station="ZZZ")


def test_a_method_without_posterior_is_refused(one):
    with pytest.raises(EstimationError, match="systematic"):
        _ = NightPage(one, method="gauss").html


@pytest.mark.parametrize("option", [{"field": 0.0 * u.deg}, {"n": 0}, {"within": -1.0 * u.d}])
def test_options_that_make_no_sense_are_refused(one, option):
    with pytest.raises(nr.exceptions.TrackletError, match=f"{next(iter(option))} must be positive"):
        NightPage(one, **option)


@pytest.mark.parametrize(
    ("station", "place"),
    [
        ("500", "from the centre of the Earth"),
        (EarthLocation.from_geodetic(-110.8 * u.deg, 32.4 * u.deg, 2500.0 * u.m),
         "from where it was observed"),
    ],
)  # fmt: skip
def test_the_observer_is_that_of_the_night(station, place):
    rows = made_up("x")
    tracklet = nr.Tracklet(
        Time(rows["obstime"].to_list(), scale="utc"),
        SkyCoord(rows["ra"], rows["dec"], unit="deg"),
        station=station,
        sigma=0.3 * u.arcsec,
    )
    text = Checked(NightPage(tracklet, n=60).html).text
    assert "tracklet 1" in text
    assert place in text
    assert ("altitude" in text.split("Where to point")[1]) is (station != "500")


def test_progress_is_reported_from_nothing_to_all(one):
    steps = []
    assert NightPage(one, n=60, progress=lambda *step: steps.append(step)).html
    assert steps == [(0, 1), (1, 1)]


def test_a_page_that_fails_leaves_the_old_one(one, tmp_path):
    path = tmp_path / "night.html"
    path.write_text("old")

    def interrupted(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        NightPage(one, n=60, progress=interrupted).write(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    NightPage(one, n=60).write(path)
    assert path.read_text().startswith("<!DOCTYPE html>")


def test_notebooks_show_the_page_in_a_frame(one):
    page = NightPage(one, n=60)
    shown = page._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert "<!DOCTYPE" not in shown
    assert repr(page) == "<NightPage: 1 tracklet>"


# In a browser ------------------------------------------------------------------------------------

PROBE = """<script>
const root = document.documentElement;
const heads = [...document.querySelectorAll("#night th[title]")];
const rows = () => [...document.querySelectorAll("#night tbody tr")];
const names = () => rows().map(row => row.cells[8].dataset.v);
root.dataset.width = [root.scrollWidth, window.innerWidth].join();
const figures = [...document.querySelectorAll("article svg[viewBox]")];
root.dataset.tall = figures.every(s => s.getBoundingClientRect().height > 200);
heads[8].querySelector("button").click();
root.dataset.falling = names();
heads[8].querySelector("button").click();
root.dataset.rising = names();
root.dataset.sort = heads[8].ariaSort;
</script></body>"""


FRAME = """<!DOCTYPE html><html><head></head><body>
<iframe width="{width}" height="844" style="border: 0" srcdoc="{page}"></iframe><script>
const frame = document.querySelector("iframe");
frame.onload = () => Object.assign(document.documentElement.dataset,
  frame.contentDocument.documentElement.dataset);
</script></body></html>"""
"""A window of a browser is no narrower than 500 pixels; a frame in it may be a telephone."""


def looked_at(html, tmp_path, width):
    """Attributes that the probe leaves on the page, as a browser of so many pixels has it."""
    probed = html.replace("</body>", PROBE).replace("content-visibility: auto;", "")
    page = tmp_path / "frame.html"
    page.write_text(FRAME.format(width=width, page=escape(probed)))
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1500,900"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return dict(re.findall(r'data-(\w+)="([^"]*)"', done.stdout[: done.stdout.index("<head>")]))


@pytest.mark.skipif(BROWSER is None, reason="no browser here")
@pytest.mark.parametrize("width", [1400, 390])
def test_a_browser_shows_it_wide_and_narrow(html, tmp_path, width):
    seen = looked_at(html, tmp_path, width)
    scroll, inner = map(int, seen["width"].split(","))
    assert inner == width
    assert scroll <= width  # the page does not scroll sideways
    assert seen["tall"] == "true"
    for name, sign in (("falling", -1.0), ("rising", 1.0)):
        cells = seen[name].split(",")
        numbers = [float(cell) for cell in cells if cell]
        assert len(numbers) > 5
        assert numbers == sorted(numbers, key=lambda value: sign * value)
        assert not any(cells[len(numbers) :])  # those without a number come last
    assert seen["sort"] == "ascending"
