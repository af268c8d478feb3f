"""Builds the wheel and the source archive (PEP 517) with the standard library alone.

So pip can install this folder without an index. pyproject.toml has the name and the version.
"""

import base64
import hashlib
import io
import os
import re
import tarfile
import zipfile

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    stem = _stem()
    name = f"{stem}-py3-none-any.whl"
    files = {f"weir/{f}": _read(f"weir/{f}") for f in sorted(os.listdir(os.path.join(HERE, "weir"))) if f.endswith((".py", ".typed"))}
    info = f"{stem}.dist-info"
    files[f"{info}/METADATA"] = _metadata()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: wheel_writer\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/licenses/LICENSE"] = _read("LICENSE")
    record = "".join(f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            wheel.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), data)
    return name


def build_sdist(sdist_directory, config_settings=None):
    stem = _stem()
    with tarfile.open(os.path.join(sdist_directory, f"{stem}.tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in ("pyproject.toml", "README.md", "LICENSE", "build_backend/wheel_writer.py"):
            archive.add(os.path.join(HERE, path), f"{stem}/{path}")
        about = tarfile.TarInfo(f"{stem}/PKG-INFO")
        about.size = len(_metadata())
        archive.addfile(about, io.BytesIO(_metadata()))
        for f in sorted(os.listdir(os.path.join(HERE, "weir"))):
            if f.endswith((".py", ".typed")):
                archive.add(os.path.join(HERE, "weir", f), f"{stem}/weir/{f}")
    return f"{stem}.tar.gz"


def _text():
    return _read("pyproject.toml").decode()  # Python 3.9 has no tomllib


def _project(key):
    return re.search(rf'^{key} = "(.*)"$', _text(), re.MULTILINE)[1]


def _list(key):
    return re.findall(r'"(.*?)"', re.search(rf"^{key} = \[(.*?)\]$", _text(), re.MULTILINE | re.DOTALL)[1])


def _stem():
    return f"{_project('name').replace('-', '_')}-{_project('version')}"


def _metadata():
    head = f"Metadata-Version: 2.1\nName: {_project('name')}\nVersion: {_project('version')}\nSummary: {_project('description')}\n"
    head += f"License: MIT\nKeywords: {','.join(_list('keywords'))}\nRequires-Python: {_project('requires-python')}\n"
    head += "".join(f"Classifier: {each}\n" for each in _list("classifiers"))
    urls = re.search(r"^\[project\.urls\]\n((?:\w+ = .*\n)+)", _text(), re.MULTILINE)[1]
    head += "".join(f"Project-URL: {name}, {url}\n" for name, url in re.findall(r'^(\w+) = "(.*)"$', urls, re.MULTILINE))
    return f"{head}Description-Content-Type: text/markdown\n\n".encode() + _read("README.md")


def _read(path):
    with open(os.path.join(HERE, path), "rb") as file:
        return file.read()


def _digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
