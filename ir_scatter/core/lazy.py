"""An attribute that is computed when it is first asked for."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Result = TypeVar("Result")


class lazy(Generic[Result]):
    """Like `functools.cached_property`, without the lock that costs more than most of our facts."""

    def __init__(self, compute: Callable[[Any], Result]) -> None:
        self.compute = compute
        self.name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> "lazy[Result]": ...
    @overload
    def __get__(self, instance: object, owner: type) -> Result: ...
    def __get__(self, instance: object | None, owner: type) -> "lazy[Result] | Result":
        """Compute the value and put it in the place of the attribute."""
        if instance is None:
            return self
        value = instance.__dict__[self.name] = self.compute(instance)
        return value
