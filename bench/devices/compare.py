"""Reads recordings of switches by espalier, and compares with what the recordings say: see `run`."""

import bz2
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ESPALIER, WORK, PORT = os.environ["ESPALIER"], pathlib.Path(os.environ["WORK"]), os.environ["SNMP_PORT"]
# What espalier asks for, so that snmpsim need not index the rest of a walk.
SERVED = (
    "1.0.8802.1.1.2. 1.2.840.10006.300.43. 1.3.6.1.2.1.1. 1.3.6.1.2.1.2. 1.3.6.1.2.1.10.7. 1.3.6.1.2.1.17. 1.3.6.1.2.1.31. "
    "1.3.6.1.2.1.47.1.1.1.1. 1.3.6.1.4.1.9.9.46.1.3.1.1.2. 1.3.6.1.6.3.1.1.6. 1.3.6.1.6.3.10.2.1. 1.3.111.2.802.1.1."
).split()
BASE_PORT, IF_NAME, IF_DESCR = "1.3.6.1.2.1.17.1.4.1.2", "1.3.6.1.2.1.31.1.1.1.1", "1.3.6.1.2.1.2.2.1.2"
EGRESS, UNTAGGED, VLAN_ROWS = (f"1.3.6.1.2.1.17.7.1.4.3.1.{column}" for column in ("2", "4", "5"))
VLAN_NAME, REM_PORT = "1.3.6.1.2.1.17.7.1.4.3.1.1", "1.0.8802.1.1.2.1.4.1.1.7"
# IANA's numbers of enterprises that make switches.
VENDORS = {
    9: "Cisco", 11: "HP", 43: "3Com", 171: "D-Link", 207: "Allied Telesis", 259: "Edge-Core", 674: "Dell", 890: "Zyxel",
    1916: "Extreme", 1991: "Brocade", 2011: "Huawei", 2272: "Avaya", 2636: "Juniper", 3320: "BDCOM", 3902: "ZTE", 3955: "Linksys",
    4413: "Ubiquiti", 41112: "Ubiquiti", 4526: "Netgear", 4881: "Ruijie", 5651: "Maipu", 6027: "Dell", 6339: "DCN", 6486: "Alcatel",
    7367: "Dell", 8072: "net-snmp", 8886: "Raisecom", 11863: "TP-Link", 14823: "Aruba", 14988: "MikroTik", 25506: "H3C", 30065: "Arista",
    35265: "Eltex", 40310: "Cumulus", 47196: "Aruba", 52642: "FS", 12356: "Fortinet", 1588: "Brocade", 6141: "Ciena", 4329: "Siemens",
    248: "Hirschmann", 3224: "Juniper", 5624: "Enterasys", 1872: "Nortel", 45: "Nortel", 6876: "VMware", 10002: "Ubiquiti",
}


def recordings(folder, parts):
    """Name and rows of every recording of a bridge."""
    files = sorted(folder.glob("*/tests/snmpsim/*.snmprec")) + sorted(folder.glob("*/data/**/*.snmprec*"))
    seen = set()
    for path in files:
        name = re.sub(r"\.snmprec(\.bz2)?$", "", path.name)
        if name in seen or not all(part in name for part in parts):
            continue
        data = path.read_bytes()
        data = bz2.decompress(data) if path.suffix == ".bz2" else data
        rows = {}
        for line in data.decode("utf-8", "surrogateescape").splitlines():
            oid, _, rest = line.lstrip(".").partition("|")
            kind, bar, value = rest.partition("|")
            if bar and (oid + ".").startswith(tuple(SERVED)) and re.fullmatch(r"[0-9.]+", oid):
                rows.setdefault(tuple(map(int, oid.split("."))), (kind, value))
        if column(rows, BASE_PORT):
            seen.add(name)
            yield name, rows


def column(rows, prefix):
    """Values by what stands behind the prefix."""
    root = tuple(map(int, prefix.split(".")))
    return {oid[len(root):]: value for oid, value in rows.items() if oid[: len(root)] == root and len(oid) > len(root)}


def octets(value):
    kind, text = value
    return bytes.fromhex(text) if kind.endswith("x") else text.encode("utf-8", "surrogateescape")


