"""Slots and stored prefixes."""

import numpy as np

from specforge.engine.cache import PrefixCache, SlotCache


def filled(tokens: int = 10) -> SlotCache:
    cache = SlotCache(layers=2, slots=3, kv_heads=1, head_size=2)
    block = np.arange(2 * 2 * tokens * 2, dtype=np.float32).reshape(2, 2, 1, tokens, 2)
    cache.write(0, 0, block)
    return cache


def test_what_is_written_is_read_back() -> None:
    cache = filled()
    part = cache.read(0, 2, 5)
    cache.write(2, 7, part)
    np.testing.assert_array_equal(cache.read(2, 7, 10), part)


def test_growing_keeps_what_is_stored() -> None:
    cache = filled()
    before = cache.read(0, 0, 10)
    cache.reserve(5000)
    assert cache.capacity >= 5000
    np.testing.assert_array_equal(cache.read(0, 0, 10), before)


def test_gather_compacts_an_accepted_path() -> None:
    cache = filled()
    before = cache.read(0, 0, 10)
    cache.gather(0, 4, np.array([0, 2, 5]))
    np.testing.assert_array_equal(cache.read(0, 4, 7), before[:, :, :, [4, 6, 9]])


def test_a_moved_slot_holds_the_same_cells() -> None:
    cache = filled()
    cache.move_slot(0, 1, 10)
    np.testing.assert_array_equal(cache.read(1, 0, 10), cache.read(0, 0, 10))


def stored(cells: str) -> tuple[np.ndarray]:
    """A block whose cells carry the codes of letters."""
    codes = np.array([ord(letter) for letter in cells], np.float32)
    return (np.broadcast_to(codes[None, None, None, :, None], (1, 2, 1, len(cells), 2)).copy(),)


class Texts(PrefixCache):
    """Keys are letters, and so are the cells: what comes back can be read."""

    def remember(self, text: str) -> None:
        self.insert(text, lambda start, stop: stored(text[start:stop]))

    def recall(self, text: str) -> str:
        length, blocks = self.match(text)
        found = "".join(chr(int(code)) for (block,) in blocks for code in block[0, 0, 0, :, 0])
        assert len(found) == length
        return found


def test_the_longest_common_prefix_is_found() -> None:
    cache = Texts(100)
    cache.remember("the quick fox")
    assert cache.recall("the quick dog") == "the quick "
    assert cache.recall("a quick fox") == ""


def test_branches_share_their_beginning() -> None:
    cache = Texts(100)
    for text in ("the quick fox", "the quick dog", "the lazy dog"):
        cache.remember(text)
    assert cache.tokens == len("the quick fox") + len("dog") + len("lazy dog")
    for text in ("the quick fox", "the quick dog", "the lazy dog"):
        assert cache.recall(text) == text


def test_what_is_stored_already_is_not_copied_again() -> None:
    cache = Texts(100)
    cache.remember("again")
    cache.insert("again", lambda start, stop: stored("?" * (stop - start)))
    assert cache.recall("again") == "again"


def test_the_least_recently_used_goes_first() -> None:
    cache = Texts(10)
    cache.remember("aaaaa")
    cache.remember("bbbbb")
    cache.recall("aaaaa")
    cache.remember("cccc")
    assert cache.tokens <= 10
    assert cache.recall("bbbbb") == ""
    assert cache.recall("aaaaa") == "aaaaa"


def test_what_exceeds_the_budget_alone_is_not_stored() -> None:
    cache = Texts(4)
    cache.remember("aaaaa")
    assert cache.tokens == 0


def test_clear_forgets_everything() -> None:
    cache = Texts(10)
    cache.remember("aaaaa")
    cache.clear()
    assert cache.recall("aaaaa") == ""
    assert cache.tokens == 0
