"""Pictures of positions: files are written whole, or a one-line error says why not."""

import re

import numpy as np
import pytest
from matplotlib import rcParams
from PIL import Image
from typer.testing import CliRunner

from kzoo.errors import UserError
from training.pope import figures
from training.pope.figures import HIGHEST_ORDER, app, plot_correlation, plot_polynomials, plot_positions


@pytest.mark.parametrize("encoding", ["sine", "pope"])
def test_positions_are_drawn(tmp_path, encoding):
    plot_positions(tmp_path / "new" / "picture.png", encoding, num_positions=40, width=16)
    with Image.open(tmp_path / "new" / "picture.png") as picture:
        assert len(picture.convert("RGB").getcolors(1000)) > 100
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["picture.png"]


def test_the_high_dimensions_are_those_of_the_paper_s_example(tmp_path, monkeypatch):
    """Section 2.2: positions 2 and 299 correlate nearly perfectly there."""
    drawn = {}

    def note(figure, axes, matrix, limit, title, unit):
        drawn[title] = matrix

    monkeypatch.setattr(figures, "_position_image", note)
    plot_positions(tmp_path / "picture.svg", "sine", num_positions=300)
    feature = np.arange(512)
    angles = np.arange(300)[:, None] / 10000 ** (feature // 2 * 2 / 512)
    sine = np.where(feature % 2, np.cos(angles), np.sin(angles))
    low, high = (np.abs(np.corrcoef(sine[:, first:])) for first in (334, 335))
    pairs = np.triu_indices(300, 1)
    assert low[pairs].mean() < 0.99 <= high[pairs].mean()
    assert high[2, 299] > 0.9
    np.testing.assert_allclose(drawn["(d) correlation,\n$i \\geq 335$"], high, atol=1e-9)


def test_normalization_changes_the_picture(tmp_path):
    for name, normalize in (("plain", False), ("normalized", True)):
        plot_positions(tmp_path / f"{name}.png", "pope", 24, 16, normalize=normalize)
    assert (tmp_path / "plain.png").read_bytes() != (tmp_path / "normalized.png").read_bytes()


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")])
def test_the_suffix_gives_the_format(tmp_path, suffix, start):
    path = tmp_path / f"legendre.{suffix}"
    plot_polynomials(path)
    assert path.read_bytes().startswith(start)


def test_each_polynomial_has_its_own_colour(tmp_path):
    plot_polynomials(tmp_path / "legendre.svg")
    curves = re.findall(r"stroke: (#\w{6}); stroke-width: 1.4", (tmp_path / "legendre.svg").read_text())
    assert len(set(curves)) == HIGHEST_ORDER + 1


def test_correlation_is_drawn_at_any_size(tmp_path):
    for num_positions in (4, 33):
        plot_correlation(tmp_path / f"{num_positions}.svg", num_positions, width=17)
        assert "PoPE without feature 0" in (tmp_path / f"{num_positions}.svg").read_text()


def test_the_style_does_not_leak(tmp_path):
    before = dict(rcParams)
    plot_polynomials(tmp_path / "legendre.png")
    assert dict(rcParams) == before


@pytest.mark.parametrize("name", ["picture.bmp", "picture", "picture.png.txt"])
def test_an_unknown_suffix_is_refused(tmp_path, name):
    with pytest.raises(UserError, match=r"known: \.png, \.svg, \.pdf") as error:
        plot_polynomials(tmp_path / name)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "taken.png").mkdir()
    for path in (tmp_path / "file" / "picture.png", tmp_path / "taken.png"):
        with pytest.raises(UserError, match=path.name):
            plot_polynomials(path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "taken.png"]


def test_a_failure_leaves_the_old_picture(tmp_path, monkeypatch):
    path = tmp_path / "legendre.png"
    path.write_bytes(b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kzoo.files.os.replace", full)
    with pytest.raises(UserError, match="space"):
        plot_polynomials(path)
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_arguments_out_of_range_are_refused(tmp_path):
    path = tmp_path / "picture.png"
    with pytest.raises(UserError, match="'pope'"):
        plot_positions(path, "sine", normalize=True)
    with pytest.raises(UserError, match="threshold"):
        plot_correlation(path, width=8)
    for command in (["positions", "--encoding", "pop"], ["correlation", "--width", "2"]):
        assert CliRunner().invoke(app, [*command, str(path)]).exit_code == 2
    assert not path.exists()


def test_commands_take_sizes(tmp_path):
    small = ["--positions", "8", "--width", "8", "--threshold", "0.5"]
    for name, options in {
        "positions": [*small, "--normalize"],
        "correlation": small,
        "polynomials": [],
    }.items():
        path = tmp_path / f"{name}.svg"
        assert CliRunner().invoke(app, [name, str(path), *options], catch_exceptions=False).exit_code == 0
        assert path.exists()
