"""Finding the program in what a model wrote. Pure functions on text."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[ \t]*([^`\n]*)$")
_PYTHON = {"", "python", "python3", "python2", "py", "py3", "python-repl", "ipython", "sage", "cython"}
_THOUGHT = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL)
_STARTS = re.compile(r"(?:import|from|def|async def|class)\s|@|[A-Za-z_][\w, ]*(?::[^=]+)?=[^=]")
_READS_INPUT = re.compile(r"\binput\s*\(|\bstdin\b|\bopen\s*\(\s*0")
_MOST_TRIES = 400
"""How many spans of lines are parsed at most in search of code between prose."""


@dataclass(frozen=True)
class _Block:
    """A fenced block.

    Attributes:
        language: the first word of its info string, in small letters.
        text: what stands between the fences, or up to the end where it was never closed.
        start: the number of its first line in the output.
    """

    language: str
    text: str
    start: int


def extract_code(output: str, names: Sequence[str] = (), prompt: str | None = None) -> str | None:
    """The program in a model's output.

    Fenced blocks come first (any fence, any of Python's names, closed or not), the last of those that define one of
    ``names``; definitions that it needs from other blocks are put before it. Without fences it is the text, or the
    longest run of lines in it that is code. With a ``prompt``, code that does not define the function is taken for its
    body and put below the prompt.

    Args:
        output: what the model wrote; thoughts up to ``</think>`` are passed over.
        names: what the program must define, any of them; empty for a program that reads its standard input.
        prompt: imports, helpers and the head of the function to complete, as in HumanEval.

    Returns:
        the program's source, which need not be valid Python; None where the output has no code at all.
    """
    text = _THOUGHT.sub("", output).replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        return None
    blocks = _blocks(text)
    candidates = [block.text for block in blocks if block.language in _PYTHON]
    chosen = _defining(candidates, names)
    if chosen is not None:
        return _with_needed(candidates[chosen], candidates[:chosen] + candidates[chosen + 1 :])
    bare = _without_fence_lines(text)
    if names:
        span = _code_between_prose(bare, names)
        if span is not None:
            return span
    if prompt is not None:
        for body in (*reversed(candidates), text.partition("\n```")[0], bare):
            completed = _completed(prompt, body)
            if completed is not None:
                return completed
        return f"{prompt}{candidates[-1] if candidates else bare}"
    return _best_guess(candidates, bare)


def _blocks(text: str) -> list[_Block]:
    """The fenced blocks, in order. A fence that nothing closes goes on to the end, if anything follows it."""
    found = []
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        number += 1
        if opening is None:
            continue
        start = number
        fence, info = opening.group(1), opening.group(2).strip()
        while number < len(lines) and not _closes(lines[number], fence):
            number += 1
        language = re.split(r"[\s{,]", info.lower().lstrip("{."), maxsplit=1)[0]
        body = "\n".join(lines[start:number])
        number += 1
        if body.strip():
            found.append(_Block(language, textwrap.dedent(body) if _tree(body) is None else body, start))
    return found


def _closes(line: str, fence: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(fence) and not stripped.strip(fence[0])


def _without_fence_lines(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if _FENCE.match(line) is None)


def _tree(source: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _defines(tree: ast.Module) -> set[str]:
    """What a module defines at its top level."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return names


def _defining(sources: Sequence[str], names: Sequence[str]) -> int | None:
    """The last of the sources that defines one of ``names``."""
    for number in range(len(sources) - 1, -1, -1):
        tree = _tree(sources[number])
        if tree is not None and _defines(tree) & set(names):
            return number
    return None


def _with_needed(chosen: str, others: Sequence[str]) -> str:
    """The chosen source, after those definitions of the others that it (or they) use and it lacks."""
    tree = _tree(chosen)
    if tree is None:
        return chosen
    available: dict[str, ast.stmt] = {}
    for source in others:
        other = _tree(source)
        for node in other.body if other is not None else ():
            for name in _defines(ast.Module([node], [])):
                available[name] = node
    have = _defines(tree)
    needed: list[ast.stmt] = []
    waiting: list[ast.AST] = [tree]
    while waiting:
        for part in ast.walk(waiting.pop()):
            if isinstance(part, ast.Name) and part.id in available and part.id not in have:
                have.add(part.id)
                needed.append(available[part.id])
                waiting.append(available[part.id])
    if not needed:
        return chosen
    in_order = [node for node in dict.fromkeys(available.values()) if node in needed]
    return ast.unparse(ast.Module(in_order, [])) + "\n\n" + chosen


def _code_between_prose(text: str, names: Sequence[str]) -> str | None:
    """The longest run of lines that is code and defines one of ``names``; None where there is none."""
    lines = text.split("\n")
    if not any(re.search(rf"\b{re.escape(name)}\b", text) for name in names):
        return None
    tries = 0
    starts = [number for number, line in enumerate(lines) if _STARTS.match(line)]
    for start in starts:
        for end in _ends(lines, start):
            tries += 1
            if tries > _MOST_TRIES:
                return None
            source = "\n".join(lines[start:end])
            tree = _tree(source)
            if tree is None:
                continue
            if _defines(tree) & set(names):
                return source
            break  # code, but not the function: it may follow later
    return None


def _ends(lines: Sequence[str], start: int) -> Iterator[int]:
    """Where a run of code from ``start`` may end, farthest first: the end, and before each unindented line."""
    yield len(lines)
    for number in range(len(lines) - 1, start, -1):
        if lines[number].strip() and not lines[number][0].isspace():
            yield number


def _completed(prompt: str, body: str) -> str | None:
    """The prompt with ``body`` as the rest of its last function; None where that is no Python, or no rest at all."""
    head = prompt if prompt.endswith("\n") else prompt + "\n"
    alone = _tree(head) or _tree(head + "    pass\n")
    before = len(ast.dump(alone)) if alone is not None else 0
    for variant in _indented(body):
        for part in (variant, _up_to_unindented(variant)):
            if not part.strip():
                continue
            tree = _tree(head + part)
            if tree is not None and len(ast.dump(tree)) > before:
                return head + part
    return None


def _indented(body: str) -> Iterator[str]:
    """The body as a function's, by the likeliest reading of its indentation first."""
    lines = body.strip("\n").split("\n")
    first_is_bare = lines[0][:1] not in (" ", "\t")
    if not first_is_bare:
        yield "\n".join(lines)
    if first_is_bare and any(line[:1] in (" ", "\t") for line in lines[1:]):
        # the answer's leading white space was stripped, as chat servers do
        yield "\n".join(["    " + lines[0], *lines[1:]])
    yield textwrap.indent(textwrap.dedent("\n".join(lines)), "    ")


def _up_to_unindented(body: str) -> str:
    kept = []
    for line in body.split("\n"):
        if line.strip() and not line[0].isspace():
            break
        kept.append(line)
    return "\n".join(kept)


def _best_guess(candidates: Sequence[str], text: str) -> str:
    """Without a definition to go by: the last block that reads its input, else the last that is code, else the text."""
    valid = [source for source in candidates if _tree(source) is not None]
    reading = [source for source in valid if _READS_INPUT.search(source)]
    for group in (reading, valid, candidates):
        if group:
            return group[-1]
    return text
