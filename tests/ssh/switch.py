#!/usr/bin/env python3
"""A switch's command line as a login shell: four vendors' grammars over one memory, which outlives the login.

Which one is told by the address that was dialled: STATE/ADDRESS.json holds the vendor, the ports and what the switch is set
to. STATE/ADDRESS.fault holds text; a command with that text in it is refused. Nothing here was taken from the program
under test: what a vendor's guide says is written down a second time.
"""
import json, os, re, sys, termios, tty

STATE = os.path.dirname(os.path.abspath(__file__)) + "/state"
ADDRESS = os.environ["SSH_CONNECTION"].split()[2]
FILE = f"{STATE}/{ADDRESS}.json"


class Refused(Exception):
    pass


def say(text="", end="\r\n"):
    sys.stdout.write(text + end)
    sys.stdout.flush()


def key():
    """One key, without Enter."""
    old = termios.tcgetattr(0)
    tty.setcbreak(0)
    try:
        return os.read(0, 1).decode("latin-1")
    finally:
        termios.tcsetattr(0, termios.TCSANOW, old)


def line():
    """One line, ended by Enter, as the terminal gives it."""
    got = b""
    while True:
        byte = os.read(0, 1)
        if not byte:
            sys.exit(0)
        if byte == b"\n":
            return got.decode("latin-1")
        got += byte


def numbers(words):
    """VLANs: 2-4,7 or 2 to 4 7."""
    text = " ".join(words).replace(" to ", "-").replace(" ", ",")
    found = set()
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if not match:
            raise Refused("bad list of VLANs")
        first, last = int(match[1]), int(match[2] or match[1])
        if not 1 <= first <= last <= 4094:
            raise Refused("VLAN out of range")
        found.update(range(first, last + 1))
    return found


def dashes(vlans, to="-", between=","):
    runs = []
    for vlan in sorted(vlans):
        if runs and runs[-1][1] == vlan - 1:
            runs[-1][1] = vlan
        else:
            runs.append([vlan, vlan])
    return between.join(str(a) if a == b else f"{a}{to}{b}" for a, b in runs)


def address(text):
    digits = re.sub(r"[-:.]", "", text).lower()
    if not re.fullmatch("[0-9a-f]{12}", digits):
        raise Refused("bad address")
    return digits


class Switch:
    pager = None
    ends = ("exit",)

    def __init__(self, memory):
        self.memory, self.now = memory, memory["running"]
        self.context, self.here = [], None

    # What every managed switch keeps to.
    def port(self, name):
        if name not in self.now["ports"]:
            raise Refused("no such port")
        return self.now["ports"][name]

    def exist(self, vlans):
        for vlan in vlans:
            if str(vlan) not in self.now["vlans"]:
                raise Refused(f"VLAN {vlan} is not there")

    def make(self, vlans):
        for vlan in vlans:
            self.now["vlans"].setdefault(str(vlan), "")

    def destroy(self, vlans):
        self.exist(vlans)
        for vlan in vlans:
            if vlan == 1:
                raise Refused("the default VLAN stays")
            if any(entry[0] == vlan for entry in self.now["entries"]):
                raise Refused(f"VLAN {vlan} has static addresses")
            if any(port["pvid"] == vlan for port in self.now["ports"].values()):
                raise Refused(f"VLAN {vlan} is a port's own")
            del self.now["vlans"][str(vlan)]
            for port in self.now["ports"].values():
                for kind in ("tagged", "untagged"):
                    port[kind] = [other for other in port[kind] if other != vlan]

    def join(self, port, vlans, kind):
        self.exist(vlans)
        if port["mode"] != "hybrid":
            raise Refused("the port is in another mode")
        other = "untagged" if kind == "tagged" else "tagged"
        port[other] = sorted(set(port[other]) - vlans)
        port[kind] = sorted(set(port[kind]) | vlans)

    def leave(self, name, port, vlans):
        for vlan in vlans:
            if any(entry[0] == vlan and entry[2] == name for entry in self.now["entries"]):
                raise Refused(f"the port has static addresses in VLAN {vlan}")
        for kind in ("tagged", "untagged"):
            port[kind] = sorted(set(port[kind]) - vlans)

    def enter(self, vlan, mac, name):
        self.exist([vlan])
        port = self.port(name)
        if vlan not in port["tagged"] + port["untagged"]:
            raise Refused("the port is no member of that VLAN")
        self.now["entries"] = [entry for entry in self.now["entries"] if entry[:2] != [vlan, mac]]
        self.now["entries"].append([vlan, mac, name])

    def forget(self, vlan, mac):
        left = [entry for entry in self.now["entries"] if entry[:2] != [vlan, mac]]
        if len(left) == len(self.now["entries"]):
            raise Refused("no such address")
        self.now["entries"] = left

    def save(self):
        self.memory["startup"] = json.loads(json.dumps(self.now))
        self.memory["saves"] = self.memory.get("saves", 0) + 1

    def show(self, lines):
        for number, text in enumerate(lines):
            if self.pager and number and number % 20 == 0:
                say(self.pager, end="")
                if key() == "q":
                    return
                say("\x1b[%dD%s\x1b[%dD" % (len(self.pager), " " * len(self.pager), len(self.pager)), end="")
            say(text)


