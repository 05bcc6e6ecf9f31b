"""A paced stream whose bytes are known: `paced.py serve ADDRESS PORT`, `paced.py send ADDRESS PORT`.

The server says when nothing came for longer than QUIET_MS, with the time at which it began (CLOCK_MONOTONIC, in seconds), and at
the end how many bytes came and whether all were right. A client sends CHUNK bytes every PERIOD_S until its standard input ends.
"""
import select
import socket
import struct
import sys
import time

CHUNK, PERIOD_S, QUIET_MS = 4096, 0.004, 12
WORDS = CHUNK // 8


def chunk(first):
    return struct.pack(f"<{WORDS}Q", *range(first, first + WORDS))


def receive(connection, peer):
    count, wrong, rest = 0, 0, b""
    last = time.monotonic()
    while data := connection.recv(1 << 16):
        now = time.monotonic()
        if (now - last) * 1000 > QUIET_MS and count:
            print(f"gap {last:.6f} {(now - last) * 1000:.1f}", flush=True)
        last = now
        rest += data
        while len(rest) >= CHUNK:
            wrong += rest[:CHUNK] != chunk(count)
            rest, count = rest[CHUNK:], count + WORDS
    print(f"end {count * 8 + len(rest)} {wrong + bool(rest)}", flush=True)


def main():
    what, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if what == "serve":
        listener = socket.create_server((address, port))
        print("ready", flush=True)
        connection, peer = listener.accept()
        receive(connection, peer)
        return
    stream = socket.create_connection((address, port))
    next_at, first = time.monotonic(), 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        stream.sendall(chunk(first))
        first += WORDS
        next_at += PERIOD_S
        time.sleep(max(0, next_at - time.monotonic()))
    stream.shutdown(socket.SHUT_WR)
    stream.recv(1)
    print(f"sent {first * 8}", flush=True)


main()
