"""A pytest benchmark harness for speculative decoding on SGLang."""

__version__ = "0.1.0"
