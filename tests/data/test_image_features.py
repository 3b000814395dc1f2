"""Files of features: written in batches, resumed, opened in any order; each mismatch is one clear line."""

import json
import os
from dataclasses import asdict, replace

import numpy as np
import pytest
from message_of import message_of

from kzoo.data.features import Extractor, open_features, write_features
from kzoo.errors import UserError

VGG = Extractor("vgg19", "fc2", "random", seed=3)
NAMES = [f"{i}.jpg" for i in (7, 3, 9, 1, 5, 8, 2)]


def in_batches(rows, size=3):
    """A source of features that keeps what it was asked for in `asked`."""

    def arrays(names):
        arrays.asked.append(list(names))
        wanted = rows[[NAMES.index(name) for name in names]]
        for start in range(0, len(wanted), size):
            yield wanted[start : start + size]

    arrays.asked = []
    return arrays


@pytest.fixture(params=[(4,), (2, 4)], ids=["whole", "regions"])
def rows(request, random):
    return random.normal(size=(len(NAMES), *request.param)).astype("float32")


@pytest.fixture
def written(random, tmp_path):
    rows = random.normal(size=(len(NAMES), 4)).astype("float32")
    write_features(tmp_path / "train.npy", in_batches(rows), NAMES, VGG)
    return tmp_path / "train.npy"


def test_what_is_written_is_read(rows, tmp_path):
    features = write_features(tmp_path / "deep" / "train.npy", in_batches(rows), NAMES, VGG)
    assert isinstance(features.array, np.memmap)
    assert (features.names, features.extractor, features.shape) == (tuple(NAMES), VGG, rows.shape)
    np.testing.assert_array_equal(features[:], rows)
    np.testing.assert_array_equal(np.load(tmp_path / "deep" / "train.npy"), rows)
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["train.json", "train.npy"]
    read = json.loads((tmp_path / "deep" / "train.json").read_text())
    assert read["names"] == NAMES
    assert read["extractor"] == {
        "model": "vgg19",
        "layer": "fc2",
        "weights": "random",
        "seed": 3,
        "corrupt": "",
    }


def test_rows_come_in_the_order_asked_for(rows, tmp_path):
    write_features(tmp_path / "train.npy", in_batches(rows), NAMES, VGG)
    wanted = ["1.jpg", "1.jpg", "7.jpg", "2.jpg"]
    features = open_features(tmp_path / "train.npy", wanted)
    assert (len(features), features.shape) == (4, (4, *rows.shape[1:]))
    np.testing.assert_array_equal(features[np.arange(4)], rows[[3, 3, 0, 6]])
    np.testing.assert_array_equal(features[1:3], rows[[3, 0]])
    np.testing.assert_array_equal(features[-1], rows[6])


def test_the_target_of_a_link_is_written(rows, tmp_path):
    (tmp_path / "large").mkdir()
    for name in ("train.npy", "train.json"):
        (tmp_path / name).symlink_to(tmp_path / "large" / name)
    for seed in (3, 4):
        write_features(tmp_path / "train.npy", in_batches(rows + seed), NAMES, replace(VGG, seed=seed))
        np.testing.assert_array_equal(open_features(tmp_path / "large" / "train.npy")[:], rows + seed)


def test_half_precision_is_kept(rows, tmp_path):
    features = write_features(tmp_path / "train.npy", in_batches(rows.astype("float16")), NAMES, VGG)
    assert features.array.dtype == np.float16


def test_an_interruption_loses_nothing(rows, tmp_path):
    path, whole = tmp_path / "train.npy", in_batches(rows)

    def stops(names):
        for number, batch in enumerate(whole(names)):
            if number == 2:
                raise KeyboardInterrupt
            yield batch

    with pytest.raises(KeyboardInterrupt):
        write_features(path, stops, NAMES, VGG)
    assert not path.exists()
    (part,) = set(tmp_path.iterdir()) - set(tmp_path.glob(".*.digests.part"))
    np.lib.format.open_memmap(part, "r+")[5, ..., 2:] = np.nan  # stopped within a row
    np.testing.assert_array_equal(write_features(path, whole, NAMES, VGG)[:], rows)
    assert whole.asked == [NAMES, NAMES[5:]]
    assert sorted(found.name for found in tmp_path.iterdir()) == ["train.json", "train.npy"]


