"""Tables of observations as users have them."""

import numpy as np
from astropy import units as u
from astropy.table import QTable
from astropy.time import Time


def table_of(mjd, designation="x", station="G96", **columns):
    """Observations at epochs [MJD UTC], along a short line on the sky."""
    n = len(mjd)
    table = QTable(
        {
            "designation": np.broadcast_to(np.asarray(designation, dtype=np.str_), n),
            "obstime": Time(np.asarray(mjd, dtype=float), format="mjd", scale="utc"),
            "ra": np.linspace(10.0, 10.1, n) << u.deg,
            "dec": np.linspace(5.0, 5.1, n) << u.deg,
            "station": np.broadcast_to(np.asarray(station, dtype=np.str_), n),
        }
    )
    for name, values in columns.items():
        table[name] = values
    return table
