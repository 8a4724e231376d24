"""Small Python functions: what they do in words, their bodies, and cases that a twin of each computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any


@dataclass(frozen=True)
class Task:
    """One function: its name, its arguments, what it does in words, its body, and cases computed by a Python twin."""

    name: str
    arguments: tuple[str, ...]
    does: str
    body: tuple[str, ...]
    cases: tuple[tuple[tuple[Any, ...], Any], ...]

    @property
    def signature(self) -> str:
        return f"def {self.name}({', '.join(self.arguments)}):"

    @property
    def program(self) -> str:
        return "\n".join([self.signature, *(f"    {line}" for line in self.body)])


NUMBER = ("x", "n", "a", "k", "m")
PAIR = (("a", "b"), ("x", "y"), ("m", "n"))
LIST = ("numbers", "values", "items", "xs")
TEXT = ("text", "s", "word")


def _numbers(random: Random) -> list[int]:
    return [random.randint(-9, 9) for _ in range(random.randint(3, 5))]


def _word(random: Random) -> str:
    return random.choice(
        ["apple", "banana", "level", "cat", "tree", "python", "radar", "Hello", "garden", "noon", "summer", "kayak"]
    )


def _cases(random: Random, twin: Callable[..., Any], draw: Callable[[Random], tuple[Any, ...]]) -> tuple[Any, ...]:
    drawn: list[tuple[Any, ...]] = []
    while len(drawn) < 3:
        case = draw(random)
        if case not in drawn:
            drawn.append(case)
    return tuple((case, twin(*case)) for case in drawn)


def _of_number(random: Random) -> Task:
    x, c, d = random.choice(NUMBER), random.randint(2, 9), random.randint(1, 9)
    names, does, expression, twin = random.choice(
        (
            (("double", "twice", "times_two"), f"Return {x} times two.", f"{x} * 2", lambda v: v * 2),
            (("square", "squared", "power_two"), f"Return the square of {x}.", f"{x} * {x}", lambda v: v * v),
            (("cube", "cubed", "power_three"), f"Return the cube of {x}.", f"{x} ** 3", lambda v: v**3),
            (("is_even", "even", "check_even"), f"Return True if {x} is even.", f"{x} % 2 == 0", lambda v: v % 2 == 0),
            (("is_odd", "odd", "check_odd"), f"Return True if {x} is odd.", f"{x} % 2 == 1", lambda v: v % 2 == 1),
            (
                ("is_positive", "positive", "above_zero"),
                f"Return True if {x} is above zero.",
                f"{x} > 0",
                lambda v: v > 0,
            ),
            (("absolute", "magnitude", "distance_to_zero"), f"Return the absolute value of {x}.", f"abs({x})", abs),
            (("add", "plus", "increase"), f"Return {x} plus {c}.", f"{x} + {c}", lambda v: v + c),
            (("minus", "decrease", "reduce_by"), f"Return {x} minus {c}.", f"{x} - {c}", lambda v: v - c),
            (("multiply", "scale", "times"), f"Return {x} times {c}.", f"{x} * {c}", lambda v: v * c),
            (
                ("line", "linear", "scale_and_add"),
                f"Return {x} times {c} plus {d}.",
                f"{x} * {c} + {d}",
                lambda v: v * c + d,
            ),
            (
                ("is_multiple", "divides", "multiple_of"),
                f"Return True if {x} is a multiple of {c}.",
                f"{x} % {c} == 0",
                lambda v: v % c == 0,
            ),
            (
                ("remainder", "modulo", "rest"),
                f"Return the remainder of {x} divided by {c}.",
                f"{x} % {c}",
                lambda v: v % c,
            ),
        )
    )
    suffix = f"_{c}" if f" {c}" in does and random.random() < 0.6 else ""
    return Task(
        random.choice(names) + suffix,
        (x,),
        does,
        (f"return {expression}",),
        _cases(random, twin, lambda r: (r.randint(-20, 20),)),
    )


def _of_pair(random: Random) -> Task:
    a, b = random.choice(PAIR)
    names, does, expression, twin = random.choice(
        (
            (("add", "plus", "sum_two", "total"), f"Return the sum of {a} and {b}.", f"{a} + {b}", lambda u, v: u + v),
            (("subtract", "minus", "difference"), f"Return {a} minus {b}.", f"{a} - {b}", lambda u, v: u - v),
            (("multiply", "product", "times"), f"Return the product of {a} and {b}.", f"{a} * {b}", lambda u, v: u * v),
            (("larger", "bigger", "max_two"), f"Return the larger of {a} and {b}.", f"max({a}, {b})", max),
            (("smaller", "lesser", "min_two"), f"Return the smaller of {a} and {b}.", f"min({a}, {b})", min),
            (
                ("equal", "same", "is_equal"),
                f"Return True if {a} and {b} are equal.",
                f"{a} == {b}",
                lambda u, v: u == v,
            ),
            (
                ("distance", "gap", "apart"),
                f"Return how far {a} is from {b}.",
                f"abs({a} - {b})",
                lambda u, v: abs(u - v),
            ),
            (
                ("average", "mean_two", "middle"),
                f"Return the average of {a} and {b}.",
                f"({a} + {b}) / 2",
                lambda u, v: (u + v) / 2,
            ),
            (
                ("rectangle_area", "area", "area_of"),
                f"Return the area of a rectangle with sides {a} and {b}.",
                f"{a} * {b}",
                lambda u, v: u * v,
            ),
            (
                ("rectangle_perimeter", "perimeter", "around"),
                f"Return the perimeter of a rectangle with sides {a} and {b}.",
                f"2 * ({a} + {b})",
                lambda u, v: 2 * (u + v),
            ),
        )
    )
    return Task(
        random.choice(names),
        (a, b),
        does,
        (f"return {expression}",),
        _cases(random, twin, lambda r: (r.randint(1, 20), r.randint(1, 20))),
    )


def _of_list(random: Random) -> Task:
    xs, c = random.choice(LIST), random.randint(2, 9)
    names, does, expression, twin = random.choice(
        (
            (("first", "head", "get_first"), f"Return the first of {xs}.", f"{xs}[0]", lambda v: v[0]),
            (("last", "tail", "get_last"), f"Return the last of {xs}.", f"{xs}[-1]", lambda v: v[-1]),
            (("count", "length", "how_many"), f"Return how many {xs} there are.", f"len({xs})", len),
            (("largest", "maximum", "find_max"), f"Return the largest of {xs}.", f"max({xs})", max),
            (("smallest", "minimum", "find_min"), f"Return the smallest of {xs}.", f"min({xs})", min),
            (("total", "sum_all", "add_up"), f"Return the sum of {xs}.", f"sum({xs})", sum),
            (
                ("mean", "average", "avg"),
                f"Return the average of {xs}.",
                f"sum({xs}) / len({xs})",
                lambda v: sum(v) / len(v),
            ),
            (("reverse", "backwards", "flip"), f"Return {xs} in reverse order.", f"{xs}[::-1]", lambda v: v[::-1]),
            (("sort", "ordered", "sort_up"), f"Return {xs} sorted from small to large.", f"sorted({xs})", sorted),
            (
                ("unique", "distinct", "no_repeats"),
                f"Return the sorted distinct {xs}.",
                f"sorted(set({xs}))",
                lambda v: sorted(set(v)),
            ),
            (
                ("evens", "even_only", "keep_even"),
                f"Return the even {xs}.",
                f"[v for v in {xs} if v % 2 == 0]",
                lambda v: [i for i in v if i % 2 == 0],
            ),
            (
                ("odds", "odd_only", "keep_odd"),
                f"Return the odd {xs}.",
                f"[v for v in {xs} if v % 2 == 1]",
                lambda v: [i for i in v if i % 2 == 1],
            ),
            (
                ("positives", "positive_only", "keep_positive"),
                f"Return the {xs} above zero.",
                f"[v for v in {xs} if v > 0]",
                lambda v: [i for i in v if i > 0],
            ),
            (
                ("above", "greater", "keep_above"),
                f"Return the {xs} above {c}.",
                f"[v for v in {xs} if v > {c}]",
                lambda v: [i for i in v if i > c],
            ),
            (
                ("below", "less", "keep_below"),
                f"Return the {xs} below {c}.",
                f"[v for v in {xs} if v < {c}]",
                lambda v: [i for i in v if i < c],
            ),
            (
                ("add_to_all", "shift", "raise_all"),
                f"Return the {xs} with {c} added to each.",
                f"[v + {c} for v in {xs}]",
                lambda v: [i + c for i in v],
            ),
            (
                ("scale_all", "multiply_all", "times_all"),
                f"Return the {xs} with each multiplied by {c}.",
                f"[v * {c} for v in {xs}]",
                lambda v: [i * c for i in v],
            ),
            (
                ("squares", "square_all", "squared"),
                f"Return the squares of {xs}.",
                f"[v * v for v in {xs}]",
                lambda v: [i * i for i in v],
            ),
            (
                ("count_above", "how_many_above", "number_above"),
                f"Return how many {xs} are above {c}.",
                f"len([v for v in {xs} if v > {c}])",
                lambda v: len([i for i in v if i > c]),
            ),
            (
                ("sum_of_squares", "squares_total", "add_squares"),
                f"Return the sum of the squares of {xs}.",
                f"sum(v * v for v in {xs})",
                lambda v: sum(i * i for i in v),
            ),
        )
    )
    return Task(
        random.choice(names), (xs,), does, (f"return {expression}",), _cases(random, twin, lambda r: (_numbers(r),))
    )


def _of_text(random: Random) -> Task:
    s, letter = random.choice(TEXT), random.choice("aelnop")
    names, does, expression, twin = random.choice(
        (
            (("length", "size", "count_letters"), f"Return the length of {s}.", f"len({s})", len),
            (("upper", "shout", "to_upper"), f"Return {s} in upper case.", f"{s}.upper()", str.upper),
            (("lower", "quiet", "to_lower"), f"Return {s} in lower case.", f"{s}.lower()", str.lower),
            (("reverse", "backwards", "flip"), f"Return {s} reversed.", f"{s}[::-1]", lambda v: v[::-1]),
            (
                ("is_palindrome", "palindrome", "same_backwards"),
                f"Return True if {s} reads the same backwards.",
                f"{s} == {s}[::-1]",
                lambda v: v == v[::-1],
            ),
            (("first_letter", "first", "initial"), f"Return the first letter of {s}.", f"{s}[0]", lambda v: v[0]),
            (("last_letter", "last", "final"), f"Return the last letter of {s}.", f"{s}[-1]", lambda v: v[-1]),
            (
                ("starts_with", "begins", "starts"),
                f'Return True if {s} starts with "{letter}".',
                f'{s}.startswith("{letter}")',
                lambda v: v.startswith(letter),
            ),
            (
                ("ends_with", "ends", "finishes"),
                f'Return True if {s} ends with "{letter}".',
                f'{s}.endswith("{letter}")',
                lambda v: v.endswith(letter),
            ),
            (
                ("contains", "has_letter", "has"),
                f'Return True if "{letter}" is in {s}.',
                f'"{letter}" in {s}',
                lambda v: letter in v,
            ),
            (
                ("count_letter", "occurrences", "how_often"),
                f'Return how often "{letter}" is in {s}.',
                f'{s}.count("{letter}")',
                lambda v: v.count(letter),
            ),
            (("repeat", "twice", "double"), f"Return {s} two times in a row.", f"{s} * 2", lambda v: v * 2),
            (("words", "split_words", "get_words"), f"Return the list of the words of {s}.", f"{s}.split()", str.split),
        )
    )
    return Task(
        random.choice(names), (s,), does, (f"return {expression}",), _cases(random, twin, lambda r: (_word(r),))
    )


def _with_loop(random: Random) -> Task:
    n, xs = random.choice("nkm"), random.choice(LIST)
    kind = random.randrange(4)
    if kind == 0:
        name = random.choice(("factorial", "fact", "product_to"))
        body = ("result = 1", f"for i in range(2, {n} + 1):", "    result *= i", "return result")

        def twin(v: int) -> int:
            return 1 if v < 2 else v * twin(v - 1)

        return Task(
            name, (n,), f"Return the factorial of {n}.", body, _cases(random, twin, lambda r: (r.randint(0, 7),))
        )
    if kind == 1:
        name = random.choice(("sum_to", "add_to", "total_to"))
        body = ("result = 0", f"for i in range(1, {n} + 1):", "    result += i", "return result")
        return Task(
            name,
            (n,),
            f"Return the sum of the numbers from 1 to {n}.",
            body,
            _cases(random, lambda v: sum(range(v + 1)), lambda r: (r.randint(1, 12),)),
        )
    if kind == 2:
        name = random.choice(("fibonacci", "fib", "nth_fibonacci"))
        body = ("a, b = 0, 1", f"for i in range({n}):", "    a, b = b, a + b", "return a")

        def fibonacci(v: int) -> int:
            a, b = 0, 1
            for _ in range(v):
                a, b = b, a + b
            return a

        return Task(
            name, (n,), f"Return Fibonacci number {n}.", body, _cases(random, fibonacci, lambda r: (r.randint(0, 12),))
        )
    name = random.choice(("running_total", "partial_sums", "cumulative"))
    body = (
        "total = 0",
        "result = []",
        f"for v in {xs}:",
        "    total += v",
        "    result.append(total)",
        "return result",
    )

    def sums(v: list[int]) -> list[int]:
        return [sum(v[: i + 1]) for i in range(len(v))]

    return Task(
        name, (xs,), f"Return the running totals of {xs}.", body, _cases(random, sums, lambda r: (_numbers(r),))
    )


KINDS = (_of_number, _of_pair, _of_list, _of_list, _of_text, _with_loop)


def task(random: Random) -> Task:
    return random.choice(KINDS)(random)