class Comware(Switch):
    pager = "  ---- More ----"
    error = " % Unrecognized command found at '^' position."

    def prompt(self):
        if not self.context:
            return "<HPE>"
        return "[HPE%s]" % "".join("-" + part for part in self.context[1:])

    def command(self, words):
        where = self.context[-1] if self.context else None
        match words:
            case ["quit"]:
                self.context = self.context[:-1]
            case ["return"]:
                self.context = []
            case ["display", "current-configuration"]:
                self.show(self.running())
            case ["save", "force"] if where is None:
                say("Validating file. Please wait...")
                self.save()
                say("Saved the current configuration to mainboard device successfully.")
            case ["system-view"] if where is None:
                self.context = ["system"]
                say("System View: return to User View with Ctrl+Z.")
            case _ if where is None:
                raise Refused
            case ["interface", name]:
                self.port(name)
                self.context, self.here = ["system", name], name
            case ["vlan", *rest]:
                self.make(numbers(rest))
                self.context = ["system"] if "to" in rest else ["system", "vlan" + rest[0]]
            case ["undo", "vlan", *rest]:
                self.destroy(numbers(rest))
            case ["name", text] if where.startswith("vlan"):
                self.now["vlans"][where[4:]] = text
            case ["undo", "stp", "global", "enable"]:
                self.now["stp"] = False
            case ["stp", "global", "enable"]:
                self.now["stp"] = True
            case _ if where == self.here:
                self.of_port(words, self.port(where))
            case _:
                raise Refused

    def of_port(self, words, port):
        match words:
            case ["shutdown"]:
                port["down"] = True
            case ["undo", "shutdown"]:
                port["down"] = False
            case ["flow-control"]:
                port["pause"] = True
            case ["undo", "flow-control"]:
                port["pause"] = False
            case ["port", "link-type", "hybrid"]:
                port["mode"] = "hybrid"
            case ["port", "hybrid", "pvid", "vlan", vlan]:
                port["pvid"] = int(vlan)
            case ["undo", "port", "hybrid", "pvid"]:
                port["pvid"] = 1
            case ["port", "hybrid", "vlan", *rest, ("tagged" | "untagged") as kind]:
                self.join(port, numbers(rest), kind)
            case ["undo", "port", "hybrid", "vlan", *rest]:
                self.leave(self.here, port, numbers(rest))
            case ["mac-address", "static", mac, "vlan", vlan]:
                self.enter(int(vlan), address(mac), self.here)
            case ["undo", "mac-address", "static", mac, "vlan", vlan]:
                self.forget(int(vlan), address(mac))
            case _:
                raise Refused

    def running(self):
        yield from ("#", " version 7.1.070, Release 3507P09", "#", " sysname HPE", "#", " irf mac-address persistent timer", "#")
        bare = {int(vlan) for vlan, name in self.now["vlans"].items() if not name}
        for run in dashes(bare, " to ").split(","):
            yield from (f"vlan {run}", "#")
        for vlan, name in self.now["vlans"].items():
            if name:
                yield from (f"vlan {vlan}", f" name {name}", "#")
        yield from (" stp global enable" if self.now["stp"] else " undo stp global enable", "#", "interface NULL0", "#")
        yield from ("interface Vlan-interface1", " ip address dhcp-alloc", "#")
        for name, port in self.now["ports"].items():
            yield from (f"interface {name}", " port link-mode bridge")
            if port["mode"] == "hybrid":
                yield " port link-type hybrid"
                if 1 not in port["tagged"] + port["untagged"]:
                    yield " undo port hybrid vlan 1"
                for kind in ("tagged", "untagged"):
                    if port[kind]:
                        yield f" port hybrid vlan {dashes(port[kind], ' to ', ' ')} {kind}"
                if port["pvid"] != 1:
                    yield f" port hybrid pvid vlan {port['pvid']}"
            if port["down"]:
                yield " shutdown"
            if port["pause"]:
                yield " flow-control"
            for vlan, mac, at in self.now["entries"]:
                if at == name:
                    yield f" mac-address static {mac[:4]}-{mac[4:8]}-{mac[8:]} vlan {vlan}"
            yield "#"
        yield from ("line vty 0 63", " authentication-mode scheme", "#", "return")


