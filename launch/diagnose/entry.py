"""One entry of a log: its message, when it was written, by which replica, and how seriously it means it."""

import datetime
import json
import re

ANSI = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\n]*(?:\x07|\x1b\\)|[@-Z\\-_])")
ESCAPED_ANSI = re.compile(rb"\\u001b\[[0-9;]*m")
STAMP = re.compile(rb"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?")
EPOCH = re.compile(rb"\b[IWEF]\d{4} \d\d:\d\d:(\d{10}\.\d+)")  # absl before its flags are read
REPLICA = re.compile(rb"\b((?:workerpool\d+|chief|worker|master|ps|evaluator)-\d+)\b")
RETRYING = re.compile(rb"(?i)\bretrying\b|\bwill retry\b|\btry(?:ing)? again in\b|retries left|\bRetry\(total=")
WARNING = re.compile(
    rb"^(?:\S+ +){0,2}(?:W(?:ARN(?:ING)?)?\b|W\d{4} )|\]? W tensorflow/|: W (?:tensorflow|external|\S+\.cc)"
)
MESSAGE_KEYS = ("message", "textPayload", "jsonPayload", "protoPayload", "error", "status", "msg", "text", "log")
ENVELOPE = ("insertId", "labels", "resource", "logName", "trace", "spanId", "receiveTimestamp", "timestamp", "severity")
LEVEL = ("levelname", "level", "severity", "loglevel")  # how an entry means it, no word of what it says
LINE_SHOWN = 2000  # characters


def colourless(text: bytes) -> bytes:
    """The text without colours, those that JSON escapes among them; the same object where it has none."""
    if b"\x1b" in text:
        text = ANSI.sub(b"", text)
    return ESCAPED_ANSI.sub(b"", text) if b"\\u001b" in text else text


def plain(line: bytes) -> str:
    """The line as text: no colours, no carriage returns, not endless."""
    text = colourless(line).decode("utf-8", "replace").rstrip("\r\n")
    if "\r" in text:  # a progress bar drew over itself
        text = text.replace("\r", " ")
    text = text.replace("\b", "")
    return text if len(text) <= LINE_SHOWN else text[:LINE_SHOWN] + " [...]"


def _message(value: object, depth: int = 0) -> str | None:
    """The message in a decoded JSON entry: Cloud Logging's forms, an API's error body, or a plain logger's."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and depth < 4:
        for key in MESSAGE_KEYS:
            if key in value and (found := _message(value[key], depth + 1)):
                return found
    return None


def decoded(raw: bytes) -> dict | None:
    """The line as a JSON object, if it is one."""
    text = raw.strip().rstrip(b",")
    if not text.startswith(b"{") or not text.endswith(b"}"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _unlabelled(value: object) -> object:
    """A payload without its level: `"levelname": "ERROR"` makes no error of a line that was written to stderr."""
    return {key: inner for key, inner in value.items() if key not in LEVEL} if isinstance(value, dict) else value


def texts(raw: bytes) -> list[bytes]:
    """What a structured line says: its message, then all of it but the envelope. Empty for a plain line."""
    value = decoded(raw)
    if not value:
        return []
    body = {key: _unlabelled(inner) for key, inner in value.items() if key not in (*ENVELOPE, *LEVEL)}
    said = [_message(value) or "", json.dumps(body, ensure_ascii=False)]
    return [colourless(text.encode("utf-8", "replace")) for text in said if text]


def line_at(text: bytes, at: int) -> bytes:
    """The line of `text` in which `at` lies, cut to a window where it is very long."""
    start = max(text.rfind(b"\n", 0, at) + 1, at - 8000)
    end = text.find(b"\n", at)
    return text[start : min(len(text) if end < 0 else end, at + 8000)]


def quiet(raw: bytes, line: bytes) -> bool:
    """Whether the line says that it isn't the end: it will be tried again, or it is a warning."""
    if RETRYING.search(line):
        return True
    if b"OP_REQUIRES failed" in line:  # TensorFlow's own word for an operation that failed
        return False
    value = decoded(raw)
    if value and "severity" in value:
        return str(value["severity"]).upper() in ("WARNING", "DEBUG")
    return bool(WARNING.search(colourless(line[:400])))


def seconds(text: bytes) -> float | None:
    """The last time of day that stands in the text, in seconds since 1970."""
    stamps = list(STAMP.finditer(text))
    if stamps:
        found = stamps[-1]
        day, clock, fraction, zone = (group.decode() if group else "" for group in found.groups())
        zone = "+00:00" if zone in ("", "Z") else zone
        try:
            moment = datetime.datetime.fromisoformat(f"{day}T{clock}.{(fraction + '000000')[:6]}{zone}")
        except ValueError:
            return None
        return moment.timestamp()
    match = EPOCH.search(text)
    return float(match[1]) if match else None


def written(before: bytes, raw: bytes, after: bytes) -> float | None:
    """When the entry was written, as JSON, the line's beginning, a "timestamp" key after it or the lines before say."""
    value = decoded(raw)
    if value and isinstance(stamp := value.get("timestamp", value.get("time")), str):
        return seconds(stamp.encode())
    if (own := seconds(raw[:80])) is not None:
        return own
    if re.match(rb"\s*(?:- )?[\"']?(?:\w*[mM]essage|textPayload)[\"']?:", raw):
        key = re.search(rb"\n\s*[\"']?timestamp[\"']?: *[\"']?([^\"'\r\n]+)", after)
        if key:
            return seconds(key[1])
    return seconds(b"\n".join(line[:80] for line in before.splitlines()[-60:]))


def replica(raw: bytes, after: bytes = b"") -> str:
    """The replica that wrote the entry, as Vertex or a job's log names it; empty where it isn't said."""
    value = decoded(raw)
    if value:
        labels = (value.get("resource") or {}).get("labels", {}) if isinstance(value.get("resource"), dict) else {}
        if isinstance(labels, dict) and labels.get("task_name"):
            return str(labels["task_name"])
    found = REPLICA.search(raw[:120]) or re.search(rb"task_name[\"']?: *[\"']?(?P<name>[\w-]+)", after[:6000])
    return found[1].decode() if found else ""
