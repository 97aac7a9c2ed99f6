"""Sphinx's configuration for `make docs`. The sidebar is docs/_toc.yml, and nothing is fetched."""

from sphinx.application import Sphinx

project = "Utility calibration"
html_title = project
html_theme = "furo"
extensions = ["myst_parser", "sphinx_external_toc", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

external_toc_path = "docs/_toc.yml"
# Sphinx enters every folder that is not excluded, also to find nothing there.
include_patterns = ["README.md", "docs/**", "conf/local/**", "results/**"]
exclude_patterns = [".*", "data", "site", "utility_calibration"]
external_toc_exclude_missing = True

myst_heading_anchors = 3
default_role = "code"  # `name` in a docstring
autodoc_default_options = {
    "members": True,
    # What scikit-learn adds, with links into its own pages, and the fields of `WorstInterval`, as
    # its docstring describes them.
    "exclude-members": "set_fit_request, set_partial_fit_request, set_predict_request, "
    "set_predict_proba_request, set_score_request, error, low, high, sign",
}
autodoc_typehints = "description"
autodoc_typehints_format = "short"
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}
# The generated tables begin below the first level. The fences of some blocks name what a test runs
# (`ray`), which no highlighter knows.
suppress_warnings = ["myst.header", "misc.highlighting_failure"]


def link_notebook(app: Sphinx, page: str, text: list[str]) -> None:
    """Link the notebook, which only the site has, below the heading of the tutorial."""
    if page == "docs/tutorial":
        heading, _, rest = text[0].partition("\n")
        text[0] = f'{heading}\n\n<a href="tutorial.ipynb">This page as a notebook</a>\n{rest}'


def setup(app: Sphinx) -> None:
    app.connect("source-read", link_notebook)
