"""Pages of HTML that need nothing else: the frame that they share, and how they are filled in.

The template ``webpage.html.j2`` has the head, the look of text and tables, and how they print; a
page extends it. Text from files is escaped, and control characters are shown, by its cells.
"""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, PrefixLoader, StrictUndefined

from neoranging.display import visible


def environment(package: str, **filters: Any) -> Environment:
    """Environment in which the templates of a package are filled in.

    Parameters
    ----------
    package : str
        Module whose folder has the templates: they are ``page/NAME``, and the frame that they
        extend is ``frame/webpage.html.j2``.
    **filters
        Functions that the templates use beside those of jinja2 and ``visible``.
    """
    loaders = {"page": PackageLoader(package, ""), "frame": PackageLoader("neoranging", "")}
    made = Environment(
        loader=PrefixLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"visible": visible, **filters}
    return made
