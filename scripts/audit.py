"""Known vulnerabilities in what the locks name, asked of OSV (https://osv.dev) through pip-audit: `make audit`.

Exit 0: every package of every lock was looked up and none is known to be vulnerable. 1: some are. 2: the database
could not be asked, or not about all of them. A look-up that fails is never taken for a clean one.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OSV = "https://api.osv.dev/v1/query"


def main(argv: list[str] | None = None) -> int:
    """Audit the locks that are named, or all."""
    parser = argparse.ArgumentParser(prog="audit.py", description="Known vulnerabilities in what the locks name.")
    parser.add_argument("locks", nargs="*", type=Path, help="default: every requirements/*.lock")
    parser.add_argument("--ignore", action="append", default=[], metavar="ID", help="a vulnerability that was judged")
    parser.add_argument("--osv_url", default=OSV, help="an OSV server of one's own")
    options = parser.parse_args(argv)
    locks = options.locks or sorted((ROOT / "requirements").glob("*.lock"))
    if missing := [str(lock) for lock in locks if not lock.is_file()]:
        parser.error(f"no such lock: {', '.join(missing)}")
    found, unasked = set(), 0
    for lock in locks:
        report = audit(lock, options.osv_url, options.ignore)
        if isinstance(report, str):
            print(f"{lock.name}: {options.osv_url} could not be asked:\n  {report}", file=sys.stderr)
            print("Fix: run it where the network reaches OSV, or name a mirror with --osv_url=URL", file=sys.stderr)
            return 2
        vulnerable, skipped = read(report)
        print(f"{lock.name}: {len(report)} packages, {len(vulnerable)} with known vulnerabilities")
        for package, reason in skipped:
            print(f"  {package}: could not be looked up: {reason}", file=sys.stderr)
        found |= vulnerable
        unasked += len(skipped)
    for package, identity, fixed in sorted(found):
        print(f"  {package}  {identity}  {'fixed in ' + fixed if fixed else 'no fixed version yet'}")
    if found:
        print("Fix: `make lock UPGRADE=1`, or --ignore=ID for one that was judged not to matter here")
    return 1 if found else 2 if unasked else 0


def audit(lock: Path, osv_url: str, ignored: list[str]) -> list[dict] | str:
    """pip-audit's entry for every package of a lock, or what went wrong in a line. The lock is read, not installed."""
    command = [sys.executable, "-m", "pip_audit", "--format=json", "--progress-spinner=off", "--disable-pip"]
    command += ["--require-hashes", f"--requirement={lock}", "--vulnerability-service=osv", f"--osv-url={osv_url}"]
    command += [f"--ignore-vuln={identity}" for identity in ignored]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        said = [line for line in done.stderr.splitlines() if line.strip()]
        return said[-1].strip()[:300] if said else f"pip-audit ended with {done.returncode} and said nothing"


def read(report: list[dict]) -> tuple[set[tuple[str, str, str]], list[tuple[str, str]]]:
    """((package, vulnerability, fixed in) ..., (package, why it was not looked up) ...)."""
    vulnerable, skipped = set(), []
    for package in report:
        if "skip_reason" in package:
            skipped.append((package["name"], package["skip_reason"]))
            continue
        name = f"{package['name']} {package['version']}"
        vulnerable |= {(name, v["id"], ", ".join(v["fix_versions"])) for v in package["vulns"]}
    return vulnerable, skipped


if __name__ == "__main__":
    sys.exit(main())
