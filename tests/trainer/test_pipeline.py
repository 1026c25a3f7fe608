"""Order, sharding and counting: what step n sees depends on the seed and n alone."""

import itertools
import types

import numpy as np
import pytest
import tensorflow as tf

from trainer.flags import parse
from trainer.input import sources, split
from trainer.input.pipeline import Pipeline
from trainer.input.share import Share
from trainer.input.sources import DataError
from trainer.start import describe_data

COUNT = 53


@pytest.fixture
def folder(tmp_path):
    """53 records, the number of each as text, in five files of unlike length."""
    bounds = [0, 9, 10, 30, 41, COUNT]
    for index, (low, high) in enumerate(itertools.pairwise(bounds)):
        with tf.io.TFRecordWriter(str(tmp_path / f"train-{index}.tfrecord")) as writer:
            for number in range(low, high):
                writer.write(str(number).encode())
    return tmp_path


def parse_number(record, training):
    number = tf.strings.to_number(record, tf.int64)
    return tf.cast(number, tf.float32)[None], number


def module(parse=parse_number, **names):
    def records(split_name, data_dir):
        return sources.tfrecords(f"{data_dir}/train-*.tfrecord")

    return types.SimpleNamespace(records=records, parse=parse, **names)


def pipeline(folder, *flags, share=None, data=None):
    settings, _ = parse([f"--data_dir={folder}", "--batch_size=8", *flags])
    return Pipeline(data or module(), settings, share or Share())


def numbers(dataset):
    return [label.tolist() for _, label in dataset.as_numpy_iterator()]


@pytest.fixture(params=["in memory", "streamed"])
def both(request, monkeypatch):
    if request.param == "streamed":
        monkeypatch.setattr(split, "CACHE_BYTES", 0)
    return request.param


@pytest.mark.usefixtures("both")
class TestTraining:
    def test_an_epoch_has_every_example_once_in_an_order_of_its_own(self, folder):
        order = np.concatenate(numbers(pipeline(folder).training(0, 40)))
        first, second = order[:COUNT], order[COUNT : 2 * COUNT]
        assert sorted(first) == sorted(second) == list(range(COUNT))
        assert list(first) != list(second)
        assert list(first) != sorted(first)

    def test_starting_at_a_step_gives_what_that_step_would_have_seen(self, folder):
        whole = numbers(pipeline(folder).training(0, 30))
        for start in (1, 6, 7, 20):
            assert numbers(pipeline(folder).training(start, 30)) == whole[start:]

    def test_the_seed_decides(self, folder):
        assert numbers(pipeline(folder).training(0, 6)) == numbers(pipeline(folder).training(0, 6))
        assert numbers(pipeline(folder).training(0, 6)) != numbers(pipeline(folder, "--seed=1").training(0, 6))

    @pytest.mark.parametrize("process_seed", [0, 7])
    def test_the_seed_of_the_process_changes_nothing(self, folder, process_seed):
        tf.random.set_seed(None)
        expected = numbers(pipeline(folder).training(0, 12))
        tf.random.set_seed(process_seed)
        found = numbers(pipeline(folder).training(0, 12))
        drawn = tf.random.uniform([]).numpy()
        tf.random.set_seed(process_seed)
        assert found == expected
        assert drawn == tf.random.uniform([]).numpy()  # and it is still what it was
        tf.random.set_seed(None)

    @pytest.mark.parametrize(("workers", "replicas"), [(2, 1), (1, 4), (2, 2), (4, 2)])
    def test_workers_and_replicas_share_each_step_and_change_nothing(self, folder, workers, replicas):
        whole = numbers(pipeline(folder).training(3, 20))
        shares = [Share(workers, index, replicas) for index in range(workers)]
        parts = [numbers(pipeline(folder, share=share).training(3, 20)) for share in shares]
        for step, expected in enumerate(whole):
            rows = [part[step * replicas + replica] for part in parts for replica in range(replicas)]
            assert list(itertools.chain(*rows)) == expected

    def test_a_shuffle_buffer_of_one_keeps_the_order(self, folder):
        assert numbers(pipeline(folder, "--shuffle_buffer=1").training(0, 2)) == [list(range(8)), list(range(8, 16))]

    def test_augmentation_is_seeded_by_the_examples_place_in_the_job(self, folder):
        def augment(features, label, seed):
            return features + tf.random.stateless_uniform([1], seed), label

        data = module(augment=augment)
        values = [f.tolist() for f, _ in pipeline(folder, data=data).training(0, 12).as_numpy_iterator()]
        again = [f.tolist() for f, _ in pipeline(folder, data=data).training(5, 12).as_numpy_iterator()]
        assert again == values[5:]
        assert len({round(v[0] % 1, 6) for batch in values for v in batch}) > 80


