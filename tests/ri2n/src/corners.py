"""Corners of the socket calls, each of which a program may rely on: the same is expected of TCP and of RI2N in its place.

   corners.py serve IP PORT     echoes; a connection that begins with "t" is told whether receiving has a time limit, one with
                                "o" the listener's options that it has; one with "r" is reset after an answer
   corners.py drive IP PORT
"""
import array
import ctypes
import errno
import fcntl
import os
import random
import select
import signal
import socket
import struct
import sys
import tempfile
import termios
import threading
import time

LIMIT_S = 0.3
IDLE_S = 4321


def serve(address):
    listener = socket.create_server(address)
    # Connections have the listener's time limits.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, int(LIMIT_S * 1e6)))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, IDLE_S)
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
    if kind == b"e":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 0))
    if kind == b"o":
        alive = connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        connection.sendall(b"%d %d" % (alive, connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)))
        return
    if kind == b"r":
        connection.sendall(b"before")
        time.sleep(LIMIT_S)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        return
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


def converse(connection, turns, most=700):
    """Small messages there and back, each answered before the next: what RI2N carries by early copies."""
    for _ in range(turns):
        message = os.urandom(random.randint(1, most))
        connection.sendall(message)
        exactly(connection, message)


def a_conversation_keeps_its_order(address):
    """Every way to write and to read, in the middle of a conversation: some of them are the kernel's alone."""
    def piecewise(connection, message):
        for at in range(0, len(message), 100):
            connection.sendall(message[at:at + 100])

    def by_file(connection, message):
        with tempfile.TemporaryFile() as file:
            file.write(message)
            file.flush()
            sent = 0
            while sent < len(message):
                sent += os.sendfile(connection.fileno(), file.fileno(), sent, len(message) - sent)

    def in_a_child(connection, message):
        child = os.fork()
        if child == 0:
            connection.sendall(message)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0

    def by_a_copy(connection, message):
        copy = os.dup(connection.fileno())
        assert os.write(copy, message) == len(message)
        os.close(copy)

    def at_once(connection, wanted):
        got = connection.recv(len(wanted), socket.MSG_WAITALL)
        assert got == wanted

    def in_small_pieces(connection, wanted):
        for at in range(0, len(wanted), 7):
            exactly(connection, wanted[at:at + 7])

    def after_a_peek(connection, wanted):
        assert wanted.startswith(connection.recv(3, socket.MSG_PEEK))
        exactly(connection, wanted)

    def by_vector(connection, wanted):
        buffer = bytearray(len(wanted))
        got = os.readv(connection.fileno(), [buffer[:1]])
        assert got == 1
        exactly(connection, wanted[1:])

    def when_selected(connection, wanted):
        assert select.select([connection], [], [], 5)[0]
        exactly(connection, wanted)

    def without_waiting(connection, wanted):
        connection.setblocking(False)
        got = b""
        while len(got) < len(wanted):
            assert select.select([connection], [], [], 5)[0]
            try:
                got += connection.recv(len(wanted) - len(got))
            except BlockingIOError:
                pass
        connection.setblocking(True)
        assert got == wanted

    def in_a_child_too(connection, wanted):
        child = os.fork()
        if child == 0:
            exactly(connection, wanted)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0

    ways_out = [socket.socket.sendall, piecewise, by_file, in_a_child, by_a_copy,
                lambda connection, message: connection.sendmsg([message[:9], message[9:]]),
                lambda connection, message: os.writev(connection.fileno(), [message[:5], message[5:]])]
    ways_in = [exactly, at_once, in_small_pieces, after_a_peek, by_vector, when_selected, without_waiting, in_a_child_too]
    with connect(address) as connection:
        before = os.listdir("/proc/self/fd")
        converse(connection, 100)
        # A descriptor that is not ours: the socket of early copies.
        assert (os.listdir("/proc/self/fd") != before) == ("RI2N_BROKER" in os.environ)
        for size in (64, 1000, 5000):
            for out in ways_out:
                for way_in in ways_in:
                    message = os.urandom(size)
                    out(connection, message)
                    way_in(connection, message)
                    converse(connection, 5)


