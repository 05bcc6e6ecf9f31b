// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Brings the TCP connections of a control group to a proxy on this machine, for programs that no library can be put before:
// static ones, and those that make system calls themselves.
//
//   connect     a destination in `networks` becomes the proxy's address; the true one is kept by socket
//   sockops     when the connection gets its port: the true destination by port, for the proxy;
//               when a socket begins to listen: an event, so that RI2N listens there as well
//   getpeername the true peer, of connections made and of those that the broker knocked for
//
// Addresses are sixteen bytes in network order, IPv4 mapped; ports are in host order. Only sockets of the network namespace
// that the proxy lives in are touched.
#include <linux/bpf.h>
#include <linux/in.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define CONNECTIONS_MAX 65536
#define NETWORKS_MAX 1024
#define EVENTS_BYTES 65536
#define MAPPED bpf_htonl(0xffff)
#define LOOPBACK4 bpf_htonl(0x7f000001)
#define KNOCK4 bpf_htonl(0x7f524932)
#define ALLOW 1
// As in sys/socket.h, which wants the C library of the target.
#define AF_INET 2
#define SOCK_STREAM 1

struct endpoint {
	__u32 ip[4];
	__u32 port;
};

struct network {
	__u32 bits;
	__u32 ip[4];
};

struct settings {
	__u64 netns;
	__u32 port4;
	__u32 port6;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct settings);
} settings SEC(".maps");

// 1: redirect; 0: never, for this machine's own addresses.
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, NETWORKS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct network);
	__type(value, __u8);
} networks SEC(".maps");

// By socket cookie.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CONNECTIONS_MAX);
	__type(key, __u64);
	__type(value, struct endpoint);
} wanted SEC(".maps");

// By the connection's own port.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CONNECTIONS_MAX);
	__type(key, __u32);
	__type(value, struct endpoint);
} by_port SEC(".maps");

// By the port that the broker knocks from.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CONNECTIONS_MAX);
	__type(key, __u32);
	__type(value, struct endpoint);
} knocks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, EVENTS_BYTES);
} listening SEC(".maps");

static __always_inline const struct settings *in_our_namespace(__u64 netns)
{
	__u32 zero = 0;
	const struct settings *set = bpf_map_lookup_elem(&settings, &zero);
	return set && set->netns == netns ? set : NULL;
}

static __always_inline int is_redirected(const struct endpoint *to)
{
	struct network key = { .bits = 128 };
	__builtin_memcpy(key.ip, to->ip, sizeof(key.ip));
	const __u8 *redirect = bpf_map_lookup_elem(&networks, &key);
	return redirect && *redirect;
}

static __always_inline int is_tcp(const struct bpf_sock_addr *ctx)
{
	return ctx->type == SOCK_STREAM && ctx->protocol == IPPROTO_TCP;
}

SEC("cgroup/connect4")
int connect4(struct bpf_sock_addr *ctx)
{
	const struct settings *set = in_our_namespace(bpf_get_netns_cookie(ctx));
	if (!set || !is_tcp(ctx))
		return ALLOW;
	struct endpoint to = { { 0, 0, MAPPED, ctx->user_ip4 }, bpf_ntohs(ctx->user_port) };
	if (!is_redirected(&to))
		return ALLOW;
	__u64 cookie = bpf_get_socket_cookie(ctx);
	if (bpf_map_update_elem(&wanted, &cookie, &to, BPF_ANY))
		return ALLOW;
	ctx->user_ip4 = LOOPBACK4;
	ctx->user_port = bpf_htons(set->port4);
	return ALLOW;
}

