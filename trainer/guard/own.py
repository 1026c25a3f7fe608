"""An exception out of model.py or data.py, or out of Keras because of them, in one sentence: where, and what was said.

Imports no TensorFlow: a file that can't even be imported is told so too.
"""

import linecache
import pathlib
import re
import textwrap
import traceback

from trainer.said import NAMES
from trainer.yours import DATA_FILE, MODEL_FILE

COLOURS = re.compile(r"\x1b\[[\d;]*m")
# Keras: what was wrong stands between the layer's call and a list of its arguments
LAYER = re.compile(r"Exception encountered when calling (.+?)\.\n\n(.*?)(?:\n\nArguments received by .*|\Z)", re.DOTALL)
# AutoGraph: a stack within the message, then what was said; the stack names the files as they were written
STACK = re.compile(r'File "([^"]+)", line (\d+), in (\w+)')
CONVERTED = re.compile(r"\s*in user code:\n")


def told(error: BaseException, longest: int = 320) -> str:
    """The place in the fork's files, where there is one, and what was said there."""
    return f"{place(error)}{_kind(error)}{said(error, longest)}"


def said(error: BaseException, longest: int = 320) -> str:
    """What the exception says in one line, without colours, the arguments of the layer, and stacks."""
    message = getattr(error, "message", None)  # TensorFlow's own, with its nodes' names
    text = COLOURS.sub("", message if isinstance(message, str) else str(error))
    if "{{" in text:
        text = NAMES.sub("", text)
    if CONVERTED.match(text):
        text = text[list(STACK.finditer(text))[-1].end() :].partition("\n\n")[2] or text.rpartition("\n\n")[2]
    if layer := LAYER.search(text):
        text = f"{layer[2]} (in {layer[1]})"
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[:longest]} ..."


def place(error: BaseException) -> str:
    """`trainer/data.py, line 12, in parse: ` of the innermost line of the fork's on the way; "" where there is none."""
    frames = [(f.filename, f.lineno, f.name) for f in traceback.extract_tb(error.__traceback__)]
    if while_traced(error):
        frames += [(file, int(line), name) for file, line, name in STACK.findall(str(error))]
    theirs = [frame for frame in frames if _is_theirs(frame[0])]
    if not theirs:
        return ""
    file, line, name = theirs[-1]
    code = textwrap.shorten(linecache.getline(file, line), 100, placeholder=" ...")
    return f"trainer/{pathlib.Path(file).name}, line {line}, in {name}: `{code}`: "


def while_traced(error: BaseException) -> bool:
    """Whether it was raised while a tf.function was made of Python code, rather than by the trainer itself."""
    return bool(CONVERTED.match(str(error)))


def _is_theirs(file: str) -> bool:
    return pathlib.Path(file) in (MODEL_FILE, DATA_FILE)


def _kind(error: BaseException) -> str:
    return "" if while_traced(error) else f"{type(error).__name__}: "
