"""Who asks Google: gcloud's account, with its token, project and endpoints, in one call.

`gcloud config config-helper` is what kubectl asks for credentials, and answers with the account, the project and any
endpoint override as well.
"""

import dataclasses
import json
import shutil
import subprocess

from launch.preflight.request import Trouble


@dataclasses.dataclass
class Account:
    """Who asks: what gcloud is set to. `account` is empty where only a token was given."""

    token: str
    account: str
    project: str
    region: str
    overrides: dict[str, str]
    impersonated: str = ""


def sign_in(timeout_s: float) -> Account:
    """gcloud's own account. Raises Trouble("credentials") with the command that mends it."""
    if not shutil.which("gcloud"):
        raise Trouble("credentials", "gcloud is not installed: https://cloud.google.com/sdk/docs/install")
    command = ["gcloud", "config", "config-helper", "--format=json", "--quiet"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise Trouble("late", f"gcloud gave no token within {timeout_s:.0f} s") from None
    if done.returncode:
        said = next((line for line in done.stderr.splitlines() if line.startswith("ERROR")), done.stderr.strip())
        raise Trouble("credentials", said.removeprefix("ERROR: ") or "gcloud has no account")
    answer = json.loads(done.stdout)
    properties = answer["configuration"]["properties"]
    return Account(
        token=answer["credential"]["access_token"],
        account=properties.get("core", {}).get("account", ""),
        project=properties.get("core", {}).get("project", ""),
        region=properties.get("ai", {}).get("region", "") or properties.get("compute", {}).get("region", ""),
        overrides=properties.get("api_endpoint_overrides", {}),
        impersonated=properties.get("auth", {}).get("impersonate_service_account", ""),
    )
