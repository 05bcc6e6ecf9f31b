// The connection that the preload library keeps to its broker: what a program may do to it, or behind its back.
//
//   line serve IP PORT             echoes, a thread for each connection
//   line drive IP PORT SILENT      all cases; nobody has the address SILENT
//   line bare                      is executed by a case: succeeds if it has inherited no such connection
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 24, KEPT_MAX = 16 };

static struct sockaddr_in server, silent;
static const char *self;

static void check(int good, const char *what)
{
	if (!good) {
		perror(what);
		exit(1);
	}
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *echo(void *connection)
{
	int fd = (int)(long)connection;
	char bytes[64];
	ssize_t count;
	while ((count = recv(fd, bytes, sizeof bytes, 0)) > 0)
		check(send(fd, bytes, (size_t)count, 0) == count, "send");
	close(fd);
	return NULL;
}

static void serve(void)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	check(bind(listener, (struct sockaddr *)&server, sizeof server) == 0, "bind");
	check(listen(listener, 128) == 0, "listen");
	for (;;) {
		pthread_t thread;
		long fd = accept(listener, NULL, NULL);
		if (fd >= 0 && pthread_create(&thread, NULL, echo, (void *)fd) == 0)
			pthread_detach(thread);
	}
}

static int is_by_ri2n(int fd)
{
	char name[16] = "";
	socklen_t length = sizeof name;
	return getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) == 0 && strncmp(name, "ri2n", 4) == 0;
}

// Connects, and has bytes of its own echoed. By RI2N or not, as is expected.
static void talk(int by_ri2n, const char *what)
{
	static int number;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	check(fd >= 0 && connect(fd, (struct sockaddr *)&server, sizeof server) == 0, what);
	errno = 0;
	check(is_by_ri2n(fd) == by_ri2n, by_ri2n ? "not by RI2N" : "not by plain TCP");
	char sent[64] = "", received[64];
	snprintf(sent, sizeof sent, "%s %d %d", what, getpid(), __atomic_add_fetch(&number, 1, __ATOMIC_SEQ_CST));
	check(send(fd, sent, sizeof sent, 0) == sizeof sent, "send");
	check(recv(fd, received, sizeof received, MSG_WAITALL) == sizeof received, "recv");
	check(memcmp(sent, received, sizeof sent) == 0, "other bytes came back");
	close(fd);
}

// The kept connections: how many, and the number and cookie of one.
static int lines(int *number, unsigned long long *cookie)
{
	int count = 0;
	for (int fd = 3; fd < 4096; fd++) {
		int domain = 0, type = 0;
		socklen_t length = sizeof domain;
		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0)
			continue;
		length = sizeof type;
		getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length);
		if (domain != AF_UNIX || type != SOCK_SEQPACKET)
			continue;
		count++;
		if (number)
			*number = fd;
		length = sizeof *cookie;
		if (cookie)
			getsockopt(fd, SOL_SOCKET, SO_COOKIE, cookie, &length);
	}
	return count;
}

static void exits_well(pid_t child, const char *what)
{
	int status;
	check(waitpid(child, &status, 0) == child, "waitpid");
	errno = 0;
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0, what);
}

static void kept(void)
{
	unsigned long long first = 0, later = 0;
	int number = 0;
	talk(1, "the first");
	check(lines(&number, &first) == 1 && number >= 512, "no connection to the broker is kept");
	for (int k = 0; k < 20; k++)
		talk(1, "on the same line");
	check(lines(&number, &later) == 1 && first == later, "it is not the same one");
}

static void forked(void)
{
	pid_t child = fork();
	for (int k = 0; k < 100; k++)
		talk(1, child ? "parent" : "child");
	unsigned long long cookie;
	if (child == 0) {
		check(lines(NULL, &cookie) == 2, "a child has its parent's and its own");
		_exit(0);
	}
	exits_well(child, "a child");
}

static void executed(void)
{
	pid_t child = fork();
	if (child == 0) {
		execl(self, self, "bare", (char *)NULL);
		_exit(2);
	}
	exits_well(child, "a program that is executed has a connection to the broker");
}

static void moved(void)
{
	pid_t child = fork();
	if (child == 0) {
		talk(1, "before it moves");
		check(unshare(CLONE_NEWNET) == 0, "unshare");
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		int result = connect(fd, (struct sockaddr *)&server, sizeof server);
		_exit(result == -1 && errno == ENETUNREACH ? 0 : 2);
	}
	exits_well(child, "a program in another network namespace");
}

static void closed(void)
{
	check(syscall(SYS_close_range, 3, ~0U, 0) == 0, "close_range");
	talk(1, "after all was closed");
	check(lines(NULL, NULL) == 1, "no connection is kept any more");
}

