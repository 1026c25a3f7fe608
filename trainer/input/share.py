"""Which part of each global batch is a worker's."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Share:
    """One worker among all: worker number `index`, with `replicas` of its own."""

    workers: int = 1
    index: int = 0
    replicas: int = 1

    @property
    def all_replicas(self) -> int:
        """Of all workers."""
        return self.workers * self.replicas

    @property
    def mine(self) -> range:
        """This worker's replicas, among those of all."""
        return range(self.index * self.replicas, (self.index + 1) * self.replicas)

    def bounds(self, replica: int, left: int) -> tuple[int, int]:
        """Which of the `left` examples of a step are a replica's: [first, last), maybe none."""
        return replica * left // self.all_replicas, (replica + 1) * left // self.all_replicas
