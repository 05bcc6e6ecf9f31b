/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the programs and src/layout.rs share: numbers, keys and values. Fields are in host byte order except addresses and
 * what stands in a frame, which are in transmission order. src/layout.rs reads this file in a test and compares.
 */
#pragma once

/* VLANs that the frames for one destination may be spread over. */
#define CHOICES_MAX 8

/* Flows that are told apart when flowlets are; a power of two. */
#define FLOWLETS_MAX 4096

/* Every VLAN id has its counters. */
#define VLAN_IDS 4096

#define TPID_CUSTOMER 0x8100
#define TPID_SERVICE 0x88a8
#define VID_MASK 0x0fff
#define PCP_SHIFT 13
#define CLASS_MASK 7
/* What a frame may ask for by its DSCP: the classes above are the network's own. */
#define DSCP_CLASS_MAX 5

/* IEEE Std 802: the second local experimental type, which no stack answers. */
#define PROBE_TYPE 0x88b6
#define PROBE_REQUEST 1
#define PROBE_REPLY 2
#define PROBE_WARNING 3 /* of a sick path; the host that hears it decides */
#define PROBE_FLOWS 4    /* the sender's long flows, to all hosts */
#define PROBE_PRIORITY 7 /* TC_PRIO_CONTROL */

/* table_entry.spread */
#define SPREAD_FIRST 0   /* always choice[0] */
#define SPREAD_FLOW 1    /* by the flow's hash */
#define SPREAD_FLOWLET 2 /* a new choice after a pause */
#define SPREAD_PORT 3    /* choice[0], unless the sender chose */
#define SPREAD_PLACED 4  /* choice[0]; the daemon moves long flows */

/*
 * Source ports from here on select a VLAN: port % CHOICES_MAX is its index in the list. They lie above Linux's ephemeral
 * range, which ends at 60999, so that no flow selects a VLAN by chance.
 */
#define PATH_PORTS 61440

/* A flow that sends again after so long is a new one. */
#define FLOW_ENDS_NS 1000000000

/* own.vlan */
#define OWN_VLAN 0x80    /* its tag is taken off */
#define OWN_BY_DSCP 0x40 /* its frames leave in the class of their DSCP; otherwise in that of the low three bits */

/* Slots of `events`. */
#define EVENT_TAGGED_ALREADY 0 /* left as it was: whoever tagged it knows why */
#define EVENT_LINK_LOCAL 1     /* left untagged: for the neighbour alone */
#define EVENT_TRUNCATED 2      /* dropped: no whole Ethernet header */
#define EVENT_NO_VLAN 3        /* dropped: the table has no VLAN for it */
#define EVENT_PUSH_FAILED 4    /* dropped: the kernel had no room for a tag */
#define EVENT_UNTAGGED_IN 5    /* came in without a tag, and was let in */
#define EVENT_FOREIGN_IN 6     /* came in with a tag that is none of ours, and was let in as it was */
#define EVENT_PROBE_ANSWERED 7 /* a probe that went back */
#define EVENTS 8

/*
 * One table holds all that a replacement swaps:
 *   destination        -> where frames for it go
 *   ff:ff:ff:ff:ff:ff  -> where broadcast, multicast and frames for unknown destinations go
 */
struct table_key {
	__u8 mac[6];
	__u16 zero;
};

struct table_entry {
	__u16 choice[CHOICES_MAX]; /* what the tag says: class and VLAN */
	__u16 choices;             /* how many of them count */
	__u8 spread;
	__u8 by_dscp; /* the class is the frame's own */
	__u32 gap_us; /* of SPREAD_FLOWLET: the shortest pause */
	__u32 slot;   /* of `destinations` */
};

/* What is said of each VLAN; 0 of those that are not ours. */
struct own {
	__u8 vlan[VLAN_IDS];
};

/* What one destination was sent. */
struct destination_count {
	__u64 frames;
	__u64 bytes;
};

/* Frames of one VLAN, by processor. Bytes are those of the frame without tag and check sequence. */
struct vlan_count {
	__u64 out_frames;
	__u64 out_bytes;
	__u64 in_frames;
	__u64 in_bytes;
};

struct flowlet {
	__u64 seen_ns;
	__u32 choice;
	__u32 unused;
};

/* A flow of SPREAD_PLACED. Times are of CLOCK_MONOTONIC. */
struct flow {
	__u64 began_ns;
	__u64 seen_ns;
	__u64 bytes;
	__u32 choice;      /* index in the list of VLANs */
	__u32 destination; /* its slot of `destinations` */
};

/* A flow is to move to `choice`: during its first pause of `pause_us`, at the latest at `latest_ns`. */
struct placement {
	__u64 ordered_ns;
	__u64 latest_ns;
	__u32 choice;
	__u32 pause_us;
};

/* What follows the Ethernet header of a probe. */
struct probe {
	__u8 kind;
	__u8 version;
	__u16 vlan;
	__u32 path;
	__u32 sequence;
	__u32 session;
	__u64 sent_ns;
};
