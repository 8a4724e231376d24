"""Transforms as functions: any name."""

from .._any import getter as __getattr__
