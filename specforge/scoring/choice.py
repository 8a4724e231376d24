r"""Scores multiple choice: which letter does the text give as its answer?

In this order: the last statement of an answer (``Answer: B``, ``the answer is (B)``, ``答案是B``), unless a boxed
letter follows one that is only part of a sentence; the last ``\boxed`` letter; a letter that is called correct; one in
bold; one alone on the first or last line. An option's text given word for word counts as its letter. The article "A"
and the pronoun "I" do not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from specforge.scoring.score import Answer, Score, verdict
from specforge.scoring.statements import Statement, announced, in_order_of_weight, is_hedged, statements
from specforge.scoring.text import boxes, ending, plain, visible

_ALPHABET = "ABCDEFGHIJ"

_LEAD = re.compile(
    r"""(?:\s | [*_$`"'“”‘’«<\[({] | \\[(\[] | \\(?:boxed|fbox|text|textbf|mathbf|mathrm)\s*\{
    | (?:therefore|thus|hence|clearly|simply|definitely|probably|likely|most\s+likely|indeed|still|then)\b,?
    | (?:the\s+)?(?:option|choice|letter|answer|statement)\b\s*[:\#]?
    | 选项 | 选择 | 选 | 第 | : )*""",
    re.VERBOSE | re.IGNORECASE,
)
_CLOSERS = r"""[\s*_$`"'“”’»>\])}.]*"""
_LETTER = r"[A-Ja-j](?![A-Za-z0-9À-ɏ]|['’][a-z])"
# What may follow the letter A within a sentence; before any other word in lower case it is the article.
_CONNECTIVES = (
    "and|as|based|because|but|by|choice|due|for|from|given|here|if|in|instead|is|not|on|option|or|rather|since|so|that|"
    "though|although|when|where|which|while|with"
)
_SENTENCE_GOES_ON = re.compile(rf"\s+(?!(?:{_CONNECTIVES})\b)[a-z]")
_FORMULA_GOES_ON = re.compile(r"\s*[=<>^+≈]|\s+-\s|\([^)]*\)\s*=")
_ANOTHER_LETTER = re.compile(
    rf"{_CLOSERS}(?:,|/|&|\\&|、|和|或|与|及|\band\b|\bor\b)\s*(?:and\s|or\s)?\s*{_LEAD.pattern}(?P<letter>{_LETTER})"
    rf"(?={_CLOSERS}(?:$|[\n,;/&、和或与及。]|and\b|or\b|都|均|are\b))",
    re.VERBOSE | re.IGNORECASE,
)
_DENIED = re.compile(rf"(?:not|不是|并非)\s*{_LEAD.pattern}{_LETTER}(?P<rest>.*)", re.VERBOSE | re.IGNORECASE)
_INSTEAD = re.compile(r"\b(?:but|rather|instead)\b|而是|而应|,\s*是")
_REFUSED = re.compile(
    r"(?:none|neither|cannot|can't|unknown|unclear|undetermined|not\s+(?:given|listed)|all\s+of|both|无法|都不)\b",
    re.IGNORECASE,
)
_CHOSEN = re.compile(
    r"\b(?:choos(?:e|ing)|pick(?:ing)?|select(?:ing)?|go(?:ing)?\s+with|opt\s+for)\s"
    r"|\b(?:it|this|that)\s+(?:must|has\s+to)\s+be\s"
    r"|\b(?:guess\s+is|i(?:'d|\s+would)\s+(?:say|guess))\s"
    r"|(?<![若不果要能可])(?:选择|选)(?!项)",
    re.IGNORECASE,
)
_CALLED_CORRECT = re.compile(
    r"(?<![A-Za-z0-9_'’])\(?(?P<letter>[A-J])[).:]?(?:选项|项)?"
    r"(?:\s+is\s+(?:therefore\s+|thus\s+|clearly\s+|indeed\s+)?(?:the\s+)?(?:correct|right|best|answer)\b"
    r"(?!\s+(?:only|if|when|that|about|in|for|but))|\s*(?:是)?正确)"
)
_BOLD_LETTER = re.compile(r"\*\*\s*(?:option\s+)?\(?([A-J])(?![A-Za-z0-9'’])\)?[.):]?(?:\s[^*\n]*)?\*\*", re.IGNORECASE)
_LONE_LINE = re.compile(rf"{_LEAD.pattern}(?P<letter>{_LETTER})(?:选项|项)?{_CLOSERS}\Z", re.VERBOSE | re.IGNORECASE)
_OPTION_LINE = re.compile(r"[\s*_]*(?:\(([A-J])\)|([A-J])[).:])[\s*_]+\S")


@dataclass(frozen=True, slots=True)
class ChoiceReference:
    """The right letter and the options' texts in the order of their letters, empty where they are unknown."""

    letter: str
    options: tuple[str, ...] = ("", "", "", "")


class ChoiceScorer:
    """Compares the letter found with the reference."""

    name = "choice"

    def score_all(self, answers: Sequence[Answer]) -> list[Score]:
        """Scores each answer by itself."""
        return [verdict(answer, *judge(answer.last, answer.reference)) for answer in answers]


def judge(output: str, reference: ChoiceReference) -> tuple[bool, str | None, str]:
    """Verdict, letter and reason for one output."""
    letter, where = find_letter(output, reference.options)
    if letter is None:
        return False, None, where
    return letter == reference.letter, letter, f"{where}; reference {reference.letter}"


def find_letter(output: str, options: Sequence[str] = ("",) * 4) -> tuple[str | None, str]:
    """The letter that the output gives as its answer and where it stood; or None and why there is none."""
    text = plain(ending(visible(output)))
    if not text:
        return None, "empty output"
    reader = _Reader(_ALPHABET[: len(options)], tuple(map(_option_key, options)))
    stated = _stated(text, reader)
    boxed = _boxed(text, reader)
    if stated is not None and (boxed is None or stated.own_line or boxed.start < stated.start):
        return stated.letter, "stated as the answer" if stated.letter else "several letters stated"
    if boxed is not None:
        return boxed.letter, "boxed" if boxed.letter else "the last box is cut off"
    for found, where in (
        (_called_correct(text, reader), "called correct"),
        (_bold(text, reader), "in bold"),
        (_alone(text, reader), "alone"),
    ):
        if found is not None:
            return found, where
    return None, "no letter"


@dataclass(frozen=True, slots=True)
class _Found:
    """A letter at a place; None for the letter where that place decides that there is no answer."""

    letter: str | None
    start: int
    own_line: bool = False


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the letter at the start of a piece of text."""

    letters: str
    options: tuple[str, ...]

    def read(self, text: str) -> _Found | None:
        """The letter; a _Found without one where several are named; None where the text starts with no letter."""
        by_text = self.by_text(text)
        if by_text is not None:
            return _Found(by_text, 0)
        denied = _DENIED.match(text)
        if denied:
            _, *instead = _INSTEAD.split(denied["rest"], maxsplit=1)
            return self.read(instead[0]) if instead else None
        lead = _LEAD.match(text)
        start = lead.end() if lead else 0
        match = re.match(_LETTER, text[start:])
        if not match or match.group().upper() not in tuple(self.letters):
            return None
        letter, rest = match.group(), text[start + 1 :]
        if _FORMULA_GOES_ON.match(rest) or (letter in "AI" and _SENTENCE_GOES_ON.match(rest)):
            return None
        if letter.islower() and not re.match(rf"{_CLOSERS}(?:$|[\n,;:!。(]|(?:{_CONNECTIVES})\b)", rest):
            return None
        another = _ANOTHER_LETTER.match(rest)
        if another and another["letter"].upper() not in (letter.upper(), ""):
            return _Found(None, 0)
        return _Found(letter.upper(), 0)

    def by_text(self, text: str) -> str | None:
        """The letter whose option is the text's first line or sentence, word for word."""
        line = text.split("\n", 1)[0]
        for candidate in (line, line.split(". ", 1)[0]):
            key = _option_key(candidate)
            if key and key.upper() not in tuple(_ALPHABET) and self.options.count(key) == 1:
                return self.letters[self.options.index(key)]
        return None


def _option_key(text: str) -> str:
    return re.sub(r"\s+", " ", plain(text).strip().strip("*_$\"'“”. \t")).casefold()


def _stated(text: str, reader: _Reader) -> _Found | None:
    chosen = (
        Statement(match.start(), match.end(), own_line=False, hedged=is_hedged(text, match.start()))
        for match in _CHOSEN.finditer(text)
    )
    for statement in in_order_of_weight((*statements(text), *chosen)):
        content = announced(text, statement)
        found = reader.read(content)
        if found is not None:
            return _Found(found.letter, statement.start, statement.own_line)
        if statement.own_line and _REFUSED.match(content):
            return _Found(None, statement.start, own_line=True)
    return None


def _boxed(text: str, reader: _Reader) -> _Found | None:
    for box in reversed(boxes(text)):
        if box.content is None:
            return _Found(None, box.start)
        found = reader.read(box.content)
        if found is not None:
            return _Found(found.letter, box.start)
    return None


def _called_correct(text: str, reader: _Reader) -> str | None:
    firm = (match for match in _CALLED_CORRECT.finditer(text) if not is_hedged(text, match.start()))
    found = [str(match.group("letter")) for match in firm]
    found = [letter for letter in found if letter in reader.letters]
    return found[-1] if found else None


def _bold(text: str, reader: _Reader) -> str | None:
    """The only letter in bold; of several, as where each option has its heading, the last only if it ends the text."""
    found: list[str] = [letter.upper() for letter in _BOLD_LETTER.findall(text) if letter.upper() in reader.letters]
    if len(set(found)) == 1:
        return found[-1]
    ending = _BOLD_LETTER.fullmatch(text.rstrip().rsplit("\n", 1)[-1].strip())
    return found[-1] if found and ending else None


def _alone(text: str, reader: _Reader) -> str | None:
    by_text = reader.by_text(text)
    if by_text is not None:
        return by_text
    lines = [line for line in text.split("\n") if line.strip()]
    for line in (lines[-1], lines[0]):
        lone = _LONE_LINE.match(line) if len(line) < 200 else None
        letter: str = lone.group("letter").upper() if lone else ""
        if letter and letter in reader.letters:
            return letter
    heads: set[str] = {head[1] or head[2] for head in map(_OPTION_LINE.match, lines) if head}
    if len(heads) == 1 and heads <= set(reader.letters):
        return heads.pop()
    in_parentheses: set[str] = set(re.findall(r"\(([A-J])\)", lines[-1]))
    if len(in_parentheses) == 1 and in_parentheses <= set(reader.letters):
        return in_parentheses.pop()
    return None
