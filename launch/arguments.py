"""Types of command-line arguments that several verbs take."""

import argparse
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
