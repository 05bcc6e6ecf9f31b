"""Streams of every kind that go on while brokers become others: one server that echoes, one client that checks what comes back.

serve ADDRESS PORT [silent]               echoes whatever clients send; `silent`: says nothing to those who ask for RI2N
drive ADDRESS PORT SECONDS [PLAIN_PORT]   CONVERSATIONS of small messages, BULKS of large ones, an idle connection that says something at
                                          last, connections that come and go, and one by plain TCP to the other port: prints how many
                                          messages and connections there were, and the longest time that one took
"""
import os
import selectors
import socket
import sys
import threading
import time

CONVERSATIONS, BULKS = 6, 4
verb, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])


def serve():
    listener = socket.create_server((address, port), backlog=256)
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    if "silent" in sys.argv:
        silent.bind((address, port))
    while True:
        client, _ = listener.accept()
        threading.Thread(target=echo, args=(client,), daemon=True).start()


def echo(client):
    with client:
        while piece := client.recv(65536):
            client.sendall(piece)


def receive(connection, count):
    back = bytearray()
    while len(back) < count:
        piece = connection.recv(count - len(back))
        assert piece, f"the connection ended after {len(back)} bytes of {count}"
        back += piece
    return bytes(back)


class Drive:
    def __init__(self, seconds, plain_port):
        self.until = time.monotonic() + seconds
        self.lock, self.failed, self.longest, self.messages, self.connections = threading.Lock(), [], 0.0, 0, 0
        self.plain_port = plain_port

    def goes_on(self):
        return time.monotonic() < self.until and not self.failed

    def note(self, began, messages, connections):
        with self.lock:
            self.longest = max(self.longest, time.monotonic() - began)
            self.messages += messages
            self.connections += connections

    def ask(self, connection, count):
        sent, began = os.urandom(count), time.monotonic()
        writer = threading.Thread(target=connection.sendall, args=(sent,))
        # What fits the buffers needs no thread.
        writer.run() if count < 10000 else writer.start()
        assert receive(connection, count) == sent, "other bytes came back"
        if count >= 10000:
            writer.join()
        self.note(began, 1, 0)

    def converse(self):
        with socket.create_connection((address, port)) as connection:
            while self.goes_on():
                self.ask(connection, 1 + os.urandom(1)[0])

    def bulk(self):
        with socket.create_connection((address, port)) as connection:
            while self.goes_on():
                self.ask(connection, 2_000_000)

    def idle(self):
        with socket.create_connection((address, port)) as connection:
            while self.goes_on():
                time.sleep(0.1)
            self.ask(connection, 100)

    def come_and_go(self):
        while self.goes_on():
            began = time.monotonic()
            with socket.create_connection((address, port), timeout=20) as connection:
                self.ask(connection, 3000)
            self.note(began, 0, 1)
            time.sleep(0.02)

    def plain(self):
        # Nobody answers in time and the program does not wait, so the broker connects on its behalf, and carries.
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex((address, self.plain_port))
        selector = selectors.DefaultSelector()
        selector.register(connection, selectors.EVENT_WRITE)
        assert selector.select(20), "nothing came of a connection by plain TCP"
        connection.setblocking(True)
        while self.goes_on():
            self.ask(connection, 300_000)

    def run(self):
        kinds = [self.converse] * CONVERSATIONS + [self.bulk] * BULKS + [self.idle, self.come_and_go]
        if self.plain_port:
            kinds.append(self.plain)
        threads = [threading.Thread(target=self.watch, args=(kind,)) for kind in kinds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failed:
            sys.exit("\n".join(self.failed))
        print(f"{self.messages} messages, {self.connections} further connections, at most {self.longest * 1000:.0f} ms for one")

    def watch(self, kind):
        try:
            kind()
        except Exception as error:
            self.failed.append(f"{kind.__name__}: {type(error).__name__}: {error}")


if verb == "serve":
    serve()
Drive(float(sys.argv[4]), int(sys.argv[5]) if len(sys.argv) > 5 else 0).run()
