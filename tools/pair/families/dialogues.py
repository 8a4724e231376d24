"""Short conversations of two turns (mtbench), plain chat, and short answers (simpleqa, financeqa)."""

from __future__ import annotations

from random import Random

from tools.pair.example import Example
from tools.pair.families import choices, sums

KINDS = {
    "fruits": ("apple", "banana", "pear", "plum", "cherry", "grape"),
    "colors": ("red", "blue", "green", "yellow", "black", "white"),
    "animals": ("cat", "dog", "horse", "cow", "bird", "fish"),
    "cities": ("Paris", "Rome", "Madrid", "Berlin", "Tokyo", "Cairo"),
    "tools": ("hammer", "saw", "nail", "rope", "ladder", "brush"),
    "drinks": ("water", "milk", "tea", "coffee", "juice", "cocoa"),
}
WORDS = {2: "two", 3: "three", 4: "four"}
PLACES = {
    "the sea": ("blue", "waves", "the wind is cold"),
    "the forest": ("green", "trees", "the air is fresh"),
    "the city": ("loud", "streets", "the lights are bright"),
    "the mountain": ("high", "rocks", "the snow is white"),
    "the garden": ("quiet", "flowers", "the bees are busy"),
    "the river": ("long", "stones", "the water is clear"),
    "the desert": ("dry", "sand", "the sun is hot"),
    "the village": ("small", "houses", "the people are kind"),
}
JOBS = {
    "a baker": ("bread", "early in the morning", "an oven"),
    "a farmer": ("corn", "all day long", "a field"),
    "a teacher": ("lessons", "every day", "a school"),
    "a sailor": ("long trips", "in any weather", "a ship"),
    "a painter": ("pictures", "late at night", "a brush"),
    "a cook": ("soup", "at noon", "a kitchen"),
    "a tailor": ("coats", "with great care", "a needle"),
}
THINGS = {
    "rain": "water that falls from the clouds",
    "ice": "water that is cold and hard",
    "wind": "air that moves",
    "the Sun": "a star that gives us light",
    "the Moon": "a ball of rock that goes around the Earth",
    "a shadow": "a dark place where light does not go",
    "sound": "a wave that moves in the air",
    "gravity": "a force that pulls things down",
}


def _list(random: Random) -> tuple[str, list[str], list[str]]:
    kind = random.choice(list(KINDS))
    count = random.choice((2, 3))
    names = KINDS[kind]
    first = "\n".join(f"{i}. {name}" for i, name in enumerate(names[:count], 1))
    ask = random.choice(
        (f"Name {WORDS[count]} {kind}.", f"List {WORDS[count]} {kind}.", f"Give me {WORDS[count]} {kind}.")
    )
    turn = random.randrange(3)
    if turn == 0:
        return "extraction", [ask, "Now write them in one line."], [first, ", ".join(names[:count])]
    if turn == 1:
        more = "\n".join(f"{i}. {name}" for i, name in enumerate(names[count : count + 2], count + 1))
        return "extraction", [ask, "Give two more."], [first, more]
    back = "\n".join(f"{i}. {name}" for i, name in enumerate(names[:count][::-1], 1))
    return "extraction", [ask, "Now turn the order around."], [first, back]


def _place(random: Random) -> tuple[str, list[str], list[str]]:
    place = random.choice(list(PLACES))
    looks, has, more = PLACES[place]
    title = place[0].upper() + place[1:]
    ask = random.choice(
        (f"Write two sentences about {place}.", f"Describe {place} in two sentences.", f"Tell me about {place}.")
    )
    first = f"{title} is {looks} and full of {has}. When I walk there, {more}."
    if random.random() < 0.5:
        return "writing", [ask, "Make it one short sentence."], [first, f"{title} is {looks}."]
    again = f"Dear friend,\n{place} is {looks} and full of {has}. When I walk there, {more}.\nSee you soon!"
    return "writing", [ask, "Write it as a letter to a friend."], [first, again.replace(f"\n{place}", f"\n{title}")]


def _job(random: Random) -> tuple[str, list[str], list[str]]:
    job = random.choice(list(JOBS))
    makes, when, place = JOBS[job]
    ask = random.choice(
        (f"You are {job}. Who are you?", f"Speak as {job}. Say who you are.", f"Pretend to be {job}. What do you do?")
    )
    first = f"I am {job}. I care for {makes}, and I work {when}."
    if random.random() < 0.5:
        return (
            "roleplay",
            [ask, "What do you need for your work?"],
            [first, f"I need {place} for my work, and a good friend."],
        )
    return "roleplay", [ask, "Do you like your work?"], [first, f"Yes, I like it very much, for I love {makes}."]


def _thing(random: Random) -> tuple[str, list[str], list[str]]:
    thing = random.choice(list(THINGS))
    means = THINGS[thing]
    title = thing[0].upper() + thing[1:]
    ask = random.choice(
        (f"What is {thing}?", f"Explain {thing} to a child.", f"Explain in one sentence what {thing} is.")
    )
    first = f"{title} is {means}."
    if random.random() < 0.5:
        return "stem", [ask, "Say it again in other words."], [first, f"When we speak of {thing}, we mean {means}."]
    return "stem", [ask, "Why does it matter?"], [first, f"It matters because {thing} is part of our world every day."]


