/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Maps of one tagged device. Both programs hold them, so they live as long as the device is tagged. */
#pragma once

/* Without types: kernels before 6.2 take no table made without them in place of one that has them. */
struct table {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(struct table_key));
	__uint(value_size, sizeof(struct table_entry));
} tagger_none SEC(".maps");

/* The table in force: replacing it is one pointer. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct table);
} tagger_current SEC(".maps") = {
	.values = { [0] = &tagger_none },
};

/* While a table is replaced, VLANs of the old one and of the new one. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct own);
} tagger_own SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct destination_count);
} tagger_dests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, VLAN_IDS);
	__type(key, __u32);
	__type(value, struct vlan_count);
} tagger_vlans SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, EVENTS);
	__type(key, __u32);
	__type(value, __u64);
} tagger_events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOWLETS_MAX + 1); /* the last one holds what was chosen last */
	__type(key, __u32);
	__type(value, struct flowlet);
} tagger_flowlets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOWLETS_MAX);
	__type(key, __u32);
	__type(value, struct flow);
} tagger_flows SEC(".maps");

/* Written by the daemon alone. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLOWLETS_MAX);
	__type(key, __u32);
	__type(value, struct placement);
} tagger_placed SEC(".maps");
