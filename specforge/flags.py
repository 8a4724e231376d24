"""Values of flags that pytest's plugin and the ``specforge`` command check alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from specforge.client.sampling import Sampling
from specforge.errors import UsageError


def at_least(name: str, value: int | None, least: int) -> None:
    """Refuses a number that is too small; None is a flag that was not given.

    Args:
        name: the flag's, with underscores and without its dashes.

    Raises:
        UsageError: it is below ``least``.
    """
    if value is not None and value < least:
        raise UsageError(f"--{name.replace('_', '-')}: {value} is not at least {least}")


def json_object(flag: str, text: str | None) -> Mapping[str, Any]:
    """Reads a flag whose value is a JSON object; empty where it was not given.

    Raises:
        UsageError: it is something else.
    """
    try:
        value = {} if text is None else json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"{flag}: {text!r} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UsageError(f"{flag}: {text!r} is not a JSON object, such as '{{\"ignore_eos\": true}}'")
    return value


def read_sampling(get: Callable[[str], Any]) -> Sampling:
    """What every request states about sampling, from ``--temperature`` to ``--enable-thinking``.

    Args:
        get: gives a flag's value by its name with underscores.

    Raises:
        UsageError: a value is out of range, or no JSON object.
    """
    changes = {name: value for name in ("temperature", "top_p", "top_k") if (value := get(name)) is not None}
    if changes.get("temperature", 0) < 0:
        raise UsageError(f"--temperature: {changes['temperature']:g} is below 0")
    if not 0 < changes.get("top_p", 1) <= 1:
        raise UsageError(f"--top-p: {changes['top_p']:g} is not above 0 and at most 1")
    if changes.get("top_k", 1) < 1 and changes["top_k"] != -1:
        raise UsageError(f"--top-k: {changes['top_k']} is neither above 0 nor -1 (off)")
    stated = get("sampling") == "stated"
    base = Sampling.greedy(get("seed"), **changes) if stated else Sampling(changes, get("seed"))
    template = json_object("--chat-template-kwargs", get("chat_template_kwargs"))
    if get("enable_thinking"):
        template = {**template, "enable_thinking": True}
    return replace(base, extra_body=json_object("--extra-body", get("extra_body")), template_kwargs=template)