def text(value):
    return octets(value).decode("utf-8", "replace").strip("\0").strip()


class Said:
    """What a recording says of ports and VLANs."""

    def __init__(self, rows):
        self.ports = {index[0]: int(value[1]) for index, value in column(rows, BASE_PORT).items() if len(index) == 1}
        names = {i[0]: text(v) for i, v in column(rows, IF_DESCR).items()}
        names.update({i[0]: text(v) for i, v in column(rows, IF_NAME).items() if text(v)})
        named = collections.Counter(names.get(index) for index in self.ports.values())
        self.names = {p: names[i] for p, i in self.ports.items() if names.get(i) and named[names[i]] == 1}
        self.vlans = {i[0] for c in (VLAN_NAME, EGRESS, UNTAGGED, VLAN_ROWS) for i in column(rows, c) if 1 <= i[0] <= 4094}
        self.lists = {c: {i[0]: octets(v) for i, v in column(rows, c).items()} for c in (EGRESS, UNTAGGED)}
        self.hears = {index[1] for index in column(rows, REM_PORT) if len(index) == 3}
        make = rows.get((1, 3, 6, 1, 2, 1, 1, 2, 0), ("", ""))[1].lstrip(".").split(".")
        number = int(make[6]) if make[:6] == "1 3 6 1 4 1".split() and len(make) > 6 else 0
        self.vendor = VENDORS.get(number, f"enterprise {number}" if number else "unknown")

    def members(self):
        """Members by VLAN of each column, or None where a list names a port that is not there."""
        found = {}
        for column_, lists in self.lists.items():
            digits = all(re.fullmatch(rb"[0-9]+(,[0-9]+)*", one) for one in lists.values() if one.strip(b"\0"))
            for vlan, one in lists.items():
                if not one.strip(b"\0"):
                    ports = set()
                elif digits:
                    ports = {int(number) for number in one.split(b",")}
                else:
                    ports = {8 * at + bit + 1 for at, octet in enumerate(one) for bit in range(8) if octet << bit & 0x80}
                if not ports <= set(self.ports):
                    return None
                found[column_, vlan] = ports
        return found


def espalier(*args):
    done = subprocess.run([ESPALIER, *args], capture_output=True, text=True, errors="replace", timeout=300)
    return done.returncode, done.stdout, done.stderr


def reach(name):
    path = WORK / "credentials.toml"
    path.write_text(f'[default]\ncommunity = "{name}"\n')
    path.chmod(0o600)
    return ["--credentials", str(path), "--port", PORT, "--timeout", "4", "--attempts", "3"]


