"""Job files with something wrong: seeded mutations of the shipped ones, as text, tree or bytes."""

import copy
import random

import yaml

WORDS = ["", "x", "1h", "-1", "1e400", "${IMAGE}", "${NOPE}", "$", "gs://", "SPOT", "null", "\u2028", "é" * 40, "0x1G"]
VALUES = [None, True, -1, 0, 10**30, 1.5, float("inf"), "", "1", [], {}, [None], {"a": 1}, [[[]]], "2026-01-01", *WORDS]
NOISE = [
    b"\x00",
    b"\xff\xfe",
    b"\t",
    b"&a ",
    b"*a",
    b"!!python/object:os.system ",
    b"{",
    b"[",
    b"'",
    b"---\n",
    b"\r",
    b"<<: ",
]


def _paths(data: object, path: tuple = ()) -> list[tuple]:
    found = [path] if path else []
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        found += _paths(value, (*path, key))
    return found


def _parent(data: object, path: tuple) -> object:
    for part in path[:-1]:
        data = data[part]
    return data


def _misspell(rng: random.Random, text: str) -> str:
    place = rng.randrange(len(text) + 1)
    kind = rng.randrange(4)
    if kind == 0:
        return text[:place] + text[place + 1 :]
    if kind == 1:
        return text[:place] + rng.choice("aZ_0 -") + text[place:]
    if kind == 2:
        return text.lower() if text != text.lower() else text.upper()
    return text[:place] + text[place : place + 2][::-1] + text[place + 2 :]


def tree(rng: random.Random, data: dict) -> dict:
    """One to three changes of keys, values and places."""
    data = copy.deepcopy(data)
    for _ in range(rng.randint(1, 3)):
        paths = _paths(data)
        if not paths:
            break
        path = rng.choice(paths)
        parent, key = _parent(data, path), path[-1]
        kind = rng.randrange(5)
        if kind == 0 and isinstance(parent, dict):
            parent[_misspell(rng, str(key))] = parent.pop(key)
        elif kind == 1:
            parent[key] = rng.choice(VALUES)
        elif kind == 2:
            target = _parent(data, rng.choice(paths))
            if isinstance(target, dict):
                target[str(key)] = copy.deepcopy(parent[key])
            elif isinstance(target, list):
                target.append(copy.deepcopy(parent[key]))
        elif kind == 3:
            del parent[key]
        elif isinstance(parent[key], str):
            parent[key] = _misspell(rng, parent[key])
        elif isinstance(parent[key], int):
            parent[key] = rng.choice([-1, 0, 3, 7, 2**40, str(parent[key])])
    return data


def raw(rng: random.Random, text: str) -> bytes:
    """Lines doubled, lost, moved or indented; noise; endless lists; aliases on aliases."""
    lines = text.splitlines(keepends=True)
    kind = rng.randrange(8)
    place = rng.randrange(len(lines))
    if kind == 0:
        lines.insert(rng.randrange(len(lines)), lines[place])
    elif kind == 1:
        del lines[place]
    elif kind == 2:
        lines[place] = " " * rng.randint(1, 3) + lines[place]
    elif kind == 3:
        body = bytearray("".join(lines).encode())
        at = rng.randrange(len(body))
        body[at:at] = rng.choice(NOISE) * rng.randint(1, 3)
        return bytes(body)
    elif kind == 4:
        body = bytearray("".join(lines).encode())
        for _ in range(rng.randint(1, 8)):
            body[rng.randrange(len(body))] = rng.randrange(256)
        return bytes(body)
    elif kind == 5:
        opening = rng.choice(["[", "{a: ", "- ", "? "])
        lines.append("deep: " + opening * rng.choice([20, 200, 5000]) + "\n")
    elif kind == 6:
        bomb = ["b0: &b0 [x, x, x, x, x, x, x, x]\n"]
        bomb += [f"b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 8)}]\n" for n in range(1, rng.randint(2, 12))]
        lines += bomb
    else:
        lines.append(rng.choice(["args: ", "x: "]) + "y" * rng.choice([10, 100_000, 1_000_000]) + "\n")
    return "".join(lines).encode()


def mutant(rng: random.Random, text: str) -> bytes:
    """One broken (or, by luck, still good) file made of `text`."""
    if rng.random() < 0.6:
        return yaml.safe_dump(tree(rng, yaml.safe_load(text)), allow_unicode=True).encode("utf-8", "surrogatepass")
    return raw(rng, text)
