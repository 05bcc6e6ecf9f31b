/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A host that tags its own frames, as two tc programs on its network device.
 *
 *   stack ─▶ egress:  destination -> VLAN and class by the table -> push the tag ─▶ cable
 *   stack ◀─ ingress: VLAN is ours -> pop the tag, count              ◀─ cable
 *                     a probe's request -> swap addresses, back into the same VLAN
 *
 * The stack sees one flat network, as it would without VLANs. The tag is pushed where the kernel keeps it, beside the
 * frame: a device that inserts tags itself does, for any other the kernel does, super-packets included.
 *
 * Whatever is not ours is left alone, and other tc programs have their turn: a frame that carries a tag already, one for
 * the neighbour alone (spanning tree, LACP, LLDP), a tag that comes in but is none of ours.
 *
 * src/twin.rs takes the same decisions in Rust; src/bpf/twin_test.rs holds the two against each other.
 *
 * Source: Miura et al. 2005, 3.1 (what the driver does), 3.2 (modes); Vanini et al., NSDI 2017 (flowlets: a pause longer
 * than the paths differ lets a flow change its path without being reordered); Knuth, TAOCP 3, 6.4 (steps of the golden
 * ratio fall into the largest gap); Al-Fares et al., NSDI 2010 (long flows are placed).
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "tagger.h"
#include "tagger_maps.h"

#define ETH_HEADER_BYTES 14
#define TAG_BYTES 4
#define TYPE_IPV4 0x0800
#define TYPE_IPV6 0x86dd
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17
#define PROTOCOL_SCTP 132
#define NS_PER_US 1000ull
/* The golden ratio's part of 2^32. */
#define GOLDEN 0x9e3779b1u

/* What a test run reads: the tag that was pushed, or the VLAN of the one that was popped. */
#define TRACE_TAG 0x10000

static __always_inline void count_event(__u32 event)
{
	__u64 *count = bpf_map_lookup_elem(&tagger_events, &event);

	if (count)
		*count += 1;
}

static __always_inline int drop(__u32 event)
{
	count_event(event);
	return TC_ACT_SHOT;
}

/* Lets the next program decide. */
static __always_inline int leave(__u32 event)
{
	count_event(event);
	return TC_ACT_UNSPEC;
}

static __always_inline __u16 be16(const __u8 *bytes)
{
	return (__u16)bytes[0] << 8 | bytes[1];
}

/*
 * The first octets of a frame, to be read where they are; none if there are fewer. Whatever changes the frame makes the
 * pointer void.
 */
static __always_inline const __u8 *octets(struct __sk_buff *skb, __u32 count)
{
	const __u8 *data = (void *)(long)skb->data;

	if (data + count <= (const __u8 *)(long)skb->data_end)
		return data;
	/* The header may lie in another page. */
	if (bpf_skb_pull_data(skb, count))
		return 0;
	data = (void *)(long)skb->data;
	return data + count <= (const __u8 *)(long)skb->data_end ? data : 0;
}

/* struct table_key in one word, so that it is stored in one piece: what is read wider than it was written waits. */
static __always_inline __u64 key_of(__u16 first, __u16 second, __u16 third)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return first | (__u64)second << 16 | (__u64)third << 32;
#else
	return (__u64)first << 48 | (__u64)second << 32 | (__u64)third << 16;
#endif
}

/* 01-80-C2-00-00-00 to -0F are for the neighbour alone. */
static __always_inline int is_link_local(const __u8 *mac)
{
	return mac[0] == 0x01 && mac[1] == 0x80 && mac[2] == 0xc2 && mac[3] == 0 && mac[4] == 0 && mac[5] < 0x10;
}

static __always_inline __u32 mix(__u32 hash, __u32 word)
{
	hash = (hash ^ word) * GOLDEN;
	return hash ^ hash >> 15;
}

static __always_inline __u32 words_hash(const __u32 *words, int count)
{
	__u32 hash = 0;

#pragma unroll
	for (int at = 0; at < 4; at++)
		if (at < count)
			hash = mix(hash, words[at]);
	return hash;
}

/* The two ends are added, so that both directions of a flow have one hash. */
static __always_inline __u32 ends_hash(const __u32 *source, const __u32 *destination, int count)
{
	return words_hash(source, count) + words_hash(destination, count);
}

