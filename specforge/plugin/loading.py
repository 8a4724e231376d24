"""The prompts of a run's benchmarks, read while its first server starts."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from specforge.datasets import LoadOptions, load, resolve
from specforge.datasets.model import Benchmark
from specforge.matrix import BenchmarkSpec


class Benchmarks:
    """Local rows are read at once, so that a wrong file costs no server's start; the Hub's while the first one starts.

    Raises:
        DatasetError, UsageError: local rows can't be had.
    """

    def __init__(self, specs: Sequence[BenchmarkSpec], options: LoadOptions) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="specforge-datasets")
        self._loaded: dict[BenchmarkSpec, Future[Benchmark]] = {}
        for spec in specs:
            if options.samples or resolve(spec).name in options.dataset_paths:
                future: Future[Benchmark] = Future()
                future.set_result(load(spec, options))
            else:
                future = self._thread.submit(load, spec, options)
            self._loaded[spec] = future

    def of(self, spec: BenchmarkSpec) -> Benchmark:
        """A benchmark's prompts.

        Raises:
            DatasetError, UsageError: they can't be had.
        """
        return self._loaded[spec].result()

    def close(self) -> None:
        """Loads no more."""
        self._thread.shutdown(wait=False, cancel_futures=True)
