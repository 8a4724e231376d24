"""The page's charts, as SVG whose colours are the page's CSS variables, so that they follow light and dark."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from specforge.errors import UsageError
from specforge.results.cell import Cell
from specforge.results.load import SavedRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 4.5  # inches of 72 points: about a phone's width, so that text is as large there as it is drawn
_ROW = 0.23  # inches that one bar takes
_SERIES = ("#0a0000", "#0a0001", "#0a0002", "#0a0003", "#0a0004", "#0a0005")
_INK, _GRID = "#0b0000", "#0b0001"
_VARIABLES = {_INK: "var(--ink)", _GRID: "var(--grid)"} | {c: f"var(--s{i})" for i, c in enumerate(_SERIES)}
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it is searched, read aloud, and set in the page's font
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "font.size": 8,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _GRID,
    "axes.titlesize": 9,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _GRID,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}


@dataclass(frozen=True)
class Entry:
    """A cell of a run, with the series (run or configuration) that colours it."""

    run: int
    cell: Cell


@dataclass(frozen=True)
class Section:
    """Charts under one title, one for each benchmark: ``drawings`` is SVG text."""

    title: str
    note: str
    drawings: list[str]


Draw = Callable[["Axes", Sequence[Entry], bool], None]


def draw_charts(runs: Sequence[SavedRun]) -> list[Section]:
    """The sections that have anything to show.

    Raises:
        UsageError: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        raise UsageError("the report's charts need matplotlib: pip install 'specforge[report]'") from None
    entries = [Entry(index, Cell(record)) for index, run in enumerate(runs) for record in run.cells]
    several = len(runs) > 1
    sections = (
        ("Throughput", "output tokens a second", _has("output_throughput"), _throughput),
        ("Speedup", "over the target-only configuration, with its 95 % interval", _has("speedup"), _speedup),
        (
            "Acceptance by position",
            "share of verification steps in which the draft token at this position was accepted",
            _has("acceptance_by_position"),
            _acceptance,
        ),
        ("Accuracy", "with its 95 % Wilson interval", _has("accuracy"), _accuracy),
        ("Latency", "of requests, seconds: median, middle half, 5th to 99th percentile", _has_latency, _latency),
    )
    found = []
    with matplotlib.rc_context(_STYLE):
        for title, note, has, draw in sections:
            shown = [entry for entry in entries if has(entry.cell)]
            names = list(dict.fromkeys(entry.cell.benchmark for entry in shown))
            drawings = [
                _drawing(f"{title}: {name}", [e for e in shown if e.cell.benchmark == name], draw, several)
                for name in names
            ]
            if drawings:
                found.append(Section(title, note, drawings))
    return found


def _has(metric: str) -> Callable[[Cell], bool]:
    return lambda cell: cell.metrics.get(metric) is not None


def _has_latency(cell: Cell) -> bool:
    latency = cell.column("latency")
    return latency is not None and not bool(np.isnan(latency).all())


