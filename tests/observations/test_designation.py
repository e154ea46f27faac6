"""Packed designations: examples of the MPC, round trips, and an outside implementation."""

import string

import mpc_designation
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neoranging.exceptions import ObservationFormatError
from neoranging.observations.cells import cell_text, translated
from neoranging.observations.designation import (
    canonical,
    pack,
    pack_field,
    unpack,
    unpack_field,
)

LETTERS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"
HALF_MONTHS = "ABCDEFGHJKLMNOPQRSTUVWXY"

# Minor Planet Center, "Packed Provisional and Permanent Designations", and real records.
EXAMPLES = {
    "00203": "203",
    "99942": "99942",
    "A0345": "100345",
    "a0017": "360017",
    "z9999": "619999",
    "~0000": "620000",
    "~000z": "620061",
    "~AZaz": "3140113",
    "~zzzz": "15396335",
    "J95X00A": "1995 XA",
    "J95X01L": "1995 XL1",
    "J98SA8Q": "1998 SQ108",
    "J98SG2S": "1998 SS162",
    "K99AJ3Z": "2099 AZ193",
    "K08Aa0A": "2008 AA360",
    "K07Tf8A": "2007 TA418",
    "I98P00A": "A898 PA",
    "PLS2040": "2040 P-L",
    "T1S3138": "3138 T-1",
    "T2S1010": "1010 T-2",
    "T3S4101": "4101 T-3",
    "_QC0000": "2026 CA620",
    "_QC0aEM": "2026 CZ6190",
    "0001P": "1P",
    "0073Pb": "73P-B",
    "0073Paz": "73P-AZ",
    "0003D": "3D",
    "0001I": "1I",
    "CJ95A010": "C/1995 A1",
    "PJ94P01b": "P/1994 P1-B",
    "PK48X130": "P/2048 X13",
    "PJ99R28O": "P/1999 RO28",
    "AK17U010": "A/2017 U1",
    "J013S": "Jupiter XIII",
    "N002S": "Neptune II",
    "SK03J020": "S/2003 J 2",
    "A10TlFw": "A10TlFw",
    "P10vY9r": "P10vY9r",
}


@pytest.mark.parametrize(("packed", "name"), EXAMPLES.items())
def test_examples(packed, name):
    assert unpack(packed) == name
    assert pack(name) == packed


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("99942K04M04N", "99942"),
        ("33803J99VL0K", "33803"),
        ("m3390T3S5059", "483390"),
        ("0141P      h", "141P-H"),
        ("0073P     az", "73P-AZ"),
        ("0217PK01M07D", "217P"),
        ("0051PJ94P01b", "51P-B"),
        ("J001SG10J010", "Jupiter I"),
        ("S419S       ", "Saturn CDXIX"),
        ("    CJ96B020", "C/1996 B2"),
        ("     K24Y04R", "2024 YR4"),
        ("     0000164", "0000164"),
        ("    Example2", "Example2"),
    ],
)
def test_fields_of_records(field, name):
    assert unpack_field(field) == name
    assert len(pack_field(name)) == 12
    assert unpack_field(pack_field(name)) == name


numbers = st.integers(1, 15_396_335).map(str)
provisionals = st.builds(
    lambda year, half, letter, count: f"{year} {half}{letter}{count or ''}",
    st.integers(1925, 2199),
    st.sampled_from(HALF_MONTHS),
    st.sampled_from(LETTERS),
    st.integers(0, 619),
)
extended = st.builds(
    lambda year, half, letter, count: f"{year} {half}{letter}{count}",
    st.integers(2000, 2061),
    st.sampled_from(HALF_MONTHS),
    st.sampled_from(LETTERS),
    st.integers(620, 20_000),
)
surveys = st.builds(
    lambda n, survey: f"{n:04d} {survey}",
    st.integers(1, 9999),
    st.sampled_from(["P-L", "T-1", "T-2", "T-3"]),
)
comets = st.builds(
    lambda kind, year, half, n, fragment: f"{kind}/{year} {half}{n}{fragment}",
    st.sampled_from("PCDXAI"),
    st.integers(1583, 2199),
    st.sampled_from(HALF_MONTHS),
    st.integers(1, 99),
    st.sampled_from(["", "-A", "-Z"]),
)
periodic = st.builds(
    lambda n, kind, fragment: f"{n}{kind}{fragment}",
    st.integers(1, 9999),
    st.sampled_from("PDI"),
    st.sampled_from(["", "-C", "-AB"]),
)
satellites = st.builds(
    lambda year, planet, n: f"S/{year} {planet} {n}",
    st.integers(1600, 2199),
    st.sampled_from("JSUN"),
    st.integers(1, 99),
)


@given(st.one_of(numbers, provisionals, extended, surveys, comets, periodic, satellites))
def test_packing_loses_nothing(name):
    assert unpack_field(pack_field(name)) == name
    assert unpack(pack(name)) == name


@given(st.text(alphabet=string.printable[:95], max_size=12))
@example("_zY~000")
@example("~~~~~")
def test_any_field_unpacks_to_something(field):
    name = unpack_field(field)
    assert name == name.strip()
    assert bool(name) == bool(field.strip())


def test_arrays_keep_order():
    fields = np.array(["     K24Y04R", "99942       ", "     K24Y04R"])
    names = translated(fields, unpack_field)
    assert names.tolist() == ["2024 YR4", "99942", "2024 YR4"]
    assert translated(names, pack_field).tolist() == fields.tolist()
    assert translated(fields[:0], unpack_field).tolist() == []


@pytest.mark.parametrize("name", ["", "a name too long", "C/2020 A999", "1999 AA620", "Ĝ"])
def test_what_cannot_be_packed_says_so(name):
    with pytest.raises(ObservationFormatError):
        pack_field(name)


@given(st.one_of(numbers, provisionals, extended))
def test_agrees_with_mpc_designation(name):
    assert pack(name) == mpc_designation.pack(name)
    assert unpack(mpc_designation.pack(name)) == name


class TestCanonical:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ("K08T03C", "2008 TC3"),
            ("2008TC3", "2008 TC3"),
            ("2008 tc3", "2008 TC3"),
            (" 2008  TC3 ", "2008 TC3"),
            ("2024 YR4", "2024 YR4"),
            ("J95X00A", "1995 XA"),
            ("1995XA", "1995 XA"),
            ("PLS2040", "2040 P-L"),
            ("99942.0", "99942"),
            ("(99942)", "99942"),
            ("0433", "0433"),
            ("K0433", "K0433"),
            ("K08T03C1", "K08T03C1"),
            ("2021ab12", "2021ab12"),
            ("C/2020 F3", "C/2020 F3"),
            ("A10bCde", "A10bCde"),
            *((missing, "") for missing in ("", "nan", "NaN", "None", "<NA>", "--", "  ")),
        ],
    )
    def test_spelling(self, given, expected):
        assert canonical([given, "x"]).tolist() == [expected, "x"]

    def test_shape_is_kept(self):
        assert canonical(np.zeros(0, dtype="U3")).shape == (0,)
        assert canonical(np.array([99942, 433])).tolist() == ["99942", "433"]

    def test_every_unpacked_name_is_canonical(self):
        names = ["2008 TC3", "A898 PA", "2040 P-L", "1P", "73P-B", "C/1996 B2", "Jupiter XIII"]
        assert canonical(names).tolist() == names
        for name in names:
            assert canonical([unpack(pack(name))]).tolist() == [name]

    def test_cleaned_names_keep_their_spelling(self):
        assert translated([" K08T03C ", "17.0", "nan"], cell_text).tolist() == ["K08T03C", "17", ""]
