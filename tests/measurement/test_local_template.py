"""A server that can't tokenize: the model's own chat template is applied here, by the `template` extra."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specforge.errors import UsageError
from tests.measurement.cells import LIMIT, measure, questions, target
from tests.support.scripted import Script, Speculation, Wire
from tests.support.scripted_server import ScriptedServer

pytest.importorskip("transformers", reason="transformers, of the extra 'template', is not installed")

OLDEST = Wire(meta_info=False, token_ids=False, missing=("/v1/tokenize",))
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}[{{ message['role'] }}] {{ message['content'] }} {% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model's folder with a tokenizer whose template writes the BOS, which it would add itself, too."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = ["<bos>", "<unk>", "[", "]", "user", "assistant", "Question", "is", "asked", ".", *map(str, range(2000))]
    tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["<bos>"])
    tokenizer.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 0)])
    folder = tmp_path / "model"
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<bos>", "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def test_prompts_are_rendered_by_the_model_s_template_with_one_bos(model: Path, tmp_path: Path):
    with ScriptedServer(Script(wire=OLDEST, speculation=Speculation())) as server:
        probed = target(server.base_url, model_path=str(model))
        record, rows = measure(probed, questions(2, followups=("And then?",)), tmp_path)
        probed.close()
        bodies = [entry["request"] for entry in server.generations if entry["path"] == "/generate"]
    measured = [body["input_ids"] for body in bodies if body["sampling_params"]["max_new_tokens"] == LIMIT]
    first = min(measured, key=len)
    assert [first.count(0), first[0]] == [1, 0], "a BOS, and not a second one"
    assert len(first) == len(["<bos>", "[", "user", "]", "Question", "0", "is", "asked", ".", "[", "assistant", "]"])
    assert len(measured) == 4
    assert record["status"] == "ok"
    assert record["metrics"]["acceptance_length"] > 1
    assert all(len(row["turns"]) == 2 for row in rows)


def test_a_folder_without_a_tokenizer_or_a_template_is_named(model: Path, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    with ScriptedServer(Script(wire=OLDEST)) as server:
        with pytest.raises(UsageError, match="--model-path: no tokenizer could be loaded from"):
            target(server.base_url, model_path=str(tmp_path / "empty"))
        config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<bos>"}
        (model / "tokenizer_config.json").write_text(json.dumps(config))
        with pytest.raises(UsageError, match="has no chat template"):
            target(server.base_url, model_path=str(model))
