"""The names that a line gives away, so that the commands of a fix can be copied as they stand."""

import re
import string

FOUND_IN = {
    "BUCKET": r"gs://([a-z0-9][a-z0-9._-]{1,61}[a-z0-9])|\bbucket[:\s'\"`]+([a-z0-9][a-z0-9._-]{2,61}[a-z0-9])['\"`]",
    "SERVICE_ACCOUNT": r"([\w.-]+@[\w.-]+\.gserviceaccount\.com)",
    "PROJECT": r"\bprojects/([a-z][a-z0-9-]{4,28}[a-z0-9])\b",
    "REGION": r"\b(?:locations/|regions?[:/ ]+)([a-z]+-[a-z]+\d)\b|\b([a-z]+-[a-z]+\d)-docker\.pkg\.dev",
    "REPOSITORY": r"\brepositories/([\w.-]+)",
    "IMAGE": r"\b([a-z0-9-]+-docker\.pkg\.dev/[\w./:@-]+)",
    "METRIC": r"\b(aiplatform\.googleapis\.com/\w+)",
    "PERMISSION": r"\b([a-z]{2,}\.[a-zA-Z]+\.[a-z]\w+)\b",
}


def of(line: str) -> dict[str, str]:
    """NAME -> what the line has for it."""
    found = {name: re.search(pattern, line) for name, pattern in FOUND_IN.items()}
    return {name: next(filter(None, match.groups())) for name, match in found.items() if match}


def fill(text: str, values: dict[str, str]) -> str:
    """The text with each $NAME that is known filled in; what isn't stays as it is written."""
    return string.Template(text).safe_substitute(values)
