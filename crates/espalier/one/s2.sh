# switch s2 (powerconnect-5324), written by espalier for linux-bridge
# plan 6fee72d86430fc330da4f27ae58cc55233ef1913465fed7ba655ecd0983378e5
# full configuration, for a switch on which nothing is set up
# driver tested: what it writes has carried traffic
set -eu
ip link delete dev espalier type bridge 2>/dev/null || :
ip -batch - <<'EOF'
link add name espalier type bridge vlan_filtering 1 vlan_default_pvid 0 stp_state 0 mcast_snooping 0 vlan_stats_enabled 1 vlan_stats_per_port 1
link set dev g1 down
link set dev g2 down
link set dev g3 down
link set dev g4 down
link set dev g5 down
link set dev g6 down
link set dev g7 down
link set dev g8 down
link set dev g9 down
link set dev g10 down
link set dev g11 down
link set dev g12 down
link set dev g13 down
link set dev g14 down
link set dev g15 down
link set dev g16 down
link set dev g17 down
link set dev g18 down
link set dev g19 down
link set dev g20 down
link set dev g21 down
link set dev g22 down
link set dev g23 down
link set dev g24 down
link set dev g1 master espalier
link set dev g1 type bridge_slave learning off
link set dev g1 addrgenmode none
link set dev g2 master espalier
link set dev g2 type bridge_slave learning off
link set dev g2 addrgenmode none
link set dev g3 master espalier
link set dev g3 type bridge_slave learning off
link set dev g3 addrgenmode none
link set dev g4 master espalier
link set dev g4 type bridge_slave learning off
link set dev g4 addrgenmode none
link set dev g5 master espalier
link set dev g5 type bridge_slave learning off
link set dev g5 addrgenmode none
link set dev g6 master espalier
link set dev g6 type bridge_slave learning off
link set dev g6 addrgenmode none
link set dev g7 master espalier
link set dev g7 type bridge_slave learning off
link set dev g7 addrgenmode none
link set dev g8 master espalier
link set dev g8 type bridge_slave learning off
link set dev g8 addrgenmode none
link set dev g9 master espalier
link set dev g9 type bridge_slave learning off
link set dev g9 addrgenmode none
link set dev g10 master espalier
link set dev g10 type bridge_slave learning off
link set dev g10 addrgenmode none
link set dev g11 master espalier
link set dev g11 type bridge_slave learning off
link set dev g11 addrgenmode none
link set dev g12 master espalier
link set dev g12 type bridge_slave learning off
link set dev g12 addrgenmode none
link set dev g13 master espalier
link set dev g13 type bridge_slave learning off
link set dev g13 addrgenmode none
link set dev g14 master espalier
link set dev g14 type bridge_slave learning off
link set dev g14 addrgenmode none
link set dev g15 master espalier
link set dev g15 type bridge_slave learning off
link set dev g15 addrgenmode none
link set dev g16 master espalier
link set dev g16 type bridge_slave learning off
link set dev g16 addrgenmode none
link set dev g17 master espalier
link set dev g17 type bridge_slave learning off
link set dev g17 addrgenmode none
link set dev g18 master espalier
link set dev g18 type bridge_slave learning off
link set dev g18 addrgenmode none
link set dev g19 master espalier
link set dev g19 type bridge_slave learning off
link set dev g19 addrgenmode none
link set dev g20 master espalier
link set dev g20 type bridge_slave learning off
link set dev g20 addrgenmode none
link set dev g21 master espalier
link set dev g21 type bridge_slave learning off
link set dev g21 addrgenmode none
link set dev g22 master espalier
link set dev g22 type bridge_slave learning off
link set dev g22 addrgenmode none
link set dev g23 master espalier
link set dev g23 type bridge_slave learning off
link set dev g23 addrgenmode none
link set dev g24 master espalier
link set dev g24 type bridge_slave learning off
link set dev g24 addrgenmode none
EOF
bridge -batch - <<'EOF'
vlan add dev g1 vid 2-3
vlan add dev g2 vid 3
vlan add dev g3 vid 2-3 untagged
vlan add dev g3 vid 3 pvid untagged
fdb replace 02:00:00:00:00:03 dev g3 master static vlan 2
fdb replace 02:00:00:00:00:01 dev g2 master static vlan 3
fdb replace 02:00:00:00:00:02 dev g1 master static vlan 3
fdb replace 02:00:00:00:00:03 dev g3 master static vlan 3
fdb replace 02:00:00:00:00:04 dev g2 master static vlan 3
EOF
ethtool -A g1 rx on tx on || echo "g1: the card refuses PAUSE" >&2
ethtool -A g2 rx on tx on || echo "g2: the card refuses PAUSE" >&2
ethtool -A g3 rx on tx on || echo "g3: the card refuses PAUSE" >&2
ip -batch - <<'EOF'
link set dev espalier up
EOF
ip -batch - <<'EOF'
link set dev g1 up
link set dev g2 up
link set dev g3 up
EOF
