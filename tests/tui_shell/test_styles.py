"""Styles apply: a selector that names a renamed widget matches nothing, without an error."""

import re
from importlib import import_module
from pkgutil import walk_packages

from textual.app import App
from textual.dom import DOMNode

import quarterdeck.tui

SELECTORS = re.compile(r"([^{};]+)\{")
TYPE = re.compile(r"(?<![\w.#$:-])[A-Z]\w+")


def classes(of: type[DOMNode]) -> list[type[DOMNode]]:
    return [of, *(one for child in of.__subclasses__() for one in classes(child))]


def styles(of: type[DOMNode]) -> str:
    css = f"{vars(of).get('DEFAULT_CSS', '')}{vars(of).get('CSS', '')}"
    return re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)


def test_every_type_in_a_selector_is_a_widget() -> None:
    for module in walk_packages(quarterdeck.tui.__path__, "quarterdeck.tui."):
        import_module(module.name)
    nodes = classes(DOMNode)
    names = {of.__name__ for of in nodes}
    ours = [of for of in nodes if of.__module__.startswith("quarterdeck.") and of is not App]
    unknown = {
        (of.__name__, name)
        for of in ours
        for selector in SELECTORS.findall(styles(of))
        for name in TYPE.findall(selector)
        if name not in names
    }
    assert not unknown
