"""One server and one client that say how they met.

serve ADDRESS PORT           greets every client; prints a line a client: its address
meet ADDRESS PORT [SECONDS]  prints `hello`, or the name of the error that connecting or reading ended with
"""
import errno
import socket
import sys
import threading

verb, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])


def serve():
    listener = socket.create_server((address, port))
    while True:
        client, peer = listener.accept()
        print(peer[0], flush=True)
        threading.Thread(target=greet, args=(client,), daemon=True).start()


def greet(client):
    try:
        client.sendall(b"hello")
        client.recv(1)
    except OSError:
        pass
    client.close()


def meet():
    limit = float(sys.argv[4]) if len(sys.argv) > 4 else 5.0
    client = socket.socket()
    client.settimeout(limit)
    try:
        client.connect((address, port))
        words = client.recv(5)
        print(words.decode() or "end of file")
    except TimeoutError as error:
        print(errno.errorcode.get(error.errno, "nothing"))
    except OSError as error:
        print(errno.errorcode.get(error.errno, str(error)))
    client.close()


{"serve": serve, "meet": meet}[verb]()
