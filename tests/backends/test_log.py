"""Reading a server's log."""

from __future__ import annotations

from pathlib import Path

import pytest

from specforge.backends.log import ServerLog


@pytest.fixture
def log(tmp_path: Path) -> ServerLog:
    return ServerLog(tmp_path / "new" / "server.log", "serve --port 1")


def test_the_command_heads_the_file_and_is_no_line_of_the_server(log: ServerLog):
    assert log.path.read_text() == "$ serve --port 1\n"
    assert log.last_lines(5) == []


def test_the_last_lines_are_as_a_terminal_shows_them(log: ServerLog):
    log.file.write(b"first\n\n\x1b[31mred\x1b[0m\n 10%\r 50%\r100%\nwindows\r\nunfinished")
    assert log.last_lines(4) == ["red", "100%", "windows", "unfinished"]


def test_bytes_that_are_no_text_do_no_harm(log: ServerLog):
    log.file.write(b"caf\xe9\n")
    assert log.last_lines(1) == ["caf�"]


def test_a_second_start_is_read_from_its_own_beginning(log: ServerLog):
    log.file.write(b"of the first start\n")
    second = ServerLog(log.path, "serve --port 2")
    second.file.write(b"of the second\n")
    assert second.last_lines(9) == ["of the second"]
    assert "of the first start" in log.path.read_text()


def test_a_long_log_is_read_from_its_end_only(log: ServerLog):
    log.file.write(b"x" * 10**6 + b"\nthe end\n")
    assert log.last_lines(1) == ["the end"]


def test_an_empty_log_is_said_to_be_so(log: ServerLog):
    assert log.ending() == f"it wrote nothing to {log.path}"
