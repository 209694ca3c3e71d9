"""How Sphinx builds these pages: `make docs`."""

from jobinfo_cache import __version__

project = "jobinfo-cache"
author = "the jobinfo-cache authors"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "examples"]
language = "en"
html_theme = "furo"
html_title = f"jobinfo-cache {__version__}"
html_static_path = ["_static"]
html_css_files = ["narrow.css"]
html_show_copyright = False
nitpicky = True
default_role = "code"  # what docstrings put between backticks
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3  # so that pages can link to sections as on GitHub
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
