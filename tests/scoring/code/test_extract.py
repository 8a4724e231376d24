"""The program is found in whatever a model writes around it."""

from __future__ import annotations

import pytest

from specforge.scoring.code.extract import extract_code

PROMPT = 'import math\n\ndef half(n):\n    """Half of n, rounded down.\n    >>> half(5)\n    2\n    """\n'
BODY = "    rest = n % 2\n    return (n - rest) // 2\n"
WHOLE = "def half(n):\n" + BODY


def value(output: str, n: int = 7) -> object:
    """What the function makes of ``n`` once the extracted program has run after the prompt."""
    source = extract_code(output, names=("half",), prompt=PROMPT)
    assert source is not None
    namespace: dict[str, object] = {}
    exec(compile(PROMPT, "<prompt>", "exec"), namespace)
    exec(compile(source, "<program>", "exec"), namespace)
    half = namespace["half"]
    assert callable(half)
    return half(n)


FORMS = {
    "the body alone": BODY,
    "the body, its leading white space stripped": BODY.strip(),
    "the body, not indented": "rest = n % 2\nreturn (n - rest) // 2\n",
    "the body, indented by two": "  rest = n % 2\n  return (n - rest) // 2\n",
    "the body, by tabs": "\trest = n % 2\n\treturn (n - rest) // 2\n",
    "the body, then another function": BODY + "\ndef other():\n    pass\n",
    "the body, then prose": BODY + "\nThis works because n is an integer.\n",
    "the body, then a call": BODY + "\nprint(half(3))\n",
    "the body in a fence": f"```python\n{BODY}```",
    "the body in a fence that was opened by the prompt": f"{BODY}```\nDone.",
    "the whole function": WHOLE,
    "the whole function with the prompt": PROMPT + BODY,
    "a fence": f"```python\n{WHOLE}```",
    "a fence and prose": f"Sure!\n\n```python\n{WHOLE}```\n\nIt rounds down.",
    "a fence without a language": f"```\n{WHOLE}```",
    "a fence in capitals": f"```Python\n{WHOLE}```",
    "a fence with attributes": f'```python title="half.py"\n{WHOLE}```',
    "a fence of tildes": f"~~~py\n{WHOLE}~~~",
    "a longer fence": f"````python\n{WHOLE}````",
    "an indented fence": "1. Like this:\n   ```python\n"
    + "".join(f"   {line}\n" for line in WHOLE.splitlines())
    + "   ```\n",
    "a fence that is never closed": f"```python\n{WHOLE}",
    "a closing fence alone": f"{WHOLE}```",
    "carriage returns": f"```python\n{WHOLE}```".replace("\n", "\r\n"),
    "prose without a fence": f"Here is the function:\n\n{WHOLE}\nIt runs in constant time.",
    "a use in prose before it": f"We call half(4) to get 2.\n\n{WHOLE}",
    "thoughts with another answer": "<think>\n```python\ndef half(n):\n    return 0\n```\n</think>\n"
    f"```python\n{WHOLE}```",
    "a draft first": f"First try:\n```python\ndef half(n):\n    return 0\n```\nBetter:\n```python\n{WHOLE}```",
    "a use in a second block": f"```python\n{WHOLE}```\nUse:\n```python\nprint(half(4))\n```",
    "a use in the first block": f"```python\nhalf(4)\n```\nThe function:\n```python\n{WHOLE}```",
    "output in a block of another language": f"```python\n{WHOLE}```\n```text\nhalf = 3\n```",
    "a shell block": f"```bash\npip install half\n```\n```python\n{WHOLE}```",
    "a helper in another block": "```python\ndef rest_of(n):\n    return n % 2\n```\n"
    "```python\ndef half(n):\n    return (n - rest_of(n)) // 2\n```",
    "an import in another block": "```python\nfrom operator import floordiv as div\n```\n"
    "```python\ndef half(n):\n    return div(n, 2)\n```",
    "a lambda": "```python\nhalf = lambda n: n // 2\n```",
    "an import from the future": f"```python\nfrom __future__ import annotations\n{WHOLE}```",
    "the prompt's import": "```python\ndef half(n):\n    return math.floor(n / 2)\n```",
    "a docstring": '```python\ndef half(n):\n    """Half.\n\n    >>> half(7)\n    3\n    """\n    return n // 2\n```',
}


@pytest.mark.parametrize("form", FORMS)
def test_the_function_is_found_in(form: str) -> None:
    assert value(FORMS[form]) == 3


@pytest.mark.parametrize("output", ["", "   \n\n", "<think>I wonder</think>"])
def test_an_output_without_text_has_no_program(output: str) -> None:
    assert extract_code(output, names=("half",), prompt=PROMPT) is None


def test_prose_alone_makes_no_working_function() -> None:
    source = extract_code("I can't help with that.", names=("half",), prompt=PROMPT)

    assert source is not None
    with pytest.raises(SyntaxError):
        compile(source, "<program>", "exec")


def test_a_script_is_the_last_block_that_reads_its_input() -> None:
    output = "```python\nn = int(input())\nprint(n)\n```\nFor example:\n```python\nprint(3)\n```\n```\n3\n```"

    assert extract_code(output) == "n = int(input())\nprint(n)"


def test_a_script_that_reads_nothing_is_the_last_block_of_code() -> None:
    assert extract_code("```python\nprint(1)\n```\nor\n```python\nprint(2)\n```\n```text\n2\n```") == "print(2)"


def test_a_method_is_found_by_its_class() -> None:
    output = "```python\nclass Solution:\n    def go(self): return 1\n```\n```python\nprint(Solution().go())\n```"

    source = extract_code(output, names=("Solution", "go"))

    assert source is not None
    assert source.startswith("class Solution:")


def test_a_long_text_without_code_is_given_up_soon() -> None:
    output = "\n".join(f"import the half number {number}" for number in range(5000))

    assert extract_code(output, names=("half",)) is not None
