"""Talks to other hosts for some seconds: listens, connects to each of them, and says something to each every 50 ms.

talk.py SECONDS OWN_ADDRESS ADDRESS…     waits for those that do not listen yet
"""
import socket
import sys
import threading
import time

PORT = 7100
until = time.monotonic() + float(sys.argv[1])
own, others = sys.argv[2], sys.argv[3:]


def echo(client):
    try:
        while word := client.recv(64):
            client.sendall(word)
    except OSError:
        pass  # The other has ended.


def listen():
    server = socket.create_server((own, PORT), backlog=64)
    while True:
        threading.Thread(target=echo, args=(server.accept()[0],), daemon=True).start()


def talk(other):
    while time.monotonic() < until:
        try:
            with socket.create_connection((other, PORT), timeout=60) as connection:
                while time.monotonic() < until:
                    connection.sendall(b"word")
                    connection.recv(64)
                    time.sleep(0.05)
        except OSError:
            time.sleep(0.2)


threading.Thread(target=listen, daemon=True).start()
talkers = [threading.Thread(target=talk, args=(other,)) for other in others]
for talker in talkers:
    talker.start()
for talker in talkers:
    talker.join()
