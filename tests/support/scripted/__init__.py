"""A server that speaks SGLang's wire and says what a script tells it to."""

from tests.support.scripted.script import (
    ALWAYS,
    Answer,
    Drift,
    Fault,
    Pace,
    Replies,
    Script,
    Speculation,
    Start,
    Wire,
)

__all__ = [
    "ALWAYS",
    "Answer",
    "Drift",
    "Fault",
    "Pace",
    "Replies",
    "Script",
    "Speculation",
    "Start",
    "Wire",
]
