"""Checkpoint folders, good and bad."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from specforge.engine.folder import read_config, read_weights, tensor
from specforge.errors import UsageError
from tests.engine import tiny

FLAG = "--model-path"


def save(file: Path, **tensors: tuple[str, np.ndarray]) -> None:
    """A safetensors file; arrays carry the bytes, names of types are the format's."""
    header, data = {}, b""
    for name, (kind, values) in tensors.items():
        header[name] = {
            "dtype": kind,
            "shape": list(values.shape),
            "data_offsets": [len(data), len(data) + values.nbytes],
        }
        data += values.tobytes()
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)


def test_bfloat16_becomes_the_float32_it_stands_for(tmp_path: Path) -> None:
    exact = np.array([[1.0, -2.5], [0.15625, 3e38]], np.float32)
    save(tmp_path / "model.safetensors", w=("BF16", (exact.view(np.uint32) >> 16).astype(np.uint16)))
    read = read_weights(tmp_path, FLAG)["w"]
    assert read.dtype == np.float32
    np.testing.assert_allclose(read, exact, rtol=2**-8)
    np.testing.assert_array_equal(read.view(np.uint32) & 0xFFFF, 0)


def test_float16_and_integers_are_read(tmp_path: Path) -> None:
    half, ids = np.array([0.5, -2.0], np.float16), np.array([3, -1], np.int64)
    save(tmp_path / "model.safetensors", half=("F16", half), ids=("I64", ids))
    read = read_weights(tmp_path, FLAG)
    np.testing.assert_array_equal(read["half"], half)
    assert read["half"].dtype == np.float32
    np.testing.assert_array_equal(read["ids"], ids)


def test_sharded_checkpoints_are_read_as_one(tmp_path: Path) -> None:
    for number in (1, 2):
        values = np.full(2, number, np.float32)
        save(tmp_path / f"model-0000{number}-of-00002.safetensors", **{f"w{number}": ("F32", values)})
    assert sorted(read_weights(tmp_path, FLAG)) == ["w1", "w2"]


def test_both_spellings_of_rope_are_understood(tmp_path: Path) -> None:
    tiny.save_model(tmp_path, tiny.Shape(), {}, rope_theta=5.0)
    assert read_config(tmp_path, FLAG, ("LlamaForCausalLM",)).rope["rope_theta"] == 5.0
    tiny.save_model(tmp_path, tiny.Shape(), {}, rope_parameters={"rope_theta": 7.0, "rope_type": "default"})
    assert read_config(tmp_path, FLAG, ("LlamaForCausalLM",)).rope["rope_theta"] == 7.0


@pytest.mark.parametrize(
    "settings, reason",
    [
        ({"architectures": ["MambaForCausalLM"]}, "is a MambaForCausalLM, expected LlamaForCausalLM"),
        ({"attention_bias": True}, "attention_bias True, expected False"),
        ({"hidden_act": "gelu"}, "hidden_act 'gelu', expected 'silu'"),
        ({"quantization_config": {"quant_method": "fp8"}}, "is quantized"),
        ({"hidden_size": "wide"}, "lacks or garbles"),
    ],
)
def test_what_can_not_be_honoured_is_refused_by_name(settings: dict[str, object], reason: str, tmp_path: Path) -> None:
    tiny.save_model(tmp_path, tiny.Shape(), {}, **settings)
    with pytest.raises(UsageError, match=f"--model-path: .*{reason}"):
        read_config(tmp_path, FLAG, ("LlamaForCausalLM",))


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--model-path: expected a model folder, found nothing at .*nowhere"):
        read_config(tmp_path / "nowhere", FLAG, ("LlamaForCausalLM",))


def test_a_configuration_that_is_no_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(UsageError, match=r"config\.json: expected JSON"):
        read_config(tmp_path, FLAG, ("LlamaForCausalLM",))


def test_a_truncated_weight_file_is_named(tmp_path: Path) -> None:
    tiny.make_target(tmp_path, tiny.Shape(layers=1))
    file = tmp_path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(UsageError, match=r"model\.safetensors is no readable safetensors file"):
        read_weights(tmp_path, FLAG)


def test_a_weight_of_another_shape_is_named() -> None:
    with pytest.raises(UsageError, match=r"w has the shape \[2, 3\], expected \[3, 2\]"):
        tensor({"w": np.zeros((2, 3), np.float32)}, "w", (3, 2), FLAG)


def test_a_missing_weight_is_named() -> None:
    with pytest.raises(UsageError, match=r"the checkpoint lacks model\.norm\.weight"):
        tensor({}, "model.norm.weight", (4,), FLAG)


def test_a_type_without_an_equivalent_is_named(tmp_path: Path) -> None:
    save(tmp_path / "model.safetensors", w=("F8_E4M3", np.zeros(4, np.uint8)))
    with pytest.raises(UsageError, match="a tensor is F8_E4M3, expected BF16, F16 or F32"):
        read_weights(tmp_path, FLAG)
