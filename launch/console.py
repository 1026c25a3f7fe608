"""The terminal: one console for what is asked for (stdout), one for what is said about it (stderr).

rich is imported when something is printed, not before: `python -m launch --help` needs none of it.
"""

import functools
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDE = 240
COLORS = {"ok": "green", "warning": "yellow", "failure": "red", "unknown": "magenta"}


@functools.cache
def console() -> "Console":
    """The console on stdout; colours only where it is a terminal."""
    from rich.console import Console

    return _width(Console(highlight=False, soft_wrap=True))


@functools.cache
def stderr() -> "Console":
    """The console on stderr, for notes and progress."""
    from rich.console import Console

    return _width(Console(stderr=True, highlight=False, soft_wrap=True))


def _width(made: "Console") -> "Console":
    """In a log or a pipe, as wide as a table needs: rich takes 80 columns there, and breaks a command or a link."""
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = WIDE
    return made


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> "Table":
    """A plain table; cells are text and never read as markup."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    result = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD)
    for column in columns:
        result.add_column(column, overflow="fold")  # a name cut short is a name that can't be copied
    for row in rows:
        result.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    return result


def status_text(status: str) -> "object":
    """The word for a check's status, in its colour."""
    from rich.text import Text

    return Text(status, style=COLORS.get(status, ""))
