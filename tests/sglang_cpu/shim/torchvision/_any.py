"""A module attribute for any name: SGLang and transformers import names from torchvision at start-up and call none of
them when they serve text."""


class _Anything(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return name


def getter(name):
    """What a module's ``__getattr__`` gives: a class of that name, whose attributes are their own names."""
    if name.startswith("__"):
        raise AttributeError(name)
    return _Anything(name, (), {})
