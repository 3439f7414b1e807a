"""Certificates for tests, made by the program `openssl`."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]


class Pair(NamedTuple):
    cert: str
    key: str


class Authority:
    """A certificate authority in a directory; `file` has its certificate."""

    def __init__(self, folder: str, name: str) -> None:
        self.folder = Path(folder)
        self.file = str(self.folder / f"{name}.pem")
        self.key = str(self.folder / f"{name}.key")
        _openssl("req", "-x509", *_KEY, "-nodes", "-subj", f"/CN={name}", "-days", "2", "-keyout", self.key, "-out", self.file)

    def sign(self, name: str, names: str = "IP:127.0.0.1,DNS:localhost", password: str = "") -> Pair:
        """A certificate for these names. If `password` is given, it encrypts the key."""
        pair = Pair(str(self.folder / f"{name}.cert.pem"), str(self.folder / f"{name}.key.pem"))
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        kept = ["-passout", f"pass:{password}"] if password else ["-nodes"]
        _openssl("req", *_KEY, *kept, "-subj", f"/CN={name}", "-keyout", pair.key, "-out", str(request))
        extensions.write_text(f"subjectAltName={names}\nauthorityKeyIdentifier=keyid\n", "utf-8")
        signer = ["-CA", self.file, "-CAkey", self.key, "-CAcreateserial", "-days", "2"]
        _openssl("x509", "-req", "-in", str(request), *signer, "-extfile", str(extensions), "-out", pair.cert)
        return pair


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"openssl {arguments[0]}: {done.stderr}")