@pytest.mark.parametrize("size", [0, 5, -4])
def test_an_unfinished_file_that_is_cut_short_begins_anew(size, rows, tmp_path):
    path, whole = tmp_path / "train.npy", in_batches(rows)
    with pytest.raises(UserError, match="features"):
        write_features(path, lambda names: [rows[:3]], NAMES, VGG)
    (part,) = set(tmp_path.iterdir()) - set(tmp_path.glob(".*.digests.part"))
    part.write_bytes(part.read_bytes()[:size])
    np.testing.assert_array_equal(write_features(path, whole, NAMES, VGG)[:], rows)
    assert whole.asked == [NAMES]


def test_what_is_complete_is_not_computed_again(rows, tmp_path):
    write_features(tmp_path / "train.npy", in_batches(rows), NAMES, VGG)
    again = in_batches(rows)
    write_features(tmp_path / "train.npy", again, NAMES, VGG)
    assert again.asked == []


def test_another_extractor_or_other_names_replace_it(rows, tmp_path):
    path, other = tmp_path / "train.npy", Extractor("vgg19", "fc2", "random", seed=4)
    write_features(path, in_batches(rows), NAMES, VGG)
    write_features(path, in_batches(rows + 1), NAMES, other)
    assert open_features(path).extractor == other
    np.testing.assert_array_equal(open_features(path)[:], rows + 1)
    write_features(path, in_batches(rows), NAMES[::-1], other)
    np.testing.assert_array_equal(open_features(path)[:], rows[::-1])


def test_replacing_corrupt_pictures_goes_on_where_another_stopped(rows, tmp_path):
    path, whole, mended = tmp_path / "train.npy", in_batches(rows), replace(VGG, corrupt="mean")
    message = message_of(write_features, path, lambda _: [rows[:3]], NAMES, VGG)
    assert "4 of 7" in message
    features = write_features(path, whole, NAMES, mended)
    assert whole.asked == [NAMES[3:]]
    assert features.extractor == mended
    np.testing.assert_array_equal(features[:], rows)


def test_replacing_corrupt_pictures_where_none_is_changes_nothing(rows, tmp_path):
    path, again, mended = tmp_path / "train.npy", in_batches(rows), replace(VGG, corrupt="mean")
    write_features(path, in_batches(rows), NAMES, VGG)
    assert write_features(path, again, NAMES, mended).extractor == VGG
    assert again.asked == []
    path.unlink()
    write_features(path, again, NAMES, mended)
    assert write_features(path, again, NAMES, VGG).extractor == VGG  # a mean is not what was asked for
    assert again.asked == [NAMES, NAMES]


def test_pictures_that_cannot_be_read_get_the_mean_of_the_others(rows, tmp_path):
    path, unread, mended = tmp_path / "train.npy", rows.copy(), replace(VGG, corrupt="mean")
    unread[2] = np.nan
    assert "1 of 7" in message_of(write_features, path, in_batches(unread), NAMES, VGG)
    found = write_features(path, in_batches(unread), NAMES, mended)
    np.testing.assert_array_equal(
        found[2], np.delete(rows, 2, axis=0).mean(axis=0, dtype="float64").astype("float32")
    )
    np.testing.assert_array_equal(np.delete(found[:], 2, axis=0), np.delete(rows, 2, axis=0))


@pytest.mark.parametrize("digests", [None, dict.fromkeys(NAMES, "digest")])
def test_an_interruption_leaves_no_mean_in_place_of_features(digests, rows, tmp_path, monkeypatch):
    path = tmp_path / "train.npy"
    unread, mended = np.where(np.arange(len(NAMES)) == 2, np.nan, rows.T).T, replace(VGG, corrupt="mean")

    def interrupted(source, target):
        if target == path:
            raise KeyboardInterrupt
        rename(source, target)

    rename = os.replace
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write_features(path, in_batches(unread), NAMES, mended, digests)
    assert "1 of 7" in message_of(write_features, path, in_batches(unread), NAMES, VGG, digests)


