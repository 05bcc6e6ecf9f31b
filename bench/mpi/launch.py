"""Starts jobs of Open MPI whose machines are network namespaces."""
import os
import shlex


def remote_shell(folder, places):
    """Writes what mpirun starts its daemons by: a program in the namespace of an address, `places[address]`, instead of another machine.

    Under `ri2n run`, mpirun has its daemons start under it too."""
    path = os.path.join(folder, "remote-shell")
    cases = "".join(f"{address}) place={place} ;;\n" for address, place in places.items())
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nwhile [ "${{1#-}}" != "$1" ]; do shift; done\ncase $1 in\n{cases}*) exit 1 ;;\nesac\nshift\n'
                   f'export TMPDIR={shlex.quote(folder)}/"$place"\nmkdir -p "$TMPDIR"\n'
                   f'exec ip netns exec "$place" setsid /bin/sh -c "$*"\n')
    os.chmod(path, 0o700)
    return path


def command(folder, places, network, program):
    """The words of mpirun for a rank of a program on every address of `places`, over TCP in this network."""
    settings = {"plm_rsh_agent": remote_shell(folder, places), "plm_rsh_no_tree_spawn": "1", "pml": "ob1", "btl": "tcp,self",
                "oob_tcp_if_include": network, "btl_tcp_if_include": network, "mpi_yield_when_idle": "1"}
    return ["mpirun", "--allow-run-as-root", "--wdir", folder, *[part for pair in settings.items() for part in ("--mca", *pair)],
            "-np", str(len(places)), "--host", ",".join(places), *program]
