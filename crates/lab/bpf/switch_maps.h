/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The tables of one switch. The loader gives every switch maps of its own and sizes the hash maps to its intent. */
#pragma once

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PORTS_MAX);
	__type(key, __u32);
	__type(value, struct port_entry);
} ports SEC(".maps");

/* What LACP says of members, by their ports. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PORTS_MAX);
	__type(key, __u32);
	__type(value, struct member_entry);
} members SEC(".maps");

/* The members by which frames leave, by the ports of their LAGs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PORTS_MAX);
	__type(key, __u32);
	__type(value, struct lag_entry);
} lags SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u16);
	__type(value, struct vlan_entry);
} vlans SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct fdb_key);
	__type(value, __u32);
} fdb SEC(".maps");

/* Keys are those of fdb, whose entries come first. The oldest go when there is no room. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct fdb_key);
	__type(value, struct learned_entry);
} learned SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1);
	__type(key, struct traffic_key);
	__type(value, struct traffic_entry);
} traffic SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PORTS_MAX * DROP_REASONS);
	__type(key, __u32);
	__type(value, __u64);
} drops SEC(".maps");