static __always_inline __u32 ports_hash(struct __sk_buff *skb, __u32 at, __u8 protocol)
{
	__u16 ports[2];

	if (protocol != PROTOCOL_TCP && protocol != PROTOCOL_UDP && protocol != PROTOCOL_SCTP)
		return 0;
	if (bpf_skb_load_bytes(skb, at, ports, sizeof(ports)))
		return 0;
	return mix(0, ports[0]) + mix(0, ports[1]);
}

/*
 * What tells flows apart: addresses, protocol and ports. Fragments have no ports but the first, so none count; nor
 * do those behind IPv6 extension headers.
 */
static __always_inline __u32 flow_hash(struct __sk_buff *skb, __u16 type, const __u8 *macs)
{
	__u32 words[8] = {};

	if (type == TYPE_IPV4) {
		struct {
			__u8 length;
			__u8 tos;
			__u8 total[2];
			__u8 id[2];
			__u8 fragment[2];
			__u8 ttl;
			__u8 protocol;
			__u8 check[2];
			__u32 source;
			__u32 destination;
		} ip;
		__u32 hash;

		if (bpf_skb_load_bytes(skb, ETH_HEADER_BYTES, &ip, sizeof(ip)))
			return 0;
		hash = mix(ends_hash(&ip.source, &ip.destination, 1), ip.protocol);
		if (!(be16(ip.fragment) & 0x3fff))
			hash = mix(hash, ports_hash(skb, ETH_HEADER_BYTES + (ip.length & 0xf) * 4, ip.protocol));
		return hash;
	}
	if (type == TYPE_IPV6) {
		__u8 next;

		if (bpf_skb_load_bytes(skb, ETH_HEADER_BYTES + 6, &next, 1) ||
		    bpf_skb_load_bytes(skb, ETH_HEADER_BYTES + 8, words, sizeof(words)))
			return 0;
		return mix(mix(ends_hash(words, words + 4, 4), next), ports_hash(skb, ETH_HEADER_BYTES + 40, next));
	}
	__builtin_memcpy(words, macs, 6);
	__builtin_memcpy(words + 4, macs + 6, 6);
	return mix(ends_hash(words, words + 4, 2), type);
}

/*
 * The source port of a frame of TCP or UDP; 0 of any other, of fragments, and behind IPv6 extension headers.
 */
static __always_inline __u16 source_port(struct __sk_buff *skb, __u16 type)
{
	__u32 at = ETH_HEADER_BYTES;
	__u8 start[10], port[2], protocol;

	if (type != TYPE_IPV4 && type != TYPE_IPV6)
		return 0;
	if (bpf_skb_load_bytes(skb, at, start, sizeof(start)))
		return 0;
	if (type == TYPE_IPV4) {
		if (be16(start + 6) & 0x3fff)
			return 0;
		protocol = start[9];
		at += (start[0] & 0xf) * 4;
	} else {
		protocol = start[6];
		at += 40;
	}
	if (protocol != PROTOCOL_TCP && protocol != PROTOCOL_UDP)
		return 0;
	return bpf_skb_load_bytes(skb, at, port, sizeof(port)) ? 0 : be16(port);
}

/* Among how many: spreads by the high bits. */
static __always_inline __u32 among(__u32 hash, __u32 count)
{
	return (__u64)hash * count >> 32;
}

/*
 * What a flowlet chooses by. Steps of the golden ratio leave the choices of a host evenly spread however many there are to
 * choose from, also when every second flow is a short one; chance does not, when flows are few.
 */
static __always_inline __u32 next_choice(void)
{
	__u32 slot = FLOWLETS_MAX;
	struct flowlet *last = bpf_map_lookup_elem(&tagger_flowlets, &slot);

	if (!last)
		return bpf_get_prandom_u32();
	/* Hosts begin at different places. */
	if (!last->choice)
		last->choice = bpf_get_prandom_u32();
	last->choice += GOLDEN;
	return last->choice;
}

/*
 * The index of a flow's VLAN: the first for a new flow, then what the daemon asks for. A flow moves during a pause, so that its
 * frames stay in order; a bulk flow may never pause, so the order has a deadline.
 */
