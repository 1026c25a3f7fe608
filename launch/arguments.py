"""Types of command-line arguments that several verbs take."""

import argparse
import math
from collections.abc import Callable


def whole(least: int) -> Callable[[str], int]:
    """A whole number of at least `least`: what argparse calls for an argument."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r} came; a whole number of {least} or more was expected")
        return number

    return read


def seconds(text: str) -> float:
    """Seconds, more than 0: what argparse calls for an argument."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} came; seconds were expected, more than 0")
    return number
