"""What TensorFlow said of a failure, in one line: without its stack, its nodes' names and addresses."""

import re

# A failure inside a tf.function comes with a heading, the place in the code and, where there are several, their number.
AROUND = re.compile(r"Graph execution error|Detected at node|File \"|<stack traces|\d+ root error\(s\) found")
BEFORE = re.compile(
    r"\(\d+\) [A-Z_]+: *|Error in user-defined function passed to \S+ transformation with iterator: \S+: *"
)
NAMES = re.compile(r"\{\{.*?\}\}|\[\[.*|\[Op:.*")
NODE = re.compile(r"\{\{node ([^}]+)\}\}")


def _text(error: Exception) -> str:
    return getattr(error, "message", None) or str(error)


def first_line(error: Exception, longest: int = 240) -> str:
    """The first line that says something, of at most `longest` characters."""
    for line in _text(error).split("\n"):
        told = NAMES.sub("", line).strip()
        if told and not AROUND.match(told):
            return BEFORE.sub("", told)[:longest]
    return type(error).__name__


def node(error: Exception) -> str:
    """The operation that failed, under the names of its layer or loss; "" where it isn't told."""
    found = NODE.search(_text(error))
    parts = found[1].removeprefix("while/").split("/") if found else []
    return "/".join(part for part, before in zip(parts, ["", *parts], strict=False) if part != before)


def on_the_way_in(error: Exception) -> bool:
    """Whether it was met while a batch was made, rather than in the model."""
    return "Iterator" in _text(error)