def a_child_has_connections_of_its_own(address):
    """At a number at which its parent converses."""
    with connect(address) as connection:
        converse(connection, 50)
        child = os.fork()
        if child == 0:
            number = connection.fileno()
            connection.close()
            own = connect(address)
            assert own.fileno() == number
            converse(own, 50)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        converse(connection, 50)


def a_conversation_may_pause_and_end(address):
    connection = connect(address)
    for pause in (0, 0.003, 0.03, 0.1):
        for _ in range(10):
            converse(connection, 10)
            time.sleep(pause)
    # The last message and the end go one after the other.
    connection.sendall(b"last")
    connection.shutdown(socket.SHUT_WR)
    exactly(connection, b"last")
    assert connection.recv(1) == b""
    try:
        connection.sendall(b"more")
        raise AssertionError("written after the end")
    except BrokenPipeError:
        pass
    connection.close()


def nothing_is_written_after_the_end(address):
    """Not even at once, nor where another number of the same socket told the end."""
    def by_a_copy(connection):
        copy = socket.socket(fileno=os.dup(connection.fileno()))
        copy.shutdown(socket.SHUT_WR)
        copy.close()

    ends = [lambda connection: connection.shutdown(socket.SHUT_WR), by_a_copy]
    for round in range(40):
        with connect(address) as connection:
            converse(connection, 40)
            connection.sendall(b"last")
            ends[round % len(ends)](connection)
            for _ in range(3):
                try:
                    connection.send(b"more")
                    raise AssertionError("written after the end")
                except BrokenPipeError:
                    pass
            exactly(connection, b"last")
            assert connection.recv(1) == b"", "more came back"


def threads_share_a_conversation(address):
    """One thread writes, another reads, and they do not wait for each other."""
    with connect(address) as connection:
        converse(connection, 50)
        messages = [os.urandom(random.choice((1, 20, 300, 3000))) for _ in range(2000)]
        writer = threading.Thread(target=lambda: [connection.sendall(message) for message in messages])
        writer.start()
        exactly(connection, b"".join(messages))
        writer.join()


def signals_interrupt_a_conversation(address):
    """As they do the kernel's own calls: a handler that asks for a restart is not seen, another is."""
    libc = ctypes.CDLL(None, use_errno=True)
    seen = []
    # Where handlers differ in this, waiting is left to the kernel. Python's own for Ctrl-C wants no restart.
    before = signal.getsignal(signal.SIGINT)
    for restarts, others in ((True, signal.SIG_DFL), (False, before), (True, before)):
        signal.signal(signal.SIGINT, others)
        signal.signal(signal.SIGALRM, lambda *_: seen.append(restarts))
        signal.siginterrupt(signal.SIGALRM, not restarts)
        with connect(address) as connection:
            converse(connection, 50)
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            if restarts:
                # Only what arrives ends the call.
                timer = threading.Timer(0.2, lambda: os.write(connection.fileno(), b"x"))
                timer.start()
            buffer = ctypes.create_string_buffer(8)
            got = libc.recv(connection.fileno(), buffer, 8, 0)
            assert (got, got < 0 and ctypes.get_errno()) == ((1, False) if restarts else (-1, errno.EINTR)), (restarts, got)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert seen == [True, False, True]


def limits_hold_in_a_conversation(address):
    with connect(address) as connection:
        converse(connection, 50)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, int(LIMIT_S * 1e6)))
        converse(connection, 50)
        began = time.monotonic()
        try:
            connection.recv(1)
            raise AssertionError("there is nothing to receive")
        except BlockingIOError:
            assert time.monotonic() - began > LIMIT_S * 0.9


