"""What is wrong with a command line, or with what it needs of model.py and data.py."""

from typing import NamedTuple


class Problem(NamedTuple):
    """What is wrong with a flag; `index` is its place in the arguments, None where it isn't there."""

    flag: str
    index: int | None
    message: str


class FlagError(Exception):
    """Flags that can't be used; str() has a line for each problem."""

    def __init__(self, problems: list[Problem]):
        super().__init__("\n".join(problem.message for problem in problems))
        self.problems = problems
