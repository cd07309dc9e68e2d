"""Make the pictures of docs/screens: `python -m tools.screens [DEMO]` from the project's directory.

Serves the demo report (made by `tilescope demo` unless its directory is given) and the sample
reports, opens each page in headless Chromium, and writes what is seen as PNG of 256 colours.
Needs Debian's chromium, playwright and pillow.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
OUT = ROOT / "docs" / "screens"
MAX_BYTES = 150_000
WIDTH, HEIGHT = 1440, 900
CHROMIUM = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
# Name of the picture: the link, and the theme.
SCREENS = {
    "start": ("/", "light"),
    "summary": ("/summary?report=demo", "light"),
    "memory": ("/memory?report=demo&tile=3,40", "light"),
    "memory-map": ("/memory?report=demo&graph=map&category=variable&tile=10-14", "dark"),
    "memory-addresses": ("/memory?report=matmul_chain_tiny&tab=variables&lies=address", "light"),
    "liveness": ("/liveness?report=demo", "light"),
    "programs": ("/programs?report=demo", "light"),
    "programs-written": ("/programs?report=demo&stage=written&program=25", "light"),
    "operations": ("/operations?report=demo", "light"),
    "graph": ("/graph?report=demo", "light"),
    "insights": ("/insights?report=demo", "light"),
    "compare": ("/compare?report=matmul_chain_tiny&against=matmul_chain_mk2", "light"),
    "exchange": ("/exchange?report=demo&by=ipus", "light"),
    "flames": ("/flames?report=demo", "light"),
    "execution": ("/execution?report=demo", "dark"),
    "trace": ("/trace?report=demo", "light"),
    "documentation": ("/documentation?report=demo&find=overlapped&chapter=memory", "light"),
}

LOWER = ("memory-addresses",)  # pictures of the lower pane


@contextmanager
def served(paths: list[Path]) -> Iterator[str]:
    """Serve reports; give the URL."""
    command = [sys.executable, "-m", "cli.main", "serve", *map(str, paths), "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        match = None
        while match is None:
            match = re.search(r"http://\S+", server.stdout.readline())
        try:
            yield match[0].rstrip("/")
        finally:
            server.terminate()


def with_palette(png: bytes) -> bytes:
    """Write a picture again with as many colours, at most 256, as keep it small enough."""
    from PIL import Image

    picture = Image.open(io.BytesIO(png)).convert("RGB")
    for colours in (256, 128, 64, 32):
        buffer = io.BytesIO()
        picture.quantize(colours, method=Image.Quantize.MEDIANCUT).save(
            buffer, "PNG", optimize=True
        )
        if buffer.tell() < MAX_BYTES:
            break
    return buffer.getvalue()


def take(paths: list[Path], names: list[str]) -> None:
    """Take the pictures."""
    from playwright.sync_api import sync_playwright

    OUT.mkdir(parents=True, exist_ok=True)
    with served(paths) as url, sync_playwright() as playwright:
        program = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=program, args=list(CHROMIUM))
        for name in names:
            link, theme = SCREENS[name]
            size = {"width": WIDTH, "height": HEIGHT}
            context = browser.new_context(viewport=size, color_scheme=theme)
            page = context.new_page()
            page.set_default_timeout(120_000)
            page.goto(url + link)
            page.wait_for_selector("#page .headline, #page h2")
            page.wait_for_load_state("networkidle")
            page.wait_for_timeout(4000)
            if name in LOWER:
                page.locator(".pane-below").evaluate("pane => pane.scrollIntoView()")
            (OUT / f"{name}.png").write_bytes(with_palette(page.screenshot()))
            context.close()
        browser.close()


def main() -> None:
    """Make the demo report unless it is given, then the pictures (of these names, or all)."""
    arguments = sys.argv[1:]
    names = [name for name in arguments if name in SCREENS] or list(SCREENS)
    paths = [Path(path).resolve() for path in arguments if path not in SCREENS]
    with tempfile.TemporaryDirectory() as folder:
        demo = paths[0] if paths else Path(folder) / "demo"
        if not paths:
            command = [sys.executable, "-m", "cli.main", "demo", "--no-serve", "--out", str(demo)]
            subprocess.run(command, cwd=ROOT, check=True)
        take([demo, ROOT / "sample_reports"], names)


if __name__ == "__main__":
    main()
