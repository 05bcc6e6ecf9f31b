/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How a LAG chooses the member that a frame leaves by: a hash over addresses and ports, so that the frames of one
 * conversation keep their order.
 *
 *   MAC addresses, and of IPv4 and IPv6 the addresses, and of TCP and UDP the ports -> 32 bits -> one of `count` members
 *
 * Fragments have no ports, so all fragments of a packet take one member; neither have IPv6 packets with extension headers.
 * src/flow.rs computes the same in Rust. Source of the mixing function: MurmurHash3 by A. Appleby, 32-bit block and finalizer.
 */
#pragma once

/* Most members of one LAG; LAG_MEMBERS_MAX in src/ebpf/lag.rs. */
#define LAG_MEMBERS_MAX 64

/* Members by which the frames of a LAG leave, each once. */
struct lag_entry {
	__u32 count;
	__u16 members[LAG_MEMBERS_MAX]; /* ports of a switch, or positions of a host's devices */
};

#define LAG_MAC_BYTES 12
#define LAG_IPV4_ADDRESSES_AT 12
#define LAG_IPV4_ADDRESSES_BYTES 8
#define LAG_IPV6_ADDRESSES_AT 8
#define LAG_IPV6_ADDRESSES_BYTES 32
#define LAG_IPV6_HEADER_BYTES 40
#define LAG_PORTS_BYTES 4
#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define IPV4_FRAGMENT_MASK 0x3fff /* more fragments, and the offset */
#define IP_TCP 6
#define IP_UDP 17

static __always_inline __u32 lag_mix(__u32 hash, __u32 word)
{
	word *= 0xcc9e2d51;
	word = word << 15 | word >> 17;
	hash ^= word * 0x1b873593;
	hash = hash << 13 | hash >> 19;
	return hash * 5 + 0xe6546b64;
}

static __always_inline __u32 lag_finish(__u32 hash)
{
	hash ^= hash >> 16;
	hash *= 0x85ebca6b;
	hash ^= hash >> 13;
	hash *= 0xc2b2ae35;
	return hash ^ hash >> 16;
}

/* Mixes octets of a frame in, whole words of four; a frame that ends before them is left as it is. */
static __always_inline __u32 lag_mix_octets(struct __sk_buff *skb, __u32 hash, __u32 at, __u32 *words, __u32 octets)
{
	__u32 word;

	if (bpf_skb_load_bytes(skb, at, words, octets))
		return hash;
	for (word = 0; word < octets / 4; word++)
		hash = lag_mix(hash, words[word]);
	return hash;
}

/* The hash of a frame whose EtherType is this one and whose network header begins there. */
static __always_inline __u32 lag_hash(struct __sk_buff *skb, __u16 type, __u32 network)
{
	__u32 words[LAG_IPV6_ADDRESSES_BYTES / 4];
	__u32 hash, transport = 0;
	__u8 head[10];
	__u8 protocol = 0;

	hash = lag_mix_octets(skb, 0, 0, words, LAG_MAC_BYTES);
	if (type == ETHERTYPE_IPV4 && !bpf_skb_load_bytes(skb, network, head, sizeof(head))) {
		hash = lag_mix_octets(skb, hash, network + LAG_IPV4_ADDRESSES_AT, words, LAG_IPV4_ADDRESSES_BYTES);
		if (!(((__u16)head[6] << 8 | head[7]) & IPV4_FRAGMENT_MASK)) {
			protocol = head[9];
			transport = network + (head[0] & 0x0f) * 4;
		}
	} else if (type == ETHERTYPE_IPV6 && !bpf_skb_load_bytes(skb, network, head, sizeof(head))) {
		hash = lag_mix_octets(skb, hash, network + LAG_IPV6_ADDRESSES_AT, words, LAG_IPV6_ADDRESSES_BYTES);
		protocol = head[6];
		transport = network + LAG_IPV6_HEADER_BYTES;
	}
	if (protocol == IP_TCP || protocol == IP_UDP)
		hash = lag_mix_octets(skb, hash, transport, words, LAG_PORTS_BYTES);
	return lag_finish(hash);
}

/* The member that a frame with this hash leaves by; negative where no member is active. */
static __always_inline __s32 lag_member(const struct lag_entry *lag, __u32 hash)
{
	__u32 at;

	if (!lag || !lag->count)
		return -1;
	at = (__u64)hash * lag->count >> 32;
	return lag->members[at % LAG_MEMBERS_MAX];
}
