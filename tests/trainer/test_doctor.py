"""The doctor on environments made of files: fake wheels on sys.path, read as real ones are."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from trainer import doctor
from trainer.doctor import common, cuda, imports, installed, loader, tpu
from trainer.doctor.__main__ import main

REQUIRES = (
    "keras>=3.12.0",
    "protobuf<8.0.0,>=6.31.1",
    'nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"',
    'colorama>=1; sys_platform == "win32"',
)


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A function that installs a fake wheel into an otherwise empty environment."""
    for module in ("packaging.requirements", "packaging.specifiers"):  # imported late, from the real environment
        importlib.import_module(module)
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(Path(json.__file__).parent.parent)])

    def install(name, version, requires=(), tag="cp312-cp312-manylinux_2_27_x86_64", build=None):
        info = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        lines = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {line}" for line in requires)]
        (info / "METADATA").write_text("\n".join(lines) + "\n")
        (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nTag: {tag}\n")
        if build is not None:
            module = tmp_path / "tensorflow/python/platform/build_info.py"
            module.parent.mkdir(parents=True, exist_ok=True)
            module.write_text(f"build_info = {build!r}\n")
        importlib.invalidate_caches()
        return tmp_path

    return install


def good(site, name="tensorflow-cpu", version="2.21.0", **build):
    site("keras", "3.15.1")
    site("protobuf", "7.36.2")
    return site(name, version, REQUIRES, build={"is_cuda_build": False} | build)


def named(kind):
    return {check.name: check for check in doctor.check(kind)}


def test_the_environment_at_hand_is_fit_for_the_cpu_and_says_so_as_json(capsys):
    assert main(["--for=cpu", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["for"] == "cpu"
    assert {check["status"] for check in told["checks"]} == {"ok"}
    assert all(set(check) == {"name", "status", "found", "wanted", "fix"} for check in told["checks"])


def test_the_build_is_read_as_tensorflow_tells_it():
    assert installed.TensorFlow.find().build == dict(tf.sysconfig.get_build_info())
    assert installed.TensorFlow.find().version == tf.__version__


def test_the_check_at_start_imports_no_tensorflow():
    code = "from trainer import doctor; import sys; doctor.check(); sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_tensorflow_for_the_cpu_is_not_fit_for_a_gpu(capsys):
    assert main(["--for=gpu", "--quick"]) == 1
    told = capsys.readouterr().out
    assert "tensorflow-cpu 2.21.0, built for the CPU only" in told
    assert "pip install -r requirements/gpu.lock" in told
    assert "not fit for gpu: 1 of" in told


def test_no_tensorflow_at_all(site):
    assert named("cpu")["TensorFlow"].found == "not installed"


def test_a_good_environment_has_nothing_to_fix(site):
    good(site)
    assert {(check.status, check.fix) for check in doctor.check("cpu")} == {("ok", "")}


def test_two_tensorflows_are_told_by_name(site):
    good(site)
    site("tensorflow", "2.20.0")
    check = named("cpu")["TensorFlow"]
    assert check.status == "failure"
    assert check.found == "tensorflow-cpu and tensorflow"


def test_a_removed_file_of_tensorflow_is_told(site):
    folder = good(site)
    (folder / "tensorflow/python/platform/build_info.py").unlink()
    assert "files missing" in named("cpu")["TensorFlow"].found


def test_an_old_keras_is_told_with_the_range(site):
    site("keras", "3.5.0")
    site("protobuf", "7.36.2")
    site("tensorflow-cpu", "2.21.0", REQUIRES, build={"is_cuda_build": False})
    check = named("cpu")["Keras"]
    assert (check.status, check.wanted, check.fix) == ("failure", ">=3.12.0", "pip install 'keras>=3.12.0'")


def test_a_package_that_something_else_pulled_down_is_told(site):
    site("keras", "3.15.1")
    site("protobuf", "5.29.0")
    site("tensorflow-cpu", "2.21.0", REQUIRES, build={"is_cuda_build": False})
    assert "protobuf 5.29.0" in named("cpu")["packages"].found


def test_an_old_glibc_and_another_machine_are_told(site):
    site("tensorflow-cpu", "2.21.0", tag="cp312-cp312-manylinux_2_99_aarch64", build={"is_cuda_build": False})
    checks = named("cpu")
    assert checks["glibc"].status == checks["machine"].status == "failure"
    assert checks["glibc"].wanted == "glibc 2.99 or newer"


@pytest.mark.skipif("x86_64" not in installed.TensorFlow.find().tags[0], reason="only x86-64 wheels need AVX")
def test_a_processor_without_avx_is_told(tmp_path):
    (tmp_path / "cpuinfo").write_text("flags\t\t: fpu sse sse4_2\n")
    (check,) = common._processor(tmp_path / "cpuinfo")
    assert (check.status, check.found) == ("failure", "no avx")


def test_a_libtpu_that_aborts_at_import_is_told_before_it_is_imported(site):
    folder = good(site, "tensorflow-tpu", "2.20.0")
    site("libtpu", "0.0.51")
    (folder / "libtpu").mkdir()
    (folder / "libtpu/libtpu.so").write_bytes(b"")
    check = named("tpu")["libtpu"]
    assert (check.status, check.found, check.wanted) == ("failure", "0.0.51", ">=0.0.14,<0.0.32")
    assert "aborts at import" in check.fix


def test_a_libtpu_without_its_library_is_told(site):
    good(site, "tensorflow-tpu", "2.20.0")
    site("libtpu", "0.0.31")
    assert "without" in named("tpu")["libtpu"].found


def test_a_gpu_build_without_any_library_names_every_one_of_them(site):
    good(site, "tensorflow", is_cuda_build=True, cuda_version="12.5.1", cudnn_version="9")
    failed = {check.name: check for check in doctor.check("gpu") if check.status == "failure"}
    wanted = {"CUDA", "cuDNN", "NCCL", "libcublas.so.12", "libcufft.so.11", "libcusolver.so.11"}
    assert wanted <= set(failed)
    assert failed["cuDNN"].wanted == ">=9.3.0.75,<10.0"
    assert "pip install 'nvidia-cudnn-cu12>=9.3.0.75,<10.0'" in failed["cuDNN"].fix


def test_an_import_that_aborts_is_a_finding_not_a_traceback(monkeypatch):
    monkeypatch.setattr(imports, "PROBE", "import os; os.abort()")
    check = imports.check("cpu")
    assert check.status == "failure"
    assert "SIGABRT" in check.found


@pytest.mark.parametrize(("number", "text"), [(92800, "9.28.0"), (90300, "9.3.0"), (8907, "8.9.7"), (7605, "7.6.5")])
def test_cudnn_numbers(number, text):
    assert cuda.cudnn_version(number) == text


def test_a_runpath_is_read_from_tensorflows_own_library():
    folders = loader.runpath(installed.TensorFlow.find().folder / "libtensorflow_cc.so.2")
    assert folders
    assert all("$ORIGIN" not in folder for folder in folders)


def test_a_file_that_is_no_library_has_no_runpath(tmp_path):
    (tmp_path / "x").write_bytes(b"not an ELF file, but longer than its header would be, so that it can be mapped")
    assert loader.runpath(tmp_path / "x") == ()


def test_the_loaders_cache_is_read(site):
    assert any(name.startswith("libc.so") for name in loader.cached())


def test_python_versions_are_those_of_pyproject():
    (oldest, newest) = common.PYTHON
    text = Path("pyproject.toml").read_text()
    assert f'requires-python = ">={oldest[0]}.{oldest[1]},<{newest[0]}.{newest[1] + 1}"' in text


def test_the_range_of_libtpu_is_the_one_that_the_lock_is_made_from():
    assert f'"libtpu{tpu.LIBTPU["2.20"]}"' in Path("pyproject.toml").read_text()


def test_what_the_dockerfile_says_counts_more_than_what_is_installed(monkeypatch):
    monkeypatch.setenv("TRAINYARD_IMAGE", "tpu")
    assert doctor.kind_here() == "tpu"
    monkeypatch.setenv("TRAINYARD_IMAGE", "")
    assert doctor.kind_here() in ("cpu", "gpu")


def test_an_unknown_kind_is_refused_by_name():
    with pytest.raises(ValueError, match="cpu, gpu, tpu; received 'npu'"):
        doctor.check("npu")
