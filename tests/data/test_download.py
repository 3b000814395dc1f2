"""Downloads: whole, as published, and made once; or one clear line, and nothing is left behind."""

import functools
import gzip
import hashlib
import os
import stat

import pytest
from message_of import message_of

from kzoo.data import downloaded_corpora

TEXT = "".join(f"Satz {i}: Zwei Hunde laufen über {i * i % 97} Wiesen.\n" for i in range(3000)).encode()
SHA256 = hashlib.sha256(TEXT).hexdigest()
download = functools.partial(downloaded_corpora.download, packed=True)
download_as_it_is = downloaded_corpora.download


@pytest.mark.parametrize("level", [1, 9])
def test_download_keeps_the_text_however_it_was_packed(server, tmp_path, level, capfd):
    server.files["/val.de.gz"] = gzip.compress(TEXT, compresslevel=level)
    path = tmp_path / "new" / "folder" / "val.de"
    assert download(f"{server.address}/val.de.gz", SHA256, path) == path
    assert path.read_bytes() == TEXT
    assert os.listdir(path.parent) == ["val.de"]
    assert stat.S_IMODE(path.stat().st_mode) & stat.S_IRUSR
    out, err = capfd.readouterr()
    assert out == "" and "100%" in err  # the progress bar stays out of standard output


def full_disk(*_):
    raise OSError(28, "No space left on device")


def test_a_download_that_was_cut_is_tried_again(server, tmp_path):
    server.files["/val.de.gz"] = gzip.compress(TEXT)
    server.cut_once.add("/val.de.gz")
    assert download(f"{server.address}/val.de.gz", SHA256, tmp_path / "val.de").read_bytes() == TEXT
    assert len(server.asked) == 2


KINDS = pytest.mark.parametrize(
    ("fetch", "packed"), [(download, gzip.compress(TEXT)), (download_as_it_is, TEXT)]
)


@KINDS
def test_a_kept_file_is_not_downloaded_again_unless_damaged(server, tmp_path, fetch, packed):
    server.files["/val.de.gz"] = packed
    path = tmp_path / "val.de"
    for _ in range(2):
        assert fetch(f"{server.address}/val.de.gz", SHA256, path) == path
    assert server.asked == ["/val.de.gz"]
    path.write_bytes(TEXT[:100])
    fetch(f"{server.address}/val.de.gz", SHA256, path)
    assert path.read_bytes() == TEXT
    assert len(server.asked) == 2


@pytest.mark.parametrize("fault", ["cut on the way", "cut at the source", "altered", "damaged", "a web page"])
def test_a_truncated_or_altered_download_leaves_the_earlier_file(server, tmp_path, fault):
    altered = TEXT.replace(b"Hunde", b"Katzen", 1)
    packed = bytearray(gzip.compress(TEXT))
    damaged = packed.copy()
    damaged[len(damaged) // 2] ^= 0x55
    server.files["/val.de.gz"] = {
        "cut on the way": bytes(packed),
        "cut at the source": bytes(packed[: len(packed) // 2]),
        "altered": gzip.compress(altered),
        "damaged": bytes(damaged),
        "a web page": b"<html>please log in</html>",
    }[fault]
    if fault == "cut on the way":
        server.cut.add("/val.de.gz")
    address, path = f"{server.address}/val.de.gz", tmp_path / "val.de"
    path.write_bytes(b"kept before\n")
    message = message_of(download, address, SHA256, path)
    if fault == "cut on the way":
        assert address in message and "IncompleteRead" in message
    else:
        assert address in message and SHA256 in message
    if fault == "altered":
        assert hashlib.sha256(altered).hexdigest() in message
    if fault == "a web page":
        assert hashlib.sha256(b"").hexdigest() in message
    assert path.read_bytes() == b"kept before\n"
    assert os.listdir(tmp_path) == ["val.de"]


@KINDS
def test_no_such_address_no_network_and_no_folder(server, tmp_path, fetch, packed):
    address = f"{server.address}/gone.gz"
    message = message_of(fetch, address, SHA256, tmp_path / "gone")
    assert address in message and " 404" in message and "KZOO_DATA" in message
    nobody = "http://127.0.0.1:1/val.de.gz"
    message = message_of(fetch, nobody, SHA256, tmp_path / "val.de")
    assert nobody in message and "refused" in message and "KZOO_DATA" in message
    assert os.listdir(tmp_path) == []
    server.files["/val.de.gz"] = packed
    (tmp_path / "file").write_bytes(b"")
    path = tmp_path / "file" / "val.de"  # a file where a folder is needed
    message = message_of(fetch, f"{server.address}/val.de.gz", SHA256, path)
    assert message.startswith(f"{path}: cannot be written")


@pytest.mark.parametrize(
    ("get", "last", "data"),
    [
        (download, "copyfileobj", gzip.compress(TEXT)),
        (download_as_it_is, "move", TEXT),  # with which pooch ends
    ],
)
def test_a_full_disk_is_no_fault_of_the_network(get, last, data, server, tmp_path, monkeypatch):
    server.files["/val.de.gz"] = data
    monkeypatch.setattr(f"shutil.{last}", full_disk)
    path = tmp_path / "val.de"
    message = message_of(get, f"{server.address}/val.de.gz", SHA256, path)
    assert str(path) in message and "space" in message
    assert os.listdir(tmp_path) == []
