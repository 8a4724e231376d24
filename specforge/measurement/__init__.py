"""One cell, measured: what the pytest matrix and ``specforge benchmark`` have in common.

They differ in what surrounds it: who starts the server, and where the record goes.
"""
