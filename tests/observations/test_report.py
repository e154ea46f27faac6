"""Reports: the account balances and reads well."""

import copy
import pickle

import pytest

from neoranging.exceptions import NeoRangingError
from neoranging.observations.report import Note, ReadReport, Reason, SetAside


def make_report(n_radar=1):
    radar = tuple(SetAside(k, Reason.RADAR, f"text {k}") for k in range(1, n_radar + 1))
    bad = SetAside(40, Reason.MALFORMED, "odd line", "no station")
    return ReadReport(
        n_read=10 + n_radar + 1,
        n_used=10,
        set_aside=(*radar, bad),
        notes=(Note(3, "unknown station 'XXX'"), Note(0, "cut lines")),
        n_ignored_lines=2,
        source="night.obs80",
    )


def test_counts_by_reason():
    report = make_report(3)
    assert report.n_set_aside == 4
    assert report.reasons == {Reason.RADAR: 3, Reason.MALFORMED: 1}


def test_an_account_that_does_not_balance_is_refused():
    with pytest.raises(NeoRangingError, match="5 records were read but 4 used"):
        ReadReport(n_read=5, n_used=4)


def test_printed_report_names_every_reason_and_shortens_long_lists():
    text = str(make_report(9))
    assert text.splitlines()[0] == (
        "night.obs80: 20 records, 10 used, 10 set aside, 2 lines that are no records"
    )
    assert "9 RADAR" in text
    assert "... and 4 more" in text
    assert "line 40: no station" in text
    assert "note: line 3: unknown station 'XXX'" in text
    assert "note: cut lines" in text
    assert str(make_report().set_aside[-1]) == "line 40: cannot be parsed (no station): odd line"


def test_headline():
    assert make_report().headline(reasons=True) == (
        "night.obs80: 12 records, 10 used, 2 set aside (1 RADAR, 1 MALFORMED), "
        "2 lines that are no records"
    )
    assert str(ReadReport(1, 1)) == "1 record, 1 used, 0 set aside"
    assert str(ReadReport(0, 0, n_ignored_lines=1)).endswith("aside, 1 line that is no record")


def test_report_is_its_own_copy_and_pickles():
    report = make_report()
    assert copy.deepcopy(report) is report
    assert copy.copy(report) is report
    assert pickle.loads(pickle.dumps(report)) == report
