"""Labelled pictures from disk: three layouts, one known fault, and all others at once."""

import itertools
import warnings

import numpy as np
import pytest
from PIL import Image

from binding_lib.views.colours import COLOURS, object_looks
from binding_lib.views.releases import load_release

CLEVR_COLOURS = ["blue", "brown", "cyan", "gray", "green", "purple", "red", "yellow"]
CLEVR_HEADER = (
    "filename,object1_color,object1_shape,object2_color,object2_shape,"
    "object1_color_idx,object1_shape_idx,object2_color_idx,object2_shape_idx"
)
SPARE_HEADER = (
    "filename,world_name,character_name,character2_name,character_texture,character2_texture,"
    "character_pos,character2_pos"
)
FAULTY = ["cube", "sphere", "cylinder"]


def picture(path, shade=0, size=(4, 3)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (shade, 0, 255 - shade)).save(path)


def write(folder, header, *rows, file="labels.csv", pictures=True):
    """A label file, and a picture for each row."""
    folder.mkdir(exist_ok=True, parents=True)
    (folder / file).write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    if pictures:
        for i, row in enumerate(rows):
            picture(folder / row.split(",")[0], shade=i)
    return folder


def clevr(folder, shapes=FAULTY, pairs=None, colours=CLEVR_COLOURS):
    """Labels as the paper's release writes them; all rows share a few pictures' bytes."""
    objects = list(itertools.product(range(len(colours)), range(len(shapes))))
    pairs = list(itertools.product(objects, objects)) if pairs is None else pairs
    rows = [
        f"{i}.png,{colours[a]},{shapes[b]},{colours[c]},{shapes[d]},{a},{b},{c},{d}"
        for i, ((a, b), (c, d)) in enumerate(pairs)
    ]
    return write(folder, CLEVR_HEADER, *rows)


def names(release):
    return [[release.scenes.space.object_name(i) for i in ids] for ids in release.scenes.object_ids]


def test_one_s_own_pictures(tmp_path):
    write(
        tmp_path,
        "notes,object2_shape,object1_colour,filename,object1_shape,object2_colour",
        "sunny, ball ,red,a.png,cube,green",
        "",
        '"two, of them",cube,blue,b.png,ball,red',
        pictures=False,
    )
    picture(tmp_path / "a.png", 1)
    picture(tmp_path / "images" / "b.png", 2)
    release = load_release(tmp_path)
    assert names(release) == [["cube red", "ball green"], ["ball blue", "cube red"]]
    assert release.scenes.space.value_names("colour") == ("blue", "green", "red")
    assert [path.name for path in release.image_paths] == ["a.png", "b.png"]
    assert release.notes == ()


def test_pictures_are_opened_when_asked_for(tmp_path):
    header = "filename,object1_shape"
    write(tmp_path, header, "a.png,cube", "b.jpg,ball", "c.png,cube", pictures=False)
    Image.new("L", (4, 3), 200).save(tmp_path / "a.png")
    Image.new("RGB", (4, 3), (10, 10, 10)).save(tmp_path / "b.jpg")
    tall = Image.new("RGBA", (3, 4), (0, 255, 0, 255))
    tall.save(tmp_path / "c.png")
    release = load_release(tmp_path)
    assert release.scenes.n_slots == 1
    both = release.images(slice(2))
    assert both.shape == (2, 3, 4, 3)
    assert both.dtype == np.uint8
    np.testing.assert_array_equal(both[0], 200)
    assert abs(both[1].astype(int) - 10).max() < 4
    with pytest.raises(ValueError, match=r"2 sizes, the smallest \(3, 4\)"):
        release.images()
    scaled = release.images(size=5)
    assert scaled.shape == (3, 5, 5, 3)
    np.testing.assert_array_equal(release.images([2], size=5), scaled[2:])
    np.testing.assert_array_equal(release.images(np.array([True, False, False])), both[:1])
    with pytest.raises(ValueError, match="no rows"):
        release.images([])
    with pytest.raises(ValueError, match="size must be an integer of at least 1"):
        release.images(size=0)


def test_photographs_stand_upright(tmp_path):
    write(tmp_path, "filename,object1_shape", "a.jpg,cube", pictures=False)
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned
    Image.new("RGB", (8, 4)).save(tmp_path / "a.jpg", exif=exif)
    assert load_release(tmp_path).images().shape == (1, 8, 4, 3)