def vlan_set(words):
    found = set()
    for part in filter(None, words.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def discover(name, said):
    """Whether every port that hears somebody is told of; an error otherwise."""
    code, out, err = espalier("discover", "127.0.0.1", *reach(name))
    if code > 1 or not out.startswith(("#", "switches:")):
        return "wrong", f"discover: {last(err)}"
    told = sum(word in err for word in ("hears", "is left out")) + out.count("port: ")
    if said.hears and not told:
        return "wrong", f"discover: {len(said.hears)} ports hear a neighbour, and none is told"
    return "read", ""


def observe(name, said):
    ports = list(said.names.values())
    if len(ports) < 2:
        return "skipped", "it names fewer than two ports"
    quoted = json.dumps(ports, ensure_ascii=False)
    hosts = "".join(f'  h{n}: {{mac: "02:00:00:00:00:0{n + 1}", port: {json.dumps("sw:" + ports[n])}}}\n' for n in (0, 1))
    (WORK / "topology.yaml").write_text(f"switches:\n  sw: {{mgmt: 127.0.0.1, ports: {quoted}}}\nhosts:\n{hosts}")
    code, _, err = espalier("plan", str(WORK / "topology.yaml"), "--flow-control", "none", "-o", str(WORK / "plan.json"))
    if code:
        return "wrong", f"no topology can name its ports: {last(err)}"
    shutil.rmtree(WORK / "seen", ignore_errors=True)
    code, _, err = espalier("observe", str(WORK / "plan.json"), *reach(name), "-o", str(WORK / "seen"))
    file = WORK / "seen" / "0000-sw.json"
    if not file.exists():
        why = last(err)
        return ("refused" if " refused: " in why else "wrong"), why.partition(" refused: ")[2] or why
    state, members = json.loads(file.read_text())["state"], said.members()
    if not said.vlans or members is None:
        return "wrong", "read, though it has no table of VLANs, or lists of ports that are not there"
    # VLANs that only ports without a name are in are left alone, and not shown.
    shown, named = vlan_set(state["vlans"]), set(said.names)
    ours = {vlan for (_, vlan), ports in members.items() if ports & named} - {1}
    if not ours <= shown or not shown <= said.vlans:
        return "wrong", f"VLANs {state['vlans']}"
    by_name = {port["name"]: port for port in state["ports"]}
    for number, label in said.names.items():
        egress = {vlan for (column_, vlan), ports in members.items() if column_ == EGRESS and number in ports}
        plain = {vlan for vlan in egress if number in members.get((UNTAGGED, vlan), ())}
        port = by_name[label]
        if (vlan_set(port["tagged"]), vlan_set(port["untagged"])) != (egress - plain, plain):
            return "wrong", f"port {label}: tagged {port['tagged']}, untagged {port['untagged']}"
    return "read", f"{len(said.vlans)} VLANs, {len(said.names)} ports"


def last(err):
    return (err.strip().splitlines() or ["no message"])[-1]


def main():
    folder, parts = pathlib.Path(sys.argv[1]), sys.argv[2:]
    data = WORK / "data"
    shutil.rmtree(data, ignore_errors=True)
    shutil.rmtree(WORK / "cache", ignore_errors=True)
    data.mkdir(parents=True)
    switches = {}
    for name, rows in recordings(folder, parts):
        with open(data / f"{name}.snmprec", "w", encoding="utf-8", errors="surrogateescape") as out:
            out.writelines(".".join(map(str, oid)) + "|" + "|".join(rows[oid]) + "\n" for oid in sorted(rows))
        # NAME@VLAN is a context of a recording, and no switch.
        if "@" not in name:
            switches[name] = Said(rows)
    if not switches:
        sys.exit(f"{folder}: no recordings; clone librenms and snmpsim-data into it")
    log = open(WORK / "snmpsim.log", "w+")
    simulator = subprocess.Popen(
        [WORK / "venv/bin/snmpsim-command-responder", f"--data-dir={data}", f"--cache-dir={WORK / 'cache'}",
         f"--agent-udpv4-endpoint=127.0.0.1:{PORT}", "--process-user=root", "--process-group=root"], stdout=log, stderr=log)
    wrong, vendors = 0, collections.defaultdict(collections.Counter)
    try:
        while simulator.poll() is None and "Listening" not in pathlib.Path(log.name).read_text(errors="replace"):
            time.sleep(0.5)
        for name, said in switches.items():
            found = [discover(name, said), observe(name, said)]
            verdict, why = next((one for one in found if one[0] == "wrong"), found[1])
            wrong += verdict == "wrong"
            vendors[said.vendor][verdict] += 1
            print(f"{verdict:8} {said.vendor:15} {name:34} {why[:150]}", flush=True)
    finally:
        simulator.terminate()
        simulator.wait()
    kinds = ("read", "refused", "skipped", "wrong")
    print(f"\n{'vendor':17}" + "".join(f"{kind:>9}" for kind in kinds))
    for vendor in sorted(vendors, key=str.lower):
        print(f"{vendor:17}" + "".join(f"{vendors[vendor][kind]:9}" for kind in kinds))
    total = sum(vendors.values(), collections.Counter())
    print(f"{'all':17}" + "".join(f"{total[kind]:9}" for kind in kinds))
    print(f"read-only, {len(switches)} recorded devices of {len(set(vendors) - {'unknown'})} vendors: {total['read']} read rightly, {total['refused']} refused "
          f"with the reason, {total['skipped']} without ports to read, {total['wrong']} read wrongly")
    return 1 if wrong else 0


sys.exit(main())
