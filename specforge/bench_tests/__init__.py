"""The benchmark as an installed package has it: ``pytest --pyargs specforge.bench_tests``."""
