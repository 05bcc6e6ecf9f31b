/*
 * Ping-pong of a program that knows TCP alone: how long a small message takes there and back.
 *
 *   rtt serve IP PORT [WAIT]
 *   rtt drive IP PORT BYTES ROUNDS [WAIT]    prints the median and the 99th percentile, microseconds
 *
 * WAIT is block (in recv; the default), poll or epoll; the descriptor of those two does not block.
 */
#include "pattern.h"
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>

static int polls, epoll = -1;

static void wait_as(const char *how, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	polls = !strcmp(how, "poll");
	if (!strcmp(how, "epoll"))
		must((epoll = epoll_create1(0)) >= 0 && !epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
	if (polls || epoll >= 0)
		must(!fcntl(fd, F_SETFL, O_NONBLOCK));
}

static ssize_t receive(int fd, unsigned char *into, size_t room)
{
	for (;;) {
		struct pollfd polled = { .fd = fd, .events = POLLIN };
		struct epoll_event event;
		must(!polls || poll(&polled, 1, -1) == 1);
		must(epoll < 0 || epoll_wait(epoll, &event, 1, -1) == 1);
		ssize_t n = recv(fd, into, room, 0);
		if (n >= 0 || errno != EAGAIN)
			return n;
	}
}

static void exchange(int fd, unsigned char *buffer, size_t bytes, int out_first)
{
	for (int half = 0; half < 2; half++) {
		size_t done = 0;
		int out = (half == 0) == out_first;
		while (done < bytes) {
			ssize_t n = out ? send(fd, buffer + done, bytes - done, MSG_NOSIGNAL) : receive(fd, buffer + done, bytes - done);
			if (n == 0 && !out_first)
				exit(0);
			must(n > 0);
			done += (size_t)n;
		}
	}
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	if ((argc == 4 || argc == 5) && !strcmp(argv[1], "serve")) {
		int fd = accept(listen_at(argv[2], argv[3]), NULL, NULL);
		unsigned char buffer[65536];
		must(fd >= 0);
		must(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, (int[]){ 1 }, sizeof(int)));
		uint32_t bytes;
		must(recv(fd, &bytes, sizeof bytes, MSG_WAITALL) == sizeof bytes && bytes <= sizeof buffer);
		wait_as(argc == 5 ? argv[4] : "block", fd);
		for (;;)
			exchange(fd, buffer, bytes, 0);
	}
	if ((argc != 6 && argc != 7) || strcmp(argv[1], "drive"))
		return 2;
	struct sockaddr_in remote = address_of(argv[2], argv[3]);
	uint32_t bytes = (uint32_t)atoi(argv[4]);
	int rounds = atoi(argv[5]), fd = socket(AF_INET, SOCK_STREAM, 0);
	unsigned char buffer[65536];
	double *us = calloc((size_t)rounds, sizeof *us);
	must(bytes <= sizeof buffer && us);
	fill(buffer, bytes, 1, 0);
	must(!connect(fd, (struct sockaddr *)&remote, sizeof remote));
	must(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, (int[]){ 1 }, sizeof(int)));
	must(send(fd, &bytes, sizeof bytes, 0) == sizeof bytes);
	wait_as(argc == 7 ? argv[6] : "block", fd);
	for (int i = -rounds / 10; i < rounds; i++) {
		struct timespec from, to;
		clock_gettime(CLOCK_MONOTONIC, &from);
		exchange(fd, buffer, bytes, 1);
		clock_gettime(CLOCK_MONOTONIC, &to);
		if (i >= 0)
			us[i] = (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3;
	}
	verify(buffer, bytes, 1, 0);
	qsort(us, (size_t)rounds, sizeof *us, ascending);
	printf("%.2f %.2f\n", us[rounds / 2], us[rounds * 99 / 100]);
	return 0;
}
