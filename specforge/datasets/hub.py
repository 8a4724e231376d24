"""Rows from the Hugging Face Hub, at a revision that is resolved once. ``datasets`` is imported here only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from specforge.datasets.definition import HubPart, Row
from specforge.datasets.files import parse_rows
from specforge.errors import DatasetError

_T = TypeVar("_T")


def resolve_revision(name: str, dataset: str, revision: str | None) -> str:
    """The commit that a revision of a dataset on the Hub stands for (None: its newest).

    Raises:
        DatasetError: it is unreachable, gated, unknown, or has no such revision; the message says what to do.
    """
    from huggingface_hub import HfApi

    info = _asking(name, dataset, revision, lambda: HfApi().dataset_info(dataset, revision=revision))
    if not info.sha:
        raise DatasetError(f"{name}: the Hub gave no commit for {dataset}; expected its hash")
    return str(info.sha)


def read_part(name: str, part: HubPart, commit: str) -> list[Row]:
    """All rows of one part at a commit; images stay undecoded, as ``{"bytes", "path"}``.

    Raises:
        DatasetError: as :func:`resolve_revision`, or the part's configuration, split or file is not there.
    """
    if part.files:
        return [row for file in part.files for row in _read_file(name, part.dataset, file, commit)]
    return _asking(name, part.dataset, commit, lambda: _read_split(part, commit))


def cached_datasets() -> frozenset[str]:
    """The ids of the datasets of which the Hub's cache on this machine holds files; nothing is asked of the Hub."""
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        repositories = scan_cache_dir().repos
    except CacheNotFound:
        return frozenset()
    return frozenset(repo.repo_id for repo in repositories if repo.repo_type == "dataset" and repo.nb_files)


def _read_split(part: HubPart, commit: str) -> list[Row]:
    import datasets

    loaded = datasets.load_dataset(part.dataset, part.config, split=part.split, revision=commit)
    for column, feature in loaded.features.items():
        if isinstance(feature, datasets.Image):
            loaded = loaded.cast_column(column, datasets.Image(decode=False))
    rows: list[Row] = loaded.to_list()
    return rows


def _read_file(name: str, dataset: str, file: str, commit: str) -> list[Row]:
    from huggingface_hub import hf_hub_download

    path = _asking(
        name,
        dataset,
        commit,
        lambda: Path(hf_hub_download(dataset, file, repo_type="dataset", revision=commit)),
    )
    return parse_rows(path.read_bytes(), path)


def _asking(name: str, dataset: str, revision: str | None, request: Callable[[], _T]) -> _T:
    """Runs one exchange with the Hub and says in the user's terms what went wrong."""
    try:
        return request()
    except Exception as error:
        why = _explain(name, dataset, revision, error)
        if why is None:
            raise
        raise DatasetError(why) from error


def _explain(name: str, dataset: str, revision: str | None, error: BaseException) -> str | None:
    """One line for an error of the Hub's libraries, which wrap each other's; None for what is no such error."""
    from datasets.exceptions import DatasetsError
    from huggingface_hub import errors

    causes = list(_chain(error))
    local = f"or give a local copy, --dataset-path {name}=FILE"
    if any(map(_is_transport, causes)):
        return (
            f"{name}: {dataset} can't be loaded: the Hub can't be reached; check the network and HF_ENDPOINT, {local}"
        )
    gated = "it is gated: accept its terms on its page on the Hub, then set HF_TOKEN to a token of that account"
    if any(isinstance(cause, DatasetsError) and "gated" in str(cause) for cause in causes):
        return f"{name}: {dataset} can't be loaded: {gated}, {local}"
    meanings: Mapping[tuple[type[BaseException], ...] | type[BaseException], str] = {
        errors.GatedRepoError: f"{gated}, {local}",
        errors.RevisionNotFoundError: f"the Hub has no revision {revision!r} of it (--dataset-revision)",
        errors.RepositoryNotFoundError: "the Hub does not show it: it may have moved, or it is private or gated and "
        f"HF_TOKEN is not set to a token that may read it; set it, {local}",
        errors.EntryNotFoundError: f"a file of it is not there any more ({_line(error)}); pin a revision, {local}",
        errors.OfflineModeIsEnabled: f"HF_HUB_OFFLINE is set; unset it, {local}",
        errors.HfHubHTTPError: f"the Hub refused ({_line(error)}); try again, {local}",
        (DatasetsError, ValueError, FileNotFoundError): f"the Hub's copy can't be read ({_line(error)}); "
        f"pin a revision with --dataset-revision, {local}",
    }
    for kinds, meaning in meanings.items():
        if any(isinstance(cause, kinds) for cause in causes):
            return f"{name}: {dataset} can't be loaded: {meaning}"
    return None


def _is_transport(error: BaseException) -> bool:
    """Whether a connection failed; by name, since releases of huggingface_hub use different HTTP libraries."""
    names = {base.__name__ for base in type(error).__mro__}
    return not names.isdisjoint({"TransportError", "ConnectionError", "Timeout", "TimeoutError"})


def _chain(error: BaseException | None) -> Any:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0][:200] if text else type(error).__name__