def colons(mac):
    return ":".join(mac[at : at + 2] for at in range(0, 12, 2))


class CiscoSb(Switch):
    error = "% Unrecognized command"

    def prompt(self):
        return "sg300" + {None: "#", "config": "(config)#", "vlan": "(config-vlan)#"}.get(
            self.context[-1] if self.context else None, "(config-if)#"
        )

    def command(self, words):
        where = self.context[-1] if self.context else None
        words = [re.sub("^gigabitethernet", "gi", word) for word in words]
        match words:
            case ["exit"]:
                self.context = self.context[:-1]
            case ["end"]:
                self.context = []
            case ["terminal", "datadump"] if where is None:
                pass
            case ["show", "running-config"] if where is None:
                self.show(self.running())
            case ["show", "interfaces", "status", name] if where is None:
                self.port(name)
                say(f"{name}   1G-Copper   Full   1000   Enabled   Off   Up")
            case ["copy", "running-config", "startup-config"] if where is None:
                say("Overwrite file [startup-config].... (Y/N)[N] ?", end="")
                answer = key()
                say(answer)
                if answer.lower() == "y":
                    self.save()
                    say("01-Jan-2026 01:01:01 %COPY-I-FILECPY: Files Copy - source URL running-config destination URL startup-config")
            case ["configure"] if where is None:
                self.context = ["config"]
            case _ if where is None:
                raise Refused
            case ["vlan", "database"]:
                self.context = ["config", "vlan"]
            case ["vlan", rest] if where == "vlan":
                self.make(numbers([rest]))
            case ["no", "vlan", rest] if where == "vlan":
                self.destroy(numbers([rest]))
            case ["interface", "vlan", vlan]:
                self.exist([int(vlan)])
                self.context = ["config", "vlan " + vlan]
            case ["name", text] if where.startswith("vlan "):
                self.now["vlans"][where[5:]] = text
            case ["interface", name]:
                self.port(name)
                self.context, self.here = ["config", name], name
            case ["spanning-tree"]:
                self.now["stp"] = True
            case ["no", "spanning-tree"]:
                self.now["stp"] = False
            case ["mac", "address-table", "static", mac, "vlan", vlan, "interface", name, "permanent"]:
                self.enter(int(vlan), address(mac), name)
            case ["no", "mac", "address-table", "static", mac, "vlan", vlan]:
                self.forget(int(vlan), address(mac))
            case _ if where == self.here:
                self.of_port(words, self.port(where))
            case _:
                raise Refused

    def of_port(self, words, port):
        match words:
            case ["shutdown"]:
                port["down"] = True
            case ["no", "shutdown"]:
                port["down"] = False
            case ["flowcontrol", ("on" | "off") as state]:
                port["pause"] = state == "on"
            case ["switchport", "mode", "general"]:
                port["mode"] = "hybrid"
            case ["switchport", "general", "allowed", "vlan", "add", vlans, ("tagged" | "untagged") as kind]:
                self.join(port, numbers([vlans]), kind)
            case ["switchport", "general", "allowed", "vlan", "remove", vlans]:
                self.leave(self.here, port, numbers([vlans]))
            case ["switchport", "general", "pvid", vlan]:
                self.exist([int(vlan)])
                port["pvid"] = int(vlan)
            case ["no", "switchport", "general", "pvid"]:
                port["pvid"] = 1
            case ["switchport", "general", "acceptable-frame-type", ("tagged-only" | "all") as frames]:
                port["frames"] = frames
            case _:
                raise Refused

    def running(self):
        yield from ("config-file-header", "sg300", "v1.4.11.5 / R800_NIK_1_4_220_026", "@", "!")
        extra = {int(vlan) for vlan in self.now["vlans"]} - {1}
        if extra:
            yield from ("vlan database", f"vlan {dashes(extra)}", "exit")
        yield from ("hostname sg300", "username admin password encrypted 0123456789abcdef privilege 15", "ip ssh server")
        for vlan, mac, name in self.now["entries"]:
            yield f"mac address-table static {colons(mac)} vlan {vlan} interface {name.replace('gi', 'gigabitethernet')} permanent"
        if not self.now["stp"]:
            yield "no spanning-tree"
        yield from ("!", "interface vlan 1", " ip address 192.0.2.1 255.255.255.0", " no ip address dhcp", "!")
        for vlan, name in self.now["vlans"].items():
            if name:
                yield from (f"interface vlan {vlan}", f" name {name}", "!")
        for name, port in self.now["ports"].items():
            yield f"interface {name.replace('gi', 'gigabitethernet')}"
            if port["down"]:
                yield " shutdown"
            if port["pause"]:
                yield " flowcontrol on"
            if port["mode"] == "hybrid":
                yield " switchport mode general"
                if port["frames"] == "tagged-only":
                    yield " switchport general acceptable-frame-type tagged-only"
                for kind in ("tagged", "untagged"):
                    vlans = set(port[kind]) - ({1} if kind == "untagged" else set())
                    if vlans:
                        yield f" switchport general allowed vlan add {dashes(vlans)} {kind}"
                if 1 not in port["untagged"]:
                    yield " switchport general allowed vlan remove 1"
                if port["pvid"] != 1:
                    yield f" switchport general pvid {port['pvid']}"
            yield "!"
        yield "exit"