SEC("cgroup/connect6")
int connect6(struct bpf_sock_addr *ctx)
{
	const struct settings *set = in_our_namespace(bpf_get_netns_cookie(ctx));
	if (!set || !is_tcp(ctx))
		return ALLOW;
	struct endpoint to = { .port = bpf_ntohs(ctx->user_port) };
	to.ip[0] = ctx->user_ip6[0];
	to.ip[1] = ctx->user_ip6[1];
	to.ip[2] = ctx->user_ip6[2];
	to.ip[3] = ctx->user_ip6[3];
	int mapped = !to.ip[0] && !to.ip[1] && to.ip[2] == MAPPED;
	if (!is_redirected(&to) || !(mapped ? set->port4 : set->port6))
		return ALLOW;
	__u64 cookie = bpf_get_socket_cookie(ctx);
	if (bpf_map_update_elem(&wanted, &cookie, &to, BPF_ANY))
		return ALLOW;
	ctx->user_ip6[0] = 0;
	ctx->user_ip6[1] = 0;
	ctx->user_ip6[2] = mapped ? MAPPED : 0;
	ctx->user_ip6[3] = mapped ? LOOPBACK4 : bpf_htonl(1);
	ctx->user_port = bpf_htons(mapped ? set->port4 : set->port6);
	return ALLOW;
}

SEC("sockops")
int on_socket(struct bpf_sock_ops *ctx)
{
	if (!in_our_namespace(bpf_get_netns_cookie(ctx)))
		return ALLOW;
	if (ctx->op == BPF_SOCK_OPS_TCP_CONNECT_CB) {
		__u64 cookie = bpf_get_socket_cookie(ctx);
		const struct endpoint *to = bpf_map_lookup_elem(&wanted, &cookie);
		__u32 port = ctx->local_port;
		if (to)
			bpf_map_update_elem(&by_port, &port, to, BPF_ANY);
	} else if (ctx->op == BPF_SOCK_OPS_TCP_LISTEN_CB) {
		struct endpoint at = { { 0, 0, MAPPED, ctx->local_ip4 }, ctx->local_port };
		// The verifier wants every field of the context read by its own offset, so the reads must not be merged.
		asm volatile("" : "+m"(at));
		if (ctx->family != AF_INET) {
			at.ip[0] = ctx->local_ip6[0];
			at.ip[1] = ctx->local_ip6[1];
			at.ip[2] = ctx->local_ip6[2];
			at.ip[3] = ctx->local_ip6[3];
		}
		bpf_ringbuf_output(&listening, &at, sizeof(at), 0);
	}
	return ALLOW;
}

SEC("cgroup/getpeername4")
int getpeername4(struct bpf_sock_addr *ctx)
{
	__u64 cookie = bpf_get_socket_cookie(ctx);
	const struct endpoint *peer = bpf_map_lookup_elem(&wanted, &cookie);
	if (!peer && ctx->user_ip4 == KNOCK4) {
		__u32 port = bpf_ntohs(ctx->user_port);
		peer = bpf_map_lookup_elem(&knocks, &port);
	}
	if (peer && peer->ip[2] == MAPPED) {
		ctx->user_ip4 = peer->ip[3];
		ctx->user_port = bpf_htons(peer->port);
	}
	return ALLOW;
}

SEC("cgroup/getpeername6")
int getpeername6(struct bpf_sock_addr *ctx)
{
	__u64 cookie = bpf_get_socket_cookie(ctx);
	const struct endpoint *peer = bpf_map_lookup_elem(&wanted, &cookie);
	__u32 third = ctx->user_ip6[2], fourth = ctx->user_ip6[3];
	if (!peer && ((third == MAPPED && fourth == KNOCK4) || (third == 0 && fourth == bpf_htonl(1)))) {
		__u32 port = bpf_ntohs(ctx->user_port);
		peer = bpf_map_lookup_elem(&knocks, &port);
	}
	if (peer) {
		ctx->user_ip6[0] = peer->ip[0];
		ctx->user_ip6[1] = peer->ip[1];
		ctx->user_ip6[2] = peer->ip[2];
		ctx->user_ip6[3] = peer->ip[3];
		ctx->user_port = bpf_htons(peer->port);
	}
	return ALLOW;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
