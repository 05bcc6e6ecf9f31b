/*
 * A forking server in the manner of inetd: it forks for every connection, and the child executes a program anew that has
 * the connection as standard input and output. The server itself ends before its children do.
 *
 *   fork serve IP PORT CONNECTIONS
 *   fork drive IP PORT CONNECTIONS BYTES MS   as many processes, each sends BYTES paced to last about MS and verifies the echo
 */
#include "pattern.h"
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>

static void write_all(int fd, const unsigned char *bytes, size_t count)
{
	while (count) {
		ssize_t n = write(fd, bytes, count);
		must(n > 0);
		bytes += n;
		count -= (size_t)n;
	}
}

/* The executed child: echoes what it reads, through a duplicate of the descriptor. */
static void child(void)
{
	must_look_like_tcp(0, NULL);
	int copy = dup(1);
	must(copy >= 0 && !close(1));
	for (;;) {
		unsigned char buffer[32768];
		ssize_t n = read(0, buffer, sizeof buffer);
		must(n >= 0);
		if (n == 0)
			break;
		write_all(copy, buffer, (size_t)n);
	}
}

static void serve(const char *self, const char *ip, const char *port, int wanted)
{
	int listener = listen_at(ip, port);
	for (int i = 0; i < wanted; i++) {
		struct sockaddr_in peer;
		socklen_t length = sizeof peer;
		int fd = accept(listener, (struct sockaddr *)&peer, &length);
		must(fd >= 0);
		must_look_like_tcp(fd, &peer);
		pid_t pid = fork();
		must(pid >= 0);
		if (pid == 0) {
			must(dup2(fd, 0) == 0 && dup2(fd, 1) == 1);
			must(!close(fd) && !close(listener));
			execl(self, self, "child", (char *)NULL);
			fail("exec");
		}
		must(!close(fd));
	}
	/* The children go on without us. */
}

static void drive_one(const struct sockaddr_in *remote, uint32_t stream, uint64_t bytes, int ms)
{
	enum { STEPS = 50 };
	unsigned char *buffer = malloc(bytes), *back = malloc(bytes);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	must(fd >= 0 && buffer && back);
	must(!connect(fd, (const struct sockaddr *)remote, sizeof *remote));
	must_look_like_tcp(fd, remote);
	fill(buffer, bytes, stream, 0);
	/* One process writes, another reads: the descriptor is shared. */
	pid_t writer = fork();
	must(writer >= 0);
	if (writer == 0) {
		for (int step = 0; step < STEPS; step++) {
			uint64_t from = bytes * (uint64_t)step / STEPS, to = bytes * (uint64_t)(step + 1) / STEPS;
			write_all(fd, buffer + from, to - from);
			nanosleep(&(struct timespec){ .tv_nsec = 1000000L * ms / STEPS }, NULL);
		}
		must(!shutdown(fd, SHUT_WR));
		_exit(0);
	}
	uint64_t received = 0;
	for (;;) {
		ssize_t n = read(fd, back + received, bytes - received + (received == bytes));
		must(n >= 0);
		if (n == 0)
			break;
		received += (uint64_t)n;
	}
	must(received == bytes);
	verify(back, bytes, stream, 0);
	int status;
	must(waitpid(writer, &status, 0) == writer && status == 0);
}

static void drive(const char *ip, const char *port, int count, uint64_t bytes, int ms)
{
	struct sockaddr_in remote = address_of(ip, port);
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();
		must(pid >= 0);
		if (pid == 0) {
			drive_one(&remote, (uint32_t)i, bytes, ms);
			_exit(0);
		}
	}
	int failures = 0, status;
	while (wait(&status) > 0)
		failures += status != 0;
	must(failures == 0);
	printf("verified %d connections of %llu bytes each way\n", count, (unsigned long long)bytes);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "child"))
		child();
	else if (argc == 5 && !strcmp(argv[1], "serve"))
		serve(argv[0], argv[2], argv[3], atoi(argv[4]));
	else if (argc == 7 && !strcmp(argv[1], "drive"))
		drive(argv[2], argv[3], atoi(argv[4]), strtoull(argv[5], NULL, 10), atoi(argv[6]));
	else
		return 2;
	return 0;
}
