"""Text of observations inside what services wrap around it: pages of HTML and answers in JSON.

The services of the Minor Planet Center show records within ``<pre>`` of a page; its Observations
API answers with a list of one object, whose value is the text of a format (``OBS80``, ``XML``) or a
list of records with the fields of ADES (``ADES_DF``).
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from typing import Any, Final

from neoranging.observations.source import Text, TextSource, is_text, read_source

JSON_ADVICE: Final = (
    "this is JSON without records of observations: needed is an answer of the MPC's Observations "
    "API (OBS80, XML or ADES_DF). Orbit tools make JSON of .rwo files, of which the original text "
    "is to be had from NEODyS or the NEO Coordination Centre"
)

_PRE: Final = re.compile(r"<(/?)pre\b[^<>]*>", re.IGNORECASE)
_TAG: Final = re.compile(r"</?[A-Za-z][^<>\n]*>")
_HTML: Final = re.compile(rb"<(?:!doctype\s+html|html|head|body|pre)\b", re.IGNORECASE)
_HEAD: Final = 4096
API_ANSWERS: Final = ("ADES_DF", "XML", "OBS80", "OBS_DF")
"""Names of the same observations in an answer of the Observations API, best first."""


def read_text(source: TextSource) -> Text:
    """Return the text of observations in a source and the name of the source.

    Parameters
    ----------
    source : TextSource
        As for `read_source`.

    Returns
    -------
    Text
        Content without the HTML or JSON around it. Lines of a page keep their numbers.
    """
    if isinstance(source, Text):
        return source
    text = read_source(source)
    records = ""
    if is_html(text.content):
        records = _preformatted(text.content.decode("utf-8", "replace"))
    elif is_json(text.content):
        records = _in_json(text.content)
    return Text(records.encode("utf-8", "replace"), text.name) if records.strip() else text


def is_html(content: bytes) -> bool:
    """True if the content is a page of HTML."""
    head = content[:_HEAD].lstrip()
    return head.startswith(b"<") and _HTML.search(head) is not None


def is_json(content: bytes) -> bool:
    """True if the content begins as JSON does."""
    return content[:_HEAD].lstrip()[:1] in (b"{", b"[", b'"')


def _preformatted(page: str) -> str:
    """Text within ``<pre>``, without tags; of the rest only the line ends."""
    pieces: list[str] = []
    inside, position = False, 0
    for tag in _PRE.finditer(page):
        pieces.append(_shown(page[position : tag.start()], inside))
        inside, position = not tag[1], tag.end()
    pieces.append(_shown(page[position:], inside))
    return "".join(pieces)


def _shown(piece: str, inside: bool) -> str:
    if not inside:
        return "\n" * piece.count("\n")
    return html.unescape(_TAG.sub("", piece)).replace("\N{NO-BREAK SPACE}", " ")


def _in_json(content: bytes) -> str:
    """Text of records in an answer, "" if there is none."""
    try:
        return "\n".join(_texts(json.loads(content)))
    except (ValueError, RecursionError):  # no JSON, or nested beyond any answer
        return ""


def _texts(answer: Any) -> Iterator[str]:
    """Texts in an answer: strings, lists of lines, and lists of records with fields of ADES."""
    if isinstance(answer, str):
        if is_text(answer):
            yield answer.rstrip("\n")
    elif isinstance(answer, Mapping):
        # one answer may hold the same observations in several formats
        same = [answer[key] for key in API_ANSWERS if answer.get(key)]
        for value in same[:1] or answer.values():
            yield from _texts(value)
    elif isinstance(answer, list):
        records = [item for item in answer if _is_record(item)]
        if records and len(records) == len(answer):
            yield from _as_psv(records)
        else:
            for item in answer:
                yield from _texts(item)


def _is_record(item: Any) -> bool:
    """True if an item is a record of ADES: its fields, and the time as the standard writes it."""
    if not isinstance(item, Mapping):
        return False
    fields = {name.lower(): value for name, value in item.items()}
    time = fields.get("obstime")
    return "stn" in fields and isinstance(time, str) and time.endswith("Z")


def _as_psv(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    names = list(dict.fromkeys(name for record in records for name in record))
    yield "|".join(map(_cell, names))
    for record in records:
        yield "|".join(_cell(record.get(name)) for name in names)


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and isnan(value)):
        return ""
    return " ".join(str(value).replace("|", "/").split())