def options_are_those_of_tcp(address):
    numbers = {(socket.SOL_SOCKET, socket.SO_KEEPALIVE): 1, (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE): 33,
               (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT): 4321, (socket.IPPROTO_IP, socket.IP_TTL): 44}
    connection = socket.socket()
    for (level, option), value in numbers.items():
        connection.setsockopt(level, option, value)
    connection.connect(address)
    after = {(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL): 7, (socket.IPPROTO_IP, socket.IP_TOS): 0x10,
             (socket.IPPROTO_TCP, socket.TCP_NODELAY): 1}
    for (level, option), value in after.items():
        connection.setsockopt(level, option, value)
    untouched = {(socket.IPPROTO_TCP, option): socket.socket().getsockopt(socket.IPPROTO_TCP, option)
                 for option in (socket.TCP_KEEPCNT, socket.TCP_SYNCNT, socket.TCP_CORK)}
    copy = socket.socket(fileno=os.dup(connection.fileno()))
    for end in connection, copy:
        for (level, option), value in (numbers | after | untouched).items():
            assert end.getsockopt(level, option) == value, (level, option, end.getsockopt(level, option))
    for level, option, value, error in (
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 0, errno.EINVAL),
        (socket.IPPROTO_IP, socket.IP_TTL, 300, errno.EINVAL),
        (socket.IPPROTO_TCP, 9999, 1, errno.ENOPROTOOPT),
    ):
        try:
            connection.setsockopt(level, option, value)
            raise AssertionError("it was taken")
        except OSError as refused:
            assert refused.errno == error, refused
    nodelay = (socket.IPPROTO_TCP, socket.TCP_NODELAY)
    copy.setsockopt(*nodelay, 0)
    assert connection.getsockopt(*nodelay) == 0
    for before in 0, 1:
        with socket.socket() as other:
            other.setsockopt(*nodelay, before)
            other.connect(address)
            assert other.getsockopt(*nodelay) == before
            other.sendall(b"e")
    connection.sendall(b"e")
    connection.close()
    copy.close()
    with connect(address, b"o") as connection:
        exactly(connection, b"1 %d" % IDLE_S)


def a_reset_is_seen(address):
    with connect(address, b"r") as connection:
        exactly(connection, b"before")
        try:
            connection.recv(1)
            raise AssertionError("the stream ended as if that were all")
        except ConnectionResetError:
            assert connection.recv(1) == b""


def a_socket_connects_again(address):
    libc = ctypes.CDLL(None, use_errno=True)
    with connect(address) as connection:
        connection.sendall(b"one")
        exactly(connection, b"one")
        connection.settimeout(None)
        nowhere = struct.pack("H14x", socket.AF_UNSPEC)
        assert libc.connect(connection.fileno(), nowhere, len(nowhere)) == 0, os.strerror(ctypes.get_errno())
        connection.connect(address)
        connection.sendall(b"etwo")
        exactly(connection, b"two")


def closing_waits_for_what_was_written(address):
    with connect(address) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 5))
        assert struct.unpack("ii", connection.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)) == (1, 5)
        connection.sendall(bytes(200_000))
        began = time.monotonic()
    assert time.monotonic() - began < 4


def no_descriptor_is_left(address):
    before = os.listdir("/proc/self/fd")
    for turns in [0] * 30 + [40] * 10:
        connection = connect(address)
        converse(connection, turns)
        connection.close()
    # The number is used again, for something else.
    connection = connect(address)
    converse(connection, 40)
    ends = socket.socketpair()
    os.dup2(ends[0].fileno(), connection.fileno())
    for _ in range(40):
        connection.sendall(b"to another")
        exactly(ends[1], b"to another")
        ends[1].sendall(b"from another")
        exactly(connection, b"from another")
    for each in connection, *ends:
        each.close()
    assert os.listdir("/proc/self/fd") == before


def main():
    address = (sys.argv[2], int(sys.argv[3]))
    if sys.argv[1] == "serve":
        serve(address)
    corners = [addresses_are_left_out, a_copy_outlives_the_original, a_child_and_its_parent_write, waiting_bytes_are_seen,
               flags_stay, options_are_those_of_tcp, a_reset_is_seen, a_socket_connects_again,
               closing_waits_for_what_was_written, writing_after_the_end_fails, a_conversation_keeps_its_order,
               a_child_has_connections_of_its_own, a_conversation_may_pause_and_end,
               nothing_is_written_after_the_end, threads_share_a_conversation, signals_interrupt_a_conversation,
               limits_hold_in_a_conversation, signals_disturb_nothing, nothing_is_a_socket_that_is_none, no_descriptor_is_left]
    for corner in corners:
        try:
            corner(address)
        except BaseException as error:
            print(f"{corner.__name__}: {error!r}", file=sys.stderr)
            raise
    print(f"{len(corners)} corners")


main()