static __always_inline __u32 placed(struct __sk_buff *skb, const struct table_entry *entry, __u32 hash)
{
	__u32 slot = hash % FLOWLETS_MAX;
	struct flow *flow = bpf_map_lookup_elem(&tagger_flows, &slot);
	const struct placement *placement = bpf_map_lookup_elem(&tagger_placed, &slot);
	__u64 now_ns;
	__s64 pause_ns;

	if (!flow || !placement)
		return 0;
	now_ns = bpf_ktime_get_ns();
	/* Another processor may have seen the flow since the clock was read. */
	pause_ns = now_ns - flow->seen_ns;
	if (pause_ns > FLOW_ENDS_NS) {
		flow->began_ns = now_ns;
		flow->bytes = 0;
		flow->choice = 0;
	} else if (placement->choice != flow->choice && placement->ordered_ns > flow->began_ns &&
		   (pause_ns > (__s64)(placement->pause_us * NS_PER_US) || now_ns > placement->latest_ns)) {
		flow->choice = placement->choice;
	}
	flow->seen_ns = now_ns;
	flow->bytes += skb->len;
	flow->destination = entry->slot;
	return flow->choice % entry->choices;
}

static __always_inline __u32 choose(struct __sk_buff *skb, const struct table_entry *entry, __u16 type, const __u8 *macs)
{
	__u32 hash, slot;
	struct flowlet *flowlet;
	__u64 now_ns;
	__s64 pause_ns;
	__u16 port;

	if (entry->spread == SPREAD_FIRST || entry->choices < 2)
		return 0;
	port = source_port(skb, type);
	if (port >= PATH_PORTS)
		return port % CHOICES_MAX % entry->choices;
	if (entry->spread == SPREAD_PORT)
		return 0;
	hash = flow_hash(skb, type, macs);
	if (entry->spread == SPREAD_FLOW)
		return among(hash, entry->choices);
	if (entry->spread == SPREAD_PLACED)
		return placed(skb, entry, hash);
	slot = hash % FLOWLETS_MAX;
	flowlet = bpf_map_lookup_elem(&tagger_flowlets, &slot);
	if (!flowlet)
		return 0;
	now_ns = bpf_ktime_get_ns();
	/* Another processor may have seen the flow since the clock was read: that is no pause, not one of centuries. */
	pause_ns = now_ns - flowlet->seen_ns;
	if (pause_ns > (__s64)(entry->gap_us * NS_PER_US))
		flowlet->choice = next_choice();
	flowlet->seen_ns = now_ns;
	return among(flowlet->choice, entry->choices);
}

/* The class that an IP frame asks for: the upper half of its DSCP (RFC 2474, 4.2.2). */
static __always_inline __u16 dscp_class(struct __sk_buff *skb, __u16 type)
{
	__u8 start[2];
	__u16 class;

	if (type != TYPE_IPV4 && type != TYPE_IPV6)
		return 0;
	if (bpf_skb_load_bytes(skb, ETH_HEADER_BYTES, start, sizeof(start)))
		return 0;
	class = type == TYPE_IPV4 ? start[1] >> 5 : (start[0] & 0xf) >> 1;
	return class < DSCP_CLASS_MAX ? class : DSCP_CLASS_MAX;
}

SEC("tc")
int tagger_egress(struct __sk_buff *skb)
{
	__u32 zero = 0, chosen;
	__u64 frames = skb->gso_segs ? skb->gso_segs : 1, bytes = skb->len;
	__u64 key;
	struct table_entry *entry;
	struct destination_count *destination;
	struct vlan_count *count;
	const __u8 *header;
	const __u16 *mac;
	__u16 type, tag, vlan;
	void *table;

	skb->cb[0] = 0;
	header = octets(skb, ETH_HEADER_BYTES);
	if (!header)
		return drop(EVENT_TRUNCATED);
	type = be16(header + 12);
	if (skb->vlan_present || type == TPID_CUSTOMER || type == TPID_SERVICE)
		return leave(EVENT_TAGGED_ALREADY);
	if (is_link_local(header))
		return leave(EVENT_LINK_LOCAL);

	table = bpf_map_lookup_elem(&tagger_current, &zero);
	if (!table)
		return drop(EVENT_NO_VLAN);
	/* Frames begin at even addresses. */
	mac = (const void *)header;
	key = key_of(mac[0], mac[1], mac[2]);
	entry = header[0] & 1 ? 0 : bpf_map_lookup_elem(table, &key);
	if (!entry) {
		key = key_of(0xffff, 0xffff, 0xffff);
		entry = bpf_map_lookup_elem(table, &key);
	}
	if (!entry || !entry->choices)
		return drop(EVENT_NO_VLAN);
	chosen = choose(skb, entry, type, header);
	/* What the compiler knows of a remainder, the verifier does not: the bound stays. */
	barrier_var(chosen);
	if (chosen >= CHOICES_MAX)
		return drop(EVENT_NO_VLAN);
	tag = entry->choice[chosen];
	vlan = tag & VID_MASK;
	if (!vlan)
		return drop(EVENT_NO_VLAN);
	if (entry->by_dscp)
		tag = vlan | dscp_class(skb, type) << PCP_SHIFT;

	if (bpf_skb_vlan_push(skb, bpf_htons(TPID_CUSTOMER), tag))
		return drop(EVENT_PUSH_FAILED);
	skb->cb[0] = TRACE_TAG | tag;
	destination = bpf_map_lookup_elem(&tagger_dests, &entry->slot);
	if (destination) {
		__sync_fetch_and_add(&destination->frames, frames);
		__sync_fetch_and_add(&destination->bytes, bytes);
	}
	chosen = vlan;
	count = bpf_map_lookup_elem(&tagger_vlans, &chosen);
	if (count) {
		count->out_frames += frames;
		count->out_bytes += bytes;
	}
	return TC_ACT_UNSPEC;
}

