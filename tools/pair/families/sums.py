"""Sums: told as stories (gsm8k), asked plainly (math500) and a little harder (aime)."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from random import Random

from tools.pair.example import Example

NAMES = (
    "Sam",
    "Ava",
    "Leo",
    "Mia",
    "Ben",
    "Zoe",
    "Tom",
    "Ivy",
    "Max",
    "Eva",
    "Dan",
    "Lily",
    "Omar",
    "Nora",
    "Raj",
    "Wei",
    "Anna",
    "Paul",
    "Sara",
    "Yuki",
)
THINGS = (
    "apples",
    "books",
    "pens",
    "coins",
    "cards",
    "shells",
    "stamps",
    "eggs",
    "cakes",
    "balls",
    "kites",
    "plums",
    "pears",
    "toys",
)
BOXES = ("boxes", "bags", "baskets", "shelves")
GAINS = ("buys", "finds", "gets", "wins")
LOSSES = ("gives away", "loses", "sells", "uses")
ORDINARY = 9


def _change(random: Random, name: str, start: int) -> tuple[str, str, int]:
    """One event of a story: its sentence, its working, and the new total."""
    amount = random.randint(2, 20)
    if random.random() < 0.5 or amount >= start:
        verb, sign, after, more = random.choice(GAINS), "+", start + amount, " more"
    else:
        verb, sign, after, more = random.choice(LOSSES), "-", start - amount, ""
    return f"{name} {verb} {amount}{more}.", f"{name} {verb} {amount}, so {start} {sign} {amount} = {after}.", after


def _stock(random: Random) -> tuple[str, list[str], int]:
    name, thing, total = random.choice(NAMES), random.choice(THINGS), random.randint(3, 30)
    story, working = [f"{name} has {total} {thing}."], []
    for _ in range(random.choice((1, 2, 2))):
        sentence, step, total = _change(random, name, total)
        story.append(sentence)
        working.append(step)
    ending = random.random()
    if ending < 0.6:
        story.append(f"How many {thing} does {name} have now?")
    elif ending < 0.8:
        price = random.randint(2, ORDINARY)
        story.append(f"Each of the {thing} costs ${price}. How much do they cost in all?")
        working.append(f"Each costs ${price}, so {total} * {price} = {total * price}.")
        total *= price
    else:
        other, extra = random.choice([n for n in NAMES if n != name]), random.randint(2, 20)
        story.append(f"{other} has {extra} more than {name}. How many {thing} does {other} have?")
        working.append(f"{other} has {extra} more, so {total} + {extra} = {total + extra}.")
        total += extra
    return " ".join(story), working, total


def _boxes(random: Random) -> tuple[str, list[str], int]:
    thing, box = random.choice(THINGS), random.choice(BOXES)
    count, each = random.randint(2, ORDINARY), random.randint(2, 12)
    total = count * each
    story = f"There are {count} {box} with {each} {thing} in each."
    working = [f"{count} {box} with {each} in each make {count} * {each} = {total}."]
    moved = random.randint(2, 15)
    ending = random.random()
    if ending < 0.3:
        return f"{story} How many {thing} are there?", working, total
    if ending < 0.65 and moved < total:
        working.append(f"{moved} are taken out, so {total} - {moved} = {total - moved}.")
        return f"{story} Then {moved} {thing} are taken out. How many {thing} are left?", working, total - moved
    working.append(f"{moved} more are put in, so {total} + {moved} = {total + moved}.")
    return f"{story} Then {moved} more are put in. How many {thing} are there now?", working, total + moved


def _shop(random: Random) -> tuple[str, list[str], int]:
    name, thing = random.choice(NAMES), random.choice(THINGS)
    count, price = random.randint(2, ORDINARY), random.randint(2, 10)
    cost = count * price
    story = f"{name} buys {count} {thing} for ${price} each."
    working = [f"{count} {thing} cost {count} * {price} = {cost} dollars."]
    if random.random() < 0.4:
        return f"{story} How many dollars does {name} pay?", working, cost
    paid = random.choice([note for note in (20, 50, 100) if note > cost])
    working.append(f"{name} gets back {paid} - {cost} = {paid - cost} dollars.")
    return f"{story} {name} pays with ${paid}. How many dollars does {name} get back?", working, paid - cost


def _share(random: Random) -> tuple[str, list[str], int]:
    name, thing = random.choice(NAMES), random.choice(THINGS)
    friends, each = random.randint(2, ORDINARY), random.randint(2, 10)
    total = friends * each
    story = f"{name} shares {total} {thing} equally among {friends} friends."
    working = [f"Each friend gets {total} / {friends} = {each}."]
    if random.random() < 0.6:
        return f"{story} How many {thing} does each friend get?", working, each
    eaten = random.randint(1, each - 1)
    working.append(f"After giving {eaten} away, {each} - {eaten} = {each - eaten} are left.")
    return f"{story} One friend gives {eaten} away. How many {thing} does that friend have left?", working, each - eaten


def _together(random: Random) -> tuple[str, list[str], int]:
    name, other = random.sample(NAMES, 2)
    thing, first = random.choice(THINGS), random.randint(2, 25)
    times, word = random.choice(((2, "twice"), (3, "three times")))
    second = first * times
    story = f"{name} has {first} {thing}. {other} has {word} as many."
    working = [f"{other} has {first} * {times} = {second} {thing}."]
    if random.random() < 0.4:
        return f"{story} How many {thing} does {other} have?", working, second
    working.append(f"Together they have {first} + {second} = {first + second}.")
    return f"{story} How many {thing} do they have together?", working, first + second


def _pages(random: Random) -> tuple[str, list[str], int]:
    name, each, days = random.choice(NAMES), random.randint(3, 15), random.randint(2, ORDINARY)
    read = each * days
    story = f"{name} reads {each} pages a day for {days} days."
    working = [f"In {days} days {name} reads {each} * {days} = {read} pages."]
    if random.random() < 0.4:
        return f"{story} How many pages does {name} read?", working, read
    book = read + random.randint(5, 40)
    working.append(f"There are {book} - {read} = {book - read} pages left.")
    return f"{story} The book has {book} pages. How many pages are left?", working, book - read


STORIES: tuple[Callable[[Random], tuple[str, list[str], int]], ...] = (
    _stock,
    _stock,
    _boxes,
    _shop,
    _share,
    _together,
    _pages,
)


def story(random: Random) -> Example:
    question, working, answer = random.choice(STORIES)(random)
    text = " ".join(working)
    return Example("gsm8k", {"question": question, "answer": f"{text}\n#### {answer}"}, (text,), str(answer))


def _fraction(top: int, bottom: int) -> str:
    return rf"\frac{{{top}}}{{{bottom}}}"


def _plain(random: Random) -> tuple[str, str, str, str]:
    """A problem of school mathematics: problem, working, answer and subject."""
    kind = random.randrange(9)
    a, b, c = random.randint(2, 40), random.randint(2, 40), random.randint(2, ORDINARY)
    if kind == 0:
        question = random.choice((f"What is ${a} + {b}$?", f"Compute ${a} + {b}$."))
        return question, f"{a} + {b} = {a + b}.", str(a + b), "Prealgebra"
    if kind == 1:
        a, b = max(a, b) + 1, min(a, b)
        question = random.choice((f"What is ${a} - {b}$?", f"Compute ${a} - {b}$."))
        return question, f"{a} - {b} = {a - b}.", str(a - b), "Prealgebra"
    if kind == 2:
        a = random.randint(2, 12)
        if random.random() < 0.5:
            return rf"What is ${a} \cdot {c}$?", f"{a} * {c} = {a * c}.", str(a * c), "Prealgebra"
        working = f"{a} * {c} = {a * c}. {a * c} + {b} = {a * c + b}."
        return rf"Compute ${a} \cdot {c} + {b}$.", working, str(a * c + b), "Prealgebra"
    if kind == 3:
        question = f"Solve for $x$: $x + {a} = {a + b}$."
        return question, f"x = {a + b} - {a} = {b}.", str(b), "Algebra"
    if kind == 4:
        a = random.randint(2, 12)
        question = f"Solve for $x$: ${c}x = {a * c}$."
        return question, f"x = {a * c} / {c} = {a}.", str(a), "Algebra"
    if kind == 5:
        bottom = random.randint(2, ORDINARY)
        top = random.randint(1, bottom - 1)
        if gcd(top, bottom) > 1:
            top, bottom = top // gcd(top, bottom), bottom // gcd(top, bottom)
        scale, answer = c, _fraction(top, bottom)
        question = f"Simplify ${_fraction(top * scale, bottom * scale)}$."
        return question, f"Divide both parts by {scale}: {top} over {bottom}.", answer, "Prealgebra"
    if kind == 6:
        a = random.randint(2, 12)
        if random.random() < 0.5:
            question = f"A rectangle has sides of length {a} and {c}. What is its area?"
            return question, f"The area is {a} * {c} = {a * c}.", str(a * c), "Geometry"
        question = f"A rectangle has sides of length {a} and {c}. What is its perimeter?"
        working = f"{a} + {c} = {a + c}. The perimeter is 2 * {a + c} = {2 * (a + c)}."
        return question, working, str(2 * (a + c)), "Geometry"
    if kind == 7:
        question = f"What is the remainder when {a} is divided by {c}?"
        return question, f"{a} = {c} * {a // c} + {a % c}.", str(a % c), "Number Theory"
    tens, whole = random.randint(1, 9) * 10, random.randint(1, 9) * 10
    value = tens * whole // 100
    return rf"What is ${tens}\%$ of {whole}?", f"{tens // 10} * {whole // 10} = {value}.", str(value), "Prealgebra"


def problem(random: Random) -> Example:
    question, working, answer, subject = _plain(random)
    row = {
        "problem": question,
        "solution": rf"{working} The answer is $\boxed{{{answer}}}$.",
        "answer": answer,
        "subject": subject,
        "level": 1,
        "unique_id": "",
    }
    return Example("math500", row, (working,), answer)


def contest(random: Random) -> Example:
    kind, n, m = random.randrange(4), random.randint(3, 12), random.randint(3, ORDINARY)
    if kind == 0:
        total = n * (n + 1) // 2
        question = f"Find the sum of the first ${n}$ positive integers."
        working = f"The sum is {n} * {n + 1} / 2. {n} * {n + 1} = {n * (n + 1)}, and half of it is {total}."
    elif kind == 1:
        total = n * n
        question = f"Find the sum of the first ${n}$ odd positive integers."
        working = f"The sum of the first n odd integers is n * n. {n} * {n} = {total}."
    elif kind == 2:
        a = random.randint(2, ORDINARY)
        total = (a * n) % m
        question = rf"Find the remainder when ${a} \cdot {n}$ is divided by ${m}$."
        working = f"{a} * {n} = {a * n}. {a * n} = {m} * {a * n // m} + {total}."
    else:
        a, b = random.randint(2, 20), random.randint(1, 10)
        total = a * (a + b) if a * (a + b) < 1000 else a
        total = a + b
        question = f"Two positive integers have sum ${2 * a + b}$ and difference ${b}$. Find the larger one."
        working = f"{2 * a + b} + {b} = {2 * a + 2 * b}. Half of it is {total}."
    row = {"ID": "", "Problem": question, "Solution": rf"{working} The answer is $\boxed{{{total}}}$.", "Answer": total}
    return Example("aime", row, (working,), str(total))


def _expression(random: Random) -> tuple[str, int]:
    """One operation with numbers as large as the stories' are, and its value."""
    kind = random.randrange(4)
    if kind == 0:
        a, b = random.randint(2, 60), random.randint(2, 25)
        return f"{a} + {b}", a + b
    if kind == 1:
        b, rest = random.randint(2, 25), random.randint(0, 60)
        return f"{b + rest} - {b}", rest
    a, b = random.randint(2, 12), random.randint(2, 10)
    return (f"{a} * {b}", a * b) if kind == 2 else (f"{a * b} / {b}", a)


def drill(random: Random) -> Example:
    """Several sums at once: arithmetic is what takes longest to learn, and here nearly every token is of it."""
    drawn = [_expression(random) for _ in range(random.randint(3, 6))]
    ask = f"{random.choice(('Compute', 'Work out', 'Find'))} {', '.join(expression for expression, _ in drawn)}."
    return Example("chat", {"prompt": [ask]}, (" ".join(f"{expression} = {value}." for expression, value in drawn),))
