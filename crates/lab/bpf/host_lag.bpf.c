/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A host's LAG where the kernel has no bonds: tc programs between the device that the host uses and its members.
 *
 *   eth0 == eth0~ -> distribute -> the active member that the flow's hash chooses     (eth0 and eth0~ are one pair)
 *   eth0 == eth0~ <- collect <- any member that collects
 *
 * Frames for reserved addresses are left to whoever listens on the member, as LACP and LLDP do. Each LAG has maps of its own.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "lag.h"

#define MAC_BYTES 6
#define ETH_HEADER_BYTES 14
#define TAG_BYTES 4
#define TPID_CUSTOMER 0x8100

/* The devices of one LAG. */
struct host_lag {
	__u32 members_ifindex;  /* member k is the device with this index plus k */
	__u32 inside_ifindex;   /* the far end of the device that the host uses */
	__u64 collecting;       /* bit k: frames may come in by member k */
	struct lag_entry distributing;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct host_lag);
} lag SEC(".maps");

static __always_inline struct host_lag *the_lag(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&lag, &zero);
}

/* On the far end of the host's device: what the host sends. */
SEC("tc")
int espalier_distribute(struct __sk_buff *skb)
{
	struct host_lag *own = the_lag();
	__u32 network = ETH_HEADER_BYTES;
	__u8 type[2];
	__u16 kind;
	__s32 member;

	if (!own || bpf_skb_load_bytes(skb, network - sizeof(type), type, sizeof(type)))
		return TC_ACT_SHOT;
	kind = (__u16)type[0] << 8 | type[1];
	if (!skb->vlan_present && kind == TPID_CUSTOMER) {
		network += TAG_BYTES;
		if (bpf_skb_load_bytes(skb, network - sizeof(type), type, sizeof(type)))
			return TC_ACT_SHOT;
		kind = (__u16)type[0] << 8 | type[1];
	}
	member = lag_member(&own->distributing, lag_hash(skb, kind, network));
	if (member < 0)
		return TC_ACT_SHOT;
	return bpf_redirect(own->members_ifindex + member, 0);
}

/* On each member: what the switch sends. */
SEC("tc")
int espalier_collect(struct __sk_buff *skb)
{
	struct host_lag *own = the_lag();
	__u8 mac[MAC_BYTES];
	__u32 member;

	if (!own || bpf_skb_load_bytes(skb, 0, mac, sizeof(mac)))
		return TC_ACT_SHOT;
	if (mac[0] == 0x01 && mac[1] == 0x80 && mac[2] == 0xc2 && mac[3] == 0 && mac[4] == 0 && mac[5] < 0x10)
		return TC_ACT_OK;
	member = skb->ifindex - own->members_ifindex;
	if (member >= LAG_MEMBERS_MAX || !(own->collecting >> member & 1))
		return TC_ACT_SHOT;
	return bpf_redirect(own->inside_ifindex, 0);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
