"""The parts of ``specforge benchmark``: its options, its levels, its files and what it prints."""
