/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A cable that loses frames by chance, as a tc program on the egress of each of its ends. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

/* A frame is lost if a random number is below this. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} chance SEC(".maps");

SEC("tc")
int espalier_loss(struct __sk_buff *skb __attribute__((unused)))
{
	__u32 zero = 0;
	__u32 *below = bpf_map_lookup_elem(&chance, &zero);

	return below && bpf_get_prandom_u32() < *below ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
