"""The lines of all replicas in one stream, each with its role in colour, and one file for each replica."""

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.text import Text

from launch.local.preempt import progress
from launch.local.supervisor import LAUNCHER

COLOURS = ("green", "cyan", "magenta", "yellow", "blue", "bright_cyan", "bright_magenta", "bright_yellow")


class Stream:
    """Shows lines as they come. On a terminal the chief's progress stays on one line at the bottom."""

    def __init__(self, console: Console | None, names: Iterable[str], folder: Path):
        """`folder` gets chief.log, worker-1.log and so on, begun anew; without a console that is all."""
        names = [*names]
        self._console, self._lock = console, threading.Lock()
        self._width = max(len(name) for name in (*names, LAUNCHER))
        self._colours = {name: COLOURS[index % len(COLOURS)] for index, name in enumerate(names)}
        self._files = _files(folder, (*names, LAUNCHER))
        self._status = None

    def show(self, name: str, line: str) -> None:
        """One line of a replica, or of the launcher."""
        with self._lock:
            if name in self._files:
                self._files[name].write(f"{line}\n")
            if self._console is None:
                return
            if name == "chief" and self._console.is_terminal and progress(line) is not None:
                self._progress(line)
                return
            text = Text.from_ansi(line) if "\x1b" in line else Text(line)
            self._console.print(self._labelled(name, text), soft_wrap=True, highlight=False)

    def close(self) -> None:
        """Take the progress line away and close the files."""
        if self._status:
            self._status.stop()
        for file in self._files.values():
            file.close()

    def _labelled(self, name: str, line: Text | str) -> Text:
        style = "bold" if name == LAUNCHER else self._colours.get(name, "")
        return Text.assemble((f"{name:<{self._width}} ", style), ("| ", "dim"), line)

    def _progress(self, line: str) -> None:
        text = self._labelled("chief", line)
        if self._status:
            self._status.update(text)
        else:
            self._status = self._console.status(text, spinner="dots")
            self._status.start()


def _files(folder: Path, names: Iterable[str]) -> Mapping[str, TextIO]:
    folder.mkdir(parents=True, exist_ok=True)
    return {name: (folder / f"{name.replace(':', '-')}.log").open("w", encoding="utf-8", buffering=1) for name in names}
