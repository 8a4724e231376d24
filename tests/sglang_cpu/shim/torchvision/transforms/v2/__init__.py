"""Newer transforms: any name."""

from ..._any import getter as __getattr__
from . import functional