def test_a_failure_keeps_the_earlier_file(rows, tmp_path):
    path = tmp_path / "train.npy"
    write_features(path, in_batches(rows), NAMES, VGG)
    message = message_of(write_features, path, lambda _: [rows[:3]], NAMES[1:], VGG)
    assert "3 of 6" in message
    assert len(list(tmp_path.iterdir())) == 4  # with what may go on, and its digests
    np.testing.assert_array_equal(open_features(path, NAMES)[:], rows)


def test_what_was_given_up_is_removed(rows, tmp_path):
    path = tmp_path / "train.npy"
    message_of(write_features, path, lambda _: [rows[:3]], NAMES[1:], VGG)
    write_features(path, in_batches(rows), NAMES, VGG)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["train.json", "train.npy"]


def test_what_the_extraction_raises_is_not_the_files_fault(tmp_path):
    def arrays(names):
        raise FileNotFoundError("7.jpg")
        yield

    with pytest.raises(FileNotFoundError):
        write_features(tmp_path / "train.npy", arrays, NAMES, VGG)


@pytest.mark.parametrize(
    ("path", "names", "named"),
    [
        ("train.npy", [*NAMES, NAMES[0]], "'7.jpg'"),
        ("train.npy", [], "pictures"),
        ("train.h5", NAMES, ".npy"),
        ("file/train.npy", NAMES, "file"),
    ],
)
def test_names_that_do_not_fit_are_refused(path, names, named, rows, tmp_path):
    (tmp_path / "file").touch()
    assert named in message_of(write_features, tmp_path / path, in_batches(rows), names, VGG)


def test_another_extractor_is_refused(written):
    features = open_features(written)
    for other, named in (
        (replace(VGG, layer="block5_pool"), "vgg19 block5_pool (weights random, random with seed 3)"),
        (replace(VGG, seed=1), "vgg19 fc2 (weights random, random with seed 1)"),
        (Extractor("vgg16", "fc2", "0123456789abcdef" * 4), "vgg16 fc2 (weights 0123456789ab)"),
    ):
        message = message_of(features.require, asdict(other))
        assert all(part in message for part in ("vgg19", "fc2", "seed 3")) and named in message
    features.require(asdict(replace(VGG, corrupt="mean")))


def test_a_missing_picture_is_refused(written):
    assert "'4.jpg'" in message_of(open_features, written, ["7.jpg", "4.jpg"])
    assert "'4.jpg'" in message_of(open_features, written, ["4.jpg", "6.jpg", "4.jpg"])


def test_a_missing_file_is_refused(written):
    assert "val.npy" in message_of(open_features, written.with_name("val.npy"))
    written.with_suffix(".json").unlink()
    assert "train.json" in message_of(open_features, written)


@pytest.mark.parametrize(
    "array",
    [np.zeros(7), np.zeros((7, 4), int), np.array([{}] * 7), np.zeros((5, 4), "float32")],
)
def test_another_array_is_refused(array, written):
    np.save(written, array)
    assert "train.npy" in message_of(open_features, written)


@pytest.mark.parametrize(
    "damage", [lambda c: c[:-4], lambda c: c[:30], lambda _: b"", lambda _: b"nothing", lambda _: b"PK\3\4"]
)
def test_a_damaged_array_is_refused(damage, written):
    written.write_bytes(damage(written.read_bytes()))
    assert "train.npy" in message_of(open_features, written)


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: "",
        lambda _: "[]",
        lambda _: "{}",
        lambda text: text.replace("layer", "lair"),
    ],
)
def test_a_damaged_description_is_refused(damage, written):
    path = written.with_suffix(".json")
    path.write_text(damage(path.read_text()))
    assert "train.json" in message_of(open_features, written)
