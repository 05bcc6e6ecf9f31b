"""Sends every small UDP datagram a second time, some of them late.

   doubled.py FROM TO DEVICE    frames that namespace TO gets by DEVICE are sent again from namespace FROM
"""
import collections
import ctypes
import heapq
import os
import select
import socket
import sys
import time

CLONE_NEWNET = 0x40000000
ETH_P_ALL = 3
SMALL = 1200
REMEMBERED = 4096
LATE_S = (0, 0, 0.0005, 0.004)


def enter(namespace):
    with open(f"/run/netns/{namespace}") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {namespace}")


def packets(namespace, device):
    enter(namespace)
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    end.bind((device, ETH_P_ALL))
    return end


def main():
    source, target, device = sys.argv[1:]
    came, out = packets(target, device), packets(source, device)
    seen, order, waiting = set(), collections.deque(), []
    count = 0
    print("ready", flush=True)
    while True:
        left = max(0, waiting[0][0] - time.monotonic()) if waiting else None
        if select.select([came], [], [], left)[0]:
            frame, (_, _, kind, _, _) = came.recvfrom(65536)
            # To this host, IPv4, UDP, small, and not one that was sent again.
            if kind == socket.PACKET_HOST and frame[12:14] == b"\x08\0" and frame[23] == 17 and len(frame) < SMALL and frame not in seen:
                seen.add(frame)
                order.append(frame)
                if len(order) > REMEMBERED:
                    seen.remove(order.popleft())
                count += 1
                heapq.heappush(waiting, (time.monotonic() + LATE_S[count % len(LATE_S)], count, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            out.send(heapq.heappop(waiting)[2])


main()
