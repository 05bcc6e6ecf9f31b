/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Layout of map keys and values. All fields are in host byte order except addresses, which are in transmission order. */
#pragma once

#include "lag.h"

struct port_entry {
	__u16 pvid; /* 0: untagged frames are dropped */
	__u16 flags;
	__u32 ageing_s; /* how long an address that was learned here holds */
};

/* A port that is a member of a LAG. */
struct member_entry {
	__u16 lag;      /* the port of the LAG */
	__u16 collects; /* whether frames may come in */
};

struct vlan_entry {
	__u64 tagged[PORT_WORDS];   /* bit k: port k sends this VLAN with a tag */
	__u64 untagged[PORT_WORDS]; /* bit k: port k sends this VLAN without one */
	__u32 ports_end;            /* one more than the highest member */
	__u32 unused;
};

struct fdb_key {
	__u8 mac[6];
	__u16 vlan;
};

/* Where an address was last seen. */
struct learned_entry {
	__u32 port;
	__u32 ageing_s;
	__u64 seen_ns;
};

struct traffic_key {
	__u16 port;
	__u16 vlan;
};

/* Frames of one VLAN at one port. Bytes are those of the frame without tag and check sequence. */
struct traffic_entry {
	__u64 in_frames;
	__u64 in_bytes;
	__u64 out_frames;
	__u64 out_bytes;
	__u64 flooded_unknown;
	__u64 flooded_multicast;
	__u64 flooded_broadcast;
};
