"""Reads a Hugging Face checkpoint folder: the configuration and the weights, in float32, without torch."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from specforge.engine.kernels import Array
from specforge.errors import UsageError

Weights = Mapping[str, Array]


@dataclass(frozen=True)
class ModelConfig:
    """What a `config.json` of the Llama architecture says."""

    architecture: str
    hidden: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    context: int
    """Most tokens of prompt and answer together (`max_position_embeddings`)."""
    epsilon: float
    rope: Mapping[str, Any]
    """`rope_theta`, `rope_type` and, for scaled types, their parameters."""
    tied: bool
    eos: tuple[int, ...]
    raw: Mapping[str, Any]
    """The file itself, for what only one kind of model has."""


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file. Raises UsageError where it is absent, malformed or no object."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: expected a JSON file, found none ({error.strerror})") from error
    except ValueError as error:
        raise UsageError(f"{path}: expected JSON, found {error}") from error
    if not isinstance(content, dict):
        raise UsageError(f"{path}: expected a JSON object, found {type(content).__name__}")
    return content


def read_config(folder: Path, flag: str, architectures: tuple[str, ...]) -> ModelConfig:
    """The configuration of a model folder; `flag` is named in errors.

    Raises UsageError for a folder that is no model, another architecture, or a value this engine can't honour.
    """
    if not folder.is_dir():
        raise UsageError(f"{flag}: expected a model folder, found nothing at {folder}")
    raw = read_json(folder / "config.json")
    architecture = str((raw.get("architectures") or ["none"])[0])
    if architecture not in architectures:
        raise UsageError(f"{flag}: {folder} is a {architecture}, expected {' or '.join(architectures)}")
    for key, expected in (("hidden_act", "silu"), ("attention_bias", False), ("mlp_bias", False)):
        if raw.get(key, expected) != expected:
            raise UsageError(f"{flag}: {folder}/config.json has {key} {raw[key]!r}, expected {expected!r}")
    if raw.get("quantization_config"):
        raise UsageError(f"{flag}: {folder} is quantized, expected bfloat16, float16 or float32 weights")
    try:
        heads, hidden = int(raw["num_attention_heads"]), int(raw["hidden_size"])
        return ModelConfig(
            architecture=architecture,
            hidden=hidden,
            inner=int(raw["intermediate_size"]),
            layers=int(raw["num_hidden_layers"]),
            heads=heads,
            kv_heads=int(raw.get("num_key_value_heads") or heads),
            head_size=int(raw.get("head_dim") or hidden // heads),
            vocabulary=int(raw["vocab_size"]),
            context=int(raw.get("max_position_embeddings", 2048)),
            epsilon=float(raw.get("rms_norm_eps", 1e-6)),
            rope=_rope(raw),
            tied=bool(raw.get("tie_word_embeddings", False)),
            eos=token_ids(raw.get("eos_token_id")),
            raw=raw,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{flag}: {folder}/config.json lacks or garbles {error}") from error


def token_ids(value: Any) -> tuple[int, ...]:
    """Configurations give one id, a list of ids, or null."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list) else (int(value),)


def _rope(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Both spellings of the rotary parameters: `rope_parameters`, and `rope_theta` with `rope_scaling`."""
    rope: dict[str, Any] = {"rope_theta": raw.get("rope_theta", 10000.0), "rope_type": "default"}
    rope.update(raw.get("rope_scaling") or {})
    rope.update(raw.get("rope_parameters") or {})
    rope["rope_type"] = rope.get("rope_type") or rope.get("type") or "default"
    return rope


def read_weights(folder: Path, flag: str) -> dict[str, Array]:
    """All tensors of a folder's safetensors files; floats become float32, integers stay.

    Raises UsageError where there are none, or one can't be read.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise UsageError(f"{flag}: expected model.safetensors, found no safetensors file in {folder}")
    return {name: values for file in files for name, values in _read_file(file, flag)}


def _read_file(file: Path, flag: str) -> list[tuple[str, Any]]:
    try:
        return list(_tensors(file))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{flag}: {file} is no readable safetensors file ({error})") from error


def _tensors(file: Path) -> Iterator[tuple[str, Any]]:
    """The tensors of one file. The library's own reader for NumPy has no bfloat16, and the format is simple.

    Eight bytes give the length of a JSON header, which gives each tensor's type, shape and place in what follows
    (https://github.com/huggingface/safetensors#format).
    """
    # As a plain array: a memmap would pass its type, which is slow to index, on to every view.
    content = np.asarray(np.memmap(file, np.uint8, mode="r"))
    start = 8 + int(content[:8].view("<u8")[0])
    if start > len(content):
        raise ValueError(f"a header of {start - 8} bytes in a file of {len(content)}")
    for name, entry in json.loads(bytes(content[8:start])).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            yield name, _decoded(content[start + first : start + last], entry["dtype"], entry["shape"])


def _decoded(data: npt.NDArray[np.uint8], kind: str, shape: list[int]) -> Any:
    """One tensor as an array of its own. NumPy has no bfloat16: it is the upper half of a float32."""
    if kind == "BF16":
        return (data.view("<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)
    plain = {"F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "BOOL": "?"}
    if kind not in plain:
        raise ValueError(f"a tensor is {kind}, expected BF16, F16 or F32")
    values = data.view(plain[kind]).reshape(shape)
    return values.astype(np.float32) if kind in ("F16", "F32") else values.astype(np.int64)


def tensor(weights: Weights, name: str, shape: tuple[int, ...], flag: str) -> Array:
    """A tensor of the shape the configuration implies. Raises UsageError otherwise."""
    if name not in weights:
        raise UsageError(f"{flag}: the checkpoint lacks {name}")
    found = weights[name]
    if found.shape != shape:
        raise UsageError(f"{flag}: {name} has the shape {list(found.shape)}, expected {list(shape)}")
    return found
