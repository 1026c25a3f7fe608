"""The ${VARIABLES} of a job file: each gets its value as the file is read, and what can't get one is noted."""

import difflib
import re
from collections.abc import Mapping

from launch import project
from launch.spec.document import Finding, Mark

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_STRAY = re.compile(r"\$\{[^}]*\}?|\$[A-Za-z_][A-Za-z0-9_]*")


class Filler:
    """Puts values into a scalar's text, and remembers what it couldn't."""

    def __init__(self, file: str, values: Mapping[str, str]):
        self.file = file
        self.values = values
        self.missing: list[str] = []
        self.used: set[str] = set()
        self.findings: list[Finding] = []

    def __call__(self, text: str, mark: Mark) -> str:
        """`text` with its variables' values; `mark` is where it stands."""
        if "$" not in text:
            return text
        for stray in _STRAY.finditer(text):
            if not _VARIABLE.fullmatch(stray[0]):
                fix = "write ${NAME}; what the container shall fill in is written $(NAME)"
                self._note(mark, f"{stray[0]} in {text!r:.80}", "variables written ${NAME}", fix)
        return _VARIABLE.sub(lambda match: self._value(match[1], mark), text)

    def _value(self, name: str, mark: Mark) -> str:
        self.used.add(name)
        if name in self.values:
            return self.values[name]
        if name in project.KNOWN:
            if name not in self.missing:
                self.missing.append(name)
            return project.KNOWN[name].placeholder
        near = difflib.get_close_matches(name.upper(), project.KNOWN, n=1)
        fix = (
            f"write ${{{near[0]}}}" if near else "write the value itself, or add the name to KNOWN in launch/project.py"
        )
        self._note(mark, f"${{{name}}}, which nothing fills in", f"one of {', '.join(project.KNOWN)}", fix)
        return f"${{{name}}}"

    def _note(self, mark: Mark, came: str, expected: str, fix: str) -> None:
        self.findings.append(Finding(self.file, mark, came, expected, fix))
