"""
A messy file and its report
===========================

Files of observations come with replaced records, radar echoes, two-line records that lost a line,
typing errors, and stations nobody knows. None of that should cost the file, and none of it should
vanish. This example reads a made-up file that has one of everything.
"""

# %%
# The file
# --------

import textwrap
import warnings

import matplotlib.pyplot as plt
from astropy import units as u
from astropy.coordinates import EarthLocation
from astropy.table import QTable

import neoranging as nr

path = nr.sample("messy")
for number, line in enumerate(path.read_text().splitlines(), start=1):
    print(f"{number:3d} {line}")

# %%
# Reading it
# ----------
# The format is recognised by its content. One warning names the station that is in no list; in a
# script it would be seen, here it is caught and shown.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    table = QTable.read(path)
for warning in caught:
    print(textwrap.fill(f"{warning.category.__name__}: {warning.message}", 88))

# %%
# The report accounts for every record: those in the table and those set aside, with line and
# reason. A record of two lines counts once, comments and headers are no records.

report = table.meta["report"]
print(report)

# %%
# It is an object, too: to count, to look up, to assert in a pipeline.

assert report.n_read == report.n_used + report.n_set_aside
for entry in report.set_aside:
    print(f"line {entry.line:2d}  {entry.reason.name:24} {entry.detail}")

# %%
# What was kept
# -------------
# The observations of the spacecraft and of the roving observer brought their places along; the
# unknown station has none, and is not taken for the geocentre.

for row in table:
    print(f"line {row['line']:2d}  {row['designation']:10} {row['station']}  {row['kind']}")

# %%
# From observations to tracklets
# ------------------------------
# The second account: which observations found a place in a tracklet, and why the others did not.

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    tracklets = nr.read_tracklets(path)
print(tracklets.report)

# %%
# An estimate that needs the place of an unknown station has the status ``UNKNOWN_OBSERVER``. With
# the place registered, the same file is read without a warning.

place = EarthLocation(lat=32.4 * u.deg, lon=-110.7 * u.deg, height=2000 * u.m)
nr.register_observatory("ZZZ", place, "a made-up dome")
print(nr.read_tracklets(path))

# %%
# The whole account in one figure:

counts = {reason.name: count for reason, count in report.reasons.items()}
counts = {"used": report.n_used, **counts}
fig, ax = plt.subplots(figsize=(7.0, 3.2), layout="constrained")
bars = ax.barh(list(counts), list(counts.values()), color=["#56B4E9", *["#E69F00"] * len(counts)])
ax.bar_label(bars, padding=3)
ax.invert_yaxis()
ax.set_xlabel("number of records")
ax.set_title(f"{report.source}: {report.n_read} records")
plt.show()
