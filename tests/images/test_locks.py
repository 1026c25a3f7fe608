"""The locks, what a layer takes from them, the page of versions, the bill of materials; none needs an engine."""

import re
from pathlib import Path

import lock
import plan
import pytest
import sbom
import versions

KINDS = ("cpu", "gpu", "tpu")
LOCKS = (*KINDS, "launch", "dev", "benchmark")


def text(kind):
    return Path(f"requirements/{kind}.lock").read_text()


def test_the_page_of_versions_is_what_the_locks_say():
    assert Path("docs/versions.md").read_text() == versions.page(), "docs/versions.md is out of date: make lock"


@pytest.mark.parametrize("kind", LOCKS)
def test_a_lock_pins_everything_with_a_hash_and_names_no_index(kind):
    entries = re.split(r"\n(?=[a-z0-9])", text(kind).strip())
    assert len(entries) > 20 or kind == "benchmark"
    assert all("==" in entry and "--hash=sha256:" in entry for entry in entries)
    assert "://" not in text(kind)
    assert "index-url" not in text(kind)


def test_the_gpu_lock_has_the_cuda_and_cudnn_that_tensorflow_was_built_for():
    cuda, cudnn = versions.COMPILED["2.21"]
    for package, least in (("nvidia-cuda-runtime-cu12", cuda), ("nvidia-cudnn-cu12", cudnn)):
        pinned = tuple(map(int, versions.version(text("gpu"), package).split(".")))
        wanted = tuple(map(int, least.split(".")))
        assert pinned[0] == wanted[0]
        assert pinned >= wanted


def test_the_first_layer_holds_tensorflow_and_its_accelerator_only():
    assert set(plan.first_layer(text("tpu"))) == {"tensorflow-tpu", "libtpu"}
    assert all(name.startswith(("tensorflow", "nvidia-")) for name in plan.first_layer(text("gpu")))
    assert "nvidia-cudnn-cu12" in plan.first_layer(text("gpu"))
    assert "tensorboard" not in plan.first_layer(text("cpu"))


def test_a_requirement_keeps_its_marker():
    entry = "tensorflow-cpu==2.21.0 ; platform_machine == 'x86_64' \\\n    --hash=sha256:00\nkeras==3.0 \\\n"
    assert plan.first_layer(entry) == {"tensorflow-cpu": "tensorflow-cpu==2.21.0 ; platform_machine == 'x86_64'"}


def test_what_changed_in_a_lock_is_told():
    before = lock.pins(
        "a==1 \\\n    --hash=x\nb==1 \\\nnumpy==2.4 ; python_full_version < '3.12' \\\nnumpy==2.5 ; x \\\n"
    )
    after = lock.pins("a==2 \\\n    --hash=x\nc==1 \\\nnumpy==2.5 \\\n")
    assert lock.changes(before, after) == ["  a 1 -> 2", "- b 1", "+ c 1", "  numpy 2.4 | 2.5 -> 2.5"]
    assert lock.changes(after, after) == []


def test_a_lock_that_can_not_be_made_leaves_the_old_ones(tmp_path):
    old = tmp_path / "cpu.lock"
    old.write_text("a==1\n")
    with pytest.raises(SystemExit, match="the locks are as they were"):
        lock.compile_lock("false", "cpu", old, upgrade=True)
    assert old.read_text() == "a==1\n"


def test_the_hashes_of_a_bill_are_those_of_the_lock():
    digest, other = "a" * 64, "b" * 64
    hashes = sbom.locked_hashes(f"x==1 \\\n    --hash=sha256:{digest}\ny==2 ; z \\\n    --hash=sha256:{other}\n")
    assert hashes == {("x", "1"): [digest], ("y", "2"): [other]}
    assert sbom.component("x", "1", [digest])["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert len(sbom.component("x", "1", [digest, other])["properties"]) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_the_labels_of_a_dockerfile_are_those_of_its_lock(kind):
    told = Path(f"Dockerfile.{kind}").read_text()
    version = re.search(r"^tensorflow(?:-cpu|-tpu)?==([0-9.]+)", text(kind), re.M)[1]
    assert f"org.trainyard.accelerator={kind} org.trainyard.tensorflow={version}" in told


def test_the_three_dockerfiles_have_the_same_shape():
    """But for names, versions and the accelerator's own lines they are one file."""
    shapes = set()
    for kind in KINDS:
        lines = Path(f"Dockerfile.{kind}").read_text().splitlines()
        assert len(lines) <= 65
        shapes.add(tuple(line.split()[0] for line in lines if line.split()[:1] and line.split()[0] in ("FROM", "USER")))
        assert not any(line.startswith("# syntax") for line in lines)
        assert sum(f"python -m trainer.doctor --for={kind}" in line for line in lines) == 2
    assert len(shapes) == 1
