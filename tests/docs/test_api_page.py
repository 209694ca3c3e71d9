"""The reference shows all public objects, and nothing that is not there."""

from __future__ import annotations

import importlib
import re

import pytest

from tests.docs.tables import page

TEXT = page("reference/api")
SHOWN = re.findall(
    r"^\.\. auto(?:class|function|exception):: ([\w.]+)(?:\(\))?$", TEXT, re.MULTILINE
)
MODULES = ["", ".kubernetes", ".metrics", ".rayjob", ".statuspage", ".testing"]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module or "top")
def test_every_public_name_is_shown(module: str) -> None:
    """What a module exports is on the page under the module's name."""
    path = f"jobinfo_cache{module}"
    exported = importlib.import_module(path).__all__

    assert [name for name in exported if f"{path}.{name}" not in SHOWN] == (
        [] if module else ["__version__"]
    )


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown_is_there(name: str) -> None:
    """Each object of the page can be imported by its name."""
    module, _, attribute = name.rpartition(".")

    assert hasattr(importlib.import_module(module), attribute)
