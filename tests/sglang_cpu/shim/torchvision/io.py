"""Image files: any name."""

from ._any import getter as __getattr__
