"""Which format a text of observations has, and what to say of one that has none.

A text is of a format if that format's reader takes it: the recognisers look at lines as the readers
do, however far down the first record stands.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

from neoranging.exceptions import ObservationFormatError
from neoranging.observations.formats import FORMATS, load
from neoranging.observations.source import Text, TextSource
from neoranging.observations.wrapping import JSON_ADVICE, is_html, is_json, read_text

__all__ = ["read_observations", "recognise"]

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


def read_observations(source: TextSource, *, format: str | None = None, **options: Any) -> Any:  # noqa: A002 (the name astropy's readers use)
    """Read observations of any format.

    Parameters
    ----------
    source : str, path-like, bytes, file object or iterable of str
        File, text or lines; also a saved page of HTML or an answer in JSON with records in it.
    format : str, optional
        Name of the format; recognised by the content when left out.
    **options
        For the reader, such as ``default_sigma``.

    Returns
    -------
    QTable

    Raises
    ------
    ObservationFormatError
        If the content is of no format; the message is that of the format which comes nearest.
    OSError
        If a file cannot be opened.
    """
    text = read_text(source)
    name = format or recognise(text.content)
    if name is None:
        _refuse(text)
    return load(FORMATS[name].reader)(text, **options)


def _refuse(text: Text) -> NoReturn:
    """Raise the error of the reader that comes nearest to taking a text."""
    what = f"{text.name} is" if text.name else "this is"
    content = text.content
    if not content.strip():
        raise ObservationFormatError(f"{what} empty: give a file that holds observations")
    none = f"{what} no file of observations ({', '.join(FORMATS)})"
    if is_json(content):
        raise ObservationFormatError(f"{none}: {JSON_ADVICE}")
    if is_html(content):
        raise ObservationFormatError(
            f"{none}: it is a page of HTML without records in <pre>; save the records as text"
        )
    if _BINARY in content[:WINDOW]:
        raise ObservationFormatError(f"{none}: it holds zero bytes, which no text does")
    likeness = {name: load(entry.likeness)(content) for name, entry in FORMATS.items()}
    nearest = max(likeness, key=lambda name: likeness[name])
    if likeness[nearest]:
        try:
            load(FORMATS[nearest].reader)(text)
        except ObservationFormatError as error:
            message = f"{none}; nearest is {nearest}, whose reader says: {error}"
            raise ObservationFormatError(message) from error
    first = content.split(b"\n", 1)[0][:_SHOWN].decode("utf-8", "replace")
    raise ObservationFormatError(
        f"{none}: no line of it looks like a record, the first is {first!r}. Give another file, or "
        "name its format"
    )
