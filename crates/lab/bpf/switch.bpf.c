/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One 802.1Q switch, as a tc program on the ingress of each of its ports.
 *
 *   frame -> classify (tag, or the port's PVID) -> ingress filter -> destination
 *              unicast with an entry     -> redirect to that port
 *              unicast without, or group -> a clone to every other member of the VLAN
 *
 * A LAG is a port of the tables without a device of its own. A frame that comes in by a member has come in by the LAG; one
 * that leaves by the LAG leaves by the active member that the hash of its flow chooses (lag.h). Which members are active
 * LACP says, in maps of their own.
 *
 * The tables are the device's intent, written by the loader and, on a managed switch, by its agent. Learning and the
 * states of spanning tree are there for switches as they leave the factory; a planned port neither learns nor blocks.
 * Frames for reserved addresses are not relayed but left to whoever listens on the port, as spanning tree and LLDP do.
 * A tag may stand in the frame or, as the kernel keeps it after reception, beside it; both mean the same.
 *
 * src/twin.rs takes the same decisions in Rust; src/ebpf/twin_test.rs holds the two against each other.
 *
 * Source: IEEE 802.1Q-2022, 6.9 (classification), 8.6.1 to 8.6.4 (relay), 8.6.3 (reserved addresses), 8.6.6 (queues).
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "switch_consts.h"
#include "switch_structs.h"
#include "switch_maps.h"

#define UNTAGGED (-1)

/* A frame in the relay. */
struct frame {
	__u16 vlan;	/* what it was classified to */
	__u16 pcp;	/* priority and drop-eligible bits, in place in a TCI */
	__s32 tag;	/* VID of the tag that it carries now, or UNTAGGED */
	__u32 port;	/* where it came in: the LAG, where that was a member */
	__u32 member;	/* the device where it came in */
	__u32 hash;	/* of its flow; what leaves by a LAG needs it */
	__u64 frames;	/* what it counts for: segments of a super-packet */
	__u64 bytes;
};

static __always_inline int drop(__u32 port, __u32 reason)
{
	__u32 slot = port * DROP_REASONS + reason;
	__u64 *count = bpf_map_lookup_elem(&drops, &slot);

	if (count)
		*count += 1;
	return TC_ACT_SHOT;
}

/* Whether frames may leave by a port, unless one of these flags keeps them in. */
static __always_inline int lets_out(const struct port_entry *entry, __u32 unless)
{
	return entry && (entry->flags & (PORT_UP | PORT_BLOCKED | unless)) == PORT_UP;
}

/* The port whose device a frame leaves by: the port itself, or a member of the LAG; negative where none is active. */
static __always_inline __s32 device_of(const struct port_entry *entry, __u32 port, const struct frame *frame)
{
	if (!(entry->flags & PORT_LAG))
		return port;
	return lag_member(bpf_map_lookup_elem(&lags, &port), frame->hash);
}

static __always_inline void learn(const struct fdb_key *source, __u32 port, __u32 ageing_s)
{
	struct learned_entry *known = bpf_map_lookup_elem(&learned, source);
	struct learned_entry entry = { .port = port, .ageing_s = ageing_s, .seen_ns = bpf_ktime_get_ns() };

	if (!known || known->port != port || entry.seen_ns - known->seen_ns > REFRESH_NS)
		bpf_map_update_elem(&learned, source, &entry, BPF_ANY);
}

/* The port of a learned address that has not aged. */
static __always_inline __u32 *where_learned(const struct fdb_key *key)
{
	struct learned_entry *known = bpf_map_lookup_elem(&learned, key);

	if (known && bpf_ktime_get_ns() - known->seen_ns < known->ageing_s * NS_PER_S)
		return &known->port;
	return 0;
}

static __always_inline int has_port(const __u64 *set, __u32 port)
{
	return set[(port / 64) % PORT_WORDS] >> (port % 64) & 1;
}

static __always_inline struct traffic_entry *traffic_of(__u32 port, __u16 vlan)
{
	struct traffic_key key = { .port = port, .vlan = vlan };

	return bpf_map_lookup_elem(&traffic, &key);
}

static __always_inline void count_sent(__u32 port, const struct frame *frame)
{
	struct traffic_entry *entry = traffic_of(port, frame->vlan);

	if (entry) {
		entry->out_frames += frame->frames;
		entry->out_bytes += frame->bytes;
	}
}

/* Counts a frame at the port that it leaves by, and at the member whose device that is. */
static __always_inline void count_out(__u32 port, __u32 device, const struct frame *frame)
{
	count_sent(port, frame);
	if (device != port)
		count_sent(device, frame);
}

/* Counts a frame that came in at the member by which it came. */
static __always_inline void count_member_in(const struct frame *frame)
{
	struct traffic_entry *entry = traffic_of(frame->member, frame->vlan);

	if (entry) {
		entry->in_frames += frame->frames;
		entry->in_bytes += frame->bytes;
	}
}

static __always_inline void strip_tag(struct __sk_buff *skb, struct frame *frame)
{
	if (frame->tag != UNTAGGED && bpf_skb_vlan_pop(skb) == 0)
		frame->tag = UNTAGGED;
}

static __always_inline void set_tag(struct __sk_buff *skb, struct frame *frame)
{
	if (frame->tag == frame->vlan)
		return;
	strip_tag(skb, frame); /* a priority tag, VID 0 */
	if (bpf_skb_vlan_push(skb, bpf_htons(TPID_CUSTOMER), frame->pcp | frame->vlan) == 0)
		frame->tag = frame->vlan;
}

static __always_inline void trace(struct __sk_buff *skb, const struct frame *frame)
{
	skb->cb[0] = frame->tag == UNTAGGED ? 0 : TRACE_TAGGED | frame->tag;
}

static __always_inline void hash_flow(struct __sk_buff *skb, struct frame *frame, __u32 network)
{
	__u8 type[2];

	if (!bpf_skb_load_bytes(skb, network - sizeof(type), type, sizeof(type)))
		frame->hash = lag_hash(skb, (__u16)type[0] << 8 | type[1], network);
}

/* What a flood carries from port to port. */
struct flood {
	struct __sk_buff *skb;
	const __u64 *set;
	const struct frame *frame;
	__u32 kind; /* the flag of ports that such floods do not leave by */
};

/* A callback, because the verifier follows it once instead of PORTS_MAX times. */
static long clone_to(__u32 port, struct flood *flood)
{
	struct port_entry *entry;
	__s32 device;

	if (port >= PORTS_MAX || port == flood->frame->port || !has_port(flood->set, port))
		return 0;
	entry = bpf_map_lookup_elem(&ports, &port);
	if (!entry || !lets_out(entry, flood->kind))
		return 0;
	device = device_of(entry, port, flood->frame);
	if (device < 0)
		return 0;
	count_out(port, device, flood->frame);
	bpf_clone_redirect(flood->skb, PORT_IFINDEX_BASE + device, 0);
	return 0;
}

/* Clones to every member but the port that the frame came in by, and those that keep this kind of floods in. */
static __always_inline int flood(struct __sk_buff *skb, const struct vlan_entry *vlan, struct frame *frame,
				 __u32 kind)
{
	struct flood flood = { .skb = skb, .frame = frame, .kind = kind };

	set_tag(skb, frame);
	flood.set = vlan->tagged;
	bpf_loop(vlan->ports_end, clone_to, &flood, 0);
	strip_tag(skb, frame);
	flood.set = vlan->untagged;
	bpf_loop(vlan->ports_end, clone_to, &flood, 0);
	trace(skb, frame);
	return TC_ACT_STOLEN;
}

static __always_inline int is_broadcast(const __u8 *mac)
{
	return (mac[0] & mac[1] & mac[2] & mac[3] & mac[4] & mac[5]) == 0xff;
}

/* The queue of a port that a frame waits in, by its priority, where there are three (Table 8-5): the band of pfifo_fast. */
static __always_inline __u32 queue_of(__u16 pcp)
{
	__u32 priority = pcp >> PCP_SHIFT;

	return priority >= 6 ? BAND_FIRST : priority >= 4 ? BAND_SECOND : BAND_THIRD;
}

/* 01-80-C2-00-00-00 to -0F are for the neighbour alone. */
static __always_inline int is_reserved(const __u8 *mac)
{
	return mac[0] == 0x01 && mac[1] == 0x80 && mac[2] == 0xc2 && mac[3] == 0 && mac[4] == 0 && mac[5] < 0x10;
}

SEC("tc")
int espalier_switch(struct __sk_buff *skb)
{
	struct frame frame = { .tag = UNTAGGED, .member = skb->ifindex - PORT_IFINDEX_BASE };
	__u32 network = ETH_HEADER_BYTES;
	__u8 header[ETH_HEADER_BYTES];
	struct port_entry *port, *exit;
	struct vlan_entry *vlan;
	struct traffic_entry *count;
	struct fdb_key key = {};
	__s32 device;
	__u32 *out;

	frame.port = frame.member;

	port = bpf_map_lookup_elem(&ports, &frame.port);
	if (!port)
		return TC_ACT_SHOT;
	if (!(port->flags & PORT_UP))
		return drop(frame.port, DROP_PORT_DOWN);
	/* A group address cannot send. */
	if (bpf_skb_load_bytes(skb, 0, header, sizeof(header)) || header[6] & 1)
		return drop(frame.port, DROP_MALFORMED);
	if (is_reserved(header)) {
		drop(frame.port, DROP_RESERVED);
		return TC_ACT_OK;
	}
	if (port->flags & PORT_MEMBER) {
		struct member_entry *member = bpf_map_lookup_elem(&members, &frame.member);

		if (!member || !member->collects)
			return drop(frame.member, DROP_NOT_COLLECTING);
		frame.port = member->lag;
		port = bpf_map_lookup_elem(&ports, &frame.port);
		if (!port || !(port->flags & PORT_UP))
			return drop(frame.port, DROP_PORT_DOWN);
	}

	frame.frames = skb->gso_segs ? skb->gso_segs : 1;
	frame.bytes = skb->len;
	if (skb->vlan_present) {
		if (skb->vlan_proto == bpf_htons(TPID_CUSTOMER)) {
			frame.pcp = skb->vlan_tci & PCP_MASK;
			frame.tag = skb->vlan_tci & VID_MASK;
		}
	} else if (header[ETH_TYPE_OFFSET] == TPID_CUSTOMER >> 8 && header[ETH_TYPE_OFFSET + 1] == (TPID_CUSTOMER & 0xff)) {
		__u8 tci[2];

		if (bpf_skb_load_bytes(skb, ETH_HEADER_BYTES, tci, sizeof(tci)))
			return drop(frame.port, DROP_MALFORMED);
		frame.pcp = (__u16)tci[0] << 8 & PCP_MASK;
		frame.tag = ((__u16)tci[0] << 8 | tci[1]) & VID_MASK;
		frame.bytes -= TAG_BYTES;
		network += TAG_BYTES;
	}

	skb->priority = queue_of(frame.pcp);
	frame.vlan = frame.tag > 0 ? frame.tag : port->pvid;
	if (!frame.vlan)
		return drop(frame.port, DROP_NO_PVID);
	vlan = bpf_map_lookup_elem(&vlans, &frame.vlan);
	if (!vlan)
		return drop(frame.port, DROP_NO_VLAN);
	if (!has_port(vlan->tagged, frame.port) && !has_port(vlan->untagged, frame.port))
		return drop(frame.port, DROP_NOT_MEMBER);

	key.vlan = frame.vlan;
	if (port->flags & PORT_LEARN) {
		__builtin_memcpy(key.mac, header + sizeof(key.mac), sizeof(key.mac));
		learn(&key, frame.port, port->ageing_s);
	}
	if (port->flags & PORT_BLOCKED)
		return drop(frame.port, DROP_BLOCKED);

	count = traffic_of(frame.port, frame.vlan);
	if (!count)
		return TC_ACT_SHOT;
	count->in_frames += frame.frames;
	count->in_bytes += frame.bytes;
	if (frame.member != frame.port)
		count_member_in(&frame);

	if (header[0] & 1) {
		hash_flow(skb, &frame, network);
		if (is_broadcast(header)) {
			count->flooded_broadcast += frame.frames;
			return flood(skb, vlan, &frame, PORT_NO_BROADCAST);
		}
		count->flooded_multicast += frame.frames;
		return flood(skb, vlan, &frame, PORT_NO_MULTICAST);
	}

	__builtin_memcpy(key.mac, header, sizeof(key.mac));
	out = bpf_map_lookup_elem(&fdb, &key);
	if (!out)
		out = where_learned(&key);
	if (!out) {
		count->flooded_unknown += frame.frames;
		hash_flow(skb, &frame, network);
		return flood(skb, vlan, &frame, PORT_NO_UNKNOWN);
	}
	if (*out == frame.port)
		return drop(frame.port, DROP_SAME_PORT);
	if (*out >= PORTS_MAX || !(has_port(vlan->untagged, *out) || has_port(vlan->tagged, *out)))
		return drop(frame.port, DROP_EGRESS_NOT_MEMBER);
	exit = bpf_map_lookup_elem(&ports, out);
	if (!exit || !lets_out(exit, 0))
		return drop(frame.port, DROP_BLOCKED);
	if (exit->flags & PORT_LAG)
		hash_flow(skb, &frame, network);
	device = device_of(exit, *out, &frame);
	if (device < 0)
		return drop(frame.port, DROP_NO_MEMBER);
	if (has_port(vlan->untagged, *out))
		strip_tag(skb, &frame);
	else
		set_tag(skb, &frame);
	count_out(*out, device, &frame);
	trace(skb, &frame);
	skb->cb[1] = device;
	return bpf_redirect(PORT_IFINDEX_BASE + device, 0);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
