"""Waits for an answer on a connection whose peer falls silent: prints the error's name and the seconds until it came.

patience.py ADDRESS PORT timeout MILLISECONDS     TCP_USER_TIMEOUT, while something is not acknowledged
patience.py ADDRESS PORT alive IDLE               keepalive after so many idle seconds, one probe a second, two of them
patience.py ADDRESS PORT idle MILLISECONDS        TCP_USER_TIMEOUT, while all is acknowledged
"""
import errno
import socket
import sys
import time

address, kind, value = (sys.argv[1], int(sys.argv[2])), sys.argv[3], int(sys.argv[4])
# Longer than any silence here.
LIMIT_S = 8
with socket.create_connection(address) as server:
    if kind == "alive":
        server.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, number in (socket.TCP_KEEPIDLE, value), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 2):
            server.setsockopt(socket.IPPROTO_TCP, option, number)
    else:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, value)
    server.sendall(b"e")
    server.settimeout(LIMIT_S)
    server.sendall(b"ready")
    assert server.recv(5) == b"ready"
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.monotonic()
    try:
        if kind == "timeout":
            server.sendall(b"into the dark")
        print(server.recv(1) or "end of file", end=" ")
    except TimeoutError as error:
        print(errno.errorcode.get(error.errno, "nothing"), end=" ")
    except OSError as error:
        print(errno.errorcode.get(error.errno, str(error)), end=" ")
    print(f"{time.monotonic() - began:.1f}")
