"""What ``pytest bench_tests`` runs in a checkout: the package's benchmark, which is there in an installed one too."""

from specforge.bench_tests.test_benchmark import test_benchmark

__all__ = ["test_benchmark"]
