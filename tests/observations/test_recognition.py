"""Whatever a reader takes is recognised; what none takes is told what comes nearest."""

from __future__ import annotations

import codecs
import html
import io
import json
import warnings

import numpy as np
import pytest
from astropy.table import QTable
from click.testing import CliRunner

import neoranging as nr
from neoranging.cli import main
from neoranging.exceptions import NeoRangingWarning, ObservationFormatError
from neoranging.observations.ades.write import format_ades_psv
from neoranging.observations.reading import WINDOW, recognise
from neoranging.observations.rwo.write import format_rwo
from neoranging.observations.source import read_text

OBS80 = "".join(
    f"{line}\n"
    for line in nr.sample("impactors").read_text().splitlines()
    if line.endswith("G96") and "K08T03C" in line
)
LINES = OBS80.splitlines()
TABLE = QTable.read(LINES)
PSV = format_ades_psv(TABLE)
RWO = format_rwo(TABLE)
NAMES, *RECORDS = (line.split("|") for line in PSV.splitlines()[1:])
FIELDS = [
    {name.strip(): cell.strip() for name, cell in zip(NAMES, row, strict=False)} for row in RECORDS
]
XML = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<ades version="2022">\n'
    + "".join(
        "<optical>"
        + "".join(f"<{name}>{value}</{name}>" for name, value in row.items() if value)
        + "</optical>\n"
        for row in FIELDS
    )
    + "</ades>\n"
)
TEXTS = {"mpc.obs80": OBS80, "ades.psv": PSV, "ades.xml": XML, "orbfit.rwo": RWO}
SPACE = (
    "     J99RB6R  S2010 03 05.12345601 16 10.02 +05 22 06.3                L~0I7nC51"
    "     J99RB6R  s2010 03 05.1234561 + 6685.9881 + 1699.4342 +  381.8352   ~0I7nC51"
)
LONG = "# a line of a long header, as cameras and their programs write them before records\n"

by_format = pytest.mark.parametrize("form", TEXTS)


def is_whole(source):
    """Whether the eight positions of 2008 TC3 are read, whatever the way."""
    tracklets = nr.read_tracklets(source)
    (estimate,) = tracklets.estimate("gauss").range.to_value("au")
    return len(tracklets) == 1 and tracklets.report.n_used == 8 and round(estimate, 5) == 0.00311


@by_format
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\n", " \t\n"])
def test_line_ends_and_blank_lines(form, end):
    text = end.join(TEXTS[form].splitlines()) + end
    assert recognise(text.encode()) == form
    assert is_whole(text)
    assert is_whole(text.encode())


@by_format
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_is_believed(form, encoding, tmp_path):
    path = tmp_path / "night"
    path.write_bytes(TEXTS[form].replace("UTF-8", encoding.removesuffix("-sig")).encode(encoding))
    assert is_whole(path)
    assert len(QTable.read(path)) == 8


def test_marks_of_the_other_order():
    big = codecs.BOM_UTF16_BE + OBS80.encode("utf-16-be")
    assert is_whole(big)
    assert is_whole(XML.replace("UTF-8", "UTF-16").encode("utf-16-be"))  # XML needs no mark


@by_format
def test_a_header_may_be_longer_than_any_window(form, tmp_path):
    text = TEXTS[form]
    if form == "ades.xml":
        text = text.replace("\n", f"\n<!-- {LONG * 4000} -->\n", 1)
    elif form == "orbfit.rwo":
        text = LONG.replace("#", "!") * 4000 + text
    else:
        text = LONG * 4000 + text
    assert len(text) > WINDOW
    assert is_whole(text)
    path = tmp_path / "long"
    path.write_text(text)
    assert len(QTable.read(path)) == 8


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{line}  # sigma 0.3\n" for line in LINES),
        "".join(f"{line:200}|\n" for line in LINES),
        "COD G96\nOBS A. Nobody\nTEL 1.5-m reflector + CCD\n" + OBS80,
        "# comment\n" + PSV,
        "! comment\n\n# comment\n" + PSV,
        PSV.partition("\n")[2],
        PSV.replace("obsTime", "obstime").replace("provID", "PROVID"),
        "\n\n" + XML,
        XML.replace("ades", "a:ades").replace("a:ades v", "a:ades xmlns:a='urn:x' v"),
        RWO.partition("END_OF_HEADER\n")[2],
        "\n".join(line for line in RWO.splitlines() if line.startswith(" ")),
    ],
)
def test_what_stands_around_the_records(text):
    assert is_whole(text)


def test_records_of_160_columns_alone():
    table = QTable.read([SPACE])
    assert table["kind"].tolist() == ["space"]
    assert nr.read_tracklets(SPACE).report.n_read == 1


@by_format
def test_lines_bytes_and_open_files(form, tmp_path):
    text = TEXTS[form]
    path = tmp_path / "night"
    path.write_text(text)
    assert is_whole(text.splitlines())
    assert is_whole(text.splitlines(keepends=True))
    assert is_whole(tuple(text.splitlines()))
    assert len(QTable.read(text.splitlines())) == 8
    with path.open() as characters, path.open("rb") as binary:
        assert is_whole(characters)
        assert is_whole(binary)
    assert is_whole(io.BytesIO(text.encode()))
    assert is_whole([path])


