/*
 * An epoll echo server, and a client that is as awkward as event loops are: it registers its sockets with an edge-triggered
 * epoll before it connects them, connects without blocking, and asks for the result with SO_ERROR.
 *
 *   epoll serve IP PORT CONNECTIONS           ends when as many connections have come and gone
 *   epoll drive IP PORT CONNECTIONS BYTES MS  every connection sends BYTES, paced to last about MS, and verifies the echo
 *   epoll refused IP PORT                     nobody must listen there: POLLOUT, then SO_ERROR = ECONNREFUSED
 */
#include "pattern.h"
#include <sys/epoll.h>
#include <time.h>

#define CHUNK 16384
#define CONNECTIONS_MAX 256

struct connection {
	int fd, connected, finished;
	uint32_t stream;
	uint64_t sent, received;
	/* the server's unsent echo */
	unsigned char held[65536];
	size_t held_from, held_to;
};
static struct connection connections[CONNECTIONS_MAX];

static void watch(int epoll, int fd, uint32_t events, void *what)
{
	struct epoll_event event = { .events = events, .data.ptr = what };
	must(!epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
}

static void echo(struct connection *c, int *gone)
{
	for (;;) {
		while (c->held_from < c->held_to) {
			ssize_t n = send(c->fd, c->held + c->held_from, c->held_to - c->held_from, MSG_NOSIGNAL);
			if (n < 0 && errno == EAGAIN)
				return;
			must(n > 0);
			c->held_from += (size_t)n;
		}
		/* A look before the read must not take anything. */
		unsigned char first;
		ssize_t peeked = recv(c->fd, &first, 1, MSG_PEEK);
		ssize_t n = recv(c->fd, c->held, sizeof c->held, 0);
		if (n < 0 && errno == EAGAIN)
			return;
		must(n >= 0);
		if (n == 0) {
			must(!close(c->fd));
			c->fd = -1;
			++*gone;
			return;
		}
		must(peeked <= 0 || first == c->held[0]);
		c->held_from = 0;
		c->held_to = (size_t)n;
	}
}

static void serve(const char *ip, const char *port, int wanted)
{
	int listener = listen_at(ip, port), epoll = epoll_create1(EPOLL_CLOEXEC), came = 0, gone = 0;
	must(wanted <= CONNECTIONS_MAX);
	watch(epoll, listener, EPOLLIN, NULL);
	while (gone < wanted) {
		struct epoll_event events[32];
		int n = epoll_wait(epoll, events, 32, -1);
		for (int i = 0; i < n; i++) {
			struct connection *c = events[i].data.ptr;
			if (c) {
				if (c->fd >= 0)
					echo(c, &gone);
				continue;
			}
			struct sockaddr_in peer;
			socklen_t length = sizeof peer;
			int fd = accept4(listener, (struct sockaddr *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
			must(fd >= 0 && came < wanted);
			must_look_like_tcp(fd, &peer);
			must((ntohl(peer.sin_addr.s_addr) >> 24) != 127);
			c = &connections[came++];
			c->fd = fd;
			watch(epoll, fd, EPOLLIN | EPOLLOUT | EPOLLET | EPOLLRDHUP, c);
		}
	}
	printf("served %d\n", gone);
}

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Sends what the pace allows; returns whether the kernel would take no more. */
static void send_some(struct connection *c, uint64_t bytes, uint64_t allowed)
{
	unsigned char buffer[CHUNK];
	while (c->sent < allowed) {
		size_t count = allowed - c->sent < CHUNK ? (size_t)(allowed - c->sent) : CHUNK;
		fill(buffer, count, c->stream, c->sent);
		ssize_t n = send(c->fd, buffer, count, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return;
		must(n > 0);
		c->sent += (uint64_t)n;
	}
	if (c->sent == bytes && !c->finished) {
		c->finished = 1;
		must(!shutdown(c->fd, SHUT_WR));
	}
}

static void drive(const char *ip, const char *port, int count, uint64_t bytes, int64_t ms)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), gone = 0;
	struct sockaddr_in remote = address_of(ip, port);
	must(count <= CONNECTIONS_MAX);
	for (int i = 0; i < count; i++) {
		struct connection *c = &connections[i];
		c->stream = (uint32_t)i;
		c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		must(c->fd >= 0);
		watch(epoll, c->fd, EPOLLIN | EPOLLOUT | EPOLLET, c);
		if (connect(c->fd, (struct sockaddr *)&remote, sizeof remote))
			must(errno == EINPROGRESS);
	}
	int64_t start = now_ms();
	while (gone < count) {
		struct epoll_event events[64];
		int n = epoll_wait(epoll, events, 64, 10);
		uint64_t allowed = ms ? bytes * (uint64_t)(now_ms() - start) / (uint64_t)ms : bytes;
		for (int i = 0; i < n; i++) {
			struct connection *c = events[i].data.ptr;
			if (c->fd < 0)
				continue;
			/* Between registration and connect, a socket of TCP hangs up. */
			if (!c->connected && (events[i].events & (EPOLLERR | EPOLLHUP)) == EPOLLHUP)
				continue;
			if (!c->connected && (events[i].events & (EPOLLOUT | EPOLLERR))) {
				int error = -1;
				socklen_t length = sizeof error;
				must(!getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &length));
				if (error) {
					errno = error;
					fail("connect");
				}
				must_look_like_tcp(c->fd, &remote);
				/* Connecting again is another way to ask. */
				must(connect(c->fd, (struct sockaddr *)&remote, sizeof remote) == 0 || errno == EISCONN);
				c->connected = 1;
			}
			for (;;) {
				unsigned char buffer[CHUNK];
				ssize_t got = recv(c->fd, buffer, sizeof buffer, 0);
				if (got < 0 && errno == EAGAIN)
					break;
				must(got >= 0);
				if (got == 0) {
					must(c->received == bytes);
					must(!close(c->fd));
					c->fd = -1;
					gone++;
					break;
				}
				verify(buffer, (size_t)got, c->stream, c->received);
				c->received += (uint64_t)got;
			}
		}
		for (int i = 0; i < count; i++)
			if (connections[i].fd >= 0 && connections[i].connected && !connections[i].finished)
				send_some(&connections[i], bytes, allowed < bytes ? allowed : bytes);
	}
	printf("verified %d connections of %llu bytes each way\n", count, (unsigned long long)bytes);
}

static void refused(const char *ip, const char *port)
{
	struct sockaddr_in remote = address_of(ip, port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), epoll = epoll_create1(0), error = 0;
	socklen_t length = sizeof error;
	struct epoll_event event;
	watch(epoll, fd, EPOLLOUT, NULL);
	if (connect(fd, (struct sockaddr *)&remote, sizeof remote) && errno == EINPROGRESS) {
		must(epoll_wait(epoll, &event, 1, 5000) == 1);
		must(!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length));
	} else {
		error = errno;
	}
	if (error != ECONNREFUSED) {
		errno = error;
		fail("not refused");
	}
	printf("refused\n");
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "serve"))
		serve(argv[2], argv[3], atoi(argv[4]));
	else if (argc == 7 && !strcmp(argv[1], "drive"))
		drive(argv[2], argv[3], atoi(argv[4]), strtoull(argv[5], NULL, 10), atoi(argv[6]));
	else if (argc == 4 && !strcmp(argv[1], "refused"))
		refused(argv[2], argv[3]);
	else
		return 2;
	return 0;
}
