"""What `disjoint` builds and removes: `removed.py topology`, `removed.py run ESPALIER RI2N LAB GAP_MAX_MS RAILS`.

A torus of 4 x 4 switches; machine m has a port at switch m and another two rows further. Every machine streams to the next.
"""
import json
import pathlib
import re
import subprocess
import sys
import time

SIDE, MACHINES = 4, 8
DOWN_S = 0.3
# How long until the next is removed. A host whose port is up before the switch beyond it forwards asks for its peer's
# Ethernet address in vain, and again only a second later.
UP_S = {"cable": 0.4, "switch": 1.3, "port": 1.3}


def cables():
    """(end, end) of each cable between switches, then of each port of a machine."""
    used = {}

    def port(switch):
        used[switch] = used.get(switch, 0) + 1
        return f"s{switch}:g{used[switch]}"

    between = []
    for row in range(SIDE):
        for column in range(SIDE):
            for other in ((row + 1) % SIDE * SIDE + column, row * SIDE + (column + 1) % SIDE):
                between.append((port(row * SIDE + column), port(other)))
    ports = [(f"m{m}/eth{nic}", port(m + nic * SIDE * SIDE // 2)) for m in range(MACHINES) for nic in range(2)]
    return between, ports


def topology():
    between, ports = cables()
    print("switches: {" + ", ".join(f"s{switch}: {{}}" for switch in range(SIDE * SIDE)) + "}")
    print("links:", *(f"  - {a} -- {b}" for a, b in between), "machines:", sep="\n")
    for machine in range(MACHINES):
        nics = [
            f'eth{nic}: {{mac: "02:00:00:00:{machine:02x}:{nic:02x}", port: "{ports[2 * machine + nic][1]}", rail: {nic}}}'
            for nic in range(2)
        ]
        print(f"  m{machine}: {{nics: {{{', '.join(nics)}}}}}")


def run(espalier, ri2n, lab, gap_max_ms, rails):
    between, ports = cables()
    at = lambda switch: [a for a, b in between + ports if switch in (a.split(":")[0], b.split(":")[0])]
    removals = [("cable", f"{a} -- {b}", [a]) for a, b in between]
    removals += [("switch", f"s{switch}", at(f"s{switch}")) for switch in range(SIDE * SIDE)]
    removals += [("port", host, [host]) for host, _ in ports]
    settings = [pathlib.Path(f"hosts/m{machine}/ri2n.toml").read_text() for machine in range(MACHINES)]
    address = [re.search(r'local = "([^"]+)"', text).group(1) for text in settings]
    inside = lambda machine, *command: subprocess.Popen(
        ["ip", "netns", "exec", f"esp-{lab}-m{machine}", ri2n, "run", "--config", f"hosts/m{machine}/ri2n.toml", "--", *command],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )
    servers = [inside(m, "python3", "paced.py", "serve", address[m], "7000") for m in range(MACHINES)]
    for server in servers:
        assert server.stdout.readline() == "ready\n"
    clients = [inside(m, "python3", "paced.py", "send", address[(m + 1) % MACHINES], "7000") for m in range(MACHINES)]
    time.sleep(3)
    said = json.loads(subprocess.run([ri2n, "status", "--json"], check=True, capture_output=True, text=True).stdout)
    links = [len(connection["links"]) for process in said for connection in process["connections"]]
    assert len(links) == 2 * MACHINES and set(links) == {2}, f"not all streams have two links: {links}"

    def all_of(verb, ends):
        for process in [subprocess.Popen([espalier, "lab", "--name", lab, verb, end], stdout=subprocess.DEVNULL) for end in ends]:
            assert process.wait() == 0, (verb, ends)

    times = []
    for kind, what, ends in removals:
        times.append((time.monotonic(), kind, what))
        all_of("fail", ends)
        time.sleep(DOWN_S)
        all_of("heal", ends)
        time.sleep(UP_S[kind])
    over = time.monotonic()
    assert all(client.poll() is None for client in clients), "a stream ended before all was removed"
    for client in clients:
        client.stdin.close()
    for client in clients:
        client.wait(timeout=60)
    for server in servers:
        server.wait(timeout=60)
    told = [server.stdout.read() for server in servers]
    sent = [int(client.stdout.read().split()[1]) for client in clients]
    assert all(client.returncode == 0 for client in clients), "a connection was lost"
    worst = {}
    for machine, text in enumerate(told):
        end = re.search(r"^end (\d+) (\d+)$", text, re.M)
        assert end, f"m{machine}: the stream to it did not end"
        assert (int(end[1]), int(end[2])) == (sent[machine - 1], 0), f"m{machine}: {end[0]}, of {sent[machine - 1]} bytes"
        for began, lasted in re.findall(r"^gap (\S+) (\S+)$", text, re.M):
            began, lasted = float(began), float(lasted)
            if times[0][0] - 0.05 < began < over:
                _, kind, what = max((event for event in times if event[0] - 0.05 < began), key=lambda event: event[0])
                if lasted > 50:
                    print(f"disjoint: {kind} {what}: the stream to m{machine} stood still for {lasted:.0f} ms")
                worst[kind] = max(worst.get(kind, (0.0, "")), (lasted, f"{what}; the stream to m{machine}"))
    for kind in ("cable", "switch", "port"):
        count = sum(1 for removal in removals if removal[0] == kind)
        gap, what = worst.get(kind, (0.0, "none"))
        print(f"disjoint: rails {rails}: each of {count} of kind {kind} removed: longest gap {gap:.0f} ms ({what})")
    print(f"disjoint: rails {rails}: {MACHINES} streams, 0 connections lost, {sum(sent) >> 20} MB, 0 bytes wrong")
    assert max((gap for gap, _ in worst.values()), default=0) <= float(gap_max_ms), f"a gap is longer than {gap_max_ms} ms"


if sys.argv[1] == "topology":
    topology()
else:
    run(*sys.argv[2:])
