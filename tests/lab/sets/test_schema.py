"""The table of arcs: types, fills, selection."""

from __future__ import annotations

import numpy as np
import pytest

from neoranging.exceptions import DatasetError
from neoranging.lab.sets.schema import COLUMNS, ArcTable


def small() -> ArcTable:
    return ArcTable.make(
        [0, 3, 7], designation=["a", "b"], ra_rad=np.arange(7.0), station=["G96", "703"]
    )


def test_columns_are_turned_into_the_types_of_the_schema():
    table = ArcTable.make([0, 3], H_mag=[18], U=[2], is_close=True)
    assert table["H_mag"].dtype == np.float64
    assert table["U"].dtype == np.int8
    assert table["is_close"].tolist() == [True]
    assert table["n_obs"].tolist() == [3]


def test_what_was_never_given_is_filled_or_refused():
    table = small()
    assert np.isnan(table["rho_geo_au"]).all()
    assert table["U"].tolist() == [-1, -1]
    assert table["stations"].tolist() == ["G96"] * 3 + ["703"] * 4
    with pytest.raises(DatasetError, match="no column 'night'"):
        table["night"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"rho": [1.0]}, "no column 'rho'"),
        ({"ra_rad": [1.0]}, r"needs the shape \(3,\)"),
        ({"U": [300]}, "no int8"),
        ({"night": [1.5]}, "no int32"),
    ],
)
def test_wrong_columns_are_refused(columns, message):
    with pytest.raises(DatasetError, match=message):
        ArcTable.make([0, 3], **columns)


def test_every_name_states_its_unit():
    units = {"d", "rad", "au", "mag", "arcsec", "rad/d", "au/d"}
    for name, column in COLUMNS.items():
        assert column.unit in units | {""}
        if column.unit == "d":
            assert name.endswith(("_d", "_mjd_tdb"))
        elif column.unit and name != "mag":
            assert name.endswith("_" + column.unit.replace("/", "_"))


def test_take_and_concatenate_keep_observations_with_their_arc():
    table = small()
    turned = table.take([1, 0])
    assert turned["ra_rad"].tolist() == [3, 4, 5, 6, 0, 1, 2]
    assert turned["designation"].tolist() == ["b", "a"]
    assert table.take(slice(1, None))["ra_rad"].tolist() == [3, 4, 5, 6]
    assert len(table.take([])) == 0
    masked = table.take([False, True])
    again = ArcTable.concatenate([masked, table.take([0])])
    assert again["ra_rad"].tolist() == turned["ra_rad"].tolist()
    assert again.offsets.tolist() == [0, 4, 7]
    assert len(ArcTable.concatenate([])) == 0


def test_concatenate_fills_a_column_that_one_table_lacks():
    table = small()
    joined = ArcTable.concatenate([table, table.with_columns(rho_geo_au=[0.1, 0.2])])
    assert np.isnan(joined["rho_geo_au"][:2]).all()
    assert joined["rho_geo_au"][2:].tolist() == [0.1, 0.2]


def test_frame_has_one_row_per_arc():
    frame = small().to_frame()
    assert frame["designation"].tolist() == ["a", "b"]
    assert "ra_rad" not in frame.columns


def test_repr_counts():
    assert repr(small()) == "<ArcTable: 2 arcs of 2 objects, 7 observations>"