def test_a_list_may_hold_texts_and_paths():
    tracklets = nr.read_tracklets([OBS80, nr.sample("2024YR4"), OBS80.encode()])
    assert tracklets.report.n_read == 30


def test_a_record_is_never_opened_as_a_path():
    for line in (LINES[0], LINES[0].lstrip(), SPACE, RWO.splitlines()[-1]):
        try:
            n = nr.read_tracklets(line).report.n_read
        except ObservationFormatError:
            continue
        assert n == 1
    with pytest.raises(FileNotFoundError):
        nr.read_tracklets("2008 10 06 night of the impactor.txt")


def page(text):
    cells = html.escape(text).replace("G96", '<a href="/G96">G96</a>')
    return f"<!DOCTYPE html>\n<html><body><h1>C2008 10 06.27</h1>\n<pre>{cells}</pre></body></html>"


@pytest.mark.parametrize("form", ["mpc.obs80", "ades.psv", "ades.xml"])
def test_a_saved_page(form):
    text = page(TEXTS[form])
    assert is_whole(text)
    assert is_whole(text.replace("pre>", "PRE>").replace(" ", "&nbsp;", 3))
    if form == "mpc.obs80":
        assert QTable.read(text.encode())["line"].tolist() == list(range(3, 11))


def test_pieces_of_a_page_and_tags_left_open():
    halves = "".join(LINES[0] + "\n"), "\n".join(LINES[1:])
    assert is_whole("<html>{}{}</html>".format(*(f"<pre>\n{half}\n</pre>" for half in halves)))
    assert is_whole(f"<html><pre>\n{OBS80}")


def test_answers_of_the_observations_api(tmp_path):
    records = [{name.lower(): value for name, value in row.items()} for row in FIELDS]
    for row in records:
        row |= {"ra": float(row["ra"]), "rmstime": None, "obsid": "a|b"}
    answers = [
        [{"OBS80": OBS80}],
        [{"XML": XML}],
        [{"ADES_DF": records}],
        [{"OBS80": OBS80, "XML": XML, "ADES_DF": records}],
        {"fileMPC": OBS80, "signature": {"version": "1.0"}},
        records,
        LINES,
        OBS80,
    ]
    path = tmp_path / "answer.json"
    for answer in answers:
        path.write_text(json.dumps(answer))
        assert is_whole(path)
    path.write_text(json.dumps(answers[0]))
    assert len(QTable.read(path)) == 8


def shown(tmp_path, text):
    """The error in Python, which is that of the command line."""
    path = tmp_path / "night.txt"
    path.write_text(text)
    with pytest.raises(ObservationFormatError) as caught:
        nr.read_tracklets(path)
    result = CliRunner().invoke(main, ["estimate", str(path)])
    assert result.exit_code == 3
    message = str(caught.value)
    assert message in result.output
    assert result.output.count(str(path)) == 1
    return message


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        (lambda line: f"> {line}", "Remove the marks '>' of quoted mail"),
        (lambda line: f" {line}", "Remove 1 blank in front"),
        (lambda line: f"   {line}", "Remove 3 blanks in front"),
        (lambda line: line.lstrip(), "Put 5 blanks back in front"),
        (lambda line: "\t" + line.lstrip(), "Put 4 blanks back .* a TAB"),
    ],
)
def test_shifted_columns_are_diagnosed(tmp_path, change, advice):
    message = shown(tmp_path, "".join(f"{change(line)}\n" for line in LINES))
    assert "nearest is mpc.obs80" in message
    assert "line 1 has one elsewhere" in message
    with pytest.raises(ObservationFormatError, match=advice):
        nr.read_tracklets("".join(f"{change(line)}\n" for line in LINES))
    with pytest.raises(ObservationFormatError, match=advice):
        nr.read_tracklets([change(line) for line in LINES])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (PSV.replace("obsTime", "obsTme"), "is 'obsTme' misspelt"),
        ("# version=2022\n" + PSV.split("\n", 2)[2], "before any line of column names"),
        (XML.replace("</ades>", ""), "not well formed"),
        ("<html><body>Not found</body></html>", "HTML without records"),
        (json.dumps([{"name": "a", "ra_hrs": 3, "K": "O"}]), "Orbit tools make JSON of .rwo"),
        ("", "empty"),
        (" \n\n", "empty"),
        ("Dear observer,\nthank you.\n", "no line looks like a record, the first is 'Dear"),
        ("a\0b" * 99, "zero bytes"),
    ],
)
def test_other_diagnoses(tmp_path, text, what):
    assert what in shown(tmp_path, text)


def test_recognition_and_reading_agree():
    """A reader never takes what no recogniser takes, and the other way round."""
    rng = np.random.default_rng(3)
    for form, text in TEXTS.items():
        for _ in range(40):
            damaged = bytearray(text.encode())
            for at in rng.integers(len(damaged), size=30):
                damaged[at] = rng.integers(32, 127)
            content = bytes(damaged)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", NeoRangingWarning)  # stations that damage makes
                    table = QTable.read(content, format=form)
            except ObservationFormatError:
                continue
            if len(table):
                assert recognise(read_text(content).content) == form
