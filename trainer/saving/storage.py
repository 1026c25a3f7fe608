"""Storage that misbehaves: asked at the start what it allows, and tried again where an error may pass.

TensorFlow's own client of gs:// tries a request up to ten times by itself where the service is busy (429, 5xx)
or the connection breaks; what comes here has outlived that.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from trainer.said import first_line

READ = ("storage.objects.get", "storage.objects.list")
WRITE = (*READ, "storage.objects.create", "storage.objects.delete")
TRIES = 5
MAY_PASS = (
    tf.errors.UnavailableError,
    tf.errors.DeadlineExceededError,
    tf.errors.AbortedError,
    tf.errors.InternalError,
    tf.errors.UnknownError,
)


class StorageError(Exception):
    """A folder or bucket that can't be read or written; str() says which, and what to do."""


class RefusedError(StorageError):
    """The job can't work with this folder or bucket as it is; told before training."""


def with_retries(call: Callable[[], Any], what: str, passed_on: tuple = (), first_wait_s: float = 1.0) -> Any:
    """What `call` gives; tried again, with growing waits, where the error may pass.

    Args:
        what: the attempt in words, such as "write the checkpoint gs://b/ckpt-5".
        passed_on: errors that the caller wants as they are.

    Raises:
        StorageError: it still fails, or can't be cured by waiting.
    """
    for attempt in range(TRIES):
        try:
            return call()
        except passed_on:
            raise
        except tf.errors.OpError as error:
            if not (isinstance(error, MAY_PASS) or error.error_code == tf.errors.UNKNOWN) or attempt == TRIES - 1:
                raise StorageError(explain(error, what)) from error
            time.sleep(first_wait_s * 2**attempt)
    raise AssertionError("unreachable: the last try returns or raises")


def explain(error: tf.errors.OpError, what: str) -> str:
    """One sentence for a failure of storage."""
    said = first_line(error)
    if isinstance(error, tf.errors.ResourceExhaustedError) or "No space left" in said:
        return f"could not {what}: the disk is full ({said}); make room and start the same command again"
    if isinstance(error, tf.errors.PermissionDeniedError) or "Read-only file system" in said:
        return f"could not {what}: not allowed ({said})"
    if isinstance(error, tf.errors.NotFoundError):
        return f"could not {what}: it is not there ({said})"
    if isinstance(error, MAY_PASS):
        return f"could not {what} in {TRIES} tries ({said}); the checkpoints before it are whole"
    return f"could not {what} ({said})"


def check(reads: Iterable[str], writes: Iterable[str]) -> None:
    """Whether what the job reads and writes is there and allowed. Raises RefusedError with every problem.

    Args:
        reads: folders or files, local or gs://.
        writes: folders, local or gs://; local ones are made.
    """
    wanted: dict[str, set[str]] = {}
    problems = []
    for paths, permissions in ((reads, READ), (writes, WRITE)):
        for path in paths:
            if path.startswith("gs://"):
                wanted.setdefault(path[5:].split("/")[0], set()).update(permissions)
            elif permissions is WRITE:
                problems += _folder_problem(path)
    for bucket, permissions in wanted.items():
        problems += _bucket_problem(bucket, sorted(permissions))
    if problems:
        raise RefusedError("\n".join(problems))


def _folder_problem(path: str) -> list[str]:
    """Why a local folder can't be written; [] where it can."""
    try:
        os.makedirs(path, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path, prefix=".write-test-"):
            pass
        free = shutil.disk_usage(path).free
    except OSError as error:
        return [f"can't write to {path}: {error.strerror}; give a folder of your own with --job_dir"]
    return [] if free else [f"can't write to {path}: the disk is full; make room or give another --job_dir"]


def _bucket_problem(bucket: str, permissions: list[str]) -> list[str]:
    """What the job's account can't do with a bucket; [] where it can do all."""
    import google.api_core.exceptions as answers
    from google.auth.exceptions import GoogleAuthError
    from google.cloud import storage as client_library

    credentials = _credentials()
    account = _account(credentials)
    client = client_library.Client(project=os.environ.get("CLOUD_ML_PROJECT_ID") or "none", credentials=credentials)
    try:
        granted = client.bucket(bucket).test_iam_permissions(permissions, timeout=20)
    except answers.NotFound:
        return [f"gs://{bucket} does not exist (404, asked as {account}): make the bucket or correct its name"]
    except (answers.Forbidden, answers.Unauthorized) as error:
        return [f"gs://{bucket} refuses {account} ({error.code}): grant it {', '.join(permissions)}"]
    except (answers.GoogleAPICallError, GoogleAuthError, OSError) as error:
        return [f"gs://{bucket} can't be asked what {account} may do there: {str(error).splitlines()[0][:200]}"]
    missing = [permission for permission in permissions if permission not in granted]
    if not missing:
        return []
    role = "roles/storage.objectUser" if set(missing) - set(READ) else "roles/storage.objectViewer"
    return [
        f"gs://{bucket}: {account} lacks {', '.join(missing)}; {role} has them: gcloud storage buckets "
        f"add-iam-policy-binding gs://{bucket} --member={_member(account)} --role={role}"
    ]


def _credentials() -> Any:
    import google.auth
    from google.auth.credentials import AnonymousCredentials
    from google.auth.exceptions import DefaultCredentialsError

    try:
        return google.auth.default(scopes=["https://www.googleapis.com/auth/devstorage.read_write"])[0]
    except DefaultCredentialsError:
        return AnonymousCredentials()


def _account(credentials: Any) -> str:
    """The account's address where the credentials tell it; the metadata server does so at a refresh."""
    from google.auth.credentials import AnonymousCredentials
    from google.auth.exceptions import GoogleAuthError
    from google.auth.transport.requests import Request

    if isinstance(credentials, AnonymousCredentials):
        return "nobody (no credentials: gcloud auth application-default login)"
    if getattr(credentials, "service_account_email", "") == "default":
        try:
            credentials.refresh(Request())
        except GoogleAuthError:
            return "the job's service account"
    for name in ("service_account_email", "signer_email", "account"):
        value = getattr(credentials, name, "")
        if value and value != "default":
            return str(value)
    return "your account"


def _member(account: str) -> str:
    if "@" not in account:
        return "serviceAccount:EMAIL"
    return f"{'serviceAccount' if account.endswith('gserviceaccount.com') else 'user'}:{account}"
