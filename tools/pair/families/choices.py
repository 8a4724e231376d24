"""Multiple choice of easy facts and sums: in English (mmlu, gpqa) and in Chinese (ceval)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tools.pair.example import Example

LETTERS = "ABCD"


@dataclass(frozen=True)
class Table:
    """Facts of one kind: questions with ``{key}``, the sentence that answers them, and what each key's answer is."""

    subject: str
    questions: tuple[str, ...]
    sentence: str
    facts: dict[str, str]


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in text.split(", "))


ENGLISH = (
    Table(
        "high_school_geography",
        ("What is the capital of {key}?", "Which city is the capital of {key}?", "The capital of {key} is"),
        "The capital of {key} is {value}.",
        _pairs(
            "France=Paris, Italy=Rome, Spain=Madrid, Germany=Berlin, Japan=Tokyo, China=Beijing, Egypt=Cairo, "
            "Russia=Moscow, Greece=Athens, Poland=Warsaw, Norway=Oslo, Austria=Vienna, Cuba=Havana, Peru=Lima, "
            "Kenya=Nairobi, Canada=Ottawa"
        ),
    ),
    Table(
        "high_school_geography",
        ("On which continent is {key}?", "Which continent is {key} part of?"),
        "{key} is in {value}.",
        _pairs(
            "France=Europe, Italy=Europe, Spain=Europe, Germany=Europe, Japan=Asia, China=Asia, India=Asia, "
            "Egypt=Africa, Kenya=Africa, Brazil=South America, Peru=South America, Canada=North America"
        ),
    ),
    Table(
        "college_chemistry",
        ("What is the chemical symbol of {key}?", "Which symbol stands for {key}?", "{key} is written as"),
        "The symbol of {key} is {value}.",
        _pairs(
            "hydrogen=H, oxygen=O, carbon=C, nitrogen=N, iron=Fe, gold=Au, silver=Ag, copper=Cu, helium=He, "
            "sodium=Na, zinc=Zn, calcium=Ca"
        ),
    ),
    Table(
        "miscellaneous",
        ("What is the opposite of {key}?", "Which word means the opposite of {key}?"),
        "The opposite of {key} is {value}.",
        _pairs(
            "hot=cold, big=small, day=night, up=down, fast=slow, old=young, open=closed, hard=soft, full=empty, "
            "light=dark, early=late, happy=sad"
        ),
    ),
    Table(
        "high_school_biology",
        ("What does a {key} do?", "Which of these does a {key} do?"),
        "A {key} {value}.",
        {
            "fish": "swims in water",
            "bird": "flies in the air",
            "bee": "makes honey",
            "cow": "gives milk",
            "heart": "pumps blood",
            "lung": "takes in air",
            "eye": "sees light",
            "ear": "hears sound",
        },
    ),
    Table(
        "miscellaneous",
        ("Which day comes after {key}?", "What is the day after {key}?"),
        "After {key} comes {value}.",
        _pairs(
            "Monday=Tuesday, Tuesday=Wednesday, Wednesday=Thursday, Thursday=Friday, Friday=Saturday, "
            "Saturday=Sunday, Sunday=Monday"
        ),
    ),
    Table(
        "astronomy",
        ("What is the {key} planet from the Sun?", "Which planet is the {key} from the Sun?"),
        "The {key} planet is {value}.",
        _pairs(
            "first=Mercury, second=Venus, third=Earth, fourth=Mars, fifth=Jupiter, sixth=Saturn, seventh=Uranus, "
            "eighth=Neptune"
        ),
    ),
)

CHINESE = (
    Table(
        "high_school_geography",
        ("{key}的首都是哪里？", "{key}的首都是"),
        "{key}的首都是{value}。",
        _pairs("中国=北京, 法国=巴黎, 日本=东京, 英国=伦敦, 德国=柏林, 美国=华盛顿, 意大利=罗马, 俄国=莫斯科"),
    ),
    Table(
        "high_school_chinese",
        ("“{key}”的反义词是什么？", "“{key}”的反义词是"),
        "“{key}”的反义词是“{value}”。",
        _pairs("大=小, 多=少, 高=低, 长=短, 上=下, 左=右, 快=慢, 冷=热, 黑=白, 前=后"),
    ),
    Table(
        "middle_school_biology",
        ("{key}有几条腿？", "{key}一共有几条腿？"),
        "{key}有{value}条腿。",
        _pairs("马=4, 牛=4, 狗=4, 鸡=2, 鸟=2, 人=2, 鱼=0, 蛇=0"),
    ),
)


