"""The exported model: two signatures, checked in a fresh process, and a check that can fail."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from trainer import export, predict

SPEC = tf.TensorSpec([4], tf.float32)


def build():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.BatchNormalization()])
    model.compile("sgd", "mse")
    return model


def decode(raw):
    return tf.ensure_shape(tf.strings.to_number(tf.strings.split(raw, ",")), [4])


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """(path, the trained model, a sample)."""
    path = str(tmp_path_factory.mktemp("export") / "model")
    trained, sample = build(), np.random.default_rng(0).random((5, 4), dtype=np.float32)
    export.export(trained, build, decode, SPEC, sample, path)
    return path, trained, sample


def test_both_signatures_answer_as_the_trained_model_does(exported):
    path, trained, sample = exported
    signatures = tf.saved_model.load(path).signatures
    expected = trained(sample, training=False).numpy()
    (by_tensor,) = signatures["serving_default"](tf.constant(sample)).values()
    (by_bytes,) = signatures["raw"](tf.constant([",".join(map(str, row)) for row in sample])).values()
    np.testing.assert_allclose(by_tensor, expected, atol=1e-6)
    np.testing.assert_allclose(by_bytes, expected, atol=1e-5)


def test_without_a_decoder_there_is_no_raw_signature(tmp_path):
    path = str(tmp_path / "model")
    export.export(build(), build, None, SPEC, np.zeros((1, 4), np.float32), path)
    assert set(tf.saved_model.load(path).signatures) == {"serving_default"}


def test_a_model_that_answers_otherwise_after_loading_fails_the_job(exported, monkeypatch):
    path, _, sample = exported
    with pytest.raises(export.ExportError, match="answers differ by"):
        export._compare(path, sample, np.ones((5, 3), np.float32) * 7)


def test_a_model_that_does_not_load_fails_the_job(tmp_path):
    with pytest.raises(export.ExportError, match="doesn't answer as the trained one did"):
        export._compare(str(tmp_path / "none"), np.zeros((1, 4)), np.zeros((1, 3)))


def test_a_model_that_is_built_otherwise_a_second_time_is_told(tmp_path):
    other = keras.Sequential([keras.Input((4,)), keras.layers.Dense(7)])
    with pytest.raises(export.ExportError, match="build_model made another model for the export"):
        export.export(build(), lambda: other, None, SPEC, np.zeros((1, 4), np.float32), str(tmp_path))


def test_predict_prints_an_answer_or_a_sentence(exported, tmp_path, capsys):
    file = tmp_path / "row.csv"
    file.write_text("1,2,3,4")
    assert predict.main([str(file), "--model", exported[0], "--json"]) == 0
    assert "row.csv" in capsys.readouterr().out
    file.write_text("not numbers")
    assert predict.main([str(file), "--model", exported[0]]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"no answer from {exported[0]} to {file}: ") and "Graph execution" not in told
    assert "StringToNumber" in told and told.count("\n") == 1


def test_predict_tells_what_is_missing_before_it_looks_at_the_model(exported, tmp_path, capsys):
    file = tmp_path / "row.csv"
    assert predict.main([str(file), "--model", exported[0]]) == 2
    assert capsys.readouterr().err == f"{file} can't be read: No such file or directory\n"
    file.write_text("1,2,3,4")
    assert predict.main([str(file), "--model", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"{tmp_path} holds no model; make train exports one, --model names another\n"
