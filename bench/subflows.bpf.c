// Sends the subflows of an MPTCP connection in the VLANs of its pair, one each. Attached to a host's egress behind the tagger, whose tag it
// replaces. Host H, counted from 0, has the address 10.I.(H / 250).(H % 250 + 1) for its subflow I; all addresses of receivers are of subflow 0.
// Acknowledgements of subflow I leave in VLAN I of the pair in the other direction.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

// HOSTS, PATHS and VLANS: for each sender and receiver, PATHS VLANs.
#include "vlans.h"

static const __u16 vlans[HOSTS][HOSTS][PATHS] = VLANS;

struct addresses {
	__u8 source[4];
	__u8 destination[4];
};

static __always_inline __u32 host_of(const __u8 *address)
{
	return address[2] * 250 + address[3] - 1;
}

SEC("tc")
int subflow_vlan(struct __sk_buff *skb)
{
	__u32 from, to, subflow;
	struct addresses ip;
	__u16 type, vlan;
	__u8 protocol;

	if (!skb->vlan_present || bpf_skb_load_bytes(skb, ETH_ALEN * 2, &type, sizeof(type)) || type != bpf_htons(ETH_P_IP))
		return TC_ACT_UNSPEC;
	if (bpf_skb_load_bytes(skb, ETH_HLEN + 9, &protocol, sizeof(protocol)) || protocol != IPPROTO_TCP ||
	    bpf_skb_load_bytes(skb, ETH_HLEN + 12, &ip, sizeof(ip)))
		return TC_ACT_UNSPEC;
	from = host_of(ip.source);
	to = host_of(ip.destination);
	subflow = ip.source[1] ? ip.source[1] : ip.destination[1];
	if (from >= HOSTS || to >= HOSTS || subflow >= PATHS)
		return TC_ACT_SHOT;
	vlan = vlans[from][to][subflow];
	if (bpf_skb_vlan_pop(skb) || bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), vlan))
		return TC_ACT_SHOT;
	return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "GPL";
