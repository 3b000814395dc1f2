"""How Sphinx builds the site: `make docs`.

The source folder is the repository, so that links from page to page are the same here and on a code host.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "jax")
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import reference_pages  # noqa: E402

import kzoo  # noqa: E402

project = "kzoo"
author = copyright = "The kzoo authors"
version = release = kzoo.__version__

extensions = ["myst_parser", "sphinx.ext.viewcode"]
root_doc = "docs/index"
include_patterns = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/**.md",
    "presets/*/README.md",
    "training/*/RESULTS.md",
]
exclude_patterns = [".*", "build", "dist", "runs", "tests", "kzoo"]
# Pages are written by hand from level 1 down; a card or a changelog may skip a level.
suppress_warnings = ["myst.header"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "html_image"]

nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(?!kzoo).*")]  # only our own names must lead somewhere

html_theme = "furo"
html_title = f"kzoo {release}"
html_show_copyright = False
html_static_path = html_css_files = ["site.css"]
smartquotes_action = "qe"  # quotes and ellipses, but no dash for the two hyphens of an option


def setup(app):
    """Write the reference pages from the code, before Sphinx looks for pages."""
    reference_pages.write(HERE / "reference")
    app.connect("build-finished", _first_page)


def _first_page(app, error):
    """Let the site's address lead to its first page."""
    page = f'<!doctype html><meta http-equiv="refresh" content="0; url={root_doc}.html"><title>kzoo</title>\n'
    if not error:
        (Path(app.outdir) / "index.html").write_text(page, encoding="utf-8")
