"""Sends bytes to a server that echoes them: prints the seconds until all were back, or the name of the error.

echoed.py ADDRESS PORT
"""
import errno
import os
import socket
import sys
import threading
import time

LIMIT_S = 20
began = time.monotonic()
sent = os.urandom(300_000)
try:
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=LIMIT_S) as server:
        def send():
            try:
                server.sendall(sent)
                server.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # The reader is told.

        writer = threading.Thread(target=send)
        writer.start()
        back = bytearray()
        while piece := server.recv(65536):
            back += piece
        writer.join()
except TimeoutError:
    sys.exit("nothing within %d s" % LIMIT_S)
except OSError as error:
    print(errno.errorcode.get(error.errno, str(error)))
    sys.exit(1)
if bytes(back) != sent:
    print(f"{len(back)} bytes of {len(sent)}, or others")
    sys.exit(1)
print(f"{time.monotonic() - began:.2f}")
