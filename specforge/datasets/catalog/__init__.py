"""One module a dataset, each with its definition as ``DATASET``; the registry finds it by being here."""