def test_indices_give_the_order(tmp_path):
    header = "filename,object1_shape,object1_shape_idx"
    write(tmp_path, header, "a.png,cube,7", "b.png,ball,2", "c.png,zebra,0")
    space = load_release(tmp_path).scenes.space
    assert space.value_names("shape") == ("zebra", "ball", "cube")


@pytest.mark.parametrize(
    ("folder", "shown"),
    [
        ("clevr", ["cube", "cylinder", "sphere"]),
        ("CLEVR_2D", ["square", "triangle", "circle"]),
    ],
)
def test_the_paper_s_release_is_corrected(tmp_path, folder, shown):
    clevr(tmp_path / folder)
    with pytest.warns(UserWarning, match=rf"corrected .* in {folder}.*1 'sphere' -> '{shown[1]}'"):
        release = load_release(tmp_path / folder)
    assert "rename={} keeps" in release.notes[0]
    space = release.scenes.space
    assert space.value_names("shape") == tuple(shown)
    assert space.value_names("color") == tuple(CLEVR_COLOURS)
    # Indices stay what they were: the first pair that holds shape 1 on the right.
    assert names(release)[1] == [f"blue {shown[0]}", f"blue {shown[1]}"]
    assert len(release.scenes) == 576
    if folder == "clevr":  # both renderers' names
        assert len(object_looks(space, ["cube", "cylinder", "sphere"])) == 24


def test_other_data_are_left_alone(tmp_path):
    """No fault: the names fit, the colours are others, there are no indices, or names are kept."""
    right = clevr(tmp_path / "right", shapes=["cube", "cylinder", "sphere"])
    others = clevr(tmp_path / "others", colours=list(COLOURS)[8:16])
    kept = clevr(tmp_path / "kept")
    plain = write(tmp_path / "plain", "filename,object1_color,object1_shape", "a.png,blue,sphere")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for folder, rename in [(right, None), (others, None), (kept, {}), (plain, None)]:
            assert load_release(folder, rename=rename).notes == ()
        assert load_release(others).scenes.space.value_names("shape") == tuple(FAULTY)
        assert load_release(kept, rename={}).scenes.space.value_names("shape") == tuple(FAULTY)


