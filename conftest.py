"""Registers the harness's hooks when pytest runs in a checkout.

The options, ``pytest_generate_tests`` and the fixtures live in :mod:`specforge.plugin`. An installed package brings
them through its entry point of the same name, so that they are registered once either way.
"""

pytest_plugins = ["specforge.plugin"]
