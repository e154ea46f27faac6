"""Write the sample observations that neoranging ships, and the ranges to hold estimates against.

Observations: positions published by the Minor Planet Center of the International Astronomical
Union, https://www.minorplanetcenter.net, typed here as numbers and written by neoranging itself.

Ranges: of 2014 AA, 2008 TC3 and 2008 EK68 from the ephemerides of JPL (Horizons system), at each
observation, from the place of its observer. Those of 2024 YR4 from an orbit fitted to 23 positions
of 26 December 2024 to 21 January 2025, with the planets and the Moon as perturbers (residuals
0.15 arcsec), because the positions of the discovery itself determine no range.

The file "messy" is made up.

Run it from anywhere; it overwrites::

    python docs/tools/make_samples.py
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from astropy import units as u
from astropy.coordinates import Angle
from astropy.table import QTable
from astropy.time import Time

import neoranging  # noqa: F401 (registers the formats)

OUTPUT = Path(__file__).resolve().parents[2] / "neoranging/data/samples"

JPL = "JPL Horizons"
FIT = "orbit fit, 26 days"


class Night(NamedTuple):
    """Observations of one object by one station in one night.

    A row holds day (UTC), right ascension, declination, magnitude, range [au], range-rate [au/d].
    The asterisk of a discovery stands after the day.
    """

    designation: str
    station: str
    program: str
    note2: str
    band: str
    catalog: str
    month: str
    truth: str
    rows: str


YR4 = (
    Night(
        "2024 YR4",
        "703",
        "2",
        "C",
        "G",
        "W",
        "2024-12",
        FIT,
        """
        26.422318   | 09 30 31.271 | -07 15 21.76 | 16.0 | 0.0111409 | 0.0068522
        26.424567   | 09 30 21.995 | -07 13 39.67 | 15.8 | 0.0111563 | 0.0068587
        26.426810   | 09 30 12.790 | -07 11 58.22 | 16.3 | 0.0111717 | 0.0068653
        """,
    ),
    Night(
        "2024 YR4",
        "W68",
        "",
        "C",
        "o",
        "V",
        "2024-12",
        FIT,
        """
        27.238073*  | 08 56 40.968 | -00 16 11.93 | 16.54 | 0.0170577 | 0.0074078
        27.240334   | 08 56 36.905 | -00 15 27.90 | 15.80 | 0.0170745 | 0.0074118
        27.267322   | 08 55 48.917 | -00 06 50.04 | 16.28 | 0.0172751 | 0.0074611
        """,
    ),
    Night(
        "2024 YR4",
        "Q62",
        "v",
        "B",
        "V",
        "Z",
        "2024-12",
        FIT,
        """
        27.70307    | 08 46 02.00 | +01 49 02.9 | 17.1 | 0.0205780 | 0.0076676
        27.70500    | 08 45 59.51 | +01 49 28.0 | 17.4 | 0.0205928 | 0.0076709
        27.70668    | 08 45 57.39 | +01 49 51.3 | 17.3 | 0.0206057 | 0.0076738
        """,
    ),
    Night(
        "2024 YR4",
        "T12",
        "0",
        "C",
        "G",
        "V",
        "2024-12",
        FIT,
        """
        28.523668   | 08 34 21.093 | +04 04 36.05 | 17.33 | 0.0268986 | 0.0077730
        28.523899   | 08 34 20.912 | +04 04 37.88 | 17.33 | 0.0269004 | 0.0077734
        28.524107   | 08 34 20.749 | +04 04 39.53 | 17.32 | 0.0269020 | 0.0077738
        """,
    ),
    Night(
        "2024 YR4",
        "W88",
        "!",
        "C",
        "G",
        "V",
        "2024-12",
        FIT,
        """
        30.20309    | 08 21 53.873 | +06 37 19.88 | 17.9 | 0.0400628 | 0.0077916
        30.23490    | 08 21 41.839 | +06 39 13.97 | 17.7 | 0.0403113 | 0.0078358
        """,
    ),
)

IMPACTORS = (
    Night("2014 AA", "G96", "", "C", "V", "q", "2014-01", JPL, """
        01.26257*   | 05 32 35.55 | +13 59 45.0 | 19.1 | 0.002745128 | -0.002930172
        01.26896    | 05 32 28.89 | +13 59 36.7 | 18.8 | 0.002726431 | -0.002921934
        01.28176    | 05 32 15.27 | +13 59 16.4 | 18.9 | 0.002689135 | -0.002905542
        01.30701    | 05 31 47.92 | +13 58 21.1 | 19.0 | 0.002616171 | -0.002874038
        01.30828    | 05 31 46.54 | +13 58 17.9 | 19.0 | 0.002612522 | -0.002872496
        01.30955    | 05 31 45.15 | +13 58 14.6 | 19.1 | 0.002608875 | -0.002870958
        01.31081    | 05 31 43.79 | +13 58 11.1 | 18.9 | 0.002605258 | -0.002869437
        """),
    Night("2008 TC3", "G96", "", "C", "V", "r", "2008-10", JPL, """
        06.27767*   | 23 17 00.78 | +07 49 22.7 | 18.9 | 0.003255028 | -0.003681616
        06.28762    | 23 16 54.58 | +07 49 25.8 | 18.8 | 0.003218460 | -0.003668884
        06.29770    | 23 16 48.36 | +07 49 27.6 | 18.8 | 0.003181541 | -0.003656298
        06.30770    | 23 16 42.34 | +07 49 28.7 | 19.1 | 0.003145039 | -0.003644178
        06.32199    | 23 16 33.95 | +07 49 28.0 | 18.8 | 0.003093083 | -0.003627598
        06.33431    | 23 16 27.03 | +07 49 25.5 | 18.8 | 0.003048475 | -0.003614105
        06.34667    | 23 16 20.48 | +07 49 21.2 | 18.8 | 0.003003884 | -0.003601409
        06.35904    | 23 16 14.38 | +07 49 15.3 | 18.8 | 0.002959409 | -0.003589634
        """),
    Night("2008 TC3", "854", "", "C", "R", "c", "2008-10", JPL, """
        06.34546    | 23 16 20.97 | +07 49 29.8 | 18.1 | 0.003008208 | -0.003602524
        06.34885    | 23 16 19.30 | +07 49 27.2 | 18.5 | 0.002996002 | -0.003599169
        06.35223    | 23 16 17.59 | +07 49 26.9 | 19.0 | 0.002983842 | -0.003595895
        """),
    Night("2008 TC3", "E12", "", "C", "V", "r", "2008-10", JPL, """
        06.63767    | 23 18 14.04 | +09 15 39.0 | 18.2 | 0.001916776 | -0.003628877
        06.63803    | 23 18 13.86 | +09 15 42.4 | 17.4 | 0.001915470 | -0.003628594
        06.63839    | 23 18 13.68 | +09 15 45.7 | 18.0 | 0.001914164 | -0.003628312
        06.63874    | 23 18 13.53 | +09 15 49.5 | 18.0 | 0.001912894 | -0.003628039
        06.63910    | 23 18 13.39 | +09 15 52.2 | 17.6 | 0.001911588 | -0.003627759
        06.64112    | 23 18 12.31 | +09 16 09.5 | 17.9 | 0.001904261 | -0.003626205
        06.64148    | 23 18 12.09 | +09 16 13.0 | 17.7 | 0.001902956 | -0.003625931
        06.64182    | 23 18 11.98 | +09 16 15.9 | 17.7 | 0.001901723 | -0.003625674
        """),
    Night("2008 EK68", "G96", "", "C", "V", "r", "2008-03", JPL, """
        05.44060    | 11 05 06.61 | -00 39 47.7 | 19.9 | 0.010815077 | 0.004850805
        05.44324    | 11 05 10.03 | -00 40 59.8 | 20.6 | 0.010827888 | 0.004854164
        05.47648    | 11 05 51.68 | -00 55 27.1 | 20.8 | 0.010989896 | 0.004892346
        05.47714    | 11 05 52.51 | -00 55 44.6 | 20.6 | 0.010993125 | 0.004893022
        05.47779    | 11 05 53.41 | -00 56 01.8 | 20.0 | 0.010996306 | 0.004893685
        05.47845    | 11 05 54.24 | -00 56 20.0 | 20.1 | 0.010999536 | 0.004894355
        05.47940*   | 11 05 55.38 | -00 56 42.7 | 20.2 | 0.011004186 | 0.004895313
        05.47982    | 11 05 55.91 | -00 56 53.3 | nan  | 0.011006242 | 0.004895734
        """),
)  # fmt: skip

MESSY = """\
# Made-up records of every kind that a reader meets; nothing here was observed.
COD G96
     NRtest1* C2025 03 01.20011 10 14 02.31 -00 12 41.6          19.3 Gr     G96
     NRtest1  C2025 03 01.21507 10 13 44.60 -00 08 37.2          19.2 Gr     G96
     NRtest1  C2025 03 01.23002 10 13 26.86 -00 04 31.9          19.4 Gr     G96
     NRtest1  X2025 03 01.23002 10 13 26.99 -00 04 30.1          19.4 Gr     G96
     NRtest1  C2025 03 01.24498 10 13 0?.09 -00 00 25.7          19.3 Gr     G96
     NRtest1  C2025 13 01.24498 10 13 09.09 -00 00 25.7          19.3 Gr     G96
     NRtest1  C2025 03 01.25003 10 13 03.0  +00 00 57            bad  G      G96
     NRtest1  C2025 03 01.31250 10 11 47.55 +00 18 03.4          19.2 Gr     ZZZ
     NRtest1  C2025 03 01.33120 10 11 25.18 +00 23 09.6          19.1 Gr     ZZZ
     NRtest1  S2025 03 02.02750 09 58 02.11 +03 21 44.9                      C51
     NRtest1  s2025 03 02.02750 1 - 1204.6210 + 5310.0850 + 4388.1190        C51
     NRtest1  S2025 03 02.09305 09 56 44.87 +03 38 50.3                      C51
     NRtest1  V2025 03 02.11042 09 56 24.40 +03 43 21.0          18.8 G      247
     NRtest1  v2025 03 02.11042 1 16.280000  +48.070000   610                247
     NRtest1  R2025 03 02.187500   131072000000                  2380 253    253
     NRtest1  r2025 03 02.187500C        1000                       253      253
     NRtest1  s2025 03 02.20000 1 - 1311.0000 + 5270.0000 + 4412.0000        C51
     NRtest2  A2025 03 02.21    07 44.1     +22 10               17.0        809