def test_a_part_of_the_release_is_left_alone_but_doubted(tmp_path):
    folder = clevr(tmp_path / "part", pairs=[((0, 0), (1, 2)), ((1, 2), (0, 1))])
    with pytest.warns(UserWarning, match="kept the shapes' names in part"):
        release = load_release(folder)
    assert names(release)[0] == ["blue cube", "brown cylinder"]
    # It says how to correct them.
    rename = eval(release.notes[0].split("rename=")[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert names(load_release(folder, rename=rename))[0] == ["blue cube", "brown sphere"]


def test_names_may_be_given(tmp_path):
    write(tmp_path, "filename,object1_shape", "a.png,kubus", "b.png,bol")
    new = {"shape": {"kubus": "cube", "bol": "ball"}}
    assert names(load_release(tmp_path, rename=new)) == [["cube"], ["ball"]]
    for wrong in ({"colour": {}}, {"colour": {"a": "b"}}, {"shape": {"a": "b"}}):
        with pytest.raises(ValueError, match="unknown"):
            load_release(tmp_path, rename=wrong)
    with pytest.raises(ValueError, match="'bol' more than once"):
        load_release(tmp_path, rename={"shape": {"kubus": "bol"}})


def spare(folder, *rows, file="labels.csv", **options):
    return write(folder, SPARE_HEADER, *rows, file=file, **options)


def test_pug_spare_of_the_paper(tmp_path):
    spare(
        tmp_path, "a.png,Desert,Cat,Elephant,Blue,Grass,,", "b.png,Desert,Elephant,Cat,Red,Blue,,"
    )
    release = load_release(tmp_path)
    assert names(release) == [["Blue Cat", "Grass Elephant"], ["Red Elephant", "Blue Cat"]]
    assert release.scenes.space.names == ("texture", "animal")


def test_pug_spare_as_first_published(tmp_path):
    rows = [
        "0.png,Desert,Cat,Elephant,Blue,Grass,Left,Right",
        "0.png,Island,Cat,Elephant,Blue,Grass,right,left",
    ]
    spare(tmp_path, *rows, file="PUG_SPARE.csv", pictures=False)
    picture(tmp_path / "Desert" / "0.png", 1)
    picture(tmp_path / "Island" / "0.png", 2)
    release = load_release(tmp_path)
    assert names(release) == [["Blue Cat", "Grass Elephant"], ["Grass Elephant", "Blue Cat"]]
    assert [path.parent.name for path in release.image_paths] == ["Desert", "Island"]
    desert = load_release(tmp_path, world="Desert")
    assert desert.image_paths == release.image_paths[:1]
    assert desert.images()[0, 0, 0, 0] == 1
    (tmp_path / "Island" / "0.png").unlink()
    assert load_release(tmp_path, world="Desert").image_paths == release.image_paths[:1]
    with pytest.raises(ValueError, match="Did you mean 'Desert'"):
        load_release(tmp_path, world="desert")


def test_transparent_pictures_lie_on_white(tmp_path):
    write(tmp_path, "filename,object1_colour", "a.png,red", pictures=False)
    clear = Image.new("RGBA", (2, 1), (0, 0, 255, 0))
    clear.putpixel((1, 0), (255, 0, 0, 255))
    clear.save(tmp_path / "a.png")
    assert load_release(tmp_path).images(0).tolist() == [[[[255] * 3, [255, 0, 0]]]]


@pytest.mark.parametrize("kind", [np.uint16, np.float32])
def test_pictures_of_more_than_8_bits_are_refused(tmp_path, kind):
    write(tmp_path, "filename,object1_colour", "a.tif,red", pictures=False)
    Image.fromarray(np.full((2, 2), 0.5 if kind == np.float32 else 2**15, kind)).save(
        tmp_path / "a.tif"
    )
    with pytest.raises(ValueError, match=r"unreadable pictures: row 2 .*expected 8 bits"):
        load_release(tmp_path)


@pytest.mark.parametrize("world", ["..", "../data", "/"])
def test_a_world_s_pictures_lie_in_the_folder(tmp_path, world):
    row = f"a.png,{world},Goat,Cat,red,blue,,"
    folder = write(tmp_path / "data", SPARE_HEADER, row, pictures=False)
    picture(tmp_path / "a.png")
    with pytest.raises(ValueError, match=r"must lie in the folder: row 2 \(a\.png\)"):
        load_release(folder)


def test_names_that_no_disk_would_take_are_missing_pictures(tmp_path):
    write(tmp_path, "filename,object1_colour", "x" * 300 + ",red", pictures=False)
    with pytest.raises(ValueError, match="missing pictures: row 2"):
        load_release(tmp_path)


def test_every_fault_at_once_with_its_rows(tmp_path):
    rows = [
        "a.png,red,cube,blue,ball,1,0,0,1",
        "b.png,blue,cube,red,ball,0,0,1,0",  # row 3: ball is 1
        "a.png,red,cube,blue,ball,1,0,0,1",  # row 4: a.png again
        "a.png,red,ball,blue,ball,1,1,0,1",  # row 5: and with other labels
        "gone.png,red,cube,blue,ball,1,0,0,1",  # row 6
        "broken.png,red,cube,blue,ball,1,0,0,1",  # row 7
        "cut.png,red,cube,blue,ball,1,0,0,1",  # row 8
        "cut.jpg,red,cube,blue,ball,1,0,0,1",  # row 9
        "text.png,red,cube,blue,ball,1,0,0,1",  # row 10
        "e.png,,cube,blue,ball,1,0,0,1",  # row 11
        "f.png,red,cube,blue,ball,1,-1,x,1",  # row 12
        "g.png,red,cube,blue,ball,1,0,0",  # row 13
        "../h.png,red,cube,blue,ball,1,0,0,1",  # row 14
        ",red,cube,blue,ball,1,0,0,1",  # row 15
    ]
    folder = write(tmp_path / "data", CLEVR_HEADER, *rows, pictures=False)
    for name in ("a.png", "b.png", "e.png", "f.png", "g.png", "../h.png"):
        picture(folder / name)
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8))
    for name in ("cut.png", "cut.jpg", "broken.png"):
        noise.save(folder / name)
        data = bytearray((folder / name).read_bytes())
        if name == "broken.png":
            data[len(data) // 2] ^= 255
        else:
            data = data[: len(data) // 2]
        (folder / name).write_bytes(data)
    (folder / "text.png").write_text("no picture")
    with pytest.raises(ValueError, match=r"cannot use the labels in .*data") as error:
        load_release(folder)
    said = dict(line[2:].split(": ", 1) for line in str(error.value).splitlines()[1:])
    assert said.pop("names and indices contradict each other").startswith(
        "row 3 (object2_shape 'ball' has index 0, elsewhere 'ball' has 1 and 0 is 'cube')"
    )
    assert said.pop("pictures are listed twice") == (
        "row 4 (a.png, as in row 2 with the same labels), "
        "row 5 (a.png, as in row 2 with other labels)"
    )
    assert said.pop("missing pictures") == "row 6 (gone.png)"
    unreadable = said.pop("unreadable pictures")
    for row, name in [(7, "broken.png"), (8, "cut.png"), (9, "cut.jpg"), (10, "text.png")]:
        assert f"row {row} ({name}: " in unreadable
    assert said.pop("empty cells") == "row 11 (object1_color), row 15 (filename)"
    assert said.pop("indices must be whole numbers") == (
        "row 12 (object2_color_idx 'x'; object1_shape_idx '-1')"
    )
    assert said.pop("expected 9 cells") == "row 13 (got 8)"
    assert said.pop("pictures must lie in the folder") == "row 14 (../h.png)"
    assert not said


def test_long_lists_of_rows_are_cut(tmp_path):
    rows = [f"{i}.png,cube" for i in range(9)]
    write(tmp_path, "filename,object1_shape", *rows, pictures=False)
    with pytest.raises(
        ValueError, match=r"missing pictures: row 2 \(0.png\), .*, row 6 .* and 4 more rows$"
    ):
        load_release(tmp_path)


@pytest.mark.parametrize("column", ["object0_x", "Object2_x", "object_2_x", "object100_x"])
def test_no_object_is_passed_over(tmp_path, column):
    write(tmp_path, f"filename,object1_color,{column}", "x,red,blue", pictures=False)
    with pytest.raises(ValueError, match=f"column '{column}' is none of object<i>_<concept>"):
        load_release(tmp_path)


@pytest.mark.parametrize(
    ("header", "missing"),
    [
        (
            "filename,world_name,character_name,character2_name,character_pos",
            "character_texture, character2_texture",
        ),
        ("filename,object1_color,object2_shape", "object1_shape, object2_color"),
        ("filename,object2_color", "object1_color"),
        ("filename,object1_color,object1_shape,object1_color_idx", "object1_shape_idx"),
        ("file,colour", "object<i>_<concept>, such as object1_color\n- missing columns: filename"),
        ("object1_color", "filename"),
    ],
)
def test_missing_columns_and_pictures_together(tmp_path, header, missing):
    write(tmp_path, header, ",".join("x" for _ in header.split(",")), pictures=False)
    with pytest.raises(ValueError, match="missing columns") as error:
        load_release(tmp_path)
    assert f"missing columns: {missing}" in str(error.value)
    if "filename" in header.split(","):
        assert "missing pictures: row 2 (x)" in str(error.value)


def test_positions_must_be_two(tmp_path):
    spare(
        tmp_path,
        "a.png,Desert,Cat,Dog,Blue,Red,left,left",
        "b.png,Desert,Cat,Dog,Blue,Red,left,",
        "c.png,Desert,Cat,Dog,Blue,Red,above,below",
    )
    with pytest.raises(ValueError, match=r"row 2 \(got 'left' and 'left'\), row 3 .*, row 4 "):
        load_release(tmp_path)


def test_files_that_are_no_tables(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no labels.csv \(nor PUG_SPARE.csv\)"):
        load_release(tmp_path)
    file = tmp_path / "labels.csv"
    for content, message in [
        (b"", "has no rows"),
        (b"filename,object1_shape\n", "has no rows"),
        (b"filename,object1_shape\n\xff\xfe,a\n", "is no UTF-8 text"),
        (b'filename,object1_shape\na.png,"open\n', "is no table"),
        (b"filename,object1_shape,object1_shape\na.png,x,y\n", "'object1_shape' stands 2 times"),
    ]:
        file.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            load_release(tmp_path)


def test_a_byte_order_mark_and_quoted_names(tmp_path):
    (tmp_path / "labels.csv").write_bytes(
        b'\xef\xbb\xbffilename,object1_shape\r\n"a, b.png","big\ncube"\r\n'
    )
    picture(tmp_path / "a, b.png")
    assert names(load_release(tmp_path)) == [["big\ncube"]]
