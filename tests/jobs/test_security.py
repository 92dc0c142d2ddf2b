"""Who may connect, and what whoever may not is told."""

import stat
from pathlib import Path

import pytest

pytest.importorskip("distributed")
pytest.importorskip("cryptography")

from ir_scatter.core.errors import Absent, UsageError
from ir_scatter.jobs import security
from ir_scatter.jobs.security import Address, demand_reachable, make_certificates
from tests.jobs.lab import lab


@pytest.mark.parametrize(
    "text", ["lab:8786", "http://lab", "tls://", "tls://lab:port", "tls://lab:99999", ""]
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(
        UsageError, match="is not the address of a scheduler, expected one like tls://lab:8786"
    ):
        _ = Address(text).parts


@pytest.mark.parametrize("host", ["lab", "10.0.0.7", "0.0.0.0"])
def test_tcp_does_not_reach_beyond_this_machine(host: str) -> None:
    with pytest.raises(
        UsageError, match=f"tcp://{host}:1 lets anyone who can reach it run code here; use tls"
    ):
        _ = Address(f"tcp://{host}:1").parts
    assert Address(f"tcp://{host}:1", is_insecure=True).parts == ("tcp", host, 1)


@pytest.mark.parametrize("text", ["tcp://127.0.0.1:8786", "tcp://[::1]:8786", "tcp://localhost"])
def test_tcp_on_loopback(text: str) -> None:
    assert Address(text).parts[2] == 8786


def test_tls_needs_certificates(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs tls_ca, tls_cert and tls_key"):
        Address("tls://lab").security()
    nothing = str(tmp_path / "none.pem")
    with pytest.raises(UsageError, match=r"none\.pem: no certificates that can be used: no such file"):
        Address("tls://lab", nothing, nothing, nothing).security()
    (tmp_path / "text.pem").write_text("text")
    text = str(tmp_path / "text.pem")
    with pytest.raises(UsageError, match="no certificates that can be used"):
        Address("tls://lab", text, text, text).security()


def test_certificates_are_for_nobody_else(tmp_path: Path) -> None:
    made = make_certificates(str(tmp_path / "lab"))
    assert [path.name for path in made] == ["ca.pem", "lab.pem", "lab-key.pem"]
    assert stat.S_IMODE(made[2].stat().st_mode) == 0o600
    with pytest.raises(UsageError, match="exists already"):
        make_certificates(str(tmp_path / "lab"))


def test_certificates_of_another_lab(tmp_path: Path) -> None:
    with lab(tmp_path) as made:
        demand_reachable(made.address)
        ca, cert, key = map(str, make_certificates(str(tmp_path / "other")))
        with pytest.raises(Absent, match="its certificate is not accepted: "):
            demand_reachable(Address(made.address.text, ca, cert, key))
        with pytest.raises(Absent, match="refuses a connection with these certificates: "):
            demand_reachable(Address(made.address.text, made.address.ca, cert, key))


def test_an_expired_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "_DAYS", -1e-4)
    with lab(tmp_path) as made, pytest.raises(Absent, match="not accepted: certificate has expired"):
        demand_reachable(made.address)