def _drawing(title: str, entries: Sequence[Entry], draw: Draw, several: bool) -> str:
    import matplotlib
    from matplotlib.figure import Figure

    height = 0.6 + _ROW * max(len(entries), 4)
    longest = max(len(entry.cell.config) for entry in entries)
    # Margins by hand: a layout engine draws everything twice.
    left = min(0.3 + 0.062 * longest, 0.45 * WIDTH)
    figure = Figure(figsize=(WIDTH, height))
    axes = figure.add_axes((left / WIDTH, 0.25 / height, 1 - (left + 0.1) / WIDTH, 1 - 0.55 / height))
    axes.set_title(title.partition(": ")[2], loc="left")
    draw(axes, entries, several)
    text = io.StringIO()
    # The salt makes the ids of clips and markers differ between charts, and stay the same between runs.
    with matplotlib.rc_context({"svg.hashsalt": title}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _themed(text.getvalue(), title)


def _themed(svg: str, title: str) -> str:
    """Only the drawing, its colours by variable, its size left to the page, its name for those who can't see it."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, variable)
    label = title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return re.sub(
        r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', rf'<svg role="img" aria-label="{_literal(label)}" \1>', svg, count=1
    )


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\")


def _rows(axes: Axes, entries: Sequence[Entry], several: bool) -> Iterator[tuple[float, Entry, str]]:
    """A place from top to bottom and a colour for each entry: entries of a configuration stand together."""
    configs = list(dict.fromkeys(entry.cell.config for entry in entries))
    ordered = sorted(entries, key=lambda entry: (configs.index(entry.cell.config), entry.run))
    places, labels, place = [], [], 0.0
    for index, entry in enumerate(ordered):
        first = not index or ordered[index - 1].cell.config != entry.cell.config
        place += 1.0 if index and (first or not several) else (0.85 if index else 0.0)
        places.append(place)
        labels.append(entry.cell.config if first else "")
        yield place, entry, _SERIES[entry.run % len(_SERIES)]
    axes.set_yticks(places, labels)
    axes.set_ylim(place + 0.6, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", linewidth=0.5)
    axes.set_axisbelow(True)


def _throughput(axes: Axes, entries: Sequence[Entry], several: bool) -> None:
    for place, entry, colour in _rows(axes, entries, several):
        value = entry.cell.metrics["output_throughput"]
        axes.barh(place, value, height=0.7, color=colour)
        axes.annotate(f"{value:.4g}", (value, place), (3, 0), textcoords="offset points", va="center")
    axes.margins(x=0.14)
    axes.set_xlim(left=0)


def _speedup(axes: Axes, entries: Sequence[Entry], several: bool) -> None:
    for place, entry, colour in _rows(axes, entries, several):
        metrics = entry.cell.metrics
        axes.barh(place, metrics["speedup"], height=0.7, color=colour)
        right = metrics["speedup"]
        if metrics.get("speedup_interval"):
            low, right = metrics["speedup_interval"]
            axes.plot([low, right], [place, place], color=_INK, linewidth=1)
        axes.annotate(f"{metrics['speedup']:.2f}×", (right, place), (3, 0), textcoords="offset points", va="center")
    axes.axvline(1, color=_INK, linewidth=0.8, linestyle=":")
    axes.margins(x=0.14)
    axes.set_xlim(left=0)


def _accuracy(axes: Axes, entries: Sequence[Entry], several: bool) -> None:
    for place, entry, colour in _rows(axes, entries, several):
        value = 100 * entry.cell.metrics["accuracy"]
        low, high = (100 * edge for edge in entry.cell.metrics.get("accuracy_interval") or (value / 100, value / 100))
        axes.plot([low, high], [place, place], color=colour, linewidth=2)
        axes.plot(value, place, "o", color=colour, markersize=5)
        axes.annotate(f"{value:.1f} %", (high, place), (4, 0), textcoords="offset points", va="center")
    axes.margins(x=0.18)


def _latency(axes: Axes, entries: Sequence[Entry], several: bool) -> None:
    for place, entry, colour in _rows(axes, entries, several):
        latency = entry.cell.column("latency")
        if latency is None:
            continue
        p5, p25, p50, p75, p99 = np.nanpercentile(latency, (5, 25, 50, 75, 99))
        axes.plot([p5, p99], [place, place], color=colour, linewidth=1)
        axes.barh(place, p75 - p25, left=p25, height=0.55, color=colour)
        axes.plot([p50, p50], [place - 0.38, place + 0.38], color=_INK, linewidth=1.2)
        axes.annotate(f"{p99:.3g}", (p99, place), (3, 0), textcoords="offset points", va="center")
    axes.margins(x=0.12)
    axes.set_xlim(left=0)


def _acceptance(axes: Axes, entries: Sequence[Entry], several: bool) -> None:
    configs = list(dict.fromkeys(entry.cell.config for entry in entries))
    longest = 1
    for entry in entries:
        marginal: list[Any] = entry.cell.metrics["acceptance_by_position"].get("marginal") or []
        longest = max(longest, len(marginal))
        at = configs.index(entry.cell.config)
        axes.plot(
            range(1, len(marginal) + 1),
            [100 * share for share in marginal],
            marker="os^Dvp"[at % 6],
            markersize=4,
            linewidth=1.3,
            linestyle=("-", "--", ":", "-.")[entry.run % 4],
            color=_SERIES[at % len(_SERIES)],
            label=entry.cell.config + (f" ({entry.run + 1})" if several else ""),
        )
    axes.set_xticks(range(1, longest + 1))
    axes.set_ylim(0, 105)
    axes.set_ylabel("%")
    axes.grid(axis="y", linewidth=0.5)
    axes.legend(loc="upper right", ncols=2, fontsize=7)
