"""Text and tokens, and the chat template."""

import json
from pathlib import Path

import pytest

from specforge.engine.tokenizer import TextStream, Tokenizer
from specforge.errors import RequestError, UsageError
from tests.engine import tiny

MESSAGES = [{"role": "user", "content": "to measure"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer")
    tiny.make_tokenizer(path)
    return path


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Tokenizer:
    return Tokenizer(folder, "--tokenizer-path")


@pytest.mark.parametrize("text", ["to measure is to know", "  two  spaces\n", "naïve café", "数を数える 🙂🙂", ""])
def test_a_stream_gives_the_text_whatever_its_pieces(text: str, tokenizer: Tokenizer) -> None:
    tokens = tokenizer.encode(text)
    stream = TextStream(tokenizer)
    pieces = [stream.feed([token]) for token in tokens] + [stream.finish()]
    assert "".join(pieces) == stream.text == text == tokenizer.decode(tokens)


def test_half_a_character_is_held_back(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.encode("🙂")
    assert len(tokens) > 1
    stream = TextStream(tokenizer)
    assert stream.feed(tokens[:-1]) == ""
    assert stream.feed(tokens[-1:]) == "🙂"


def test_half_a_character_at_the_end_is_shown(tokenizer: Tokenizer) -> None:
    stream = TextStream(tokenizer)
    for token in tokenizer.encode("a🙂")[:-1]:
        stream.feed([token])
    assert stream.text == "a"
    assert stream.finish().startswith("\ufffd")
    assert stream.text.startswith("a\ufffd")


def test_special_tokens_are_skipped_unless_asked_for(tokenizer: Tokenizer) -> None:
    tokens = [*tokenizer.eos, *tokenizer.encode("a")]
    assert tokenizer.decode(tokens) == "a"
    assert tokenizer.decode(tokens, skip_special=False) == "</s>a"


def test_the_template_opens_the_assistants_turn(tokenizer: Tokenizer) -> None:
    text = tokenizer.decode(tokenizer.render(MESSAGES, {}), skip_special=False)
    assert text == "<s><|user|>to measure</s><|assistant|>"


def test_template_variables_reach_the_template(tokenizer: Tokenizer) -> None:
    text = tokenizer.decode(tokenizer.render(MESSAGES, {"add_generation_prompt": False}), skip_special=False)
    assert text == "<s><|user|>to measure</s>"


def with_template(folder: Path, tmp_path: Path, template: str | None) -> Tokenizer:
    (tmp_path / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    if template is not None:
        (tmp_path / "chat_template.jinja").write_text(template)
    return Tokenizer(tmp_path, "--tokenizer-path")


def test_a_template_can_refuse_messages(folder: Path, tmp_path: Path) -> None:
    tokenizer = with_template(folder, tmp_path, "{{ raise_exception('roles must alternate') }}")
    with pytest.raises(RequestError, match="roles must alternate"):
        tokenizer.render(MESSAGES, {})


@pytest.mark.parametrize("template", ["{{ messages.__class__.__mro__ }}", "{{ messages.append(1) }}"])
def test_a_template_can_not_leave_its_sandbox(template: str, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="refused the messages"):
        with_template(folder, tmp_path, template).render(MESSAGES, {})


def test_chat_without_a_template_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="no chat template"):
        with_template(folder, tmp_path, None).render(MESSAGES, {})


def test_a_malformed_template_is_named_before_serving(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--tokenizer-path: the chat template .* is malformed"):
        with_template(folder, tmp_path, "{% if %}")


def test_special_tokens_may_be_objects(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": "</s>"}}))
    assert Tokenizer(tmp_path, "--tokenizer-path").eos == (1,)