/*
 * Sends a probe's request back where it came from, in its own VLAN, tag and all; the tagged frame passes our egress
 * program as it is. No process has to wake up, so an answer takes microseconds.
 */
static __always_inline int answer(struct __sk_buff *skb, const __u8 *header, __u32 at)
{
	__u8 macs[12], kind = PROBE_REPLY;

	__builtin_memcpy(macs, header + 6, 6);
	__builtin_memcpy(macs + 6, header, 6);
	if (bpf_skb_store_bytes(skb, 0, macs, sizeof(macs), 0) || bpf_skb_store_bytes(skb, at, &kind, sizeof(kind), 0))
		return TC_ACT_SHOT;
	/* Past what waits here, as its tag asks of switches. */
	skb->priority = PROBE_PRIORITY;
	count_event(EVENT_PROBE_ANSWERED);
	return bpf_redirect(skb->ifindex, 0);
}

SEC("tc")
int tagger_ingress(struct __sk_buff *skb)
{
	__u64 frames = skb->gso_segs ? skb->gso_segs : 1, bytes = skb->len;
	__u32 zero = 0, slot, at = ETH_HEADER_BYTES;
	const struct own *own;
	struct vlan_count *count;
	const __u8 *header;
	__u8 tag[TAG_BYTES];
	__u16 type, vlan;

	skb->cb[0] = 0;
	header = octets(skb, ETH_HEADER_BYTES);
	if (!header)
		return drop(EVENT_TRUNCATED);
	type = be16(header + 12);
	if (skb->vlan_present) {
		if (skb->vlan_proto != bpf_htons(TPID_CUSTOMER))
			return leave(EVENT_FOREIGN_IN);
		vlan = skb->vlan_tci & VID_MASK;
	} else if (type == TPID_CUSTOMER) {
		if (bpf_skb_load_bytes(skb, ETH_HEADER_BYTES, tag, sizeof(tag)))
			return drop(EVENT_TRUNCATED);
		vlan = be16(tag) & VID_MASK;
		type = be16(tag + 2);
		at += TAG_BYTES;
		bytes -= TAG_BYTES;
	} else if (type == TPID_SERVICE) {
		return leave(EVENT_FOREIGN_IN);
	} else {
		return leave(EVENT_UNTAGGED_IN);
	}

	own = bpf_map_lookup_elem(&tagger_own, &zero);
	if (!own || !own->vlan[vlan])
		return leave(EVENT_FOREIGN_IN);
	/* Before its turn back: a switch that does not know us yet floods, and what is for others is not ours to answer. */
	if (type == PROBE_TYPE && skb->pkt_type == 0 && !(header[6] & 1)) {
		__u8 kind;

		if (!bpf_skb_load_bytes(skb, at, &kind, sizeof(kind)) && kind == PROBE_REQUEST)
			return answer(skb, header, at);
	}
	if (bpf_skb_vlan_pop(skb))
		return drop(EVENT_TRUNCATED);
	skb->cb[0] = TRACE_TAG | vlan;
	slot = vlan;
	count = bpf_map_lookup_elem(&tagger_vlans, &slot);
	if (count) {
		count->in_frames += frames;
		count->in_bytes += bytes;
	}
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