@pytest.mark.usefixtures("both")
class TestEvaluation:
    @pytest.mark.parametrize("share", [(1, 1), (1, 4), (2, 1), (3, 2), (8, 1)])
    @pytest.mark.parametrize("batch_size", [24, 48])
    def test_every_example_is_counted_once(self, folder, share, batch_size):
        workers, replicas = share
        seen = []
        for index in range(workers):
            flag = f"--batch_size={batch_size}"
            dataset, steps = pipeline(folder, flag, share=Share(workers, index, replicas)).evaluation("train")
            batches = numbers(dataset)
            assert len(batches) == steps * replicas
            seen += itertools.chain(*batches)
        assert sorted(seen) == list(range(COUNT))

    @pytest.mark.parametrize("replicas", [1, 8])
    def test_records_of_several_tensors_are_counted_once(self, replicas):
        values = np.arange(COUNT)
        data = types.SimpleNamespace(
            records=lambda *_: tf.data.Dataset.from_tensor_slices((values.astype(np.float32), values)),
            parse=lambda feature, label, training: (feature[None], label),
        )
        dataset, _ = pipeline("", "--batch_size=24", share=Share(replicas=replicas), data=data).evaluation("train")
        assert sorted(itertools.chain(*numbers(dataset))) == list(range(COUNT))


def test_files_may_be_shared_instead_of_records(folder, monkeypatch):
    monkeypatch.setattr(split, "CACHE_BYTES", 0)
    seen = []
    for index in range(2):
        flags = ("--shard=file", "--shuffle_buffer=1")
        dataset = pipeline(folder, *flags, share=Share(2, index, 1)).training(0, 5)
        seen.append(set(np.concatenate(numbers(dataset)).tolist()))
    assert not seen[0] & seen[1]


@pytest.mark.parametrize(("flag", "steps"), [("--steps_per_epoch=3", 3), ("--examples_per_epoch=40", 5)])
def test_virtual_epochs_need_no_count(folder, monkeypatch, flag, steps):
    monkeypatch.setattr(sources, "count", lambda *_: pytest.fail("counted"))
    monkeypatch.setattr(split, "CACHE_BYTES", 12 * 10)  # ten examples
    made = pipeline(folder, flag, "--warmup_steps=0")
    assert made.steps_per_epoch == steps
    assert "records" not in describe_data(made)
    assert len(numbers(made.training(0, 20))) == 20
    assert made.sample()[1].numpy().tolist() == list(range(8))


@pytest.mark.parametrize("limit", [COUNT - 1, COUNT])
def test_no_more_records_are_read_than_tell_whether_all_fit(folder, limit):
    files = sources.tfrecords(f"{folder}/train-*.tfrecord")
    assert sources.are_more(files, limit) == (limit < COUNT)
    assert not sources.are_more(tf.data.Dataset.range(limit), limit)
    endless = tf.data.Dataset.from_generator(itertools.count, output_signature=tf.TensorSpec([], tf.int64))
    assert sources.are_more(endless, limit)


def test_a_truncated_file_is_named_with_its_record(folder):
    path = folder / "train-2.tfrecord"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(DataError, match=r"train-2.tfrecord, record 19: .*--skip_bad_records"):
        _ = pipeline(folder).steps_per_epoch


def parse_or_fail(record, training):
    number = tf.strings.to_number(record, tf.int64)
    tf.debugging.assert_less(number % 17, tf.constant(16, tf.int64), "bad number")
    return parse_number(record, training)


