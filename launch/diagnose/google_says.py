"""Google's own clients, told no by a server on loopback with the bodies that Google's APIs send."""

import contextlib
import json
import threading
import traceback
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ACCOUNT = "trainer@my-project.iam.gserviceaccount.com"
NO_ACCESS = f"{ACCOUNT} does not have storage.objects.get access to the Google Cloud Storage object."
PERIMETER = (
    "Request is prohibited by organization's policy. "
    "vpcServiceControlsUniqueIdentifier: kJ3X-p0tYw1nU7dYbQm5VbHk2rEo9fZs8aLc4gTiWuNxMqRvPyDhSg"
)
QUOTA = (
    "The following quota metrics exceed quota limits: aiplatform.googleapis.com/custom_model_training_nvidia_l4_gpus"
)


@contextlib.contextmanager
def _refusing(code: int, status: str, message: str) -> Iterator[int]:
    """A server that answers everything with one error; gives its port."""
    body = json.dumps({"error": {"code": code, "message": message, "status": status, "errors": [{"message": message}]}})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Nothing: the demonstration's output is the client's."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def _log(call: Callable[[], object]) -> str:
    try:
        call()
    except Exception:  # whatever the client makes of the answer is what a job's log would hold
        return traceback.format_exc()
    return "the client raised nothing"


def _read_object(port: int) -> object:
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    client = storage.Client(
        "my-project", AnonymousCredentials(), client_options={"api_endpoint": f"http://127.0.0.1:{port}"}
    )
    return client.bucket("my-data").blob("train-00000.tfrecord").download_as_bytes(retry=None)


def _create_job(port: int) -> object:
    from google.auth.credentials import AnonymousCredentials
    from google.cloud.aiplatform_v1.services.job_service import JobServiceClient
    from google.cloud.aiplatform_v1.services.job_service.transports import JobServiceRestTransport

    transport = JobServiceRestTransport(host=f"127.0.0.1:{port}", credentials=AnonymousCredentials(), url_scheme="http")
    client = JobServiceClient(transport=transport)
    return client.create_custom_job(
        parent="projects/my-project/locations/us-central1", custom_job={"display_name": "demo"}
    )


def no_access() -> tuple[str, str]:
    """(what was done, the log) where the job's account may not read the data."""
    with _refusing(403, "PERMISSION_DENIED", NO_ACCESS) as port:
        return "google-cloud-storage reads gs://my-data/train-00000.tfrecord", _log(lambda: _read_object(port))


def perimeter() -> tuple[str, str]:
    """(what was done, the log) where a service perimeter stands between the job and its data."""
    with _refusing(403, "PERMISSION_DENIED", PERIMETER) as port:
        return "google-cloud-storage reads gs://my-data/train-00000.tfrecord", _log(lambda: _read_object(port))


def quota() -> tuple[str, str]:
    """(what was done, the log) where the region's quota of the accelerator is used up."""
    with _refusing(429, "RESOURCE_EXHAUSTED", QUOTA) as port:
        return "google-cloud-aiplatform creates a custom job", _log(lambda: _create_job(port))
