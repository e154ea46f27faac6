"""Format of a text of observations, and errors for a text that has none.

A text is of a format if that format's reader takes it: the recognisers look at lines as the readers
do, however far down the first record stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NoReturn

from neoranging.exceptions import ObservationFormatError
from neoranging.observations.formats import FORMATS, load
from neoranging.observations.source import Text, TextSource
from neoranging.observations.wrapping import JSON_ADVICE, is_html, is_json, read_text

WINDOW: Final = 1 << 18
"""Bytes that are looked at first; the rest only if they do not decide."""

_ORDER: Final = ("ades.xml", "ades.psv", "orbfit.rwo", "mpc.obs80")
"""Formats from the one that is hardest to mistake to the one that is easiest."""

_SHOWN: Final = 60
_BINARY: Final = b"\0"


def recognise(content: bytes) -> str | None:
    """Return the name of the format whose reader takes a text, None if there is none.

    Parameters
    ----------
    content : bytes
        As `neoranging.observations.wrapping.read_text` returns it.
    """
    windows = [content] if len(content) <= WINDOW else [content[:WINDOW], content]
    for window in windows:
        for name in _ORDER:
            if load(FORMATS[name].recogniser)(window):
                return name
    return None


def read_recognised(source: TextSource, **options: Any) -> Any:
    """Read observations in whichever format of `FORMATS` the content is of.

    Parameters
    ----------
    source : TextSource
        File, text or lines; also a saved page of HTML or an answer in JSON with records in it.
    **options
        For the reader, such as ``default_sigma``.

    Returns
    -------
    QTable
    """
    text = read_text(source)
    name = recognise(text.content)
    if name is None:
        refuse(text, FORMATS)
    return load(FORMATS[name].reader)(text, **options)


def refuse(text: Text, formats: Iterable[str]) -> NoReturn:
    """Raise the error of the reader that comes nearest to taking a text.

    Parameters
    ----------
    text : Text
        Content that no recogniser takes.
    formats : iterable of str
        Names of the formats that it could have had, for the message.

    Raises
    ------
    ObservationFormatError
    """
    content = text.content
    none = f"no format of observations is recognised ({', '.join(formats)})"
    if not content.strip():
        raise ObservationFormatError("the content is empty: give a file that holds observations")
    if is_json(content):
        raise ObservationFormatError(f"{none}: {JSON_ADVICE}")
    if is_html(content):
        raise ObservationFormatError(
            f"{none}: this is a page of HTML without records in <pre>; save the records as text"
        )
    if _BINARY in content[:WINDOW]:
        raise ObservationFormatError(f"{none}: it holds zero bytes, which no text does")
    likeness = {name: load(entry.likeness)(content) for name, entry in FORMATS.items()}
    nearest = max(likeness, key=lambda name: likeness[name])
    if likeness[nearest]:
        try:
            load(FORMATS[nearest].reader)(Text(content))
        except ObservationFormatError as error:
            raise ObservationFormatError(f"{none}; nearest is {nearest}: {error}") from error
    first = content.lstrip().split(b"\n", 1)[0][:_SHOWN].decode("utf-8", "replace")
    raise ObservationFormatError(
        f"{none}: no line looks like a record, the first is {first!r}. Give another file, "
        "name its format, or read it by pandas or astropy.table and give the table"
    )
