#!/usr/bin/env bash
# Installs the real SGLang 0.5.23 for CPU into a virtual environment: install.sh VENV
#
# About 2.7 GB and 3 to 5 minutes. Nothing of CUDA is taken; the shim beside this file stands in for the two packages
# that have no CPU build (sgl_kernel, torchvision). A finished environment is recognised by its stamp and left as it
# is; an unfinished one is gone on with. Each download is tried three times; exit 75 says that one failed for good.
# PYTHON names the interpreter (python3).
set -euo pipefail
download_failed=75
venv=${1:?usage: install.sh VENV}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
stamp=$venv/.sglang-cpu
wanted=$(cd "$here" && find install.sh shim -type f -not -path '*/__pycache__/*' | LC_ALL=C sort | xargs sha256sum | sha256sum)

if [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
  echo "SGLang for CPU: already in $venv"
  exit 0
fi

fetch() {
  for pause in 10 30 0; do
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-warn-conflicts --no-input "$@" && return
    if [ "$pause" -gt 0 ]; then
      echo "pip install failed; again in $pause s" >&2
      sleep "$pause"
    fi
  done
  exit "$download_failed"
}

[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
rm -f "$stamp"
fetch torch==2.13.0
fetch --no-deps sglang==0.5.23
# What serving text on CPU imports, of all that sglang declares.
fetch torch==2.13.0 transformers==5.19.0 tokenizers==0.23.2 compressed-tensors==0.18.0 xgrammar==0.2.7 \
  'llguidance>=1.7.6,<2' openai==2.8.0 openai-harmony==0.0.4 aiohttp fastapi 'uvicorn>=0.51' uvloop pyzmq orjson msgspec \
  psutil pybase64 pydantic python-multipart requests setproctitle tqdm numpy packaging pillow prometheus-client IPython \
  partial_json_parser interegular einops gguf dill 'python-dateutil<3' soundfile==0.13.1 scipy xxhash zstandard distro \
  watchfiles sentencepiece==0.2.1 jsonschema accelerate
site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
cp -r "$here/shim/." "$site/"
"$venv/bin/python" -c 'import sgl_kernel, sglang; print("SGLang", sglang.__version__, "for CPU")'
printf '%s\n' "$wanted" >"$stamp"
