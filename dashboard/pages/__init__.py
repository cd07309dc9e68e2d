"""The pages: the modules of this folder that declare one, in the order of the menu."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import cast

from dashboard.declared import register
from dashboard.shell import Page


def _pages() -> tuple[Page, ...]:
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    pages = [cast(Page, module) for module in modules if hasattr(module, "PAGE")]
    for page in pages:
        register(page.PAGE)
    return tuple(sorted(pages, key=lambda page: page.PAGE.order))


PAGES: tuple[Page, ...] = _pages()
