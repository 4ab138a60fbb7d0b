"""pip itself, for a Python that comes without it (Debian splits ensurepip off): one wheel, by its hash."""

from __future__ import annotations

import configparser
import hashlib
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from profiles.errors import ConfigError

WHEEL = "pip-26.3-py3-none-any.whl"
SHA256 = (
    "6c36ae7da8695be67e3cd9f7d87919667ced53f57ce2ede75d89b5912ed2bc4c",
    "f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13",
)
_TIMEOUT_S = 30
_REMEDY = "Install it by hand (apt-get install python3-venv), or set PIP_INDEX_URL."


def fetch(folder: Path) -> Path:
    """The wheel, below ``folder``. Raises ConfigError with the way out where it cannot be had."""
    target = folder / WHEEL
    if target.exists() and hashlib.sha256(target.read_bytes()).hexdigest() in SHA256:
        return target
    page = f"{_index().rstrip('/')}/pip/"
    links = re.findall(r'href="([^"]+)"', _get(page).decode("utf-8", "replace"))
    link = next((link for link in links if urllib.parse.urlparse(link).path.endswith(f"/{WHEEL}")), None)
    if link is None:
        raise ConfigError(f"the package index has no {WHEEL}", remedy=_REMEDY)
    data = _get(urllib.parse.urljoin(page, link))
    if hashlib.sha256(data).hexdigest() not in SHA256:
        raise ConfigError(f"{WHEEL} from the package index has another hash than the locked one", remedy=_REMEDY)
    folder.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return target


def _index() -> str:
    """pip's own index: its variable, its configuration files, its default."""
    if os.environ.get("PIP_INDEX_URL"):
        return os.environ["PIP_INDEX_URL"]
    home = Path.home()
    for path in (home / ".config" / "pip" / "pip.conf", home / ".pip" / "pip.conf", Path("/etc/pip.conf")):
        parser = configparser.ConfigParser(interpolation=None)
        try:
            parser.read(path, encoding="utf-8")
            return parser["global"]["index-url"]
        except (configparser.Error, KeyError, OSError):
            continue
    return "https://pypi.org/simple"


def _get(url: str) -> bytes:
    if not url.startswith(("https://", "http://")):
        raise ConfigError("the package index is not on the web", remedy=_REMEDY)
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - the scheme is checked above
            return bytes(answer.read())
    except (urllib.error.URLError, OSError) as error:
        raise ConfigError(f"the package index does not answer: {error}", remedy=_REMEDY) from error
