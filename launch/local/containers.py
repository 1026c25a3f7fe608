"""Replicas as containers of the built image, on a network of their own (docker-py)."""

import contextlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.models.containers import Container

from launch.local.plan import PlanError, Replica

LABEL = "trainyard.run"
PORT = 2222  # Vertex AI's own
LOST = 137  # what a killed container ends with


def connect() -> docker.DockerClient:
    """The engine of DOCKER_HOST. Raises PlanError where none answers."""
    try:
        client = docker.from_env()
        client.ping()
    except DockerException as error:
        where = os.environ.get("DOCKER_HOST", "the default socket")
        raise PlanError(
            f"no container engine answers at {where} ({error}); start Docker, or leave --runner=docker out: "
            "processes need no engine"
        ) from None
    return client


def remove(run: str) -> None:
    """Remove every container and network of `run`; one that is gone already is fine."""
    with contextlib.closing(docker.from_env()) as client:
        label = {"label": f"{LABEL}={run}"}
        for container in client.containers.list(all=True, filters=label, ignore_removed=True):
            with contextlib.suppress(NotFound, APIError):  # being removed already
                container.remove(force=True)
        for network in client.networks.list(filters=label):
            with contextlib.suppress(NotFound):
                network.remove()


class Containers:
    """A runner: a container for each replica, under the host name that Vertex AI would give it."""

    def __init__(self, run: str, output: Path, image: str = ""):
        """`output` is mounted at its own path; `image` replaces every replica's."""
        self._run, self._output, self._image = run, output, image
        self._client: docker.DockerClient | None = None
        self._watchdog = None
        self._network = f"trainyard-{run}"
        self._trainer = ""

    def open(self, replicas: Sequence[Replica]) -> dict[str, str]:
        """Find the images and make the network."""
        from launch.local import watchdog

        self._client = connect()
        self._trainer = self._image or replicas[0].image
        for image in {self._image_of(replica) for replica in replicas}:
            try:
                self._client.images.get(image)
            except ImageNotFound:
                raise PlanError(
                    f"this engine has no image {image}; build it (make build-cpu), or name one that it has: --image=..."
                ) from None
            except APIError as error:
                raise PlanError(f"{image!r} is no image's name: {error.explanation}") from None
        self._watchdog = watchdog.start(self._run, containers=True)
        self._client.networks.create(self._network, labels={LABEL: self._run})
        return {replica.name: f"{self._host(replica)}:{PORT}" for replica in replicas}

    def start(
        self,
        replica: Replica,
        environment: Mapping[str, str],
        on_line: Callable[[str], None],
        on_exit: Callable[[int], None],
    ) -> "Running":
        """Start a container; a command replaces its ENTRYPOINT, args its CMD, as in the API."""
        host = self._host(replica)
        options = {"entrypoint": list(replica.command)} if replica.command else {}
        try:
            container = self._client.containers.create(
                self._image_of(replica),
                list(replica.args),
                name=f"{self._network}-{host}",
                hostname=host,
                # HOME: the user of this desk has none in the image
                environment={"HOME": "/tmp", **environment},
                labels={LABEL: self._run},
                networking_config={self._network: self._client.api.create_endpoint_config(aliases=[host])},
                network=self._network,
                user=f"{os.getuid()}:{os.getgid()}",
                volumes={str(self._output): {"bind": str(self._output), "mode": "rw"}},
                **options,
            )
            lines = container.attach(stdout=True, stderr=True, stream=True, logs=True)
            container.start()
        except APIError as error:
            raise PlanError(f"{replica.name} did not start: {error.explanation}") from None
        except requests.RequestException as error:
            raise PlanError(f"{replica.name} did not start, the container engine answers no more: {error}") from None
        return Running(container, lines, on_line, on_exit)

    def close(self) -> None:
        """Remove the containers and the network."""
        if self._watchdog is None:
            return
        from launch.local import watchdog

        try:
            remove(self._run)
        except (DockerException, requests.RequestException) as error:
            label = f"label={LABEL}={self._run}"
            raise PlanError(
                f"the container engine answers no more ({error}); once it does, remove what is left: "
                f"docker rm -f $(docker ps -aq --filter {label}); docker network rm {self._network}"
            ) from None
        watchdog.dismiss(self._watchdog)
        self._watchdog = None
        self._client.close()

    def _image_of(self, replica: Replica) -> str:
        """A reducer's stand-in runs in the trainer's image: it needs nothing but Python."""
        return self._trainer if self._image or replica.reducer else replica.image

    def _host(self, replica: Replica) -> str:
        return f"cmle-training-workerpool{replica.pool}-{self._run.partition('-')[2]}-{replica.index}"


class Running:
    """A container that runs."""

    def __init__(self, container: Container, lines, on_line: Callable[[str], None], on_exit: Callable[[int], None]):
        self._container = container
        reader = threading.Thread(target=self._read, args=(lines, on_line), daemon=True)
        reader.start()
        threading.Thread(target=self._wait, args=(reader, on_line, on_exit), daemon=True).start()

    def terminate(self) -> None:
        """SIGTERM to PID 1."""
        self._signal("SIGTERM")

    def kill(self) -> None:
        """SIGKILL to all of it."""
        self._signal("SIGKILL")

    def _signal(self, name: str) -> None:
        with contextlib.suppress(APIError, requests.RequestException):  # it has ended, or its engine has
            self._container.kill(signal=name)

    def _read(self, chunks, on_line: Callable[[str], None]) -> None:
        """Whole lines out of the engine's chunks, which end where they like."""
        rest = b""
        for chunk in chunks:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                on_line(line.decode(errors="replace").rstrip("\r"))
        if rest:
            on_line(rest.decode(errors="replace"))

    def _wait(self, reader: threading.Thread, on_line: Callable[[str], None], on_exit: Callable[[int], None]) -> None:
        try:
            code = self._container.wait()["StatusCode"]
        except (APIError, requests.RequestException) as error:  # the engine was stopped, or started anew
            on_line(f"the container engine has let go of this container: {error}")
            code = LOST
        reader.join(timeout=5)
        with contextlib.suppress(APIError, requests.RequestException):
            self._container.remove(force=True)
        on_exit(code)
