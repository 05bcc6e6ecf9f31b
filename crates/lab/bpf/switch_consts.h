/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Numbers shared by the switch program and its loader; src/table.rs and src/ebpf.rs hold the same ones. */
#pragma once

/* Ports of one switch; membership of a VLAN is a bit set of this size. */
#define PORTS_MAX 256
#define PORT_WORDS (PORTS_MAX / 64)

/* Port k of a switch is the device with index PORT_IFINDEX_BASE + k, so that no table has to map one to the other. */
#define PORT_IFINDEX_BASE 16

#define VID_MASK 0x0fff
#define PCP_MASK 0xf000
#define PCP_SHIFT 13

#define ETH_HEADER_BYTES 14
#define ETH_TYPE_OFFSET 12
#define TAG_BYTES 4
#define TPID_CUSTOMER 0x8100

/* port_entry.flags */
#define PORT_UP 1
#define PORT_LEARN 2   /* source addresses are learned */
#define PORT_BLOCKED 4 /* spanning tree has closed it: nothing is relayed */
/* Floods that do not leave by it. */
#define PORT_NO_UNKNOWN 8
#define PORT_NO_MULTICAST 16
#define PORT_NO_BROADCAST 32
#define PORT_LAG 64     /* a LAG: its frames leave by its active members */
#define PORT_MEMBER 128 /* a member of a LAG: its frames come in by the LAG */

/* Values of skb->priority that pfifo_fast serves first, second and last (sch_generic.c: sch_default_prio2band). */
#define BAND_FIRST 7
#define BAND_SECOND 0
#define BAND_THIRD 2

#define NS_PER_S 1000000000ull
/* An address that is seen again is noted again after this long. */
#define REFRESH_NS NS_PER_S

/* Slots of `drops`: DROP_REASONS of them a port. */
#define DROP_PORT_DOWN 0
#define DROP_MALFORMED 1
#define DROP_RESERVED 2
#define DROP_NO_PVID 3
#define DROP_NO_VLAN 4
#define DROP_NOT_MEMBER 5
#define DROP_SAME_PORT 6
#define DROP_EGRESS_NOT_MEMBER 7
#define DROP_BLOCKED 8
#define DROP_NOT_COLLECTING 9
#define DROP_NO_MEMBER 10
#define DROP_REASONS 11

/*
 * What skb->cb holds when the program ends with a frame in hand: in [0] the tag that the frame leaves with, in [1] the port
 * that it leaves by, a member where that is a LAG.
 */
#define TRACE_TAGGED 0x10000
