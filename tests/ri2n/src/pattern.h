/* What the test programs share: data that cannot be mistaken for other data, and failures that say where. */
#ifndef PATTERN_H
#define PATTERN_H
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define fail(...) (fprintf(stderr, "%s:%d: ", __FILE__, __LINE__), fprintf(stderr, __VA_ARGS__), \
		   fprintf(stderr, " (%s)\n", strerror(errno)), exit(1))
#define must(condition) ((condition) ? (void)0 : fail("%s", #condition))

/* Byte `at` of stream `stream`. */
static inline unsigned char pattern(uint32_t stream, uint64_t at)
{
	uint64_t x = (at >> 3) + ((uint64_t)stream << 40);
	x *= 0x9e3779b97f4a7c15u;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9u;
	return (unsigned char)(x >> (8 * (at & 7)));
}

static inline void fill(unsigned char *buffer, size_t count, uint32_t stream, uint64_t at)
{
	for (size_t i = 0; i < count; i++)
		buffer[i] = pattern(stream, at + i);
}

static inline void verify(const unsigned char *buffer, size_t count, uint32_t stream, uint64_t at)
{
	for (size_t i = 0; i < count; i++)
		if (buffer[i] != pattern(stream, at + i))
			fail("stream %u: byte %llu is wrong", stream, (unsigned long long)(at + i));
}

static inline struct sockaddr_in address_of(const char *ip, const char *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	must(inet_pton(AF_INET, ip, &address.sin_addr) == 1);
	return address;
}

static inline int listen_at(const char *ip, const char *port)
{
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = address_of(ip, port);
	must(fd >= 0);
	must(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one));
	must(!bind(fd, (struct sockaddr *)&address, sizeof address));
	must(!listen(fd, 128));
	return fd;
}

/* The descriptor must pass for a TCP socket between these addresses; `remote` may be null. */
static inline void must_look_like_tcp(int fd, const struct sockaddr_in *remote)
{
	struct sockaddr_in address;
	socklen_t length = sizeof address;
	must(!getpeername(fd, (struct sockaddr *)&address, &length));
	must(length == sizeof address && address.sin_family == AF_INET);
	if (remote)
		must(address.sin_port == remote->sin_port && address.sin_addr.s_addr == remote->sin_addr.s_addr);
	length = sizeof address;
	must(!getsockname(fd, (struct sockaddr *)&address, &length));
	must(length == sizeof address && address.sin_family == AF_INET && address.sin_port != 0);
	int value = -1;
	length = sizeof value;
	must(!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &length) && value == AF_INET);
	must(!getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &length) && value == SOCK_STREAM);
	must(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &length) && value == 0);
	value = 1;
	must(!setsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &value, sizeof value));
	must(!setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, sizeof value));
	must(!setsockopt(fd, SOL_SOCKET, SO_RCVBUF, (int[]){ 65536 }, sizeof value));
}
#endif
