"""The pages: the modules of this package that declare one, in the order of the menu."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages
from typing import cast

from dashboard.declared import register
from dashboard.shell import Page


def _pages() -> tuple[Page, ...]:
    packaged = walk_packages(__path__, f"{__name__}.")
    modules = [import_module(module.name) for module in packaged]
    pages = [cast(Page, module) for module in modules if hasattr(module, "PAGE")]
    for page in pages:
        register(page.PAGE)
    return tuple(sorted(pages, key=lambda page: page.PAGE.order))


PAGES: tuple[Page, ...] = _pages()
