from __future__ import annotations

import hashlib

from specforge.datasets import find
from specforge.datasets.drawing import IndexedRow, Selection, draw, unique_ids


def rows(name_and_count: dict[str, int], column: str = "category") -> list[IndexedRow]:
    made = [(f"{name}-{number}", {column: name}) for name, count in name_and_count.items() for number in range(count)]
    return [IndexedRow(row_id, index, row) for index, (row_id, row) in enumerate(made)]


def ids(drawn: list[IndexedRow]) -> list[str]:
    return [row.row_id for row in drawn]


ALL = Selection.of(find("mtbench"), ())


def test_rows_are_ordered_by_the_hash_of_seed_and_id() -> None:
    drawn = draw(rows({"writing": 20}), ALL, seed=7)
    expected = sorted(
        (f"writing-{number}" for number in range(20)), key=lambda name: hashlib.sha256(f"7:{name}".encode()).digest()
    )
    assert ids(drawn) == expected


def test_the_order_of_the_file_does_not_matter() -> None:
    made = rows({"writing": 9, "math": 9, "stem": 9})
    assert ids(draw(made, ALL, 0)) == ids(draw(made[::-1], ALL, 0))


def test_subsets_are_drawn_in_turn_in_their_published_order() -> None:
    drawn = draw(rows({"humanities": 3, "math": 3, "writing": 3}), ALL, 0)
    assert [row.row["category"] for row in drawn] == ["writing", "math", "humanities"] * 3


def test_a_subset_that_runs_out_leaves_its_turns_to_the_others() -> None:
    drawn = draw(rows({"writing": 1, "math": 3}), ALL, 0)
    assert [row.row["category"] for row in drawn] == ["writing", "math", "math", "math"]


def test_another_seed_draws_another_order_of_the_same_rows() -> None:
    made = rows({"writing": 30})
    first, second = ids(draw(made, ALL, 0)), ids(draw(made, ALL, 1))
    assert first != second
    assert sorted(first) == sorted(second)


def test_only_the_subsets_asked_for_are_drawn_in_the_order_asked() -> None:
    selection = Selection.of(find("mtbench"), ("stem", "math"))
    drawn = draw(rows({"writing": 2, "math": 2, "stem": 2}), selection, 0)
    assert [row.row["category"] for row in drawn] == ["stem", "math", "stem", "math"]


def test_a_group_takes_all_its_members_in_one_turn() -> None:
    selection = Selection.of(find("mmlu"), ("stem", "virology"))
    drawn = draw(rows({"anatomy": 2, "astronomy": 2, "virology": 4, "prehistory": 2}, "subject"), selection, 0)
    turns = ["virology" if row.row["subject"] == "virology" else "stem" for row in drawn]
    assert turns == ["stem", "virology"] * 4


def test_names_of_different_axes_narrow_each_other() -> None:
    made = [
        IndexedRow(f"{subject}{level}", 0, {"subject": subject, "level": level})
        for subject in ("Algebra", "Geometry")
        for level in (4, 5)
    ]
    drawn = draw(made, Selection.of(find("math500"), ("algebra", "level 5")), 0)
    assert ids(drawn) == ["Algebra5"]


def test_a_repeated_id_is_told_apart_by_its_place() -> None:
    assert unique_ids(["a", "b", "a", "a"]) == ["a", "b", "a#2", "a#3"]