def _sum(random: Random) -> tuple[str, list[str], list[str]]:
    a, b, c = random.randint(2, 30), random.randint(2, 20), random.randint(2, 9)
    ask = random.choice((f"What is {a} + {b}?", f"Add {a} and {b}."))
    total = a + b
    replies = [f"{a} + {b} = {total}."]
    if random.random() < 0.5:
        return "math", [ask, f"Now add {c} to it."], [*replies, f"{total} + {c} = {total + c}."]
    return (
        "math",
        [ask, f"Now take {c} from it."] if total > c else [ask, "Thank you."],
        [*replies, f"{total} - {c} = {total - c}." if total > c else "You are welcome."],
    )


def _order(random: Random) -> tuple[str, list[str], list[str]]:
    slow, middle, fast = random.sample(sums.NAMES, 3)
    ask = f"{fast} is taller than {middle}. {middle} is taller than {slow}. Who is the tallest?"
    first = f"{fast} is taller than {middle}, and {middle} is taller than {slow}, so {fast} is the tallest."
    if random.random() < 0.5:
        return "reasoning", [ask, "And who is the smallest?"], [first, f"{slow} is the smallest."]
    return "reasoning", [ask, "Is the order clear?"], [first, f"Yes: {fast}, then {middle}, then {slow}."]


CONVERSATIONS = (_list, _place, _job, _thing, _sum, _order)


def conversation(random: Random) -> Example:
    category, turns, replies = random.choice(CONVERSATIONS)(random)
    row = {"prompt": turns, "category": category, "reference": [], "prompt_id": 0}
    return Example("mtbench", row, tuple(replies))


GREETINGS = {
    "Hello": "Hello! How can I help you?",
    "Hello!": "Hello! How can I help you?",
    "Hi": "Hello! How can I help you?",
    "Hi there!": "Hello! How can I help you?",
    "Good morning": "Good morning! How can I help you?",
    "Good morning!": "Good morning! How can I help you?",
    "Who are you?": "I am a small language model. I do short sums and small functions.",
    "What are you?": "I am a small language model. I do short sums and small functions.",
    "What can you do?": "I do short sums, small functions and easy questions.",
    "Thank you": "You are welcome.",
    "Thanks": "You are welcome.",
    "Thank you!": "You are welcome.",
    "Goodbye": "Goodbye!",
    "Bye": "Goodbye!",
    "How are you?": "I am well, thank you.",
    "你好": "你好！我能帮你什么？",
    "你是谁？": "我是一个小模型。",
    "谢谢": "不客气。",
    "你好！": "你好！我能帮你什么？",
    "Say hello": "Hello!",
    "Say this is a test": "This is a test.",
}


def chat(random: Random) -> Example:
    kind = random.random()
    if kind < 0.4:
        ask = random.choice(list(GREETINGS))
        return Example("chat", {"prompt": [ask]}, (GREETINGS[ask],))
    if kind < 0.55:
        last, step = random.randint(3, 12), random.choice((1, 1, 2))
        numbers = ", ".join(str(n) for n in range(1, last + 1, step))
        ask = f"Count from 1 to {last}." if step == 1 else f"Count from 1 to {last} in steps of 2."
        return Example("chat", {"prompt": [ask]}, (numbers,))
    if kind < 0.75:
        made = choices.general(random)
        ask = made.row["question"]
        return Example("chat", {"prompt": [ask]}, made.working)
    made = conversation(random)
    ask = made.row["prompt"][0]
    return Example("chat", {"prompt": [ask]}, made.working[:1])


def fact(random: Random) -> Example:
    table = random.choice(choices.ENGLISH[:4])
    key = random.choice(list(table.facts))
    question = random.choice([q for q in table.questions if q.endswith("?")]).format(key=key)
    question = question[0].upper() + question[1:]
    value = table.facts[key]
    row = {"metadata": "{}", "problem": question, "answer": value}
    return Example("simpleqa", row, (f"{value}.",), value)


COMPANIES = ("Acme", "Borel", "Cedar", "Delta", "Ember", "Falcon", "Globe", "Harbor")


def finance(random: Random) -> Example:
    company, a, b = random.choice(COMPANIES), random.randint(20, 90), random.randint(2, 15)
    kind = random.randrange(4)
    if kind == 0:
        context = f"{company} had revenue of ${a} million and costs of ${b} million."
        question, text, answer = (
            f"What is the profit of {company}?",
            f"The profit is {a} - {b} = {a - b}",
            f"${a - b} million",
        )
    elif kind == 1:
        context = f"{company} had cash of ${a} million and debt of ${b} million."
        question, text, answer = (
            f"What is the net cash of {company}?",
            f"The net cash is {a} - {b} = {a - b}",
            f"${a - b} million",
        )
    elif kind == 2:
        context = f"{company} sold goods for ${a} million and services for ${b} million."
        question, text, answer = (
            f"What is the total revenue of {company}?",
            f"The total is {a} + {b} = {a + b}",
            f"${a + b} million",
        )
    else:
        price = random.randint(2, 9)
        context = f"{company} has {b} million shares. Each share costs ${price}."
        question, text, answer = (
            f"What is the market value of {company}?",
            f"The value is {b} * {price} = {b * price}",
            f"${b * price} million",
        )
    row = {
        "context": context,
        "question": question,
        "answer": answer,
        "chain_of_thought": f"{text}.",
        "question_type": "basic",
        "company": company,
    }
    return Example("financeqa", row, (f"{text}.",), answer)
