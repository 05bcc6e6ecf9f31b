/*
 * The library as a program in C meets it: error codes, blocking transfers, a poll loop. Every byte is verified.
 *
 *   test    runs over the loopback address; prints what it did, exits with 1 at the first fault
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <ri2n.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define expect(got, wanted) expect_at(__LINE__, #got, (long)(got), (long)(wanted))
#define TOTAL (16 << 20)
#define CHUNK 50000

static void expect_at(int line, const char *what, long got, long wanted)
{
	if (got != wanted) {
		fprintf(stderr, "line %d: %s: %ld (%s), expected %ld\n", line, what, got, ri2n_strerror((int)got), wanted);
		exit(1);
	}
}

static unsigned char byte_at(size_t at)
{
	return (unsigned char)((at * 2654435761u) >> 13);
}

static struct sockaddr_in loopback(unsigned short port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

static ri2n_handle *listener_at_any_port(struct sockaddr_in *address)
{
	ri2n_handle *listener;
	socklen_t length = sizeof *address;
	*address = loopback(0);
	expect(ri2n_socket(&listener), 0);
	expect(ri2n_bind(listener, (struct sockaddr *)address, sizeof *address), 0);
	expect(ri2n_listen(listener), 0);
	expect(ri2n_getsockname(listener, (struct sockaddr *)address, &length), 0);
	expect(length, sizeof *address);
	expect(address->sin_family, AF_INET);
	return listener;
}

/* Echoes one connection, blocking, until its end. */
static void *echo(void *listener)
{
	ri2n_handle *connection;
	struct sockaddr_in peer;
	socklen_t length = sizeof peer;
	unsigned char *buffer = malloc(CHUNK);
	expect(ri2n_accept(listener, &connection, (struct sockaddr *)&peer, &length, 0), 0);
	expect(peer.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	for (;;) {
		ssize_t got = ri2n_recv(connection, buffer, CHUNK, 0);
		if (got == 0)
			break;
		if (got < 0)
			expect(got, 0);
		for (ssize_t done = 0; done < got;) {
			ssize_t sent = ri2n_send(connection, buffer + done, (size_t)(got - done), 0);
			if (sent <= 0)
				expect(sent, 1);
			done += sent;
		}
	}
	expect(ri2n_shutdown(connection, SHUT_WR), 0);
	expect(ri2n_send(connection, "x", 1, 0), RI2N_EPIPE);
	expect(ri2n_flush(connection, 10000), 0);
	expect(ri2n_close(connection), 0);
	free(buffer);
	return NULL;
}

static void arguments_are_checked(void)
{
	ri2n_handle *socket;
	unsigned char byte;
	int64_t value;
	struct sockaddr_in address = loopback(1);
	expect(ri2n_version(), RI2N_VERSION);
	expect(ri2n_socket(NULL), RI2N_EINVAL);
	expect(ri2n_socket(&socket), 0);
	expect(ri2n_recv(socket, &byte, 1, 0), RI2N_ENOTCONN);
	expect(ri2n_send(socket, &byte, 1, 0), RI2N_ENOTCONN);
	expect(ri2n_send(socket, &byte, 1, 4), RI2N_EINVAL);
	expect(ri2n_receive_descriptor(socket), RI2N_ENOTCONN);
	expect(ri2n_get(socket, RI2N_LINKS, &value), RI2N_ENOTCONN);
	expect(ri2n_get(socket, 99, &value), RI2N_EINVAL);
	expect(ri2n_set(socket, RI2N_SEND_TIMEOUT, -1), RI2N_EINVAL);
	expect(ri2n_set(socket, RI2N_CONNECT_TIMEOUT, 1500), 0);
	expect(ri2n_get(socket, RI2N_CONNECT_TIMEOUT, &value), 0);
	expect(value, 1500);
	expect(ri2n_configure(socket, "/no/such/file"), RI2N_ECONFIG);
	expect(ri2n_set_key(socket, &byte, 1), RI2N_EINVAL);
	expect(ri2n_connect(socket, (struct sockaddr *)&address, 3), RI2N_EINVAL);
	expect(ri2n_accept(socket, &socket, NULL, NULL, 0), RI2N_EINVAL);
	expect(ri2n_close(socket), 0);
	expect(ri2n_close(NULL), RI2N_EINVAL);
	for (int code = 0; code > -20; code--)
		expect(strlen(ri2n_strerror(code)) > 0, 1);
	printf("arguments are checked\n");
}

static void nobody_listens(void)
{
	ri2n_handle *socket;
	struct sockaddr_in address;
	ri2n_handle *listener = listener_at_any_port(&address);
	expect(ri2n_socket(&socket), 0);
	expect(ri2n_bind(socket, (struct sockaddr *)&address, sizeof address), 0);
	expect(ri2n_listen(socket), RI2N_EADDRINUSE);
	expect(ri2n_close(socket), 0);
	expect(ri2n_close(listener), 0);
	expect(ri2n_socket(&socket), 0);
	expect(ri2n_connect(socket, (struct sockaddr *)&address, sizeof address), RI2N_EREFUSED);
	expect(ri2n_close(socket), 0);
	printf("nobody listens: refused\n");
}

static ri2n_handle *connected(const struct sockaddr_in *address)
{
	ri2n_handle *socket;
	int64_t value;
	struct sockaddr_in peer;
	socklen_t length = sizeof peer;
	expect(ri2n_socket(&socket), 0);
	expect(ri2n_connect(socket, (const struct sockaddr *)address, sizeof *address), 0);
	expect(ri2n_connect(socket, (const struct sockaddr *)address, sizeof *address), RI2N_EISCONN);
	expect(ri2n_getpeername(socket, (struct sockaddr *)&peer, &length), 0);
	expect(peer.sin_port, address->sin_port);
	expect(ri2n_get(socket, RI2N_LINKS, &value), 0);
	expect(value >= 1, 1);
	expect(ri2n_get(socket, RI2N_LINKS_GOOD, &value), 0);
	return socket;
}

static void poll_loop(void)
{
	struct sockaddr_in address;
	pthread_t server;
	unsigned char *buffer = malloc(CHUNK);
	size_t sent = 0, received = 0, rounds = 0;
	ri2n_handle *listener = listener_at_any_port(&address);
	expect(pthread_create(&server, NULL, echo, listener), 0);
	ri2n_handle *socket = connected(&address);
	expect(ri2n_recv(socket, buffer, 1, RI2N_DONTWAIT), RI2N_EWOULDBLOCK);
	expect(ri2n_set(socket, RI2N_RECEIVE_TIMEOUT, 20), 0);
	expect(ri2n_recv(socket, buffer, 1, 0), RI2N_EWOULDBLOCK);
	for (;; rounds++) {
		struct pollfd fds[2] = {
			{ .fd = ri2n_receive_descriptor(socket), .events = POLLIN },
			{ .fd = sent < TOTAL ? ri2n_send_descriptor(socket) : -1, .events = POLLIN },
		};
		expect(poll(fds, 2, 20000) > 0, 1);
		if (fds[0].revents) {
			ssize_t got = ri2n_recv(socket, buffer, CHUNK, RI2N_DONTWAIT);
			if (got == 0)
				break;
			if (got != RI2N_EWOULDBLOCK)
				expect(got > 0, 1);
			for (ssize_t i = 0; i < got; i++)
				expect(buffer[i], byte_at(received + (size_t)i));
			received += got > 0 ? (size_t)got : 0;
		}
		if (fds[1].revents) {
			size_t count = TOTAL - sent < CHUNK ? TOTAL - sent : CHUNK;
			for (size_t i = 0; i < count; i++)
				buffer[i] = byte_at(sent + i);
			ssize_t went = ri2n_send(socket, buffer, count, RI2N_DONTWAIT);
			if (went != RI2N_EWOULDBLOCK)
				expect(went > 0, 1);
			sent += went > 0 ? (size_t)went : 0;
			if (sent == TOTAL)
				expect(ri2n_shutdown(socket, SHUT_WR), 0);
		}
	}
	expect(received, TOTAL);
	expect(pthread_join(server, NULL), 0);
	expect(ri2n_close(socket), 0);
	expect(ri2n_close(listener), 0);
	free(buffer);
	printf("poll loop: %d bytes each way\n", TOTAL);
}

static void peer_aborts(void)
{
	struct sockaddr_in address;
	ri2n_handle *connection = NULL, *listener = listener_at_any_port(&address), *socket;
	unsigned char byte;
	expect(ri2n_accept(listener, &connection, NULL, NULL, RI2N_DONTWAIT), RI2N_EWOULDBLOCK);
	socket = connected(&address);
	struct pollfd waiting = { .fd = ri2n_receive_descriptor(listener), .events = POLLIN };
	expect(poll(&waiting, 1, 10000), 1);
	expect(ri2n_accept(listener, &connection, NULL, NULL, RI2N_DONTWAIT), 0);
	expect(ri2n_abort(connection), 0);
	expect(ri2n_recv(socket, &byte, 1, 0), RI2N_ERESET);
	expect(ri2n_close(socket), 0);
	expect(ri2n_close(listener), 0);
	printf("the peer aborts: reset\n");
}

int main(void)
{
	arguments_are_checked();
	nobody_listens();
	poll_loop();
	peer_aborts();
	return 0;
}
