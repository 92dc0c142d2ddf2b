"""Defaults from `[tool.ir-scatter]` of the nearest pyproject.toml."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli, codes, copy_sample

BASE = {"SCT203", "SCT301", "SCT302", "SCT303", "SCT304", "SCT402"}


def _settings(text: str, folder: Path = Path()) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(f"[tool.ir-scatter]\n{text}\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('select = ["SCT2"]', {"SCT203"}),
        ('select = ["SCT2", "SCT4"]', {"SCT203", "SCT402"}),
        ('select = ["SCT2,SCT4"]', {"SCT203", "SCT402"}),
        ('ignore = ["SCT3"]', {"SCT203", "SCT402"}),
        ('min-severity = "error"', BASE - {"SCT304"}),
        ('exclude = ["*.xml"]', set()),
        ("max-index-elements = 1", BASE - {"SCT302", "SCT303", "SCT304"} | {"SCT307"}),
        ("jobs = 2\nstatistics = false", BASE),
        ("", BASE),
    ],
)
def test_an_option_has_its_default_there(cli: Cli, broken: Path, text: str, left: set[str]) -> None:
    _settings(f'{text}\nformat = "concise"')
    result = cli("validate", broken)
    assert set(codes(result.out)) == left
    assert result.code == bool(left - {"SCT307"})


def test_switches(cli: Cli, warned: Path) -> None:
    _settings("strict = true\nquiet = true\nstatistics = true")
    result = cli("validate", warned)
    assert result.code == 1
    assert result.out.endswith("1  SCT401  warning  deprecated-operator\n")


def test_the_command_line_wins(cli: Cli, broken: Path) -> None:
    _settings('select = ["SCT2"]\nformat = "json"')
    result = cli("validate", broken, "--select", "SCT4", "--format", "concise")
    assert codes(result.out) == ["SCT402"]


def test_input_shapes(cli: Cli, clean: Path) -> None:
    _settings('input-shape = ["hidden=1,3,8", "position=2"]\nformat = "concise"')
    assert codes(cli("validate", clean).out) == ["SCT203", "SCT203"]


def test_a_baseline_beside_the_settings(
    cli: Cli, broken: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("validate", broken, "--write-baseline", "known.json")
    _settings('baseline = "known.json"')
    assert cli("validate", broken).code == 0
    (elsewhere / "deep").mkdir()
    monkeypatch.chdir(elsewhere / "deep")
    assert cli("validate", Path("..") / broken).code == 0


def test_a_baseline_that_is_to_be_written_need_not_be_there(cli: Cli, broken: Path) -> None:
    _settings('baseline = "known.json"')
    assert cli("validate", broken, "--write-baseline", "known.json").code == 0
    assert cli("validate", broken).code == 0


def test_the_nearest_file_with_the_table_counts(
    cli: Cli, broken: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _settings('format = "concise"\nselect = ["SCT2"]')
    _settings('format = "concise"\nselect = ["SCT4"]', elsewhere / "a" / "b")
    (elsewhere / "a" / "pyproject.toml").write_text('[project]\nname = "other"\n')
    for folder, code in [("a", "SCT203"), ("a/b", "SCT402")]:
        monkeypatch.chdir(elsewhere / folder)
        assert codes(cli("validate", elsewhere / broken).out) == [code]


NO_SETTINGS = {
    "colour = true": "has 'colour', expected one of baseline, ",
    "node_ignores = 'x'": "has 'node_ignores'",
    "ignore = 'SCT1'": "ignore is 'SCT1', expected a list of strings",
    "select = [['SCT2']]": "expected a list of strings",
    "select = ['E501']": "E501",
    "format = 'yaml'": "yaml",
    "format = 7": "format is 7, expected a string",
    "min-severity = 'fatal'": "fatal",
    "min-severity = {a = 1}": "expected a string",
    "jobs = 'many'": "many",
    "jobs = 0": "0",
    "jobs = inf": "expected a whole number",
    "jobs = nan": "expected a whole number",
    "jobs = 1.5": "expected a whole number",
    "jobs = 1979-05-27": "expected a whole number",
    "jobs = [1]": "expected a whole number",
    "jobs = 1\njobs = 2": "cannot be read",
    "strict = 'perhaps'": "perhaps",
    "strict = 7": "strict is 7, expected true or false",
    "statistics = 1979-05-27": "expected true or false",
    "baseline = 3": "expected a string",
    "baseline = 'no_such.json'": "no_such.json: cannot be read: no such file",
    "select = ['index-out-of-rang']": "select: there is no rule 'index-out-of-rang' (did you mean index-out-of-range?)",
    "input-shape = ['x=5']": "input-shape: no model has an input 'x', expected one of ",
    "format = 'jsn'": "format: 'jsn' is not one of text, concise, json, sarif, junit, github, html (did you mean json?)",
    "colur = 1": "has 'colur'",
    "max-index-element = 1": "(did you mean max-index-elements?)",
    "input-shape = ['x=a']": "x=a",
    "node-ignores = 3": "node-ignores]] is not a list of tables",
    "node-ignores = [7]": "other keys than file, node and codes",
    '[[tool.ir-scatter.node-ignores]]\nfile = "x"': "codes is None, expected a list of strings",
    '[[tool.ir-scatter.node-ignores]]\ncodes = "SCT1"': "expected a list of strings",
    "[[tool.ir-scatter.node-ignores]]\ncodes = []": "expected a list of strings",
    '[[tool.ir-scatter.node-ignores]]\ncodes = ["SCT1"]\nnodes = "x"': "other keys",
    '[[tool.ir-scatter.node-ignores]]\ncodes = ["E501"]': "E501",
    '[[tool.ir-scatter.node-ignores]]\ncodes = ["SCT1"]\nnode = 3': "node is 3, expected a string",
    "a = " + "[" * 100_000: "cannot be read",
    "a = " + "{b = " * 100_000: "cannot be read",
    "a = '\ud800'": "cannot be read",
    "[tool": "cannot be read",
}


@pytest.mark.parametrize("text", NO_SETTINGS, ids=range(len(NO_SETTINGS)))
def test_settings_that_mean_nothing_are_wrong_usage(cli: Cli, broken: Path, text: str) -> None:
    written = f"[tool.ir-scatter]\n{text}\n"
    Path("pyproject.toml").write_bytes(written.encode("utf-8", "surrogatepass"))
    result = cli("validate", broken)
    assert (result.code, result.out) == (2, "")
    assert NO_SETTINGS[text] in " ".join(result.err.split())
    assert f"Error: {Path.cwd() / 'pyproject.toml'}: " in result.err
    assert len(result.err) < 1000
    key = text.partition(" = ")[0]
    if key.isidentifier() and "cannot be read" not in NO_SETTINGS[text]:
        assert key in result.err


@pytest.mark.parametrize(
    "text",
    ["jobs = '1'", "jobs = 1.0", "strict = 'no'", f"max-index-elements = {'9' * 20}", "[tool.other]\na = 1"],
)
def test_settings_that_mean_something(cli: Cli, clean: Path, text: str) -> None:
    _settings(text)
    assert cli("validate", clean).code == 0


@pytest.mark.parametrize(("text", "code"), [("tool = 3\n", 0), ('[tool]\nir-scatter = "x"\n', 2)])
def test_a_table_that_is_none(cli: Cli, clean: Path, text: str, code: int) -> None:
    Path("pyproject.toml").write_text(text)
    assert cli("validate", clean).code == code


def test_help_does_not_need_good_settings(cli: Cli) -> None:
    _settings("colour = true")
    assert cli("--help").code == 0
    assert cli("explain", "SCT203").code == 0


@pytest.mark.parametrize(
    ("file", "node", "left"), [("*.xml", "neg*", 5), ("*", "*", 0), ("other.xml", "negative", 6)]
)
def test_codes_of_one_node_of_one_file(cli: Cli, broken: Path, file: str, node: str, left: int) -> None:
    entry = f'[[tool.ir-scatter.node-ignores]]\nfile = "{file}"\nnode = "{node}"\ncodes = ["SCT"]'
    _settings(f'format = "concise"\n{entry}')
    assert len(codes(cli("validate", broken).out)) == left


def test_a_node_in_a_body_goes_by_its_scope_or_its_name(cli: Cli, elsewhere: Path) -> None:
    path = copy_sample("nested/branch.xml", elsewhere)
    for node in ("branch:then_body/scatter", "scatter", "branch:*"):
        _settings(f'[[tool.ir-scatter.node-ignores]]\nnode = "{node}"\ncodes = ["SCT302"]')
        assert cli("validate", path).code == 0, node


def test_a_node_name_with_brackets(cli: Cli, broken: Path) -> None:
    broken.write_text(broken.read_text().replace('name="too_many_rows"', 'name="rows[0]"'))
    _settings('select = ["SCT203"]\n[[tool.ir-scatter.node-ignores]]\nnode = "rows[0]"\ncodes = ["SCT203"]')
    assert cli("validate", broken).code == 0