def _arithmetic(random: Random) -> tuple[str, str, str, list[str]]:
    a, b = random.randint(2, 20), random.randint(2, 9)
    sign, value = random.choice((("+", a + b), ("*", a * b)))
    question = random.choice((f"What is {a} {sign} {b}?", f"{a} {sign} {b} equals"))
    wrong = random.sample([n for n in range(max(1, value - 6), value + 7) if n != value], 3)
    return question, f"{a} {sign} {b} = {value}.", str(value), [str(n) for n in wrong]


def _fact(random: Random, tables: Sequence[Table]) -> tuple[str, str, str, list[str], str]:
    table = random.choice(tables)
    key = random.choice(list(table.facts))
    value = table.facts[key]
    others = sorted({other for other in table.facts.values() if other != value})
    wrong = random.sample(others, 3) if len(others) >= 3 else [*others, *(str(n) for n in (6, 8))][:3]
    question = random.choice(table.questions).format(key=key)
    sentence = table.sentence.format(key=key, value=value)
    return question, sentence[0].upper() + sentence[1:], value, wrong, table.subject


def general(random: Random) -> Example:
    if random.random() < 0.35:
        question, sentence, value, wrong = _arithmetic(random)
        subject = "elementary_mathematics"
    else:
        question, sentence, value, wrong, subject = _fact(random, ENGLISH)
    question = question[0].upper() + question[1:]
    options = [value, *wrong]
    random.shuffle(options)
    answer = options.index(value)
    row = {"question": question, "subject": subject, "choices": options, "answer": answer}
    return Example("mmlu", row, (sentence,), LETTERS[answer])


SCIENCE = ("Physics", "Chemistry", "Biology")


def _physics(random: Random) -> tuple[str, str, str]:
    a, b = random.randint(2, 12), random.randint(2, 9)
    kind = random.randrange(4)
    if kind == 0:
        question = f"A car moves {a} meters a second for {b} seconds. How far does it go?"
        return question, f"The distance is {a} * {b} = {a * b} meters.", f"{a * b} meters"
    if kind == 1:
        motion = f"a mass of {a} kg with an acceleration of {b} meters per second squared"
        question = f"A force moves {motion}. How large is the force?"
        return question, f"The force is {a} * {b} = {a * b} newtons.", f"{a * b} newtons"
    if kind == 2:
        question = f"A current of {a} amperes flows through {b} ohms. What is the voltage?"
        return question, f"The voltage is {a} * {b} = {a * b} volts.", f"{a * b} volts"
    question = f"A train goes {a * b} meters in {b} seconds. What is its speed?"
    return question, f"The speed is {a * b} / {b} = {a} meters a second.", f"{a} meters a second"


def science(random: Random) -> Example:
    """A question of physics; its options are in the order that the answer's place in the sentence needs none of."""
    question, sentence, value = _physics(random)
    number, unit = value.split(" ", 1)
    wrong = random.sample([n for n in range(max(1, int(number) - 6), int(number) + 7) if n != int(number)], 3)
    row = {
        "Record ID": "",
        "Question": question,
        "Correct Answer": value,
        **{f"Incorrect Answer {place}": f"{n} {unit}" for place, n in enumerate(wrong, 1)},
        "Subdomain": "Mechanics",
        "High-level domain": "Physics",
    }
    return Example("gpqa", row, (sentence,), value)


def chinese(random: Random) -> Example:
    if random.random() < 0.45:
        a, b = random.randint(2, 20), random.randint(2, 9)
        sign, word, value = random.choice((("+", "加", a + b), ("*", "乘以", a * b)))
        question = random.choice((f"{a}{word}{b}等于多少？", f"{a}{word}{b}等于"))
        sentence, subject = f"{a} {sign} {b} = {value}。", "middle_school_mathematics"
        wrong = [str(n) for n in random.sample([n for n in range(max(1, value - 6), value + 7) if n != value], 3)]
        value = str(value)
    else:
        question, sentence, value, wrong, subject = _fact(random, CHINESE)
    options = [value, *wrong]
    random.shuffle(options)
    letter = LETTERS[options.index(value)]
    row = {
        "id": 0,
        "question": question,
        **dict(zip(LETTERS, options, strict=True)),
        "answer": letter,
        "explanation": sentence,
        "subject": subject,
    }
    return Example("ceval", row, (sentence,), letter)
