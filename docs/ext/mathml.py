"""Render formulae as MathML when the pages are built.

Every current browser draws MathML itself, so the pages need no script from elsewhere and read the
same without a network. The conversion is that of docutils.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.locale import __
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

_logger = logging.getLogger(__name__)


def _mathml(translator: Any, node: nodes.math | nodes.math_block) -> str:
    text = node.astext().strip()
    block = isinstance(node, nodes.math_block)
    if block and r"\\" in text and r"\begin" not in text:
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    try:
        return str(tex2mathml(text, as_block=block))
    except MathError as error:
        _logger.warning(__("cannot render %r: %s"), text, error, location=node)
        return f"<code>{translator.encode(text)}</code>"


def _visit_inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(_mathml(translator, node))
    raise nodes.SkipNode


def _visit_block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(translator.starttag(node, "div", CLASS="math notranslate nohighlight"))
    if node.get("number"):
        number = get_node_equation_number(translator, node)
        translator.body.append(f'<span class="eqno">({number})')
        translator.add_permalink_ref(node, __("Link to this equation"))
        translator.body.append("</span>")
    translator.body.append(_mathml(translator, node) + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer under the name ``mathml``."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
