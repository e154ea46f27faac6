"""Names of columns of observations, as archives and surveys use them, and what they mean.

Names are compared without regard to case and to blanks around them. Where a name alone does not
settle a unit or a time scale, its company may: ``FAMILIES`` are tables that a few names of their
own betray.

Sources: the ADES definition (IAU-ADES/ADES-Master, adesmaster.xml); the Observations API of the
Minor Planet Center (Smithsonian/mpc-public, observations-api.md: ``ADES_DF`` has the fields of
ADES, in lower case as in its table ``obs_sbn``); ``astroquery.mpc.MPC.get_observations`` (its
docstring: epoch as Julian date, RA and DEC in degrees); mpcq (src/mpcq/observations.py); layup
(tests/data, names of ADES in CSV); ZTF (ztf-avro-alert/docs/schema.md: ``jd`` is the *start* of
the exposure); Rubin (lsst/sdm_schemas, DiaSource: ``midpointMjdTai``, ``raErr`` in degrees,
``psfFlux`` in nJy); THOR and adam_core (InputObservations: ``ra_sigma`` in degrees of the
coordinate itself; scale of ``time`` kept out of the columns); heliolinx (header of its files of
detections).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

SCALES: Final = ("utc", "tai", "tt", "tdb")
"""Time scales of epochs."""


class Field(NamedTuple):
    """Meaning of a column."""

    column: str
    """Plain column of ours."""
    unit: str = ""
    """Unit of bare numbers; of a time ``"mjd"`` or ``"jd"``; ``"?"`` if nothing fixes it."""
    scale: str = ""
    """Time scale that the name fixes; ``"?"`` if none, ``"start"`` for the start of an exposure."""
    cos_dec: bool = True
    """True if an error in right ascension includes cos(dec)."""


def _each(names: str, field: Field) -> dict[str, Field]:
    return dict.fromkeys(names.split(), field)


FIELDS: Final[Mapping[str, Field]] = MappingProxyType(
    {
        # Time: our own and those whose scale is fixed first, in the order of preference
        **_each("obstime obstime_utc time_utc", Field("obstime", "mjd", "utc")),
        **_each("obstime_mjd", Field("obstime", "mjd", "utc")),
        **_each("midpointmjdtai", Field("obstime", "mjd", "tai")),
        **_each("mjd mjd_mid mjd_avg mjd-avg midmjd mid_mjd", Field("obstime", "mjd", "?")),
        **_each("jd jd_mid mid_jd", Field("obstime", "jd", "?")),
        **_each(
            "time epoch obs_time observation_time timestamp datetime date_time date date-avg"
            " date_mid midtime mid_time t_mid time_mid",
            Field("obstime", "?", "?"),
        ),
        **_each(
            "exposure_start exp_start expstart mjd_start mjdstart jd_start start_mjd start_jd"
            " mjd-obs mjd_obs mjdobs mjd-beg date-obs date_obs dateobs date-beg obsdate obs_date"
            " tstart t_start start_time time_start starttime obs_start obsstart shutter_open"
            " t_min obsmjd obsjd",
            Field("obstime", "?", "start"),
        ),
        **_each(
            "exptime exp_time exposure_time exposuretime texp t_exp exp t_exptime"
            " visitexposuretime",
            Field("exposure_time", "s"),
        ),
        # Directions
        **_each(
            "ra ra_deg raj2000 ra_j2000 ra_icrs alpha_j2000 right_ascension", Field("ra", "deg")
        ),
        **_each("ra_hours ra_hour ra_h", Field("ra", "hourangle")),
        **_each(
            "dec decl dec_deg decl_deg dej2000 dec_j2000 decj2000 de_icrs dec_icrs delta_j2000"
            " declination",
            Field("dec", "deg"),
        ),
        # Errors; those of ADES include cos(dec)
        **_each("sigma_ra sigma_ra_arcsec rmsra ra_rms", Field("sigma_ra", "arcsec")),
        **_each("sigma_dec sigma_dec_arcsec rmsdec dec_rms", Field("sigma_dec", "arcsec")),
        **_each(
            "raerr ra_err ra_error e_ra e_raj2000 err_ra sigra sig_ra ra_sigma ra_unc raunc"
            " ra_std uncertainty_ra ra_uncertainty",
            Field("sigma_ra", "?"),
        ),
        **_each(
            "decerr dec_err dec_error e_dec e_dej2000 err_dec sigdec sig_dec dec_sigma dec_unc"
            " decunc dec_std uncertainty_dec dec_uncertainty",
            Field("sigma_dec", "?"),
        ),
        # Observer
        **_each(
            "station stn obscode obs_code observatory observatory_code obsy_code mpc_code mpccode"
            " station_code mpc_station",
            Field("station"),
        ),
        # Light; that of a flux in nJy is AB
        **_each("mag magnitude magpsf psfmag", Field("mag", "mag")),
        **_each("psfflux", Field("mag", "nJy")),
        **_each("band filter filt filter_band filtername", Field("band")),
        # Names: of the object in the order of preference (each row takes the first that it has)
        **_each(
            "designation permid provid artsat number desig primary_designation"
            " unpacked_provisional_designation unpacked_primary_provisional_designation object"
            " object_id objectname object_name target name ssnamenr ssobjectid",
            Field("designation"),
        ),
        **_each(
            "tracklet tracklet_id trackletid trkid trackid track_id trk track",
            Field("tracklet"),
        ),
        **_each("program prog", Field("program")),
        # Codes of the 80-column format, and what our own tables carry besides
        "trksub": Field("trkSub"),
        **_each("catalog astcat", Field("catalog")),
        "note2": Field("note2"),
        **_each("selected selected_flag", Field("selected")),
        "kind": Field("kind"),
        "observer_itrf": Field("observer_itrf", "m"),
        "observer_gcrs": Field("observer_gcrs", "km"),
        # Place of a moving observer in ADES
        **{name: Field(name) for name in ("sys", "ctr", "pos1", "pos2", "pos3")},
    }
)
"""Meaning of a name in lower case; of several for one column the first is preferred."""

COALESCED: Final = ("designation", "tracklet")
"""Columns that rows take from the first of several names that has a value."""

_TIME_WITH_SCALE: Final = re.compile(
    r"(?P<kind>mjd|jd|bjd|epoch|time|obstime|obs_time|t|date|datetime|midpoint|mid|midtime)"
    r"[ _.-]?(?P<mjd>mjd|jd)?[ _.-]?(?P<scale>utc|tai|tt|tdb)"
    r"|(?P<scale2>utc|tai|tt|tdb)[ _.-]?(?P<mjd2>mjd|jd)"
)
"""Names of times that end (or begin) with their scale, as in ``mjd_tdb`` or ``epoch_tt``."""

ZTF: Final = "alerts of ZTF"
FAMILIES: Final[Mapping[str, tuple[frozenset[str], Mapping[str, Field]]]] = MappingProxyType(
    {
        "Rubin's DiaSource": (
            frozenset({"midpointmjdtai"}),
            {"raerr": Field("sigma_ra", "deg"), "decerr": Field("sigma_dec", "deg")},
        ),
        "observations of THOR": (
            frozenset({"ra_sigma", "observatory_code"}),
            {
                "ra_sigma": Field("sigma_ra", "deg", cos_dec=False),
                "dec_sigma": Field("sigma_dec", "deg"),
            },
        ),
        "observations of astroquery.mpc": (
            frozenset({"epoch", "observatory", "desig"}),
            {"epoch": Field("obstime", "jd", "utc")},
        ),
        "observations of astroquery.mpc (numbered)": (
            frozenset({"epoch", "observatory", "number"}),
            {"epoch": Field("obstime", "jd", "utc")},
        ),
        ZTF: (frozenset({"jd", "fid"}), {"jd": Field("obstime", "jd", "start")}),
    }
)
"""Tables by the names that betray them, and what further names mean in them."""

_WITH_UNIT: Final = re.compile(r"[ _]*[\[(] *([a-z]+) *[\])]$")
"""A unit or a time scale as headers give it, as in ``ra [deg]`` and ``time (utc)``."""

_ADES: Final = (
    "permID provID artSat trkSub obsID obsSubID trkID mode stn sys ctr pos1 pos2 pos3"
    " vel1 vel2 vel3 posCov11 posCov12 posCov13 posCov22 posCov23 posCov33 prog obsTime"
    " rmsTime ra dec raStar decStar obsCenter deltaRA deltaDec dist pa rmsRA rmsDec rmsDist"
    " rmsPA rmsCorr astCat mag rmsMag band fltr photCat photAp photMod nucMag logSNR seeing"
    " exp rmsFit nStars com frq trx rcv delay rmsDelay doppler rmsDoppler ref disc subFmt"
    " subFrm precTime precRA precDec uncTime notes remarks deprecated localUse shapeOcc"
)
ADES_NAMES: Final = MappingProxyType({name.lower(): name for name in _ADES.split()})
"""Spelling of the fields of ADES, by their names in lower case."""

_UNUSED: Final = (
    "line discovery sigma_source note1 phottype comettype observer id obsid diasourceid diaobjectid"
    " ssobjectreassoctime exposure_id night index ra_dec_cov magerr mag_sigma rmsmag sigmapsf"
    " psffluxerr snr trail_len trail_pa traillength trailangle sigmag sig_across sig_along image"
    " idstring known_obj det_qual origindex visit detector ccdvisitid fid candid pid objectid"
    " obstype status submission_id created_at updated_at requested_provid obssubid"
)
PASSED_OVER: Final = frozenset(ADES_NAMES) | frozenset(_UNUSED.split())
"""Fields that are recognised, and of no use here."""

_LIKENESS: Final = 0.8
"""Likeness (difflib) from which a name is thought to be another one misspelt."""


@dataclass(frozen=True)
class Naming:
    """Columns of a table by what they mean.

    Attributes
    ----------
    columns : mapping of str to tuple of str
        Columns of the table for each of ours, the preferred one first. There are several only of
        those in ``COALESCED``.
    fields : mapping of str to Field
        Meaning of each column of the table that is taken.
    clashes : tuple of str
        Sentences on columns of which none is preferred; the table cannot be read.
    remarks : tuple of str
        Sentences on columns that look like known ones and are not taken.
    family : str
        Whose table it is, "" if no matter.
    """

    columns: Mapping[str, tuple[str, ...]]
    fields: Mapping[str, Field]
    clashes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    family: str = ""

    def __contains__(self, column: str) -> bool:
        return column in self.columns


def name_columns(names: Sequence[str], with_unit: Collection[str] = ()) -> Naming:
    """Find out what the columns of a table mean.

    Parameters
    ----------
    names : sequence of str
        Names as they stand in the table.
    with_unit : collection of str
        Those of them that carry a unit of their own, so that their name need not fix it.
    """
    key = {name: _key(str(name)) for name in names}
    present = set(key.values())
    family = next((family for family, (marks, _) in FAMILIES.items() if marks <= present), "")
    special = FAMILIES[family][1] if family else {}
    meanings: dict[str, list[str]] = {}
    fields: dict[str, Field] = {}
    remarks: list[str] = []
    for name in names:
        field = special.get(key[name]) or _field(key[name])
        if field is None:
            remarks += _near_miss(name, key[name])
        elif field.unit == "?" and field.column.startswith("sigma") and name not in with_unit:
            remarks.append(
                f"the column {name} is not taken: nothing says whether it is in degrees or "
                f"arcseconds, and whether it includes cos(dec); as {field.column} [arcsec, with "
                "cos(dec)] it is"
            )
        else:
            meanings.setdefault(field.column, []).append(name)
            fields[name] = field
    rank = {name: i for i, name in enumerate(FIELDS)}
    doubt = {"?": 1, "start": 2}  # names that fix a scale go before those that do not
    columns: dict[str, tuple[str, ...]] = {}
    clashes: list[str] = []
    for column, candidates in meanings.items():
        ordered = sorted(
            candidates,
            key=lambda name: (doubt.get(fields[name].scale, 0), rank.get(key[name], 0)),
        )
        if column in COALESCED:
            columns[column] = tuple(ordered)
            continue
        best, *others = ordered
        columns[column] = (best,)
        for other in others:
            fields.pop(other)
        if not others:
            continue
        by_rank = column in {"obstime", "mag", "exposure_time"}
        if key[best] not in {key[other] for other in others} if by_rank else best == column:
            remarks.append(
                f"{_listed(others)} {'is' if len(others) == 1 else 'are'} not taken: {best} "
                f"already gives {column}"
            )
        else:
            clashes.append(f"{_listed([best, *others])} all mean {column}: drop all but one")
    return Naming(columns, fields, tuple(clashes), tuple(remarks), family)


def _key(name: str) -> str:
    """Name in lower case; ``#`` before it goes, and a unit behind it is joined to it."""
    return _WITH_UNIT.sub(r"_\1", name.lstrip("# ").strip().lower())


def _field(name: str) -> Field | None:
    if name in FIELDS:
        return FIELDS[name]
    match = _TIME_WITH_SCALE.fullmatch(name)
    if match is None:
        return None
    kinds = [match[group] or "" for group in ("kind", "mjd", "mjd2")]
    unit = next((kind for kind in kinds if kind in {"mjd", "jd"}), "?")
    return Field("obstime", unit, match["scale"] or match["scale2"])


def _near_miss(name: str, key: str) -> list[str]:
    """A remark on a name that is none, and looks like one."""
    if not key or key in PASSED_OVER or key.startswith("unnamed"):
        return []
    squeezed = re.sub(r"[^a-z0-9]", "", key)
    near = [one for one in FIELDS if re.sub(r"[^a-z0-9]", "", one) == squeezed]
    if not near and len(key) > 3:
        near = difflib.get_close_matches(key, FIELDS, 1, _LIKENESS)
    if not near:
        return []
    spelling = ADES_NAMES.get(near[0], near[0])
    column = FIELDS[near[0]].column
    means = "" if spelling == column else f" ({column})"
    return [f"the column {name} is not taken; is it {spelling}{means} misspelt?"]


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