"""


def observation_table(nights: tuple[Night, ...]) -> QTable:
    """Observation table of nights, with the digits that were published."""
    rows = [
        (night, line.split("|"))
        for night in nights
        for line in night.rows.split("\n")
        if line.strip()
    ]
    days = [fields[0].strip() for _, fields in rows]
    texts = {name: [fields[k].strip() for _, fields in rows] for k, name in ((1, "ra"), (2, "dec"))}
    dates = [f"{night.month}-{day[:2]}" for (night, _), day in zip(rows, days, strict=True)]
    fraction = [float(day[2:].rstrip("*")) for day in days]
    time = Time(dates, scale="utc")
    mag, rho, rho_dot = np.array([[float(x) for x in fields[3:]] for _, fields in rows]).T
    return QTable(
        {
            "designation": [night.designation for night, _ in rows],
            "obstime": Time(time.jd1, time.jd2 + fraction, format="jd", scale="utc"),
            "ra": Angle(texts["ra"], u.hourangle).to(u.deg).view(u.Quantity),
            "dec": Angle(texts["dec"], u.deg).view(u.Quantity),
            "mag": mag,
            "band": [night.band for night, _ in rows],
            "station": [night.station for night, _ in rows],
            "note2": [night.note2 for night, _ in rows],
            "program": [night.program for night, _ in rows],
            "catalog": [night.catalog for night, _ in rows],
            "discovery": [day.endswith("*") for day in days],
            "time_resolution": [86400.0 * last_digit(day.rstrip("*")) for day in days] * u.s,
            "ra_resolution": [15.0 * last_digit(text) for text in texts["ra"]] * u.arcsec,
            "dec_resolution": [last_digit(text) for text in texts["dec"]] * u.arcsec,
            "range": rho * u.au,
            "range_rate": rho_dot * u.au / u.d,
            "truth": [night.truth for night, _ in rows],
        }
    )


def last_digit(text: str) -> float:
    """Unit of the last digit of a number."""
    return float(10.0 ** -len(text.partition(".")[2]))


def range_lines(table: QTable) -> list[str]:
    """Lines of the table of ranges."""
    lines = ["designation,station,obstime_utc,range_au,range_rate_au_d,source"]
    for row in table:
        time = Time(row["obstime"], precision=3).isot
        numbers = f"{row['range'].value:.9f},{row['range_rate'].value:.9f}"
        lines.append(f'{row["designation"]},{row["station"]},{time},{numbers},"{row["truth"]}"')
    return lines


def main() -> None:
    """Write all files and print their names."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for name, nights in {"2024YR4": YR4, "impactors": IMPACTORS}.items():
        observation_table(nights).write(
            OUTPUT / f"{name}.obs80", format="mpc.obs80", overwrite=True
        )
    (OUTPUT / "messy.obs80").write_text(MESSY, encoding="ascii")
    ranges = range_lines(observation_table(YR4 + IMPACTORS))
    (OUTPUT / "ranges.csv").write_text("\n".join(ranges) + "\n", encoding="ascii")
    for path in sorted(OUTPUT.iterdir()):
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
