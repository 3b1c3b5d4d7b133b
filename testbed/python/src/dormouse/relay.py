"""A scheduler that hands its pipes to another process: `relay.py SOCKET`.

dormouse starts it as the scheduler of a run. It sends its standard input and output over the Unix
socket, and so whoever listens there speaks with dormouse itself; then it waits until the socket is
closed. It runs as a file and imports nothing of the package: dormouse starts schedulers in a bare
environment.
"""

import array
import socket
import sys


def relay(path: str) -> None:
    """Sends file descriptors 0 and 1 to the listener at `path`, and waits until it has gone."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.connect(path)
        pipes = array.array("i", [0, 1])
        listener.sendmsg([b"p"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, pipes)])
        listener.recv(1)


if __name__ == "__main__":
    relay(sys.argv[1])
