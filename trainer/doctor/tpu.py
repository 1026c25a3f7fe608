"""The TPU's half: tensorflow-tpu against the libtpu that it loads at import."""

from pathlib import Path

from trainer.doctor.installed import TensorFlow, version_of, within
from trainer.doctor.result import Check

# tensorflow-tpu looks up every entry point of libtpu when it is imported and aborts where one is gone. Its
# metadata (~=0.0.14) takes libtpu releases that lack some, so the range that imports was measured, release by release.
LIBTPU = {"2.20": ">=0.0.14,<0.0.32", "2.19": "==0.0.10"}


def devices() -> list[str]:
    """The TPU chips that this machine shows, as /dev/accel0 (v2 to v5p) or /dev/vfio/0 (v5e and newer)."""
    folder = Path("/dev")
    chips = [*folder.glob("accel[0-9]*"), *folder.glob("accel/accel[0-9]*"), *folder.glob("vfio/[0-9]*")]
    return sorted(str(path) for path in chips)


def checks(tensorflow: TensorFlow) -> list[Check]:
    """libtpu's version and file, and the chips."""
    return [_libtpu(tensorflow), _chips()]


def _libtpu(tensorflow: TensorFlow) -> Check:
    version = version_of("libtpu")
    wanted = LIBTPU.get(".".join(tensorflow.version.split(".")[:2]), tensorflow.wants("libtpu"))
    if not version:
        return Check("libtpu", "failure", "not installed", wanted, f"pip install 'libtpu{wanted}'")
    library = tensorflow.folder.parent / "libtpu" / "libtpu.so"
    if not library.is_file():
        return Check("libtpu", "failure", f"{version}, without {library}", wanted, f"pip install 'libtpu{wanted}'")
    if not wanted:
        return Check("libtpu", "unknown", version, f"no range is known for {tensorflow.name} {tensorflow.version}")
    if not within(version, wanted):
        fix = f"pip install 'libtpu{wanted}': with {version} TensorFlow aborts at import"
        return Check("libtpu", "failure", version, wanted, fix)
    return Check("libtpu", "ok", version, wanted)


def _chips() -> Check:
    chips = devices()
    if chips:
        return Check("TPU", "ok", f"{len(chips)} chips: {chips[0]} to {chips[-1]}")
    return Check("TPU", "unknown", "none on this machine", "a TPU machine runs the image")
