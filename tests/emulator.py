"""Cloud Storage on loopback, in a process of its own: gcp-storage-emulator behind TLS, with faults between.

TensorFlow reads gs:// through `https_proxy` and trusts CURL_CA_BUNDLE, google-cloud-storage likewise
(REQUESTS_CA_BUNDLE): the server is that proxy and answers for storage.googleapis.com itself. Three things of the
emulator are mended on the way: a chunked request that has a Content-Length as well, an empty upload, and what it says
of an upload that broke off before its first byte.
"""

import datetime
import http.client
import http.server
import json
import os
import pathlib
import random
import re
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from typing import Any

HOST = "storage.googleapis.com"


class Emulator:
    """Use as a context manager. `environ` is what a job needs to find it."""

    def __init__(self, folder: pathlib.Path, bucket: str = "yard"):
        self.folder, self.bucket = folder, bucket

    def __enter__(self) -> "Emulator":
        self.folder.mkdir(parents=True, exist_ok=True)
        certificate = _certificate(self.folder)
        command = [sys.executable, __file__, str(certificate), self.bucket]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self._process.stdout.readline())
        proxy = f"http://127.0.0.1:{self.port}"
        trusted = dict.fromkeys(("CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"), str(certificate))
        here = dict.fromkeys(("no_proxy", "NO_PROXY", "no_grpc_proxy"), "127.0.0.1,localhost")
        self.environ = trusted | here | {"https_proxy": proxy, "HTTPS_PROXY": proxy, "NO_GCE_CHECK": "true"}
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait()

    def faults(self, *rules: dict[str, Any]) -> None:
        """Replace the faults.

        A rule has `match` (a regular expression on "METHOD path"), `kind` (an HTTP status, or reset, timeout, slow,
        half, or permissions with `lacking`), and `times` or `share` (0 to 1).
        """
        self._control("POST", "/faults", json.dumps(rules))

    def hits(self) -> dict[str, int]:
        """How often each kind of fault has struck, and `requests`."""
        return json.loads(self._control("GET", "/faults"))

    def _control(self, method: str, path: str, body: str | None = None) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request(method, path, body)
        answer = connection.getresponse().read().decode()
        connection.close()
        return answer


def _certificate(folder: pathlib.Path) -> pathlib.Path:
    """A self-signed certificate of HOST with its key, in one file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    names = [x509.DNSName(host) for host in (HOST, "www.googleapis.com", "oauth2.googleapis.com")]
    today = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(days=2))
        .not_valid_after(today + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName(names), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "storage.pem"
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return path


class Faults:
    """The rules in force, and what they did."""

    def __init__(self) -> None:
        self.rules: list[dict[str, Any]] = []
        self.hits: dict[str, int] = {"requests": 0}
        self._lock = threading.Lock()

    def pick(self, request: str) -> dict[str, Any] | None:
        """The fault that strikes a request, if any."""
        with self._lock:
            self.hits["requests"] += 1
            for rule in self.rules:
                if not re.search(rule.get("match", "."), request) or random.random() >= rule.get("share", 1):
                    continue
                if rule.get("times", 1) <= 0:
                    continue
                if "times" in rule:
                    rule["times"] -= 1
                kind = str(rule["kind"])
                self.hits[kind] = self.hits.get(kind, 0) + 1
                return rule
        return None


def _serve(certificate: str, bucket: str) -> None:
    from gcp_storage_emulator import server as emulator
    from gcp_storage_emulator.handlers import buckets
    from gcp_storage_emulator.storage import Storage

    storage = Storage(use_memory_fs=True)
    buckets.create_bucket(bucket, storage)
    plain_read = emulator._read_data

    def read(handler: Any, query: Any) -> Any:
        data = plain_read(handler, query)
        return b"" if data is None and query.get("uploadType") == ["media"] else data

    emulator._read_data = read
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    parts = {"emulator": emulator, "storage": storage, "context": context}
    handler = type("Handler", (Proxy,), {**parts, "faults": Faults(), "one_at_a_time": threading.Lock()})
    listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    listening.daemon_threads = True
    print(listening.server_port, flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    listening.serve_forever()


class Proxy(http.server.BaseHTTPRequestHandler):
    """The proxy, and inside of its tunnels the storage; a subclass has `emulator` and what follows."""

    emulator: Any  # gcp_storage_emulator.server
    storage: Any
    context: ssl.SSLContext
    faults: Faults
    one_at_a_time: threading.Lock

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    inside = False

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def send_header(self, keyword: str, value: str) -> None:
        if (keyword, value) == ("Range", "bytes=0-0"):  # of an upload without a byte yet; the real one has none
            return
        super().send_header(keyword, value.replace("http://", "https://") if keyword == "Location" else value)

    def do_CONNECT(self) -> None:
        self.send_response(200)
        self.end_headers()
        try:
            self.connection = self.context.wrap_socket(self.connection, server_side=True)
            self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
            self.inside, self.close_connection = True, False
            while not self.close_connection:
                self.handle_one_request()
        except (OSError, ssl.SSLError):
            self.close_connection = True

    def _answer(self) -> None:
        if not self.inside:
            return self._control()
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            del self.headers["Content-Length"]
        fault = self.faults.pick(f"{self.command} {self.path}")
        if fault is not None and not self._strike(fault):
            return None
        if int(self.headers.get("Content-Length") or 0) or "Transfer-Encoding" in self.headers:
            body = self.emulator._read_raw_data(self) or b""  # before the lock: a slow client holds nobody up
            self.rfile, plain = _Body(body), self.rfile
            del self.headers["Transfer-Encoding"], self.headers["Content-Length"]
            self.headers["Content-Length"] = str(len(body))
        else:
            plain = self.rfile
        with self.one_at_a_time:
            self.emulator.Router(self).handle(self.command)
        self.rfile = plain
        return None

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = _answer  # noqa: N815  the names http.server asks for

    def _strike(self, fault: dict[str, Any]) -> bool:
        """Do the fault; True where the request is answered all the same."""
        kind = fault["kind"]
        if kind == "slow":
            time.sleep(fault.get("seconds", 0.5))
            return True
        if kind == "permissions":
            granted = [p for p in re.findall(r"permissions=([\w.]+)", self.path) if p not in fault["lacking"]]
            self._json(200, {"permissions": granted})
        elif kind == "half":
            self.rfile.read(int(self.headers.get("Content-Length") or 2) // 2)
            self._reset()
        elif kind == "timeout":
            time.sleep(fault.get("seconds", 5))
            self._reset()
        elif kind == "reset":
            self._reset()
        else:
            self.emulator._read_raw_data(self)
            self._json(int(kind), {"error": {"code": int(kind), "message": f"injected {kind}"}})
        return False

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        raise ConnectionResetError("injected")

    def _control(self) -> None:
        if self.command == "POST":
            self.faults.rules = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.faults.hits = {"requests": 0}
        self._json(200, self.faults.hits)

    def _json(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Body:
    """A request's body that was read already."""

    def __init__(self, content: bytes):
        self.content = content

    def read(self, size: int = -1) -> bytes:
        """All of it, or its beginning."""
        taken, self.content = (self.content, b"") if size < 0 else (self.content[:size], self.content[size:])
        return taken


if __name__ == "__main__":
    _serve(sys.argv[1], sys.argv[2])