@pytest.mark.usefixtures("both")
class TestBadRecords:
    """Records 16, 33 and 50 can't be parsed."""

    def test_the_first_is_named(self, folder):
        made = pipeline(folder, data=module(parse_or_fail))
        try:
            numbers(made.training(0, 20))
        except DataError as error:
            message = str(error)
        except tf.errors.InvalidArgumentError:
            message = made.locate(0)
        assert "train-2.tfrecord, record 6" in message

    def test_they_can_be_stepped_over_and_are_counted(self, folder):
        made = pipeline(folder, "--skip_bad_records=3", data=module(parse_or_fail))
        seen = set(np.concatenate(numbers(made.training(0, 30))).tolist())
        assert seen == set(range(COUNT)) - {16, 33, 50}
        assert len(made.bad.seen) == 3
        made.bad.check()

    def test_evaluation_counts_the_others_once(self, folder):
        seen, named = [], set()
        for index in range(2):
            made = pipeline(folder, "--skip_bad_records=3", data=module(parse_or_fail), share=Share(2, index, 2))
            seen += itertools.chain(*numbers(made.evaluation("train")[0]))
            named |= made.bad.seen
        assert sorted(seen) == sorted(set(range(COUNT)) - {16, 33, 50})
        assert len(named) == 3

    def test_people_look_at_the_others_as_well(self, folder):
        made = pipeline(folder, "--skip_bad_records=3", data=module(parse_or_fail))
        assert sorted(itertools.chain(*numbers(made.plain("train")))) == sorted(set(range(COUNT)) - {16, 33, 50})

    def test_one_too_many_ends_the_job(self, folder):
        made = pipeline(folder, "--skip_bad_records=2", data=module(parse_or_fail))
        with pytest.raises(DataError, match=r"3 bad records, --skip_bad_records=2"):
            numbers(made.training(0, 30))
            made.bad.check()

    def test_a_file_that_breaks_off_counts_as_one(self, folder):
        path = folder / "train-2.tfrecord"
        path.write_bytes(path.read_bytes()[:-5])
        made = pipeline(folder, "--skip_bad_records=1")
        assert made.split("train").count == COUNT - 1
        assert set(np.concatenate(numbers(made.training(0, 30))).tolist()) == set(range(COUNT)) - {29}


@pytest.mark.parametrize("flags", [(), ("--shard=file",)])
def test_the_bad_record_is_looked_for_from_the_step_that_met_it(folder, monkeypatch, flags):
    monkeypatch.setattr(split, "CACHE_BYTES", 0)
    share = Share(2, 1, 1)
    clean = list(itertools.chain(*numbers(pipeline(folder, *flags, share=share).training(0, 12))))
    at, record = next((at, number) for at, number in enumerate(clean) if at > 8 and number in (16, 33, 50))
    looked_at = []

    def parse(record, training):
        tf.py_function(lambda r: looked_at.append(int(r.numpy())), [record], [])
        return parse_or_fail(record, training)

    made = pipeline(folder, *flags, share=share, data=module(parse))
    made.split("train")
    looked_at.clear()
    file, number = {16: (2, 6), 33: (3, 3), 50: (4, 9)}[record]
    assert f"train-{file}.tfrecord, record {number}: " in made.locate(at // 4)
    assert looked_at == clean[at // 4 * 4 : at + 1]


def test_stepping_over_bad_records_moves_no_other(folder, monkeypatch):
    monkeypatch.setattr(split, "CACHE_BYTES", 0)
    clean = numbers(pipeline(folder).training(0, 12))
    mended = numbers(pipeline(folder, "--skip_bad_records=3", data=module(parse_or_fail)).training(0, 12))
    for expected, batch in zip(clean, mended, strict=True):
        assert all(e == b for e, b in zip(expected, batch, strict=True) if e % 17 != 16)


def test_random_operations_that_no_seed_repeats_are_noticed(folder):
    def parse_noisy(record, training):
        features, number = parse_number(record, training)
        return features + tf.random.uniform([1]), number

    made = pipeline(folder, data=module(parse_noisy)).split("train")
    assert made.random_ops == ["RandomUniform"]
    assert not made.fits


def test_a_shape_that_is_not_static_is_told(folder):
    def ragged(record, training):
        return tf.strings.bytes_split(record), tf.strings.to_number(record, tf.int64)

    with pytest.raises(DataError, match=r"shape \(None,\); training needs static shapes"):
        _ = pipeline(folder, data=module(ragged)).element_spec


def test_a_batch_larger_than_the_data_is_told(folder):
    with pytest.raises(DataError, match="--batch_size=64 is more than the 53 examples"):
        _ = pipeline(folder, "--batch_size=64").steps_per_epoch
