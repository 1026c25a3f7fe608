"""No service-account key, and nothing else that opens a door, in any file of the repository, its docs included."""

import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
LEFT_OUT = {".git", ".venv", "jobs", "build", "dist", ".cache", ".terraform", "__pycache__", "node_modules"}

# Split where written out, so that this file does not find itself.
SECRETS = {
    "a private key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE" + r" KEY-----",
    "a service account's key file": r'"private_key(?:_id)?"' + r'\s*:\s*"[^"$<]{20,}"',
    "a Google API key": r"\bAIza" + r"[0-9A-Za-z_-]{35}\b",
    "an OAuth access token": r"\bya29\." + r"[0-9A-Za-z_-]{20,}",
    "an OAuth client secret": r"\bGOCSPX-" + r"[0-9A-Za-z_-]{20,}",
    "a refresh token": r"\b1//0" + r"[0-9A-Za-z_-]{30,}",
}
# What would make a reader create or use a key.
ADVICE = {
    "a command that makes a key": r"service-accounts\s+keys\s+create",
    "a sign-in with a key": r"activate-service-account|--key-file|--cred-file",
}


def files() -> list[pathlib.Path]:
    """What git tracks or would; outside git (an archive, Cloud Build's copy) whatever lies there."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True)
    if listed.returncode == 0:
        found = [ROOT / name for name in listed.stdout.splitlines()]
    else:
        found = [path for path in ROOT.rglob("*") if not LEFT_OUT & set(path.relative_to(ROOT).parts)]
    return [path for path in found if path.is_file()]


def findings(text: str, patterns: dict[str, str]) -> list[str]:
    return [what for what, pattern in patterns.items() if re.search(pattern, text)]


def test_no_file_holds_a_secret():
    scanned = files()
    assert len(scanned) > 50
    found = {str(path.relative_to(ROOT)): what for path in scanned if (what := findings(text(path), SECRETS))}
    assert found == {}


def test_no_page_and_no_script_tells_to_make_a_key():
    told = [path for path in files() if path.suffix in (".md", ".sh", ".yaml", ".tf") or path.name == "Makefile"]
    assert any(path.name == "README.md" for path in told)
    found = {str(path.relative_to(ROOT)): what for path in told if (what := findings(text(path), ADVICE))}
    assert found == {}


def text(path: pathlib.Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("sample", "what"),
    [
        ("-----BEGIN RSA PRIVATE" + " KEY-----", "a private key"),
        ('"private_key_id"' + ': "0123456789abcdef0123456789abcdef01234567"', "a service account's key file"),
        ("key=AIza" + "x" * 35, "a Google API key"),
        ("ya29." + "a0" * 20, "an OAuth access token"),
        ("GOCSPX-" + "a0" * 14, "an OAuth client secret"),
        ("1//0" + "ab" * 20, "a refresh token"),
        ("gcloud iam service-accounts keys" + " create k.json", "a command that makes a key"),
        ("gcloud auth activate-service" + "-account --key-file=k", "a sign-in with a key"),
    ],
)
def test_the_scan_finds_what_it_looks_for(sample, what):
    assert what in findings(sample, SECRETS | ADVICE)


def test_what_is_uploaded_to_cloud_build_and_to_the_engine_leaves_secrets_behind():
    uploaded = (ROOT / ".gcloudignore").read_text().splitlines()
    assert {".git", ".env", "*.key", "*.pem", "*-key.json", "#!include:.gitignore"} <= set(uploaded)
    # .dockerignore names what goes in, and leaves out all else
    context = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    assert context[0] == "*"
    assert not {"!project.env", "!.git", "!."} & set(context)
