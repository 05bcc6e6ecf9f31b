// A server that accepts without the C library's accept(): nothing that wraps that function sees its connections.
//
//   accept IP PORT syscall [SECONDS]   by the system call itself; before each it waits for SECONDS
//   accept IP PORT uring               by io_uring
//   accept IP PORT child PROGRAM       leaves the listener, as descriptor 3, to PROGRAM
//   accept - - inherited               is such a PROGRAM
//
// Each connection is echoed, and the peer's address printed.
#include <arpa/inet.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void check(int good, const char *what)
{
	if (!good) {
		perror(what);
		exit(1);
	}
}

static int by_syscall(int listener)
{
	return (int)syscall(SYS_accept4, listener, NULL, NULL, 0);
}

// One request at a time: the least that a ring can do.
static int by_uring(int listener)
{
	static int ring = -1;
	static struct io_uring_params params;
	static char *sq, *cq;
	static struct io_uring_sqe *entries;
	if (ring < 0) {
		ring = (int)syscall(SYS_io_uring_setup, 1, &params);
		check(ring >= 0, "io_uring_setup");
		size_t sq_bytes = params.sq_off.array + params.sq_entries * sizeof(unsigned);
		size_t cq_bytes = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
		int flags = MAP_SHARED | MAP_POPULATE;
		sq = mmap(NULL, sq_bytes, PROT_READ | PROT_WRITE, flags, ring, IORING_OFF_SQ_RING);
		cq = mmap(NULL, cq_bytes, PROT_READ | PROT_WRITE, flags, ring, IORING_OFF_CQ_RING);
		entries = mmap(NULL, params.sq_entries * sizeof *entries, PROT_READ | PROT_WRITE, flags, ring, IORING_OFF_SQES);
		check(sq != MAP_FAILED && cq != MAP_FAILED && (void *)entries != MAP_FAILED, "mmap");
	}
	unsigned *tail = (unsigned *)(sq + params.sq_off.tail);
	unsigned at = *tail & *(unsigned *)(sq + params.sq_off.ring_mask);
	memset(&entries[at], 0, sizeof entries[at]);
	entries[at].opcode = IORING_OP_ACCEPT;
	entries[at].fd = listener;
	((unsigned *)(sq + params.sq_off.array))[at] = at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	check(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) >= 0, "io_uring_enter");
	unsigned *head = (unsigned *)(cq + params.cq_off.head);
	struct io_uring_cqe *done = (struct io_uring_cqe *)(cq + params.cq_off.cqes);
	int result = done[*head & *(unsigned *)(cq + params.cq_off.ring_mask)].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	errno = -result;
	return result;
}

static void serve(int listener, int (*take)(int), unsigned delay)
{
	for (;;) {
		sleep(delay);
		int connection = take(listener);
		check(connection >= 0, "accept");
		struct sockaddr_in peer = {0};
		socklen_t length = sizeof peer;
		syscall(SYS_getpeername, connection, &peer, &length);
		char bytes[4096];
		long count, all = 0;
		while ((count = syscall(SYS_read, connection, bytes, sizeof bytes)) > 0) {
			for (long done = 0; done < count;) {
				long written = syscall(SYS_write, connection, bytes + done, count - done);
				check(written > 0, "write");
				done += written;
			}
			all += count;
		}
		printf("%s %ld\n", inet_ntoa(peer.sin_addr), all);
		fflush(stdout);
		syscall(SYS_close, connection);
	}
}

int main(int argc, char **argv)
{
	check(argc >= 4, "accept IP PORT KIND");
	if (strcmp(argv[3], "inherited") == 0)
		serve(3, by_syscall, 0);
	int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(argv[2]))};
	inet_pton(AF_INET, argv[1], &address.sin_addr);
	check(bind(listener, (struct sockaddr *)&address, sizeof address) == 0, "bind");
	check(listen(listener, 64) == 0, "listen");
	if (strcmp(argv[3], "child") == 0) {
		dup2(listener, 3);
		execl(argv[4], argv[4], "-", "-", "inherited", NULL);
		check(0, argv[4]);
	}
	serve(listener, strcmp(argv[3], "uring") == 0 ? by_uring : by_syscall, argc > 4 ? (unsigned)atoi(argv[4]) : 0);
}
