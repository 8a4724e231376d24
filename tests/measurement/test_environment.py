"""What a record says of where it was made."""

from __future__ import annotations

import subprocess
from pathlib import Path

from specforge.measurement import environment


def test_the_values_of_keys_and_headers_are_starred_out():
    given = ["--api-key", "k1", "--judge-api-key=k2", "--header", "Authorization: k3", "--header=X: k4", "--seed", "7"]
    hidden = environment.without_secrets(given)
    assert hidden == ["--api-key", "***", "--judge-api-key=***", "--header", "***", "--header=***", "--seed", "7"]


def test_a_key_inside_another_option_s_words_is_starred_out_too():
    given = ["--server-args", "--tp 2 --api-key k1 --dtype auto", "--launch-command=docker run -e A --api-key=k2"]
    hidden = environment.without_secrets(given)
    assert hidden == [
        "--server-args",
        "--tp 2 --api-key *** --dtype auto",
        "--launch-command=docker run -e A --api-key=***",
    ]


def test_users_in_addresses_are_left_out():
    given = [
        "--base-url",
        "http://ada:hush@host:1",
        "bob:hush@two",
        "--url=https://key@host/v1",
        "--note=a@b",
    ]
    hidden = environment.without_secrets([*given, "--server-args", "--url http://a:b@c/d@e"])
    assert hidden == [
        *("--base-url", "http://host:1", "two", "--url=https://host/v1", "--note=a@b"),
        *("--server-args", "--url http://c/d@e"),
    ]


def test_the_commit_is_named_and_whether_it_was_changed_since(tmp_path: Path):
    def git(*words: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, "-C", str(tmp_path), *words], check=True, capture_output=True)

    assert environment.git_commit(tmp_path) is None
    (tmp_path / "file").write_text("one")
    git("init", "-q")
    git("add", "file")
    git("commit", "-q", "-m", "first")
    clean = environment.git_commit(tmp_path)
    (tmp_path / "file").write_text("two")
    changed = environment.git_commit(tmp_path)
    assert clean is not None
    assert changed is not None
    assert clean == {"id": changed["id"], "dirty": False}
    assert changed["dirty"] is True


def test_the_settings_that_matter_are_taken_from_what_the_server_says():
    said = {"version": "0.5.23", "speculative_algorithm": "NGRAM", "tp_size": 2, "chat_template": "x" * 9999}
    kept = environment.server_settings(said)
    assert kept is not None
    assert (kept["version"], kept["speculative_algorithm"], kept["tp_size"]) == ("0.5.23", "NGRAM", 2)
    assert "chat_template" not in kept
    assert environment.server_settings(None) is None
