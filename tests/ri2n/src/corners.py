"""Corners of the socket calls, each of which a program may rely on: the same is expected of TCP and of RI2N in its place.

   corners.py serve IP PORT     echoes; a connection that begins with "t" is told whether receiving has a time limit
   corners.py drive IP PORT
"""
import array
import ctypes
import errno
import fcntl
import os
import select
import signal
import socket
import struct
import sys
import termios

LIMIT_S = 0.3


def serve(address):
    listener = socket.create_server(address)
    # Connections have the listener's time limits.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, int(LIMIT_S * 1e6)))
    while True:
        try:
            connection, _ = listener.accept()
        except BlockingIOError:
            continue
        if os.fork() == 0:
            listener.close()
            echo(connection)
            os._exit(0)
        connection.close()
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break
            except ChildProcessError:
                break


def echo(connection):
    kind = connection.recv(1)
    while True:
        try:
            data = connection.recv(1 << 16)
        except BlockingIOError:
            if kind == b"t":
                connection.sendall(b"limited")
                return
            continue
        if not data:
            return
        connection.sendall(data)


def connect(address, kind=b"e"):
    connection = socket.create_connection(address)
    connection.sendall(kind)
    return connection


def exactly(connection, wanted):
    got = bytearray()
    while len(got) < len(wanted):
        more = connection.recv(len(wanted) - len(got))
        assert more, f"the stream ended after {len(got)} bytes of {len(wanted)}"
        got += more
    assert bytes(got) == wanted, "other bytes came back"


def addresses_are_left_out(address):
    with connect(address) as connection:
        assert connection.sendto(b"to", address) == 2
        assert connection.sendmsg([b"mes", b"sage"], [], 0, address) == 7
        exactly(connection, b"tomessage")


def a_copy_outlives_the_original(address):
    connection = connect(address)
    copy = socket.socket(fileno=os.dup(connection.fileno()))
    names = connection.getsockname(), connection.getpeername()
    connection.close()
    assert (copy.getsockname(), copy.getpeername()) == names and names[1] == address
    copy.sendall(b"copy")
    exactly(copy, b"copy")
    copy.shutdown(socket.SHUT_WR)
    assert copy.recv(1) == b""
    copy.close()


def a_child_and_its_parent_write(address):
    with connect(address) as connection:
        child = os.fork()
        if child == 0:
            connection.sendall(b"child")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        # That the child closed its copy ends nothing.
        connection.sendall(b"parent")
        exactly(connection, b"childparent")


def waiting_bytes_are_seen(address):
    with connect(address) as connection:
        connection.sendall(b"seen")
        assert select.select([connection], [], [], 5)[0]
        while len(connection.recv(9, socket.MSG_PEEK)) < 4:
            pass
        count = array.array("i", [0])
        fcntl.ioctl(connection, termios.FIONREAD, count)
        assert count[0] == 4
        exactly(connection, b"seen")
        try:
            connection.recv(1, socket.MSG_DONTWAIT)
            raise AssertionError("there is nothing to receive")
        except BlockingIOError:
            pass


def flags_stay(address):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)
        assert connection.connect_ex(address) in (0, errno.EINPROGRESS)
        assert select.select([], [connection], [], 5)[1]
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
        assert not connection.get_inheritable() and not connection.getblocking()
        assert fcntl.fcntl(connection, fcntl.F_GETFL) & os.O_NONBLOCK
        assert connection.connect_ex(address) in (0, errno.EISCONN)


def writing_after_the_end_fails(address):
    with connect(address, b"t") as connection:
        exactly(connection, b"limited")
        assert connection.recv(1) == b""
        try:
            for _ in range(1000):
                connection.sendall(b"x" * 1000)
                select.select([], [], [], 0.01)
            raise AssertionError("a peer that is gone takes bytes")
        except (BrokenPipeError, ConnectionResetError):
            pass


def signals_disturb_nothing(address):
    with connect(address) as connection:
        signal.signal(signal.SIGALRM, lambda *_: connection.getpeername())
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        data = os.urandom(1000) * 100
        for _ in range(20):
            connection.sendall(data)
            exactly(connection, data)
        signal.setitimer(signal.ITIMER_REAL, 0)


def nothing_is_a_socket_that_is_none(_):
    libc, value = ctypes.CDLL(None, use_errno=True), ctypes.c_int(1)
    result = libc.setsockopt(9999, socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, ctypes.byref(value), 4)
    assert (result, ctypes.get_errno()) == (-1, errno.EBADF)


def no_descriptor_is_left(address):
    before = os.listdir("/proc/self/fd")
    for _ in range(30):
        connect(address).close()
    assert os.listdir("/proc/self/fd") == before


def main():
    address = (sys.argv[2], int(sys.argv[3]))
    if sys.argv[1] == "serve":
        serve(address)
    corners = [addresses_are_left_out, a_copy_outlives_the_original, a_child_and_its_parent_write, waiting_bytes_are_seen,
               flags_stay, writing_after_the_end_fails, signals_disturb_nothing, nothing_is_a_socket_that_is_none,
               no_descriptor_is_left]
    for corner in corners:
        try:
            corner(address)
        except BaseException as error:
            print(f"{corner.__name__}: {error!r}", file=sys.stderr)
            raise
    print(f"{len(corners)} corners")


main()
