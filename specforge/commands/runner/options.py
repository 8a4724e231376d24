"""The command line of ``specforge benchmark``."""

from __future__ import annotations

import argparse

DEFAULT_BASE_URL = "http://127.0.0.1:30000"
DEFAULT_TOKENS = 2048


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds every option; values are checked by :func:`specforge.commands.runner.settings.read_settings`."""
    server = parser.add_argument_group("server")
    server.add_argument(
        "--base-url",
        default=DEFAULT_BASE_URL,
        metavar="URL",
        help="where the server runs; https and a path are fine (default: %(default)s)",
    )
    server.add_argument(
        "--model", "--model-path", default=None, metavar="MODEL", help="model that the server is expected to serve"
    )
    server.add_argument("--api-key", default=None, metavar="KEY", help="key that the server wants")
    server.add_argument(
        "--header", action="append", default=[], metavar="'NAME: VALUE'", help="extra header of each request"
    )
    _add_prompts(parser.add_argument_group("prompts"))
    _add_load(parser.add_argument_group("load"))
    _add_requests(parser.add_argument_group("requests"))
    record = parser.add_argument_group("record")
    record.add_argument(
        "--output-json",
        default=None,
        metavar="FILE",
        help="the record; the answers go beside it, into FILE's name with .rows.jsonl at its end",
    )
    record.add_argument("--note", default=None, help="free text kept in the record")
    record.add_argument("--quiet", action="store_true", help="no progress bar")


def _add_prompts(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--dataset",
        required=True,
        metavar="NAME",
        help="gsm8k, math500, humaneval, mbpp, mtbench ...; or NAME::SUBSET,...",
    )
    group.add_argument(
        "--dataset-path",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="local JSONL, JSON, CSV or Parquet with the Hub's columns, or a folder; NAME.train=FILE for few-shots",
    )
    group.add_argument("--dataset-revision", default=None, metavar="REVISION", help="Hub revision")
    group.add_argument("--samples", action="store_true", help="the rows that the project ships, instead of the Hub's")
    group.add_argument(
        "--num-prompts",
        type=int,
        default=None,
        metavar="N",
        help="prompts to send; beyond the dataset's size they are drawn again (default: the dataset's size)",
    )
    group.add_argument(
        "--max-samples", type=int, default=None, metavar="N", help="different prompts at the most (default: no limit)"
    )
    group.add_argument("--seed", type=int, default=42, help="seed of drawing, arrivals and requests (default: 42)")


def _add_load(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--concurrency",
        nargs="+",
        type=int,
        default=None,
        metavar="N",
        help="requests in flight; several values make a sweep (default: 1). With --request-rate: the most in flight",
    )
    group.add_argument(
        "--request-rate",
        nargs="+",
        type=float,
        default=None,
        metavar="R",
        help="prompts sent a second, whether or not earlier ones have ended; several values make a sweep. "
        "The later turns of a conversation come on top",
    )
    group.add_argument(
        "--arrivals",
        choices=("poisson", "constant"),
        default="poisson",
        help="gaps between the requests of --request-rate (default: poisson)",
    )
    group.add_argument("--rounds", type=int, default=1, metavar="N", help="measured rounds of each level (default: 1)")
    group.add_argument(
        "--client-processes", type=int, default=1, metavar="N", help="processes that share the load (default: 1)"
    )
    group.add_argument(
        "--goodput",
        nargs="+",
        default=None,
        metavar="NAME:LIMIT",
        help="count requests that keep every limit, such as ttft:500ms tpot:30ms latency:10s",
    )
    group.add_argument(
        "--max-failed", type=int, default=0, metavar="N", help="failed requests that a level may have (default: 0)"
    )


def _add_requests(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--stream", action="store_true", help="stream the answers: first tokens as a user sees them")
    group.add_argument(
        "--max-new-tokens",
        type=int,
        default=DEFAULT_TOKENS,
        metavar="N",
        help="token limit of an answer (default: %(default)s)",
    )
    group.add_argument("--temperature", type=float, default=None, help="sampling temperature (default: 0)")
    group.add_argument("--top-p", type=float, default=None, help="nucleus sampling (default: 1)")
    group.add_argument("--top-k", type=int, default=None, help="top-k sampling (default: off)")
    group.add_argument(
        "--sampling",
        choices=("stated", "model"),
        default="stated",
        help="'stated' (default) sends every sampling parameter; 'model' leaves them to the model's own defaults",
    )
    group.add_argument("--enable-thinking", action="store_true", help="let the model think, where its template can")
    group.add_argument(
        "--chat-template-kwargs", default=None, metavar="JSON", help="arguments of the chat template, as an object"
    )
    group.add_argument("--extra-body", default=None, metavar="JSON", help="fields added to each request")
    group.add_argument(
        "--timeout-seconds",
        "--request-timeout",
        dest="request_timeout",
        type=float,
        default=3600.0,
        metavar="SECONDS",
        help="limit for one request (default: 3600)",
    )