class Fastpath(Switch):
    pager = "--More-- or (q)uit"
    error = "% Invalid input detected at '^' marker."

    def __init__(self, memory):
        super().__init__(memory)
        self.privileged = False

    def prompt(self):
        if not self.privileged:
            return "(M4100) >"
        where = self.context[-1] if self.context else None
        mode = {None: "", "vlan": "(Vlan)", "config": "(Config)"}.get(where, f"(Interface {where})")
        return f"(M4100) {mode}#"

    def command(self, words):
        where = self.context[-1] if self.context else None
        match words:
            case ["enable"]:
                say("Password:", end="")
                old = termios.tcgetattr(0)
                new = termios.tcgetattr(0)
                new[3] &= ~termios.ECHO
                termios.tcsetattr(0, termios.TCSANOW, new)
                self.privileged = line() == "enable secret"
                termios.tcsetattr(0, termios.TCSANOW, old)
                say()
                if not self.privileged:
                    say("Incorrect Password!")
            case _ if not self.privileged:
                raise Refused
            case ["exit"]:
                self.context = self.context[:-1]
            case ["terminal", "length", "0"] if where is None:
                raise Refused
            case ["show", "running-config"] if where is None:
                self.show(self.running())
            case ["show", "port", name] if where is None:
                self.port(name)
                say(f"{name}   Enable   Auto   1000 Full   Up   Enable   Enable   long")
            case ["write", "memory"] if where is None:
                say("This operation may take a few minutes.")
                say("Are you sure you want to save? (y/n) ", end="")
                answer = key()
                say(answer)
                if answer == "y":
                    self.save()
                    say("Configuration Saved!")
            case ["vlan", "database"] if where is None:
                self.context = ["vlan"]
            case ["configure"] if where is None:
                self.context = ["config"]
            case ["vlan", "name", vlan, text] if where == "vlan":
                self.exist([int(vlan)])
                self.now["vlans"][vlan] = text
            case ["vlan", rest] if where == "vlan":
                self.make(numbers([rest]))
            case ["no", "vlan", rest] if where == "vlan":
                self.destroy(numbers([rest]))
            case ["interface", name] if where == "config":
                self.port(name)
                self.context, self.here = ["config", name], name
            case ["spanning-tree"] if where == "config":
                self.now["stp"] = True
            case ["no", "spanning-tree"] if where == "config":
                self.now["stp"] = False
            case ["mac", "address-table", "static", mac, "vlan", vlan, "interface", name] if where == "config":
                self.enter(int(vlan), address(mac), name)
            case ["no", "mac", "address-table", "static", mac, "vlan", vlan] if where == "config":
                self.forget(int(vlan), address(mac))
            case _ if where == self.here and where is not None:
                self.of_port(words, self.port(where))
            case _:
                raise Refused

    def of_port(self, words, port):
        match words:
            case ["shutdown"]:
                port["down"] = True
            case ["no", "shutdown"]:
                port["down"] = False
            case ["flowcontrol", "symmetric"]:
                port["pause"] = True
            case ["no", "flowcontrol"]:
                port["pause"] = False
            case ["switchport", "mode", "general"]:
                port["mode"] = "hybrid"
            case ["vlan", "ingressfilter"]:
                port["filter"] = True
            case ["no", "vlan", "ingressfilter"]:
                port["filter"] = False
            case ["vlan", "participation", "include", vlans]:
                self.exist(numbers([vlans]))
                tags = set(port.setdefault("tagging", []))
                port["mode"] = "hybrid"
                self.join(port, numbers([vlans]) & tags, "tagged")
                self.join(port, numbers([vlans]) - tags, "untagged")
            case ["vlan", "participation", "exclude", vlans]:
                self.leave(self.here, port, numbers([vlans]))
            case ["vlan", "tagging", vlans]:
                port["tagging"] = sorted(set(port.get("tagging", [])) | numbers([vlans]))
                self.join(port, numbers([vlans]) & set(port["untagged"]), "tagged")
            case ["no", "vlan", "tagging", vlans]:
                port["tagging"] = sorted(set(port.get("tagging", [])) - numbers([vlans]))
                self.join(port, numbers([vlans]) & set(port["tagged"]), "untagged")
            case ["vlan", "pvid", vlan]:
                self.exist([int(vlan)])
                port["pvid"] = int(vlan)
            case ["no", "vlan", "pvid"]:
                port["pvid"] = 1
            case ["vlan", "acceptframe", ("all" | "vlanonly") as frames]:
                port["frames"] = "tagged-only" if frames == "vlanonly" else "all"
            case _:
                raise Refused

    def running(self):
        yield from ("!Current Configuration:", "!", '!System Description "M4100-26G"', '!System Up Time  "0 days 1 hrs"', "!")
        extra = {int(vlan) for vlan in self.now["vlans"]} - {1}
        if extra:
            yield from ("vlan database", f"vlan {dashes(extra)}")
            for vlan, name in self.now["vlans"].items():
                if name:
                    yield f'vlan name {vlan} "{name}"'
            yield "exit"
        yield from ("configure", 'username "admin" password 0123 level 15 encrypted', "line console", "exit", "line telnet", "exit")
        if not self.now["stp"]:
            yield "no spanning-tree"
        yield "!"
        for name, port in self.now["ports"].items():
            yield f"interface {name}"
            if port["down"]:
                yield "shutdown"
            if port["pause"]:
                yield "flowcontrol symmetric"
            if port["filter"]:
                yield "vlan ingressfilter"
            if port["pvid"] != 1:
                yield f"vlan pvid {port['pvid']}"
            if port["frames"] == "tagged-only":
                yield "vlan acceptframe vlanonly"
            if 1 not in port["untagged"]:
                yield "vlan participation exclude 1"
            others = (set(port["tagged"]) | set(port["untagged"])) - {1}
            if others:
                yield f"vlan participation include {dashes(others)}"
            if port["tagged"]:
                yield f"vlan tagging {dashes(port['tagged'])}"
            yield from ("exit", "!")
        for vlan, mac, name in self.now["entries"]:
            yield f"mac address-table static {colons(mac)} vlan {vlan} interface {name}"
        yield "exit"


