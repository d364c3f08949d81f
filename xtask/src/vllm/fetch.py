"""Fetches a source package from the package index that pip uses, and unpacks some of its files.

usage: fetch.py PROJECT ARCHIVE SHA256 FOLDER FILE...     files as they are named in the archive
pip itself would build the package to learn its name.
"""
import hashlib, html.parser, io, os, pathlib, subprocess, sys, tarfile, urllib.parse, urllib.request

project, archive, sha256, folder, *files = sys.argv[1:]


class Links(html.parser.HTMLParser):
    found = None

    def handle_starttag(self, tag, attrs):
        target = dict(attrs).get("href", "")
        if tag == "a" and urllib.parse.urlsplit(target).path.endswith("/" + archive):
            self.found = target


def index():
    pip = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    set_for_pip = subprocess.run(pip, capture_output=True, text=True).stdout.strip()
    return os.environ.get("PIP_INDEX_URL") or set_for_pip or "https://pypi.org/simple"


page = f"{index().rstrip('/')}/{project}/"
links = Links()
links.feed(urllib.request.urlopen(page, timeout=60).read().decode())
if links.found is None:
    sys.exit(f"{page} has no {archive}")
bytes_of_it = urllib.request.urlopen(urllib.parse.urljoin(page, links.found), timeout=600).read()
if hashlib.sha256(bytes_of_it).hexdigest() != sha256:
    sys.exit(f"{archive} is not the one that is expected")
with tarfile.open(fileobj=io.BytesIO(bytes_of_it)) as tar:
    for file in files:
        pathlib.Path(folder, pathlib.PurePath(file).name).write_bytes(tar.extractfile(file).read())