static void replaced(void)
{
	int pair[2], number = 0;
	char bytes[128];
	check(lines(&number, NULL) == 1, "one connection");
	check(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0, "socketpair");
	check(dup2(pair[0], number) == number, "dup2");
	for (int k = 0; k < 3; k++)
		talk(1, "after it was replaced");
	check(recv(pair[1], bytes, sizeof bytes, MSG_DONTWAIT) == -1 && errno == EAGAIN, "a socket of the program's was asked");
	check(send(pair[1], "mine", 4, 0) == 4 && recv(number, bytes, sizeof bytes, 0) == 4, "a socket of the program's was closed");
	close(number);
	close(pair[0]);
	close(pair[1]);
}

static void *talks(void *what)
{
	for (int k = 0; k < 20; k++)
		talk(1, what);
	return NULL;
}

static void threaded(void)
{
	pthread_t threads[THREADS];
	for (int k = 0; k < THREADS; k++)
		check(pthread_create(&threads[k], NULL, talks, "a thread") == 0, "pthread_create");
	for (int k = 0; k < THREADS; k++)
		pthread_join(threads[k], NULL);
	int count = lines(NULL, NULL);
	check(count >= 1 && count <= KEPT_MAX, "so many connections are kept");
}

static void ignore(int number)
{
	(void)number;
}

static void interrupted(void)
{
	struct sigaction action = { .sa_handler = ignore };
	sigaction(SIGALRM, &action, NULL);
	for (int k = 0; k < 3; k++) {
		struct itimerval soon = { .it_value = { .tv_usec = 30000 } };
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		silent.sin_port = htons((uint16_t)(7000 + k));
		setitimer(ITIMER_REAL, &soon, NULL);
		check(connect(fd, (struct sockaddr *)&silent, sizeof silent) == -1 && errno == EINTR, "not interrupted");
		talk(1, "after an interruption");
		close(fd);
	}
	usleep(400000);
	talk(1, "after the answers came");
}

static void limited(void)
{
	struct timeval limit = { .tv_usec = 50000 };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	silent.sin_port = htons(7010);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	check(connect(fd, (struct sockaddr *)&silent, sizeof silent) == -1 && errno == EINPROGRESS, "no time limit");
	close(fd);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	check(connect(fd, (struct sockaddr *)&server, sizeof server) == 0, "within the time limit");
	close(fd);
	usleep(400000);
	talk(1, "after time limits");
}

static void *waits(void *end)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct timeval limit = { .tv_sec = 1 };
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	silent.sin_port = htons(7020);
	connect(fd, (struct sockaddr *)&silent, sizeof silent);
	*(double *)end = now();
	close(fd);
	return NULL;
}

static void beside(void)
{
	pthread_t thread;
	double end = 0;
	check(pthread_create(&thread, NULL, waits, &end) == 0, "pthread_create");
	usleep(20000);
	for (int k = 0; k < 5; k++)
		talk(1, "beside one that waits");
	double talked = now();
	pthread_join(thread, NULL);
	errno = 0;
	check(talked < end, "a connection that waits kept back others");
}

static void dead(void)
{
	const char *variable = getenv("RI2N_BROKER");
	int broker = 0;
	check(variable && sscanf(variable, "ri2n-%d-", &broker) == 1 && broker > 1, "RI2N_BROKER");
	check(kill(broker, SIGKILL) == 0, "kill");
	usleep(100000);
	for (int k = 0; k < 3; k++)
		talk(0, "without a broker");
	check(lines(NULL, NULL) < KEPT_MAX, "dead connections are kept");
}

int main(int count, char **words)
{
	self = words[0];
	if (count == 2 && strcmp(words[1], "bare") == 0)
		return lines(NULL, NULL) == 0 ? 0 : 1;
	if (count < 4)
		return 2;
	server.sin_family = silent.sin_family = AF_INET;
	server.sin_addr.s_addr = inet_addr(words[2]);
	server.sin_port = htons((uint16_t)atoi(words[3]));
	if (strcmp(words[1], "serve") == 0)
		serve();
	silent.sin_addr.s_addr = inet_addr(words[4]);
	struct rlimit limit = { 4096, 4096 };
	setrlimit(RLIMIT_NOFILE, &limit);
	static void (*const cases[])(void) = { kept, forked, executed, moved, closed, replaced, threaded, interrupted, limited, beside, dead };
	static const char *const names[] = { "kept", "forked", "executed", "moved", "closed", "replaced", "threaded", "interrupted", "limited", "beside", "dead" };
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		fprintf(stderr, "%s\n", names[k]);
		cases[k]();
	}
	puts("done");
	return 0;
}