class RouterOs(Switch):
    def prompt(self):
        return "[admin@MikroTik] > "

    error = "bad command name (line 1 column 1)"

    def command(self, words):
        if words == ["/export", "terse"]:
            return self.show(self.running())
        if words[:2] == [":if", "([:len"]:
            if words[4].split('"')[1] not in self.now["ports"]:
                say("no such item")
            return None
        if words[:4] == ["/system", "note", "set", words[3]] and words[3].startswith("note="):
            self.now["note"] = words[3][5:]
            return self.save()
        verb = next((at for at, word in enumerate(words) if word in ("add", "set", "remove")), None)
        if verb is None:
            raise Refused
        menu, finding, find, settings = " ".join(words[:verb]), False, {}, {}
        for word in words[verb + 1 :]:
            if word in ("[", "]", "find"):
                finding = word != "]"
                continue
            name, _, value = word.partition("=")
            (find if finding else settings)[name] = value
        bridge = self.now.setdefault("bridge", None)
        members = self.now.setdefault("members", {})
        match (menu, words[verb]):
            case ("/interface ethernet", "set"):
                port = self.port(find["default-name"])
                if "disabled" in settings:
                    port["down"] = settings["disabled"] == "yes"
                if "rx-flow-control" in settings:
                    port["pause"] = (settings["rx-flow-control"], settings["tx-flow-control"]) == ("on", "on")
            case ("/interface bridge", "add"):
                if bridge:
                    raise Refused("failure: already have interface with such name")
                self.now["bridge"] = {"name": settings["name"], "filtering": settings["vlan-filtering"]}
                self.now["stp"] = settings.get("protocol-mode") != "none"
            case ("/interface bridge", "set"):
                if not bridge or bridge["name"] != find["name"]:
                    raise Refused("no such item")
                bridge["filtering"] = settings["vlan-filtering"]
            case ("/interface bridge", "remove"):
                self.now["bridge"], self.now["stp"] = None, True
            case ("/interface bridge port", "add"):
                port = self.port(settings["interface"])
                if not bridge or settings["interface"] in members:
                    raise Refused("failure: device already added as bridge port")
                members[settings["interface"]] = True
                self.ingress(port, settings)
            case ("/interface bridge port", "set"):
                if find["interface"] not in members:
                    raise Refused("no such item")
                self.ingress(self.port(find["interface"]), settings)
            case ("/interface bridge port", "remove"):
                for name in [name for name in members if find.get("interface", name) == name]:
                    del members[name]
            case ("/interface bridge vlan", "add"):
                if settings["vlan-ids"] in self.now["vlans"]:
                    raise Refused("failure: vlan already added")
                self.now["vlans"][settings["vlan-ids"]] = ""
                self.lists(int(settings["vlan-ids"]), settings)
            case ("/interface bridge vlan", "set"):
                self.exist([int(find["vlan-ids"])])
                self.lists(int(find["vlan-ids"]), settings)
            case ("/interface bridge vlan", "remove"):
                for vlan in [vlan for vlan in self.now["vlans"] if vlan != "1" and find.get("vlan-ids", vlan) == vlan]:
                    self.lists(int(vlan), {"tagged": "", "untagged": ""})
                    del self.now["vlans"][vlan]
            case ("/interface bridge host", "add"):
                mac = address(settings["mac-address"])
                self.now["entries"].append([int(settings["vid"]), mac, settings["interface"]])
            case ("/interface bridge host", "remove"):
                if "vid" in find:
                    self.forget(int(find["vid"]), address(find["mac-address"]))
                else:
                    self.now["entries"] = []
            case _:
                raise Refused
        self.save()

    def ingress(self, port, settings):
        port["pvid"] = int(settings["pvid"])
        port["frames"] = "tagged-only" if settings["frame-types"] == "admit-only-vlan-tagged" else "all"

    def lists(self, vlan, settings):
        for kind in ("tagged", "untagged"):
            names = [name for name in settings.get(kind, "").split(",") if name]
            for name, port in self.now["ports"].items():
                port[kind] = sorted(set(port[kind]) - {vlan} | ({vlan} if name in names else set()))

    def running(self):
        bridge = self.now.get("bridge")
        yield "# 2026-01-01 01:01:01 by RouterOS 7.12"
        if bridge:
            mode = "" if self.now["stp"] else " protocol-mode=none"
            yield f"/interface bridge add comment=\"the fabric\" name={bridge['name']}{mode} vlan-filtering={bridge['filtering']}"
        for name, port in self.now["ports"].items():
            words = (["comment=\"up link\""] if name == "ether1" else []) + (["disabled=yes"] if port["down"] else [])
            if port["pause"]:
                words += ["rx-flow-control=on", "tx-flow-control=on"]
            if words:
                yield f"/interface ethernet set [ find default-name={name} ] {' '.join(words)}"
        for name in self.now.get("members", {}):
            port = self.now["ports"][name]
            frames = " frame-types=admit-only-vlan-tagged" if port["frames"] == "tagged-only" else ""
            pvid = f" pvid={port['pvid']}" if port["pvid"] != 1 else ""
            yield f"/interface bridge port add bridge={bridge['name']}{frames} interface={name} learn=no{pvid}"
        for vlan in self.now["vlans"]:
            if vlan != "1":
                lists = ""
                for kind in ("tagged", "untagged"):
                    names = [name for name, port in self.now["ports"].items() if int(vlan) in port[kind]]
                    if names:
                        lists += f" {kind}={','.join(names)}"
                yield f"/interface bridge vlan add bridge={bridge['name']}{lists} vlan-ids={vlan}"
        for vlan, mac, name in self.now["entries"]:
            yield f"/interface bridge host add bridge={bridge['name']} interface={name} mac-address={colons(mac).upper()} vid={vlan}"
        yield "/ip address add address=192.0.2.1/24 interface=ether9 network=192.0.2.0"
        if self.now.get("note"):
            yield f"/system note set note={self.now['note']} show-at-login=no"


