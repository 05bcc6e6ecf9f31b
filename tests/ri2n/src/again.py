"""Connects whenever a line comes in, says who met, and prints the seconds that it took.

again.py ADDRESS PORT [SECONDS]     how long to wait for the answer
"""
import errno
import socket
import sys
import time

address, limit = (sys.argv[1], int(sys.argv[2])), float(sys.argv[3]) if len(sys.argv) > 3 else 5.0
kept = []
print("ready", flush=True)
for _ in sys.stdin:
    began = time.monotonic()
    server = socket.socket()
    server.settimeout(limit)
    try:
        server.connect(address)
        print(server.recv(5).decode() or "end", end=" ")
    except OSError as error:
        print(errno.errorcode.get(error.errno, "nothing"), end=" ")
    print(f"{time.monotonic() - began:.2f}", flush=True)
    # Connections stay, so that they are seen.
    kept.append(server)
