"""The reader of Chinese Treebank 5.0 on made-up files of its form: the treebank itself is licensed."""

import pytest
from message_of import message_of

from training.glyph.treebanks import FILES, SPLITS, read_ctb5


def document(number: int, *lines: str) -> str:
    head = [
        "<DOC>",
        f"<DOCID> CBS{number} </DOCID>",
        "<HEADER>",
        "<DATE> 01/06/98 </DATE>",
        "</HEADER>",
        "<BODY>",
    ]
    body = [f"<S ID={index}>\n{line}\n</S>" for index, line in enumerate(lines, 1)]
    return "\n".join(
        [*head, "<HEADLINE>", *body[:1], "</HEADLINE>", "<P>", *body[1:], "</P>", "</BODY>", "</DOC>\n"]
    )


def write(folder, numbers, suffix=".pos", end="\n"):
    tagged = folder / "data" / "postagged"
    tagged.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        text = document(number, f"文件_NN {number}_CD ", "结束_VV 。_PU")
        (tagged / f"chtb_{number:03}{suffix}").write_bytes(text.replace("\n", end).encode("gb2312"))
    return tagged


@pytest.mark.parametrize("suffix", [".pos", ".fid.pos"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_sentences_are_words_and_tags_in_the_order_of_the_files(tmp_path, suffix, end):
    write(tmp_path, range(265, 330), suffix, end)
    for split, first, last in (("test", 271, 300), ("dev", 301, 325)):
        assert read_ctb5(tmp_path, split) == [
            sentence
            for number in range(first, last + 1)
            for sentence in ([("文件", "NN"), (str(number), "CD")], [("结束", "VV"), ("。", "PU")])
        ]


def test_the_whole_training_split(tmp_path):
    write(tmp_path, [number for first, last in FILES for number in range(first, last + 1)])
    numbers = [int(sentence[1][0]) for sentence in read_ctb5(str(tmp_path), "train")[::2]]
    assert len(numbers) == 890 - 25 - 30
    assert numbers == sorted(set(numbers))
    assert (numbers[0], numbers[269], numbers[270], numbers[-1]) == (1, 270, 400, 1151)


def test_the_split_of_jiang_and_others():
    assert sum(last - first + 1 for first, last in FILES) == 890  # as the treebank's catalogue entry says
    ranges = sorted(range_ for split in SPLITS.values() for range_ in split)
    assert ranges == [(1, 270), (271, 300), (301, 325), (400, 931), (1001, 1151)]


def test_unusual_words(tmp_path):
    path = write(tmp_path, range(301, 326)) / "chtb_301.pos"
    lines = ["__PU a_b_NN ＿_PU", "*pro*_-NONE- 他_PN _-NONE-\n来_VV", "中国_NR-SHORT  镕_NR"]
    path.write_bytes(document(301, *lines).encode("gb18030"))
    assert read_ctb5(tmp_path, "dev")[:3] == [
        [("_", "PU"), ("a_b", "NN"), ("＿", "PU")],
        [("他", "PN"), ("来", "VV")],
        [("中国", "NR-SHORT"), ("镕", "NR")],  # 镕 is not in GB2312
    ]


@pytest.mark.parametrize("token", ["中国", "_NN", "中国_", "_"])
def test_broken_tokens_are_named(tmp_path, token):
    path = write(tmp_path, range(301, 326)) / "chtb_310.pos"
    path.write_bytes(document(310, "好_VA", f"好_VA {token} 。_PU").encode("gb2312"))
    lines = path.read_text("gb2312").split("\n")
    number = next(number for number, line in enumerate(lines, 1) if f" {token} " in line and "_PU" in line)
    message = message_of(read_ctb5, tmp_path, "dev")
    assert f"{path}, line {number}: " in message and repr(token) in message


def test_another_encoding_is_told(tmp_path):
    path = write(tmp_path, range(301, 326)) / "chtb_310.pos"
    path.write_bytes(b"<S ID=1>\n\xff_NN\n</S>\n")
    assert message_of(read_ctb5, tmp_path, "dev").startswith(f"{path}, line 2: ")


@pytest.mark.parametrize(
    "text", ["", "<DOC>\n<BODY>\n</BODY>\n</DOC>\n", "好_VA\n", "<S ID=1>\n_-NONE-\n</S>\n"]
)
def test_a_file_without_sentences_is_named(tmp_path, text):
    path = write(tmp_path, range(301, 326)) / "chtb_325.pos"
    path.write_text(text)
    assert message_of(read_ctb5, tmp_path, "dev").startswith(f"{path}: ")


def test_missing_files_are_named(tmp_path):
    tagged = write(tmp_path, range(301, 326))
    (tagged / "chtb_307.pos").unlink()
    (tagged / "chtb_311.pos").rename(tagged / "chtb_311.txt")
    message = message_of(read_ctb5, tmp_path, "dev")
    assert all(part in message for part in (str(tagged), " dev ", "chtb_307.pos, chtb_311.pos"))
    message = message_of(read_ctb5, tmp_path, "train")
    assert " 835 " in message
    assert message.endswith("chtb_010.pos and 825 more")


def test_a_file_that_is_a_folder(tmp_path):
    path = write(tmp_path, range(301, 325)) / "chtb_325.pos"
    path.mkdir()
    assert message_of(read_ctb5, tmp_path, "dev").startswith(f"{path}: ")


def test_no_such_folder(tmp_path):
    assert message_of(read_ctb5, tmp_path, "dev").startswith(
        f"{tmp_path / 'data' / 'postagged'}: no such folder"
    )
