"""The training of the recipe: seeded, and going on from where it stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the recipe needs the train extra")

from tools.pair import distilled, head, target, tokenizer  # noqa: E402
from tools.pair.export import export_head, export_llama, rounded  # noqa: E402
from tools.pair.fitting import share_of_rate  # noqa: E402
from tools.pair.holdout import held_out  # noqa: E402
from tools.pair.network import Shape, Target  # noqa: E402

SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 8,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    tokenizer.train(1, held_out(), conversations_read=400).save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(scope="module")
def shape(work: Path) -> Shape:
    read = tokenizer.Tokenizer.from_file(str(work / "tokenizer.json"))
    return Shape(read.get_vocab_size(), **SIZES)


def equal(first: Target, second: Target) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_the_same_seed_trains_the_same_target(work: Path, shape: Shape) -> None:
    first = target.train(work, shape, 2, seed=3, name="first")
    again = target.train(work, shape, 2, seed=3, name="again")
    other = target.train(work, shape, 2, seed=4, name="other")
    assert equal(first, again)
    assert not equal(first, other)


def test_a_finished_run_is_not_trained_again(work: Path, shape: Shape) -> None:
    finished = target.train(work, shape, 2, seed=3, name="finished")
    assert equal(target.train(work, shape, 2, seed=3, name="finished"), finished)


def test_a_longer_run_goes_on_from_the_checkpoint(work: Path, shape: Shape, capsys: pytest.CaptureFixture[str]) -> None:
    target.train(work, shape, 1, seed=3, name="longer")
    target.train(work, shape, 3, seed=3, name="longer")
    assert "going on from step 1" in capsys.readouterr().out
    assert torch.load(work / "longer.pt", weights_only=True)["step"] == 3


def test_a_head_trained_on_what_the_target_says_exports_beside_it(work: Path, shape: Shape, tmp_path: Path) -> None:
    model = target.train(work, shape, 2, seed=3, name="target")
    read = tokenizer.Tokenizer.from_file(str(work / "tokenizer.json"))
    said = distilled.distill(model, read, 20, 1, held_out())
    trained = head.train(work, model, said, 2, seed=3)
    rounded(trained)
    export_llama(model, read, tmp_path / "target")
    export_head(trained, read, tmp_path / "eagle3")
    assert {file.name for file in (tmp_path / "eagle3").iterdir()} == {"config.json", "model.safetensors"}
    assert (tmp_path / "target" / "tokenizer_config.json").exists()


def test_the_learning_rate_rises_and_then_falls_to_almost_nothing() -> None:
    rates = [share_of_rate(step, 1000) for step in range(1000)]
    assert rates[:3] == sorted(rates[:3])
    assert rates[100:] == sorted(rates[100:], reverse=True)
    assert max(rates) > 0.9
    assert rates[-1] == 0.02
