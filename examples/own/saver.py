"""A program that saves its work by itself: at the notice that its VM will be taken away, which it reads as a program on
EC2 does, and hears by a signal, too. It begins with what it has saved.

    /usr/bin/python3 saver.py ROUNDS [EVERY]

It writes answer.txt, a hash over so many rounds. With EVERY it saves also after each so many rounds.
"""

import hashlib
import json
import os
import signal
import sys

from botocore.utils import IMDSFetcher

STATE = "state.json"
NOTICE = "latest/meta-data/spot/instance-action"
# Rounds between two looks at the metadata: some hundredths of a second.
LOOK = 20_000


class Notices(IMDSFetcher):
    """What the metadata of this VM say of its end."""

    def __init__(self):
        endpoint = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://169.254.169.254")
        super().__init__(timeout=1, num_attempts=1, base_url=endpoint)
        self.token = None

    def read(self):
        """The notice; None where there is none, or nobody answers."""
        try:
            if self.token is None:
                self.token = self._fetch_metadata_token()
            response = self._get_request(NOTICE, lambda response: False, self.token)
        except self._RETRIES_EXCEEDED_ERROR_CLS:
            return None
        if response.status_code == 401:
            self.token = None
        return json.loads(response.text) if response.status_code == 200 else None


def save(done, digest):
    """All of the state or none of it: whoever begins with it never finds a half."""
    with open(STATE + ".new", "w") as file:
        json.dump({"done": done, "digest": digest.hex()}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(STATE + ".new", STATE)


def begin():
    try:
        with open(STATE) as file:
            state = json.load(file)
    except FileNotFoundError:
        return 0, b""
    print(f"goes on after {state['done']} rounds", flush=True)
    return state["done"], bytes.fromhex(state["digest"])


def main():
    rounds = int(sys.argv[1])
    every = int(sys.argv[2]) if len(sys.argv) > 2 else None
    signal.signal(signal.SIGUSR1, lambda *_: print("has the signal", flush=True))
    notices, heard = Notices(), None
    done, digest = begin()
    while done < rounds:
        digest = hashlib.sha256(digest + done.to_bytes(8, "big")).digest()
        done += 1
        if every and done % every == 0:
            save(done, digest)
        if done % LOOK == 0 and heard is None:
            heard = notices.read()
            if heard is not None:
                save(done, digest)
                print(f"hears {json.dumps(heard)}, and saves after {done} rounds", flush=True)
                if os.path.exists("notice.json"):
                    print("has the file " + open("notice.json").read().strip(), flush=True)
    with open("answer.txt", "w") as file:
        file.write(digest.hex() + "\n")


main()
