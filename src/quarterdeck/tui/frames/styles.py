"""A stylesheet that parses every source once.

Textual caches 64 parsed sources, and the cockpit has more: each widget class is one. Beyond
that number, every dialog that adds a new class would parse all of them again.
"""

from typing import Any, ClassVar

from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

# Rule sets are put into a set for each widget that is styled, hundreds at a time; Textual's own hash is
# the same but written in Python.
RuleSet.__hash__ = object.__hash__


class KeptStylesheet(Stylesheet):
    """Caches all parsed sources, for each set of variables."""

    _of_variables: ClassVar[dict[frozenset[tuple[str, str]], dict[Any, list[RuleSet]]]] = {}
    _parsed: dict[Any, list[RuleSet]]

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self._choose(variables or {})

    def set_variables(self, variables: dict[str, str]) -> None:
        super().set_variables(variables)
        self._choose(variables)

    def reparse(self) -> None:
        """Parse again here; the base parses with a stylesheet that has parsed nothing yet."""
        self.parse()

    def _choose(self, variables: dict[str, str]) -> None:
        self._parsed = self._of_variables.setdefault(frozenset(variables.items()), {})

    def _parse_rules(
        self,
        css: str,
        read_from: tuple[str, str],
        is_default_rules: bool = False,
        tie_breaker: int = 0,
        scope: str = "",
    ) -> list[RuleSet]:
        key = (css, read_from, is_default_rules, tie_breaker, scope)
        if key not in self._parsed:
            self._parsed[key] = super()._parse_rules(*key)
        return self._parsed[key]
