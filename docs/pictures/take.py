"""Takes the README's picture from a run made now, on a quiet machine: ``python docs/pictures/take.py``.

Needs chromium, and this package with its ``report`` extra.
"""

from __future__ import annotations

import html
import subprocess
import sys
import tempfile
from pathlib import Path

OPTIONS = "--rounds 5 --config-list 1,0,0,0 1,3,1,4 --benchmark-list mtbench gsm8k math500"
WIDTH, HEIGHT = 1212, 1226
PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; padding: 16px; background: #e8e8ea }}
pre {{ margin: 0 0 16px; padding: 14px 18px; border-radius: 8px; background: #17191d; color: #e6e6e6; font: 13.5px/1.45
  'DejaVu Sans Mono', monospace }}
iframe {{ width: 1180px; height: 930px; border: 0; border-radius: 8px; background: #fff }}
</style><pre>{}</pre><iframe src="report.html" scrolling="no"></iframe>"""


def main() -> None:
    """Runs the matrix, draws its report, and photographs the end of the one above the top of the other."""
    picture = Path(__file__).with_name("report.png")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pytest = [sys.executable, "-m", "pytest", "--pyargs", "specforge.bench_tests", *OPTIONS.split()]
        run = subprocess.run(pytest, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
        (record,) = (folder / "results").glob("*.json")
        subprocess.run([sys.executable, "-m", "specforge.cli", "report", str(record)], cwd=folder, check=True)
        table = (
            f"$ pytest bench_tests {OPTIONS}\n...\n" + run.stdout[run.stdout.index("=================== specforge") :]
        )
        (folder / "page.html").write_text(PAGE.format(html.escape(table)), encoding="utf-8")
        browser = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        size = f"--window-size={WIDTH},{HEIGHT}"
        subprocess.run([*browser, size, f"--screenshot={picture}", "page.html"], cwd=folder, check=True)
    print(f"{picture}: {picture.stat().st_size} bytes")


if __name__ == "__main__":
    main()
