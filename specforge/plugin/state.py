"""What a session knows, kept with pytest's config. Imported by every session, so it imports next to nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

from specforge.errors import SpecForgeError
from specforge.plugin.options import PREFIX, option

if TYPE_CHECKING:
    from specforge.plugin.ledger import Ledger
    from specforge.plugin.resume import Resumed
    from specforge.plugin.run import Run
    from specforge.plugin.settings import Settings

SETTINGS = pytest.StashKey["Settings"]()
RUN = pytest.StashKey["Run"]()
RESUMED = pytest.StashKey["Resumed"]()
LEDGER = pytest.StashKey["Ledger"]()


def take_matrix(config: pytest.Config, matrix: Mapping[str, Sequence[str]]) -> None:
    """Gives the options of a matrix, by name, the values that the command line does not."""
    for name, texts in matrix.items():
        if option(config, name) is None:
            setattr(config.option, PREFIX + name, list(texts))


def settings_of(config: pytest.Config) -> Settings:
    """The session's settings, read once.

    Raises:
        pytest.UsageError: an option is wrong.
    """
    if SETTINGS not in config.stash:
        from specforge.plugin.settings import read_settings

        try:
            config.stash[SETTINGS] = read_settings(lambda name: option(config, name))
        except SpecForgeError as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[SETTINGS]


def resumed_of(config: pytest.Config) -> Resumed | None:
    """The run of ``--resume``; None without, and on a worker."""
    return config.stash.get(RESUMED, None)


def run_of(config: pytest.Config) -> Run:
    """What measures; there is one as soon as cells were collected, though not where workers measure."""
    return config.stash[RUN]


def ledger_of(config: pytest.Config) -> Ledger | None:
    """The cells measured so far; None where none are to be measured, and on a worker, whose controller keeps them."""
    return config.stash.get(LEDGER, None)