def main():
    kinds = {"comware7": Comware, "cisco-sb": CiscoSb, "fastpath": Fastpath, "routeros": RouterOs}
    memory = json.load(open(FILE))
    if memory["kind"] == "routeros" and not os.environ["USER"].endswith("+cet1024w"):
        say("\x1b[6n", end="")
        return
    switch = kinds[memory["kind"]](memory)
    say("\r\n*** Authorized access only ***\r\n")
    while True:
        say(switch.prompt(), end="")
        text = line()
        words = text.split()
        if not words:
            continue
        switch.memory = json.load(open(FILE))
        switch.now = switch.memory["running"]
        try:
            fault = open(f"{STATE}/{ADDRESS}.fault").read().strip() if os.path.exists(f"{STATE}/{ADDRESS}.fault") else None
            if fault and fault in text:
                raise Refused("")
            with open(f"{STATE}/{ADDRESS}.log", "a") as log:
                log.write(text + "\n")
            switch.command(words)
        except (Refused, KeyError, ValueError, IndexError) as why:
            say("         ^")
            reason = str(why) if isinstance(why, Refused) and str(why) else ""
            say(switch.error if not reason else f"% {reason}" if memory["kind"] != "routeros" else f"failure: {reason}")
            continue
        draft = f"{FILE}.{os.getpid()}"
        with open(draft, "w") as out:
            json.dump(switch.memory, out)
        os.replace(draft, FILE)


main()
