"""What the supervisor asks of a runner; processes.py and containers.py are the two there are."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from launch.local.plan import Replica


class Handle(Protocol):
    """A replica that runs. Asking one that has ended to stop is no error."""

    def terminate(self) -> None:
        """Ask it to stop, as the platform does: SIGTERM."""

    def kill(self) -> None:
        """Take it away at once, with everything it started."""


class Runner(Protocol):
    """Starts replicas. `on_line` and `on_exit` are called from threads of the runner's."""

    def open(self, replicas: Sequence[Replica]) -> dict[str, str]:
        """Make ready; the address, host:port, of each replica by its name. Raises PlanError."""

    def start(
        self,
        replica: Replica,
        environment: Mapping[str, str],
        on_line: Callable[[str], None],
        on_exit: Callable[[int], None],
    ) -> Handle:
        """Start one; `on_exit` gets the shell's code (128 + signal) after its last line."""

    def close(self) -> None:
        """Leave nothing behind: no process, no container, no network."""
