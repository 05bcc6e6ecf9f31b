// The peers of RI2N as bare as they can be: one TCP or MPTCP stream, a ping-pong, and the limit of UDP with segmentation
// offload over all links.
//
//   peer tcp|mptcp sink PORT ROWS          receives until the end; bytes per 10 ms into ROWS; one line of results
//   peer tcp|mptcp source HOST PORT SECONDS
//   peer tcp|mptcp|udp pong PORT SIZE      answers messages
//   peer tcp|mptcp|udp ping HOST PORT SIZE COUNT
//   peer udp flood PORT SECONDS HOST...    one host a link; datagrams of 1472 bytes
//   peer udp drain PORT SECONDS
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif
enum { CHUNK = 256 << 10, DATAGRAM = 1472, RUN = 44 * DATAGRAM };

static char buffer[CHUNK];

static double seconds(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

static void fail(const char *what) {
	perror(what);
	exit(1);
}

static void report(double bytes, double elapsed) {
	struct rusage used;
	getrusage(RUSAGE_SELF, &used);
	double cpu = used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
	printf("bytes %.0f MBps %.2f cpu_ns_per_B %.4f\n", bytes, bytes / elapsed / 1e6, cpu * 1e9 / (bytes + 1));
}

static struct sockaddr_in address(const char *host, const char *port) {
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
	if (host && inet_pton(AF_INET, host, &to.sin_addr) != 1) fail(host);
	return to;
}

static int open_socket(const char *kind) {
	int udp = !strcmp(kind, "udp"), one = 1;
	int fd = socket(AF_INET, udp ? SOCK_DGRAM : SOCK_STREAM, strcmp(kind, "mptcp") ? 0 : IPPROTO_MPTCP);
	if (fd < 0) fail("socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (!udp && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5)) fail("cubic");
	return fd;
}

static int accept_one(int fd, struct sockaddr_in at) {
	if (bind(fd, (void *)&at, sizeof at) || listen(fd, 1)) fail("bind");
	int peer = accept(fd, 0, 0);
	if (peer < 0) fail("accept");
	return peer;
}

static void sink(int fd, const char *path) {
	FILE *rows = fopen(path, "w");
	if (!rows) fail(path);
	struct timeval wait = {0, 5000};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
	double began = seconds(), row_ends = began + 0.01, total = 0, row = 0, last = began;
	for (;;) {
		ssize_t got = recv(fd, buffer, CHUNK, 0);
		double now = seconds();
		for (; now >= row_ends; row_ends += 0.01, row = 0) fprintf(rows, "%.4f %.0f\n", row_ends, row);
		if (got == 0) break;
		if (got > 0) total += got, row += got, last = now;
	}
	fclose(rows);
	report(total, last - began);
}

static void source(int fd, double duration) {
	double began = seconds(), total = 0;
	while (seconds() - began < duration) {
		ssize_t sent = send(fd, buffer, CHUNK, MSG_NOSIGNAL);
		if (sent < 0) fail("send");
		total += sent;
	}
	shutdown(fd, SHUT_WR);
	while (recv(fd, buffer, 1, 0) > 0) {}
	report(total, seconds() - began);
}

static int receive_all(int fd, size_t size, int udp) {
	for (size_t have = 0; have < size;) {
		ssize_t got = recv(fd, buffer + have, size - have, 0);
		if (got <= 0) return 0;
		if (udp) return got == (ssize_t)size;
		have += got;
	}
	return 1;
}

static int ascending(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void ping(int fd, size_t size, long count, int udp) {
	double *sample = malloc(count * sizeof *sample);
	for (long round = -count / 10; round < count; round++) {
		double began = seconds();
		if (send(fd, buffer, size, 0) < 0 || !receive_all(fd, size, udp)) fail("ping");
		if (round >= 0) sample[round] = (seconds() - began) * 1e6;
	}
	if (udp) send(fd, buffer, 1, 0);
	qsort(sample, count, sizeof *sample, ascending);
	printf("RTT_us p50 %.2f p99 %.2f\n", sample[count / 2], sample[count * 99 / 100]);
}

static void flood(int links, char **hosts, const char *port, double duration) {
	struct pollfd ready[8];
	for (int link = 0; link < links; link++) {
		struct sockaddr_in to = address(hosts[link], port);
		int size = DATAGRAM, room = 200 << 10;
		ready[link] = (struct pollfd){open_socket("udp"), POLLOUT, 0};
		setsockopt(ready[link].fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
		if (setsockopt(ready[link].fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size)) fail("UDP_SEGMENT");
		if (connect(ready[link].fd, (void *)&to, sizeof to)) fail("connect");
	}
	double began = seconds(), total = 0;
	while (seconds() - began < duration) {
		poll(ready, links, 100);
		for (int link = 0; link < links; link++)
			if (ready[link].revents & POLLOUT) {
				ssize_t sent = send(ready[link].fd, buffer, RUN, MSG_DONTWAIT);
				if (sent > 0) total += sent;
			}
	}
	report(total, seconds() - began);
}

static void drain(int fd, double duration) {
	int one = 1, room = 4 << 20;
	setsockopt(fd, IPPROTO_UDP, UDP_GRO, &one, sizeof one);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
	double began = 0, last = 0, total = 0;
	for (;;) {
		ssize_t got = recv(fd, buffer, CHUNK, 0);
		double now = seconds();
		if (got < 0 || (began > 0 && now - began > duration)) break;
		// The first run fills the shaper's bucket, which is not its rate.
		if (!began) began = now;
		else total += got;
		last = now;
	}
	report(total, last - began);
}

int main(int count, char **word) {
	if (count < 4) return fprintf(stderr, "see the head of peer.c\n"), 2;
	int udp = !strcmp(word[1], "udp"), one = 1, fd = open_socket(word[1]);
	const char *verb = word[2];
	if (!strcmp(verb, "flood")) return flood(count - 5, word + 5, word[3], atof(word[4])), 0;
	int serves = !strcmp(verb, "sink") || !strcmp(verb, "pong") || !strcmp(verb, "drain");
	struct sockaddr_in at = address(serves ? 0 : word[3], word[serves ? 3 : 4]);
	if (serves && udp && bind(fd, (void *)&at, sizeof at)) fail("bind");
	if (serves && !udp) fd = accept_one(fd, at);
	if (!serves && connect(fd, (void *)&at, sizeof at)) fail("connect");
	if (!udp) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (!strcmp(verb, "sink")) sink(fd, word[4]);
	if (!strcmp(verb, "source")) source(fd, atof(word[5]));
	if (!strcmp(verb, "drain")) drain(fd, atof(word[4]));
	if (!strcmp(verb, "ping")) ping(fd, atol(word[5]), atol(word[6]), udp);
	if (!strcmp(verb, "pong") && !udp)
		while (receive_all(fd, atol(word[4]), 0)) send(fd, buffer, atol(word[4]), MSG_NOSIGNAL);
	if (!strcmp(verb, "pong") && udp)
		for (;;) {
			struct sockaddr_in from;
			socklen_t length = sizeof from;
			ssize_t got = recvfrom(fd, buffer, CHUNK, 0, (void *)&from, &length);
			if (got <= 1) break;
			sendto(fd, buffer, got, 0, (void *)&from, length);
		}
	return 0;
}
