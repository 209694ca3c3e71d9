"""After a fork, objects that hold locks, threads or sockets start anew in the child."""

from __future__ import annotations

import os
import weakref
from typing import Protocol

__all__ = ["renew_after_fork"]


class _Renewable(Protocol):
    def renew(self) -> None:
        """Replace, and never acquire, what threads of the parent may have held."""


_renewables: weakref.WeakSet[_Renewable] = weakref.WeakSet()


def renew_after_fork(renewable: _Renewable) -> None:
    """Have `renewable.renew()` called in every child that this process forks."""
    _renewables.add(renewable)


def _renew() -> None:
    for renewable in list(_renewables):
        renewable.renew()


os.register_at_fork(after_in_child=_renew)
